//! Requests of a resource server to its trusted authorization servers: metadata, keys, introspection.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT, AUTHORIZATION, CACHE_CONTROL, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue, Method, Request, Uri};
use mcp_exact_transport::http::client::{HttpClient, HyperOptions};

use super::access::TokenError;
use crate::metadata::{MetadataResponse, ServerMetadata, parse_metadata_response};
use crate::net::{AllowedAddresses, CheckedClient, error_with_causes, read_body};

/// Maximum duration of a request.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);

/// HTTP client for the authorization servers of a resource server, which enforces the address rules.
#[derive(Clone)]
pub(super) struct IssuerClient {
    /// HTTP client that sends the requests.
    client: Arc<dyn HttpClient>,
    /// Allowed addresses.
    addresses: AllowedAddresses,
}

/// Fetched document and its maximum cache time.
pub(super) struct FetchedDocument {
    pub(super) body: Bytes,
    /// Value of `max-age`.
    pub(super) max_age: Option<Duration>,
}

/// Returns the error for an issuer that cannot be reached or has a temporary problem.
fn unavailable_error(url: &str, reason: impl std::fmt::Display) -> TokenError {
    TokenError::Unavailable(format!("`{url}` could not be fetched: {reason}"))
}

impl IssuerClient {
    /// Creates the client for an issuer. Private networks are allowed, because the operator configures the issuers;
    /// loopback is allowed if the issuer is on loopback.
    pub(super) fn new(issuer: &str, client: Option<Arc<dyn HttpClient>>) -> Self {
        let uri = issuer.parse::<Uri>().ok();
        let loopback = AllowedAddresses {
            allows_loopback: true,
            allows_private: false,
            allows_plain_http: false,
        };
        let is_http = uri
            .as_ref()
            .is_some_and(|uri| uri.scheme_str() == Some("http"));
        let is_loopback = uri.is_some_and(|uri| loopback.check_url(&uri).is_ok() && is_http);
        let addresses = AllowedAddresses {
            allows_loopback: is_loopback,
            allows_private: true,
            allows_plain_http: false,
        };
        Self {
            client: client.unwrap_or_else(|| {
                Arc::new(CheckedClient::new(addresses, HyperOptions::default()))
            }),
            addresses,
        }
    }

    /// Sends a request and reads the whole body, within the limits of size and time.
    async fn send_request(
        &self,
        method: Method,
        url: &str,
        headers: HeaderMap,
        body: Bytes,
    ) -> Result<(u16, HeaderMap, Bytes), TokenError> {
        let uri: Uri = url.parse().map_err(|error| unavailable_error(url, error))?;
        self.addresses
            .check_url(&uri)
            .map_err(|reason| unavailable_error(url, reason))?;
        let mut request = Request::new(body);
        *request.method_mut() = method;
        *request.uri_mut() = uri;
        *request.headers_mut() = headers;
        request
            .headers_mut()
            .insert(ACCEPT, HeaderValue::from_static("application/json"));
        let exchange = async {
            let response = self.client.send(request).await;
            let response =
                response.map_err(|error| unavailable_error(url, error_with_causes(&*error)))?;
            let (parts, body) = response.into_parts();
            let body = read_body(body).await;
            let body = body.map_err(|error| unavailable_error(url, error_with_causes(&*error)))?;
            Ok((parts.status.as_u16(), parts.headers, body))
        };
        let ended = tokio::time::timeout(REQUEST_TIMEOUT, exchange).await;
        ended.unwrap_or_else(|_| Err(unavailable_error(url, "it took longer than 10 s")))
    }

    /// Fetches a document. Redirects are not followed, because the operator has configured the URL.
    pub(super) async fn get(&self, url: &str) -> Result<FetchedDocument, TokenError> {
        let exchanged = self.send_request(Method::GET, url, HeaderMap::new(), Bytes::new());
        let (status, headers, body) = exchanged.await?;
        match status {
            200..=299 => Ok(FetchedDocument {
                body,
                max_age: max_age(&headers),
            }),
            status => Err(unavailable_error(
                url,
                format!("it answered with status {status}"),
            )),
        }
    }

    /// Posts a form with the credentials of this server.
    pub(super) async fn post(
        &self,
        url: &str,
        authorization: HeaderValue,
        form: String,
    ) -> Result<Bytes, TokenError> {
        let mut headers = HeaderMap::new();
        headers.insert(AUTHORIZATION, authorization);
        let kind = HeaderValue::from_static("application/x-www-form-urlencoded");
        headers.insert(CONTENT_TYPE, kind);
        let exchanged = self.send_request(Method::POST, url, headers, form.into());
        match exchanged.await? {
            (200, _, body) => Ok(body),
            (status, ..) => Err(unavailable_error(
                url,
                format!("it answered with status {status}"),
            )),
        }
    }

    /// Returns the URL of an issuer's keys from its metadata.
    pub(super) async fn keys_url(&self, issuer: &str) -> Result<String, TokenError> {
        for url in metadata_urls(issuer) {
            let exchanged = self.send_request(Method::GET, &url, HeaderMap::new(), Bytes::new());
            let (status, _, body) = exchanged.await?;
            match parse_metadata_response::<ServerMetadata>(status, &body) {
                MetadataResponse::Found(metadata) if metadata.issuer != issuer => {
                    let message = format!("it belongs to the issuer `{}`", metadata.issuer);
                    return Err(unavailable_error(&url, message));
                }
                MetadataResponse::Found(ServerMetadata {
                    jwks_uri: Some(keys),
                    ..
                }) => return Ok(keys),
                MetadataResponse::Found(_) | MetadataResponse::Absent => {}
                MetadataResponse::Unreadable(reason) => {
                    return Err(unavailable_error(
                        &url,
                        format!("it cannot be read: {reason}"),
                    ));
                }
                MetadataResponse::Unavailable => {
                    return Err(unavailable_error(
                        &url,
                        format!("it answered with status {status}"),
                    ));
                }
            }
        }
        Err(TokenError::Unavailable(format!(
            "no metadata of the issuer `{issuer}` names its keys; name them with `keys_url`"
        )))
    }
}

/// Returns the well-known URLs for the metadata of an issuer.
fn metadata_urls(issuer: &str) -> Vec<String> {
    let rest = issuer.find("://").map_or(0, |at| at + 3);
    let path_at = issuer[rest..]
        .find('/')
        .map_or(issuer.len(), |at| rest + at);
    let (origin, path) = issuer.split_at(path_at);
    let path = path.trim_end_matches('/');
    let server = "/.well-known/oauth-authorization-server";
    let openid = "/.well-known/openid-configuration";
    let mut urls = vec![
        format!("{origin}{server}{path}"),
        format!("{origin}{openid}{path}"),
    ];
    if !path.is_empty() {
        urls.push(format!("{origin}{path}{openid}"));
    }
    urls
}

/// Returns `max-age` of `Cache-Control`.
fn max_age(headers: &HeaderMap) -> Option<Duration> {
    let value = headers.get(CACHE_CONTROL)?.to_str().ok()?;
    let mut directives = value.split(',').map(str::trim);
    let seconds = directives.find_map(|directive| directive.strip_prefix("max-age="))?;
    seconds.parse().ok().map(Duration::from_secs)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 8414, section 3.1, and OpenID Connect Discovery, section 4: the path of the issuer is part of each URL.
    #[test]
    fn metadata_urls_include_the_path() {
        let (server, openid) = (
            ".well-known/oauth-authorization-server",
            ".well-known/openid-configuration",
        );
        for issuer in ["https://as.example", "https://as.example/", "https://a.b"] {
            let origin = issuer.trim_end_matches('/');
            let expected = [format!("{origin}/{server}"), format!("{origin}/{openid}")];
            assert_eq!(metadata_urls(issuer), expected);
        }
        for (origin, path) in [
            ("https://a.b", "/t"),
            ("https://as.example", "/t1/t2"),
            ("http://127.0.0.1:8080", "/realms/a"),
        ] {
            let expected = [
                format!("{origin}/{server}{path}"),
                format!("{origin}/{openid}{path}"),
                format!("{origin}{path}/{openid}"),
            ];
            for slash in ["", "/"] {
                assert_eq!(metadata_urls(&format!("{origin}{path}{slash}")), expected);
            }
        }
    }

    /// RFC 9111, section 5.2.2.1: `max-age` in seconds, among other directives.
    #[test]
    fn max_age_is_read() {
        for (value, expected) in [
            (Some("max-age=60"), Some(60)),
            (Some("public, max-age=300, must-revalidate"), Some(300)),
            (Some("no-store"), None),
            (Some("max-age=soon"), None),
            (Some("s-maxage=60"), None),
            (None, None),
        ] {
            let mut headers = HeaderMap::new();
            headers.extend(value.map(|value| (CACHE_CONTROL, HeaderValue::from_static(value))));
            assert_eq!(
                max_age(&headers),
                expected.map(Duration::from_secs),
                "{value:?}"
            );
        }
    }
}
