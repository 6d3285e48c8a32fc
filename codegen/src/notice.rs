//! Notices: rules of a schema that the generated types do not express, or express in a way that a person should review.
//!
//! A notice never stops the generator. `cargo xtask schema add` prints the notices; a schema that needs more than a
//! notice is refused.

use std::fmt;

/// A rule of a schema that the generated types do not express exactly, for the person who reviews the schema.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Notice {
    /// JSON pointer into the schema.
    pub pointer: String,
    /// Description of how the generator handles the rule.
    pub message: String,
}

impl fmt::Display for Notice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.pointer, self.message)
    }
}

/// Notices of one schema, in the order of its passes.
#[derive(Debug, Default)]
pub struct Notices(Vec<Notice>);

impl Notices {
    /// Adds a notice about the value at a JSON pointer, unless an equal notice exists.
    pub fn add(&mut self, pointer: &str, message: impl Into<String>) {
        let notice = Notice {
            pointer: pointer.to_owned(),
            message: message.into(),
        };
        if !self.0.contains(&notice) {
            self.0.push(notice);
        }
    }

    /// Returns all notices.
    pub fn into_list(self) -> Vec<Notice> {
        self.0
    }
}
