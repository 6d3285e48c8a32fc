//! Information of a transport about an HTTP request: its headers, and the authenticated principal.
//!
//! The types are plain data.

use std::borrow::Cow;

/// Headers of an HTTP request.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HttpRequest {
    /// Names and values of the headers.
    headers: Vec<(Cow<'static, str>, String)>,
}

impl HttpRequest {
    /// Creates a request from the names, in any case, and values of its headers.
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

    /// Returns the first value of a header.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.values(name).next()
    }

    /// Returns the value of a header, without surrounding white space. The values of a repeated header are joined by commas (RFC
    /// 9110, section 5.3), so that a header of one value is invalid if it is repeated.
    pub(crate) fn combined_header(&self, name: &str) -> Option<Cow<'_, str>> {
        let mut values = self.values(name).map(str::trim);
        let first = values.next()?;
        Some(match values.next() {
            None => Cow::Borrowed(first),
            Some(second) => {
                let all: Vec<&str> = [first, second].into_iter().chain(values).collect();
                Cow::Owned(all.join(", "))
            }
        })
    }

    /// Iterates over the values of all headers with a name.
    pub(crate) fn values(&self, name: &str) -> impl Iterator<Item = &str> {
        let all = self.headers.iter();
        // Transports spell most names as they are looked up.
        let is_named = move |known: &str| known == name || known.eq_ignore_ascii_case(name);
        let named = all.filter(move |(known, _)| is_named(known));
        named.map(|(_, value)| value.as_str())
    }
}

/// Authenticated user or client, by the name that the application uses.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Principal(pub String);
