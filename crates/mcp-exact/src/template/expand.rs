//! Expansion of URI templates (RFC 6570, section 3).
//!
//! Expansion cannot fail: undefined variables are omitted.

use std::fmt::Write as _;

use super::{Operator, TemplatePart, UriTemplate, Variable, VariableModifier};

/// Value of a variable (RFC 6570, section 2.3).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TemplateValue {
    /// A string.
    Text(String),
    /// List of values. An empty list counts as an undefined variable.
    List(Vec<String>),
    /// Associative array of keys and values. An empty array counts as an undefined variable.
    Pairs(Vec<(String, String)>),
}

impl From<&str> for TemplateValue {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for TemplateValue {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<Vec<String>> for TemplateValue {
    fn from(list: Vec<String>) -> Self {
        Self::List(list)
    }
}

/// Reserved characters (RFC 3986, section 2.2), and percent-encoded triplets.
pub(super) const RESERVED: &str = "%:/?#[]@!$&'()*+,;=";

/// Expansion rules of an operator (RFC 6570, appendix A).
struct ExpansionStyle {
    /// Text before the first value.
    prefix: &'static str,
    /// Separator of the values.
    separator: char,
    /// True if values are preceded by their names.
    has_names: bool,
    /// Text after the name of an empty value.
    if_empty: &'static str,
    /// Characters that are not percent-encoded, besides unreserved ones.
    allowed: &'static str,
}

impl Operator {
    /// Returns the expansion rules of the operator.
    fn style(self) -> ExpansionStyle {
        let style = |first, separator, named, if_empty, allowed| ExpansionStyle {
            prefix: first,
            separator,
            has_names: named,
            if_empty,
            allowed,
        };
        match self {
            Self::Simple => style("", ',', false, "", ""),
            Self::Reserved => style("", ',', false, "", RESERVED),
            Self::Fragment => style("#", ',', false, "", RESERVED),
            Self::Label => style(".", '.', false, "", ""),
            Self::Path => style("/", '/', false, "", ""),
            Self::Parameter => style(";", ';', true, "", ""),
            Self::Query => style("?", '&', true, "=", ""),
            Self::Continuation => style("&", '&', true, "=", ""),
        }
    }
}

impl UriTemplate {
    /// Expands the template. Variables without a value are omitted.
    pub fn expand<'n>(&self, values: impl IntoIterator<Item = (&'n str, TemplateValue)>) -> String {
        let values: Vec<(&str, TemplateValue)> = values.into_iter().collect();
        let mut uri = String::new();
        for part in &self.parts {
            match part {
                TemplatePart::Literal(literal) => percent_encode(literal, RESERVED, &mut uri),
                TemplatePart::Expression(operator, variables) => {
                    let style = operator.style();
                    let mut first = true;
                    for variable in variables {
                        let value = values.iter().find(|(name, _)| *name == variable.name);
                        if let Some((_, value)) = value
                            && let Some(text) = expand_value(variable, value, &style)
                        {
                            if first {
                                uri.push_str(style.prefix)
                            } else {
                                uri.push(style.separator)
                            }
                            first = false;
                            uri.push_str(&text);
                        }
                    }
                }
            }
        }
        uri
    }
}

/// Expands one variable; `None` if the value counts as undefined.
fn expand_value(
    variable: &Variable,
    value: &TemplateValue,
    style: &ExpansionStyle,
) -> Option<String> {
    let encoded = |text: &str| {
        let mut out = String::new();
        percent_encode(text, style.allowed, &mut out);
        out
    };
    let explode = variable.modifier == VariableModifier::Explode;
    match value {
        TemplateValue::Text(text) => {
            let text = match variable.modifier {
                VariableModifier::Prefix(length) => text.chars().take(length).collect(),
                _ => text.clone(),
            };
            Some(name_value_pair(&variable.name, &encoded(&text), style))
        }
        TemplateValue::List(list) if list.is_empty() => None,
        TemplateValue::Pairs(pairs) if pairs.is_empty() => None,
        TemplateValue::List(list) if explode => {
            let items = list.iter().map(|item| {
                if style.has_names {
                    name_value_pair(&variable.name, &encoded(item), style)
                } else {
                    encoded(item)
                }
            });
            Some(join_values(items, style.separator))
        }
        TemplateValue::List(list) => {
            let items = join_values(list.iter().map(|item| encoded(item)), ',');
            Some(name_value_pair(&variable.name, &items, style))
        }
        TemplateValue::Pairs(pairs) if explode => {
            let items = pairs.iter().map(|(key, value)| {
                if style.has_names {
                    name_value_pair(&encoded(key), &encoded(value), style)
                } else {
                    format!("{}={}", encoded(key), encoded(value))
                }
            });
            Some(join_values(items, style.separator))
        }
        TemplateValue::Pairs(pairs) => {
            let items = pairs
                .iter()
                .map(|(key, value)| format!("{},{}", encoded(key), encoded(value)));
            Some(name_value_pair(
                &variable.name,
                &join_values(items, ','),
                style,
            ))
        }
    }
}

/// Returns a name and a value, joined by `=` as the operator requires.
fn name_value_pair(name: &str, value: &str, style: &ExpansionStyle) -> String {
    match (style.has_names, value) {
        (false, value) => value.to_owned(),
        (true, "") => format!("{name}{}", style.if_empty),
        (true, value) => format!("{name}={value}"),
    }
}

/// Joins values with a separator.
fn join_values(items: impl Iterator<Item = String>, separator: char) -> String {
    let items: Vec<String> = items.collect();
    items.join(separator.encode_utf8(&mut [0; 4]))
}

/// Percent-encodes all characters except unreserved ones (RFC 3986, section 2.3) and those of `allowed`; a `%` that is
/// allowed stays if it begins a percent-encoded triplet (RFC 6570, section 3.2.1).
pub(crate) fn percent_encode(text: &str, allowed: &str, out: &mut String) {
    let is_digit = |at: usize| text.as_bytes().get(at).is_some_and(u8::is_ascii_hexdigit);
    for (at, byte) in text.bytes().enumerate() {
        let keep = match byte {
            b'-' | b'.' | b'_' | b'~' => true,
            _ if byte.is_ascii_alphanumeric() => true,
            b'%' if !(is_digit(at + 1) && is_digit(at + 2)) => false,
            _ => allowed.as_bytes().contains(&byte),
        };
        if keep {
            out.push(char::from(byte));
        } else {
            // Writing to a string does not fail.
            let _ = write!(out, "%{byte:02X}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks the expansion of a template with the variables of the examples in RFC 6570.
    fn check(template: &str, expected: &str) {
        let pairs = [("semi", ";"), ("dot", "."), ("comma", ",")];
        let pairs = pairs.map(|(key, value)| (key.to_owned(), value.to_owned()));
        let list = ["red", "green", "blue"].map(str::to_owned).to_vec();
        let values = [
            ("var", "value".into()),
            ("hello", "Hello World!".into()),
            ("path", "/foo/bar".into()),
            ("empty", "".into()),
            ("x", "1024".into()),
            ("y", "768".into()),
            ("list", list.into()),
            ("keys", TemplateValue::Pairs(pairs.to_vec())),
        ];
        let template = UriTemplate::parse(template).expect(template);
        assert_eq!(template.expand(values), expected, "{template}");
    }

    /// Examples of RFC 6570, sections 3.2.2 to 3.2.9.
    #[test]
    fn rfc_6570_examples_expand() {
        check("{hello}", "Hello%20World%21");
        check("{x,hello,y}", "1024,Hello%20World%21,768");
        check("?{x,empty}", "?1024,");
        check("?{x,undef}", "?1024");
        check("{var:3}", "val");
        check("{list}", "red,green,blue");
        check("{keys}", "semi,%3B,dot,.,comma,%2C");
        check("{keys*}", "semi=%3B,dot=.,comma=%2C");
        check("{+path,x}/here", "/foo/bar,1024/here");
        check("{+keys*}", "semi=;,dot=.,comma=,");
        check("{#path,x}/here", "#/foo/bar,1024/here");
        check("X{.var}", "X.value");
        check("X{.list*}", "X.red.green.blue");
        check("X{.undef}", "X");
        check("{/var,x}/here", "/value/1024/here");
        check("{/list*}", "/red/green/blue");
        check("{;x,y,empty}", ";x=1024;y=768;empty");
        check("{;list*}", ";list=red;list=green;list=blue");
        check("{?x,y,empty}", "?x=1024&y=768&empty=");
        check("{?keys*}", "?semi=%3B&dot=.&comma=%2C");
        check("?fixed=yes{&x}", "?fixed=yes&x=1024");
        check("{&list*}", "&list=red&list=green&list=blue");
    }
}
