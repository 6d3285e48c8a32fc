//! HTTP connections to URLs from metadata: TLS with the system's root certificates, and no connections to disallowed
//! addresses, even after name resolution or through a proxy.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use bytes::{Bytes, BytesMut};
use http::{Request, Uri};
use http_body_util::BodyExt;
use mcp_exact_transport::http::client::{
    BlockedAddress, HttpBody, HttpClient, HttpClientError, HttpFuture, HyperClient, HyperOptions,
};

/// Maximum size of a response body in bytes.
const MAX_BODY_BYTES: usize = 1 << 20;

/// Addresses that connections are allowed to, in addition to public ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct AllowedAddresses {
    /// True if loopback addresses are allowed, with and without TLS.
    pub(crate) allows_loopback: bool,
    /// True if private networks are allowed.
    pub(crate) allows_private: bool,
    /// True if plain HTTP is allowed to all allowed addresses.
    pub(crate) allows_plain_http: bool,
}

impl AllowedAddresses {
    /// Returns true if connections to an address are allowed.
    pub(crate) fn is_allowed(self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        if address.is_loopback() {
            return self.allows_loopback;
        }
        let may_be_private = !address.is_unspecified() && !address.is_multicast();
        is_public(address) || (self.allows_private && may_be_private)
    }

    /// Returns true if connections to an address of a host are allowed. Ports on loopback are checked with the URL, whose host says
    /// that it is on loopback: other names do not lead there.
    fn is_allowed_for(self, host: &str, address: IpAddr) -> bool {
        let is_hidden = !self.allows_private
            && address.to_canonical().is_loopback()
            && !is_localhost(host)
            && host.parse::<IpAddr>().is_err();
        self.is_allowed(address) && !is_hidden
    }

    /// Checks a URL before a request; the error is the rule that the URL violates. Host names are checked after name
    /// resolution.
    pub(crate) fn check_url(self, url: &Uri) -> Result<(), &'static str> {
        let host = url.host().unwrap_or("");
        let literal = host.trim_start_matches('[').trim_end_matches(']');
        let address = literal.parse::<IpAddr>().ok();
        let is_loopback = match address {
            Some(address) => address.to_canonical().is_loopback(),
            None => is_localhost(host),
        };
        let has_user = url
            .authority()
            .is_some_and(|authority| authority.as_str().contains('@'));
        match url.scheme_str() {
            _ if host.is_empty() || has_user => {
                return Err("it is not an absolute HTTP URL without a user name");
            }
            Some("https") => {}
            Some("http") if self.allows_plain_http || (is_loopback && self.allows_loopback) => {}
            _ => return Err("it is not https"),
        }
        if address.is_none_or(|address| self.is_allowed(address)) {
            Ok(())
        } else {
            Err(PRIVATE_ADDRESS)
        }
    }
}

/// Returns true if a host name refers to the loopback address.
pub(crate) fn is_localhost(host: &str) -> bool {
    let host = host.trim_end_matches('.').to_ascii_lowercase();
    host == "localhost" || host.ends_with(".localhost")
}

/// Returns true for public Internet addresses (IANA special-purpose registries).
fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

/// Returns true for a public IPv4 address.
fn is_public_v4(address: Ipv4Addr) -> bool {
    let [a, b, c, _] = address.octets();
    let is_special = address.is_private()
        || address.is_loopback()
        || address.is_link_local()
        || address.is_documentation()
        || matches!((a, b, c), (192, 0, 0) | (192, 88, 99))
        || a == 0
        || (a == 100 && b & 0xc0 == 64)
        || (a == 198 && b & 0xfe == 18)
        || a >= 224;
    !is_special
}

/// Returns true for a public IPv6 address.
fn is_public_v6(address: Ipv6Addr) -> bool {
    let [a, b, c, d, e, f, g, h] = address.segments();
    let embedded = |high: u16, low: u16| {
        let [a, b] = high.to_be_bytes();
        let [c, d] = low.to_be_bytes();
        is_public_v4(Ipv4Addr::new(a, b, c, d))
    };
    match (a, b) {
        // NAT64 and 6to4 addresses contain an IPv4 address.
        (0x64, 0xff9b) if [c, d, e, f] == [0; 4] => embedded(g, h),
        (0x2002, _) => embedded(b, c),
        // The rejected ranges are Teredo, benchmarking, ORCHID and documentation.
        (0x2001, ..0x200 | 0xdb8) | (0x3fff, ..0x1000) => false,
        // Only 2000::/3 is global unicast.
        _ => a & 0xe000 == 0x2000,
    }
}

/// Error for a URL that violates a rule.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct BlockedUrl(&'static str);

/// Rule about addresses.
pub(crate) const PRIVATE_ADDRESS: &str = "it leads to a private or reserved address";

/// Returns the violated rule if an error is a blocked name or URL, and true if the rule is about its address.
pub(crate) fn blocking_rule(error: &(dyn std::error::Error + 'static)) -> Option<(String, bool)> {
    let mut error = Some(error);
    while let Some(cause) = error {
        if let Some(BlockedUrl(rule)) = cause.downcast_ref() {
            return Some(((*rule).to_owned(), *rule == PRIVATE_ADDRESS));
        }
        if let Some(blocked) = cause.downcast_ref::<BlockedAddress>() {
            return Some((describe_blocked(blocked), true));
        }
        error = cause.source();
    }
    None
}

/// Describes why no connection is made to a host.
fn describe_blocked(blocked: &BlockedAddress) -> String {
    match blocked {
        BlockedAddress::Host(host) => {
            format!("`{host}` resolves to a private or reserved address")
        }
        BlockedAddress::ByProxy(host) => format!(
            "`{host}` does not resolve here, and the proxy may resolve it to a private or reserved address"
        ),
        blocked => blocked.to_string(),
    }
}

/// Formats an error and its causes as one string.
pub(crate) fn error_with_causes(error: &(dyn std::error::Error + 'static)) -> String {
    let mut message = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        message.push_str(": ");
        message.push_str(&cause.to_string());
        source = cause.source();
    }
    message
}

/// Reads a body of at most [`MAX_BODY_BYTES`].
pub(crate) async fn read_body(mut body: HttpBody) -> Result<Bytes, HttpClientError> {
    let mut whole = BytesMut::new();
    while let Some(frame) = body.frame().await {
        if let Ok(data) = frame?.into_data() {
            if whole.len() + data.len() > MAX_BODY_BYTES {
                return Err("the answer is longer than 1 MiB".into());
            }
            whole.extend_from_slice(&data);
        }
    }
    Ok(whole.freeze())
}

/// HTTP client whose connections are made to allowed addresses only, through a proxy too.
///
/// A proxy gets a checked address instead of a name. If private addresses are allowed, it gets the name, because the application
/// trusts the network: the proxy decides then.
pub(crate) struct CheckedClient {
    /// Client with the checked connections.
    client: HyperClient,
    /// Allowed addresses.
    addresses: AllowedAddresses,
}

impl CheckedClient {
    /// Creates a client. A client certificate of `options` is not presented, because it is for the MCP server.
    pub(crate) fn new(addresses: AllowedAddresses, options: HyperOptions) -> Self {
        let options = options
            .without_client_certificate()
            .only_addresses(move |host, address| addresses.is_allowed_for(host, address));
        let options = if addresses.allows_private {
            options.proxy_resolves_names()
        } else {
            options
        };
        Self {
            client: options.build(),
            addresses,
        }
    }
}

impl HttpClient for CheckedClient {
    fn send(&self, request: Request<Bytes>) -> HttpFuture<'_> {
        Box::pin(async move {
            // Addresses in URLs are not resolved and therefore checked here.
            self.addresses
                .check_url(request.uri())
                .map_err(BlockedUrl)?;
            self.client.send(request).await
        })
    }
}

#[cfg(test)]
mod tests {
    use mcp_exact_transport::http::client::Proxy;
    use tokio::io::AsyncReadExt as _;

    use super::*;

    /// Rules that allow public addresses only.
    const PUBLIC_ONLY: AllowedAddresses = AllowedAddresses {
        allows_loopback: false,
        allows_private: false,
        allows_plain_http: false,
    };
    /// Rules that allow all addresses, and plain HTTP on loopback only.
    const ALLOW_ALL: AllowedAddresses = AllowedAddresses {
        allows_loopback: true,
        allows_private: true,
        allows_plain_http: false,
    };

    /// By default only public addresses are allowed; unspecified and multicast addresses are never allowed.
    #[test]
    fn private_addresses_are_blocked() {
        for (address, is_allowed) in [
            ("1.1.1.1", true),
            ("2606:4700:4700::1111", true),
            ("::ffff:1.1.1.1", true),
            ("64:ff9b::101:101", true),
            // The neighbours of special ranges.
            ("8.18.0.1", true),
            ("8.64.0.1", true),
            ("100.1.0.1", true),
            ("198.1.0.1", true),
            // NAT64 with a local prefix (RFC 8215) leads into the network of its translator.
            ("64:ff9b:1::101:101", false),
            ("10.0.0.1", false),
            ("100.64.0.1", false),
            ("127.0.0.1", false),
            ("169.254.169.254", false),
            ("172.16.0.1", false),
            ("192.0.0.1", false),
            ("192.0.2.1", false),
            ("192.168.1.1", false),
            ("198.18.0.1", false),
            ("::1", false),
            ("::ffff:127.0.0.1", false),
            ("::ffff:169.254.169.254", false),
            ("::127.0.0.1", false),
            ("64:ff9b::a00:1", false),
            ("2002:7f00:1::", false),
            ("2001:db8::1", false),
            ("2001::1", false),
            ("fc00::1", false),
            ("fd00:ec2::254", false),
            ("fe80::1", false),
        ] {
            let address: IpAddr = address.parse().expect("an address");
            assert_eq!(PUBLIC_ONLY.is_allowed(address), is_allowed, "{address}");
            assert!(ALLOW_ALL.is_allowed(address), "{address}");
        }
        for never in ["0.0.0.0", "::", "224.0.0.1", "ff02::1"] {
            let address: IpAddr = never.parse().expect("an address");
            assert!(!ALLOW_ALL.is_allowed(address), "{address}");
        }
    }

    /// A name that is not of this machine leads to it only in a network that the application trusts: whoever can choose the
    /// addresses of a name must not choose a port of the machine ("Server-Side Request Forgery", DNS rebinding).
    #[test]
    fn other_names_do_not_lead_to_loopback() {
        let local = AllowedAddresses {
            allows_loopback: true,
            ..PUBLIC_ONLY
        };
        for (host, address, of_local, of_all) in [
            ("localhost", "127.0.0.1", true, true),
            ("127.0.0.1", "127.0.0.1", true, true),
            ("::1", "::1", true, true),
            ("mcp.example", "127.0.0.1", false, true),
            ("mcp.example", "::ffff:127.0.0.1", false, true),
            ("mcp.example", "1.1.1.1", true, true),
            ("mcp.example", "10.0.0.1", false, true),
            ("localhost", "10.0.0.1", false, true),
            ("mcp.example", "0.0.0.0", false, false),
        ] {
            let ip = address.parse().expect("an address");
            let allowed = [local, ALLOW_ALL].map(|rules| rules.is_allowed_for(host, ip));
            assert_eq!(allowed, [of_local, of_all], "{host} {address}");
        }
    }

    /// A body of 1 MiB is read, and a longer one is refused before all of it is kept.
    #[tokio::test]
    async fn bodies_are_limited() {
        for (length, is_read) in [
            (0, true),
            (MAX_BODY_BYTES, true),
            (MAX_BODY_BYTES + 1, false),
        ] {
            let body = http_body_util::Full::new(Bytes::from(vec![b'x'; length]));
            let body = body.map_err(|never| match never {}).boxed_unsync();
            let read = read_body(body).await.ok();
            assert_eq!(read.map(|body| body.len()), is_read.then_some(length));
        }
    }

    /// A URL is checked for its scheme and for an IP address or `localhost` before a request is sent.
    #[test]
    fn urls_are_checked_before_requests() {
        for (url, is_allowed) in [
            ("https://a.example/x", true),
            ("https://1.1.1.1/x", true),
            ("http://a.example/x", false),
            ("https://[::1]/x", false),
            ("https://169.254.169.254/", false),
            ("https://user@a.example/", false),
            ("/x", false),
        ] {
            let uri = url.parse().expect("a URI");
            assert_eq!(PUBLIC_ONLY.check_url(&uri).is_ok(), is_allowed, "{url}");
        }
        let local = AllowedAddresses {
            allows_loopback: true,
            ..PUBLIC_ONLY
        };
        for (url, is_allowed) in [
            ("http://localhost:1/x", true),
            ("http://[::1]:1/x", true),
            ("http://a.example/x", false),
            ("http://10.0.0.1/x", false),
        ] {
            let uri = url.parse().expect("a URI");
            assert_eq!(local.check_url(&uri).is_ok(), is_allowed, "{url}");
        }
    }

    /// The check uses the resolved address, not the name.
    #[tokio::test]
    async fn resolved_addresses_are_checked() {
        let client = CheckedClient::new(PUBLIC_ONLY, HyperOptions::default());
        let request = Request::get("https://localhost:9/").body(Bytes::new());
        let sent = client.send(request.expect("a request")).await;
        let error = sent.map(drop).expect_err("it is blocked");
        let rule = "`localhost` resolves to a private or reserved address";
        assert_eq!(blocking_rule(&*error), Some((rule.to_owned(), true)));
        let request = Request::get("http://mcp.example/").body(Bytes::new());
        let sent = client.send(request.expect("a request")).await;
        let error = sent.map(drop).expect_err("it is not https");
        let rule = "it is not https";
        assert_eq!(blocking_rule(&*error), Some((rule.to_owned(), false)));
        let other = std::io::Error::other("another error");
        assert_eq!(blocking_rule(&other), None);
    }

    /// A proxy is never asked for a private address, nor for a name that cannot be checked.
    #[tokio::test]
    async fn proxies_resolve_no_unchecked_names() {
        let proxy = tokio::net::TcpListener::bind("127.0.0.1:0").await;
        let proxy = proxy.expect("bound");
        let url = format!("http://{}", proxy.local_addr().expect("an address"));
        let options = || HyperOptions::default().proxy(Proxy::new(&url).expect("a URL"));
        let private = "a private or reserved address";
        for (url, words) in [
            ("https://localhost:9/", private),
            (
                "https://name.invalid/",
                "`name.invalid` does not resolve here, and the proxy may resolve it",
            ),
            ("https://10.0.0.1/", private),
            ("https://[::ffff:10.0.0.1]/", private),
        ] {
            let client = CheckedClient::new(PUBLIC_ONLY, options());
            let request = Request::get(url).body(Bytes::new()).expect("a request");
            let error = client.send(request).await.map(drop).expect_err(url);
            let (reason, is_private) = blocking_rule(&*error).expect("it is blocked");
            assert!(is_private && reason.contains(words), "{reason}");
        }
        // In a trusted network, the proxy gets the name.
        let client = CheckedClient::new(ALLOW_ALL, options());
        let request = Request::get("https://name.invalid/").body(Bytes::new());
        let asked = async {
            let (mut stream, _) = proxy.accept().await.expect("a connection");
            let mut line = [0; 24];
            stream.read_exact(&mut line).await.expect("bytes");
            String::from_utf8_lossy(&line).into_owned()
        };
        let sent = client.send(request.expect("a request"));
        let (line, sent) = tokio::join!(asked, sent);
        assert!(line.starts_with("CONNECT name.invalid:443"), "{line}");
        sent.map(drop).expect_err("the proxy closes");
    }
}
