//! Calls that become tasks (extension `io.modelcontextprotocol/tasks`): creation, polling, cancellation and input
//! requests; the module `restart` has tests of tasks that outlive their server. Section names refer to the extension's
//! specification.

mod restart;
mod scopes;
mod stores;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use mcp_exact::testing::every_revision;
use mcp_exact::transport::LineTransport;
use mcp_exact::transport::http::server::{Authenticate, HttpListener, HttpServerOptions};
use mcp_exact::{
    Client, ClientError, Connect, Cx, DirectoryTaskStore, Error, Form, Json, JsonObject, Principal,
    Revision, Server, ServerBuilder, Tasks, Tool, revisions, schemars, serde,
};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _};
use tokio::sync::Notify;
use tokio::time::sleep;

use crate::common::{has_sessions, object};
use restart::Folder;

/// Form that asks for a confirmation.
#[derive(Debug, serde::Deserialize, schemars::JsonSchema)]
struct Confirm {
    yes: bool,
}

/// Returns the newest revision.
fn newest() -> Revision {
    revisions().next_back().expect("a revision")
}

/// Creates a server builder with a short poll interval, so that tests need not wait.
fn builder() -> ServerBuilder {
    Server::builder("test", "1.0.0").tasks(Tasks::new().poll_interval(Duration::from_millis(10)))
}

/// Configures a client, without connecting it: adds support for tasks and a handler that accepts every form.
fn connect(connect: Connect) -> Connect {
    connect
        .tasks()
        .on_elicit(|form: Form| async move { form.accept(&object(r#"{"yes":true}"#)) })
}

/// Connects a client of the newest revision.
async fn client(server: &Server) -> Client {
    let connect = connect(Client::in_memory(server)).revision(newest());
    connect.await.expect("a client")
}

/// Calls a tool, and returns the task that the call has become.
async fn create_task(client: &Client, tool: &str) -> JsonObject {
    let params = object(&format!(r#"{{"name":"{tool}","arguments":{{}}}}"#));
    let created = client.request("tools/call", Some(params)).await;
    let created = created.expect("a task");
    assert_eq!(text(&created, "resultType"), "task");
    created
}

/// Returns params with the id of a task.
fn params_of(task: &JsonObject) -> JsonObject {
    JsonObject::from_iter([("taskId", task.get("taskId").expect("an id"))])
}

/// Sends `tasks/get`, and returns the task.
async fn get_task(client: &Client, task: &JsonObject) -> JsonObject {
    let task = client.request("tasks/get", Some(params_of(task))).await;
    task.expect("a task")
}

/// Polls a task until it has the status `status`, and returns the task.
async fn poll_until(client: &Client, task: &JsonObject, status: &str) -> JsonObject {
    loop {
        let now = get_task(client, task).await;
        let found = text(&now, "status");
        if found == status {
            return now;
        }
        let over = ["completed", "failed", "cancelled"].contains(&&*found);
        assert!(
            !over,
            "the task is {found} and will never be {status}: {now}"
        );
        sleep(Duration::from_millis(10)).await;
    }
}

/// Returns the value of the string member `name`, which must exist.
fn text(object: &JsonObject, name: &str) -> String {
    let value = object.get(name);
    let value = value.unwrap_or_else(|| panic!("no {name:?} in {object}"));
    value
        .decode_as()
        .unwrap_or_else(|_| panic!("{name:?} is not text in {object}"))
}

/// Returns the code of an error of the server.
fn error_code(error: ClientError) -> Option<i64> {
    match error {
        ClientError::Server(error) => error.code(),
        error => panic!("{error}"),
    }
}

/// The same tool serves clients with and without support for tasks.
#[tokio::test]
async fn every_revision_receives_task_results() {
    let server = builder()
        .tool(Tool::new("slow").task(), |cx: Cx| async move {
            let answer = cx.elicit::<Confirm>("Sure?");
            // Revisions up to 2025-03-26 have no elicitation.
            let sure = match answer.await {
                Ok(answer) => answer.accepted_with(|form| form.yes),
                Err(_) => true,
            };
            sleep(Duration::from_millis(20)).await;
            sure.to_string()
        })
        .build()
        .expect("a server");
    every_revision(
        || connect(Client::in_memory(&server)),
        |client| async move {
            let sure: bool = client.call("slow", &()).await.expect("a result");
            assert!(sure);
        },
    )
    .await;
}

/// "The `resultType` field MUST be set to "complete" on this object" and "a `Task` object with status `completed` and a `result`
/// field" (section "Task Polling").
#[tokio::test]
async fn results_are_part_of_the_task() {
    let server = builder()
        .tool(Tool::new("ok").task(), || async { "done" })
        .tool(Tool::new("error").task(), || async {
            Err::<String, _>(Error::msg("out of paper"))
        })
        .tool(Tool::new("panic").task(), || async {
            assert!(std::env::args().count() == 0, "the printer burns");
        })
        .build()
        .expect("a server");
    let client = client(&server).await;
    let created = create_task(&client, "ok").await;
    for absent in ["result", "error", "inputRequests", "requestState"] {
        assert!(created.get(absent).is_none(), "{created}");
    }
    let task = poll_until(&client, &created, "completed").await;
    assert_eq!(text(&task, "resultType"), "complete");
    let result = task.get("result").expect("a result");
    assert_eq!(
        result.text(),
        r#"{"content":[{"type":"text","text":"done"}],"resultType":"complete"}"#
    );
    // "This includes tool calls that returned results with `isError: true`" (section "Task Status").
    let task = create_task(&client, "error").await;
    let task = poll_until(&client, &task, "completed").await;
    let result = task.get("result").expect("a result").to_string();
    assert!(
        result.contains("out of paper") && result.contains("\"isError\":true"),
        "{result}"
    );
    let task = create_task(&client, "panic").await;
    let task = poll_until(&client, &task, "failed").await;
    let error = task.get("error").expect("an error").to_string();
    assert!(
        error.contains("-32603") && task.get("result").is_none(),
        "{task}"
    );
    assert!(
        text(&task, "statusMessage").contains("the handler failed"),
        "{task}"
    );
}

/// Progress becomes the status message of the task: "`notifications/progress` […] MUST NOT be sent" (section "Task Status
/// Notifications").
#[tokio::test]
async fn progress_becomes_the_status_message() {
    let server = builder()
        .tool(Tool::new("count").task(), |cx: Cx| async move {
            cx.progress(3, 10)?;
            cx.info("nobody reads this")?;
            cx.elicit::<Confirm>("Go on?").await?;
            Ok::<_, Error>("done")
        })
        .build()
        .expect("a server");
    let client = client(&server).await;
    let task = create_task(&client, "count").await;
    let task = poll_until(&client, &task, "input_required").await;
    assert_eq!(text(&task, "statusMessage"), "3 of 10");
}

/// "A server MAY accept a partial set of responses […]; in that case the task remains in `input_required`", and "SHOULD ignore
/// any `inputResponses` […] not currently outstanding" (section "Task Update Requests").
#[tokio::test]
async fn partial_input_responses_are_accepted() {
    let server = builder()
        .tool(Tool::new("both").task(), |cx: Cx| async move {
            let (first, second) = tokio::join!(
                cx.elicit::<Confirm>("First?"),
                cx.elicit::<Confirm>("Second?").key("second"),
            );
            let third = cx
                .elicit::<Confirm>("Third?")
                .timeout(Duration::from_millis(20));
            let third = third.await.map_err(|error| error.kind().to_string());
            let (first, second) = (
                first?.accepted_with(|f| f.yes),
                second?.accepted_with(|f| f.yes),
            );
            Ok::<_, Error>(format!("{first} {second} {third:?}"))
        })
        .build()
        .expect("a server");
    let client = client(&server).await;
    let task = create_task(&client, "both").await;
    let asked = poll_until(&client, &task, "input_required").await;
    let input_requests = object(asked.get("inputRequests").expect("questions").text());
    let keys: Vec<String> = input_requests
        .iter()
        .map(|(key, _)| key.into_owned())
        .collect();
    assert_eq!((keys.len(), &*keys[1]), (2, "second"), "{input_requests}");
    let answer = |key: &str, yes: bool| {
        let mut params = params_of(&task);
        let answers = format!(
            r#"{{"{key}":{{"action":"accept","content":{{"yes":{yes}}}}},"unknown":{{"action":"decline"}}}}"#
        );
        params.insert("inputResponses", object(&answers));
        client.request("tasks/update", Some(params))
    };
    let ack = answer(&keys[0], true).await.expect("an answer");
    assert!(
        ack.get("taskId").is_none() && ack.get("status").is_none(),
        "{ack}"
    );
    let left = get_task(&client, &task).await;
    assert_eq!(text(&left, "status"), "input_required");
    let input_requests = object(left.get("inputRequests").expect("a question").text());
    assert_eq!(
        input_requests
            .iter()
            .map(|(key, _)| key.into_owned())
            .collect::<Vec<_>>(),
        ["second"]
    );
    // An answer to a question that is answered already changes nothing.
    answer(&keys[0], false).await.expect("an answer");
    answer("second", false).await.expect("an answer");
    let end = poll_until(&client, &task, "completed").await;
    let result = end.get("result").expect("a result").to_string();
    assert!(
        result.contains(r#"true false Err(\"no answer came in time\")"#),
        "{result}"
    );
}

/// "On success, the server MUST acknowledge the request with an empty result" (section "Task Cancellation"), even if
/// the task has ended.
#[tokio::test]
async fn cancelled_tasks_end() {
    let cleaned = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&cleaned);
    let server = builder()
        .tool(Tool::new("dropped").task(), std::future::pending::<()>)
        .tool(
            Tool::new("cooperative").task().cooperative(),
            move |cx: Cx| {
                let cleaned = Arc::clone(&counted);
                async move {
                    cx.cancelled().await;
                    cleaned.fetch_add(1, Ordering::SeqCst);
                }
            },
        )
        .build()
        .expect("a server");
    let client = client(&server).await;
    for tool in ["dropped", "cooperative"] {
        let task = create_task(&client, tool).await;
        for _ in 0..2 {
            let ack = client.request("tasks/cancel", Some(params_of(&task))).await;
            assert!(ack.expect("an answer").get("status").is_none());
            poll_until(&client, &task, "cancelled").await;
        }
    }
    assert_eq!(cleaned.load(Ordering::SeqCst), 1);
}

/// A call that the client drops leaves no task behind.
#[tokio::test]
async fn dropped_calls_cancel_their_tasks() {
    let (started, ended) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let told = (Arc::clone(&started), Arc::clone(&ended));
    let server = builder()
        .tool(Tool::new("long").task().cooperative(), move |cx: Cx| {
            let (started, ended) = told.clone();
            async move {
                started.notify_one();
                cx.cancelled().await;
                ended.notify_one();
            }
        })
        .build()
        .expect("a server");
    let client = client(&server).await;
    let calling = client.clone();
    let call = tokio::spawn(async move { calling.call::<_, String>("long", &()).await });
    started.notified().await;
    // Long enough for the result that creates the task.
    sleep(Duration::from_millis(100)).await;
    call.abort();
    ended.notified().await;
}

/// "the server MUST return an error with the code `-32021`", and servers "MUST return this error for non-declaring clients
/// issuing `tasks/get`, `tasks/update`, and `tasks/cancel`" (sections "Capability Negotiation", "Protocol Errors").
#[tokio::test]
async fn undeclared_tasks_are_refused() {
    let server = builder()
        .tool(Tool::new("required").task().task_required(), || async {
            "done"
        })
        .build()
        .expect("a server");
    let expected = |client: &Client| {
        if !has_sessions(client.revision()) {
            Some(-32021)
        } else {
            Some(-32601)
        }
    };
    every_revision(
        || Client::in_memory(&server).methods(["tasks/get", "tasks/cancel", "tasks/update"]),
        move |client| async move {
            let error = client.call_tool("required", &()).await;
            assert_eq!(error_code(error.expect_err("no task")), expected(&client));
            if has_sessions(client.revision()) {
                return;
            }
            for method in ["tasks/get", "tasks/cancel", "tasks/update"] {
                let params = object(r#"{"taskId":"0","inputResponses":{}}"#);
                let error = client.request(method, Some(params)).await;
                assert_eq!(error_code(error.expect_err("not declared")), Some(-32021));
            }
        },
    )
    .await;
    let client = client(&server).await;
    for id in ["0", "../etc/passwd", "00000000000000000000000000000000"] {
        let params = JsonObject::from_iter([("taskId", mcp_exact::RawJson::string(id))]);
        let error = client.request("tasks/get", Some(params)).await;
        assert_eq!(error_code(error.expect_err("unknown")), Some(-32602));
    }
}

/// A Tokio task that the handler has spawned can convert the call to a task.
#[tokio::test]
async fn spawned_work_converts_calls_to_tasks() {
    let server = builder()
        .tool("later", |cx: Cx| async move {
            let is_task = tokio::spawn(async move { cx.become_task().await }).await??;
            Ok::<_, Error>(is_task.to_string())
        })
        .build()
        .expect("a server");
    let client = client(&server).await;
    let result: String = client.call("later", &()).await.expect("a result");
    assert_eq!(result, "true");
}

/// "Answers the call with a task and continues the handler as this task" (`Cx::become_task`): the handler does not go on
/// before the call is a task.
#[tokio::test]
async fn handlers_wait_until_tasks_begin() {
    let server = builder()
        .tool("selects", |cx: Cx| async move {
            tokio::select! {
                biased;
                is_task = cx.become_task() => format!("{is_task:?}"),
                () = tokio::task::yield_now() => "went on".to_owned(),
            }
        })
        .build()
        .expect("a server");
    let client = client(&server).await;
    let result: String = client.call("selects", &()).await.expect("a result");
    assert_eq!(result, "Ok(true)");
}

/// A handler can convert its call to a task; earlier input requests belong to its request ("SHOULD resolve all MRTR
/// exchanges synchronously", section "Task Creation").
#[tokio::test]
async fn handlers_become_tasks() {
    let server = builder()
        .tool("later", |cx: Cx| async move {
            let before = cx
                .elicit::<Confirm>("Before?")
                .await?
                .accepted_with(|f| f.yes);
            let is_task = cx.become_task().await?;
            let after = cx
                .elicit::<Confirm>("After?")
                .await?
                .accepted_with(|f| f.yes);
            Ok::<_, Error>(format!("{before} {is_task} {after}"))
        })
        .prompt("prompt", |cx: Cx| async move {
            format!("{:?}", cx.become_task().await)
        })
        .build()
        .expect("a server");
    let client = client(&server).await;
    let result: String = client.call("later", &()).await.expect("a result");
    assert_eq!(result, "true true true");
    let prompt = client.prompt("prompt", []).await.expect("a prompt");
    assert_eq!(prompt.text(), "Ok(false)");
    let plain = Client::in_memory(&server)
        .on_elicit(|form: Form| async move { form.accept(&object(r#"{"yes":true}"#)) })
        .await
        .expect("a client");
    let result: String = plain.call("later", &()).await.expect("a result");
    assert_eq!(result, "true false true");
}

/// "servers MAY mark a task as `failed` at any point after the TTL elapses, and subsequently delete it" (section "Task Polling").
#[tokio::test]
async fn tasks_expire() {
    let server = |tasks: Tasks| {
        Server::builder("test", "1.0.0")
            .tasks(tasks.limit(1))
            .tool(Tool::new("forever").task(), std::future::pending::<()>)
            .build()
            .expect("a server")
    };
    // A task with a short lifetime may be over before the next call.
    let lasting = client(&server(Tasks::new())).await;
    create_task(&lasting, "forever").await;
    let params = object(r#"{"name":"forever","arguments":{}}"#);
    let error = lasting.request("tools/call", Some(params)).await;
    let error = error.expect_err("one is running").to_string();
    assert!(error.contains("1 tasks are running already"), "{error}");

    let lifetime = Duration::from_millis(300);
    let client = client(&server(Tasks::new().lifetime(lifetime))).await;
    let task = create_task(&client, "forever").await;
    assert_eq!(task.get("ttlMs").expect("a lifetime").text(), "300");
    loop {
        match client.request("tasks/get", Some(params_of(&task))).await {
            Ok(_) => sleep(Duration::from_millis(10)).await,
            Err(error) => {
                assert_eq!(error_code(error), Some(-32602));
                break;
            }
        }
    }
    create_task(&client, "forever").await;
}

/// Each task belongs to the principal of its call: "Servers MUST perform authentication and authorization checks on each
/// task-related request" (section "Security Considerations").
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tasks_belong_to_their_principal() {
    /// Authenticator that uses a header as the principal.
    struct ByHeader;

    impl Authenticate for ByHeader {
        fn authenticate<'a>(
            &'a self,
            request: &'a mut http::request::Parts,
        ) -> mcp_exact::transport::http::server::AuthFuture<'a> {
            let name = request
                .headers
                .get("x-user")
                .and_then(|name| name.to_str().ok());
            let principal = name.map(|name| Principal(name.to_owned()));
            Box::pin(std::future::ready(Ok(principal.into())))
        }
    }

    let server = builder()
        .tool(Tool::new("forever").task(), std::future::pending::<()>)
        .build()
        .expect("a server");
    let listener = HttpListener::bind("127.0.0.1:0").await.expect("a port");
    let url = format!("http://{}/mcp", listener.local_addr().expect("an address"));
    let options = HttpServerOptions {
        authenticate: Some(Arc::new(ByHeader)),
        ..HttpServerOptions::default()
    };
    let serving = tokio::spawn(listener.serve(server.http(options), std::future::pending()));
    let user = |name: &'static str| {
        let endpoint = mcp_exact::transport::http::client::HttpEndpoint::new(&url);
        let value = http::HeaderValue::from_static(name);
        let endpoint = endpoint
            .expect("a URL")
            .header("x-user".parse().expect("a name"), value);
        connect(Client::http(endpoint)).revision(newest())
    };
    let (ada, bob) = (
        user("ada").await.expect("a client"),
        user("bob").await.expect("a client"),
    );
    let task = create_task(&ada, "forever").await;
    assert_eq!(text(&get_task(&ada, &task).await, "status"), "working");
    for method in ["tasks/get", "tasks/cancel"] {
        let error = bob.request(method, Some(params_of(&task))).await;
        assert_eq!(error_code(error.expect_err("another one's")), Some(-32602));
    }
    assert_eq!(text(&get_task(&ada, &task).await, "status"), "working");
    serving.abort();
}

/// A client that subscribes to its task is notified of each change, with the state of the task at that moment (section "Task
/// Status Notifications").
#[tokio::test]
async fn subscribers_are_notified() {
    let server = builder()
        .tool(Tool::new("ask").task(), |cx: Cx| async move {
            let sure = cx.elicit::<Confirm>("Sure?").await?;
            Ok::<_, Error>(sure.accepted_with(|form| form.yes).to_string())
        })
        .build()
        .expect("a server");
    let (near, far) = tokio::io::duplex(64 << 10);
    let (reader, writer) = tokio::io::split(far);
    tokio::spawn(async move {
        server
            .serve(LineTransport::new(reader, writer, 64 << 10))
            .await
    });
    let (reader, mut writer) = tokio::io::split(near);
    let mut lines = tokio::io::BufReader::new(reader).lines();
    let mut send = async |id: u32, method: &str, members: &str| {
        let capabilities =
            r#"{"elicitation":{},"extensions":{"io.modelcontextprotocol/tasks":{}}}"#;
        let line = format!(
            "{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":{method:?},\"params\":{{{members},\"_meta\":{{\
             \"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\",\
             \"io.modelcontextprotocol/clientCapabilities\":{capabilities}}}}}}}\n"
        );
        writer
            .write_all(line.as_bytes())
            .await
            .expect("the server reads");
    };
    let mut next = async || {
        let line = lines.next_line().await.expect("a line").expect("a message");
        object(&line)
    };
    send(1, "tools/call", r#""name":"ask","arguments":{}"#).await;
    let created = object(next().await.get("result").expect("a result").text());
    let id = text(&created, "taskId");
    send(
        2,
        "subscriptions/listen",
        &format!(r#""notifications":{{"taskIds":["{id}"]}}"#),
    )
    .await;
    let acknowledged = next().await.to_string();
    assert!(
        acknowledged.contains(&id) && acknowledged.contains("acknowledged"),
        "{acknowledged}"
    );
    let mut statuses = Vec::new();
    let mut answered = false;
    while statuses.last().is_none_or(|last| last != "completed") {
        let message = next().await;
        if message.get("method").is_none() {
            continue;
        }
        assert_eq!(text(&message, "method"), "notifications/tasks");
        let params = object(message.get("params").expect("params").text());
        assert_eq!(text(&params, "taskId"), id);
        let status = text(&params, "status");
        if status == "input_required" && !answered {
            answered = true;
            let input_requests = object(params.get("inputRequests").expect("a question").text());
            let key = input_requests
                .iter()
                .next()
                .expect("a question")
                .0
                .into_owned();
            let answer = format!(r#""{key}":{{"action":"accept","content":{{"yes":true}}}}"#);
            let members = format!(r#""taskId":"{id}","inputResponses":{{{answer}}}"#);
            send(3, "tasks/update", &members).await;
        }
        if status == "completed" {
            assert!(
                params
                    .get("result")
                    .expect("a result")
                    .text()
                    .contains("true")
            );
        }
        statuses.push(status);
    }
    assert!(
        statuses.contains(&"input_required".to_owned()),
        "{statuses:?}"
    );
}

/// No task is created if its record cannot be saved: "A server MUST NOT return `CreateTaskResult` until the task is
/// durably created" (section "Task Creation").
#[tokio::test]
async fn failing_stores_create_no_tasks() {
    let folder = Folder::new("broken");
    let store = DirectoryTaskStore::open(&folder.0).expect("a store");
    let server = Server::builder("test", "1.0.0")
        .tasks(Tasks::new().store(store))
        .tool(Tool::new("task").task(), || async { "done" })
        .tool("later", |cx: Cx| async move {
            Json(cx.become_task().await.map_err(|error| error.to_string()))
        })
        .build()
        .expect("a server");
    std::fs::remove_dir_all(&folder.0).expect("the folder is gone");
    let client = client(&server).await;
    let error = client
        .call::<_, String>("task", &())
        .await
        .expect_err("no store");
    assert_eq!(error_code(error), Some(-32603));
    let later: std::result::Result<bool, String> =
        client.call("later", &()).await.expect("a result");
    assert!(later.expect_err("no store").contains("could not be stored"));
}
