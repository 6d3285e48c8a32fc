//! A server in front of untidy clients, in every revision with a handshake and in 2026-07-28.

use std::sync::{Arc, Mutex};

use mcp_exact::{Server, Tolerance, Tool};
use mcp_exact_tests_tolerance::RawConnection;
use mcp_exact_tests_tolerance::clients::{
    CLIENTS, ClientCase, HANDSHAKE, Phase, fill, has_handshake,
};

/// Serves a client; returns its end of the connection.
fn serve(tolerance: Tolerance) -> RawConnection {
    serve_reporting(tolerance, Arc::default())
}

/// Serves a client; `reported` receives the names of rules.
fn serve_reporting(tolerance: Tolerance, reported: Arc<Mutex<Vec<String>>>) -> RawConnection {
    let server = Server::builder("zoo", "1")
        .tolerance(tolerance)
        .on_repair(move |repaired| {
            let rule = repaired.repair.rule.name().to_owned();
            reported.lock().expect("a lock").push(rule);
        })
        .tool(Tool::new("echo"), || async { "done" })
        .build()
        .expect("a server");
    let (remote, client) = RawConnection::pair();
    tokio::spawn(async move { server.serve(remote).await });
    client
}

async fn exchange(client: &mut RawConnection, message: &str) -> String {
    client.send(message.as_bytes()).await;
    client.receive().await.expect("an answer")
}

/// Sends a message and a tidy request after it; returns what is answered before that request. Some revisions answer
/// nothing that has no id.
async fn answers(client: &mut RawConnection, revision: &str, message: &str) -> String {
    client.send(message.as_bytes()).await;
    let last = r#"{"jsonrpc":"2.0","id":99,"method":"tools/list","params":{$META"x":1}}"#;
    client.send(fill(last, revision).as_bytes()).await;
    let mut all = String::new();
    loop {
        let answer = client.receive().await.expect("an answer");
        if answer.contains("\"id\":99") {
            return all;
        }
        all.push_str(&answer);
    }
}

/// Opens a session, if the revision has a handshake.
async fn open(client: &mut RawConnection, revision: &str) {
    if has_handshake(revision) {
        let answer = exchange(client, &fill(HANDSHAKE, revision)).await;
        assert!(answer.contains(revision), "{answer}");
        client
            .send(br#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#)
            .await;
    }
}

/// Does what a client of a case does on a new connection; returns the answer.
pub async fn answer_to(client: &mut RawConnection, case: &ClientCase, revision: &str) -> String {
    let sends = fill(case.sends, revision);
    if case.phase == Phase::Handshake {
        return exchange(client, &sends).await;
    }
    open(client, revision).await;
    answers(client, revision, &sends).await
}

#[tokio::test]
async fn untidy_clients() {
    for case in CLIENTS {
        for revision in case.revisions() {
            for tolerance in [Tolerance::Lenient, Tolerance::Strict] {
                let reported = Arc::default();
                let mut client = serve_reporting(tolerance, Arc::clone(&reported));
                let answer = answer_to(&mut client, case, revision).await;
                let is_served = answer.contains(case.answer);
                let is_strict = tolerance == Tolerance::Strict && !PASSED_ON.contains(&case.name);
                assert_eq!(is_served, !is_strict, "{revision} {}: {answer}", case.name);
                let reported = reported.lock().expect("a lock").clone();
                let is_reported = reported.iter().any(|rule| rule == case.rule);
                let is_lenient = tolerance == Tolerance::Lenient;
                assert_eq!(
                    is_reported, is_lenient,
                    "{revision} {}: {reported:?}",
                    case.name
                );
            }
        }
    }
}

/// Cases that a strict server serves, too: it does not read these members.
const PASSED_ON: [&str; 2] = ["null `_meta`", "null progress token"];

/// Two meanings are never one.
#[tokio::test]
async fn ambiguity_is_refused() {
    for sends in [
        r#"{"jsonrpc":"2.0","id":7,"id":8,"method":"ping"}"#,
        r#"{"jsonrpc":"2.0","id":7,"method":"ping","params":null,"params":{}}"#,
        r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"echo","arguments":"{}"}}"#,
    ] {
        let mut client = serve(Tolerance::Lenient);
        open(&mut client, "2025-06-18").await;
        let answer = answers(&mut client, "2025-06-18", sends).await;
        assert!(!answer.contains("\"result\""), "{sends}: {answer}");
    }
}
