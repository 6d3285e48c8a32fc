//! A server in front of untidy clients, in every revision with a handshake and in 2026-07-28.

use mcp_exact::{Server, Tolerance, Tool};
use mcp_exact_tests_tolerance::RawConnection;
use mcp_exact_tests_tolerance::zoo::REVISIONS;

/// What a client sends after the handshake, with a part of the answer, and whether a strict server refuses it. `$META` is
/// the member `_meta` that requests of 2026-07-28 have, with a comma behind it.
const CASES: &[(&str, &str)] = &[
    (
        r#"{"jsonrpc":"2.0","id":7,"method":"tools/list","params":{$META"cursor":null}}"#,
        "\"echo\"",
    ),
    (
        r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{$META"name":"echo","arguments":null}}"#,
        "\"done\"",
    ),
    (
        r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{$META"name":"echo","arguments":[]}}"#,
        "\"done\"",
    ),
    (
        "\u{feff}{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"tools/list\",\"params\":{$META\"x\":1}}",
        "\"echo\"",
    ),
];

/// Requests of revisions with a handshake.
const WITH_HANDSHAKE: &[(&str, &str)] = &[
    (
        r#"{"jsonrpc":"2.0","id":7,"method":"ping","params":null}"#,
        "\"result\":{}",
    ),
    (
        r#"{"jsonrpc":"2.0","id":7,"method":"ping","params":[]}"#,
        "\"result\":{}",
    ),
    (
        r#"{"jsonrpc":"2.0","id":7,"method":"tools/list","params":null}"#,
        "\"echo\"",
    ),
    (
        r#"{"jsonrpc":"2.0","id":7,"method":"tools/list","params":{"_meta":null}}"#,
        "\"echo\"",
    ),
    (
        r#"{"jsonrpc":"2.0","id":7,"method":"tools/list","params":{"_meta":{"progressToken":null}}}"#,
        "\"echo\"",
    ),
];

/// Handshakes.
const HANDSHAKES: &[&str] = &[
    r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"$REV","capabilities":null,"clientInfo":{"name":"c","version":"1"}}}"#,
    r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"$REV","capabilities":[],"clientInfo":{"name":"c","version":"1"}}}"#,
    r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"$REV","capabilities":{"roots":null,"sampling":true},"clientInfo":{"name":"c","version":"1"}}}"#,
    r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"$REV","clientInfo":{"name":"c"}}}"#,
];

/// A tidy handshake.
const TIDY: &str = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"$REV","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}"#;

/// Members of 2026-07-28.
const META: &str = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"c","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}},"#;

/// Serves a client; returns its end of the connection.
fn serve(tolerance: Tolerance) -> RawConnection {
    let server = Server::builder("zoo", "1")
        .tolerance(tolerance)
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
    let meta = if revision < "2026" { "" } else { META };
    let last =
        format!(r#"{{"jsonrpc":"2.0","id":99,"method":"tools/list","params":{{{meta}"x":1}}}}"#);
    client.send(last.as_bytes()).await;
    let mut all = String::new();
    loop {
        let answer = client.receive().await.expect("an answer");
        if answer.contains("\"id\":99") {
            return all;
        }
        all.push_str(&answer);
    }
}

/// Opens a connection; with a handshake if the revision has one.
async fn connect(revision: &str, tolerance: Tolerance) -> RawConnection {
    let mut client = serve(tolerance);
    if revision < "2026" {
        let answer = exchange(&mut client, &TIDY.replace("$REV", revision)).await;
        assert!(answer.contains(revision), "{answer}");
        client
            .send(br#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#)
            .await;
    }
    client
}

#[tokio::test]
async fn untidy_requests() {
    for revision in REVISIONS {
        let has_handshake = revision < "2026";
        let more = WITH_HANDSHAKE.iter().filter(|_| has_handshake);
        for (sends, part) in CASES.iter().chain(more) {
            let sends = sends.replace("$META", if has_handshake { "" } else { META });
            for tolerance in [Tolerance::Lenient, Tolerance::Strict] {
                let mut client = connect(revision, tolerance).await;
                let answer = answers(&mut client, revision, &sends).await;
                let is_served = answer.contains(part);
                if tolerance == Tolerance::Lenient {
                    assert!(is_served, "{revision} {sends}: {answer}");
                } else if sends.contains("params\":null") || sends.contains("arguments\":null") {
                    assert!(!is_served, "{revision} {sends}: {answer}");
                }
            }
        }
    }
}

#[tokio::test]
async fn untidy_handshakes() {
    for revision in REVISIONS.into_iter().filter(|revision| *revision < "2026") {
        for sends in HANDSHAKES {
            let sends = sends.replace("$REV", revision);
            let answer = exchange(&mut serve(Tolerance::Lenient), &sends).await;
            assert!(answer.contains("\"serverInfo\""), "{sends}: {answer}");
            let answer = exchange(&mut serve(Tolerance::Strict), &sends).await;
            assert!(answer.contains("-32602"), "{sends}: {answer}");
        }
    }
}

/// Two meanings are never one.
#[tokio::test]
async fn ambiguity_is_refused() {
    for sends in [
        r#"{"jsonrpc":"2.0","id":7,"id":8,"method":"ping"}"#,
        r#"{"jsonrpc":"2.0","id":7,"method":"ping","params":null,"params":{}}"#,
        r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"echo","arguments":"{}"}}"#,
    ] {
        let mut client = connect("2025-06-18", Tolerance::Lenient).await;
        let answer = answers(&mut client, "2025-06-18", sends).await;
        assert!(!answer.contains("\"result\""), "{sends}: {answer}");
    }
}
