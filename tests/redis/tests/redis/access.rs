//! Redis with TLS, with the minimal user permissions of docs/redis.md, and in cluster mode.

use std::time::Duration;

use mcp_exact_redis::{Redis, RedisOptions};
use mcp_exact_tests_redis::daemon::{MASTER_NAME, RedisServer, Sentinel};
use mcp_exact_transport::contract;
use mcp_exact_transport::store::{SessionStore, SessionStoreError};
use tokio::time::{sleep, timeout};

use super::stores::{MarkedBus, TIMEOUT, record};
use super::tasks::keeps_shared_contract;

/// Lifetime of the saved session records.
const HOUR: Duration = Duration::from_secs(3600);
/// Text of the documentation page with the permissions.
const REDIS_PAGE: &str = include_str!("../../../../docs/redis.md");

/// Runs the contract suites of the three stores on one Redis.
async fn keeps_contracts(options: &RedisOptions) {
    let redis = Redis::start(options).expect("usable options");
    contract::session_store(&*redis.session_store(), sleep).await;
    contract::event_log(&*redis.event_log()).await;
    let marked = MarkedBus::new(&redis);
    contract::change_bus(&marked, async || marked.settle().await).await;
    Box::pin(keeps_shared_contract(options)).await;
    redis.end().await.expect("ended");
}

/// Saves a session record within the time limit.
async fn save(redis: &Redis, id: &str) -> Result<(), SessionStoreError> {
    let store = redis.session_store();
    let saving = store.save(id, record(1), HOUR);
    timeout(TIMEOUT, saving).await.expect("in time")
}

/// The permissions in docs/redis.md suffice for all operations, and keys without the prefix are refused.
#[tokio::test]
async fn documented_permissions_suffice() {
    let line = REDIS_PAGE
        .lines()
        .find_map(|line| line.strip_prefix("ACL SETUSER "));
    let line = line
        .expect("a line with the permissions")
        .replace("PASSWORD", "secret");
    let server = RedisServer::start();
    let rule: Vec<&str> = ["ACL", "SETUSER"]
        .into_iter()
        .chain(line.split(' '))
        .collect();
    assert_eq!(server.command(&rule), "OK");
    let mut options = RedisOptions::new(format!("redis://mcp:secret@127.0.0.1:{}/", server.port));
    keeps_contracts(&options).await;
    assert_eq!(server.command(&["ACL", "LOG"]), "", "something was denied");
    options.prefix = "other".to_owned();
    let redis = Redis::start(&options).expect("usable options");
    let refused = save(&redis, "a").await;
    assert!(
        matches!(refused, Err(SessionStoreError::Unavailable(_))),
        "{refused:?}"
    );
}

/// All keys of a script have the same hash slot, which a cluster requires.
#[tokio::test]
async fn scripts_touch_one_slot() {
    let server = RedisServer::start_with(&["--cluster-enabled", "yes"]);
    server.command(&["CLUSTER", "ADDSLOTSRANGE", "0", "16383"]);
    let ready = async {
        while !server
            .command(&["CLUSTER", "INFO"])
            .contains("cluster_state:ok")
        {
            sleep(Duration::from_millis(20)).await;
        }
    };
    timeout(TIMEOUT, ready).await.expect("in time");
    keeps_contracts(&RedisOptions::new(server.url())).await;
    let slot = |key: &str| server.command(&["CLUSTER", "KEYSLOT", key]);
    assert_eq!(slot("mcp:o:{a}"), slot("mcp:e:{a}:1"));
    assert_eq!(slot("{mcp:bus}:log"), slot("{mcp:bus}:count"));
}

/// A URL with `rediss` encrypts the connections to Redis, to a Sentinel and to the master that the Sentinel names, and
/// checks certificates.
#[tokio::test]
async fn connections_are_encrypted() {
    let made = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).expect("made");
    let (certificate, key) = (made.cert.pem(), made.signing_key.serialize_pem());
    let server = RedisServer::start_encrypted(&certificate, &key, &[]);
    let sentinel = Sentinel::watch(&server);
    let url = format!("rediss://127.0.0.1:{}/", server.port);
    let mut options = RedisOptions::new(&url);
    let distrusts = Redis::start(&options).expect("usable options");
    let refused = save(&distrusts, "a").await;
    assert!(refused.is_err(), "an unknown authority is trusted");
    options.root_certificates = Some(certificate.into_bytes());
    keeps_contracts(&options).await;
    let direct = Redis::start(&options).expect("usable options");
    save(&direct, "encrypted").await.expect("saved");
    options.url = format!("rediss://127.0.0.1:{}/", sentinel.port);
    options.sentinel_master = Some(MASTER_NAME.to_owned());
    let watched = Redis::start(&options).expect("usable options");
    let found = watched
        .session_store()
        .load("encrypted")
        .await
        .expect("loaded");
    assert_eq!(found, Some(record(1)));
    let plain = RedisOptions::new(url.replace("rediss:", "redis:"));
    let plain = Redis::start(&plain).expect("usable options");
    assert!(save(&plain, "c").await.is_err(), "a connection without TLS");
}
