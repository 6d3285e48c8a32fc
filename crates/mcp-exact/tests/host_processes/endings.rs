//! Clients and hosts that end: processes of servers have the time that they need, and the next one starts after the former one.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::Duration;

use libtest_mimic::Trial;
use mcp_exact::transport::ServerCommand;
use mcp_exact::{Client, CloseReason, Host, ServerBuilder};

use crate::{TemporaryFile, run};

/// Time for what a server does at its end, on any machine.
const SLOW: Duration = Duration::from_secs(60);

/// Returns the tests of this module.
pub fn trials() -> Vec<Trial> {
    vec![
        Trial::test("closed_clients_have_ended_their_servers", || {
            run(closed_clients_have_ended_their_servers())
        }),
        Trial::test("restarted_servers_run_one_after_the_other", || {
            run(restarted_servers_run_one_after_the_other())
        }),
    ]
}

/// Adds what a server does that runs once at a time: the file that the variable `LOCK` names exists while it runs, unless it is
/// killed, which leaves the file behind.
pub fn lock(builder: ServerBuilder) -> ServerBuilder {
    let path = PathBuf::from(std::env::var_os("LOCK").expect("a path"));
    File::create_new(&path).expect("no other process holds the lock");
    builder.on_shutdown(move |_| {
        let path = path.clone();
        async move { Ok(std::fs::remove_file(path)?) }
    })
}

/// Returns the path of a lock, which no process holds.
fn free_lock(name: &str) -> TemporaryFile {
    let file = format!("mcp-exact-{name}-{}.lock", std::process::id());
    TemporaryFile(std::env::temp_dir().join(file))
}

/// Returns the command of a server that holds a lock.
fn command(lock: &Path) -> ServerCommand {
    let program = std::env::current_exe().expect("a path");
    let command = ServerCommand::new(program).args(["serve", "locking"]);
    // On a slow machine, the server is not killed either.
    let command = command.shutdown_waits(SLOW, SLOW);
    command.env("LOCK", lock)
}

/// A client that is closed, and has been waited for, has no process any more: the server has run what it does at its end
/// (`basic/lifecycle`, "Shutdown"), and so have the servers of a host.
async fn closed_clients_have_ended_their_servers() {
    let lock = free_lock("client");
    let command = command(&lock.0);
    let client = Client::spawn(command.clone()).await.expect("a client");
    assert!(lock.0.exists());
    client.close();
    assert!(client.is_closed());
    assert_eq!(client.closed().await, CloseReason::ByClient);
    assert!(!lock.0.exists(), "the server has not ended by itself");
    tokio::select! {
        biased;
        () = command.ended() => {}
        () = std::future::ready(()) => panic!("the process runs"),
    }

    // So it is if the last clone is dropped.
    let client = Client::spawn(command.clone()).await.expect("a client");
    let closed = client.closed();
    drop(client);
    assert_eq!(closed.await, CloseReason::ByClient);
    assert!(!lock.0.exists(), "the server has not ended by itself");

    let host = Host::builder().server("locking", Client::spawn(command));
    let host = host.start().await;
    assert!(lock.0.exists(), "{host:?}");
    host.close();
    host.closed().await;
    assert!(!lock.0.exists(), "the server has not ended by itself");
}

/// A server that a host restarts may hold what its next process needs; so may one that was closed before.
async fn restarted_servers_run_one_after_the_other() {
    let lock = free_lock("host");
    let connect = Client::spawn(command(&lock.0));
    let host = Host::builder().server("locking", connect).start().await;
    for is_closed in [false, true] {
        if is_closed {
            host.close();
        }
        let restarted = host.restart("locking").await;
        restarted.expect("the former process has ended");
        assert!(lock.0.exists());
    }
    host.close();
    host.closed().await;
    assert!(!lock.0.exists());
}
