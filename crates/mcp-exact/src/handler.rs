//! Handlers: async functions and closures whose arguments are extractors and whose result becomes a reply.
//!
//! A function of up to eight extractors is converted to a type-erased handler, which the catalogue of the server
//! stores.

use std::pin::Pin;
use std::sync::Arc;

use crate::background::BoxFuture;
use crate::call::{Call, FromCall, Signature};
use crate::error::Error;
use crate::protocol::JsonObject;
use crate::reply::IntoReply;

/// Async function that answers a call.
///
/// Implemented for functions and closures of up to eight arguments which implement [`FromCall`] and whose output
/// implements [`IntoReply<O>`]: `O` is [`ToolResult`](crate::ToolResult) for tools,
/// [`PromptResult`](crate::PromptResult) for prompts, [`Contents`](crate::Contents) for resources,
/// [`ResourcePage`](crate::ResourcePage) for lists and [`Completions`](crate::Completions) for completions. `A` distinguishes the implementations and is inferred.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a handler that returns `{O}`",
    label = "no handler",
    note = "a handler is an async function or a closure with an async block; every argument is `Input<T>`, `State<S>`, `Cx` or another `FromCall`, types of closure arguments are written out",
    note = "its result is a `String`, `Json<T>`, `{O}` or a `Result` of one of these, and its future is `Send`"
)]
pub trait Handler<A, O>: Clone + Send + Sync + 'static {
    /// Calls the handler.
    fn call(&self, call: Call) -> Pin<Box<dyn Future<Output = Result<O, Error>> + Send>>;

    /// Returns the requirements and the result type of the handler.
    fn signature() -> Signature;
}

/// Implements [`Handler`] for functions whose arguments are the given extractors.
macro_rules! impl_handler {
    ($($name:ident),*) => {
        impl<Function, Output, Kind, $($name,)*> Handler<($($name,)*), Kind> for Function
        where
            Function: Fn($($name),*) -> Output + Clone + Send + Sync + 'static,
            Output: Future + Send + 'static,
            Output::Output: IntoReply<Kind>,
            Kind: Send + 'static,
            $($name: FromCall + Send + 'static,)*
        {
            #[allow(non_snake_case, unused_variables, reason = "one macro for all numbers of arguments")]
            fn call(&self, call: Call) -> BoxFuture<Result<Kind, Error>> {
                $(
                    let $name = match $name::from_call(&call) {
                        Ok(argument) => argument,
                        Err(error) => return Box::pin(std::future::ready(Err(error))),
                    };
                )*
                let output = self($($name),*);
                Box::pin(async move { output.await.into_reply() })
            }

            fn signature() -> Signature {
                #[allow(unused_mut, reason = "a handler without arguments needs nothing")]
                let mut signature = Signature::default();
                $($name::declare_requirements(&mut signature);)*
                signature.output = <Output::Output as IntoReply<Kind>>::output_schema();
                signature
            }
        }
    };
}

impl_handler!();
impl_handler!(A1);
impl_handler!(A1, A2);
impl_handler!(A1, A2, A3);
impl_handler!(A1, A2, A3, A4);
impl_handler!(A1, A2, A3, A4, A5);
impl_handler!(A1, A2, A3, A4, A5, A6);
impl_handler!(A1, A2, A3, A4, A5, A6, A7);
impl_handler!(A1, A2, A3, A4, A5, A6, A7, A8);

/// Type-erased handler.
pub(crate) struct ErasedHandler<O> {
    /// Function that calls the handler.
    call: Arc<dyn Fn(Call) -> BoxFuture<Result<O, Error>> + Send + Sync>,
}

/// Type-erased handler with its requirements, as it is registered. Functions with this parameter type are compiled once
/// for all handlers.
pub(crate) type RegisteredHandler<O> = (ErasedHandler<O>, Signature);

impl<O: 'static> ErasedHandler<O> {
    pub(crate) fn new<A, H: Handler<A, O>>(handler: H) -> RegisteredHandler<O> {
        let erased = Self {
            call: Arc::new(move |call| handler.call(call)),
        };
        (erased, H::signature())
    }

    /// Creates a type-erased handler from a function.
    pub(crate) fn from_fn(
        call: impl Fn(Call) -> BoxFuture<Result<O, Error>> + Send + Sync + 'static,
    ) -> Self {
        Self {
            call: Arc::new(call),
        }
    }

    pub(crate) fn call(&self, call: Call) -> BoxFuture<Result<O, Error>> {
        (self.call)(call)
    }

    /// Returns the handler with its output converted by `object` to the result object of its method, so that the same
    /// code runs handlers of all kinds.
    pub(crate) fn into_object_handler(
        self,
        object: impl Fn(O, &Call) -> JsonObject + Send + Sync + 'static,
    ) -> ErasedHandler<JsonObject>
    where
        O: Send,
    {
        let object = Arc::new(object);
        ErasedHandler::from_fn(move |call| {
            let (output, object) = (self.call(call.clone()), Arc::clone(&object));
            Box::pin(async move { Ok(object(output.await?, &call)) })
        })
    }
}

impl<O> Clone for ErasedHandler<O> {
    fn clone(&self) -> Self {
        Self {
            call: Arc::clone(&self.call),
        }
    }
}
