//! URIs that two servers have belong to the first one of the configuration.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use mcp_exact::{Input, JsonObject, Resource, Server};
use mcp_exact_bridge::{Bridge, Options};

use crate::common::{InMemory, Intercepted, handle_of, patient};
use crate::own_uris::{Path, REVISIONS, named, read, revision, send};

/// Creates a server that lists a resource, or has a template of it; the content is its name.
fn server_with(name: &'static str, uri: &'static str) -> Server {
    let builder = Server::builder(name, "1.0.0");
    let builder = if uri.contains('{') {
        builder.template(uri, move |_: Input<Path>| async move { name })
    } else {
        builder.resource(Resource::new(uri), move || async move { name })
    };
    builder.build().expect("a server")
}

/// Of two servers that claim a URI, the one that the configuration names first gets the requests, whoever lists it first and
/// however exactly.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn first_server_gets_a_shared_uri() {
    for (of_first, of_second) in [
        ("doc://x", "doc://x"),
        ("doc://{+path}", "doc://x"),
        ("doc://x", "doc://{+path}"),
    ] {
        for of_client in REVISIONS.map(revision) {
            let case = format!("{of_first}, {of_second}, client {of_client}");
            let has_listed = Arc::new(AtomicBool::new(false));
            let is_ready = Arc::clone(&has_listed);
            // The first server does not give its lists the first time.
            let first = Intercepted {
                server: server_with("first", of_first),
                answer: Arc::new(move |method: &str, _: &JsonObject| {
                    let error = r#""error":{"code":-32603,"message":"not now"}"#;
                    let is_list = method.starts_with("resources/") && method.ends_with("list");
                    (is_list && !is_ready.load(Relaxed)).then(|| error.to_owned())
                }),
            };
            let second = InMemory::new(&server_with("second", of_second));
            let all = named(vec![("b", Arc::new(first)), ("a", Arc::new(second))]);
            let bridge = Bridge::many(all, patient(Options::default())).await;
            let bridge = bridge.expect("a bridge");
            let client = handle_of(&bridge, of_client).await;
            for list in ["resources/list", "resources/templates/list"] {
                let listed = send(&client, list, "").await.expect(&case);
                assert!(!listed.text().contains("first"), "{case}");
            }
            has_listed.store(true, Relaxed);
            let (_, text) = read(&client, "doc://x").await.expect(&case);
            assert_eq!(text, "first", "{case}");
            let mut count = 0;
            for list in ["resources/list", "resources/templates/list"] {
                let listed = send(&client, list, "").await.expect(&case);
                count += listed.text().matches("\"uri").count();
            }
            let has_same = of_first == of_second;
            assert_eq!(count, if has_same { 1 } else { 2 }, "{case}");
            client.close();
        }
    }
}

/// While a server cannot be reached, no other server answers for the resources that it has listed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unreachable_servers_keep_their_uris() {
    for of_client in REVISIONS.map(revision) {
        let (first, second) = (
            server_with("first", "doc://x"),
            server_with("second", "doc://x"),
        );
        let (first, second) = (InMemory::new(&first), InMemory::new(&second));
        let all = named(vec![
            ("a", Arc::new(first.clone())),
            ("b", Arc::new(second.clone())),
        ]);
        let bridge = Bridge::many(all, patient(Options::default())).await;
        let bridge = bridge.expect("a bridge");
        let client = handle_of(&bridge, of_client).await;
        send(&client, "resources/list", "")
            .await
            .expect("resources");
        first.is_down.store(true, Relaxed);
        first.kill();
        let down = || first.connections() == 0;
        crate::matrix::wait_until(down, "the first server is gone").await;
        for _ in 0..3 {
            let answer = read(&client, "doc://x").await;
            assert!(answer.is_err(), "client {of_client}: {answer:?}");
        }
        client.close();
    }
}
