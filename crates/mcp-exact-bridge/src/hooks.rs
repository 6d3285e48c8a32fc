//! Hooks of the application around each request of a client, such as for policy, redaction and caching.

use std::fmt;
use std::future::ready;
use std::pin::Pin;
use std::sync::Arc;

use mcp_exact_session::{JsonObject, PeerError, RawResult, Reply, Revision};

/// Future of a hook.
pub type HookFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Request of a client that is relayed to one server.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Call {
    /// Name of the server in the configuration; empty if there is only one server.
    pub server: String,
    /// Principal of the client, if it is authenticated.
    pub principal: Option<String>,
    /// `Implementation` by which the client names itself.
    pub client: Option<JsonObject>,
    /// Revision of the client.
    pub revision: Revision,
    /// Method of the request.
    pub method: String,
    /// Params in the revision of the client, with the name of the tool or prompt as the server defines it.
    pub params: Option<JsonObject>,
}

impl Call {
    /// Returns the name of the tool or prompt, or the URI of the resource, that the request names.
    pub fn subject(&self) -> Option<String> {
        let [name, uri] = self.params.as_ref()?.view().find_each(["name", "uri"]);
        Some(name.or(uri)?.as_str()?.into_owned())
    }

    /// Returns the arguments of a tool or prompt as received, as JSON text.
    pub fn arguments(&self) -> Option<String> {
        let arguments = self.params.as_ref()?.view().find("arguments")?;
        Some(arguments.text().to_owned())
    }
}

/// Decision of a hook about a request.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Decision {
    /// Relays the request.
    Relay,
    /// Relays the request with other params, in the revision of the client. If these params have no `_meta`, the one of
    /// the request is kept.
    RelayWith(JsonObject),
    /// Answers the request without the server, with a result in the revision of the client.
    Answer(JsonObject),
    /// Answers the request with an error.
    Refuse(PeerError),
}

/// Hook of the application around each request of a client to a server. A list request to many servers is one request
/// to each of them.
///
/// Hooks are called in order before the request and in reverse order after the answer, so that the first hook sees the
/// same messages as the client. An answer of a hook is passed to the hooks before it.
///
/// ```
/// use mcp_exact_bridge::{Call, Decision, Hook, HookFuture, Hooks, Options};
/// use mcp_exact_session::PeerError;
///
/// struct ReadOnly;
///
/// impl Hook for ReadOnly {
///     fn before<'a>(&'a self, call: &'a Call) -> HookFuture<'a, Decision> {
///         let writes = call.subject().is_some_and(|name| name.starts_with("write_"));
///         let decision = if writes {
///             Decision::Refuse(PeerError::invalid_params("this gateway only reads"))
///         } else {
///             Decision::Relay
///         };
///         Box::pin(std::future::ready(decision))
///     }
/// }
///
/// let mut options = Options::default();
/// options.hooks = Hooks::default().with(ReadOnly);
/// ```
pub trait Hook: Send + Sync + 'static {
    /// Decides about a request before it is sent to the server.
    fn before<'a>(&'a self, call: &'a Call) -> HookFuture<'a, Decision> {
        let _ = call;
        Box::pin(ready(Decision::Relay))
    }

    /// Receives the answer and returns the answer for the client. This method is not called if the client cancels the
    /// request.
    fn after<'a>(&'a self, call: &'a Call, reply: Reply) -> HookFuture<'a, Reply> {
        let _ = call;
        Box::pin(ready(reply))
    }
}

/// Ordered list of hooks.
#[derive(Clone, Default)]
pub struct Hooks(Vec<Arc<dyn Hook>>);

impl Hooks {
    /// Appends a hook.
    #[must_use]
    pub fn with(mut self, hook: impl Hook) -> Self {
        self.0.push(Arc::new(hook));
        self
    }

    /// Returns true if there is no hook.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Runs a request through all hooks; `relay` sends it with the given params.
    pub(crate) async fn run<F>(
        &self,
        mut call: Call,
        relay: impl FnOnce(Option<JsonObject>) -> F,
    ) -> Reply
    where
        F: Future<Output = Reply>,
    {
        let mut asked = 0;
        let mut answer = None;
        for hook in &self.0 {
            match hook.before(&call).await {
                Decision::Relay => {}
                Decision::RelayWith(params) => call.params = Some(with_meta(params, &call)),
                Decision::Answer(result) => answer = Some(Reply::Result(RawResult::from(result))),
                Decision::Refuse(error) => answer = Some(Reply::Error(error)),
            }
            if answer.is_some() {
                break;
            }
            asked += 1;
        }
        let mut reply = match answer {
            Some(answer) => answer,
            None => relay(call.params.clone()).await,
        };
        for hook in self.0[..asked].iter().rev() {
            reply = hook.after(&call, reply).await;
        }
        reply
    }
}

/// Adds the request's `_meta` to params without one.
fn with_meta(mut params: JsonObject, call: &Call) -> JsonObject {
    let meta = call.params.as_ref().and_then(|params| params.get("_meta"));
    if let Some(meta) = meta
        && params.view().find("_meta").is_none()
    {
        params.insert("_meta", meta);
    }
    params
}

impl fmt::Debug for Hooks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Hooks({})", self.0.len())
    }
}
