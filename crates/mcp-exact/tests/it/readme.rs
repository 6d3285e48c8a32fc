//! The server of the README, written with attributes and with closures, behaves the same for clients of every revision,
//! in memory, over stdio and over HTTP.

#[path = "../../examples/notes.rs"]
#[allow(dead_code, reason = "the test has a main function of its own")]
mod notes;
#[path = "../../examples/notes_builder.rs"]
#[allow(dead_code, reason = "the test has a main function of its own")]
mod notes_builder;

use mcp_exact::testing::{every_revision, revisions_from};
use mcp_exact::transport::http::server::HttpListener;
use mcp_exact::{Client, Connect, Form, Server, revisions};

use crate::common::object;

/// Returns the servers that are written with attributes and with closures.
fn servers() -> [(&'static str, Server); 2] {
    [
        ("notes", notes::server().expect("a server")),
        ("notes_builder", notes_builder::server().expect("a server")),
    ]
}

/// Uses all features of the README's server. Elicitation requires 2025-06-18 or later.
async fn use_notes(client: Client) {
    let arguments = object(r#"{"name":"a","text":"hello"}"#);
    let added = client.call_tool("add", &arguments).await.expect("a note");
    assert!(!added.is_error());
    let count: u32 = client.call("count", &()).await.expect("a number");
    assert_eq!(count, 1);
    let note = client.read("note:///a").await.expect("a note");
    assert_eq!(note.text(), "hello");
    let prompt = client.prompt("summarise", [("name", "a")]).await;
    assert_eq!(
        prompt.expect("a prompt").text(),
        "Summarise this note:\nhello"
    );
    let removed = client.call_tool("remove", &object(r#"{"name":"a"}"#)).await;
    let removed = removed.expect("an answer");
    match client.revision().as_str() {
        "2024-11-05" | "2025-03-26" => assert!(removed.is_error(), "nobody can be asked"),
        _ => assert_eq!(removed.text(), "removed: true"),
    }
}

/// Configures a client that accepts every form with `yes`.
fn with_consent(connect: Connect) -> Connect {
    connect.on_elicit(|form: Form| async move { form.accept(&object(r#"{"yes":true}"#)) })
}

/// Both variants of the server list the same definitions.
#[test]
fn closures_and_attributes_build_equal_servers() {
    let [(_, attributes), (_, closures)] = servers();
    for revision in revisions() {
        assert_eq!(
            attributes.advertised_tools(revision),
            closures.advertised_tools(revision)
        );
    }
    assert_eq!(attributes.capabilities(), closures.capabilities());
}

/// "The example of README […]: at most 45 lines with macros".
#[test]
fn readme_example_stays_short() {
    let text = include_str!("../../README.md");
    let (_, example) = text.split_once("```rust,no_run\n").expect("an example");
    let (example, _) = example.split_once("```").expect("its end");
    let kinds = [
        "#[tool",
        "#[resource",
        "#[prompt",
        "cx.progress",
        "cx.elicit",
    ];
    assert!(kinds.iter().all(|kind| example.contains(kind)));
    assert!(example.lines().count() <= 45, "{example}");
}

#[tokio::test]
async fn readme_example_works_in_memory() {
    for (_, server) in servers() {
        every_revision(|| with_consent(Client::in_memory(&server)), use_notes).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn readme_example_works_over_http() {
    for (_, server) in servers() {
        let listener = HttpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let service = server.http_at("/mcp");
        let serving = tokio::spawn(listener.serve(service, std::future::pending()));
        let url = format!("http://{address}/mcp");
        revisions_from(
            "2025-03-26",
            || with_consent(Client::connect(&url)),
            use_notes,
        )
        .await;
        let oldest = revisions().next().expect("a revision");
        let connect = with_consent(Client::connect(&format!("http://{address}/mcp/sse")));
        let client = connect.revision(oldest).await.expect("a client");
        use_notes(client).await;
        serving.abort();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn readme_example_works_over_stdio() {
    let test = std::env::current_exe().expect("a path");
    let target = test.ancestors().nth(2).expect("a target directory");
    for (name, _) in servers() {
        let name = format!("{name}{}", std::env::consts::EXE_SUFFIX);
        let program = target.join("examples").join(name);
        let connect = || with_consent(Client::command::<&str>(&program, []));
        every_revision(connect, use_notes).await;
    }
}
