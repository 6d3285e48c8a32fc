//! Minimal hyper servers, which show the cost of HTTP alone.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::{Body, Frame, Incoming};
use hyper::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderValue};
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;

use crate::load::http::{ANSWER, SESSION};

/// Session id that all clients receive, with the length of the session ids of our server.
const ID: &str = "00000000000000000000000000000000";

/// Responds to every request with the bytes of an `echo` result. A request without a session gets an id, so that later
/// requests have the same headers as requests to our server.
pub async fn echo() -> anyhow::Result<()> {
    serve(|request: Request<Incoming>| async move {
        let has_session = request.headers().contains_key(SESSION);
        let body = request.into_body().collect().await?;
        drop(body);
        let mut response = Response::new(Full::new(Bytes::from_static(ANSWER.as_bytes())));
        let json = HeaderValue::from_static("application/json");
        response.headers_mut().insert(CONTENT_TYPE, json);
        if !has_session {
            let id = HeaderValue::from_static(ID);
            response.headers_mut().insert(SESSION, id);
        }
        Ok::<_, hyper::Error>(response)
    })
    .await
}

/// Response body with an event stream that sends one comment and then stays open.
struct Idle {
    /// Comment to send first; `None` after it was sent.
    first: Option<Bytes>,
}

impl Body for Idle {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match self.first.take() {
            Some(first) => Poll::Ready(Some(Ok(Frame::data(first)))),
            None => Poll::Pending,
        }
    }
}

/// Responds to every request with an event stream that stays open.
pub async fn streams() -> anyhow::Result<()> {
    serve(|_: Request<Incoming>| async move {
        let first = Some(Bytes::from_static(b": open\n\n"));
        let mut response = Response::new(Idle { first });
        let events = HeaderValue::from_static("text/event-stream");
        response.headers_mut().insert(CONTENT_TYPE, events);
        // The headers that keep proxies from holding events back, as ours has them.
        let no_cache = HeaderValue::from_static("no-cache, no-transform");
        response.headers_mut().insert(CACHE_CONTROL, no_cache);
        let buffering = HeaderValue::from_static("no");
        response
            .headers_mut()
            .insert("x-accel-buffering", buffering);
        Ok::<_, Infallible>(response)
    })
    .await
}

/// Serves HTTP on a free port; the function `answer` returns the response to each request.
async fn serve<F, R, B, E>(answer: F) -> anyhow::Result<()>
where
    F: Fn(Request<Incoming>) -> R + Copy + Send + 'static,
    R: Future<Output = Result<Response<B>, E>> + Send + 'static,
    B: Body<Data = Bytes, Error = Infallible> + Send + 'static,
    E: std::error::Error + Send + Sync + 'static,
{
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    super::announce(listener.local_addr()?)?;
    loop {
        let (stream, _) = listener.accept().await?;
        let _ = stream.set_nodelay(true);
        tokio::spawn(async move {
            let connection = hyper::server::conn::http1::Builder::new();
            let served = connection.serve_connection(TokioIo::new(stream), service_fn(answer));
            let _: Result<(), _> = served.await;
        });
    }
}
