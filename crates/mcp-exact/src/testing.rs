//! Functions for tests of servers: a test can run with a client of every revision, and sessions can be recorded and
//! replayed.
//!
//! ```
//! # use mcp_exact::{Client, Server, testing::every_revision};
//! # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
//! let server = Server::builder("demo", "1.0.0").tool("hello", || async { "Hello!" }).build()?;
//! every_revision(
//!     || Client::in_memory(&server),
//!     |client| async move {
//!         let text: String = client.call("hello", &()).await.expect("a greeting");
//!         assert_eq!(text, "Hello!");
//!     },
//! )
//! .await;
//! # Ok::<(), mcp_exact::BuildError>(())
//! # })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod recording;

pub use recording::{Mismatch, Recorder, Recording, record};

use crate::client::{Client, Connect};
use crate::protocol::{Revision, revisions};

/// Runs a test with a client of each revision that is compiled in, oldest first.
///
/// # Panics
/// If the test panics or a connection fails, with the revision in the message.
pub async fn every_revision<C, F, Fut>(connect: C, test: F)
where
    C: Fn() -> Connect,
    F: Fn(Client) -> Fut,
    Fut: Future<Output = ()> + Send + 'static,
{
    for revision in revisions() {
        run_for_revision(revision, connect(), &test).await;
    }
}

/// Runs a test with a client of each revision from `oldest` on.
///
/// # Panics
/// As [`every_revision`].
pub async fn revisions_from<C, F, Fut>(oldest: &str, connect: C, test: F)
where
    C: Fn() -> Connect,
    F: Fn(Client) -> Fut,
    Fut: Future<Output = ()> + Send + 'static,
{
    let mut known = false;
    for revision in revisions() {
        known |= revision.as_str() == oldest;
        if known {
            run_for_revision(revision, connect(), &test).await;
        }
    }
    assert!(
        known,
        "revision {oldest} is not compiled in; name one of `mcp_exact::revisions()`"
    );
}

/// Runs a test with a client of one revision.
async fn run_for_revision<F, Fut>(revision: Revision, connect: Connect, test: &F)
where
    F: Fn(Client) -> Fut,
    Fut: Future<Output = ()> + Send + 'static,
{
    let client = match connect.revision(revision).await {
        Ok(client) => client,
        Err(error) => panic!("revision {revision}: no connection: {error}"),
    };
    // The test runs in a separate task, so that a panic can be reported together with the revision.
    if let Err(error) = tokio::spawn(test(client)).await {
        let message = match error.try_into_panic() {
            Ok(panic) => crate::panics::panic_message(panic),
            Err(error) => error.to_string(),
        };
        panic!("revision {revision}: {message}");
    }
}
