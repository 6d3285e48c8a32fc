//! Hooks of the program around each request of a client: policy, redaction, caching.

use std::fmt;
use std::future::ready;
use std::pin::Pin;
use std::sync::Arc;

use mcp_exact_session::{JsonObject, PeerError, RawResult, Reply, Revision};

/// Future of a hook.
pub type HookFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Request of a client on its way to one server.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Call {
    /// Name of the server in the configuration; empty if it is the only one.
    pub server: String,
    /// Principal of the client, if it is authenticated.
    pub principal: Option<String>,
    /// `Implementation` by which the client names itself.
    pub client: Option<JsonObject>,
    /// Revision of the client.
    pub revision: Revision,
    /// Method of the request.
    pub method: String,
    /// Params in the revision of the client, with the server's own name of the tool or prompt.
    pub params: Option<JsonObject>,
}

impl Call {
    /// Returns what the request is about: the name of the tool or prompt, or the URI of the resource.
    pub fn subject(&self) -> Option<String> {
        let [name, uri] = self.params.as_ref()?.view().find_each(["name", "uri"]);
        Some(name.or(uri)?.as_str()?.into_owned())
    }

    /// Returns the arguments of a tool or prompt as they are spelled.
    pub fn arguments(&self) -> Option<String> {
        let arguments = self.params.as_ref()?.view().find("arguments")?;
        Some(arguments.text().to_owned())
    }
}

/// Decision of a hook about a request.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Decision {
    /// Relays it.
    Relay,
    /// Relays it with other params, in the revision of the client. `_meta` of the request stays if they have none.
    RelayWith(JsonObject),
    /// Answers it without the server, with a result in the revision of the client.
    Answer(JsonObject),
    /// Answers it with an error.
    Refuse(PeerError),
}

/// Hook of the program around each request of a client to a server. A list of many servers is one request to each of them.
///
/// Hooks are asked in their order before the request, and in the opposite order after the answer: the first hook sees what
/// the client sees. What a hook answers passes the hooks before it.
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

    /// Takes the answer and returns the one for the client. It is not called if the client cancels the request.
    fn after<'a>(&'a self, call: &'a Call, reply: Reply) -> HookFuture<'a, Reply> {
        let _ = call;
        Box::pin(ready(reply))
    }
}

/// Hooks in their order.
#[derive(Clone, Default)]
pub struct Hooks(Vec<Arc<dyn Hook>>);

impl Hooks {
    /// Adds a hook behind the others.
    #[must_use]
    pub fn with(mut self, hook: impl Hook) -> Self {
        self.0.push(Arc::new(hook));
        self
    }

    /// Returns true if there is no hook.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Runs a request through all hooks. `relay` takes its params.
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
