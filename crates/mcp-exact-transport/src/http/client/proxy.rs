//! Proxies of HTTP clients: which proxy a request takes, by a URL or by the usual environment variables.
//!
//! Nothing here is sent; credentials of a proxy are in no error and no `Debug` output.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::time::Duration;

use http::{HeaderValue, StatusCode, Uri};
use hyper_util::client::proxy::matcher::{Intercept, Matcher};

use super::HttpClientError;

/// Proxies through which a [`HyperClient`](super::HyperClient) sends its requests.
///
/// Requests with `https` URLs are sent through a tunnel (`CONNECT`), so that the proxy sees the name of the server only. Requests
/// with `http` URLs are sent to the proxy itself, which can read and change them. A user name and a password in the URL of the
/// proxy are sent as `Proxy-Authorization` (Basic), to the proxy alone. The proxy resolves the names of servers.
#[derive(Clone)]
pub struct Proxy {
    /// Proxy for `http` URLs.
    http: Option<Hop>,
    /// Proxy for `https` URLs.
    https: Option<Hop>,
    /// Servers that are reached without a proxy.
    exceptions: Arc<[Exception]>,
    /// True if loopback addresses are reached without a proxy.
    spares_loopback: bool,
}

/// A proxy that was configured.
#[derive(Clone)]
pub(super) struct Hop {
    /// URL without credentials, and the credentials; `None` if the configured value is not the URL of a proxy.
    found: Option<Intercept>,
    /// Environment variable that names the proxy.
    variable: Option<&'static str>,
}

/// Entry of a list of servers that are reached without a proxy.
struct Exception {
    /// The only port for which the entry holds.
    port: Option<u16>,
    /// Matches the hosts of the entry.
    hosts: Matcher,
}

impl Proxy {
    /// Returns no proxy: every server is reached directly.
    pub fn none() -> Self {
        Self {
            http: None,
            https: None,
            exceptions: Arc::default(),
            spares_loopback: false,
        }
    }

    /// Returns a proxy for all requests, those to the local machine included, such as `http://user:password@proxy.example:3128`.
    /// The proxy itself has an `http` URL or, with the feature `tls`, an `https` URL.
    ///
    /// # Errors
    /// [`ProxyError`] for other values. The error does not contain the value.
    pub fn new(url: &str) -> Result<Self, ProxyError> {
        let hop = Hop {
            found: parse(url),
            variable: None,
        };
        hop.intercept()?;
        Ok(Self {
            http: Some(hop.clone()),
            https: Some(hop),
            ..Self::none()
        })
    }

    /// Returns the proxies that environment variables name, as in curl: `HTTPS_PROXY` for `https` URLs, `HTTP_PROXY` for `http`
    /// URLs, `ALL_PROXY` for both, and exceptions in `NO_PROXY`, each in lower case too. The variables are read once.
    ///
    /// Loopback addresses and `localhost` never take such a proxy. `HTTP_PROXY` is ignored if `REQUEST_METHOD` is set, because
    /// clients of a CGI program can set it by a header `Proxy`. A variable that does not name an HTTP proxy is an error of each
    /// request that would take it: no request silently goes another way.
    pub fn from_env() -> Self {
        Self::from_variables(|name| std::env::var(name).ok())
    }

    /// Returns the proxies that variables name.
    fn from_variables(variable: impl Fn(&str) -> Option<String>) -> Self {
        let first = |names: &[&'static str]| {
            let mut set = names
                .iter()
                .filter_map(|name| Some((*name, variable(name)?)));
            let (name, value) = set.next()?;
            (!value.trim().is_empty()).then(|| Hop {
                found: parse(&value),
                variable: Some(name),
            })
        };
        let all = first(&["ALL_PROXY", "all_proxy"]);
        let http: &[_] = if variable("REQUEST_METHOD").is_none() {
            &["HTTP_PROXY", "http_proxy"]
        } else if cfg!(windows) {
            // The names of variables have no case there.
            &[]
        } else {
            &["http_proxy"]
        };
        let except = variable("NO_PROXY").or_else(|| variable("no_proxy"));
        Self {
            http: first(http).or_else(|| all.clone()),
            https: first(&["HTTPS_PROXY", "https_proxy"]).or(all),
            exceptions: Arc::default(),
            spares_loopback: true,
        }
        .except(&except.unwrap_or_default())
    }

    /// Sets the servers that are reached without a proxy, in the form of `NO_PROXY`: entries between commas, each a host
    /// (`example.com`, with all names below it), an address (`192.0.2.1`, `2001:db8::1`), a network (`10.0.0.0/8`), or `*` for
    /// all servers. A host or an address with a port (`example.com:8443`, `[2001:db8::1]:8443`) holds for this port alone.
    #[must_use]
    pub fn except(mut self, list: &str) -> Self {
        let entries = list.split(|c: char| c == ',' || c.is_whitespace());
        let entries = entries.filter(|entry| !entry.is_empty()).map(|entry| {
            let (host, port) = split_port(entry);
            let below = host.strip_prefix('*').filter(|rest| rest.starts_with('.'));
            let rules = Matcher::builder().all("http://proxy.invalid");
            Exception {
                port,
                hosts: rules.no(below.unwrap_or(host)).build(),
            }
        });
        self.exceptions = entries.collect();
        self
    }

    /// Returns the proxy for a request; `None` if the server is reached directly.
    pub(super) fn route(&self, target: &Uri) -> Result<Option<&Hop>, ProxyError> {
        let is_https = target.scheme_str() == Some("https");
        let hop = if is_https { &self.https } else { &self.http };
        let (Some(hop), Some(host)) = (hop, target.host()) else {
            return Ok(None);
        };
        let address = literal_address(host);
        if self.spares_loopback
            && address.is_some_and(|address| address.to_canonical().is_loopback())
        {
            return Ok(None);
        }
        let port = target.port_u16().unwrap_or(if is_https { 443 } else { 80 });
        let is_exempt = self.exceptions.iter().any(|exception| {
            exception.port.is_none_or(|only| only == port)
                && exception.hosts.intercept(target).is_none()
        });
        if is_exempt {
            return Ok(None);
        }
        hop.intercept()?;
        Ok(Some(hop))
    }
}

impl fmt::Debug for Proxy {
    /// The output has no credentials.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Proxy")
            .field("http", &self.http)
            .field("https", &self.https)
            .finish_non_exhaustive()
    }
}

/// Parses the URL of a proxy; `None` if its scheme is no supported one, or a part of a password would be taken for its host.
fn parse(url: &str) -> Option<Intercept> {
    let url = url.trim().trim_end_matches('/');
    let authority = url.split_once("://").map_or(url, |(_, rest)| rest);
    if authority.contains(['/', '?', '#']) || authority.matches('@').count() > 1 {
        return None;
    }
    let rules = Matcher::builder().all(url).build();
    let found = rules.intercept(&Uri::from_static("http://server.invalid"))?;
    let scheme = found.uri().scheme_str();
    // The type of URIs accepts ports that are no numbers.
    let authority = found.uri().authority()?;
    let port = authority.as_str().strip_prefix(authority.host())?;
    if !port.is_empty() && port[1..].parse::<u16>().is_err() {
        return None;
    }
    let is_supported = scheme == Some("http") || (cfg!(feature = "tls") && scheme == Some("https"));
    is_supported.then_some(found)
}

/// Splits an exception into its host, without the brackets of an IPv6 address, and its port.
fn split_port(entry: &str) -> (&str, Option<u16>) {
    if let Some((host, port)) = entry.rsplit_once(':')
        && (!host.contains(':') || host.ends_with(']'))
        && let Ok(port) = port.parse()
    {
        return (without_brackets(host), Some(port));
    }
    (without_brackets(entry), None)
}

/// Returns a host without the brackets of an IPv6 address.
pub(super) fn without_brackets(host: &str) -> &str {
    host.trim_start_matches('[').trim_end_matches(']')
}

/// Returns the address that a host is without being resolved: a literal one, or that of `localhost`.
pub(super) fn literal_address(host: &str) -> Option<IpAddr> {
    let name = host.trim_end_matches('.').to_ascii_lowercase();
    if name == "localhost" || name.ends_with(".localhost") {
        return Some(Ipv4Addr::LOCALHOST.into());
    }
    without_brackets(host).parse().ok()
}

impl Hop {
    /// Returns the URL and the credentials.
    fn intercept(&self) -> Result<&Intercept, ProxyError> {
        self.found
            .as_ref()
            .ok_or_else(|| self.error(Problem::InvalidUrl))
    }

    /// Returns the URL without credentials.
    pub(super) fn uri(&self) -> Result<&Uri, ProxyError> {
        Ok(self.intercept()?.uri())
    }

    /// Returns the value of the header `Proxy-Authorization`.
    pub(super) fn authorization(&self) -> Option<&HeaderValue> {
        self.found.as_ref()?.basic_auth()
    }

    /// Returns the error for a problem with the proxy.
    pub(super) fn error(&self, problem: Problem) -> ProxyError {
        let found = self.found.as_ref();
        ProxyError {
            url: found.map(|found| found.uri().to_string().trim_end_matches('/').to_owned()),
            variable: self.variable,
            has_credentials: self.authorization().is_some(),
            problem,
        }
    }
}

impl fmt::Debug for Hop {
    /// The output has no credentials.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.found {
            Some(found) => write!(f, "{}", found.uri()),
            None => f.write_str("invalid"),
        }
    }
}

/// Reason why a request did not pass its proxy. It names the proxy, without credentials, and the environment variable that
/// configures it.
#[derive(Debug)]
pub struct ProxyError {
    /// URL of the proxy without credentials; `None` if it is not known.
    url: Option<String>,
    /// Environment variable that names the proxy.
    variable: Option<&'static str>,
    /// True if the request had credentials for the proxy.
    has_credentials: bool,
    /// What went wrong.
    problem: Problem,
}

/// What went wrong with a proxy.
#[derive(Debug)]
pub(super) enum Problem {
    /// The configured value is not the URL of an HTTP proxy.
    InvalidUrl,
    /// There is no connection to the proxy.
    Connect(HttpClientError),
    /// The proxy demands other credentials (status 407).
    Credentials,
    /// The proxy did not connect to a server.
    Refused {
        /// Host and port of the server.
        server: String,
        /// Status of the proxy.
        status: StatusCode,
    },
    /// The proxy did not answer as an HTTP proxy.
    Protocol(hyper::Error),
    /// The proxy did not connect in time.
    TimedOut(Duration),
}

impl Problem {
    /// Returns the problem that there is no connection to the proxy.
    pub(super) fn connect(error: impl Into<HttpClientError>) -> Self {
        Self::Connect(error.into())
    }
}

impl ProxyError {
    /// Returns the HTTP status with which the proxy refused the request, if it did.
    pub fn status(&self) -> Option<StatusCode> {
        match &self.problem {
            Problem::Credentials => Some(StatusCode::PROXY_AUTHENTICATION_REQUIRED),
            Problem::Refused { status, .. } => Some(*status),
            _ => None,
        }
    }

    /// Returns true if the proxy did not connect to the server, but might to another address of it.
    pub(super) fn is_refused(&self) -> bool {
        matches!(self.problem, Problem::Refused { .. })
    }
}

impl fmt::Display for ProxyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut name = "the proxy".to_owned();
        if let Some(url) = &self.url {
            name = format!("{name} {url}");
        }
        if let Some(variable) = self.variable {
            name = format!("{name} (of the variable {variable})");
        }
        match &self.problem {
            Problem::InvalidUrl => write!(
                f,
                "{name} is not the URL of an HTTP proxy; write it as `http://host:port`, with special characters of a password \
                 percent-encoded"
            ),
            Problem::Connect(_) => write!(f, "cannot connect to {name}"),
            Problem::Credentials if self.has_credentials => write!(
                f,
                "{name} does not accept the user name and password of its URL (status 407)"
            ),
            Problem::Credentials => write!(
                f,
                "{name} demands credentials (status 407); write its URL as `http://user:password@host:port`"
            ),
            Problem::Refused { server, status } => {
                write!(f, "{name} refused to connect to {server}: status {status}")
            }
            Problem::Protocol(_) => write!(f, "{name} did not answer as an HTTP proxy"),
            Problem::TimedOut(limit) => write!(f, "{name} made no connection within {limit:?}"),
        }
    }
}

impl std::error::Error for ProxyError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match &self.problem {
            Problem::Connect(error) => Some(&**error),
            Problem::Protocol(error) => Some(error),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the proxies of variables `NAME=value`.
    fn of(variables: &[&str]) -> Proxy {
        let variables: Vec<_> = variables.iter().filter_map(|v| v.split_once('=')).collect();
        Proxy::from_variables(|name| {
            let found = variables.iter().find(|(set, _)| *set == name);
            found.map(|(_, value)| (*value).to_owned())
        })
    }

    /// Returns the proxy for a URL; empty if there is none.
    fn route(proxy: &Proxy, url: &str) -> String {
        let hop = proxy.route(&url.parse().expect("a URL")).expect("valid");
        hop.map_or_else(String::new, |hop| hop.uri().expect("valid").to_string())
    }

    /// Each scheme has its variable, in capitals first, and `ALL_PROXY` after it; an empty one is none.
    #[test]
    fn variables_name_proxies() {
        let proxy = of(&[
            "HTTPS_PROXY=http://a:1",
            "https_proxy=http://b:1",
            "http_proxy=c:1",
        ]);
        assert_eq!(route(&proxy, "https://s.test/"), "http://a:1/");
        assert_eq!(route(&proxy, "http://s.test/"), "http://c:1/");
        let proxy = of(&[
            "HTTPS_PROXY=",
            "all_proxy=http://d:1",
            "HTTP_PROXY=http://e:1",
        ]);
        assert_eq!(route(&proxy, "https://s.test/"), "http://d:1/");
        assert_eq!(route(&proxy, "http://s.test/"), "http://e:1/");
        assert_eq!(route(&of(&["HTTPS_PROXY="]), "https://s.test/"), "");
        assert_eq!(route(&of(&[]), "https://s.test/"), "");
        assert_eq!(route(&Proxy::none(), "https://s.test/"), "");
    }

    /// A client of a CGI program cannot choose the proxy.
    #[test]
    fn cgi_programs_ignore_http_proxy() {
        let cgi = ["REQUEST_METHOD=GET", "HTTP_PROXY=http://evil:1"];
        assert_eq!(route(&of(&cgi), "http://s.test/"), "");
        let own = [&cgi[..], &["ALL_PROXY=http://own:1"]].concat();
        assert_eq!(route(&of(&own), "http://s.test/"), "http://own:1/");
        let https = [&cgi[..], &["HTTPS_PROXY=http://own:1"]].concat();
        assert_eq!(route(&of(&https), "https://s.test/"), "http://own:1/");
    }

    /// Hosts, domains, networks and ports are excepted.
    #[test]
    fn exceptions_are_reached_directly() {
        let list = "a.test, .b.test,*.c.test 10.0.0.0/8,192.0.2.1,2001:db8::1,[2001:db8::2],d.test:8443,[2001:db8::3]:8443";
        let proxy = of(&["ALL_PROXY=http://p:1", &format!("NO_PROXY={list}")]);
        for (url, is_direct) in [
            ("https://a.test/", true),
            ("https://x.A.test/", true),
            ("https://nota.test/", false),
            ("https://b.test/", true),
            ("https://x.b.test:1/", true),
            ("https://x.c.test/", true),
            ("https://10.1.2.3/", true),
            ("https://11.1.2.3/", false),
            ("http://192.0.2.1:80/", true),
            ("https://[2001:db8::1]/", true),
            ("https://[2001:db8::2]/", true),
            ("https://d.test:8443/", true),
            ("https://d.test/", false),
            ("https://[2001:db8::3]:8443/", true),
            ("https://[2001:db8::3]/", false),
        ] {
            assert_eq!(route(&proxy, url).is_empty(), is_direct, "{url}");
        }
        let none = of(&["ALL_PROXY=http://p:1", "no_proxy=*"]);
        assert_eq!(route(&none, "https://a.test/"), "");
    }

    /// The proxy of a variable never gets requests to the local machine; that of the program does.
    #[test]
    fn loopback_takes_no_proxy_of_variables() {
        let variable = of(&["ALL_PROXY=http://p:1"]);
        let own = Proxy::new("http://p:1").expect("a URL");
        for url in [
            "http://localhost:1/",
            "http://x.LOCALHOST/",
            "https://127.0.0.2/",
            "http://[::1]/",
            "http://[::ffff:127.0.0.1]/",
        ] {
            assert_eq!(route(&variable, url), "", "{url}");
            assert_eq!(route(&own, url), "http://p:1/", "{url}");
        }
        let own = own.except("localhost");
        assert_eq!(route(&own, "http://localhost:1/"), "");
    }

    /// What is no HTTP proxy is an error that names the variable and not the value.
    #[test]
    fn invalid_proxies_are_errors() {
        for value in [
            "socks5://u:s3cret@p:1",
            "ftp://p:1",
            "http://u:s3c@ret@p:1",
            "http://u:1/s3cret@p:1",
            "http://u:s3cret",
        ] {
            let proxy = of(&[&format!("HTTPS_PROXY={value}")]);
            let error = proxy.route(&Uri::from_static("https://s.test/"));
            let error = error.expect_err(value);
            let words = format!("{error} {error:?} {proxy:?}");
            assert!(words.contains("(of the variable HTTPS_PROXY)"), "{words}");
            assert!(!words.contains("s3c"), "{words}");
            Proxy::new(value).expect_err(value);
        }
        let proxy = Proxy::new("http://u:s3cret@p:1").expect("a URL");
        let shown = format!("{proxy:?}");
        assert!(
            shown.contains("http://p:1") && !shown.contains("s3cret"),
            "{shown}"
        );
        let hop = proxy.https.expect("a proxy");
        assert_eq!(
            hop.authorization().expect("credentials"),
            "Basic dTpzM2NyZXQ="
        );
    }
}
