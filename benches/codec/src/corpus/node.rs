//! JSON values with ordered members, for building the messages of the corpus. Except for serde_json's escaping, the
//! code is independent of the measured libraries.

use crate::entry::Layout;

/// JSON value with ordered members.
#[derive(Debug, Clone)]
pub enum Node {
    /// JSON text of a string, number or literal.
    Plain(String),
    /// Array of values.
    Array(Vec<Node>),
    /// Object with ordered members.
    Object(Vec<(String, Node)>),
}

impl From<&str> for Node {
    fn from(text: &str) -> Self {
        Self::Plain(quote(text))
    }
}

impl From<String> for Node {
    fn from(text: String) -> Self {
        text.as_str().into()
    }
}

impl From<bool> for Node {
    fn from(value: bool) -> Self {
        Self::Plain(value.to_string())
    }
}

impl From<i32> for Node {
    fn from(value: i32) -> Self {
        Self::Plain(value.to_string())
    }
}

impl From<f64> for Node {
    fn from(value: f64) -> Self {
        Self::Plain(format!("{value:?}"))
    }
}

impl<T: Into<Node>> From<Vec<T>> for Node {
    fn from(items: Vec<T>) -> Self {
        Self::Array(items.into_iter().map(Into::into).collect())
    }
}

/// Creates an object with members in this order.
pub fn object<const N: usize>(members: [(&str, Node); N]) -> Node {
    Node::Object(
        members
            .into_iter()
            .map(|(name, value)| (name.to_owned(), value))
            .collect(),
    )
}

/// Creates an array of strings.
pub fn strings(items: &[&str]) -> Node {
    Node::Array(items.iter().map(|&item| item.into()).collect())
}

impl Node {
    /// Appends a member to an object.
    pub fn with(mut self, name: &str, value: impl Into<Node>) -> Self {
        if let Self::Object(members) = &mut self {
            members.push((name.to_owned(), value.into()));
        }
        self
    }

    /// Returns the value of a member; `None` if the node has no such member or is not an object.
    pub fn get(&self, name: &str) -> Option<&Self> {
        let Self::Object(members) = self else {
            return None;
        };
        members
            .iter()
            .find_map(|(known, value)| (known == name).then_some(value))
    }

    /// Replaces the value of a member of an object, or appends the member if it is absent.
    pub fn set(mut self, name: &str, value: Self) -> Self {
        if let Self::Object(members) = &mut self
            && let Some((_, old)) = members.iter_mut().find(|(known, _)| known == name)
        {
            *old = value;
            return self;
        }
        self.with(name, value)
    }

    /// Returns the JSON text in a layout.
    pub fn text(&self, layout: Layout) -> String {
        let mut out = String::new();
        self.write(layout, 0, &mut out);
        out
    }

    /// Appends the JSON text in a layout to `out`; `depth` is the number of enclosing arrays and objects.
    fn write(&self, layout: Layout, depth: usize, out: &mut String) {
        match self {
            Self::Plain(text) => out.push_str(text),
            Self::Array(items) => {
                out.push('[');
                for (index, item) in items.iter().enumerate() {
                    separate(index, layout, depth + 1, out);
                    item.write(layout, depth + 1, out);
                }
                close(']', items.len(), layout, depth, out);
            }
            Self::Object(members) => {
                out.push('{');
                let mut members: Vec<_> = members.iter().collect();
                match layout {
                    Layout::Reversed => members.reverse(),
                    Layout::Sorted => members.sort_by_key(|(name, _)| name),
                    Layout::Usual | Layout::Indented => {}
                }
                for (index, (name, value)) in members.iter().enumerate() {
                    separate(index, layout, depth + 1, out);
                    out.push_str(&quote(name));
                    out.push_str(if layout == Layout::Indented {
                        ": "
                    } else {
                        ":"
                    });
                    value.write(layout, depth + 1, out);
                }
                close('}', members.len(), layout, depth, out);
            }
        }
    }
}

/// Appends a comma, except before the first item or member, and the line break of the layout.
fn separate(index: usize, layout: Layout, depth: usize, out: &mut String) {
    if index > 0 {
        out.push(',');
    }
    line(layout, depth, out);
}

/// Appends the line break of the layout, if the array or object has items, and the closing bracket.
fn close(bracket: char, len: usize, layout: Layout, depth: usize, out: &mut String) {
    if len > 0 {
        line(layout, depth, out);
    }
    out.push(bracket);
}

/// Appends a line break and the indentation, if the layout is indented.
fn line(layout: Layout, depth: usize, out: &mut String) {
    if layout == Layout::Indented {
        out.push('\n');
        out.extend(std::iter::repeat_n("  ", depth));
    }
}

/// Returns the JSON text of a string.
fn quote(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}
