//! URI templates (RFC 6570): parsing, expansion of all four levels, and matching of a documented subset.
//!
//! A parsed template expands values to URIs, and extracts values from URIs in time linear in the length of the URI.

mod expand;
mod matching;

use std::fmt;

pub use expand::TemplateValue;
#[cfg(feature = "skills")]
pub(crate) use expand::percent_encode;

/// A parsed URI template (RFC 6570).
///
/// ```
/// use mcp_exact::UriTemplate;
/// let template = UriTemplate::parse("file://{+path}{?encoding}")?;
/// let uri = template.expand([("path", "/a b.txt".into()), ("encoding", "utf-8".into())]);
/// assert_eq!(uri, "file:///a%20b.txt?encoding=utf-8");
/// let found = template.match_uri(&uri).expect("it matches");
/// assert_eq!(found, [("path".to_owned(), "/a b.txt".to_owned()), ("encoding".to_owned(), "utf-8".to_owned())]);
/// # Ok::<(), mcp_exact::TemplateError>(())
/// ```
///
/// # Matching
///
/// RFC 6570 defines expansion only (section 1.4). [`match_uri`](Self::match_uri) is the reverse for templates that
/// [`check_matchable`](Self::check_matchable) accepts:
///
/// - Literal text matches itself, byte for byte, and what it is expanded to: `ü` matches `ü` and `%C3%BC`.
/// - `{name}` matches one or more characters other than `/`, `?` and `#`; `{+name}` matches one or more characters of
///   any kind. `{/name}` and `{.name}` match `/` or `.` followed by the same characters as `{name}`; they are not
///   optional.
/// - A value ends at the first occurrence of the literal text that follows it; literal text at the end of the
///   template's path must be at the end of the URI's path.
/// - `{?a,b}`, `{&a,b}` and `{#name}` must be at the end. The variables of these expressions are optional, and query
///   parameters may be in any order. A URI with an unknown or repeated parameter does not match.
/// - In a URI, the path ends at the first delimiter (`?`, `&` or `#`) of such an expression of the template.
/// - Values are percent-decoded; a URI does not match if a decoded value is not UTF-8.
/// - Not supported: `{;name}`, the modifiers `:n` and `*`, several variables in an expression other than a query, and
///   two variables without literal text between them.
///
/// # Values are untrusted
///
/// Values are decoded after matching, as RFC 6570 specifies: `{name}` matches `..%2F..%2Fetc%2Fpasswd`, and its value
/// is `../../etc/passwd`. Check a value before you use it as the name of a file:
///
/// ```
/// use std::path::{Component, Path};
///
/// /// Returns whether a path stays below the folder that it is joined to. Symbolic links are another matter.
/// fn stays_below(path: &str) -> bool {
///     let mut parts = Path::new(path).components();
///     !path.is_empty() && parts.all(|part| matches!(part, Component::Normal(_)))
/// }
///
/// assert!(stays_below("notes/today.md"));
/// assert!(!stays_below("../../etc/passwd") && !stays_below("/etc/passwd"));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UriTemplate {
    /// Text of the template.
    text: String,
    /// Literal texts and expressions, in order.
    parts: Vec<TemplatePart>,
}

/// Part of a template.
#[derive(Debug, Clone, PartialEq, Eq)]
enum TemplatePart {
    /// Literal text.
    Literal(String),
    /// Expression: its operator and variables.
    Expression(Operator, Vec<Variable>),
}

/// Variable of an expression, with its modifier.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Variable {
    name: String,
    modifier: VariableModifier,
}

/// Modifier of a variable (RFC 6570, section 2.4).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum VariableModifier {
    /// No modifier.
    None,
    /// Maximum number of characters (`:n`).
    Prefix(usize),
    /// Explosion of lists and associative arrays (`*`).
    Explode,
}

/// Operator of an expression (RFC 6570, section 2.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operator {
    /// `{name}`.
    Simple,
    /// `{+name}`.
    Reserved,
    /// `{#name}`.
    Fragment,
    /// `{.name}`.
    Label,
    /// `{/name}`.
    Path,
    /// `{;name}`.
    Parameter,
    /// `{?name}`.
    Query,
    /// `{&name}`.
    Continuation,
}

/// Error for a text that is not a URI template, or for a template that cannot be matched.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct TemplateError(String);

impl UriTemplate {
    /// Parses a template.
    ///
    /// # Errors
    /// [`TemplateError`] with the position and a hint.
    pub fn parse(text: &str) -> Result<Self, TemplateError> {
        let mut parts = Vec::new();
        let mut rest = text;
        while !rest.is_empty() {
            let literal = rest.find(['{', '}']).unwrap_or(rest.len());
            if literal > 0 {
                parts.push(TemplatePart::Literal(rest[..literal].to_owned()));
                rest = &rest[literal..];
                continue;
            }
            let at = text.len() - rest.len();
            let inner = rest.strip_prefix('{').and_then(|rest| rest.split_once('}'));
            let Some((inner, after)) = inner else {
                let message = format!(
                    "the brace at byte {at} has no counterpart; braces enclose expressions"
                );
                return Err(TemplateError(message));
            };
            parts.push(parse_expression(inner)?);
            rest = after;
        }
        Ok(Self {
            text: text.to_owned(),
            parts,
        })
    }

    /// Returns the text of the template.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns the names of the variables, in order, each once.
    pub fn variables(&self) -> Vec<&str> {
        let mut names = Vec::new();
        for part in &self.parts {
            if let TemplatePart::Expression(_, variables) = part {
                for variable in variables {
                    if !names.contains(&variable.name.as_str()) {
                        names.push(&variable.name);
                    }
                }
            }
        }
        names
    }
}

impl fmt::Display for UriTemplate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// Parses the text between `{` and `}`.
fn parse_expression(inner: &str) -> Result<TemplatePart, TemplateError> {
    let operator = match inner.chars().next() {
        Some('+') => Operator::Reserved,
        Some('#') => Operator::Fragment,
        Some('.') => Operator::Label,
        Some('/') => Operator::Path,
        Some(';') => Operator::Parameter,
        Some('?') => Operator::Query,
        Some('&') => Operator::Continuation,
        Some(reserved @ ('=' | ',' | '!' | '@' | '|')) => {
            let message = format!(
                "RFC 6570 reserves the operator `{reserved}` in `{{{inner}}}`; leave it out"
            );
            return Err(TemplateError(message));
        }
        _ => Operator::Simple,
    };
    let list = match operator {
        Operator::Simple => inner,
        _ => &inner[1..],
    };
    let variables = list.split(',').map(|one| parse_variable(one, inner));
    Ok(TemplatePart::Expression(
        operator,
        variables.collect::<Result<_, _>>()?,
    ))
}

/// Parses a variable and its modifier. `inner` is the complete expression, for error messages.
fn parse_variable(text: &str, inner: &str) -> Result<Variable, TemplateError> {
    let (name, modifier) = match text.split_once(':') {
        Some((name, length)) => {
            let length = Some(length).filter(|text| text.bytes().all(|b| b.is_ascii_digit()));
            let length = length.and_then(|text| text.parse().ok());
            let length = length.filter(|length| (1..10_000).contains(length));
            let message = || {
                TemplateError(format!(
                    "the prefix length in `{{{inner}}}` must be 1 to 9999"
                ))
            };
            (name, VariableModifier::Prefix(length.ok_or_else(message)?))
        }
        None => match text.strip_suffix('*') {
            Some(name) => (name, VariableModifier::Explode),
            None => (text, VariableModifier::None),
        },
    };
    let is_name = !name.is_empty()
        && !name.starts_with('.')
        && !name.ends_with('.')
        && !name.contains("..")
        && name
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b"_.%".contains(&b));
    if is_name {
        Ok(Variable {
            name: name.to_owned(),
            modifier,
        })
    } else {
        Err(TemplateError(format!(
            "`{name}` in `{{{inner}}}` is not a variable name; use letters, digits and `_`"
        )))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks the error message for a malformed template.
    fn check_refused(text: &str, expected: &str) {
        let error = UriTemplate::parse(text).expect_err(text);
        assert_eq!(error.to_string(), expected);
    }

    #[test]
    fn malformed_templates_are_refused() {
        check_refused(
            "a{b",
            "the brace at byte 1 has no counterpart; braces enclose expressions",
        );
        check_refused(
            "a}b",
            "the brace at byte 1 has no counterpart; braces enclose expressions",
        );
        check_refused(
            "{}",
            "`` in `{}` is not a variable name; use letters, digits and `_`",
        );
        check_refused(
            "{=a}",
            "RFC 6570 reserves the operator `=` in `{=a}`; leave it out",
        );
        check_refused("{a:0}", "the prefix length in `{a:0}` must be 1 to 9999");
        check_refused(
            "{a b}",
            "`a b` in `{a b}` is not a variable name; use letters, digits and `_`",
        );
    }

    #[test]
    fn template_variables_are_listed_once() {
        let template = UriTemplate::parse("{a}/{b,a}{?c}").expect("a template");
        assert_eq!(template.variables(), ["a", "b", "c"]);
    }
}
