//! Input of a call: its arguments, its URI, and the server with its states.

use std::any::Any;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

use crate::link::Request;
use crate::protocol::{JsonObject, JsonRef, ObjectRef, PeerError};
use crate::states::States;

/// Input of one call.
pub(crate) struct CallInput {
    /// Arguments of the call.
    arguments: Arguments,
    /// URI of the resource that is read.
    uri: Option<String>,
    /// States of the server.
    states: States,
    /// Server whose handler the call runs: a value of a type that only the module of servers knows, because handlers and
    /// their contexts are parts of a server.
    server: Arc<dyn Any + Send + Sync>,
    /// Copy of the arguments for handlers that read the arguments without decoding.
    copied_arguments: OnceLock<JsonObject>,
}

impl CallInput {
    pub(crate) fn new(
        arguments: Arguments,
        uri: Option<String>,
        states: States,
        server: Arc<dyn Any + Send + Sync>,
    ) -> Self {
        Self {
            arguments,
            uri,
            states,
            server,
            copied_arguments: OnceLock::new(),
        }
    }

    /// Returns the data of the server that answers the call.
    pub(crate) fn server(&self) -> &Arc<dyn Any + Send + Sync> {
        &self.server
    }

    /// Returns the states of the server.
    pub(crate) fn states(&self) -> &States {
        &self.states
    }

    /// Returns the arguments; `request` is the request of the call.
    pub(crate) fn argument_view<'c>(&'c self, request: &'c Request) -> ObjectRef<'c> {
        self.arguments.view(request)
    }

    /// Returns the arguments as an object, which is copied from the text of the request once.
    pub(crate) fn arguments<'c>(&'c self, request: &Request) -> &'c JsonObject {
        match &self.arguments {
            Arguments::Own(arguments) => arguments,
            _ => {
                let copy = || self.arguments.view(request).to_object();
                self.copied_arguments.get_or_init(copy)
            }
        }
    }

    /// Returns the URI of the resource that is read; `None` for tools and prompts.
    pub(crate) fn uri(&self) -> Option<&str> {
        self.uri.as_deref()
    }
}

/// Location of the arguments of a call.
pub(crate) enum Arguments {
    /// The call has no arguments.
    None,
    /// Byte range of the arguments in the text of the request's params.
    InParams(Range<usize>),
    /// Arguments that the server has created, such as the variables of a resource template.
    Own(JsonObject),
}

impl Arguments {
    /// Returns the location of the arguments of a call. `given` is the value of `arguments` in `params`.
    ///
    /// # Errors
    /// The error to reply with, if `given` is a value other than an object.
    pub(crate) fn in_params(
        params: &JsonObject,
        given: Option<JsonRef<'_>>,
    ) -> Result<Self, PeerError> {
        let Some(given) = given else {
            return Ok(Self::None);
        };
        let wrong = || PeerError::invalid_params("`arguments` must be an object");
        let given = given.object().ok_or_else(wrong)?.text();
        let start = given.as_ptr().addr() - params.text().as_ptr().addr();
        Ok(Self::InParams(start..start + given.len()))
    }

    /// Returns the arguments; `request` is the request that they belong to.
    pub(crate) fn view<'c>(&'c self, request: &'c Request) -> ObjectRef<'c> {
        match self {
            Self::None => ObjectRef::default(),
            Self::InParams(range) => {
                let params = request.params().map(JsonObject::text);
                let text = params.and_then(|params| params.get(range.clone()));
                text.map_or_else(ObjectRef::default, ObjectRef::from_checked)
            }
            Self::Own(arguments) => arguments.view(),
        }
    }
}
