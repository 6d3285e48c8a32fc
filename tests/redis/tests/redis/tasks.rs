//! Tasks of several processes on one Redis: the contract suites, and servers that answer for the tasks of each other.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use mcp_exact::transport::LineTransport;
use mcp_exact::{Client, Cx, Error, JsonObject, RawJson, Server, Tasks, Tool, contract, revisions};
use mcp_exact_redis::{Redis, RedisOptions, RedisTaskStore};
use mcp_exact_tests_redis::daemon::RedisServer;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::runtime::Runtime;
use tokio::time::{sleep, timeout};

use super::stores::{TIMEOUT, options_of};

/// Lease of a process that soon knows which others are dead.
const LEASE: Duration = Duration::from_millis(300);
/// Time after which such a process knows that another one has ended: a whole lease of its own, and the time for which
/// the result of a check is kept.
const DEATH: Duration = Duration::from_secs(3);

/// Starts a process with a key prefix of its own.
fn start(server: &RedisServer, prefix: &str) -> Redis {
    start_with(server, prefix, options_of(server).lease)
}

/// Starts a process with a key prefix and a lease of its own.
fn start_with(server: &RedisServer, prefix: &str, lease: Duration) -> Redis {
    let mut options = options_of(server);
    options.lease = lease;
    options.prefix = prefix.to_owned();
    Redis::start(&options).expect("usable options")
}

/// The store on Redis keeps the contract of all stores, and that of stores that processes share.
#[tokio::test]
async fn the_store_on_redis_keeps_the_contract() {
    let server = RedisServer::start();
    let first = start(&server, "a");
    contract::task_store(&first.task_store(), async || {
        let next = start_with(&server, "a", LEASE);
        first.end().await.expect("ended");
        sleep(DEATH).await;
        next.task_store()
    })
    .await;
    contract::task_limits(&start(&server, "b").task_store().limit(4)).await;
    contract::task_bytes(&start(&server, "c").task_store().bytes(40_000)).await;
    let mut options = options_of(&server);
    options.prefix = "d".to_owned();
    keeps_shared_contract(&options).await;
}

/// Runs the suite for stores of two processes.
pub async fn keeps_shared_contract(options: &RedisOptions) {
    let first = Redis::start(options).expect("usable options");
    let mut options = options.clone();
    options.lease = LEASE;
    let second = Redis::start(&options).expect("usable options");
    contract::shared_task_store(&first.task_store(), &second.task_store(), async || {
        first.end().await.expect("ended");
        sleep(DEATH).await;
    })
    .await;
    second.end().await.expect("ended");
}

/// Expired tasks of all clients make room.
#[tokio::test]
async fn expired_tasks_make_room() {
    let redis_server = RedisServer::start();
    let store = start(&redis_server, "a").task_store().limit(2);
    let server = Server::builder("test", "1")
        .tasks(Tasks::new().store(store).lifetime(Duration::from_secs(6)))
        .tool(Tool::new("ok").task(), || async { "done" })
        .build()
        .expect("a server");
    let client = client(&server).await;
    for _ in 0..2 {
        create(&client, "ok").await;
    }
    let refused = client.request("tools/call", Some(params("ok"))).await;
    assert!(refused.expect_err("full").to_string().contains("full"));
    timeout(TIMEOUT, async {
        while client
            .request("tools/call", Some(params("ok")))
            .await
            .is_err()
        {
            sleep(Duration::from_millis(20)).await;
        }
    })
    .await
    .expect("room");
}

/// What the handlers of a process have done.
struct Process {
    server: Server,
    /// Number of runs of the effect of the tool `ask`.
    effects: Arc<AtomicUsize>,
}

/// Creates a server with the tasks of a store.
fn process(store: RedisTaskStore) -> Process {
    let effects = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&effects);
    let tasks = Tasks::new()
        .poll_interval(Duration::from_millis(20))
        .store(store);
    let server = Server::builder("test", "1")
        .tasks(tasks)
        .tool(Tool::new("ask").task(), move |cx: Cx| {
            let counted = Arc::clone(&counted);
            async move {
                let effect = cx.once("effect", async move {
                    counted.fetch_add(1, Ordering::SeqCst);
                    Ok::<_, Error>("effect".to_owned())
                });
                let effect = effect.await?;
                let answer = cx.elicit::<Confirm>("Sure?").await?;
                Ok::<_, Error>(format!(
                    "{effect} {}",
                    answer.accepted_with(|form| form.yes)
                ))
            }
        })
        .tool(Tool::new("forever").task(), std::future::pending::<()>)
        .build()
        .expect("a server");
    Process { server, effects }
}

#[derive(Debug, mcp_exact::serde::Deserialize, mcp_exact::schemars::JsonSchema)]
#[serde(crate = "mcp_exact::serde")]
#[schemars(crate = "mcp_exact::schemars")]
struct Confirm {
    yes: bool,
}

async fn client(server: &Server) -> Client {
    let newest = revisions().next_back().expect("a revision");
    let connect = Client::in_memory(server).revision(newest).tasks();
    let connect = connect.on_elicit(|form: mcp_exact::Form| async move { form.decline() });
    connect.await.expect("a client")
}

fn object(text: &str) -> JsonObject {
    text.parse().expect(text)
}

fn params(tool: &str) -> JsonObject {
    object(&format!(r#"{{"name":"{tool}","arguments":{{}}}}"#))
}

/// Calls a tool; returns params with the id of the task that the call has become.
async fn create(client: &Client, tool: &str) -> JsonObject {
    let created = client.request("tools/call", Some(params(tool))).await;
    let created = created.expect("a task");
    JsonObject::from_iter([("taskId", created.get("taskId").expect("an id"))])
}

/// Polls a task until it has this status.
async fn poll(client: &Client, task: &JsonObject, status: &str) -> JsonObject {
    let polled = async {
        loop {
            let state = client.request("tasks/get", Some(task.clone())).await;
            let state = state.expect("a task");
            if state.get("status") == Some(RawJson::string(status)) {
                return state;
            }
            sleep(Duration::from_millis(20)).await;
        }
    };
    timeout(TIMEOUT, polled).await.expect(status)
}

/// Answers the input request of a task.
async fn answer(client: &Client, task: &JsonObject) {
    let mut update = task.clone();
    let answer = r#"{"elicitation-1":{"action":"accept","content":{"yes":true}}}"#;
    update.insert("inputResponses", object(answer));
    client
        .request("tasks/update", Some(update))
        .await
        .expect("kept");
}

/// Subscribes to a task; returns a function that waits until the subscriber is told of a status.
async fn watch(server: &Server, task: &JsonObject) -> impl AsyncFnMut(&str) {
    let (near, far) = tokio::io::duplex(64 << 10);
    let (reader, writer) = tokio::io::split(far);
    let server = server.clone();
    tokio::spawn(async move {
        let transport = LineTransport::new(reader, writer, 64 << 10);
        server.serve(transport).await
    });
    let (reader, mut writer) = tokio::io::split(near);
    let id = task.get("taskId").expect("an id").to_string();
    let meta = r#"{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}}}}"#;
    let params = format!(r#"{{"notifications":{{"taskIds":[{id}]}},"_meta":{meta}}}"#);
    let line = format!(
        "{{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"subscriptions/listen\",\"params\":{params}}}\n"
    );
    writer.write_all(line.as_bytes()).await.expect("written");
    let mut lines = BufReader::new(reader).lines();
    async move |status: &str| {
        // The connection lasts as long as its writer.
        let _writer = &writer;
        let status = format!("\"status\":\"{status}\"");
        let told = async {
            while let Some(line) = lines.next_line().await.expect("a line") {
                if line.contains("notifications/tasks") && line.contains(&status) {
                    return;
                }
            }
            panic!("the connection has ended");
        };
        timeout(TIMEOUT, told).await.expect(&status);
    }
}

/// Each process answers for a task that another one runs: its state with its questions, answers, a cancellation, the result.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn any_process_answers_for_a_task() {
    let server = RedisServer::start();
    let (first, second) = (start(&server, "a"), start(&server, "a"));
    let (first, second) = (process(first.task_store()), process(second.task_store()));
    let (one, other) = (client(&first.server).await, client(&second.server).await);

    let task = create(&one, "ask").await;
    let asked = poll(&other, &task, "input_required").await;
    let questions = asked.get("inputRequests").expect("questions").to_string();
    assert!(questions.contains("Sure?"), "{questions}");
    let mut told = watch(&second.server, &task).await;
    told("input_required").await;
    answer(&other, &task).await;
    let end = poll(&other, &task, "completed").await;
    assert!(end.to_string().contains("effect true"), "{end}");
    assert_eq!(poll(&one, &task, "completed").await, end);
    told("completed").await;

    let forever = create(&one, "forever").await;
    poll(&other, &forever, "working").await;
    other
        .request("tasks/cancel", Some(forever.clone()))
        .await
        .expect("kept");
    poll(&one, &forever, "cancelled").await;
    poll(&other, &forever, "cancelled").await;
    assert_eq!(first.effects.load(Ordering::SeqCst), 1);
    assert_eq!(second.effects.load(Ordering::SeqCst), 0);
    let unknown = object(&format!(r#"{{"taskId":"{}"}}"#, "0".repeat(32)));
    let refused = other.request("tasks/get", Some(unknown)).await;
    assert!(refused.is_err(), "{refused:?}");
}

/// A process that dies leaves its tasks to another one: it runs their handlers again with what was recorded, repeats no effect,
/// and has the answers and cancellations that came meanwhile.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tasks_of_a_dead_process_are_taken_over() {
    let redis_server = RedisServer::start();
    let second = process(start_with(&redis_server, "a", LEASE).task_store());
    second.server.start().await.expect("started");
    let other = client(&second.server).await;
    let dying = Runtime::new().expect("a runtime");
    let redis = {
        let _inside = dying.enter();
        start_with(&redis_server, "a", Duration::from_secs(5))
    };
    let store = redis.task_store();
    let created = dying.spawn(async move {
        let process = process(store);
        let client = client(&process.server).await;
        let tasks = [
            create(&client, "ask").await,
            create(&client, "forever").await,
        ];
        poll(&client, &tasks[0], "input_required").await;
        assert_eq!(process.effects.load(Ordering::SeqCst), 1);
        (tasks, process, client)
    });
    let (tasks, dead, _client) = created.await.expect("tasks");
    poll(&other, &tasks[0], "input_required").await;
    assert!(
        second.server.resume_tasks().await.expect("a store") == 0,
        "the owner lives"
    );
    // All of the process stops at once, as by `kill -9`.
    dying.shutdown_background();
    answer(&other, &tasks[0]).await;
    other
        .request("tasks/cancel", Some(tasks[1].clone()))
        .await
        .expect("kept");
    let end = poll(&other, &tasks[0], "completed").await;
    assert!(end.to_string().contains("effect true"), "{end}");
    poll(&other, &tasks[1], "cancelled").await;
    assert_eq!(
        second.effects.load(Ordering::SeqCst),
        0,
        "an effect was repeated"
    );
    assert_eq!(dead.effects.load(Ordering::SeqCst), 1);
}
