//! Extractors: the possible arguments of handlers.
//!
//! Each extractor obtains its value from a call and declares its requirements when the handler is registered.

use std::any::{Any, TypeId, type_name};
use std::collections::HashMap;
use std::ops::{Deref, Range};
use std::sync::{Arc, OnceLock};

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::cx::Cx;
use crate::decode::{self, Mismatch};
use crate::error::Error;
use crate::link::Request;
use crate::protocol::{JsonObject, JsonRef, ObjectRef, Principal, Revision};
use crate::schema::{self, InputSchema};
use crate::server::Server;

/// One call of a handler, from which extractors obtain their values.
#[derive(Clone)]
pub struct Call(Cx);

/// Arguments, URI and server of one call.
pub(crate) struct CallInput {
    /// Arguments of the call.
    arguments: Arguments,
    /// URI of the resource that is read.
    uri: Option<String>,
    /// Server whose handler the call runs.
    server: Server,
    /// Copy of the arguments for handlers that read the arguments without decoding.
    copied_arguments: OnceLock<JsonObject>,
}

impl CallInput {
    pub(crate) fn new(arguments: Arguments, uri: Option<String>, server: Server) -> Self {
        Self {
            arguments,
            uri,
            server,
            copied_arguments: OnceLock::new(),
        }
    }

    /// Returns the server that answers the call.
    pub(crate) fn server(&self) -> &Server {
        &self.server
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
    /// Returns the location of `arguments` in the text of the params; `None` if `arguments` is a value other than an
    /// object.
    pub(crate) fn in_params(params: &JsonObject, arguments: Option<JsonRef<'_>>) -> Option<Self> {
        let Some(arguments) = arguments else {
            return Some(Self::None);
        };
        let arguments = arguments.object()?.text();
        let start = arguments.as_ptr().addr() - params.text().as_ptr().addr();
        Some(Self::InParams(start..start + arguments.len()))
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

impl Call {
    pub(crate) fn new(cx: &Cx) -> Self {
        Self(cx.clone())
    }

    /// Returns a borrowed view of the arguments.
    fn argument_view(&self) -> ObjectRef<'_> {
        self.0.input().arguments.view(self.0.request())
    }

    /// Returns the arguments of a tool as received, the string arguments of a prompt, or the variables of a resource
    /// template.
    pub fn arguments(&self) -> &JsonObject {
        let input = self.0.input();
        match &input.arguments {
            Arguments::Own(arguments) => arguments,
            _ => {
                let copy = || self.argument_view().to_object();
                input.copied_arguments.get_or_init(copy)
            }
        }
    }

    /// Returns the URI that is read; `None` for tools and prompts.
    pub fn uri(&self) -> Option<&str> {
        self.0.input().uri()
    }

    /// Returns the context of the request.
    pub fn cx(&self) -> &Cx {
        &self.0
    }

    /// Returns the state of the type `S`, if the server has one.
    pub fn state<S: Clone + Send + Sync + 'static>(&self) -> Option<S> {
        self.0.input().server.states().get()
    }
}

/// States of a server, by type.
#[derive(Clone, Default)]
pub(crate) struct States(Arc<HashMap<TypeId, RegisteredState>>);

/// A state and the name of its type.
#[derive(Clone)]
struct RegisteredState {
    /// Name of the state's type.
    name: &'static str,
    state: Arc<dyn Any + Send + Sync>,
}

impl States {
    /// Adds a state; replaces an earlier one of the same type.
    pub(crate) fn insert<S: Clone + Send + Sync + 'static>(&mut self, state: S) {
        let kept = RegisteredState {
            name: type_name::<S>(),
            state: Arc::new(state),
        };
        Arc::make_mut(&mut self.0).insert(TypeId::of::<S>(), kept);
    }

    /// Returns a copy of the state of the type `S`.
    fn get<S: Clone + Send + Sync + 'static>(&self) -> Option<S> {
        let kept = self.0.get(&TypeId::of::<S>())?;
        kept.state.downcast_ref::<S>().cloned()
    }

    /// Returns true if there is a state of this type.
    pub(crate) fn contains(&self, state: TypeId) -> bool {
        self.0.contains_key(&state)
    }

    /// Adds the states of another builder; returns the names of the types that both builders have.
    pub(crate) fn merge(&mut self, other: &Self) -> Vec<&'static str> {
        let states = Arc::make_mut(&mut self.0);
        let mut twice = Vec::new();
        for (id, kept) in other.0.iter() {
            if states.insert(*id, kept.clone()).is_some() {
                twice.push(kept.name);
            }
        }
        twice.sort_unstable();
        twice
    }
}

/// Requirements of a handler's arguments, collected when the handler is registered.
#[derive(Debug, Clone, Default)]
pub struct Signature {
    /// Functions that derive the JSON Schemas of the decoded arguments, one for each `Input`.
    pub(crate) inputs: Vec<InputSchema>,
    /// Types of the required states, with their names.
    pub(crate) states: Vec<(TypeId, &'static str)>,
    /// True if the handler reads arguments that no schema describes.
    pub(crate) takes_any_arguments: bool,
    /// JSON Schema of the structured result; `None` for other results.
    pub(crate) output: Option<Value>,
}

impl Signature {
    /// Declares that the handler's arguments are decoded as a value of the type `T`.
    pub fn takes_input<T: JsonSchema>(&mut self) {
        self.inputs.push(schema::input_schema_of::<T>);
    }

    /// Declares that the handler reads the arguments without decoding them. A tool that does not set a schema is then
    /// advertised with a schema that accepts any arguments.
    pub fn takes_any_arguments(&mut self) {
        self.takes_any_arguments = true;
    }

    /// Declares that the handler needs a state of the type `S`.
    pub fn takes_state<S: 'static>(&mut self) {
        self.states.push((TypeId::of::<S>(), type_name::<S>()));
    }
}

/// Argument of a handler.
///
/// Implement this trait for types that are extracted from a request, such as a tenant that a header names:
///
/// ```
/// use mcp_exact::{Call, Error, FromCall, Server};
///
/// struct Tenant(String);
///
/// impl FromCall for Tenant {
///     fn from_call(call: &Call) -> Result<Self, Error> {
///         let header = call.cx().header("x-tenant");
///         Ok(Self(header.unwrap_or("default").to_owned()))
///     }
/// }
///
/// let server = Server::builder("demo", "1.0.0").tool("tenant", |tenant: Tenant| async move { tenant.0 }).build()?;
/// # Ok::<(), mcp_exact::BuildError>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be an argument of a handler",
    label = "no extractor",
    note = "take tool arguments as `Input<T>`, states as `State<S>`, the context as `Cx` (by value), or implement `FromCall`"
)]
pub trait FromCall: Sized {
    /// Extracts the argument from a call.
    ///
    /// # Errors
    /// The error that ends the call without running the handler.
    fn from_call(call: &Call) -> Result<Self, Error>;

    /// Declares the requirements of the argument.
    fn declare_requirements(signature: &mut Signature) {
        let _ = signature;
    }
}

/// Decoded arguments of the call: the arguments of a tool or prompt, or the variables of a resource template.
///
/// `T` derives `serde::Deserialize` and `schemars::JsonSchema`; doc comments become descriptions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Input<T>(pub T);

impl<T: DeserializeOwned + JsonSchema> FromCall for Input<T> {
    fn from_call(call: &Call) -> Result<Self, Error> {
        match decode::decode_object(call.argument_view()) {
            Ok(arguments) => Ok(Self(arguments)),
            Err(mismatch) => Err(bad_arguments(mismatch)),
        }
    }

    fn declare_requirements(signature: &mut Signature) {
        signature.takes_input::<T>();
    }
}

/// Returns the error for arguments that cannot be decoded.
fn bad_arguments(mismatch: Mismatch) -> Error {
    Error::invalid_arguments(mismatch.pointer(), mismatch.into_reason())
}

/// State of the server that was registered with [`state`](crate::ServerBuilder::state). States are cloned for each
/// call: use `Arc` for values that are expensive to clone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct State<S>(pub S);

impl<S> Deref for State<S> {
    type Target = S;

    fn deref(&self) -> &S {
        &self.0
    }
}

impl<S: Clone + Send + Sync + 'static> FromCall for State<S> {
    fn from_call(call: &Call) -> Result<Self, Error> {
        // The builder has checked that the state is registered.
        let missing = || Error::msg(format!("the server has no state `{}`", type_name::<S>()));
        call.state().map(Self).ok_or_else(missing)
    }

    fn declare_requirements(signature: &mut Signature) {
        signature.takes_state::<S>();
    }
}

impl FromCall for Cx {
    fn from_call(call: &Call) -> Result<Self, Error> {
        Ok(call.cx().clone())
    }
}

impl FromCall for Call {
    fn from_call(call: &Call) -> Result<Self, Error> {
        Ok(call.clone())
    }

    fn declare_requirements(signature: &mut Signature) {
        signature.takes_any_arguments();
    }
}

/// Arguments of the call, as received.
impl FromCall for JsonObject {
    fn from_call(call: &Call) -> Result<Self, Error> {
        Ok(call.arguments().clone())
    }

    fn declare_requirements(signature: &mut Signature) {
        signature.takes_any_arguments();
    }
}

/// Server that answers the call; see [`Cx::server`].
impl FromCall for Server {
    fn from_call(call: &Call) -> Result<Self, Error> {
        Ok(call.cx().server())
    }
}

/// Authenticated principal; a call without authentication ends with an error.
impl FromCall for Principal {
    fn from_call(call: &Call) -> Result<Self, Error> {
        let missing =
            || Error::msg("the request is not authenticated; authenticate and call again");
        call.cx().principal().cloned().ok_or_else(missing)
    }
}

impl FromCall for Option<Principal> {
    fn from_call(call: &Call) -> Result<Self, Error> {
        Ok(call.cx().principal().cloned())
    }
}

/// Claims of the access token; a call without a token ends with an error.
#[cfg(feature = "oauth-server")]
impl FromCall for mcp_exact_auth::server::Access {
    fn from_call(call: &Call) -> Result<Self, Error> {
        let missing = || Error::msg("the request has no access token; authorize and call again");
        call.cx().access().cloned().ok_or_else(missing)
    }
}

#[cfg(feature = "oauth-server")]
impl FromCall for Option<mcp_exact_auth::server::Access> {
    fn from_call(call: &Call) -> Result<Self, Error> {
        Ok(call.cx().access().cloned())
    }
}

impl FromCall for Revision {
    fn from_call(call: &Call) -> Result<Self, Error> {
        Ok(call.cx().revision())
    }
}

/// Names and values of the HTTP request's headers; empty on other transports.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Headers(pub Vec<(String, String)>);

impl Headers {
    /// Returns the value of a header, or the first of several values; the name is case-insensitive.
    pub fn get(&self, name: &str) -> Option<&str> {
        let mut all = self.0.iter();
        let found = all.find(|(known, _)| known.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    }
}

impl FromCall for Headers {
    fn from_call(call: &Call) -> Result<Self, Error> {
        let all = call.cx().request().headers();
        let owned = all.map(|(name, value)| (name.to_owned(), value.to_owned()));
        Ok(Self(owned.collect()))
    }
}

/// `_meta` of the request's parameters; empty if the request has none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Meta(pub JsonObject);

impl FromCall for Meta {
    fn from_call(call: &Call) -> Result<Self, Error> {
        Ok(Self(call.cx().meta().unwrap_or_default()))
    }
}

/// A complete request as received, for handlers of [`ServerBuilder::raw`](crate::ServerBuilder::raw) and
/// [`ServerBuilder::method`](crate::ServerBuilder::method).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RawRequest {
    /// Method of the request, such as `tools/call`.
    pub method: String,
    /// Parameters of the request, in the form of the negotiated revision.
    pub params: Option<JsonObject>,
}

impl FromCall for RawRequest {
    fn from_call(call: &Call) -> Result<Self, Error> {
        let request = call.cx().request();
        Ok(Self {
            method: request.method().to_owned(),
            params: request.params().cloned(),
        })
    }
}

/// URI of the resource that is read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Uri(pub String);

impl FromCall for Uri {
    fn from_call(call: &Call) -> Result<Self, Error> {
        let missing =
            || Error::msg("`Uri` belongs to handlers of resources; take it out of this one");
        call.uri()
            .map(|uri| Self(uri.to_owned()))
            .ok_or_else(missing)
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;
    use crate::error::InvalidArguments;

    /// Type of the decoded arguments.
    #[derive(Debug, Deserialize)]
    #[allow(dead_code)]
    struct Route {
        stops: Vec<Stop>,
    }

    /// Object with a member whose name is escaped in a JSON pointer.
    #[derive(Debug, Deserialize)]
    #[allow(dead_code)]
    struct Stop {
        #[serde(rename = "a/b")]
        at: u8,
    }

    /// Decodes a [`Route`], which must fail; returns the pointer and the reason of the error.
    fn route_error(text: &str) -> (String, String) {
        let arguments: JsonObject = text.parse().expect("an object");
        let mismatch = decode::decode_object::<Route>(arguments.view()).expect_err("bad arguments");
        let error = bad_arguments(mismatch);
        let error = error
            .downcast_ref::<InvalidArguments>()
            .expect("bad arguments");
        (error.pointer.clone(), error.reason.clone())
    }

    /// The error for invalid arguments contains the JSON pointer of the value that does not match its type.
    #[test]
    fn bad_arguments_name_the_member() {
        let (pointer, reason) = route_error(r#"{"stops":[{"a/b":1},{"a/b":256}]}"#);
        assert_eq!(pointer, "/stops/1/a~1b");
        assert_eq!(
            reason,
            "invalid value: integer `256`, expected an integer from 0 to 255"
        );
        let (pointer, reason) = route_error(r#"{"stops":[{}]}"#);
        assert_eq!(pointer, "/stops/0");
        assert_eq!(reason, "missing field `a/b`");
        assert_eq!(route_error("{}").0, "");
    }
}
