//! Matching of URIs against templates, for the subset that [`UriTemplate`] documents.
//!
//! The matcher returns percent-decoded values and never backtracks.

use super::expand::{RESERVED, percent_encode};
use super::{Operator, TemplateError, TemplatePart, UriTemplate, Variable, VariableModifier};

/// Step of matching the path of a URI.
enum MatchStep<'t> {
    /// Literal text.
    Literal(&'t str),
    /// Value of a variable.
    Value {
        /// Name of the variable.
        name: &'t str,
        /// True if values may contain `/`, `?` and `#`.
        reserved: bool,
    },
}

impl UriTemplate {
    /// Checks that the template can be matched.
    ///
    /// # Errors
    /// [`TemplateError`] with the unsupported expression and a hint.
    pub fn check_matchable(&self) -> Result<(), TemplateError> {
        let mut tail = false;
        let mut after_value = false;
        for part in &self.parts {
            let (operator, variables) = match part {
                TemplatePart::Literal(literal) if tail => {
                    let message =
                        format!("{literal:?} comes after a query or fragment; put these last");
                    return Err(TemplateError(message));
                }
                TemplatePart::Literal(_) => {
                    after_value = false;
                    continue;
                }
                TemplatePart::Expression(operator, variables) => (*operator, variables),
            };
            check_variables(operator, variables)?;
            let is_tail = operator.is_query_or_fragment();
            if tail && !is_tail {
                let message = "an expression comes after a query or fragment; put these last";
                return Err(TemplateError(message.to_owned()));
            }
            tail |= is_tail;
            let separates = matches!(operator, Operator::Path | Operator::Label);
            if !is_tail && after_value && !separates {
                let name = &variables[0].name;
                let message = format!(
                    "it cannot be told where the value before `{name}` ends; put literal text between the two"
                );
                return Err(TemplateError(message));
            }
            after_value = !is_tail;
        }
        Ok(())
    }

    /// Returns the percent-decoded values of a URI, in the order of the template; `None` if the URI does not match, or
    /// the template [cannot be matched](Self::check_matchable).
    pub fn match_uri(&self, uri: &str) -> Option<Vec<(String, String)>> {
        self.check_matchable().ok()?;
        let found = Self::match_parts(&self.parts, uri);
        found.or_else(|| Self::match_parts(&self.encoded_parts()?, uri))
    }

    /// Returns the parts with their literal texts as they are expanded; `None` if those are the same.
    fn encoded_parts(&self) -> Option<Vec<TemplatePart>> {
        let mut parts = self.parts.clone();
        for part in &mut parts {
            if let TemplatePart::Literal(literal) = part {
                let mut encoded = String::new();
                percent_encode(literal, RESERVED, &mut encoded);
                *literal = encoded;
            }
        }
        (parts != self.parts).then_some(parts)
    }

    /// Returns the values of a URI that matches these parts.
    fn match_parts(parts: &[TemplatePart], uri: &str) -> Option<Vec<(String, String)>> {
        let tail = parts.iter().position(TemplatePart::is_query_or_fragment);
        let (path_parts, tail_parts) = parts.split_at(tail.unwrap_or(parts.len()));
        let delimiters: Vec<char> = tail_parts
            .iter()
            .filter_map(TemplatePart::leading_delimiter)
            .collect();
        let end = uri.find(&*delimiters).unwrap_or(uri.len());
        let (path, mut rest) = uri.split_at(end);
        let mut found = match_path(path_parts, path)?;
        for part in tail_parts {
            if let TemplatePart::Expression(operator, variables) = part {
                rest = match operator {
                    Operator::Fragment => match_fragment(rest, variables, &mut found)?,
                    _ => match_query(rest, *operator, variables, &mut found)?,
                };
            }
        }
        rest.is_empty().then_some(found)
    }
}

impl Operator {
    /// Returns true if the operator expands to a part of the query or the fragment.
    fn is_query_or_fragment(self) -> bool {
        matches!(self, Self::Query | Self::Continuation | Self::Fragment)
    }
}

impl TemplatePart {
    /// Returns true if the part belongs to the query or the fragment.
    fn is_query_or_fragment(&self) -> bool {
        matches!(self, Self::Expression(operator, _) if operator.is_query_or_fragment())
    }

    /// Returns the delimiter that an expression of the query or the fragment begins with.
    fn leading_delimiter(&self) -> Option<char> {
        match self {
            Self::Expression(Operator::Query, _) => Some('?'),
            Self::Expression(Operator::Continuation, _) => Some('&'),
            Self::Expression(Operator::Fragment, _) => Some('#'),
            _ => None,
        }
    }
}

/// Checks that matching supports the modifiers and the number of variables of an expression.
fn check_variables(operator: Operator, variables: &[Variable]) -> Result<(), TemplateError> {
    let several = !matches!(operator, Operator::Query | Operator::Continuation);
    let message = match variables {
        _ if operator == Operator::Parameter => {
            "`{;…}` cannot be matched; use a query `{?…}`".to_owned()
        }
        [first, ..]
            if variables
                .iter()
                .any(|one| one.modifier != VariableModifier::None) =>
        {
            format!(
                "modifiers such as those of `{}` cannot be matched; leave them out",
                first.name
            )
        }
        [_, second, ..] if several => {
            format!(
                "`{}` is the second variable of its expression; give it one of its own",
                second.name
            )
        }
        _ => return Ok(()),
    };
    Err(TemplateError(message))
}

/// Returns the steps for matching the path. An expression with a separator, such as `{/name}`, becomes literal text and
/// a variable.
fn match_steps(parts: &[TemplatePart]) -> Vec<MatchStep<'_>> {
    let mut steps = Vec::with_capacity(parts.len());
    for part in parts {
        match part {
            TemplatePart::Literal(literal) => steps.push(MatchStep::Literal(literal)),
            TemplatePart::Expression(operator, variables) => {
                match operator {
                    Operator::Path => steps.push(MatchStep::Literal("/")),
                    Operator::Label => steps.push(MatchStep::Literal(".")),
                    _ => {}
                }
                let reserved = *operator == Operator::Reserved;
                steps.extend(variables.iter().map(|one| MatchStep::Value {
                    name: &one.name,
                    reserved,
                }));
            }
        }
    }
    steps
}

/// Matches the path of a URI; returns the names and values of the variables.
fn match_path(parts: &[TemplatePart], path: &str) -> Option<Vec<(String, String)>> {
    let steps = match_steps(parts);
    let mut found = Vec::new();
    let mut rest = path;
    for (at, step) in steps.iter().enumerate() {
        match step {
            MatchStep::Literal(literal) => rest = rest.strip_prefix(literal)?,
            MatchStep::Value { name, reserved } => {
                let end = match steps.get(at + 1) {
                    // The literal text at the end of the template's path must be at the end of the URI's path.
                    Some(MatchStep::Literal(literal)) if at + 2 == steps.len() => {
                        rest.strip_suffix(literal)?.len()
                    }
                    Some(MatchStep::Literal(literal)) => {
                        let first = rest.chars().next()?.len_utf8();
                        first + rest.get(first..)?.find(literal)?
                    }
                    _ => rest.len(),
                };
                let (value, after) = rest.split_at(end);
                if value.is_empty() || (!reserved && value.contains(['/', '?', '#'])) {
                    return None;
                }
                found.push(((*name).to_owned(), percent_decode(value)?));
                rest = after;
            }
        }
    }
    rest.is_empty().then_some(found)
}

/// Matches the fragment of a URI, if `rest` begins with it, and appends the variable to `found`. Returns the unmatched
/// rest of the URI; `None` if the fragment does not match.
fn match_fragment<'u>(
    rest: &'u str,
    variables: &[Variable],
    found: &mut Vec<(String, String)>,
) -> Option<&'u str> {
    let Some(value) = rest.strip_prefix('#') else {
        return Some(rest);
    };
    found.push((variables[0].name.clone(), percent_decode(value)?));
    Some("")
}

/// Matches the parameters of one query expression, which may be in any order, and appends the variables to `found`.
/// Returns the unmatched rest of the URI; `None` if a parameter does not match.
fn match_query<'u>(
    rest: &'u str,
    operator: Operator,
    variables: &[Variable],
    found: &mut Vec<(String, String)>,
) -> Option<&'u str> {
    let first = if operator == Operator::Query {
        '?'
    } else {
        '&'
    };
    let Some(mut query) = rest.strip_prefix(first) else {
        return Some(rest);
    };
    let mut values: Vec<(&str, String)> = Vec::new();
    loop {
        let end = query.find(['&', '#']).unwrap_or(query.len());
        let (pair, after) = query.split_at(end);
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        let mut known = variables.iter().filter(|variable| variable.name == name);
        if known.next().is_none() || values.iter().any(|(there, _)| *there == name) {
            return None;
        }
        values.push((name, percent_decode(value)?));
        match after.strip_prefix('&') {
            Some(next) => query = next,
            None => {
                for variable in variables {
                    let value = values.iter().find(|(name, _)| *name == variable.name);
                    found.extend(value.map(|(name, value)| ((*name).to_owned(), value.clone())));
                }
                return Some(after);
            }
        }
    }
}

/// Decodes percent-encoded UTF-8; `None` if it is invalid.
fn percent_decode(text: &str) -> Option<String> {
    let hex = |byte: u8| char::from(byte).to_digit(16);
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        if bytes[at] == b'%' {
            let (high, low) = (hex(*bytes.get(at + 1)?)?, hex(*bytes.get(at + 2)?)?);
            out.push(u8::try_from(high * 16 + low).ok()?);
            at += 3;
        } else {
            out.push(bytes[at]);
            at += 1;
        }
    }
    String::from_utf8(out).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks the match of a URI against a template; `expected` is `None` for no match.
    fn check(template: &str, uri: &str, expected: Option<&[(&str, &str)]>) {
        let template = UriTemplate::parse(template).expect(template);
        template.check_matchable().expect(uri);
        let found = template.match_uri(uri);
        let found = found.as_ref().map(|found| {
            let pairs = found.iter().map(|(name, value)| (&**name, &**value));
            pairs.collect::<Vec<_>>()
        });
        assert_eq!(found.as_deref(), expected, "{template} on {uri}");
    }

    #[test]
    fn path_variables_end_at_next_literal() {
        check(
            "file://{+path}",
            "file:///a/b.txt",
            Some(&[("path", "/a/b.txt")]),
        );
        check(
            "a://{x}/{y}.md",
            "a://1/2.3.md",
            Some(&[("x", "1"), ("y", "2.3")]),
        );
        check("a://{x}/{y}.md", "a://1/2/3.md", None);
        check("a://{x}", "a://", None);
        check("a://{x}", "b://1", None);
        check("a://{+p}/meta", "a://x/meta/meta", Some(&[("p", "x/meta")]));
        check("a:{/x}{.y}", "a:/b.c", Some(&[("x", "b"), ("y", "c")]));
        check("a://{x}", "a://%C3%A9%20", Some(&[("x", "é ")]));
        check("a://{x}", "a://%ff", None);
        check("a://{x}", "a://%f", None);
        check("fixed", "fixed", Some(&[]));
    }

    /// RFC 6570, section 3.1: literal text that a URI cannot have is percent-encoded by the expansion. What a template expands to
    /// matches it, as well as the text as it is written.
    #[test]
    fn expansions_match_their_template() {
        for template in ["a://ü b/{x}", "a://{x}/é.md", "a://%C3%BC/{x}", "a://x{?x}"] {
            let parsed = UriTemplate::parse(template).expect(template);
            for value in ["1", "é ü", "a/b", "100%"] {
                let uri = parsed.expand([("x", value.into())]);
                check(template, &uri, Some(&[("x", value)]));
            }
        }
        check("a://ü/{x}", "a://ü/1", Some(&[("x", "1")]));
        check("a://ü/{x}", "a://%c3%bc/1", None);
    }

    #[test]
    fn query_parameters_match_in_any_order() {
        let template = "s://q{?a,b}";
        check(template, "s://q", Some(&[]));
        check(template, "s://q?b=2&a=1", Some(&[("a", "1"), ("b", "2")]));
        check(template, "s://q?c=1", None);
        check(template, "s://q?a=1&a=2", None);
        check(
            "s://q?x=1{&a}{#f}",
            "s://q?x=1&a=2#z",
            Some(&[("a", "2"), ("f", "z")]),
        );
        check(
            "s://{h}{?a}{#f}",
            "s://h#z",
            Some(&[("h", "h"), ("f", "z")]),
        );
    }

    #[test]
    fn ambiguous_templates_are_refused() {
        let refused = |template: &str| {
            let template = UriTemplate::parse(template).expect(template);
            template
                .check_matchable()
                .expect_err("ambiguous")
                .to_string()
        };
        assert_eq!(
            refused("a{x}{y}"),
            "it cannot be told where the value before `y` ends; put literal text between the two"
        );
        assert_eq!(
            refused("{x,y}"),
            "`y` is the second variable of its expression; give it one of its own"
        );
        assert_eq!(
            refused("{x*}"),
            "modifiers such as those of `x` cannot be matched; leave them out"
        );
        assert_eq!(
            refused("{;x}"),
            "`{;…}` cannot be matched; use a query `{?…}`"
        );
        assert_eq!(
            refused("{?x}/y"),
            "\"/y\" comes after a query or fragment; put these last"
        );
    }

    /// Matching a long URI takes linear time for every template.
    #[test]
    fn template_matching_takes_linear_time() {
        let template = UriTemplate::parse("{a}x{b}x{c}x{d}x{e}y").expect("a template");
        assert_eq!(template.match_uri(&"x".repeat(1 << 20)), None);
    }
}
