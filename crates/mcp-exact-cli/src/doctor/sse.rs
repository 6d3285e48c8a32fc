//! Connection of the doctor to a server over HTTP+SSE (2024-11-05, `basic/transports`): messages of the server are the
//! events of one stream, and messages of the client are posted to the URL that its first event names.

use std::sync::{Arc, PoisonError};
use std::time::Duration;

use anyhow::{Context, anyhow, bail};
use bytes::Bytes;
use http::{Method, Uri};
use http_body_util::BodyExt;
use mcp_exact::transport::http::client::HttpBody;
use mcp_exact::transport::sse::{Decoded, Decoder, Event};
use serde_json::Value;

use super::http::{MAX_BODY_BYTES, Target};
use crate::process::ServerOutput;

/// Returns true if a URL is one of HTTP+SSE by the convention of its path.
pub fn is_sse_url(url: &str) -> bool {
    let path = url.split(['?', '#']).next().unwrap_or(url);
    path.trim_end_matches('/').ends_with("/sse")
}

/// Session over HTTP+SSE, which lasts as long as its event stream.
pub struct SseSession {
    /// Server of the session.
    target: Arc<Target>,
    /// Event stream and the URL for messages; `None` before the first message.
    stream: Option<(EventStream, String)>,
    /// HTTP status of the latest response to a message.
    status: Option<u16>,
}

/// Body of the response that carries the messages of the server.
struct EventStream {
    body: HttpBody,
    decoder: Decoder,
}

impl EventStream {
    /// Returns the next event; `None` at the end of the stream.
    async fn next(&mut self) -> Option<Event> {
        loop {
            match self.decoder.next_event() {
                Some(Decoded::Event(event)) => return Some(event),
                Some(_) => {}
                None => {
                    if let Ok(data) = self.body.frame().await?.ok()?.into_data() {
                        self.decoder.push(&data);
                    }
                }
            }
        }
    }
}

impl SseSession {
    /// Creates a connection whose stream is not open yet.
    pub fn new(target: &Arc<Target>) -> Self {
        Self {
            target: Arc::clone(target),
            stream: None,
            status: None,
        }
    }

    /// Returns the HTTP status of the latest response to a message, if it was an error.
    pub fn error_status(&self) -> Option<u16> {
        self.status.filter(|status| !(200..300).contains(status))
    }

    /// Posts a message, and opens the stream before the first one; returns false if that fails.
    pub fn send(&mut self, message: &Value, limit: Duration) -> bool {
        self.post(message, limit).is_ok()
    }

    fn post(&mut self, message: &Value, limit: Duration) -> anyhow::Result<()> {
        let target = Arc::clone(&self.target);
        let runtime = target
            .runtime
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        runtime.block_on(async {
            let work = async {
                if self.stream.is_none() {
                    self.stream = Some(open(&target).await?);
                }
                let url = self.stream.as_ref().map_or("", |(_, url)| url);
                let request = target
                    .request(Method::POST, url)
                    .header("content-type", "application/json")
                    .body(Bytes::from(message.to_string()))
                    .context("this is not a request")?;
                let response = target.client.send(request).await;
                let response = response.map_err(|error| target.fail(&error))?;
                self.status = Some(response.status().as_u16());
                anyhow::Ok(())
            };
            tokio::time::timeout(limit, work)
                .await
                .map_err(|_| anyhow!("no response within {} s", limit.as_secs()))?
        })
    }

    /// Waits for the next message.
    pub fn receive(&mut self, limit: Duration) -> ServerOutput {
        let Some((stream, _)) = &mut self.stream else {
            return ServerOutput::End;
        };
        if self.status.is_some_and(|status| status >= 400) {
            return ServerOutput::End;
        }
        let runtime = self.target.runtime.lock();
        let runtime = runtime.unwrap_or_else(PoisonError::into_inner);
        runtime.block_on(async {
            let next = async {
                loop {
                    let event = stream.next().await?;
                    if event.event == "message" && !event.data.is_empty() {
                        return Some(event.data);
                    }
                }
            };
            match tokio::time::timeout(limit, next).await {
                Ok(Some(data)) => ServerOutput::Line(data),
                Ok(None) => ServerOutput::End,
                Err(_) => ServerOutput::Timeout,
            }
        })
    }
}

/// Opens the event stream of a session; returns it with the URL for messages.
async fn open(target: &Target) -> anyhow::Result<(EventStream, String)> {
    let request = target
        .request(Method::GET, &target.url)
        .header("accept", "text/event-stream")
        .body(Bytes::new())
        .context("this is not a request")?;
    let response = target.client.send(request).await;
    let response = response.map_err(|error| target.fail(&error))?;
    if !response.status().is_success() {
        bail!(
            "the server offers no event stream (status {})",
            response.status()
        );
    }
    let mut stream = EventStream {
        body: response.into_body(),
        decoder: Decoder::new(MAX_BODY_BYTES),
    };
    let first = stream.next().await.context("the event stream is empty")?;
    if first.event != "endpoint" {
        bail!("the first event of the stream is not `endpoint`");
    }
    let reference = String::from_utf8(first.data)?;
    let url = resolve(&target.url, reference.trim())?;
    Ok((stream, url))
}

/// Resolves the reference of the first event; a URL of another origin gets no messages and no headers.
fn resolve(base: &str, reference: &str) -> anyhow::Result<String> {
    let base: Uri = base.parse()?;
    let origin = format!(
        "{}://{}",
        base.scheme_str().unwrap_or("http"),
        base.authority().map_or("", |authority| authority.as_str())
    );
    if reference.starts_with('/') && !reference.starts_with("//") {
        return Ok(format!("{origin}{reference}"));
    }
    let is_of_origin = reference
        .strip_prefix(&origin)
        .is_some_and(|rest| rest.starts_with('/'));
    if is_of_origin {
        return Ok(reference.to_owned());
    }
    if reference.contains("//") {
        bail!("the event `endpoint` names another origin than that of the server");
    }
    let (folder, _) = base.path().rsplit_once('/').unwrap_or_default();
    Ok(format!("{origin}{folder}/{reference}"))
}
