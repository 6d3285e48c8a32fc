//! An HTTP server on 127.0.0.1 that records its requests.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Request, Response};
use http_body_util::{BodyExt, Either, Full};
use hyper::body::{Body, Frame, Incoming};
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;
use tokio::time::{Instant, Sleep, sleep};

/// Received HTTP request.
#[derive(Debug, Clone)]
pub struct ReceivedRequest {
    /// HTTP method.
    pub method: String,
    /// Path without the query.
    pub path: String,
    /// Query string, not decoded.
    pub query: String,
    /// Headers of the request.
    pub headers: HeaderMap,
    /// Body of the request.
    pub body: String,
}

impl ReceivedRequest {
    /// Returns the value of a header; an empty text if the header is absent.
    pub fn header(&self, name: &str) -> &str {
        let value = self.headers.get(name);
        value.and_then(|value| value.to_str().ok()).unwrap_or("")
    }

    /// Returns a decoded parameter of the query or of the form in the body.
    pub fn param(&self, name: &str) -> Option<String> {
        let pairs = self.query.split('&').chain(self.body.split('&'));
        let mut pairs = pairs.filter_map(|pair| pair.split_once('='));
        let (_, value) = pairs.find(|(known, _)| *known == name)?;
        Some(decode(value))
    }
}

/// Decodes a form-encoded value.
pub fn decode(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        match byte {
            b'+' => bytes.push(b' '),
            b'%' => {
                let digits = [rest.next().unwrap_or(b'0'), rest.next().unwrap_or(b'0')];
                let digits = std::str::from_utf8(&digits).unwrap_or("00");
                bytes.push(u8::from_str_radix(digits, 16).unwrap_or(b'?'));
            }
            byte => bytes.push(byte),
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Encodes a value as a form does.
pub fn encode(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    let mut encoded = String::new();
    for byte in text.bytes() {
        if plain(byte) {
            encoded.push(char::from(byte))
        } else {
            encoded += &format!("%{byte:02X}")
        }
    }
    encoded
}

/// Response of a site.
pub type SiteResponse = Response<Full<Bytes>>;

/// Creates a response with a JSON body.
pub fn json_response(status: u16, body: &serde_json::Value) -> SiteResponse {
    response(
        status,
        &[("content-type", "application/json")],
        &body.to_string(),
    )
}

/// Creates a response.
///
/// # Panics
/// Panics if a header is invalid.
pub fn response(status: u16, headers: &[(&str, &str)], body: &str) -> SiteResponse {
    let mut response = Response::builder().status(status);
    for (name, value) in headers {
        response = response.header(*name, *value);
    }
    let body = Full::new(Bytes::copy_from_slice(body.as_bytes()));
    response.body(body).expect("valid headers")
}

/// Function that answers the requests of a site.
type Responder = dyn Fn(&ReceivedRequest) -> SiteResponse + Send + Sync;

/// Running HTTP server, which stops when its Tokio runtime ends.
#[derive(Clone)]
pub struct Site {
    /// Origin of the server, without a trailing slash.
    pub url: String,
    /// Requests that the server has received.
    received_requests: Arc<Mutex<Vec<ReceivedRequest>>>,
}

impl Site {
    /// Starts a server. `make` creates the responder from the origin.
    ///
    /// # Panics
    /// Panics if no port can be opened.
    pub async fn start<F>(make: impl FnOnce(&str) -> F) -> Self
    where
        F: Fn(&ReceivedRequest) -> SiteResponse + Send + Sync + 'static,
    {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let respond: Arc<Responder> = Arc::new(make(&url));
        let requests = Arc::new(Mutex::default());
        let site = Self {
            url,
            received_requests: Arc::clone(&requests),
        };
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (respond, requests) = (Arc::clone(&respond), Arc::clone(&requests));
                tokio::spawn(async move {
                    let service =
                        service_fn(|request| answer_request(request, &respond, &requests));
                    let connection = hyper::server::conn::http1::Builder::new()
                        .serve_connection(TokioIo::new(stream), service);
                    // Clients may disconnect at any time.
                    let _ = connection.await;
                });
            }
        });
        site
    }

    /// Returns the requests that the server has received so far.
    pub fn received_requests(&self) -> Vec<ReceivedRequest> {
        let requests = self
            .received_requests
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        requests.clone()
    }

    /// Returns the number of requests with this path.
    pub fn count(&self, path: &str) -> usize {
        self.received_requests()
            .iter()
            .filter(|request| request.path == path)
            .count()
    }
}

/// Records a request and sends the response; the response headers `x-delay-ms` and `x-trickle-ms` delay the response or
/// each byte of its body.
async fn answer_request(
    request: Request<Incoming>,
    respond: &Arc<Responder>,
    all: &Arc<Mutex<Vec<ReceivedRequest>>>,
) -> Result<Response<Either<Full<Bytes>, SlowBody>>, Infallible> {
    let (parts, body) = request.into_parts();
    let body = body.collect().await.map(|body| body.to_bytes());
    let received = ReceivedRequest {
        method: parts.method.to_string(),
        path: parts.uri.path().to_owned(),
        query: parts.uri.query().unwrap_or("").to_owned(),
        headers: parts.headers,
        body: String::from_utf8_lossy(&body.unwrap_or_default()).into_owned(),
    };
    all.lock()
        .unwrap_or_else(PoisonError::into_inner)
        .push(received.clone());
    let response = respond(&received);
    let milliseconds = |name: &str| {
        let value = response.headers().get(name)?.to_str().ok()?;
        Some(Duration::from_millis(value.parse().ok()?))
    };
    if let Some(delay) = milliseconds("x-delay-ms") {
        sleep(delay).await;
    }
    let Some(pause) = milliseconds("x-trickle-ms") else {
        return Ok(response.map(Either::Left));
    };
    let (head, body) = response.into_parts();
    let rest = body.collect().await.unwrap_or_default().to_bytes();
    let sleep = Box::pin(sleep(pause));
    let body = SlowBody {
        remaining: rest,
        pause,
        sleep,
    };
    Ok(Response::from_parts(head, Either::Right(body)))
}

/// Body that is sent byte by byte, with a pause before each byte.
struct SlowBody {
    /// Bytes that were not sent yet.
    remaining: Bytes,
    /// Pause before each byte.
    pause: Duration,
    /// Timer of the next byte.
    sleep: Pin<Box<Sleep>>,
}

impl Body for SlowBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if self.remaining.is_empty() {
            return Poll::Ready(None);
        }
        ready!(self.sleep.as_mut().poll(cx));
        let next = Instant::now() + self.pause;
        self.sleep.as_mut().reset(next);
        let byte = self.remaining.split_to(1);
        Poll::Ready(Some(Ok(Frame::data(byte))))
    }
}
