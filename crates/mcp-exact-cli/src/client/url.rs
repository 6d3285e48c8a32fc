//! Connections to servers at URLs: their headers, authorization, certificates and proxies.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, anyhow, bail};
use http::{HeaderName, HeaderValue};
use mcp_exact::transport::http::client::{HttpEndpoint, HyperOptions};
use mcp_exact::{Client, Connect};

#[cfg(all(feature = "bridge", feature = "oauth"))]
use super::authorization;
use super::{Settings, trace};

impl Settings {
    /// Starts to build a connection to a URL.
    pub(super) fn connect_http(&self, url: &str) -> anyhow::Result<Connect> {
        let options = self.http_options()?;
        let connect = Client::http(self.create_endpoint(url, options.clone())?);
        #[cfg(feature = "oauth")]
        if !self.has_credentials() {
            let oauth = self.authorization.oauth()?.http_options(options);
            return Ok(connect.oauth(oauth));
        }
        Ok(connect)
    }

    /// Creates the endpoint of a URL, with OAuth unless `--header` sets credentials.
    #[cfg(all(feature = "bridge", feature = "oauth"))]
    pub(super) fn authorized_endpoint(
        &self,
        url: &str,
        has_input: bool,
    ) -> anyhow::Result<HttpEndpoint> {
        let options = self.http_options()?;
        let endpoint = self.create_endpoint(url, options.clone())?;
        if self.has_credentials() {
            return Ok(endpoint);
        }
        let oauth = if has_input {
            self.authorization.oauth()?
        } else {
            self.authorization.oauth_without_input()?
        };
        let oauth = oauth.http_options(options);
        authorization::with_oauth_client(endpoint, oauth, authorization::Names::Options)
    }

    /// Creates the endpoint of a URL without OAuth, which this build does not support.
    #[cfg(all(feature = "bridge", not(feature = "oauth")))]
    pub(super) fn authorized_endpoint(&self, url: &str, _: bool) -> anyhow::Result<HttpEndpoint> {
        self.create_endpoint(url, self.http_options()?)
    }

    /// Returns true if `--header` sets an `Authorization` header, so that no OAuth flow is started.
    #[cfg(feature = "oauth")]
    fn has_credentials(&self) -> bool {
        let mut names = self
            .header
            .iter()
            .filter_map(|header| header.split(':').next());
        names.any(|name| name.trim().eq_ignore_ascii_case("Authorization"))
    }

    /// Returns the settings of HTTP connections: proxies of the environment, and certificates of the command line. The timeout
    /// limits the connection. Unless the user allows more, a server that does not accept it is given up before the negotiation is.
    fn http_options(&self) -> anyhow::Result<HyperOptions> {
        let limit = self.given_timeout().unwrap_or(Duration::from_secs(10));
        let options = HyperOptions::default().connect_timeout(limit);
        #[cfg(feature = "oauth")]
        let options = self.certificates.read(options)?;
        Ok(options)
    }

    /// Returns the first option about certificates that is given.
    #[cfg(feature = "bridge")]
    pub fn certificate_option(&self) -> Option<&'static str> {
        #[cfg(feature = "oauth")]
        return self.certificates.first_option();
        #[cfg(not(feature = "oauth"))]
        None
    }

    /// Creates the endpoint of a URL, with the headers of the command line and, with `--trace`, an HTTP client that
    /// prints messages.
    fn create_endpoint(&self, url: &str, options: HyperOptions) -> anyhow::Result<HttpEndpoint> {
        check_scheme(url, cfg!(feature = "oauth"))?;
        #[cfg(feature = "oauth")]
        self.certificates.check_url(url)?;
        let mut endpoint = HttpEndpoint::new(url).map_err(|error| anyhow!("{error}"))?;
        for header in &self.header {
            let (name, value) = parse_header(header)?;
            if mcp_exact::transport::http::is_protocol_header(&name) {
                bail!(
                    "--header: the program sets the header `{name}` of the protocol itself; leave it out"
                );
            }
            endpoint = endpoint.header(name, value);
        }
        let client = trace::CountedClient {
            client: options.build(),
            _held: self.connections.add(),
        };
        endpoint = if self.trace || self.sent_lists.is_kept() {
            let lists = self.sent_lists.clone();
            endpoint.client(Arc::new(trace::TracingClient::new(
                client, self.trace, lists,
            )))
        } else {
            endpoint.client(Arc::new(client))
        };
        Ok(endpoint)
    }
}

/// Parses a header of the form `Name: value`. An error names the header and omits its value, which may be a secret.
pub fn parse_header(header: &str) -> anyhow::Result<(HeaderName, HeaderValue)> {
    let (name, value) = header
        .split_once(':')
        .with_context(|| format!("`{header}` is not a header; write `Name: value`"))?;
    let name = name.trim();
    let parsed: HeaderName = name
        .parse()
        .with_context(|| format!("`{name}` is not the name of a header"))?;
    let value = value.trim().parse().with_context(|| {
        format!("the value of the header `{name}` has a control character, such as a line break")
    })?;
    Ok((parsed, value))
}

/// Checks that this program can connect to a URL with its scheme: TLS comes with the feature `oauth`.
///
/// # Errors
/// Returns an error that names the feature.
pub fn check_scheme(url: &str, has_tls: bool) -> anyhow::Result<()> {
    let scheme = url.split(':').next().unwrap_or_default();
    if scheme.eq_ignore_ascii_case("https") && !has_tls {
        bail!(
            "cannot reach {url}: this program was built without HTTPS; install it with `--features oauth`"
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Without TLS, an error for a URL of HTTPS names the feature; the others are for all builds.
    #[test]
    fn https_needs_a_feature() {
        let error = check_scheme("HTTPS://a/mcp", false).expect_err("there is no TLS");
        assert!(error.to_string().ends_with("`--features oauth`"), "{error}");
        check_scheme("https://a/mcp", true).expect("there is TLS");
        check_scheme("http://a/mcp", false).expect("it needs none");
    }

    /// An error names the header, and not its value.
    #[test]
    fn faulty_headers_are_named() {
        for (header, expected) in [
            (
                "X-Key: s3cr\u{1b}t",
                "the value of the header `X-Key` has a control character, such as a line break",
            ),
            ("X Key: s3cret", "`X Key` is not the name of a header"),
        ] {
            let error = format!("{:#}", parse_header(header).expect_err(header));
            assert!(error.starts_with(expected), "{error}");
            assert!(!error.contains("s3cr"), "{error}");
        }
        let (name, value) = parse_header("X-Key:  s3cret ").expect("a header");
        assert_eq!((name.as_str(), value.as_bytes()), ("x-key", &b"s3cret"[..]));
    }
}
