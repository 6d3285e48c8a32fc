//! Servers that are killed, stopped and started again, over standard streams and over HTTP.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::Duration;

use libtest_mimic::Trial;
use mcp_exact::transport::http::server::{HttpListener, HttpServerOptions};
use mcp_exact::{
    Client, ClientChange, ClientError, CloseReason, Connect, ConnectionEvent, Host, HostError,
    Reconnect, Revision, Server, ServerBuilder, ServerState,
};
use tokio::sync::{Semaphore, SemaphorePermit, mpsc};

use crate::run;

/// Time limit of what a server in these tests does not answer.
const SHORT: Duration = Duration::from_secs(1);

/// A permit for each call of `forever` that this process runs.
static RUNNING: Semaphore = Semaphore::const_new(0);

/// Returns the tests of this module.
pub fn trials() -> Vec<Trial> {
    vec![
        Trial::test("killed_processes_are_started_again", || {
            run(killed_processes_are_started_again())
        }),
        Trial::test("stopped_processes_are_replaced", || {
            run(stopped_processes_are_replaced())
        }),
        Trial::test("killed_http_servers_are_reached_again", || {
            run(killed_http_servers_are_reached_again())
        }),
        Trial::test("half_open_connections_are_noticed", || {
            run(half_open_connections_are_noticed())
        }),
        Trial::test("refused_clients_give_up", || run(refused_clients_give_up())),
    ]
}

/// Creates the server of these tests.
pub fn builder() -> ServerBuilder {
    Server::builder("reborn", "1")
        .tool("pid", || async { std::process::id().to_string() })
        .tool("forever", || async {
            RUNNING.add_permits(1);
            std::future::pending::<String>().await
        })
        .tool("forever_runs", async || {
            RUNNING.acquire().await.map(SemaphorePermit::forget).is_ok()
        })
        .resource("x://a", || async { "" })
}

/// Serves over HTTP on an address, whose port may be 0, and prints the address; with `token`, every request needs it.
pub fn serve_http(address: &str, token: Option<&str>) -> ExitCode {
    let served = run(async move {
        let server = match token {
            Some(token) => builder().bearer_tokens([token]),
            None => builder(),
        };
        let server = server.build().expect("a server");
        let listener = HttpListener::bind(address).await.expect("a port");
        let address = listener.local_addr().expect("an address");
        writeln!(std::io::stdout(), "{address}").expect("an output");
        let service = server.http(HttpServerOptions::default());
        let served = listener.serve(service, std::future::pending()).await;
        served.expect("it is killed");
    });
    served.map_or(ExitCode::FAILURE, |()| ExitCode::SUCCESS)
}

/// Process of a server over HTTP, which is killed on drop.
struct HttpProcess {
    child: Child,
    address: String,
}

impl HttpProcess {
    /// Starts a server on an address.
    fn start(address: &str, token: Option<&str>) -> Self {
        let program = std::env::current_exe().expect("a path");
        let mut child = Command::new(program)
            .args(["serve", "reborn", address])
            .args(token)
            .stdout(Stdio::piped())
            .spawn()
            .expect("a process");
        let output = child.stdout.take().expect("its output");
        let mut line = String::new();
        BufReader::new(output).read_line(&mut line).expect("a line");
        Self {
            child,
            address: line.trim().to_owned(),
        }
    }

    fn kill(&mut self) {
        self.child.kill().expect("it runs");
        self.child.wait().expect("a status");
    }
}

impl Drop for HttpProcess {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Sends a signal to a process.
fn signal(name: &str, process: &str) {
    let sent = Command::new("kill").args([name, process]).status();
    assert!(sent.expect("a status").success());
}

/// Events of a connection, in order.
type Events = mpsc::UnboundedReceiver<ConnectionEvent>;

/// Adds a handler of events.
fn observe(connect: Connect) -> (Connect, Events) {
    let (sender, events) = mpsc::unbounded_channel();
    let connect = connect.on_connection_event(move |event| drop(sender.send(event)));
    (connect, events)
}

/// Waits for the next event that `is_wanted` accepts.
async fn wait_for(events: &mut Events, is_wanted: impl Fn(&ConnectionEvent) -> bool) {
    loop {
        let event = events.recv().await.expect("an event");
        if is_wanted(&event) {
            return;
        }
    }
}

fn is_restored(event: &ConnectionEvent) -> bool {
    matches!(event, ConnectionEvent::Restored { .. })
}

/// Calls the tool that returns the id of the server's process.
async fn process_id(client: &Client) -> String {
    client.call("pid", &()).await.expect("a process")
}

/// Waits until the server runs `forever`: over HTTP, another call may arrive before it.
async fn forever_runs(client: &Client) {
    let runs = tokio::time::timeout(
        Duration::from_secs(60),
        client.call("forever_runs", &()).into_future(),
    );
    let runs: bool = runs.await.expect("`forever` runs").expect("an answer");
    assert!(runs);
}

/// Configures a client of a server over standard streams.
fn command() -> Connect {
    let program = std::env::current_exe().expect("a path");
    Client::command(program, ["serve", "reborn"])
}

/// `kill -9` of a server over standard streams: a call in flight fails with the exit status, the next one is answered by a new
/// process, and subscriptions have begun again; so it is in a host.
async fn killed_processes_are_started_again() {
    for revision in ["2025-11-25", "2026-07-28"] {
        let revision = named(revision);
        let (changed, mut changes) = mpsc::unbounded_channel();
        let (sender, mut events) = mpsc::unbounded_channel();
        let connect = command()
            .revision(revision)
            .on_connection_event(move |event| drop(sender.send(event)));
        let connect = connect
            .reconnect(Reconnect::new())
            .on_change(move |change| drop(changed.send(change)));
        let client = connect.await.expect("a client");
        let _subscription = client.subscribe(["x://a"]).await.expect("a subscription");
        let first = process_id(&client).await;
        let mut call = client.call_tool("forever", &()).into_future();
        tokio::select! {
            biased;
            ended = &mut call => panic!("{ended:?}"),
            () = forever_runs(&client) => signal("-9", &first),
        }
        // The call says why its own connection has ended, not what is known of the next one.
        wait_for(&mut events, is_restored).await;
        let error = call.await.expect_err("it is killed");
        assert!(
            matches!(
                error,
                ClientError::Disconnected {
                    may_have_run: true,
                    ..
                }
            ),
            "{error:?}"
        );
        assert!(error.to_string().contains("signal: 9"), "{error}");
        assert_ne!(process_id(&client).await, first);
        let resource = ClientChange::Resource("x://a".to_owned());
        while changes.recv().await.as_ref() != Some(&resource) {}
    }

    let (sender, mut events) = mpsc::unbounded_channel();
    let host = Host::builder()
        .server("reborn", command())
        .reconnect(Reconnect::new())
        .configure(move |_, connect| {
            let sender = sender.clone();
            connect.on_connection_event(move |event| drop(sender.send(event)))
        })
        .start()
        .await;
    let call = async || {
        host.call("reborn__pid", &())
            .await
            .map(|output| output.text())
    };
    let first = call().await.expect("a process");
    signal("-9", &first);
    wait_for(&mut events, is_restored).await;
    assert_ne!(call().await.expect("a process"), first);
    let status = host.status();
    assert_eq!(status["reborn"].state, ServerState::Connected);
    host.close();
    let closed = call().await.expect_err("it is closed");
    let HostError::Client { error, .. } = closed else {
        panic!("{closed:?}");
    };
    let expected = ClientError::Disconnected {
        reason: CloseReason::ByClient,
        may_have_run: false,
    };
    assert_eq!(error, expected);
}

/// Returns the error of the first call that fails.
async fn first_error(client: &Client) -> ClientError {
    loop {
        if let Err(error) = client.call_tool("pid", &()).idle_timeout(SHORT).await {
            return error;
        }
    }
}

/// A process that is stopped, and so answers nothing, is killed and replaced.
async fn stopped_processes_are_replaced() {
    let (connect, mut events) = observe(command());
    let policy = Reconnect::new().answer_limit(Some(SHORT));
    let client = connect.reconnect(policy).await.expect("a client");
    let first = process_id(&client).await;
    signal("-STOP", &first);
    // A thread of the process that has not stopped yet may still answer.
    assert_eq!(first_error(&client).await, ClientError::TimedOut);
    wait_for(&mut events, is_restored).await;
    assert_ne!(process_id(&client).await, first);
    let is_gone = Command::new("kill").args(["-0", &first]).output();
    assert!(!is_gone.expect("a status").status.success());
}

/// `kill -9` of a server over HTTP: a call that was not sent waits until a server is there again; a call in flight fails. Subscriptions have begun again.
async fn killed_http_servers_are_reached_again() {
    for revision in ["2025-11-25", "2026-07-28"] {
        let mut server = HttpProcess::start("127.0.0.1:0", None);
        let url = format!("http://{}/mcp", server.address);
        let (changed, mut changes) = mpsc::unbounded_channel();
        let (connect, mut events) = observe(Client::connect(&url));
        let connect = connect
            .revision(named(revision))
            .reconnect(Reconnect::new())
            .on_change(move |change| drop(changed.send(change)));
        let client = connect.await.expect("a client");
        let _subscription = client.subscribe(["x://a"]).await.expect("a subscription");
        let first = process_id(&client).await;
        let address = server.address.clone();
        let (call, ()) = tokio::join!(client.call_tool("forever", &()), async {
            forever_runs(&client).await;
            server.kill();
        });
        let error = call.expect_err("it is killed");
        assert!(
            matches!(
                error,
                ClientError::Disconnected {
                    may_have_run: true,
                    ..
                }
            ),
            "{revision}: {error:?}"
        );
        // A call before could reach a process that is about to end.
        wait_for(&mut events, |event| {
            matches!(event, ConnectionEvent::Lost(_))
        })
        .await;
        let (called, _server) = tokio::join!(process_id(&client), async {
            HttpProcess::start(&address, None)
        });
        client.read("x://a").await.expect("contents");
        assert_ne!(called, first, "{revision}");
        wait_for(&mut events, is_restored).await;
        let resource = ClientChange::Resource("x://a".to_owned());
        while changes.recv().await.as_ref() != Some(&resource) {}
    }
}

/// A server that answers nothing, while connections to it stay open and others are accepted, is given up; the next server at
/// its address is used.
async fn half_open_connections_are_noticed() {
    let mut server = HttpProcess::start("127.0.0.1:0", None);
    let address = server.address.clone();
    let (connect, mut events) = observe(Client::connect(&format!("http://{address}/mcp")));
    let policy = Reconnect::new().answer_limit(Some(SHORT)).without_limit();
    let connect = connect
        .revision(named("2025-11-25"))
        .connect_timeout(SHORT)
        .reconnect(policy);
    let mut connected = connect.clone().await;
    for _ in 0..20 {
        // On a slow machine, even a server that answers may take longer than the limit.
        if matches!(connected, Err(ClientError::Negotiation(_))) {
            connected = connect.clone().await;
        }
    }
    let client = connected.expect("a client");
    let first = process_id(&client).await;
    signal("-STOP", &first);
    assert_eq!(first_error(&client).await, ClientError::TimedOut);
    wait_for(&mut events, |event| {
        matches!(event, ConnectionEvent::AttemptFailed { .. })
    })
    .await;
    server.kill();
    let _server = HttpProcess::start(&address, None);
    wait_for(&mut events, is_restored).await;
    assert_ne!(process_id(&client).await, first);
}

/// A server that wants a token after its restart, which the client does not have: the reason says so, and the client
/// does not go on for ever.
async fn refused_clients_give_up() {
    let mut server = HttpProcess::start("127.0.0.1:0", None);
    let address = server.address.clone();
    let (connect, _events) = observe(Client::connect(&format!("http://{address}/mcp")));
    let client = connect
        .revision(named("2025-11-25"))
        .reconnect(Reconnect::new().attempts(2))
        .await
        .expect("a client");
    server.kill();
    let _server = HttpProcess::start(&address, Some("c2VjcmV0"));
    let call = client.call_tool("pid", &()).await.expect_err("no token");
    assert!(matches!(call, ClientError::Disconnected { .. }), "{call:?}");
    let reason = client.closed().await;
    assert!(
        matches!(reason, CloseReason::GaveUp { attempts: 2, .. }),
        "{reason:?}"
    );
    assert!(reason.to_string().contains("not authorized"), "{reason}");
}

/// Returns a revision that is compiled in.
fn named(revision: &str) -> Revision {
    let mut known = mcp_exact::revisions();
    known
        .find(|known| known.as_str() == revision)
        .expect("known")
}
