//! Answers of a client to the input requests of its server: elicitation, sampling and roots.
//!
//! Handlers receive requests and return answers in the form of the home revision; this module converts requests from
//! the negotiated revision and answers to it.

use std::sync::{Arc, Mutex};

use serde::Serialize;
use serde_json::Value;

use super::event::{ClientChange, ConnectionEvent, LogMessage};
use crate::annotations::Role;
use crate::background::BoxFuture;
use crate::content::Content;
use crate::cx::Root;
use crate::notification::NotificationHandlers;
use crate::outgoing::{self, home_revision};
use crate::panics::{catch_future_panic, contain_panic};
use crate::params::{object_member, string_member};
use crate::protocol::{Json, JsonObject, MethodId, PeerError, Revision};
use crate::repairs::RepairReports;
use crate::sync::lock;
use crate::visit::{Visit, VisitAnswer};

/// Handlers that the application has registered for requests and notifications of the server, with the capabilities
/// that they imply.
#[derive(Clone, Default)]
pub(super) struct Handlers {
    /// Handler for forms (elicitation mode `form`).
    pub(super) on_elicit: Option<Arc<dyn Fn(Form) -> BoxFuture<FormAnswer> + Send + Sync>>,
    /// Handler for requests to visit a page (elicitation mode `url`).
    pub(super) on_visit: Option<Arc<dyn Fn(Visit) -> BoxFuture<VisitAnswer> + Send + Sync>>,
    /// Handler for sampling requests.
    pub(super) sample: Option<Arc<dyn Fn(SampleRequest) -> BoxFuture<SampleReply> + Send + Sync>>,
    /// Roots that the server may request; `None` if the client does not declare the capability `roots`.
    pub(super) roots: Option<RootsList>,
    /// Capabilities that the application declares itself; they replace those derived from the handlers.
    pub(super) declared_capabilities: JsonObject,
    /// Handlers of notifications of the server.
    pub(super) notifications: NotificationHandlers,
    /// Reports of repaired messages.
    pub(super) repairs: RepairReports,
    /// Maximum number of pages of one list; `None` for the default.
    pub(super) max_pages: Option<usize>,
    /// Tools that are switched on.
    #[cfg(feature = "process")]
    pub(super) tool_filter: mcp_exact_tool_schema::ToolFilter,
    /// Handler for log messages of the server.
    pub(super) on_log: Option<Arc<dyn Fn(LogMessage) + Send + Sync>>,
    /// Handler for changes that the server announces.
    pub(super) on_change: Option<Arc<dyn Fn(ClientChange) + Send + Sync>>,
    /// Handler for changes of the connection.
    pub(super) on_connection_event: Option<Arc<dyn Fn(ConnectionEvent) + Send + Sync>>,
    /// True if structured results are validated against the output schemas of their tools.
    #[cfg(feature = "validation")]
    pub(super) validates_output: bool,
}

/// Roots of a client, which the application can replace while the client is connected; clones share the roots.
#[derive(Clone)]
pub(super) struct RootsList(Arc<Mutex<Vec<Root>>>);

impl RootsList {
    pub(super) fn new(roots: Vec<Root>) -> Self {
        Self(Arc::new(Mutex::new(roots)))
    }

    /// Replaces the roots.
    pub(super) fn set(&self, roots: Vec<Root>) {
        *lock(&self.0) = roots;
    }

    /// Returns the result of `roots/list`.
    fn result(&self) -> JsonObject {
        let roots = lock(&self.0);
        let roots: Vec<JsonObject> = roots.iter().map(root_json).collect();
        JsonObject::from_iter([("roots", Json::from_encode(&roots))])
    }
}

/// Form that the server asks the user to fill in (`client/elicitation`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Form {
    /// Params of `elicitation/create`.
    params: JsonObject,
}

/// Answer to a [`Form`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FormAnswer {
    /// Result of `elicitation/create`.
    result: JsonObject,
}

impl Form {
    /// Returns the message to the user.
    pub fn message(&self) -> String {
        string_member(&self.params, "message").unwrap_or_default()
    }

    /// Returns the schema of the form: a flat object of primitive fields.
    pub fn schema(&self) -> Option<JsonObject> {
        object_member(&self.params, "requestedSchema")
    }

    /// Creates the answer `accept` with the values that the user has submitted. If the values violate the schema, the
    /// server receives an error instead of the answer.
    pub fn accept<T: Serialize + ?Sized>(&self, values: &T) -> FormAnswer {
        // A value that is not JSON is rejected later, with other violations of the schema.
        let content = Json::from_serialize(values).unwrap_or(Json::null());
        let mut result = result_with_action("accept");
        result.insert("content", content);
        FormAnswer { result }
    }

    /// Creates the answer `decline`: the user has declined.
    pub fn decline(&self) -> FormAnswer {
        FormAnswer {
            result: result_with_action("decline"),
        }
    }

    /// Creates the answer `cancel`: the user has closed the dialogue.
    pub fn cancel(&self) -> FormAnswer {
        FormAnswer {
            result: result_with_action("cancel"),
        }
    }
}

/// Returns an elicitation result with the action `name` and without content.
fn result_with_action(name: &str) -> JsonObject {
    JsonObject::from_iter([("action", Json::string(name))])
}

/// Request of the server for a message of the client's model (`client/sampling`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SampleRequest {
    /// Params of `sampling/createMessage`.
    params: JsonObject,
}

impl SampleRequest {
    /// Returns the parameters: `messages`, `maxTokens` and so on.
    pub fn params(&self) -> &JsonObject {
        &self.params
    }

    /// Returns the text blocks of the last message, joined by line breaks.
    pub fn text(&self) -> String {
        let messages = self
            .params
            .get("messages")
            .and_then(|messages| messages.decode_as::<Vec<JsonObject>>().ok());
        let last = messages.unwrap_or_default().pop();
        let content = last
            .and_then(|message| message.get("content"))
            .unwrap_or(Json::null());
        let blocks = match JsonObject::try_from(content) {
            Ok(block) => vec![block],
            Err(list) => list.decode_as().unwrap_or_default(),
        };
        let texts = blocks
            .iter()
            .filter_map(|block| Some(block.view().find("text")?.as_str()?.into_owned()));
        texts.collect::<Vec<_>>().join("\n")
    }
}

/// Answer to a [`SampleRequest`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SampleReply {
    /// Result of `sampling/createMessage`, or the error to reply with.
    answer: Result<JsonObject, PeerError>,
}

impl SampleReply {
    /// Creates an answer with an assistant message that the model named `model` has generated, and the stop reason
    /// `endTurn`.
    pub fn message(model: &str, content: impl Into<Content>) -> Self {
        Self {
            answer: Ok(JsonObject::from_iter([
                ("role", Json::string(Role::Assistant.name())),
                ("content", content.into().into_object().into()),
                ("model", Json::string(model)),
                ("stopReason", Json::string("endTurn")),
            ])),
        }
    }

    /// Creates an answer from a complete result in the form of revision 2026-07-28 (`role`, `content`, `model` and so
    /// on), such as a result with several content blocks or another `stopReason`.
    pub fn from_result(result: JsonObject) -> Self {
        Self { answer: Ok(result) }
    }

    /// Creates an error answer, such as when the user does not allow the request.
    pub fn refuse(message: impl Into<String>) -> Self {
        // "User rejected sampling request" has this code in the examples of `client/sampling`.
        Self {
            answer: Err(PeerError::new(-1, message)),
        }
    }
}

impl Handlers {
    /// Returns the capabilities that the client declares.
    pub(super) fn capabilities(&self) -> JsonObject {
        let mut capabilities = JsonObject::new();
        let modes = [
            ("form", self.on_elicit.is_some()),
            ("url", self.on_visit.is_some()),
        ];
        let modes = modes.into_iter().filter(|(_, has_handler)| *has_handler);
        let modes: JsonObject = modes.map(|(mode, _)| (mode, JsonObject::new())).collect();
        if !modes.is_empty() {
            capabilities.insert("elicitation", modes);
        }
        if self.sample.is_some() {
            capabilities.insert("sampling", JsonObject::new());
        }
        if self.roots.is_some() {
            capabilities.insert("roots", JsonObject::from_iter([("listChanged", true)]));
        }
        for (name, value) in self.declared_capabilities.iter() {
            capabilities.insert(&name, value.parse::<Json>().unwrap_or(Json::null()));
        }
        capabilities
    }

    /// Calls the handler for log messages, if there is one.
    pub(super) fn handle_log(&self, message: LogMessage) {
        if let Some(handler) = &self.on_log {
            contain_panic("on_log", || handler(message));
        }
    }

    /// Calls the handler for changes, if there is one.
    pub(super) fn handle_change(&self, change: ClientChange) {
        if let Some(handler) = &self.on_change {
            contain_panic("on_change", || handler(change));
        }
    }

    /// Calls the handler for changes of the connection, if there is one.
    pub(super) fn handle_connection_event(&self, event: ConnectionEvent) {
        if let Some(handler) = &self.on_connection_event {
            contain_panic("on_connection_event", || handler(event));
        }
    }

    /// Answers an input request of the server. If the handler panics, the answer is an internal error.
    pub(super) fn answer_input_request(
        &self,
        method: &str,
        params: Option<&JsonObject>,
        revision: Revision,
    ) -> impl Future<Output = Result<JsonObject, PeerError>> + Send + use<> {
        let (handlers, method) = (self.clone(), method.to_owned());
        let params = params.cloned().unwrap_or_default();
        async move {
            let params =
                outgoing::convert_input_request(&method, &params, (revision, home_revision()))
                    .map_err(PeerError::invalid_params)?;
            let result =
                catch_future_panic(handlers.answer_in_home_revision(&method, params)).await;
            let result = result.unwrap_or_else(|message| {
                tracing::error!(%message, "the handler of `{method}` panicked");
                Err(PeerError::internal("the handler of the client panicked"))
            })?;
            outgoing::convert_input_response(&method, &result, (home_revision(), revision))
                .map_err(PeerError::internal)
        }
    }

    /// Answers an input request whose params and result have the form of the home revision.
    async fn answer_in_home_revision(
        &self,
        method: &str,
        params: JsonObject,
    ) -> Result<JsonObject, PeerError> {
        let unknown = || PeerError::method_not_found(method);
        match MethodId::from_name(method) {
            MethodId::ElicitationCreate
                if string_member(&params, "mode").as_deref() == Some("url") =>
            {
                let handler = self.on_visit.as_ref();
                let handler = handler.ok_or_else(|| unsupported_mode("url"))?;
                // A URL that could display one host and open another is not shown to the user.
                let visit = Visit::new(string_member(&params, "url").unwrap_or_default())
                    .map_err(|error| PeerError::invalid_params(error.to_string()))?;
                let message = string_member(&params, "message").unwrap_or_default();
                let answer = handler(visit.with_message(message)).await;
                Ok(result_with_action(answer.action()))
            }
            MethodId::ElicitationCreate => {
                let handler = self.on_elicit.as_ref();
                let handler = handler.ok_or_else(|| unsupported_mode("form"))?;
                let form = Form { params };
                let schema = form.schema();
                let answer = handler(form).await.result;
                check_form(schema.as_ref(), &answer)?;
                Ok(answer)
            }
            MethodId::SamplingCreateMessage => {
                let handler = self.sample.as_ref().ok_or_else(unknown)?;
                handler(SampleRequest { params }).await.answer
            }
            MethodId::RootsList => {
                let roots = self.roots.as_ref().ok_or_else(unknown)?;
                Ok(roots.result())
            }
            _ => Err(unknown()),
        }
    }
}

/// Returns the error `-32602` for an elicitation mode that the client does not support (`client/elicitation`, "Error
/// Handling").
fn unsupported_mode(mode: &str) -> PeerError {
    PeerError::invalid_params(format!(
        "the client does not support elicitation in the mode `{mode}`"
    ))
}

/// Returns a root as an element of the result of `roots/list`.
fn root_json(root: &Root) -> JsonObject {
    let mut object = JsonObject::from_iter([("uri", Json::string(&root.uri))]);
    if let Some(name) = &root.name {
        object.insert("name", Json::string(name));
    }
    object
}

/// Validates the values of an answer against the schema of its form ("Clients SHOULD validate user responses against
/// the provided schema", `client/elicitation`).
fn check_form(schema: Option<&JsonObject>, answer: &JsonObject) -> Result<(), PeerError> {
    let (Some(schema), Some(content)) = (schema, answer.get("content")) else {
        return Ok(());
    };
    let refuse = |reason: String| {
        PeerError::internal(format!(
            "the answer of the client leaves the form: {reason}"
        ))
    };
    let schema: Value = schema.parse().map_err(|error| refuse(error.to_string()))?;
    let content: Value = content.parse().map_err(|error| refuse(error.to_string()))?;
    crate::form_values::form_violation(&schema, &content)
        .map_or(Ok(()), |problem| Err(refuse(problem)))
}
