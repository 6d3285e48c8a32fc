//! Loss of servers and clients.

use std::time::Duration;

use mcp_exact::revisions;
use mcp_exact_bridge::{Bridge, Options};

use crate::common::{Add, InMemory, Sum, bridge, client_of, server, waiting_call};
use crate::matrix::wait_until;

/// If a server dies during a call, the call ends with an error, and the next call gets a new connection.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lost_server_ends_its_calls() {
    for of_server in revisions() {
        let upstream = InMemory::new(&server(of_server));
        let bridge = bridge(upstream.clone()).await;
        for of_client in revisions() {
            let pair = format!("client {of_client}, server {of_server}");
            let client = client_of(&bridge, of_client).await.expect("a client");
            let call = waiting_call(&client).await;
            upstream.kill();
            let ended = tokio::time::timeout(Duration::from_secs(60), call).await;
            let error = ended.expect(&pair).expect("no panic").expect_err(&pair);
            assert!(error.to_string().contains("lost"), "{pair}: {error}");
            let next = client.call::<_, Sum>("add", &Add { a: 1, b: 2 }).await;
            assert_eq!(next.expect(&pair), Sum { sum: 3 });
            client.close();
        }
    }
}

/// The connection of a client without a session is reused for the next client; the connection of a session is closed
/// with the session.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn disconnected_clients_release_all_state() {
    for of_server in revisions() {
        let upstream = InMemory::new(&server(of_server));
        let mut options = Options::default();
        options.idle = Duration::from_millis(20);
        let bridge = Bridge::new(upstream.clone(), options)
            .await
            .expect("a bridge");
        for of_client in revisions() {
            for _ in 0..20 {
                let client = client_of(&bridge, of_client).await.expect("a client");
                let sum: Sum = client
                    .call("add", &Add { a: 1, b: 2 })
                    .await
                    .expect("a sum");
                assert_eq!(sum.sum, 3);
                client.close();
            }
            let pair = format!("client {of_client}, server {of_server}");
            let free = || {
                let usage = bridge.usage();
                usage.sessions == 0 && usage.requests == 0 && upstream.connections() == 0
            };
            wait_until(free, &pair).await;
        }
    }
}

/// A server that cannot be started is reported when the bridge is created.
#[tokio::test]
async fn missing_server_is_reported() {
    let command = mcp_exact::transport::ServerCommand::new("no-such-server-anywhere");
    let error = Bridge::new(command, Options::default())
        .await
        .expect_err("no server");
    assert!(
        error.to_string().contains("no-such-server-anywhere"),
        "{error}"
    );
}
