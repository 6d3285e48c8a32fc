//! Schemas as trees, which keep the text of everything that is no schema.

use std::borrow::Cow;

use mcp_exact_wire::{Json, Kind, ObjectRef, Reader};

use crate::keywords::{Contents, contents};

/// Maximum depth of the schemas that are looked at.
pub(crate) const MAX_DEPTH: usize = 32;

/// Schema, or a value in the place of one.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Node<'a> {
    Boolean(bool),
    Object(Members<'a>),
    /// JSON text of what is no schema, or a schema below [`MAX_DEPTH`].
    Other(&'a str),
}

/// Keywords of a schema with their values.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Members<'a>(pub(crate) Vec<(Cow<'a, str>, Value<'a>)>);

/// Value of a keyword.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Value<'a> {
    /// JSON text of a value that is no schema.
    Data(Cow<'a, str>),
    Schema(Node<'a>),
    Schemas(Vec<Node<'a>>),
    Named(Vec<(Cow<'a, str>, Node<'a>)>),
}

/// Schema, and what the parser has met.
pub(crate) struct Tree<'a> {
    pub(crate) root: Node<'a>,
    /// True if there are schemas below [`MAX_DEPTH`], or names that are no Unicode text.
    pub(crate) is_partial: bool,
}

impl<'a> Tree<'a> {
    /// Parses a whole schema.
    pub(crate) fn of_root(text: &'a str) -> Self {
        Self::at_depth(text, 0)
    }

    /// Parses a schema inside of others.
    pub(crate) fn at_depth(text: &'a str, depth: usize) -> Self {
        let mut parser = Parser { is_partial: false };
        let root = parser.node(text, depth);
        Self {
            root,
            is_partial: parser.is_partial,
        }
    }
}

struct Parser {
    is_partial: bool,
}

impl Parser {
    fn node<'a>(&mut self, text: &'a str, depth: usize) -> Node<'a> {
        match kind(text) {
            Kind::Boolean => Node::Boolean(text == "true"),
            Kind::Object if depth > MAX_DEPTH => {
                self.is_partial = true;
                Node::Other(text)
            }
            Kind::Object => {
                let members = self.names(text).into_iter().map(|(keyword, value)| {
                    let value = self.value(&keyword, value, depth + 1);
                    (keyword, value)
                });
                Node::Object(Members(members.collect()))
            }
            _ => Node::Other(text),
        }
    }

    fn value<'a>(&mut self, keyword: &str, text: &'a str, depth: usize) -> Value<'a> {
        match (contents(keyword), kind(text)) {
            (Some(Contents::Schema), Kind::Object | Kind::Boolean) => {
                Value::Schema(self.node(text, depth))
            }
            (Some(Contents::Schema | Contents::Schemas), Kind::Array) => {
                let items = items(text).into_iter();
                Value::Schemas(items.map(|item| self.node(item, depth)).collect())
            }
            (Some(Contents::Named), Kind::Object) => {
                let named = self.names(text).into_iter();
                let named = named.map(|(name, schema)| (name, self.node(schema, depth)));
                Value::Named(named.collect())
            }
            _ => Value::Data(text.into()),
        }
    }

    fn names<'a>(&mut self, text: &'a str) -> Vec<(Cow<'a, str>, &'a str)> {
        let members = ObjectRef::from_checked(text).iter();
        let members: Vec<_> = members.map(|(name, value)| (name, value.text())).collect();
        // A lone surrogate could not be written again.
        self.is_partial |= members.iter().any(|(name, _)| name.contains('\u{fffd}'));
        members
    }
}

/// Returns the kind of a JSON value.
pub(crate) fn kind(text: &str) -> Kind {
    match text.as_bytes().first() {
        Some(b'{') => Kind::Object,
        Some(b'[') => Kind::Array,
        Some(b'"') => Kind::String,
        Some(b't' | b'f') => Kind::Boolean,
        Some(b'n') => Kind::Null,
        _ => Kind::Number,
    }
}

/// Returns the items of an array; none of another value.
pub(crate) fn items(text: &str) -> Vec<&str> {
    let mut items = Vec::new();
    if kind(text) != Kind::Array {
        return items;
    }
    let mut reader = Reader::of_checked(text);
    let mut more = reader.open_items();
    while matches!(more, Ok(true)) {
        let start = reader.value_start();
        if reader.skip().is_err() {
            break;
        }
        items.push(reader.text_since(start));
        more = reader.next_item();
    }
    items
}

/// Returns the text of a string; `None` if the value is no string, or no Unicode text.
pub(crate) fn string(text: &str) -> Option<String> {
    mcp_exact_wire::from_str(text).ok()
}

/// Returns the strings of an array; `None` if the value is another one.
pub(crate) fn strings(text: &str) -> Option<Vec<String>> {
    if kind(text) != Kind::Array {
        return None;
    }
    items(text).into_iter().map(string).collect()
}

/// Returns the JSON text of a list of values.
pub(crate) fn list<S: AsRef<str>>(values: impl IntoIterator<Item = S>) -> String {
    let mut text = String::from("[");
    for (index, value) in values.into_iter().enumerate() {
        if index > 0 {
            text.push(',');
        }
        text.push_str(value.as_ref());
    }
    text.push(']');
    text
}

/// Returns the JSON text of a string.
pub(crate) fn quoted(text: &str) -> String {
    Json::string(text).text().to_owned()
}

impl<'a> Members<'a> {
    pub(crate) fn get(&self, keyword: &str) -> Option<&Value<'a>> {
        let mut members = self.0.iter();
        let found = members.find(|(name, _)| name == keyword);
        found.map(|(_, value)| value)
    }

    pub(crate) fn has(&self, keyword: &str) -> bool {
        self.get(keyword).is_some()
    }

    /// Returns the JSON text of a value that is no schema.
    pub(crate) fn data(&self, keyword: &str) -> Option<&str> {
        match self.get(keyword) {
            Some(Value::Data(text)) => Some(text),
            _ => None,
        }
    }

    /// Returns a value that is a string.
    pub(crate) fn string(&self, keyword: &str) -> Option<String> {
        string(self.data(keyword)?)
    }

    /// Sets a value; a present keyword keeps its place.
    pub(crate) fn set(&mut self, keyword: &'static str, value: Value<'a>) {
        match self.0.iter_mut().find(|(name, _)| name == keyword) {
            Some((_, known)) => *known = value,
            None => self.0.push((keyword.into(), value)),
        }
    }

    pub(crate) fn remove(&mut self, keyword: &str) -> Option<Value<'a>> {
        let at = self.0.iter().position(|(name, _)| name == keyword)?;
        Some(self.0.remove(at).1)
    }
}

impl Node<'_> {
    /// Returns the JSON text.
    pub(crate) fn to_text(&self) -> String {
        let mut text = String::new();
        self.write(&mut text);
        text
    }

    fn write(&self, to: &mut String) {
        match self {
            Self::Boolean(accepts) => to.push_str(if *accepts { "true" } else { "false" }),
            Self::Other(text) => to.push_str(text),
            Self::Object(members) => write_members(to, &members.0, |to, value| match value {
                Value::Data(text) => to.push_str(text),
                Value::Schema(node) => node.write(to),
                Value::Named(named) => write_members(to, named, |to, node| node.write(to)),
                Value::Schemas(nodes) => {
                    to.push('[');
                    for (index, node) in nodes.iter().enumerate() {
                        if index > 0 {
                            to.push(',');
                        }
                        node.write(to);
                    }
                    to.push(']');
                }
            }),
        }
    }
}

fn write_members<T>(
    to: &mut String,
    members: &[(Cow<'_, str>, T)],
    write: impl Fn(&mut String, &T),
) {
    to.push('{');
    for (index, (name, value)) in members.iter().enumerate() {
        if index > 0 {
            to.push(',');
        }
        to.push_str(&quoted(name));
        to.push(':');
        write(to, value);
    }
    to.push('}');
}
