//! Clients and hosts in front of the zoo, in memory and over HTTP, in every revision.

use std::sync::{Arc, Mutex};

use mcp_exact::{
    Client, ClientError, Connect, Host, HostError, RawJson, Revision, Tolerance, revisions,
};
use mcp_exact_bridge::{Bridge, Options};
use mcp_exact_tests_tolerance::entrance::Entrance;
use mcp_exact_tests_tolerance::zoo::{CASES, Case, Peer, REVISIONS, TIDY};
use mcp_exact_tests_tolerance::{http, in_memory};

use super::gateway::client_of;

/// Maximum number of pages of a list, at every entrance.
pub const MAX_PAGES: usize = 3;

/// What a client has delivered, and the names of the rules that it has reported.
pub type Seen = (String, Vec<String>);

/// Returns the revision with this identifier.
pub fn known(revision: &str) -> Revision {
    revisions()
        .find(|known| known.as_str() == revision)
        .expect("a revision")
}

/// Returns the names of definitions, or the reason why there are none.
async fn names(list: mcp_exact::List) -> String {
    match list.all().await {
        Ok(all) => all
            .iter()
            .map(mcp_exact::Definition::name)
            .collect::<Vec<_>>()
            .join(", "),
        Err(error) => shorten(&error),
    }
}

/// Returns an error as the cases write it.
fn shorten(error: &ClientError) -> String {
    let text = match error {
        ClientError::Server(error) => error.message().to_owned(),
        error => error.to_string(),
    };
    let known = ["the answer is not JSON"];
    let text = known
        .into_iter()
        .find(|known| text.contains(known))
        .map_or(text.clone(), str::to_owned);
    format!("error: {text}")
}

/// Does what the case is about; `prefix` is that of the server's tools and prompts.
pub async fn use_method(client: &Client, method: &str, prefix: &str) -> String {
    let text = |result: Result<String, ClientError>| result.unwrap_or_else(|error| shorten(&error));
    match method {
        "tools/list" => names(client.tools()).await,
        "prompts/list" => names(client.prompts()).await,
        "resources/list" => names(client.resources()).await,
        "resources/templates/list" => names(client.resource_templates()).await,
        "tools/call" => text(
            client
                .call_tool(&format!("{prefix}echo"), &())
                .await
                .map(|output| output.text()),
        ),
        "prompts/get" => text(
            client
                .prompt(
                    &format!("{prefix}greet"),
                    std::iter::empty::<(&str, &str)>(),
                )
                .await
                .map(|output| output.text()),
        ),
        "resources/read" => text(client.read("zoo://a").await.map(|output| output.text())),
        "initialize" => client.capabilities().text().to_owned(),
        method => panic!("no use of {method}"),
    }
}

/// Connects, does what the case is about, and returns what was seen.
pub async fn observe(connect: Connect, method: &str) -> Seen {
    observe_with(connect, method, "").await
}

/// Does what [`observe`] does, with tools and prompts that have a prefix.
pub async fn observe_with(connect: Connect, method: &str, prefix: &str) -> Seen {
    let rules = Arc::new(Mutex::new(Vec::new()));
    let reported = Arc::clone(&rules);
    let connect = connect.max_pages(MAX_PAGES).on_repair(move |repaired| {
        let name = repaired.repair.rule.name().to_owned();
        reported.lock().expect("a lock").push(name);
    });
    let delivered = match connect.await {
        Ok(client) => use_method(&client, method, prefix).await,
        Err(error) => shorten(&error),
    };
    let rules = std::mem::take(&mut *rules.lock().expect("a lock"));
    (delivered, rules)
}

/// Returns what a client of 2025-11-25 reports of a case: a line for each repair.
pub async fn reports(case: &Case) -> Vec<String> {
    let revision = "2025-11-25";
    let lines = Arc::new(Mutex::new(Vec::new()));
    let reported = Arc::clone(&lines);
    let connect = Client::over(in_memory(&Peer::new(*case, revision))).revision(known(revision));
    let connect = connect.max_pages(MAX_PAGES).on_repair(move |repaired| {
        reported.lock().expect("a lock").push(repaired.to_string());
    });
    let client = connect.await.expect(case.name);
    use_method(&client, case.method, "").await;
    std::mem::take(&mut *lines.lock().expect("a lock"))
}

/// Returns the cases of an entrance in each revision.
fn cases(entrance: Entrance) -> impl Iterator<Item = (&'static str, Case)> {
    let of = move |revision: &'static str| {
        let cases = entrance.cases().filter(move |case| case.is_of(revision));
        cases.map(move |case| (revision, *case))
    };
    REVISIONS.into_iter().flat_map(of)
}

/// Returns the rules of a case in a revision.
pub fn rules(case: &Case, revision: &str) -> Vec<String> {
    let has_batches = revision == "2025-03-26";
    let rules = case
        .rules
        .iter()
        .filter(|rule| !(has_batches && **rule == "array-of-one"));
    rules.map(|rule| (*rule).to_owned()).collect()
}

/// Runs each case of an entrance against a client, which `connect` creates.
async fn check_all<F>(entrance: Entrance, revisions: &[&str], connect: impl Fn(Peer, Revision) -> F)
where
    F: Future<Output = Connect>,
{
    let mut wrong = Vec::new();
    let cases = cases(entrance).filter(|(revision, _)| revisions.contains(revision));
    for (revision, case) in cases {
        let peer = Peer::new(case, revision);
        let seen = observe(connect(peer.clone(), known(revision)).await, case.method).await;
        let expected = (case.delivers.to_owned(), rules(&case, revision));
        if seen != expected {
            wrong.push(format!(
                "{revision} {}:\n  {expected:?}\n  {seen:?}",
                case.name
            ));
        }
        assert!(
            peer.asked() <= 3,
            "{} was asked {} times",
            case.name,
            peer.asked()
        );
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[tokio::test]
async fn clients_in_memory() {
    check_all(Entrance::Client, &REVISIONS, |peer, revision| async move {
        Client::over(in_memory(&peer)).revision(revision)
    })
    .await;
}

#[tokio::test]
async fn clients_over_http() {
    check_all(
        Entrance::ClientOverHttp,
        &["2025-06-18", "2025-11-25", "2026-07-28"],
        |peer, revision| async move {
            let url = http::serve(&peer).await.expect("a port");
            Client::connect(&url).revision(revision)
        },
    )
    .await;
}

/// Cases whose answers a strict client does not take for answers, so that it would wait for the timeout.
const UNANSWERED: [&str; 7] = [
    "null as a result",
    "[] as a result",
    "id as text",
    "error with its id as text",
    "byte order mark",
    "NaN in a result",
    "a byte that is not UTF-8",
];

/// Cases whose faults are in schemas of tools, which decoding keeps as they are.
pub const SCHEMAS: [&str; 5] = [
    "tool with an empty schema",
    "[] as the properties of a schema",
    "null members of a schema",
    "schema without a type",
    "{} as the required members of a schema",
];

/// The schemas of tools that a host hands to its model are mended, in front of a client and behind the gateway; a strict client
/// delivers them as they were sent.
#[tokio::test]
async fn schemas_are_mended() {
    let schema = async |connect: Connect| {
        let tools = connect.await.expect("a client").tools().all().await;
        let tools = tools.expect("a list");
        tools[0]
            .input_schema()
            .map(|schema| schema.text().to_owned())
    };
    for (name, expected) in SCHEMAS.into_iter().zip([
        r#"{"type":"object"}"#,
        r#"{"type":"object","properties":{}}"#,
        r#"{"type":"object"}"#,
        r#"{"type":"object","properties":{"x":{}}}"#,
        r#"{"type":"object"}"#,
    ]) {
        let case = CASES.iter().find(|case| case.name == name).expect(name);
        for revision in REVISIONS.into_iter().filter(|id| case.is_of(id)) {
            let peer = Peer::new(*case, revision);
            let client = || Client::over(in_memory(&peer)).revision(known(revision));
            assert_eq!(
                schema(client()).await.as_deref(),
                Some(expected),
                "{name} {revision}"
            );
            let strict = schema(client().tolerance(Tolerance::Strict)).await;
            assert!(
                case.sends
                    .contains(&format!(r#""inputSchema":{}}}"#, strict.expect("a schema")))
            );
            for asking in REVISIONS {
                let bridge = Bridge::new(peer.clone(), Options::default())
                    .await
                    .expect(name);
                let client = client_of(&bridge)
                    .revision(known(asking))
                    .tolerance(Tolerance::Strict);
                let found = schema(client).await;
                assert_eq!(
                    found.as_deref(),
                    Some(expected),
                    "{name} {revision} for {asking}"
                );
            }
        }
    }
}

/// What the table calls a fault is one: with `Strict`, nothing is repaired, and older revisions than that of the application
/// deliver something else.
#[tokio::test]
async fn strict_clients_refuse() {
    let mut same = Vec::new();
    for (revision, case) in
        cases(Entrance::Client).filter(|(_, case)| !UNANSWERED.contains(&case.name))
    {
        if SCHEMAS.contains(&case.name) {
            continue;
        }
        if case.rules == ["array-of-one"] {
            continue;
        }
        let connect = Client::over(in_memory(&Peer::new(case, revision)));
        let connect = connect
            .revision(known(revision))
            .tolerance(Tolerance::Strict)
            .max_pages(5);
        let (delivered, reported) = observe(connect, case.method).await;
        assert_eq!(reported, Vec::<String>::new(), "{}", case.name);
        if revision < "2026" && delivered == case.delivers {
            same.push(format!("{revision} {}", case.name));
        }
    }
    assert_eq!(same, Vec::<String>::new());
}

/// One odd server of a host costs nothing but what is odd.
#[tokio::test]
async fn hosts_show_the_rest() {
    let connect = |case, revision| {
        let client = Client::over(in_memory(&Peer::new(case, revision)));
        client.revision(known(revision)).max_pages(MAX_PAGES)
    };
    for case in Entrance::Host.cases() {
        let host = Host::builder()
            .server("odd", connect(*case, "2025-06-18"))
            .server("tidy", connect(TIDY, "2025-11-25"))
            .start()
            .await;
        let tools = host.tools().await;
        let tools = tools.tools.iter();
        let of_odd = tools.clone().filter(|tool| tool.server == "odd");
        let names: Vec<String> = of_odd.map(|tool| tool.definition.name()).collect();
        let delivered = match case.method {
            "tools/list" => names.join(", "),
            "tools/call" => match host.call("odd__echo", &()).await {
                Ok(output) => output.text(),
                Err(HostError::Client { error, .. }) => shorten(&error),
                Err(error) => error.to_string(),
            },
            _ => host
                .client("odd")
                .map(|client| client.capabilities().text().to_owned())
                .unwrap_or_default(),
        };
        // Of tools of one name, a host has the first one.
        let expected = match case.delivers {
            "a, a, a" => "a",
            delivers => delivers,
        };
        assert_eq!(delivered, expected, "{}", case.name);
        let is_tidy = |tool: &mcp_exact::HostTool| tool.name() == "tidy__echo";
        assert!(tools.clone().any(is_tidy), "{}", case.name);
        host.close();
    }
}

/// Servers that declare nothing, or prompts alone, and have tools.
pub const FORGETFUL: [Case; 2] = [
    Case {
        method: "initialize",
        sends: r#"{"jsonrpc":"2.0","id":$ID,"result":{$HANDSHAKE"capabilities":{},"serverInfo":{"name":"zoo","version":"1"}}}"#,
        ..TIDY
    },
    Case {
        method: "initialize",
        sends: r#"{"jsonrpc":"2.0","id":$ID,"result":{$HANDSHAKE"capabilities":{"prompts":{}},"serverInfo":{"name":"zoo","version":"1"}}}"#,
        ..TIDY
    },
];

/// Whoever asks a server for what it has forgotten to declare gets it, and reads in a report what was missing. "Both parties MUST
/// [...] only use capabilities that were successfully negotiated" (2025-11-25, `basic/lifecycle`, "Operation"): a strict client does
/// not ask.
#[tokio::test]
async fn undeclared_capabilities_are_used() {
    for case in FORGETFUL {
        for revision in REVISIONS {
            let connect = || Client::over(in_memory(&Peer::new(case, revision)));
            let connect = || connect().revision(known(revision));
            for (method, delivers) in [
                ("tools/list", "echo"),
                ("tools/call", "done"),
                ("resources/read", "a"),
            ] {
                let seen = observe(connect(), method).await;
                let rules = vec!["undeclared-capability".to_owned()];
                assert_eq!(seen, (delivers.to_owned(), rules), "{revision} {method}");
                let strict = connect().tolerance(Tolerance::Strict);
                let (delivered, rules) = observe(strict, method).await;
                assert!(delivered.contains("was not declared"), "{delivered}");
                assert_eq!(rules, Vec::<String>::new());
            }
        }
    }
}

/// A host asks a server that declares nothing for its tools, but not one that declares other lists. Both are called.
#[tokio::test]
async fn hosts_ask_servers_that_declare_nothing() {
    for (case, listed) in FORGETFUL.into_iter().zip([1, 0]) {
        let connect = Client::over(in_memory(&Peer::new(case, "2025-11-25")));
        let host = Host::builder().server("odd", connect).start().await;
        let tools = host.tools().await;
        assert_eq!((tools.tools.len(), tools.failures.len()), (listed, 0));
        let output = host.call("odd__echo", &()).await.expect("a result");
        assert_eq!(output.text(), "done");
    }
}

/// A text in structured content that no Unicode text can be is readable.
#[tokio::test]
async fn lone_surrogates_of_untyped_values() {
    let sends = r#"{"jsonrpc":"2.0","id":$ID,"result":{$NEW"content":[],"structuredContent":{"a":"\ud83d"}}}"#;
    for revision in ["2025-06-18", "2026-07-28"] {
        let case = Case {
            sends,
            method: "tools/call",
            ..TIDY
        };
        let client = Client::over(in_memory(&Peer::new(case, revision)));
        let client = client.revision(known(revision)).await.expect("a client");
        let output = client.call_tool("echo", &()).await.expect("a result");
        let structured = output
            .structured()
            .as_ref()
            .map(RawJson::text)
            .map(str::to_owned);
        assert_eq!(structured.as_deref(), Some("{\"a\":\"\\ufffd\"}"));
        assert_eq!(client.repairs(), 1);
    }
}
