//! Sets of scopes (RFC 6749, section 3.3), separated by spaces, and their union.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Set of scopes in insertion order.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub struct Scopes(Vec<String>);

impl Scopes {
    /// Parses scopes that are separated by spaces.
    pub fn parse(text: &str) -> Self {
        text.split(' ').filter(|scope| !scope.is_empty()).collect()
    }

    /// Returns true if the set is empty.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the scopes in insertion order.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(String::as_str)
    }

    /// Returns true if the set contains a scope; case is significant.
    pub fn contains(&self, scope: &str) -> bool {
        self.0.iter().any(|known| known == scope)
    }

    /// Returns true if the set contains all scopes of `other`.
    pub fn contains_all(&self, other: &Self) -> bool {
        other.iter().all(|scope| self.contains(scope))
    }

    /// Returns the union of two sets: the scopes of `self`, followed by the other scopes of `other`.
    #[must_use]
    pub fn union(&self, other: &Self) -> Self {
        self.iter().chain(other.iter()).collect()
    }
}

impl<S: AsRef<str>> FromIterator<S> for Scopes {
    fn from_iter<I: IntoIterator<Item = S>>(scopes: I) -> Self {
        let mut all: Vec<String> = Vec::new();
        for scope in scopes {
            let scope = scope.as_ref();
            if !all.iter().any(|known| known == scope) {
                all.push(scope.to_owned());
            }
        }
        Self(all)
    }
}

impl From<String> for Scopes {
    fn from(text: String) -> Self {
        Self::parse(&text)
    }
}

impl From<Scopes> for String {
    fn from(scopes: Scopes) -> Self {
        scopes.to_string()
    }
}

impl fmt::Display for Scopes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join(" "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn union_keeps_order() {
        let (a, b) = (Scopes::parse("b  a b"), Scopes::parse("c a"));
        assert_eq!(a.to_string(), "b a");
        assert_eq!(a.union(&b).to_string(), "b a c");
        assert!(a.union(&b).contains_all(&b) && !a.contains_all(&b));
    }
}
