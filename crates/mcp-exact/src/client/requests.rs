//! The requests of a client: calls of tools, lists, resources, prompts, completions and subscriptions.

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::Client;
use super::call::{ClientCall, Request};
use super::error::ClientError;
use super::list::List;
use super::output::{CompletionOutput, PromptOutput, ResourceOutput, ToolOutput};
use super::subscribe::Subscription;
use crate::protocol::{Json, JsonObject, method};

impl Client {
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
        List::new(self, method::TOOLS_LIST, "tools")
    }

    /// Lists the resources, page by page.
    pub fn resources(&self) -> List {
        List::new(self, method::RESOURCES_LIST, "resources")
    }

    /// Lists the resource templates, page by page.
    pub fn resource_templates(&self) -> List {
        List::new(self, method::RESOURCES_TEMPLATES_LIST, "resourceTemplates")
    }

    /// Lists the prompts, page by page.
    pub fn prompts(&self) -> List {
        List::new(self, method::PROMPTS_LIST, "prompts")
    }

    /// Reads a resource.
    pub fn read(&self, uri: &str) -> ClientCall<ResourceOutput> {
        let params = JsonObject::from_iter([("uri", Json::string(uri))]);
        let decode = ResourceOutput::new;
        ClientCall::new(self, method::RESOURCES_READ, params, decode)
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
        ClientCall::new(self, method::PROMPTS_GET, params, decode)
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
        ClientCall::new(self, method::COMPLETION_COMPLETE, params, decode)
    }

    /// Sends a request and returns its result in the form of the home revision. `params` must have the form of the
    /// negotiated revision.
    ///
    /// Dropping the future cancels the request.
    pub fn request(&self, method: &str, params: Option<JsonObject>) -> Request {
        Request::new(self, method, params)
    }

    /// Subscribes to updates of resources. The handler of [`Connect::on_change`](super::Connect::on_change) is called for
    /// each update until the subscription is dropped.
    ///
    /// # Errors
    /// [`ClientError`] if the server rejects the subscription to one of the URIs, or does not answer within the
    /// [idle timeout](super::Connect::idle_timeout) (from 2026-07-28 on: [`ClientError::NotAcknowledged`], and
    /// [`ClientError::SubscriptionEnded`] if it ends the subscription before); the client is then subscribed to none of the URIs.
    pub async fn subscribe<'u>(
        &self,
        uris: impl IntoIterator<Item = &'u str>,
    ) -> Result<Subscription, ClientError> {
        let uris = uris.into_iter().map(str::to_owned).collect();
        Subscription::begin(self, uris).await
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
