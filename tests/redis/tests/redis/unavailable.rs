//! Servers whose Redis is down: what needs it is refused with status 503, and the rest goes on.

use std::sync::Arc;
use std::time::Duration;

use mcp_exact_redis::{Redis, RedisOptions};
use mcp_exact_tests_redis::daemon::RedisServer;
use mcp_exact_tests_transport::echo;
use mcp_exact_tests_transport::http::{INITIALIZE, TestServer, call};
use mcp_exact_transport::http::server::HttpServerOptions;
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
