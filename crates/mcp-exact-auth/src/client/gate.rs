//! URL filter that prevents server-side request forgery by metadata of a malicious server.
//!
//! URLs are checked before a request; addresses are checked in the connector, after name resolution. A proxy gets a checked
//! address instead of a name, because it would resolve the name a second time.

use std::net::IpAddr;

use url::{Host, Url};

use super::error::{OAuthError, OAuthRemedy};
use crate::locate;
use crate::net::{AllowedAddresses, PRIVATE_ADDRESS, is_localhost};

/// Filter that decides which URLs the client may request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct UrlGate {
    /// Addresses that connections are allowed to.
    pub(crate) addresses: AllowedAddresses,
    /// Ports on loopback that are allowed: those of the endpoint and of the issuers that the application has chosen. `None` if
    /// all are.
    loopback_ports: Option<Vec<u16>>,
}

impl UrlGate {
    /// Creates the filter for an MCP endpoint and the issuers that the application has chosen: loopback addresses are allowed if
    /// the endpoint is on loopback, and plain HTTP in a private network is allowed if the endpoint uses plain HTTP. A server on
    /// loopback sends its client to no other port there unless the application has chosen the issuer or allows it.
    pub(crate) fn new<'i>(
        endpoint: &Url,
        issuers: impl IntoIterator<Item = &'i String>,
        allows_private: bool,
        allows_other_ports: bool,
    ) -> Self {
        let issuers = issuers
            .into_iter()
            .filter_map(|issuer| locate::parse_url(issuer));
        let chosen = issuers.chain([endpoint.clone()]).filter(is_loopback);
        let ports = chosen.filter_map(|url| url.port_or_known_default());
        Self {
            addresses: AllowedAddresses {
                allows_loopback: is_loopback(endpoint),
                allows_private,
                allows_plain_http: allows_private && endpoint.scheme() == "http",
            },
            loopback_ports: (!allows_private && !allows_other_ports).then(|| ports.collect()),
        }
    }

    /// Parses a URL and checks that it is allowed.
    pub(crate) fn check_url(&self, what: &'static str, text: &str) -> Result<Url, OAuthError> {
        let blocked = |reason: &str, remedy| OAuthError::Blocked {
            what,
            url: locate::url_for_logs(text),
            reason: reason.to_owned(),
            remedy,
        };
        let url = locate::parse_url(text).ok_or_else(|| OAuthError::Url {
            what,
            url: locate::url_for_logs(text),
            reason: "it is not an absolute HTTP URL without a user name".to_owned(),
        })?;
        let may_be_plain = self.addresses.allows_plain_http
            || (self.addresses.allows_loopback && is_loopback(&url));
        if url.scheme() != "https" && !may_be_plain {
            return Err(blocked("it is not https", None));
        }
        if !ip_address_of(&url).is_none_or(|address| self.addresses.is_allowed(address)) {
            return Err(blocked(
                PRIVATE_ADDRESS,
                Some(OAuthRemedy::AllowPrivateAddresses),
            ));
        }
        let port = url.port_or_known_default();
        let is_allowed_port = match &self.loopback_ports {
            Some(ports) => port.is_some_and(|port| ports.contains(&port)),
            None => true,
        };
        if is_loopback(&url) && !is_allowed_port {
            return Err(blocked(
                "it leads to another port of this machine",
                Some(OAuthRemedy::AllowOtherPorts),
            ));
        }
        Ok(url)
    }
}

/// Returns the host of a URL if it is an IP address.
fn ip_address_of(url: &Url) -> Option<IpAddr> {
    match url.host() {
        Some(Host::Ipv4(address)) => Some(address.into()),
        Some(Host::Ipv6(address)) => Some(address.into()),
        _ => None,
    }
}

/// Returns true if the host of a URL is a loopback address or `localhost`.
pub(crate) fn is_loopback(url: &Url) -> bool {
    match ip_address_of(url) {
        Some(address) => address.to_canonical().is_loopback(),
        None => url.host_str().is_some_and(is_localhost),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Creates the filter for an MCP endpoint.
    fn gate(endpoint: &str) -> UrlGate {
        UrlGate::new(
            &locate::parse_url(endpoint).expect("a URL"),
            &["https://localhost:4000/issuer".to_owned()],
            false,
            false,
        )
    }

    /// URLs need https and a public host; if the endpoint is on loopback, loopback URLs are allowed with plain HTTP,
    /// too, at the ports of the endpoint and of the chosen issuer.
    #[test]
    fn urls_need_https_beyond_loopback() {
        let public = gate("https://mcp.example/mcp");
        let local = gate("http://localhost:3000/mcp");
        for (url, of_public, of_local) in [
            ("https://as.example/x", true, true),
            ("http://as.example/x", false, false),
            ("http://localhost:3000/x", false, true),
            ("http://127.0.0.1:4000/x", false, true),
            ("https://127.0.0.1:3000/x", false, true),
            ("https://[::ffff:127.0.0.1]:3000/x", false, true),
            ("https://2130706433:3000/x", false, true),
            ("https://0x7f.1:3000/x", false, true),
            ("http://localhost:1/x", false, false),
            ("http://127.0.0.1/x", false, false),
            ("https://localhost/x", false, false),
            ("https://2130706433/x", false, false),
            ("https://169.254.169.254/latest", false, false),
            ("https://user@as.example/", false, false),
            ("file:///etc/passwd", false, false),
            ("javascript:alert(1)", false, false),
        ] {
            assert_eq!(public.check_url("x", url).is_ok(), of_public, "{url}");
            assert_eq!(local.check_url("x", url).is_ok(), of_local, "{url}");
        }
    }

    /// In a private network that the application allows, plain HTTP is allowed only if the endpoint uses plain HTTP.
    #[test]
    fn allowed_private_networks_are_reached() {
        for (endpoint, url, expected) in [
            ("https://mcp.internal/mcp", "https://10.0.0.1/x", true),
            ("https://mcp.internal/mcp", "http://10.0.0.1/x", false),
            ("http://mcp.internal/mcp", "http://10.0.0.1/x", true),
            ("http://mcp.internal/mcp", "http://as.internal/x", true),
            ("http://mcp.internal/mcp", "http://127.0.0.1/x", false),
            ("http://127.0.0.1:1/mcp", "http://127.0.0.1:2/x", true),
            ("http://mcp.internal/mcp", "http://224.0.0.1/x", false),
        ] {
            let endpoint = locate::parse_url(endpoint).expect("a URL");
            let checked = UrlGate::new(&endpoint, [], true, false).check_url("x", url);
            assert_eq!(checked.is_ok(), expected, "{url}: {checked:?}");
        }
    }
}
