//! Paths of a service, and its named endpoints: each has settings and a handler of its own at the path `PATH/NAME`, where `PATH` is the
//! path of the service.
//!
//! All endpoints share the limits and counters of the service. No session is shared: the id of a session begins with the name
//! of its endpoint, and other endpoints do not know the session.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use http::request::Parts;
use mcp_exact_session::ServerSettings;

use super::endpoints::Hooks;
use super::response::{Refusal, unavailable};
use super::resume;
use super::service::Inner;
use crate::endpoint::ServerHandler;
use crate::http::SESSION_ID;

/// Settings and event handler of an endpoint.
pub type NamedEndpoint = (Arc<ServerSettings>, Arc<dyn ServerHandler>);

/// Future of a named endpoint; its error is the reason why the endpoint cannot serve now, as the client reads it.
pub type NamedEndpointFuture =
    Pin<Box<dyn Future<Output = Result<NamedEndpoint, String>> + Send + 'static>>;

/// Named endpoints of a service.
pub trait NamedEndpoints: Send + Sync + 'static {
    /// Returns the endpoint with this name; `None` if there is none, so that requests get status 404. A name has letters,
    /// digits, `-` and `_`.
    ///
    /// The method is called before the client is authenticated, and the future is awaited afterwards. If it fails, the request gets
    /// status 503.
    fn find(&self, name: &str) -> Option<NamedEndpointFuture>;
}

/// Name of the endpoint that a request is for; an extension of requests for named endpoints, which
/// [`Authenticate`](super::Authenticate) receives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EndpointName(pub String);

/// Endpoint that serves a request: its settings and its events.
pub(super) struct Face {
    pub(super) settings: Arc<ServerSettings>,
    pub(super) hooks: Arc<Hooks>,
    /// Name of the endpoint; `None` for the endpoint of the service itself.
    pub(super) name: Option<String>,
}

impl Face {
    /// Returns the id of a new session of the endpoint.
    pub(super) fn session_id(&self, id: Arc<str>) -> Arc<str> {
        match &self.name {
            Some(name) => format!("{name}{SEPARATOR}{id}").into(),
            None => id,
        }
    }
}

/// Resource of the service that the path of a request identifies.
pub(super) enum Route {
    /// The endpoint of Streamable HTTP.
    Endpoint,
    /// The event stream of HTTP+SSE.
    Sse,
    /// The URL for POSTs of HTTP+SSE.
    Messages,
}

/// Separator between the name of an endpoint and the rest of the id of a session.
const SEPARATOR: char = '.';

/// Returns the part of a session id after the name of its endpoint; `None` if the id has no name.
pub(super) fn without_name(id: &str) -> Option<&str> {
    Some(id.split_once(SEPARATOR)?.1)
}

/// Returns the name in a path after the path of the service, and the rest after the name; `None` if there is no name.
pub(super) fn name_in(path: &str) -> Option<(String, &str)> {
    let path = path.strip_prefix('/')?;
    let end = path.find('/').unwrap_or(path.len());
    let (segment, rest) = path.split_at(end);
    let mut name = String::new();
    let mut bytes = segment.bytes();
    while let Some(byte) = bytes.next() {
        let byte = if byte == b'%' {
            let digit = |byte: u8| char::from(byte).to_digit(16);
            let code = digit(bytes.next()?)? * 16 + digit(bytes.next()?)?;
            u8::try_from(code).ok()?
        } else {
            byte
        };
        let is_allowed = byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
        name.push(is_allowed.then(|| char::from(byte))?);
    }
    (!name.is_empty()).then_some((name, rest))
}

impl Inner {
    /// Returns the resource that a path identifies, and the name of its endpoint, if it has one; `None` for an unknown path.
    pub(super) fn route(&self, path: &str) -> Option<(Route, Option<String>)> {
        if let Some(route) = self.route_in(self.directory(), path) {
            return Some((route, None));
        }
        match &self.options().path {
            Some(endpoint) if endpoint != path => {
                let (name, rest) = name_in(path.strip_prefix(endpoint.as_str())?)?;
                let route = match rest {
                    "" => Some(Route::Endpoint),
                    rest => self.route_in("", rest),
                };
                Some((route?, Some(name)))
            }
            _ => Some((Route::Endpoint, None)),
        }
    }

    /// Returns the resource of HTTP+SSE that a path in a directory identifies.
    fn route_in(&self, directory: &str, path: &str) -> Option<Route> {
        match path.strip_prefix(directory) {
            Some("/sse") if self.options().http_sse => Some(Route::Sse),
            Some("/messages") if self.options().http_sse => Some(Route::Messages),
            _ => None,
        }
    }

    /// Returns the path to which clients of HTTP+SSE post messages for an endpoint.
    pub(super) fn messages_path(&self, face: &Face) -> String {
        let prefix = &self.options().path_prefix;
        match (&face.name, &self.options().path) {
            (Some(name), Some(path)) => format!("{prefix}{path}/{name}/messages"),
            _ => format!("{prefix}{}/messages", self.directory()),
        }
    }

    /// Returns the named endpoint of a request; its future is awaited once the client is authenticated.
    pub(super) fn find_named(&self, name: &str) -> Option<NamedEndpointFuture> {
        self.options().endpoints.as_ref()?.find(name)
    }

    /// Returns the endpoint of a request: that of the service, or the named endpoint.
    pub(super) async fn face(
        self: &Arc<Self>,
        named: Option<(String, NamedEndpointFuture)>,
    ) -> Result<Arc<Face>, Refusal> {
        let Some((name, endpoint)) = named else {
            return Ok(Arc::clone(self.own_face()));
        };
        let (settings, handler) = endpoint.await.map_err(|reason| unavailable(&reason))?;
        Ok(Arc::new(Face {
            settings,
            hooks: Hooks::new(handler, &Arc::downgrade(self)),
            name: Some(name),
        }))
    }

    /// Returns the endpoint of a session, or the response if the endpoint cannot serve now.
    pub(super) async fn face_of_session(self: &Arc<Self>, id: &str) -> Result<Arc<Face>, Refusal> {
        let named = id.split_once(SEPARATOR).and_then(|(name, _)| {
            let endpoint = self.find_named(name)?;
            Some((name.to_owned(), endpoint))
        });
        self.face(named).await
    }

    /// Checks that every session that a request names is one of the endpoint `name`; status 404 otherwise.
    pub(super) fn check_session_name(
        &self,
        name: Option<&str>,
        request: &Parts,
    ) -> Result<(), Refusal> {
        if self.options().endpoints.is_none() {
            return Ok(());
        }
        let of_headers = request.headers.get_all(SESSION_ID).iter();
        let of_headers = of_headers.map(|id| id.to_str().unwrap_or_default());
        let query = request.uri.query().unwrap_or("").split('&');
        let of_query = query.filter_map(|member| member.strip_prefix("sessionId="));
        let is_its = |id: &str| {
            let given = id.split_once(SEPARATOR).map(|(name, _)| name);
            match name {
                Some(name) => given == Some(name),
                // A sealed id can have the separator, too.
                None => given.is_none_or(|given| self.find_named(given).is_none()),
            }
        };
        if of_headers.chain(of_query).all(is_its) {
            Ok(())
        } else {
            Err(resume::unknown())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The name is percent-decoded, and has no other characters than names have.
    #[test]
    fn names_are_read_from_paths() {
        for (path, expected) in [
            ("/files", Some(("files", ""))),
            ("/f%69les/sse", Some(("files", "/sse"))),
            ("/a-b_C1/", Some(("a-b_C1", "/"))),
            ("/", None),
            ("", None),
            ("files", None),
            ("/a%2Fb", None),
            ("/a.b", None),
            ("/a%", None),
            ("/a%4", None),
            ("/%C3%BC", None),
        ] {
            let found = name_in(path);
            let found = found.as_ref().map(|(name, rest)| (name.as_str(), *rest));
            assert_eq!(found, expected, "{path}");
        }
    }
}
