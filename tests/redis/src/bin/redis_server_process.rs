//! A server over HTTP that shares its sessions on Redis: `redis_server_process REDIS PORT JOURNAL [FAULT]`. Prints a
//! line when it listens. The bearer token of a request is the name of the principal.
#![allow(clippy::print_stdout)]

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http::request::Parts;
use mcp_exact_redis::{Redis, RedisOptions};
use mcp_exact_session::{Change, Principal, Progress, ServerEvent};
use mcp_exact_tests_redis::servers::{LEASE, SENTINEL_MASTER};
use mcp_exact_tests_transport::echo;
use mcp_exact_tests_transport::file_store::Journal;
use mcp_exact_transport::event_log::{EventLog, EventLogError, LogEvent, LogStream, StoreFuture};
use mcp_exact_transport::http::server::{
    AuthFuture, Authenticate, HttpListener, HttpServerOptions, HttpService,
};
use mcp_exact_transport::{RequestContext, ServerHandle};
use serde_json::{Value, json};

/// Number of progress notifications of the tools `work` and `burst`.
const PROGRESS_STEPS: u32 = 6;

/// Authenticator that uses the bearer token as the principal.
struct Bearer;

impl Authenticate for Bearer {
    fn authenticate<'a>(&'a self, request: &'a mut Parts) -> AuthFuture<'a> {
        let name = request.headers.get("authorization");
        let name = name.and_then(|value| value.to_str().ok()?.strip_prefix("Bearer "));
        let principal = name.map(|name| Principal(name.to_owned()));
        Box::pin(std::future::ready(Ok(principal.into())))
    }
}

/// Event log that occasionally loses an event.
struct FaultyLog {
    /// Event log that stores the events.
    log: Arc<dyn EventLog>,
    /// Number of reads with several events; every fifth of them loses its first event.
    reads: AtomicUsize,
}

impl EventLog for FaultyLog {
    fn begin<'a>(
        &'a self,
        stream: &'a LogStream,
        last_will: Option<Bytes>,
        events: Vec<LogEvent>,
    ) -> StoreFuture<'a, (), EventLogError> {
        self.log.begin(stream, last_will, events)
    }

    fn keeps_last_wills(&self) -> bool {
        self.log.keeps_last_wills()
    }

    fn append<'a>(
        &'a self,
        stream: &'a LogStream,
        events: Vec<LogEvent>,
    ) -> StoreFuture<'a, (), EventLogError> {
        self.log.append(stream, events)
    }

    fn abandon<'a>(&'a self, stream: &'a LogStream) -> StoreFuture<'a, (), EventLogError> {
        self.log.abandon(stream)
    }

    fn wait_after<'a>(
        &'a self,
        stream: &'a LogStream,
        after: u64,
    ) -> StoreFuture<'a, (), EventLogError> {
        self.log.wait_after(stream, after)
    }

    fn read_after<'a>(
        &'a self,
        stream: &'a LogStream,
        after: u64,
        max_bytes: usize,
    ) -> StoreFuture<'a, Vec<LogEvent>, EventLogError> {
        Box::pin(async move {
            let mut events = self.log.read_after(stream, after, max_bytes).await?;
            if events.len() > 1 && self.reads.fetch_add(1, Ordering::Relaxed) % 5 == 4 {
                events.remove(0);
            }
            Ok(events)
        })
    }

    fn trim<'a>(
        &'a self,
        stream: &'a LogStream,
        through: u64,
    ) -> StoreFuture<'a, (), EventLogError> {
        self.log.trim(stream, through)
    }

    fn remove_session<'a>(&'a self, session: &'a str) -> StoreFuture<'a, (), EventLogError> {
        self.log.remove_session(session)
    }
}

/// Handles events like the echo server, with four additional tools. `work` and `burst` write their argument to the
/// journal and report progress; `burst` makes no pauses. `begin` reports progress and has no result. `announce`
/// announces a change of the tool list.
fn handle(server: &ServerHandle, event: ServerEvent<RequestContext>, announce: &dyn Fn()) {
    let ServerEvent::Request(request) = &event else {
        return echo::handle(server, event);
    };
    let params = request.params().map(ToString::to_string);
    let params: Value = params.map_or(Value::Null, |text| text.parse().expect("JSON"));
    let argument = params["arguments"]["text"]
        .as_str()
        .unwrap_or("")
        .to_owned();
    let result = |text: &str| {
        let content = json!({ "content": [{ "type": "text", "text": text }] });
        mcp_exact_session::RawResult::from(echo::object(content))
    };
    let (server, key) = (server.clone(), request.key);
    match params["name"].as_str() {
        Some("burst") => {
            if let Some(journal) = echo::JOURNAL.get() {
                journal.note(&argument);
            }
            for step in 1..=PROGRESS_STEPS {
                let progress = Progress::new(f64::from(step)).with_message(&argument);
                let _ = server.progress(key, &progress);
            }
            let _ = server.reply(key, result(&argument));
        }
        Some("work") => {
            if let Some(journal) = echo::JOURNAL.get() {
                journal.note(&argument);
            }
            tokio::spawn(async move {
                for step in 1..=PROGRESS_STEPS {
                    let progress = Progress::new(f64::from(step)).with_message(&argument);
                    let _ = server.progress(key, &progress);
                    if step % 2 == 0 {
                        tokio::time::sleep(Duration::from_millis(20)).await;
                    }
                }
                let _ = server.reply(key, result(&argument));
            });
        }
        // Begins, and never ends.
        Some("begin") => {
            let _ = server.progress(key, &Progress::new(1.0));
        }
        Some("announce") => {
            announce();
            let _ = server.reply(key, result("announced"));
        }
        _ => echo::handle(&server, event),
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [redis, port, journal, fault @ ..] = &arguments[..] else {
        return Err("redis_server_process REDIS PORT JOURNAL [FAULT]".into());
    };
    let _ = echo::JOURNAL.set(Journal::open(Path::new(journal))?);
    let mut options = RedisOptions::new(redis);
    options.lease = LEASE;
    options.sentinel_master = std::env::var(SENTINEL_MASTER).ok();
    let redis = Redis::start(&options)?;
    let mut options = redis.share(HttpServerOptions {
        authenticate: Some(Arc::new(Bearer)),
        stream_after: Duration::from_millis(10),
        ..HttpServerOptions::default()
    });
    if !fault.is_empty() {
        let reads = AtomicUsize::new(0);
        options.event_log = options
            .event_log
            .map(|log| Arc::new(FaultyLog { log, reads }) as _);
    }
    let service = Arc::new(std::sync::OnceLock::<HttpService>::new());
    let published = Arc::clone(&service);
    let handler = move |server: &ServerHandle, event: ServerEvent<RequestContext>| {
        let announce = || {
            if let Some(service) = published.get() {
                service.publish(&Change::Tools);
            }
        };
        handle(server, event, &announce);
    };
    let serving = HttpService::new(echo::server_settings(), Arc::new(handler), options);
    let _ = service.set(serving.clone());
    let listener = HttpListener::bind(format!("127.0.0.1:{port}").as_str()).await?;
    println!("listening");
    listener.serve(serving, std::future::pending()).await?;
    Ok(())
}
