//! HTTP client based on reqwest, for applications that already use reqwest with proxies, TLS and other settings.

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::BodyExt;
use reqwest::redirect::Policy;

use super::{HttpClient, HttpClientError, HttpFuture};

/// HTTP client of reqwest 0.13.
#[derive(Debug, Clone)]
pub struct ReqwestClient(reqwest::Client);

impl ReqwestClient {
    /// Builds a client.
    ///
    /// Redirects are disabled regardless of the builder's settings, because the transport itself follows redirects
    /// within the origin of the server, and no header may reach another origin.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`reqwest::ClientBuilder::build`].
    pub fn new(builder: reqwest::ClientBuilder) -> Result<Self, reqwest::Error> {
        Ok(Self(builder.redirect(Policy::none()).build()?))
    }
}

impl HttpClient for ReqwestClient {
    fn send(&self, request: Request<Bytes>) -> HttpFuture<'_> {
        Box::pin(async move {
            let request = reqwest::Request::try_from(request)?;
            // The URL is removed from the error because it may contain credentials; the transport adds its public part.
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
