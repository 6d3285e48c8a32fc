//! Servers whose Redis is down: what needs it is refused with status 503, and the rest goes on.

use std::sync::Arc;
use std::time::Duration;

use mcp_exact_redis::{Redis, RedisOptions};
use mcp_exact_tests_redis::daemon::RedisServer;
use mcp_exact_tests_transport::echo;
use mcp_exact_tests_transport::http::{INITIALIZE, TestServer, call};
use mcp_exact_transport::http::server::HttpServerOptions;
use tokio::io::AsyncReadExt as _;
use tokio::time::{sleep, timeout};

use super::stores::PATIENCE;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn refusals_name_a_time() {
    let mut daemon = RedisServer::start();
    let mut options = RedisOptions::new(daemon.url());
    options.command_timeout = Duration::from_millis(300);
    let redis = Redis::start(&options).expect("usable options");
    let options = redis.share(HttpServerOptions::default());
    let server = TestServer::start_handler(Arc::new(echo::handle), options).await;
    let session = server.begin().await;
    let headers = [("Mcp-Session-Id", session.as_str())];
    daemon.kill();
    let refused = server.send("POST", &[], INITIALIZE).await;
    assert_eq!(refused.status, 503, "{refused:?}");
    assert!(refused.header("retry-after").is_some(), "{refused:?}");
    let other = [("Mcp-Session-Id", "of-another-process")];
    let refused = server.send("POST", &other, &call(5, "echo", "")).await;
    assert_eq!(refused.status, 503, "{refused:?}");
    assert!(refused.header("retry-after").is_some(), "{refused:?}");
    // Another process may wait for this answer, and would never get it.
    let answer = r#"{"jsonrpc":"2.0","id":77,"result":{"roots":[]}}"#;
    let refused = server.send("POST", &headers, answer).await;
    assert_eq!(refused.status, 503, "{refused:?}");
    let echoed = server.send("POST", &headers, &call(6, "echo", "on")).await;
    assert_eq!(echoed.status, 200, "{echoed:?}");
    daemon.start_again();
    let recovers = async {
        while server.send("POST", &[], INITIALIZE).await.status != 200 {
            sleep(Duration::from_millis(20)).await;
        }
    };
    timeout(PATIENCE, recovers).await.expect("in time");
    let taken = server.send("POST", &headers, answer).await;
    assert_eq!(taken.status, 202, "{taken:?}");
}

/// A session that Redis has not ended is not called ended: other processes would go on with it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sessions_end_everywhere_or_nowhere() {
    let mut daemon = RedisServer::start();
    let mut options = RedisOptions::new(daemon.url());
    options.command_timeout = Duration::from_millis(300);
    let redis = Redis::start(&options).expect("usable options");
    let options = redis.share(HttpServerOptions::default());
    let server = TestServer::start_handler(Arc::new(echo::handle), options).await;
    let session = server.begin().await;
    let headers = [("Mcp-Session-Id", session.as_str())];
    daemon.kill();
    let refused = server.send("DELETE", &headers, "").await;
    assert_eq!(refused.status, 503, "{refused:?}");
    assert!(refused.header("retry-after").is_some(), "{refused:?}");
    let echoed = server.send("POST", &headers, &call(6, "echo", "on")).await;
    assert_eq!(echoed.status, 200, "{echoed:?}");
    daemon.start_again();
    let ends = async {
        while server.send("DELETE", &headers, "").await.status != 204 {
            sleep(Duration::from_millis(20)).await;
        }
    };
    timeout(PATIENCE, ends).await.expect("in time");
    let gone = server.send("POST", &headers, &call(7, "echo", "")).await;
    assert_eq!(gone.status, 404, "{gone:?}");
}

/// Where the event stream of a client of HTTP+SSE is, other processes know again soon after Redis has lost it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn places_of_event_streams_are_restored() {
    let daemon = RedisServer::start();
    let mut servers = Vec::new();
    for _ in 0..2 {
        let redis = Redis::start(&RedisOptions::new(daemon.url())).expect("usable options");
        let options = redis.share(HttpServerOptions::default());
        servers.push(TestServer::start_handler(Arc::new(echo::handle), options).await);
    }
    let accept = [("Accept", "text/event-stream"), ("Content-Type", "")];
    let request = servers[0].request("/sse", "GET", &accept, "");
    let mut stream = servers[0].open(&request).await;
    let mut text = String::new();
    let place = loop {
        let mut buffer = [0; 1024];
        let read = timeout(PATIENCE, stream.read(&mut buffer)).await;
        let count = read.expect("in time").expect("read");
        assert!(count > 0, "the stream has ended: {text}");
        text.push_str(&String::from_utf8_lossy(&buffer[..count]));
        let place = text.lines().find_map(|line| line.strip_prefix("data: "));
        if let Some(place) = place.filter(|_| text.contains("\n\n")) {
            break place.to_owned();
        }
    };
    let post = async || {
        let ping = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
        servers[1].send_to(&place, "POST", &[], ping).await.status
    };
    assert_eq!(post().await, 202);
    daemon.command(&["FLUSHALL"]);
    let restored = async {
        while post().await != 202 {
            sleep(Duration::from_millis(50)).await;
        }
    };
    timeout(PATIENCE, restored).await.expect("in time");
}
