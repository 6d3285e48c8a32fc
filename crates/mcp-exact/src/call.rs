//! A call of a handler, and what an argument of a handler is: [`FromCall`]. The extractors are in `extract.rs`.

use std::any::{TypeId, type_name};

use schemars::JsonSchema;
use serde_json::Value;

use crate::cx::Cx;
use crate::error::Error;
use crate::protocol::{JsonObject, ObjectRef};
use crate::schema::{self, InputSchema};

/// One call of a handler, from which extractors obtain their values.
#[derive(Clone)]
pub struct Call(Cx);

impl Call {
    pub(crate) fn new(cx: &Cx) -> Self {
        Self(cx.clone())
    }

    /// Returns a borrowed view of the arguments.
    pub(crate) fn argument_view(&self) -> ObjectRef<'_> {
        self.0.input().argument_view(self.0.request())
    }

    /// Returns the arguments of a tool as received, the string arguments of a prompt, or the variables of a resource
    /// template.
    pub fn arguments(&self) -> &JsonObject {
        self.0.input().arguments(self.0.request())
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
        self.0.input().states().get()
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
