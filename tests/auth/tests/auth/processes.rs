//! Fifty processes share one token store: every process finds the token expired, one process refreshes the token, and
//! every process uses the new token.

use std::process::Stdio;

use mcp_exact_auth::client::{FileStore, OAuth};
use mcp_exact_tests_auth::authority::{Authority, Deviations, RedirectAgent};
use tokio::process::Command;

use crate::client::{oauth_client, send_call};

/// Number of processes.
const PROCESS_COUNT: usize = 50;

/// An expired token is refreshed once, and the calls of all processes succeed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_process_refreshes_for_all() {
    let authority = Authority::start(Deviations::default()).await;
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("tokens");
    let oauth = OAuth::new("test")
        .store(FileStore::new(&path))
        .user_agent(RedirectAgent::default());
    let first = oauth_client(&authority, oauth);
    send_call(&first, &authority.endpoint())
        .await
        .expect("authorized");
    authority.expire_tokens();
    let children = (0..PROCESS_COUNT).map(|_| {
        Command::new(env!("CARGO_BIN_EXE_one_call"))
            .arg(authority.endpoint())
            .arg(&path)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("it starts")
    });
    for child in children.collect::<Vec<_>>() {
        let output = child.wait_with_output().await.expect("it ends");
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(String::from_utf8_lossy(&output.stdout), "200\n", "{errors}");
    }
    // The two requests are the code exchange and one refresh.
    assert_eq!(authority.server.count("/token"), 2);
    assert_eq!(authority.server.count("/authorize"), 1);
    assert!(!authority.is_revoked());
}
