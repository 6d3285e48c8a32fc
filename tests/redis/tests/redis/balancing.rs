//! Clients of three server processes behind HAProxy, which sends each request to the next process.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use mcp_exact_session::{CallOptions, ClientEvent};
use mcp_exact_tests_redis::daemon::{Balancer, RedisServer};
use mcp_exact_tests_redis::servers::Setup;
use mcp_exact_tests_transport::echo;
use mcp_exact_transport::http::client::{HttpEndpoint, HttpTransport};
use mcp_exact_transport::{ClientHandle, ProgressCallback};
use tokio::time::{sleep, timeout};

use super::SERVER_PROGRAM;

/// Time limit that is longer than any operation in these tests needs.
const TIMEOUT: Duration = Duration::from_secs(60);

/// Requests of one client reach all processes, answers reach the process that waits for them, and each change is
/// announced once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sessions_need_no_sticky_balancer() {
    let redis = RedisServer::start();
    let servers = Setup::new(SERVER_PROGRAM, &redis).start(3);
    let addresses: Vec<_> = servers.iter().map(|server| server.address()).collect();
    let balancer = Balancer::start(&addresses);
    for revision in ["2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"] {
        let changes = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&changes);
        let handler = move |client: &ClientHandle, event: ClientEvent| {
            let text = format!("{event:?}");
            if text.contains("list_changed")
                || text.contains("ListChanged")
                || text.contains("Changed")
            {
                counted.fetch_add(1, Ordering::Relaxed);
            }
            echo::answer(client, event);
        };
        let endpoint = HttpEndpoint::new(&format!("http://{}/", balancer.address()));
        let settings = echo::client_settings(revision);
        let (client, driver) = endpoint
            .expect("a URL")
            .connect(settings, None, Arc::new(handler));
        client.ready().await.expect("connected");
        let mut processes = BTreeSet::new();
        for _ in 0..12 {
            processes.insert(echo::call(&client, "pid", "").await.expect("a process"));
        }
        assert_eq!(processes.len(), 3, "{revision}: {processes:?}");
        for _ in 0..6 {
            let asked = timeout(TIMEOUT, echo::call(&client, "ask", "")).await;
            let asked = asked.expect("in time").expect("answered");
            assert!(asked.contains("roots"), "{revision}: {asked}");
            let slow = timeout(TIMEOUT, echo::call(&client, "slow", "")).await;
            assert_eq!(slow.expect("in time").as_deref(), Ok("slow"), "{revision}");
        }
        if revision != "2026-07-28" {
            let before = changes.load(Ordering::Relaxed);
            for number in 1..=4 {
                echo::call(&client, "announce", "")
                    .await
                    .expect("announced");
                let told = async {
                    while changes.load(Ordering::Relaxed) < before + number {
                        sleep(Duration::from_millis(10)).await;
                    }
                };
                let told = timeout(TIMEOUT, told).await;
                assert!(told.is_ok(), "{revision}: {changes:?} of {number}");
            }
            assert_eq!(changes.load(Ordering::Relaxed), before + 4, "{revision}");
        }
        client.close();
        timeout(TIMEOUT, driver)
            .await
            .expect("in time")
            .expect("driver");
    }
}

/// With HTTP+SSE of 2024-11-05, a message that is posted to any process reaches the process with the event stream.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn posts_reach_the_event_stream() {
    let redis = RedisServer::start();
    let servers = Setup::new(SERVER_PROGRAM, &redis).start(3);
    let addresses: Vec<_> = servers.iter().map(|server| server.address()).collect();
    let balancer = Balancer::start(&addresses);
    let endpoint = HttpEndpoint::new(&format!("http://{}/sse", balancer.address()));
    let endpoint = endpoint.expect("a URL").transport(HttpTransport::Sse);
    let settings = echo::client_settings("2024-11-05");
    let (client, _driver) = endpoint.connect(settings, None, Arc::new(echo::answer));
    client.ready().await.expect("connected");
    for number in 0..12 {
        let text = number.to_string();
        let echoed = timeout(TIMEOUT, echo::call(&client, "echo", &text)).await;
        assert_eq!(echoed.expect("in time"), Ok(text));
        let asked = timeout(TIMEOUT, echo::call(&client, "ask", "")).await;
        assert!(asked.expect("in time").expect("answered").contains("roots"));
    }
}

/// If the process of a call is killed, another process informs the client.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn death_of_a_process_is_reported() {
    let redis = RedisServer::start();
    let mut servers = Setup::new(SERVER_PROGRAM, &redis).start(3);
    let addresses: Vec<_> = servers.iter().map(|server| server.address()).collect();
    let balancer = Balancer::start(&addresses);
    let endpoint = HttpEndpoint::new(&format!("http://{}/", balancer.address()));
    let settings = echo::client_settings("2025-11-25");
    let (client, _driver) =
        endpoint
            .expect("a URL")
            .connect(settings, None, Arc::new(echo::answer));
    client.ready().await.expect("connected");
    let begun = Arc::new(AtomicUsize::new(0));
    let calls = (0..6).map(|_| {
        let params = echo::call_params("begin", "");
        let begun = Arc::clone(&begun);
        let note: ProgressCallback = Box::new(move |_| {
            begun.fetch_add(1, Ordering::Relaxed);
        });
        let options = CallOptions {
            progress: true,
            ..CallOptions::default()
        };
        client
            .request("tools/call", params, options, Some(note))
            .expect("sent")
    });
    let calls: Vec<_> = calls.collect();
    // Each process has some of them, and the client has an event of each.
    let all_begun = async {
        while begun.load(Ordering::Relaxed) < calls.len() {
            sleep(Duration::from_millis(10)).await;
        }
    };
    timeout(TIMEOUT, all_begun).await.expect("in time");
    for server in &mut servers {
        server.kill();
        server.start_again();
    }
    for call in calls {
        let outcome = timeout(TIMEOUT, call).await.expect("in time");
        let text = format!("{outcome:?}");
        assert!(text.contains("the request is lost"), "{text}");
    }
    assert_eq!(echo::call(&client, "echo", "on").await.as_deref(), Ok("on"));
}
