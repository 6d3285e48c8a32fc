//! The HTTP client of reqwest: for programs that have one, with its proxies, its TLS and its settings.

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::BodyExt;
use reqwest::redirect::Policy;

use super::{HttpClient, HttpClientError, HttpFuture};

/// HTTP client of reqwest 0.13.
#[derive(Debug, Clone)]
pub struct ReqwestClient(reqwest::Client);

impl ReqwestClient {
    /// Builds a client. It never follows redirects, whatever the builder is set to: the transport follows those within the
    /// origin of the server, and no header reaches another origin.
    ///
    /// # Errors
    /// The errors of [`reqwest::ClientBuilder::build`].
    pub fn new(builder: reqwest::ClientBuilder) -> Result<Self, reqwest::Error> {
        Ok(Self(builder.redirect(Policy::none()).build()?))
    }
}

impl HttpClient for ReqwestClient {
    fn send(&self, request: Request<Bytes>) -> HttpFuture<'_> {
        Box::pin(async move {
            let request = reqwest::Request::try_from(request)?;
            // The URL may hold credentials; the transport names what may be shown of it.
            let sent = self.0.execute(request).await;
            let response = Response::from(sent.map_err(reqwest::Error::without_url)?);
            let boxed = |body: reqwest::Body| {
                body.map_err(|error| Box::new(error.without_url()) as HttpClientError)
                    .boxed_unsync()
            };
            Ok(response.map(boxed))
        })
    }
}
