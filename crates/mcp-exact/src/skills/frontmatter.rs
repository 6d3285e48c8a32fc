//! YAML frontmatter of a `SKILL.md`, as a JSON object.
//!
//! YAML is read by the core schema of YAML 1.2. What has no JSON form, or several readings, is an error: keys that are no
//! scalars or occur twice, merge keys, unknown tags, infinities. Size, depth and the expansion of aliases are bounded.

use std::collections::HashMap;

use saphyr_parser::{Event, Parser, ScalarStyle, Tag};
use serde_json::{Map, Number, Value};

/// Maximum size of a frontmatter in bytes.
const MAX_BYTES: usize = 64 << 10;
/// Maximum number of values, those that aliases repeat included.
const MAX_VALUES: usize = 10_000;
/// Maximum size in bytes of the text of all names and values, that which aliases repeat included.
pub(super) const MAX_TEXT: usize = 4 * MAX_BYTES;
/// Maximum nesting of lists and objects.
const MAX_DEPTH: usize = 32;

/// Returns the frontmatter at the begin of the text of a `SKILL.md`.
///
/// # Errors
/// Description of the problem, with what to do.
pub(crate) fn parse_frontmatter(text: &str) -> Result<Map<String, Value>, String> {
    let yaml = frontmatter_text(text)?;
    if yaml.len() > MAX_BYTES {
        return Err(format!("the frontmatter has more than {MAX_BYTES} bytes"));
    }
    match parse_yaml(yaml)? {
        Value::Object(members) => Ok(members),
        _ => Err("the frontmatter must be lines of `name: value`".to_owned()),
    }
}

/// Returns the first name whose value differs in two frontmatters; numbers are compared by their values.
pub(crate) fn differing_field(
    first: &Map<String, Value>,
    second: &Map<String, Value>,
) -> Option<String> {
    let names = first.keys().chain(second.keys());
    let mut names = names.filter(|name| match (first.get(*name), second.get(*name)) {
        (Some(first), Some(second)) => !is_same(first, second),
        _ => true,
    });
    names.next().cloned()
}

/// Returns true if two values are equal.
fn is_same(first: &Value, second: &Value) -> bool {
    match (first, second) {
        (Value::Number(first), Value::Number(second)) => {
            first == second || first.as_f64() == second.as_f64()
        }
        (Value::Array(first), Value::Array(second)) => {
            first.len() == second.len()
                && first
                    .iter()
                    .zip(second)
                    .all(|(first, second)| is_same(first, second))
        }
        (Value::Object(first), Value::Object(second)) => differing_field(first, second).is_none(),
        (first, second) => first == second,
    }
}

/// Returns the text between the two lines `---`.
fn frontmatter_text(text: &str) -> Result<&str, String> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut lines = text.split_inclusive('\n');
    let first = lines.next().unwrap_or_default();
    if first.trim_end() != "---" {
        return Err("the first line must be `---`, and YAML frontmatter has to follow".to_owned());
    }
    let mut end = first.len();
    for line in lines {
        if line.trim_end() == "---" {
            return Ok(&text[first.len()..end]);
        }
        end += line.len();
    }
    Err("the frontmatter has no end; put a line `---` below it".to_owned())
}

/// List or object whose end was not read yet.
enum Open {
    List(Vec<Value>),
    /// Object, with the name whose value is read next.
    Object(Map<String, Value>, Option<String>),
}

/// Extent of a value with all that is in it.
#[derive(Debug, Clone, Copy, Default)]
struct Extent {
    /// Number of values.
    values: usize,
    /// Bytes of the text of names and values.
    text: usize,
    /// Lists and objects in each other.
    depth: usize,
}

impl Extent {
    /// Returns the extent of a value, which is no deeper than [`MAX_DEPTH`].
    fn of(value: &Value) -> Self {
        let mut extent = Self {
            values: 1,
            ..Self::default()
        };
        match value {
            Value::String(text) => extent.text = text.len(),
            Value::Array(items) => items.iter().for_each(|item| extent.add_inner(item)),
            Value::Object(members) => {
                for (name, value) in members {
                    extent.text += name.len();
                    extent.add_inner(value);
                }
            }
            _ => {}
        }
        if value.is_array() || value.is_object() {
            extent.depth += 1;
        }
        extent
    }

    /// Adds a value that is in this one.
    fn add_inner(&mut self, value: &Value) {
        let inner = Self::of(value);
        self.values += inner.values;
        self.text += inner.text;
        self.depth = self.depth.max(inner.depth);
    }
}

/// Reader of the events of one document.
#[derive(Default)]
struct Reader {
    /// Open lists and objects, with their anchors.
    open: Vec<(Open, usize)>,
    /// Values with an anchor, each with its extent.
    anchors: HashMap<usize, (Value, Extent)>,
    /// Extent of all values that were read.
    read: Extent,
    /// The document.
    root: Option<Value>,
}

/// Returns the value of a YAML document.
fn parse_yaml(yaml: &str) -> Result<Value, String> {
    let mut reader = Reader::default();
    for event in Parser::new_from_str(yaml) {
        let (event, span) =
            event.map_err(|error| format!("the frontmatter is not a YAML: {error}"))?;
        reader.take(event).map_err(|reason| {
            let line = span.start.line() + 1;
            format!("line {line} of the frontmatter: {reason}")
        })?;
    }
    Ok(reader.root.unwrap_or_default())
}

impl Reader {
    /// Takes the next event.
    fn take(&mut self, event: Event<'_>) -> Result<(), String> {
        match event {
            Event::Scalar(text, style, anchor, tag) => {
                let text_length = text.len();
                if let Some((Open::Object(members, name @ None), _)) = self.open.last_mut() {
                    if text == "<<" && style == ScalarStyle::Plain {
                        return Err(
                            "merge keys (`<<`) are not read; write the members out".to_owned()
                        );
                    }
                    if members.contains_key(&*text) {
                        return Err(format!("`{text}` is there twice"));
                    }
                    *name = Some(text.into_owned());
                    return self.count(0, text_length);
                }
                let value = scalar(&text, style, tag.as_deref())?;
                self.count(1, text_length)?;
                self.add(value, anchor)
            }
            Event::SequenceStart(anchor, tag) => {
                check_tag(tag.as_deref(), "seq")?;
                self.begin(Open::List(Vec::new()), anchor)
            }
            Event::MappingStart(anchor, tag) => {
                check_tag(tag.as_deref(), "map")?;
                self.begin(Open::Object(Map::new(), None), anchor)
            }
            Event::SequenceEnd | Event::MappingEnd => match self.open.pop() {
                Some((Open::List(items), anchor)) => self.add(Value::Array(items), anchor),
                Some((Open::Object(members, _), anchor)) => {
                    self.add(Value::Object(members), anchor)
                }
                None => Ok(()),
            },
            Event::Alias(anchor) => match self.anchors.get(&anchor) {
                Some((_, extent)) => {
                    let extent = *extent;
                    self.check_depth(extent.depth)?;
                    self.count(extent.values, extent.text)?;
                    let value = self.anchors.get(&anchor).map(|(value, _)| value.clone());
                    self.add(value.unwrap_or_default(), 0)
                }
                None => Err("an alias refers to the value that it is in".to_owned()),
            },
            Event::DocumentStart(_) if self.root.is_some() => {
                Err("there is a second document".to_owned())
            }
            _ => Ok(()),
        }
    }

    /// Opens a list or an object.
    fn begin(&mut self, open: Open, anchor: usize) -> Result<(), String> {
        if matches!(self.open.last(), Some((Open::Object(_, None), _))) {
            return Err("a name must be text".to_owned());
        }
        self.check_depth(1)?;
        self.count(1, 0)?;
        self.open.push((open, anchor));
        Ok(())
    }

    /// Checks that a value of this depth may be in the innermost open list or object.
    fn check_depth(&self, depth: usize) -> Result<(), String> {
        if self.open.len() + depth > MAX_DEPTH {
            return Err(format!(
                "more than {MAX_DEPTH} lists and objects are in each other"
            ));
        }
        Ok(())
    }

    /// Counts values with their text, before they are kept.
    fn count(&mut self, values: usize, text: usize) -> Result<(), String> {
        self.read.values = self.read.values.saturating_add(values);
        self.read.text = self.read.text.saturating_add(text);
        if self.read.values > MAX_VALUES {
            return Err(format!("there are more than {MAX_VALUES} values"));
        }
        if self.read.text > MAX_TEXT {
            return Err(format!(
                "names and values have more than {MAX_TEXT} bytes, with those that aliases repeat"
            ));
        }
        Ok(())
    }

    /// Adds a value, which was counted, to the innermost open list or object.
    fn add(&mut self, value: Value, anchor: usize) -> Result<(), String> {
        if anchor != 0 {
            let extent = Extent::of(&value);
            // The value is kept once more for the aliases.
            self.count(0, extent.text)?;
            self.anchors.insert(anchor, (value.clone(), extent));
        }
        match self.open.last_mut() {
            None => self.root = Some(value),
            Some((Open::List(items), _)) => items.push(value),
            Some((Open::Object(members, name), _)) => {
                let name = name.take().ok_or("a name must be text")?;
                members.insert(name, value);
            }
        }
        Ok(())
    }
}

/// Checks that a list or an object has no tag, or the tag of the core schema with this suffix.
fn check_tag(tag: Option<&Tag>, suffix: &str) -> Result<(), String> {
    match tag {
        Some(tag) if !(tag.is_yaml_core_schema() && tag.suffix == suffix) => Err(format!(
            "the tag `{}{}` is not known",
            tag.handle, tag.suffix
        )),
        _ => Ok(()),
    }
}

/// Returns the value of a scalar.
fn scalar(text: &str, style: ScalarStyle, tag: Option<&Tag>) -> Result<Value, String> {
    let Some(tag) = tag else {
        let is_plain = style == ScalarStyle::Plain;
        return if is_plain {
            plain(text)
        } else {
            Ok(text.into())
        };
    };
    let value = plain(text)?;
    let is_of_tag = match (tag.is_yaml_core_schema(), tag.suffix.as_str()) {
        (true, "str") => return Ok(text.into()),
        (false, "") if tag.handle == "!" => return Ok(text.into()),
        (true, "null") => value.is_null(),
        (true, "bool") => value.is_boolean(),
        (true, "int") => value.is_i64() || value.is_u64(),
        (true, "float") => value.is_number(),
        _ => {
            return Err(format!(
                "the tag `{}{}` is not known",
                tag.handle, tag.suffix
            ));
        }
    };
    if is_of_tag {
        Ok(value)
    } else {
        Err(format!("`{text}` is not a `{}`", tag.suffix))
    }
}

/// Returns the value of a plain scalar by the core schema (YAML 1.2.2, section 10.3.2).
fn plain(text: &str) -> Result<Value, String> {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return Ok(Value::Null),
        "true" | "True" | "TRUE" => return Ok(true.into()),
        "false" | "False" | "FALSE" => return Ok(false.into()),
        _ => {}
    }
    let unsigned = text.trim_start_matches(['+', '-']);
    if text.len() - unsigned.len() > 1 {
        return Ok(text.into());
    }
    if [".inf", ".Inf", ".INF"].contains(&unsigned) || [".nan", ".NaN", ".NAN"].contains(&text) {
        return Err(format!(
            "`{text}` is not a number of JSON; put it in quotation marks"
        ));
    }
    for (prefix, radix) in [("0o", 8), ("0x", 16)] {
        if let Some(digits) = text.strip_prefix(prefix)
            && !digits.is_empty()
            && digits.chars().all(|digit| digit.is_digit(radix))
        {
            let number = u64::from_str_radix(digits, radix);
            return number
                .map(Value::from)
                .map_err(|_| format!("`{text}` is too large"));
        }
    }
    if !is_decimal(unsigned) {
        return Ok(text.into());
    }
    if unsigned.bytes().all(|byte| byte.is_ascii_digit()) {
        if let Ok(number) = text.parse::<i64>() {
            return Ok(number.into());
        }
        if let Ok(number) = text.parse::<u64>() {
            return Ok(number.into());
        }
    }
    let number = text.parse::<f64>().ok().and_then(Number::from_f64);
    number
        .map(Value::Number)
        .ok_or_else(|| format!("`{text}` is too large"))
}

/// Returns true for `[0-9]+(\.[0-9]*)?` and `\.[0-9]+`, each with an exponent or without.
fn is_decimal(text: &str) -> bool {
    let are_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (text, None),
    };
    let exponent = exponent.is_none_or(|exponent| {
        let digits = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
        !digits.is_empty() && are_digits(digits)
    });
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    exponent
        && !(whole.is_empty() && fraction.is_empty())
        && are_digits(whole)
        && are_digits(fraction)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn parse(yaml: &str) -> Result<Value, String> {
        parse_frontmatter(&format!("---\n{yaml}\n---\nbody")).map(Value::Object)
    }

    /// "the skill's SKILL.md YAML frontmatter rendered verbatim as a JSON object"
    #[test]
    fn yaml_becomes_json() {
        for (yaml, value) in [
            ("name: a\ndescription: Do it: now", Err(())),
            (
                "name: a\ndescription: \"Do it: now\"",
                Ok(json!({"name":"a","description":"Do it: now"})),
            ),
            (
                "a: 1\nb: -2\nc: 1.50\nd: .5e1\ne: 0x1F\nf: 0o17",
                Ok(json!({"a":1,"b":-2,"c":1.5,"d":5.0,"e":31,"f":15})),
            ),
            (
                "a: yes\nb: 2024-01-01\nc: 1.2.3\nd: 1e\ne: +-1\nf: '1'",
                Ok(json!({"a":"yes","b":"2024-01-01","c":"1.2.3","d":"1e","e":"+-1","f":"1"})),
            ),
            (
                "a: true\nb: ~\nc:\nd: null",
                Ok(json!({"a":true,"b":null,"c":null,"d":null})),
            ),
            (
                "a: [x, {b: c}]\nd:\n  - 1\n  - e: f\n    g: h",
                Ok(json!({"a":["x",{"b":"c"}],"d":[1,{"e":"f","g":"h"}]})),
            ),
            (
                "a: >\n  one\n  two\nb: |\n  x\n  y",
                Ok(json!({"a":"one two\n","b":"x\ny\n"})),
            ),
            ("a: &x {b: 1}\nc: *x", Ok(json!({"a":{"b":1},"c":{"b":1}}))),
            ("a: !!str 1\nb: !!float 1", Ok(json!({"a":"1","b":1}))),
            ("1: x", Ok(json!({"1":"x"}))),
            ("a: 1\na: 2", Err(())),
            ("a: &x {b: 1}\nc:\n  <<: *x", Err(())),
            ("? [a]\n: b", Err(())),
            ("a: .inf", Err(())),
            ("a: !!int x", Err(())),
            ("a: !own x", Err(())),
            ("a: &x [*x]", Err(())),
            ("- a", Err(())),
            ("a: [", Err(())),
        ] {
            assert_eq!(parse(yaml).map_err(drop), value, "{yaml}");
        }
        let crlf = "\u{feff}---\r\nname: a\r\n---\r\n# A\r\n";
        assert_eq!(
            parse_frontmatter(crlf).map(Value::Object),
            Ok(json!({"name":"a"}))
        );
        for text in [
            "",
            "# A\n---\nname: a\n---\n",
            "---\nname: a\n",
            " ---\n---\n",
        ] {
            assert!(parse_frontmatter(text).is_err(), "{text:?}");
        }
    }

    /// Aliases of aliases, deep nesting and long text are refused in little time.
    #[test]
    fn hostile_yaml_is_refused() {
        let mut laughs = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
        for level in 1..20 {
            let before = format!("*a{}, ", level - 1).repeat(10);
            laughs.push_str(&format!("a{level}: &a{level} [{before}]\n"));
        }
        let deep = format!("a: {}", "[".repeat(50));
        let long = format!("a: {}", "x".repeat(MAX_BYTES));
        let text = format!(
            "a: &a \"{}\"\nb: [{}]",
            "x".repeat(20_000),
            "*a, ".repeat(9_000)
        );
        let name = format!(
            "a: &a {{{}: 1}}\nb: [{}]",
            "x".repeat(1_000),
            "*a, ".repeat(4_000)
        );
        let mut chain = "a0: &a0 [x]\n".to_owned();
        for level in 1..40 {
            chain.push_str(&format!("a{level}: &a{level} [*a{}]\n", level - 1));
        }
        for (yaml, reason) in [
            (laughs, "values"),
            (deep, "in each other"),
            (long, "bytes"),
            (text, "aliases repeat"),
            (name, "aliases repeat"),
            (chain, "in each other"),
        ] {
            let error = parse(&yaml).expect_err("it is refused");
            assert!(error.contains(reason), "{error}");
        }
    }

    /// "compare it field-by-field against the entry's `frontmatter`"
    #[test]
    fn differences_name_a_field() {
        let object = |value: Value| value.as_object().cloned().expect("an object");
        let differing = |first, second| differing_field(&object(first), &object(second));
        assert_eq!(
            differing(json!({"a":[1,{"b":1.0}]}), json!({"a":[1.0,{"b":1}]})),
            None
        );
        assert_eq!(
            differing(json!({"a":1,"b":"x"}), json!({"a":1,"b":"y"})).as_deref(),
            Some("b")
        );
        assert_eq!(
            differing(json!({"a":null}), json!({})).as_deref(),
            Some("a")
        );
        assert_eq!(differing(json!({}), json!({"c":{}})).as_deref(), Some("c"));
    }
}
