//! `kill -9` under load: the next server process resumes every session, and no call is executed twice.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use mcp_exact_session::{CallOptions, ClientEvent, Outcome};
use mcp_exact_tests_support::Cases;
use mcp_exact_tests_transport::echo::{self, STEPS};
use mcp_exact_tests_transport::http::Random;
use mcp_exact_tests_transport::process::ServerProcess;
use mcp_exact_tests_transport::proxy::CuttingProxy;
use mcp_exact_transport::http::client::HttpEndpoint;
use mcp_exact_transport::{ClientHandle, ProgressCallback};

use super::{HTTP_SERVER, STEP_TIMEOUT};

/// Number of concurrent clients.
const CLIENTS: usize = 6;
/// Number of kills of the server.
const KILL_COUNT: Cases = Cases { short: 5, long: 12 };

/// Outcomes of the tool calls of one client.
#[derive(Debug, Default)]
struct Calls {
    /// Arguments of the calls of the tool `note`, each with true if the call got a result.
    noted: HashMap<String, bool>,
    /// Number of calls with a result.
    answered: usize,
    /// Number of calls that were lost.
    lost: usize,
}

/// What the clients and the test tell each other.
#[derive(Debug, Default)]
struct Progress {
    /// True when the clients are to stop.
    stop: AtomicBool,
    /// Number of calls of all clients with a result.
    answered: AtomicUsize,
}

impl Progress {
    /// Waits until as many calls as there are clients have got a result since `before`.
    async fn wait_for_answers(&self, before: usize) {
        let answered = async {
            while self.answered.load(Ordering::Acquire) < before + CLIENTS {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        let waited = tokio::time::timeout(STEP_TIMEOUT, answered).await;
        waited.expect("calls are answered between two kills");
    }
}

/// Calls tools until they are told to stop; `name` identifies the client.
async fn run_calls(client: ClientHandle, name: usize, progress: Arc<Progress>) -> Calls {
    let mut calls = Calls::default();
    for number in 0.. {
        if progress.stop.load(Ordering::Acquire) {
            break;
        }
        if number % 3 == 0 {
            let steps = steps(&client).await;
            progress
                .answered
                .fetch_add(usize::from(steps), Ordering::AcqRel);
            calls.answered += usize::from(steps);
            calls.lost += usize::from(!steps);
            continue;
        }
        let text = format!("{name}-{number}");
        let outcome = tokio::time::timeout(STEP_TIMEOUT, echo::call(&client, "note", &text)).await;
        let has_answered = match outcome.expect("in time") {
            Ok(answer) => {
                assert_eq!(answer, text);
                true
            }
            Err(Outcome::Lost | Outcome::Error(_)) => false,
            Err(other) => panic!("{text}: {other:?}"),
        };
        let answered = usize::from(has_answered);
        progress.answered.fetch_add(answered, Ordering::AcqRel);
        calls.answered += answered;
        calls.lost += usize::from(!has_answered);
        calls.noted.insert(text, has_answered);
        if !has_answered {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
    calls
}

/// Calls the tool `steps`, which sends progress; returns true if the call has a result.
///
/// Checks that each progress notification was received once, in order and before the result.
async fn steps(client: &ClientHandle) -> bool {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let note = Arc::clone(&seen);
    let callback: ProgressCallback =
        Box::new(move |progress| note.lock().expect("not poisoned").push(progress.done));
    let options = CallOptions {
        progress: true,
        ..CallOptions::default()
    };
    let params = echo::call_params("steps", "");
    let request = client.request("tools/call", params, options, Some(callback));
    let Ok(request) = request else {
        return false;
    };
    let outcome = tokio::time::timeout(STEP_TIMEOUT, request)
        .await
        .expect("in time");
    let seen = seen.lock().expect("not poisoned");
    let expected: Vec<f64> = (1..=STEPS).map(f64::from).collect();
    match outcome {
        Outcome::Result(_) => assert_eq!(*seen, expected),
        Outcome::Lost | Outcome::Error(_) => {
            assert_eq!(*seen, expected[..seen.len()], "nothing comes twice");
        }
        other => panic!("{other:?}"),
    }
    matches!(outcome, Outcome::Result(_))
}

/// Calls a tool after the last kill. The calls that take the connections of the killed process are lost.
async fn call_at_end(client: &ClientHandle) {
    let called = async {
        loop {
            match echo::call(client, "echo", "end").await {
                Ok(answer) => return assert_eq!(answer, "end"),
                Err(Outcome::Lost) => tokio::time::sleep(Duration::from_millis(10)).await,
                Err(other) => panic!("{other:?}"),
            }
        }
    };
    let called = tokio::time::timeout(STEP_TIMEOUT, called).await;
    called.expect("the session goes on");
}

/// Returns the number of records in a directory; temporary files of killed processes are not counted.
fn count_records(directory: &Path) -> usize {
    let files = std::fs::read_dir(directory).expect("a directory");
    let names = files.map(|file| file.expect("a file").path());
    names
        .filter(|name| name.extension().is_some_and(|end| end == "json"))
        .count()
}

/// No session is lost, and no call is executed twice, when the server is killed repeatedly under load.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sessions_survive_kills_under_load() {
    let directory = tempfile::tempdir().expect("a directory");
    let store = format!("store={}", directory.path().display());
    let start = || ServerProcess::start(HTTP_SERVER, &[&store, "retry=20", "stream_after=20"]);
    let mut server = start();
    let proxy = CuttingProxy::start(server.address).await;
    let progress = Arc::new(Progress::default());
    let lost_sessions = Arc::new(AtomicUsize::new(0));
    let mut clients = Vec::new();
    for name in 0..CLIENTS {
        let endpoint = HttpEndpoint::new(&proxy.url("/mcp")).expect("a URL");
        let lost = Arc::clone(&lost_sessions);
        let handler = move |client: &ClientHandle, event: ClientEvent| {
            if matches!(event, ClientEvent::SessionLost) {
                lost.fetch_add(1, Ordering::SeqCst);
            }
            echo::answer(client, event);
        };
        let connected = endpoint.retry(Duration::from_millis(20)).connect(
            echo::client_settings("2025-11-25"),
            None,
            Arc::new(handler),
        );
        let (client, driver) = connected;
        client.ready().await.expect("connected");
        let work = tokio::spawn(run_calls(client.clone(), name, Arc::clone(&progress)));
        clients.push((client, driver, work));
    }
    let mut random = Random(11);
    let kill_count = KILL_COUNT.number();
    for _ in 0..kill_count {
        let before = progress.answered.load(Ordering::Acquire);
        progress.wait_for_answers(before).await;
        tokio::time::sleep(Duration::from_millis(random.below(100))).await;
        server.kill();
        server = start();
        proxy.forward_to(server.address);
    }
    progress.stop.store(true, Ordering::Release);
    let (mut answered, mut lost) = (0, 0);
    let mut noted = HashMap::new();
    for (client, driver, work) in clients {
        let calls = work.await.expect("no panic");
        answered += calls.answered;
        lost += calls.lost;
        noted.extend(calls.noted);
        call_at_end(&client).await;
        assert_eq!(client.usage().pending, 0);
        drop((client, driver));
    }
    println!("{answered} calls answered, {lost} lost in {kill_count} kills");
    assert!(answered >= CLIENTS * kill_count && lost > 0);
    assert_eq!(lost_sessions.load(Ordering::SeqCst), 0, "sessions go on");
    let sessions = count_records(&directory.path().join("sessions"));
    assert_eq!(sessions, CLIENTS, "no session was begun beside them");
    let journal = std::fs::read_to_string(directory.path().join("journal")).expect("a journal");
    let mut times: HashMap<&str, usize> = HashMap::new();
    for line in journal.lines() {
        *times.entry(line).or_default() += 1;
    }
    for (text, has_answered) in &noted {
        let times = times.get(text.as_str()).copied().unwrap_or_default();
        assert!(times <= 1, "{text} was worked on {times} times");
        assert!(!has_answered || times == 1, "{text} was answered");
    }
}
