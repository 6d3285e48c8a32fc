//! Information of a transport about an HTTP request: its headers, and the authenticated principal.
//!
//! The types are plain data.

use std::borrow::Cow;

/// Headers of an HTTP request.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HttpRequest {
    headers: Vec<(Cow<'static, str>, String)>,
}

impl HttpRequest {
    /// Creates a request from its headers: names, in any case, and values.
    pub fn new<N: Into<Cow<'static, str>>, V: Into<String>>(
        headers: impl IntoIterator<Item = (N, V)>,
    ) -> Self {
        let headers = headers.into_iter();
        Self {
            headers: headers
                .map(|(name, value)| (name.into(), value.into()))
                .collect(),
        }
    }

    /// Returns the value of a header; of a repeated one, the first.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.values(name).next()
    }

    /// Iterates over the values of a header.
    pub(crate) fn values(&self, name: &str) -> impl Iterator<Item = &str> {
        let all = self.headers.iter();
        // Transports spell most names as they are looked up.
        let is_named = move |known: &str| known == name || known.eq_ignore_ascii_case(name);
        let named = all.filter(move |(known, _)| is_named(known));
        named.map(|(_, value)| value.as_str())
    }
}

/// Authenticated user or client, as the application names it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Principal(pub String);
