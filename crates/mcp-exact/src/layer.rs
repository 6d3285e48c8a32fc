//! `tower` layers around the handlers of tools, such as limits of time, rate and concurrency.
//!
//! A layer wraps a handler, and the type of the layered service is erased.

use std::future::poll_fn;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use tower_layer::Layer;
use tower_service::Service;

use crate::background::BoxFuture;
use crate::call::Call;
use crate::error::{BoxError, Error};
use crate::handler::ErasedHandler;
use crate::reply::ToolResult;
use crate::sync::lock;

/// Handler of a tool as a `tower` service, for the layers of [`ServerBuilder::layer`](crate::ServerBuilder::layer).
#[derive(Clone)]
pub struct ToolService {
    handler: ErasedHandler<ToolResult>,
}

impl Service<Call> for ToolService {
    type Response = ToolResult;
    type Error = BoxError;
    type Future = BoxFuture<Result<ToolResult, BoxError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, call: Call) -> Self::Future {
        let result = self.handler.call(call);
        Box::pin(async move { result.await.map_err(BoxError::from) })
    }
}

/// Type-erased layer, as a function from a handler to the layered handler.
pub(crate) type LayerFn =
    Arc<dyn Fn(ErasedHandler<ToolResult>) -> ErasedHandler<ToolResult> + Send + Sync>;

/// Converts a layer to a [`LayerFn`], whose type does not depend on the type of the layer.
pub(crate) fn erase_layer<L, S>(layer: L) -> LayerFn
where
    L: Layer<ToolService, Service = S> + Send + Sync + 'static,
    S: Service<Call, Response = ToolResult> + Clone + Send + 'static,
    S::Error: Into<BoxError>,
    S::Future: Send,
{
    Arc::new(move |handler| {
        // Services need not be `Sync`, so each call uses its own clone.
        let service = Mutex::new(layer.layer(ToolService { handler }));
        ErasedHandler::from_fn(move |call| {
            let mut service = lock(&service).clone();
            Box::pin(async move {
                let ready = poll_fn(|cx| service.poll_ready(cx)).await;
                ready.map_err(Error::into_boxed)?;
                service.call(call).await.map_err(Error::into_boxed)
            })
        })
    })
}
