//! Tasks that outlive their server: they are stored in a folder, and a later process continues them.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use mcp_exact::{
    Client, Cx, DirectoryTaskStore, Error, JsonObject, Result, Server, TaskStore as _, Tasks, Tool,
};

use super::{
    Confirm, client, connect, create_task, get_task, newest, object, params_of, poll_until, text,
};

/// Folder that is removed on drop.
pub(super) struct Folder(pub(super) PathBuf);

impl Folder {
    /// Returns a path for a folder that does not exist, in the folder for temporary files.
    pub(super) fn new(name: &str) -> Self {
        let name = format!("mcp-exact-tasks-{name}-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        // The folder may exist after a run that was killed.
        let _ = std::fs::remove_dir_all(&path);
        Self(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // The folder may not exist.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Process of the example `task_server`, killed on drop.
struct Process {
    child: Child,
    url: String,
}

impl Process {
    /// Starts the example with a folder, and reads its URL.
    fn start(folder: &Path) -> Self {
        let mut child = Command::new(example("task_server"))
            .arg(folder)
            .stderr(Stdio::piped())
            .spawn()
            .expect("the example is built");
        let mut url = String::new();
        let mut errors = BufReader::new(child.stderr.take().expect("a stream"));
        errors.read_line(&mut url).expect("a line");
        Self {
            child,
            url: url.trim().to_owned(),
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.child.kill().expect("it is a child");
        self.child.wait().expect("it is a child");
    }
}

/// Returns the path of an example, which cargo builds for all tests of the package.
fn example(name: &str) -> PathBuf {
    let test = std::env::current_exe().expect("a path");
    let target = test
        .parent()
        .and_then(Path::parent)
        .expect("a target directory");
    target
        .join("examples")
        .join(format!("{name}{}", std::env::consts::EXE_SUFFIX))
}

/// After a server was killed, the next process continues its tasks: answers and results of `once` are kept, no effect
/// is repeated, and results of ended tasks can still be fetched.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tasks_survive_a_restart() {
    let folder = Folder::new("restart");
    let printed = || std::fs::read_to_string(folder.0.join("paper.txt")).expect("paper");
    let mut task = None;
    let mut asked = Vec::new();
    // Each process asks what the one before was killed with, has an answer, and prints the next page.
    for page in 1..=3 {
        let process = Process::start(&folder.0);
        let client = connect(Client::connect(&process.url)).revision(newest());
        let client = client.await.expect("a client");
        let created = match task.take() {
            Some(task) => task,
            None => {
                let params = object(r#"{"name":"print","arguments":{"pages":3}}"#);
                let created = client.request("tools/call", Some(params)).await;
                created.expect("a task")
            }
        };
        let key = wait_for_input_request(&client, &created, &asked).await;
        let mut answer = params_of(&created);
        let responses = format!(r#"{{"{key}":{{"action":"accept","content":{{"yes":true}}}}}}"#);
        answer.insert("inputResponses", object(&responses));
        let ack = client.request("tasks/update", Some(answer)).await;
        ack.expect("an answer");
        asked.push(key);
        if page < 3 {
            // An effect that the process dies in is repeated: wait until the next one is over.
            wait_for_input_request(&client, &created, &asked).await;
        }
        task = Some(created);
        // The answer was kept before it was acknowledged.
        drop(process);
    }
    assert_eq!(asked, ["elicitation-1", "elicitation-2", "elicitation-3"]);
    let task = task.expect("a task");
    let mut ends = Vec::new();
    for _ in 0..2 {
        let process = Process::start(&folder.0);
        let client = connect(Client::connect(&process.url)).revision(newest());
        let client = client.await.expect("a client");
        let end = poll_until(&client, &task, "completed").await;
        ends.push(end.get("result").expect("a result").to_string());
        drop(process);
    }
    assert!(
        ends[0] == ends[1] && ends[0].contains("printed 3 pages"),
        "{ends:?}"
    );
    assert_eq!(printed(), "page 1\npage 2\npage 3\n");
}

/// Waits until a task has an input request whose key is not in `before`, and returns its key.
async fn wait_for_input_request(client: &Client, task: &JsonObject, before: &[String]) -> String {
    loop {
        let waiting = poll_until(client, task, "input_required").await;
        let input_requests = object(waiting.get("inputRequests").expect("a question").text());
        let key = input_requests
            .iter()
            .next()
            .expect("a question")
            .0
            .into_owned();
        if !before.contains(&key) {
            return key;
        }
    }
}

/// Waits until the input request of an unfinished task is stored: the process of the task saves nothing more.
async fn wait_until_stored(store: &DirectoryTaskStore) {
    loop {
        let records = store.take_unfinished().await.expect("a store");
        let mut records = records.iter().map(serde_json::to_value);
        if records.any(|record| !record.expect("JSON")["asked"].is_null()) {
            return;
        }
    }
}

/// A task whose tool no longer exists, or whose handler has another version, fails with a reason instead of running other
/// code.
#[tokio::test]
async fn changed_handlers_are_not_resumed() {
    let folder = Folder::new("version");
    let open = || DirectoryTaskStore::open(&folder.0).expect("a store");
    let process = |tool: &str, version: &str| {
        Server::builder("test", "1.0.0")
            .tasks(Tasks::new().store(open()))
            .tool(
                Tool::new(tool).version(version).task(),
                |cx: Cx| async move {
                    cx.elicit::<Confirm>("Sure?").await?;
                    Ok::<_, Error>("done")
                },
            )
            .build()
            .expect("a server")
    };
    for (tool, version, reason) in [
        ("other", "1", "has no tool \"ask\" any more"),
        ("ask", "2", "the handler has changed since it asked"),
    ] {
        let task = {
            let client = client(&process("ask", "1")).await;
            let task = create_task(&client, "ask").await;
            poll_until(&client, &task, "input_required").await;
            wait_until_stored(&open()).await;
            task
        };
        let next = process(tool, version);
        assert!(next.resume_tasks().await.expect("a store") > 0);
        let task = get_task(&client(&next).await, &task).await;
        assert_eq!(text(&task, "status"), "failed");
        assert!(text(&task, "statusMessage").contains(reason), "{task}");
    }
    let open = open().take_unfinished().await.expect("a store");
    assert!(open.is_empty(), "{open:?}");
}

/// Only the owner can read the files of the tasks.
#[cfg(unix)]
#[tokio::test]
async fn task_records_are_private_files() -> Result {
    use std::os::unix::fs::PermissionsExt as _;

    let folder = Folder::new("private");
    let server = Server::builder("test", "1.0.0")
        .tasks(Tasks::new().store(DirectoryTaskStore::open(&folder.0)?))
        .tool(Tool::new("task").task(), || async { "done" })
        .build()?;
    let client = client(&server).await;
    let task = create_task(&client, "task").await;
    poll_until(&client, &task, "completed").await;
    let mode = |path: &Path| std::fs::metadata(path).map(|data| data.permissions().mode() & 0o777);
    assert_eq!(mode(&folder.0)?, 0o700);
    for entry in std::fs::read_dir(&folder.0)? {
        assert_eq!(mode(&entry?.path())?, 0o600);
    }
    Ok(())
}
