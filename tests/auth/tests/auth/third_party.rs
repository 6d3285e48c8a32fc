//! Tests of the example `third_party`: only the browser of the user who has received the URL elicitation can obtain a
//! third-party credential (`client/elicitation`, "URL Mode Elicitation for OAuth Flows", "Safe URL Handling",
//! "Phishing").

use std::sync::{Arc, Mutex};

use bytes::Bytes;
use http_body_util::BodyExt as _;
use mcp_exact::auth::client::OAuth;
use mcp_exact::transport::http::client::{HttpClient as _, HyperClient};
use mcp_exact::{Client, ClientError, Revision, Visit, VisitAnswer, revisions};
use mcp_exact_tests_auth::authority::{Authority, Deviations, RedirectAgent};
use mcp_exact_tests_auth::issuer::Issuer;
use serde_json::json;

#[path = "../../../../crates/mcp-exact/examples/third_party/application.rs"]
mod application;
#[path = "../../../../crates/mcp-exact/examples/third_party/pages.rs"]
mod pages;

/// All servers of a test.
struct TestServers {
    /// Authorization server of the MCP clients.
    issuer: Issuer,
    /// Third-party service with its authorization server.
    service: Authority,
    /// URL of the MCP endpoint of the example.
    endpoint: String,
}

impl TestServers {
    /// Starts the servers and the example.
    async fn start() -> Self {
        let issuer = Issuer::start().await;
        let service = Authority::start(Deviations::default()).await;
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await;
        let listener = listener.expect("a port");
        let address = listener.local_addr().expect("an address");
        let origin = format!("http://{address}");
        let router = application::router(application::Configuration {
            origin: origin.clone(),
            hosts: vec![address.to_string()],
            issuer: issuer.site.url.clone(),
            client_id: "pages".to_owned(),
            service_issuer: service.server.url.clone(),
            service_client_id: "this server".to_owned(),
            service_client_secret: "hunter2".into(),
            service_url: service.endpoint(),
        });
        let router = router.await.expect("it is configured");
        tokio::spawn(async move { axum::serve(listener, router).await });
        Self {
            issuer,
            service,
            endpoint: format!("{origin}/mcp"),
        }
    }

    /// Calls the tool; `answer` is the user's response to the URL elicitation.
    async fn call_tool<F, Fut>(&self, revision: Revision, answer: F) -> Result<String, ClientError>
    where
        F: Fn(Visit) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = VisitAnswer> + Send + 'static,
    {
        let oauth = OAuth::new("test")
            .allow_other_ports()
            .user_agent(RedirectAgent::default());
        let client = Client::connect(&self.endpoint)
            .revision(revision)
            .oauth(oauth)
            .on_visit(answer)
            .await
            .expect("signed in");
        let output = client.call_tool("documents", &json!({})).await;
        client.close();
        output.map(|output| output.text())
    }
}

/// Returns the revisions with URL elicitation.
fn revisions_with_url_elicitation() -> impl Iterator<Item = Revision> {
    revisions().filter(|revision| revision.as_str() >= "2025-11-25")
}

/// Simulates the browser of a signed-in user, which stores cookies and follows redirects from `url`. Returns the HTTP
/// status and the text of the last page.
async fn browse_url(user: &str, url: &str) -> (u16, String) {
    let mut cookies = vec![format!("user={user}")];
    let mut url = url.to_owned();
    loop {
        let request = http::Request::get(&url).header("cookie", cookies.join("; "));
        let request = request.body(Bytes::new()).expect("a request");
        let response = HyperClient::default().send(request).await;
        let (head, body) = response.expect("answered").into_parts();
        for cookie in head.headers.get_all("set-cookie") {
            let cookie = cookie.to_str().expect("ASCII").split(';').next();
            cookies.retain(|known| !known.starts_with("visit="));
            cookies.push(cookie.expect("a pair").to_owned());
        }
        match head.headers.get("location") {
            Some(location) => location.to_str().expect("ASCII").clone_into(&mut url),
            None => {
                let page = body.collect().await.expect("a body").to_bytes();
                let page = String::from_utf8_lossy(&page).into_owned();
                return (head.status.as_u16(), page);
            }
        }
    }
}

/// In both lifecycles, the user consents and returns to the page, and the tool uses the credential; no message to the
/// client contains a part of the credential.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn user_connects_the_service() {
    for revision in revisions_with_url_elicitation() {
        let setup = TestServers::start().await;
        let shown = Arc::new(Mutex::new(Vec::new()));
        let urls = Arc::clone(&shown);
        let text = setup.call_tool(revision, move |visit| {
            urls.lock().expect("no panic").push(visit.url().to_owned());
            tokio::spawn(async move {
                let (status, page) = browse_url("u", visit.url()).await;
                assert_eq!(status, 200, "{page}");
            });
            async { VisitAnswer::Accept }
        });
        assert_eq!(text.await.expect("answered"), "1 document");
        let shown = shown.lock().expect("no panic").clone();
        let [url] = &shown[..] else {
            panic!("{shown:?}");
        };
        assert!(!url.contains("user") && !url.contains("access"), "{url}");
        // The service authenticated this server, and received no token of the client.
        let requests = setup.service.resource.received_requests();
        let tokens: Vec<_> = requests
            .iter()
            .map(|request| request.header("authorization"))
            .collect();
        assert_eq!(tokens, ["Bearer access-2"]);
        // The next call needs no elicitation.
        let text = setup.call_tool(revision, |_| async { VisitAnswer::Cancel });
        assert_eq!(text.await.expect("answered"), "1 document");
    }
}

/// If a user forwards the URL to another user, the page is refused in the other user's browser, and no account is
/// connected.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn other_users_connect_nothing() {
    for revision in revisions_with_url_elicitation() {
        let setup = TestServers::start().await;
        let text = setup.call_tool(revision, |visit| async move {
            let (status, page) = browse_url("bob", visit.url()).await;
            assert_eq!(status, 403, "{page}");
            VisitAnswer::Decline
        });
        let text = text.await.expect("answered");
        assert!(text.contains("did not allow"), "{text}");
        assert_eq!(setup.service.server.count("/authorize"), 0);
        assert!(setup.issuer.site.count("/authorize") >= 2);
    }
}

/// Each page can be opened only once, in one browser, and in the expected order.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pages_work_once() {
    let setup = TestServers::start().await;
    let pages = Arc::new(Mutex::new(String::new()));
    let noted = Arc::clone(&pages);
    let newest = revisions_with_url_elicitation()
        .next()
        .expect("there is one");
    let text = setup.call_tool(newest, move |visit| {
        let url = visit.url().to_owned();
        url.clone_into(&mut noted.lock().expect("no panic"));
        async move {
            assert_eq!(browse_url("u", &url).await.0, 200);
            VisitAnswer::Accept
        }
    });
    text.await.expect("answered");
    let url = pages.lock().expect("no panic").clone();
    let origin = setup.endpoint.strip_suffix("/mcp").expect("it ends so");
    for url in [
        url,
        format!("{origin}/connect?id=guessed"),
        format!("{origin}/signed-in?code=u&state=x"),
        format!("{origin}/connected?code=code-1&state=x"),
    ] {
        assert_eq!(browse_url("u", &url).await.0, 404, "{url}");
    }
    assert_eq!(setup.service.server.count("/token"), 1);
}
