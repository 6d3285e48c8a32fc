//! User agents: the system browser with a loopback redirect, or a URL that is displayed and a redirect URL that the
//! user pastes. Applications with their own user interface implement [`UserAgent`].

use std::future::Future;
use std::pin::Pin;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::timeout;
use url::Url;

use super::gate::is_loopback;
use super::request::AUTHORIZATION_LIFETIME;
use crate::locate;
use crate::metadata::to_short_line;
use crate::secret::Secret;

/// Maximum number of concurrent connections to the redirect port.
const MAX_CONNECTIONS: usize = 16;

/// Future that a method of a user agent or redirect returns; its error is displayed to the user.
pub type AgentFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T, String>> + Send + 'a>>;

/// Sends the user to the authorization server and receives the redirect.
pub trait UserAgent: Send + Sync + 'static {
    /// Prepares to receive the redirect of one authorization. `preferred` is the redirect URI with which the client is
    /// registered; if the returned redirect has another URI, the client registers again.
    fn begin<'a>(&'a self, preferred: Option<&'a str>) -> AgentFuture<'a, Box<dyn Redirect>>;
}

/// Redirect of the user's browser to the client, at the end of one authorization.
pub trait Redirect: Send {
    /// Returns the redirect URI: https, a loopback address, or a custom scheme.
    fn redirect_uri(&self) -> &str;

    /// Opens the URL for the user and returns the complete query of the redirect, without decoding or validating it.
    fn authorize(self: Box<Self>, url: Url) -> AgentFuture<'static, Secret>;
}

/// Function that opens a URL for the user.
type OpenUrl = Arc<dyn Fn(&Url) -> Result<(), String> + Send + Sync>;

/// User agent that opens the system browser and receives the redirect on `127.0.0.1`.
#[derive(Clone)]
pub struct Browser {
    /// Function that opens a URL.
    open: OpenUrl,
    /// Host in redirect URIs: `127.0.0.1` or `localhost`.
    host: &'static str,
    /// Port of the listener; `None` for a port that the system chooses.
    port: Option<u16>,
    /// Text that the browser displays after the redirect.
    page: Arc<str>,
}

impl Default for Browser {
    fn default() -> Self {
        Self {
            open: Arc::new(open_browser),
            host: "127.0.0.1",
            port: None,
            page: "You are signed in. You can close this window.".into(),
        }
    }
}

impl Browser {
    /// Sets the function that opens a URL, instead of the system browser.
    #[must_use]
    pub fn open_with(
        mut self,
        open: impl Fn(&Url) -> Result<(), String> + Send + Sync + 'static,
    ) -> Self {
        self.open = Arc::new(open);
        self
    }

    /// Uses `localhost` in redirect URIs, for authorization servers that reject `127.0.0.1`.
    #[must_use]
    pub fn use_localhost(mut self) -> Self {
        self.host = "localhost";
        self
    }

    /// Listens for redirects only on this port, for clients that are registered manually with the redirect URI
    /// `http://127.0.0.1:PORT/callback`. By default, the system chooses a free port.
    #[must_use]
    pub fn port(mut self, port: u16) -> Self {
        self.port = Some(port);
        self
    }

    /// Sets the text that the browser displays after the redirect.
    #[must_use]
    pub fn page(mut self, text: &str) -> Self {
        self.page = text.into();
        self
    }
}

impl UserAgent for Browser {
    fn begin<'a>(&'a self, preferred: Option<&'a str>) -> AgentFuture<'a, Box<dyn Redirect>> {
        Box::pin(async move {
            let preferred = preferred.and_then(locate::parse_url).filter(is_loopback);
            let preferred = preferred.and_then(|url| url.port());
            let bound = match preferred {
                Some(port) if self.port.is_none() => {
                    TcpListener::bind(("127.0.0.1", port)).await.ok()
                }
                _ => None,
            };
            let port = self.port.unwrap_or(0);
            let listener = match bound {
                Some(listener) => listener,
                None => TcpListener::bind(("127.0.0.1", port))
                    .await
                    .map_err(|error| port_error(port, &error))?,
            };
            let port = listener.local_addr().map_err(|error| error.to_string())?;
            let uri = format!("http://{}:{}/callback", self.host, port.port());
            let redirect: Box<dyn Redirect> = Box::new(Loopback {
                listener,
                uri,
                open: Arc::clone(&self.open),
                page: Arc::clone(&self.page),
            });
            Ok(redirect)
        })
    }
}

/// Returns the error for a port that cannot be opened.
fn port_error(port: u16, error: &std::io::Error) -> String {
    match port {
        0 => format!("no port for the redirect can be opened: {error}"),
        port => format!("port {port} of 127.0.0.1 cannot be opened for the redirect: {error}"),
    }
}

/// Redirect that a listener on the loopback interface receives.
struct Loopback {
    /// Listener for the redirect.
    listener: TcpListener,
    /// Redirect URI.
    uri: String,
    /// Function that opens a URL.
    open: OpenUrl,
    /// Text that the browser displays after the redirect.
    page: Arc<str>,
}

impl Redirect for Loopback {
    fn redirect_uri(&self) -> &str {
        &self.uri
    }

    fn authorize(self: Box<Self>, url: Url) -> AgentFuture<'static, Secret> {
        Box::pin(async move {
            (self.open)(&url)?;
            let state = url.query_pairs().find(|(name, _)| name == "state");
            let state = Secret::new(state.map_or(String::new(), |(_, state)| state.into_owned()));
            let (found, mut redirects) = mpsc::channel(1);
            let expected = Arc::new(ExpectedRedirect {
                state,
                page: self.page,
            });
            let mut listening = JoinSet::new();
            listening.spawn(listen(self.listener, expected, found));
            let late = |_| "nobody signed in within ten minutes".to_owned();
            let redirect = timeout(AUTHORIZATION_LIFETIME, redirects.recv())
                .await
                .map_err(late)?;
            redirect.unwrap_or_else(|| Err("the port of the redirect was closed".to_owned()))
        })
    }
}

/// Redirect that the listener expects.
struct ExpectedRedirect {
    /// Value of `state` in the authorization request.
    state: Secret,
    /// Text that the browser displays after the redirect.
    page: Arc<str>,
}

/// Accepts connections until the redirect is received. Several connections are handled concurrently, because browsers
/// open connections that they do not use.
async fn listen(
    listener: TcpListener,
    expected: Arc<ExpectedRedirect>,
    found: mpsc::Sender<Result<Secret, String>>,
) {
    let mut connections = JoinSet::new();
    loop {
        let stream = match listener.accept().await {
            Ok((stream, _)) => stream,
            Err(error) => return drop(found.send(Err(error.to_string())).await),
        };
        while connections.try_join_next().is_some() {}
        if connections.len() >= MAX_CONNECTIONS {
            connections.join_next().await;
        }
        let (expected, found) = (Arc::clone(&expected), found.clone());
        connections.spawn(async move {
            if let Some(query) = expected.answer_request(stream).await {
                // After the first redirect, no receiver waits.
                let _ = found.send(Ok(query)).await;
            }
        });
    }
}

impl ExpectedRedirect {
    /// Responds to one request; returns its query if the request is the expected redirect. All other requests receive
    /// status 404: requests for an icon, and requests of web pages that guess the port but do not know the state.
    async fn answer_request(&self, mut stream: TcpStream) -> Option<Secret> {
        let read = timeout(Duration::from_secs(10), read_target(&mut stream)).await;
        let target = read.ok().flatten();
        let target = target.as_ref().map(Secret::expose);
        let query = target.and_then(|target| target.strip_prefix("/callback?"));
        let query = query.filter(|query| has_state(query, &self.state));
        let refusal = query.and_then(refusal_text);
        let (status, text) = match query {
            Some(_) => ("200 OK", refusal.as_deref().unwrap_or(&self.page)),
            None => ("404 Not Found", "There is nothing here."),
        };
        let response = format!(
            "HTTP/1.1 {status}\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: {}\r\nCache-Control: no-store\r\nReferrer-Policy: no-referrer\r\nConnection: close\r\n\r\n{text}",
            text.len()
        );
        // The browser may have disconnected.
        let _ = stream.write_all(response.as_bytes()).await;
        let _ = stream.shutdown().await;
        query.map(Secret::new)
    }
}

/// Returns the text that the browser displays after a redirect with an error; `None` without one.
fn refusal_text(query: &str) -> Option<String> {
    let mut pairs = url::form_urlencoded::parse(query.as_bytes());
    let (_, error) = pairs.find(|(name, _)| name == "error")?;
    let error = to_short_line(error);
    Some(format!(
        "You are not signed in: the authorization server answered {error}. You can close this window; the program says more."
    ))
}

/// Returns true if the query has this `state`.
fn has_state(query: &str, state: &Secret) -> bool {
    let mut pairs = url::form_urlencoded::parse(query.as_bytes());
    pairs.any(|(name, value)| name == "state" && Secret::new(value) == *state)
}

/// Reads the request target of a GET request.
async fn read_target(stream: &mut TcpStream) -> Option<Secret> {
    let mut head = zeroize::Zeroizing::new(Vec::new());
    while !head.windows(4).any(|end| end == b"\r\n\r\n") {
        let mut chunk = [0; 2048];
        let read = stream.read(&mut chunk).await.ok()?;
        head.extend_from_slice(&chunk[..read]);
        if read == 0 || head.len() > 32 << 10 {
            return None;
        }
    }
    let line = head.split(|&byte| byte == b'\r').next()?;
    let line = std::str::from_utf8(line).ok()?;
    let target = line.strip_prefix("GET ")?.strip_suffix(" HTTP/1.1")?;
    Some(Secret::new(target))
}

/// Opens a URL in the system browser, without a shell. The contents of the page are not read.
///
/// # Errors
/// Returns an error for the user if the URL is neither https nor loopback, or no browser starts.
pub fn open_browser(url: &Url) -> Result<(), String> {
    let is_loopback = url.scheme() == "http" && is_loopback(url);
    if url.scheme() != "https" && !is_loopback {
        return Err("only pages by https are opened".to_owned());
    }
    let (program, first): (&str, &[&str]) = if cfg!(target_os = "macos") {
        ("open", &[])
    } else if cfg!(windows) {
        ("rundll32.exe", &["url.dll,FileProtocolHandler"])
    } else {
        ("xdg-open", &[])
    };
    let mut command = Command::new(program);
    command.args(first).arg(url.as_str());
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let started = command.spawn();
    let mut child = started.map_err(|error| {
        format!(
            "`{program}` does not open the browser ({error}); use `Headless` where there is none"
        )
    })?;
    // Waits for the process, so that it does not become a zombie.
    std::thread::spawn(move || child.wait());
    Ok(())
}

/// Function that displays a URL and returns the redirect that the user pastes.
type ShowUrl = Arc<dyn Fn(&Url) -> AgentFuture<'static, String> + Send + Sync>;

/// User agent for systems without a browser: displays the URL, and the user pastes the URL of the redirect.
#[derive(Clone)]
pub struct Headless {
    /// Redirect URI.
    redirect_uri: String,
    /// Function that displays a URL.
    show: ShowUrl,
}

impl Headless {
    /// Creates an agent that calls `show` with the URL to open; the future of `show` returns the URL that the browser
    /// was redirected to.
    pub fn new<F, Fut>(show: F) -> Self
    where
        F: Fn(&Url) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<String, String>> + Send + 'static,
    {
        Self {
            redirect_uri: "http://127.0.0.1:8765/callback".to_owned(),
            show: Arc::new(move |url| Box::pin(show(url))),
        }
    }

    /// Creates an agent for the terminal, which writes to standard error and reads from standard input.
    pub fn for_terminal() -> Self {
        Self::new(|url| {
            use std::io::Write as _;
            let message = format!(
                "Open this URL in a browser:\n\n{url}\n\nThen paste the URL that the browser ends at (it need not load):\n"
            );
            let written = std::io::stderr().write_all(message.as_bytes());
            async move {
                written.map_err(|error| error.to_string())?;
                let read = tokio::task::spawn_blocking(|| {
                    let mut line = String::new();
                    std::io::stdin().read_line(&mut line).map(|_| line)
                });
                let line = read.await.map_err(|error| error.to_string())?;
                line.map_err(|error| error.to_string())
            }
        })
    }

    /// Sets the redirect URI.
    #[must_use]
    pub fn redirect_uri(mut self, uri: impl Into<String>) -> Self {
        self.redirect_uri = uri.into();
        self
    }
}

impl UserAgent for Headless {
    fn begin<'a>(&'a self, _: Option<&'a str>) -> AgentFuture<'a, Box<dyn Redirect>> {
        let redirect: Box<dyn Redirect> = Box::new(PastedRedirect(self.clone()));
        Box::pin(async move { Ok(redirect) })
    }
}

/// Redirect that the user pastes.
struct PastedRedirect(Headless);

impl Redirect for PastedRedirect {
    fn redirect_uri(&self) -> &str {
        &self.0.redirect_uri
    }

    fn authorize(self: Box<Self>, url: Url) -> AgentFuture<'static, Secret> {
        Box::pin(async move {
            let pasted = Secret::new((self.0.show)(&url).await?);
            let query = pasted.expose().trim().split_once('?');
            let (_, query) = query.ok_or("the pasted text is not a URL with a query")?;
            Ok(Secret::new(query.split('#').next().unwrap_or(query)))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The listener returns the query of the first request with the expected state, and responds to all other requests
    /// with status 404.
    #[tokio::test]
    async fn loopback_accepts_one_redirect() {
        let browser = Browser::default().open_with(|_| Ok(()));
        let redirect = browser.begin(None).await.expect("a port");
        let uri = Url::parse(redirect.redirect_uri()).expect("a URL");
        let port = uri.port().expect("a port");
        let opened = Url::parse("https://as.example/?state=s").expect("a URL");
        let waiting = tokio::spawn(redirect.authorize(opened));
        // A connection without data does not block others.
        let silent = TcpStream::connect(("127.0.0.1", port)).await.expect("open");
        let mut answers = Vec::new();
        for target in [
            "/favicon.ico",
            "/callback?code=x&state=guessed",
            "/callback?code=a%20b&state=s",
        ] {
            let mut stream = TcpStream::connect(("127.0.0.1", port)).await.expect("open");
            let request = format!("GET {target} HTTP/1.1\r\nHost: x\r\n\r\n");
            stream.write_all(request.as_bytes()).await.expect("sent");
            let mut answer = String::new();
            stream.read_to_string(&mut answer).await.expect("answered");
            answers.push(answer.lines().next().unwrap_or("").to_owned());
        }
        let (no, yes) = ("HTTP/1.1 404 Not Found", "HTTP/1.1 200 OK");
        assert_eq!(answers, [no, no, yes]);
        let query = waiting.await.expect("a task").expect("a query");
        assert_eq!(query.expose(), "code=a%20b&state=s");
        // It was waited for to the end, and is closed without an answer.
        let mut answer = String::new();
        let mut silent = silent;
        silent.read_to_string(&mut answer).await.expect("closed");
        assert_eq!(answer, "");
    }

    /// Each option of `Browser` has an effect: the function that opens the URL, `localhost` in the redirect URI, and the text of the last page.
    #[tokio::test]
    async fn browser_options_are_used() {
        let (opened, urls) = std::sync::mpsc::channel();
        let browser = Browser::default()
            .open_with(move |url| opened.send(url.clone()).map_err(|error| error.to_string()))
            .page("Done: go back.")
            .use_localhost();
        let redirect = browser.begin(None).await.expect("a port");
        let uri = redirect.redirect_uri().to_owned();
        assert!(uri.starts_with("http://localhost:"), "{uri}");
        assert!(uri.ends_with("/callback"), "{uri}");
        let port = Url::parse(&uri).expect("a URL").port().expect("a port");
        let url = Url::parse("https://as.example/?state=s").expect("a URL");
        let waiting = tokio::spawn(redirect.authorize(url.clone()));
        let mut stream = TcpStream::connect(("127.0.0.1", port)).await.expect("open");
        let request = b"GET /callback?code=x&state=s HTTP/1.1\r\n\r\n";
        stream.write_all(request).await.expect("sent");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.expect("answered");
        assert!(answer.ends_with("\r\n\r\nDone: go back."), "{answer}");
        let query = waiting.await.expect("a task").expect("a query");
        assert_eq!(query.expose(), "code=x&state=s");
        assert_eq!(urls.try_recv(), Ok(url));
    }

    /// A page that says "signed in" after a refusal misleads the user: it says what the authorization server has answered, as plain
    /// text.
    #[tokio::test]
    async fn refusals_are_displayed() {
        let browser = Browser::default().open_with(|_| Ok(()));
        let redirect = browser.begin(None).await.expect("a port");
        let uri = Url::parse(redirect.redirect_uri()).expect("a URL");
        let port = uri.port().expect("a port");
        let url = Url::parse("https://as.example/?state=s").expect("a URL");
        let waiting = tokio::spawn(redirect.authorize(url));
        let mut stream = TcpStream::connect(("127.0.0.1", port)).await.expect("open");
        let request = b"GET /callback?error=access%0D%0Adenied&state=s HTTP/1.1\r\n\r\n";
        stream.write_all(request).await.expect("sent");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.expect("answered");
        let (head, text) = answer.split_once("\r\n\r\n").expect("a head");
        assert!(head.contains("text/plain"), "{head}");
        let expected = "You are not signed in: the authorization server answered access  denied.";
        assert!(text.starts_with(expected), "{text}");
        assert!(waiting.await.expect("a task").is_ok());
    }

    /// The port of an earlier registration is used again while it is free: most authorization servers compare redirect URIs as
    /// text, and only some ignore the port (RFC 8252, section 7.3).
    #[tokio::test]
    async fn registered_ports_are_preferred() {
        let browser = Browser::default();
        // Another program may take the port between the two.
        for _ in 0..20 {
            let first = browser.begin(None).await.expect("a port");
            let uri = first.redirect_uri().to_owned();
            let taken = browser.begin(Some(&uri)).await.expect("another port");
            assert_ne!(taken.redirect_uri(), uri);
            drop(first);
            let again = browser.begin(Some(&uri)).await.expect("a port");
            if again.redirect_uri() == uri {
                return;
            }
        }
        panic!("the port was never used again");
    }

    /// Returns the request target of a request that arrives in pieces, after which the connection stays open or is closed.
    async fn target_of(pieces: &[&[u8]], is_closed: bool) -> Option<String> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let mut client = TcpStream::connect(address).await.expect("open");
        let (mut stream, _) = listener.accept().await.expect("a connection");
        let mut reading = std::pin::pin!(read_target(&mut stream));
        for (at, piece) in pieces.iter().enumerate() {
            client.write_all(piece).await.expect("sent");
            let read = async {
                for _ in 0..200 {
                    tokio::task::yield_now().await;
                }
            };
            tokio::select! {
                biased;
                target = reading.as_mut() => {
                    assert_eq!(at + 1, pieces.len(), "the request is not complete");
                    return target.map(|target| target.expose().to_owned());
                }
                () = read => {}
            }
        }
        if is_closed {
            drop(client);
        }
        reading.await.map(|target| target.expose().to_owned())
    }

    /// The listener reads a whole head of at most 32 KiB, of GET requests alone.
    #[tokio::test]
    async fn request_targets_are_read() {
        assert_eq!(
            target_of(&[b"GET /a?b", b"=c HTTP/1.1\r\n\r", b"\n"], false).await,
            Some("/a?b=c".to_owned())
        );
        for (request, is_closed) in [
            ("POST /a HTTP/1.1\r\n\r\n", false),
            ("GET /a HTTP/2\r\n\r\n", false),
            ("GET /a HTTP/1.1\r\n", true),
        ] {
            let target = target_of(&[request.as_bytes()], is_closed).await;
            assert_eq!(target, None, "{request}");
        }
        for (length, is_read) in [(32 << 10, true), ((32 << 10) + 1, false)] {
            let fixed = "GET / HTTP/1.1\r\n\r\n".len();
            let path = "x".repeat(length - fixed);
            let request = format!("GET /{path} HTTP/1.1\r\n\r\n");
            let target = target_of(&[request.as_bytes()], false).await;
            assert_eq!(target.is_some(), is_read, "{length}");
        }
    }

    /// If another program uses the configured port, the authorization fails instead of using another port.
    #[tokio::test]
    async fn configured_port_is_required() {
        let other = TcpListener::bind(("127.0.0.1", 0)).await.expect("a port");
        let port = other.local_addr().expect("an address").port();
        let browser = Browser::default().port(port);
        for preferred in [None, Some("http://127.0.0.1:0/callback")] {
            let begun = browser.begin(preferred).await;
            let error = begun.map(drop).expect_err("another program has it");
            assert!(
                error.contains(&format!("port {port} of 127.0.0.1")),
                "{error}"
            );
        }
    }

    /// "Communication Security": the browser opens only https and loopback URLs.
    #[test]
    fn unsafe_urls_are_not_opened() {
        for url in [
            "http://as.example/authorize",
            "file:///etc/passwd",
            "javascript:alert(1)",
            "app:run",
            "app://localhost/run",
            "ftp://127.0.0.1/",
        ] {
            let url = Url::parse(url).expect("a URL");
            let refused = Err("only pages by https are opened".to_owned());
            assert_eq!(open_browser(&url), refused, "{url}");
        }
    }

    /// The query of the pasted URL is returned, without white space and fragment.
    #[tokio::test]
    async fn headless_accepts_a_pasted_url() {
        let agent = Headless::new(|_| async { Ok(" http://127.0.0.1:1/x?code=c#f\n".to_owned()) });
        let redirect = agent.begin(None).await.expect("ready");
        let url = Url::parse("https://as.example").expect("a URL");
        assert_eq!(redirect.redirect_uri(), "http://127.0.0.1:8765/callback");
        let query = redirect.authorize(url).await.expect("a query");
        assert_eq!(query.expose(), "code=c");
        let agent = agent.redirect_uri("https://app.example/callback");
        let redirect = agent.begin(None).await.expect("ready");
        assert_eq!(redirect.redirect_uri(), "https://app.example/callback");
    }
}
