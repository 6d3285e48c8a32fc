//! Logs contain no secret at any level. This test is a separate executable, because the log subscriber is global.

use std::io;
use std::sync::{Arc, Mutex};

use mcp_exact::Client;
use mcp_exact::auth::client::OAuth;
use mcp_exact::transport::http::client::{HttpClient as _, HyperClient};
use mcp_exact_tests_auth::authority::{Authority, Deviations, RedirectAgent};
use mcp_exact_tests_auth::issuer::{Issuer, start_server};
use serde_json::json;

/// Writer that keeps the log output.
#[derive(Clone, Default)]
struct LogLines(Arc<Mutex<Vec<u8>>>);

impl io::Write for LogLines {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().expect("no panic").extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// No log message at any level contains a secret when a client signs in, steps up, refreshes its token and is rejected.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn logs_contain_no_secret() {
    let log = LogLines::default();
    let writer = log.clone();
    tracing_subscriber::fmt()
        .with_max_level(tracing_subscriber::filter::LevelFilter::TRACE)
        .with_writer(move || writer.clone())
        .init();
    let oauth = || {
        OAuth::new("test")
            .allow_other_ports()
            .user_agent(RedirectAgent::default())
    };

    let issuer = Issuer::start().await;
    let endpoint = start_server(&issuer).await;
    let client = Client::connect(&endpoint).oauth(oauth()).await;
    let client = client.expect("signed in");
    for tool in ["who", "write"] {
        let called = client.call_tool(tool, &json!({})).await;
        called.expect("authorized");
    }
    client.close();
    let foreign = format!("Bearer {}", issuer.token("https://other.example", "u", ""));
    for header in [&*foreign, "Bearer hunter2", "Basic aHVudGVyMg=="] {
        let request = http::Request::post(&endpoint).header("authorization", header);
        let request = request.body(bytes::Bytes::new()).expect("a request");
        let response = HyperClient::default().send(request).await;
        assert_eq!(response.expect("answered").status(), 401);
    }

    let authority = Authority::start(Deviations::default()).await;
    let inner = Arc::new(HyperClient::default());
    let oauth = oauth().client(&authority.endpoint(), inner);
    let oauth = oauth.expect("the URL is on loopback");
    for _ in 0..2 {
        let request = http::Request::post(authority.endpoint());
        let request = request.body(bytes::Bytes::new()).expect("a request");
        let response = oauth.send(request).await.expect("authorized");
        assert_eq!(response.status(), 200);
        authority.expire_tokens();
    }

    let text = String::from_utf8(log.0.lock().expect("no panic").clone()).expect("text");
    assert!(text.contains("a token for another audience"), "{text}");
    let mut secrets = vec!["hunter2".to_owned(), "aHVudGVyMg".to_owned()];
    // Every signed token starts with this text, and the names of all tokens of the other authorization server contain
    // it.
    secrets.extend(["eyJ", "access-", "refresh-", "code-"].map(str::to_owned));
    let requests = [
        issuer.site.received_requests(),
        authority.server.received_requests(),
    ]
    .concat();
    for name in ["code_verifier", "state"] {
        secrets.extend(requests.iter().filter_map(|request| request.param(name)));
    }
    assert!(secrets.len() > 8, "{secrets:?}");
    for secret in secrets {
        let line = text.lines().find(|line| line.contains(&secret));
        assert_eq!(line, None, "{secret}");
    }
}
