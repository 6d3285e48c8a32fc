//! Clients, which call the tools, resources and prompts of a server in the negotiated revision.
//!
//! Results have the form of the home revision; [`Client::revision`] returns the negotiated revision.

mod answer;
mod apps;
mod cache;
mod call;
#[cfg(feature = "validation")]
mod check;
mod connect;
mod extension;
mod link;
mod list;
mod memory;
mod oauth;
mod output;
mod reconnect;
mod recover;
#[cfg(feature = "skills")]
mod skills;
mod subscribe;
mod task;
mod typed;

use std::fmt;
use std::sync::Arc;

#[cfg(feature = "process")]
use std::ffi::OsString;

#[cfg(feature = "process")]
use mcp_exact_transport::ServerCommand;
use mcp_exact_transport::Transport;
#[cfg(feature = "http-client")]
use mcp_exact_transport::http::client::HttpEndpoint;
use serde::Serialize;
use serde::de::DeserializeOwned;

pub use answer::{Form, FormAnswer, SampleReply, SampleRequest};
pub use call::{ClientCall, Request};
pub use connect::{ClientChange, Connect, LogMessage};
pub use list::{Definition, List};
pub use memory::NegotiationMemory;
pub use output::{CompletionOutput, Media, PromptOutput, ResourceOutput, ToolOutput};
pub use reconnect::{CloseReason, ConnectionEvent, Reconnect};
#[cfg(feature = "skills")]
pub use skills::{SkillError, SkillFile, SkillListing};
pub use subscribe::Subscription;

use crate::cx::Root;
use crate::error::write_report;
use crate::protocol::{
    CachedNegotiation, Json, JsonObject, Level, Lifecycle, NegotiationError, Outcome, PeerError,
    Repair, Revision, SendError, lifecycle_of,
};
use crate::server::Server;
use link::ClientLink;

/// A client of one server, of any revision. A client is cheap to clone; the connection closes when the last clone is
/// dropped.
///
/// ```
/// # use mcp_exact::{Client, Input, Server, schemars, serde};
/// # #[derive(serde::Deserialize, serde::Serialize, schemars::JsonSchema)]
/// # struct Add { a: i64, b: i64 }
/// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
/// let server = Server::builder("calculator", "1.0.0")
///     .tool("add", |Input(add): Input<Add>| async move { (add.a + add.b).to_string() })
///     .build()?;
/// let client = Client::in_memory(&server).await?;
/// let sum: i64 = client.call("add", &Add { a: 1, b: 2 }).await?;
/// assert_eq!(sum, 3);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Client(Arc<ClientLink>);

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client")
            .field("revision", &self.revision())
            .finish_non_exhaustive()
    }
}

/// Error of a call to a server. `{:?}` shows the message and the messages of the sources, and `{:#?}` the structure.
#[derive(Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ClientError {
    /// Client and server have no revision in common, or the server does not answer.
    #[error("{0}{remedy}", remedy = remedy_of_limit(.0.exceeded_limit().as_deref()))]
    Negotiation(NegotiationError),
    /// The server cannot be reached or started.
    #[error("{0}")]
    Connect(String),
    /// The settings of the client are invalid.
    #[error("{0}")]
    Config(String),
    /// The server answered with an error.
    #[error("the server answered with an error: {0}")]
    Server(PeerError),
    /// The server has refused the authorization of a request over HTTP: it requires a token, does not accept that of the client
    /// (status 401), or the token lacks a scope (status 403 with `insufficient_scope`). The server has not executed the request.
    /// [`Connect::bearer`] sets a token, [`Connect::oauth`] obtains one; errors of the latter are
    /// [`Authorization`](Self::Authorization).
    #[error("{}", unauthorized_text(*.status, .reason.as_deref()))]
    Unauthorized {
        /// HTTP status of the response: 401 or 403.
        status: u16,
        /// Reason that the server gives, on one line of at most 300 characters, such as "the token is unknown or has expired".
        reason: Option<String>,
    },
    /// The server did not answer with a message of the protocol, but for example with an HTTP status or a page. The
    /// text says what the server has sent.
    #[error("{0}")]
    Answer(PeerError),
    /// The answer of the server exceeds a limit of this client (a field of [`Limits`](crate::Limits)).
    #[error("{error}{remedy}", remedy = remedy_of_limit(Some(.limit)))]
    TooLarge {
        /// Name of the limit, such as `message_bytes`.
        limit: String,
        /// Description with the size of the answer.
        error: PeerError,
    },
    /// A list does not end: the server has returned the same cursor twice, or more pages than [`Connect::max_pages`]
    /// allows. Only clients with [`Tolerance::Strict`](crate::Tolerance::Strict) fail; others end the list.
    #[error("the list of `{method}` does not end ({repair}){}", crate::repairs::remedy(.repair.rule))]
    Pages {
        /// Method of the list.
        method: String,
        /// What ends the list.
        repair: Repair,
    },
    /// The server did not answer in time, and sent text that is not a message of the protocol.
    #[error("the server did not answer in time, and sent what is not a message: {0}")]
    NoMessage(String),
    /// The tool failed (`isError`).
    #[error("the tool failed: {}", .0.text())]
    Tool(Box<ToolOutput>),
    /// The task that the server created for the call was cancelled.
    #[error("the server cancelled the task of the call; call the tool again")]
    TaskCancelled,
    /// The server rejects the subscription to the resource with this URI, because the resource does not exist or is
    /// hidden from the client (from 2026-07-28 on; a server of an earlier revision answers with an error).
    #[error("the server accepts no subscription to {0:?}; subscribe to a resource that it lists")]
    SubscriptionRefused(String),
    /// The request cannot be sent, because the negotiated revision or the capabilities of the server do not include
    /// it.
    #[error(transparent)]
    Send(SendError),
    /// The server requires authorization, and no access token could be obtained.
    #[cfg(feature = "oauth-client")]
    #[error(transparent)]
    Authorization(Box<mcp_exact_auth::client::OAuthError>),
    /// The arguments are not a JSON object.
    #[error("the arguments cannot be sent: {0}")]
    Arguments(String),
    /// The result does not have the expected form.
    #[error("the result cannot be read: {0}")]
    Result(String),
    /// The server did not answer in time; the request was cancelled.
    #[error("the server did not answer in time; allow more by `idle_timeout` or `timeout`")]
    TimedOut,
    /// The connection was lost before the request was sent or answered. A client with [`Connect::reconnect`] connects
    /// again by itself.
    #[error("{}", reconnect::disconnected_text(.reason, *.may_have_run))]
    Disconnected {
        /// Reason why the connection is gone.
        reason: CloseReason,
        /// True if the server may have executed the request; false if it did not reach the server.
        may_have_run: bool,
    },
}

impl fmt::Debug for ClientError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !f.alternate() {
            return write_report(f, self);
        }
        let (name, content): (&str, &dyn fmt::Debug) = match self {
            Self::Negotiation(error) => ("Negotiation", error),
            Self::Connect(reason) => ("Connect", reason),
            Self::Config(reason) => ("Config", reason),
            Self::Server(error) => ("Server", error),
            Self::Answer(error) => ("Answer", error),
            Self::TooLarge { limit, error } => {
                let mut structure = f.debug_struct("TooLarge");
                return structure
                    .field("limit", limit)
                    .field("error", error)
                    .finish();
            }
            Self::Pages { method, repair } => {
                let mut structure = f.debug_struct("Pages");
                return structure
                    .field("method", method)
                    .field("repair", repair)
                    .finish();
            }
            Self::Unauthorized { status, reason } => {
                let mut structure = f.debug_struct("Unauthorized");
                return structure
                    .field("status", status)
                    .field("reason", reason)
                    .finish();
            }
            Self::NoMessage(text) => ("NoMessage", text),
            Self::Tool(output) => ("Tool", output),
            Self::SubscriptionRefused(uri) => ("SubscriptionRefused", uri),
            Self::Send(error) => ("Send", error),
            #[cfg(feature = "oauth-client")]
            Self::Authorization(error) => ("Authorization", error),
            Self::Arguments(reason) => ("Arguments", reason),
            Self::Result(reason) => ("Result", reason),
            Self::TaskCancelled => return f.write_str("TaskCancelled"),
            Self::TimedOut => return f.write_str("TimedOut"),
            Self::Disconnected {
                reason,
                may_have_run,
            } => {
                let mut structure = f.debug_struct("Disconnected");
                return structure
                    .field("reason", reason)
                    .field("may_have_run", may_have_run)
                    .finish();
            }
        };
        f.debug_tuple(name).field(content).finish()
    }
}

impl Client {
    /// Connects to a server in the same process; awaiting the builder returns a [`Client`].
    pub fn in_memory(server: &Server) -> Connect {
        Connect::in_memory(server)
    }

    /// Connects over a transport that is created when the builder is awaited.
    pub(crate) fn over_lazily<T: Transport>(
        transport: impl FnOnce() -> T + Send + 'static,
    ) -> Connect {
        Connect::over_lazily(transport)
    }

    /// Connects over a transport that `create` opens; awaiting the builder returns a [`Client`]. `create` is called
    /// for each connection, so that the client can [connect again](Connect::reconnect).
    pub fn over_with<T: Transport>(create: impl Fn() -> T + Send + Sync + 'static) -> Connect {
        Connect::over_with(create)
    }

    /// Connects over a transport, such as a Unix socket, which serves one connection; awaiting the builder returns a
    /// [`Client`].
    pub fn over(transport: impl Transport) -> Connect {
        Connect::over(transport)
    }

    /// Starts a server as a child process and connects to it; awaiting the builder returns a [`Client`]. The process
    /// and its child processes are terminated when the connection ends.
    ///
    /// ```no_run
    /// # async fn example() -> mcp_exact::Result {
    /// use mcp_exact::Client;
    /// let client = Client::command("npx", ["-y", "@modelcontextprotocol/server-everything"]).await?;
    /// # Ok(())
    /// # }
    /// ```
    #[cfg(feature = "process")]
    pub fn command<A: Into<OsString>>(
        program: impl Into<OsString>,
        arguments: impl IntoIterator<Item = A>,
    ) -> Connect {
        Connect::command(ServerCommand::new(program).args(arguments))
    }

    /// Starts a server as a child process, with a configured environment, working directory and so on, and connects to
    /// it.
    #[cfg(feature = "process")]
    pub fn spawn(command: ServerCommand) -> Connect {
        Connect::command(command)
    }

    /// Connects to the HTTP endpoint of a server; awaiting the builder returns a [`Client`]. A server that supports
    /// only the HTTP+SSE transport of 2024-11-05 is detected.
    #[cfg(feature = "http-client")]
    pub fn connect(url: &str) -> Connect {
        let endpoint = HttpEndpoint::new(url);
        Connect::http(endpoint.map_err(|error| ClientError::Connect(error.to_string())))
    }

    /// Connects to an HTTP endpoint with configured headers, HTTP client and so on.
    #[cfg(feature = "http-client")]
    pub fn http(endpoint: HttpEndpoint) -> Connect {
        Connect::http(Ok(endpoint))
    }

    /// Returns the result of the negotiation, which [`Connect::with_cached_negotiation`] accepts for a later connection.
    pub fn negotiation(&self) -> CachedNegotiation {
        self.0.negotiation()
    }

    /// Returns the number of repairs in the messages of the server so far; see [`Connect::on_repair`].
    pub fn repairs(&self) -> u64 {
        self.0.repairs().count()
    }

    /// Returns the negotiated revision.
    pub fn revision(&self) -> Revision {
        self.0.revision()
    }

    /// Returns the capabilities of the server.
    pub fn capabilities(&self) -> JsonObject {
        self.0.session().capabilities
    }

    /// Returns the server's description of itself: `name`, `version` and so on.
    pub fn server_info(&self) -> Option<JsonObject> {
        self.0.session().implementation
    }

    /// Returns the server's instructions for the model.
    pub fn instructions(&self) -> Option<String> {
        self.0.session().instructions
    }

    /// Calls a tool with arguments of the type `A` and decodes its result as `R`, from the structured content or, if
    /// the result has none, from the text.
    ///
    /// Awaiting the call returns an `R` or a [`ClientError`]; a result with `isError` is [`ClientError::Tool`].
    pub fn call<A: Serialize + ?Sized, R: DeserializeOwned>(
        &self,
        tool: &str,
        arguments: &A,
    ) -> ClientCall<R> {
        let decode = |result| ToolOutput::new(result).decode();
        ClientCall::for_tool(self, tool, arguments_object(arguments), decode)
    }

    /// Calls a tool; the output is the complete result of the tool, even if `isError` is set.
    pub fn call_tool<A: Serialize + ?Sized>(
        &self,
        tool: &str,
        arguments: &A,
    ) -> ClientCall<ToolOutput> {
        let decode = |result| Ok(ToolOutput::new(result));
        ClientCall::for_tool(self, tool, arguments_object(arguments), decode)
    }

    /// Lists the tools, page by page. As with all lists, a page that the server allows to cache (from 2026-07-28 on) is
    /// fetched again only after its lifetime has elapsed or a change was announced.
    pub fn tools(&self) -> List {
        List::new(self, "tools/list", "tools")
    }

    /// Lists the resources, page by page.
    pub fn resources(&self) -> List {
        List::new(self, "resources/list", "resources")
    }

    /// Lists the resource templates, page by page.
    pub fn resource_templates(&self) -> List {
        List::new(self, "resources/templates/list", "resourceTemplates")
    }

    /// Lists the prompts, page by page.
    pub fn prompts(&self) -> List {
        List::new(self, "prompts/list", "prompts")
    }

    /// Reads a resource.
    pub fn read(&self, uri: &str) -> ClientCall<ResourceOutput> {
        let params = JsonObject::from_iter([("uri", Json::string(uri))]);
        let decode = ResourceOutput::new;
        ClientCall::new(self, "resources/read", params, decode)
    }

    /// Requests a prompt with string arguments.
    pub fn prompt<'a>(
        &self,
        name: &str,
        arguments: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> ClientCall<PromptOutput> {
        let arguments = arguments
            .into_iter()
            .map(|(name, value)| (name, Json::string(value)));
        let params = JsonObject::from_iter([
            ("name", Json::string(name)),
            ("arguments", JsonObject::from_iter(arguments).into()),
        ]);
        let decode = PromptOutput::new;
        ClientCall::new(self, "prompts/get", params, decode)
    }

    /// Requests completions of an argument of a prompt.
    pub fn complete_prompt(
        &self,
        prompt: &str,
        argument: &str,
        value: &str,
    ) -> ClientCall<CompletionOutput> {
        let reference = [
            ("type", Json::string("ref/prompt")),
            ("name", Json::string(prompt)),
        ];
        self.complete(JsonObject::from_iter(reference), argument, value)
    }

    /// Requests completions of a variable of a resource template.
    pub fn complete_template(
        &self,
        template: &str,
        variable: &str,
        value: &str,
    ) -> ClientCall<CompletionOutput> {
        let reference = [
            ("type", Json::string("ref/resource")),
            ("uri", Json::string(template)),
        ];
        self.complete(JsonObject::from_iter(reference), variable, value)
    }

    /// Creates a call of `completion/complete`.
    fn complete(
        &self,
        reference: JsonObject,
        name: &str,
        value: &str,
    ) -> ClientCall<CompletionOutput> {
        let argument = [("name", Json::string(name)), ("value", Json::string(value))];
        let params = JsonObject::from_iter([
            ("ref", reference),
            ("argument", JsonObject::from_iter(argument)),
        ]);
        let decode = |result| CompletionOutput::new(&result);
        ClientCall::new(self, "completion/complete", params, decode)
    }

    /// Sends a request and returns its result in the form of the home revision. `params` must have the form of the
    /// negotiated revision.
    ///
    /// Dropping the future cancels the request.
    pub fn request(&self, method: &str, params: Option<JsonObject>) -> Request {
        Request::new(self, method, params)
    }

    /// Subscribes to updates of resources. The handler of [`Connect::on_change`] is called for each update until the
    /// subscription is dropped.
    ///
    /// # Errors
    /// [`ClientError`] if the server rejects the subscription to one of the URIs; the client is then subscribed to none
    /// of the URIs.
    pub async fn subscribe<'u>(
        &self,
        uris: impl IntoIterator<Item = &'u str>,
    ) -> Result<Subscription, ClientError> {
        let uris = uris.into_iter().map(str::to_owned).collect();
        Subscription::begin(self, uris).await
    }

    /// Replaces the roots that the server may request, and notifies the server (`notifications/roots/list_changed`, up
    /// to 2025-11-25; in later revisions a server requests the roots whenever it needs them).
    ///
    /// # Errors
    /// [`ClientError::Config`] if the client was connected without [`Connect::roots`], [`ClientError::Disconnected`] if
    /// the connection has ended.
    pub fn set_roots(&self, roots: impl IntoIterator<Item = Root>) -> Result<(), ClientError> {
        let message =
            "the client has declared no roots; connect it with `.roots(…)`, which may be empty";
        let known = self.0.roots();
        let known = known.ok_or_else(|| ClientError::Config(message.to_owned()))?;
        known.set(roots.into_iter().collect());
        // A server that is connected again requests the roots anew.
        if lifecycle_of(self.revision()) == Lifecycle::Discover || self.0.is_reconnecting() {
            return Ok(());
        }
        self.notify("notifications/roots/list_changed", None)
    }

    /// Requests log messages of the server from this level up: up to 2025-11-25 for the session (`logging/setLevel`),
    /// from 2026-07-28 on with each request that sets [no level of its own](ClientCall::log_level). The level is
    /// restored when the client [connects again](Connect::reconnect).
    ///
    /// # Errors
    /// [`ClientError::Send`] if a server up to 2025-11-25 has not declared the capability `logging`.
    pub async fn set_log_level(&self, level: Level) -> Result<(), ClientError> {
        self.0.set_log_level(level);
        if lifecycle_of(self.revision()) == Lifecycle::Discover {
            return Ok(());
        }
        let params = JsonObject::from_iter([("level", Json::string(level.name()))]);
        let request = self.request("logging/setLevel", Some(params));
        request.await.map(drop)
    }

    /// Sends a notification, such as one of an extension or vendor that [`Connect::notifications`] declares.
    ///
    /// # Errors
    /// [`ClientError::Send`] if neither the negotiated revision nor the client defines the notification, or a required
    /// capability is missing; [`ClientError::Disconnected`] if the connection is gone.
    pub fn notify(&self, method: &str, params: Option<JsonObject>) -> Result<(), ClientError> {
        let sent = self.0.notify(method, params);
        sent.map_err(|error| self.0.send_error(error))
    }

    /// Returns the time at which the connection ended; `None` while the connection is open.
    #[cfg(all(feature = "process", feature = "http-client"))]
    pub(crate) fn closed_at(&self) -> Option<std::time::SystemTime> {
        self.0.closed_at()
    }

    /// Returns true while attempts to connect again are made.
    #[cfg(all(feature = "process", feature = "http-client"))]
    pub(crate) fn is_reconnecting(&self) -> bool {
        self.0.is_reconnecting()
    }

    /// Waits until the connection has ended, and returns the reason. With [`Connect::reconnect`], the connection ends
    /// when the client is closed or gives up; otherwise, it ends when it is lost for the first time. An HTTP server
    /// that cannot be reached does not end the connection. The future does not keep the connection open.
    ///
    /// ```
    /// # use mcp_exact::{Client, CloseReason, Server};
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// # let server = Server::builder("demo", "1.0.0").build()?;
    /// let client = Client::in_memory(&server).await?;
    /// let ended = tokio::spawn(client.closed());
    /// client.close();
    /// assert_eq!(ended.await?, CloseReason::ByClient);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn closed(&self) -> impl Future<Output = CloseReason> + Send + use<> {
        self.0.closed()
    }

    /// Returns true if the connection has ended; false while the client connects again.
    pub fn is_closed(&self) -> bool {
        self.0.is_closed()
    }

    /// Returns the reason why the connection has ended; `None` before, and while the reason is not known yet, such as
    /// the exit status of a process.
    pub fn close_reason(&self) -> Option<CloseReason> {
        self.0.close_reason()
    }

    /// Closes the connection; pending requests end with [`ClientError::Disconnected`].
    pub fn close(&self) {
        self.0.shut_down();
    }

    #[cfg_attr(
        not(feature = "validation"),
        allow(
            clippy::unused_async,
            clippy::unnecessary_wraps,
            reason = "the signature of the feature"
        )
    )]
    /// Validates the structured content of a tool's result, if the client was configured to do so.
    async fn check_output(&self, tool: &str, output: &JsonObject) -> Result<(), ClientError> {
        #[cfg(feature = "validation")]
        if let Some(checks) = self.link().output_checks() {
            let output = ToolOutput::new(output.clone());
            return checks.check(self, tool, &output).await;
        }
        #[cfg(not(feature = "validation"))]
        let _ = (tool, output);
        Ok(())
    }

    fn link(&self) -> &Arc<ClientLink> {
        &self.0
    }
}

/// Returns the arguments of a call as a JSON object; the unit value becomes an empty object.
pub(crate) fn arguments_object<A: Serialize + ?Sized>(
    arguments: &A,
) -> Result<JsonObject, ClientError> {
    let json = Json::from_serialize(arguments);
    let json = json.map_err(|error| ClientError::Arguments(error.to_string()))?;
    match JsonObject::try_from(json) {
        Ok(object) => Ok(object),
        // Calls without arguments pass the unit value, which serialises to `null`.
        Err(json) if json.text() == "null" => Ok(JsonObject::new()),
        Err(_) => Err(ClientError::Arguments(
            "they must be an object; use a struct".to_owned(),
        )),
    }
}

impl From<SendError> for ClientError {
    fn from(error: SendError) -> Self {
        match error {
            SendError::Closed => {
                let reason = "the session is closed".to_owned();
                Self::disconnected(CloseReason::Lost(reason), false)
            }
            error => Self::Send(error),
        }
    }
}

impl ClientError {
    /// Tells an error of the server from one of this client about the answer of the server.
    fn from_peer_error(error: PeerError) -> Self {
        if let Some(status) = error.unauthorized_status() {
            let reason = error.unauthorized_reason();
            return Self::Unauthorized { status, reason };
        }
        match error.exceeded_limit() {
            Some(limit) => Self::TooLarge { limit, error },
            None if error.is_local() => Self::Answer(error),
            None => Self::Server(error),
        }
    }
}

/// Returns the message of [`ClientError::Unauthorized`].
fn unauthorized_text(status: u16, reason: Option<&str>) -> String {
    let reason = reason.map_or_else(String::new, |reason| format!(": {reason}"));
    let remedy = match status {
        403 => "use a token that grants more, by `Connect::bearer` or `Connect::oauth`",
        _ => "set a valid token by `Connect::bearer`, or sign in by `Connect::oauth`",
    };
    format!("the request is not authorized (HTTP status {status}){reason}; {remedy}")
}

/// Returns what an application can do about an answer that exceeds a limit, as the end of a sentence.
fn remedy_of_limit(limit: Option<&str>) -> &'static str {
    match limit {
        Some("message_bytes") => "; allow more by `Connect::message_bytes`",
        Some("message_budget") => "; allow more by `Connect::message_budget`",
        Some(_) => "; allow more by `Connect::limits`",
        None => "",
    }
}

/// Returns the result of a request, or the reason why it failed.
fn into_result(outcome: Outcome) -> Result<JsonObject, ClientError> {
    match outcome {
        Outcome::Result(result) => Ok(result.into_object()),
        Outcome::Error(error) => Err(ClientError::from_peer_error(error)),
        Outcome::TimedOut => Err(ClientError::TimedOut),
        Outcome::Cancelled | Outcome::Lost | Outcome::Closed => {
            let reason = "the server ended the connection".to_owned();
            Err(ClientError::disconnected(CloseReason::Lost(reason), true))
        }
    }
}
