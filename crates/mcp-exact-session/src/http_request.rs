//! Information of a transport about an HTTP request: its headers, and the authenticated principal.
//!
//! Plain data.

/// Headers of an HTTP request.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HttpRequest {
    /// Names, in any case, and values.
    pub headers: Vec<(String, String)>,
}

impl HttpRequest {
    /// Returns the value of a header; of a repeated one, the first.
    pub fn header(&self, name: &str) -> Option<&str> {
        let mut all = self.headers.iter();
        let found = all.find(|(known, _)| known.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    }
}

/// Authenticated user or client, as the program names it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Principal(pub String);
