//! What clients answer to the requests of a server: with `null` for what is absent, and in arrays.

use std::sync::{Arc, Mutex};

use mcp_exact::{Content, Cx, Elicited, Error, RepairedMessage, Sample, Server, schemars};
use mcp_exact_tests_tolerance::RawConnection;
use mcp_exact_tests_tolerance::clients::{ANSWERS, AnswerCase, fill, has_handshake};
use mcp_exact_tests_tolerance::zoo::REVISIONS;
use serde_json::{Value, json};

/// Capabilities of a client that answers every request.
const CAPABILITIES: &str = r#"{"roots":{},"sampling":{},"elicitation":{}}"#;

/// Form of the server.
#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Word {
    /// Any word.
    word: String,
}

/// Creates a server whose tools are named after the methods of its requests; `reported` receives the names of rules.
fn asking_server(reported: Arc<Mutex<Vec<String>>>) -> Server {
    Server::builder("zoo", "1")
        .on_repair(move |repaired: &RepairedMessage| {
            let rule = repaired.repair.rule.name().to_owned();
            reported.lock().expect("a lock").push(rule);
        })
        .tool("roots.list", |cx: Cx| async move {
            let roots = cx.roots().await?;
            let uris: Vec<String> = roots.into_iter().map(|root| root.uri).collect();
            Ok::<_, Error>(uris.join(", "))
        })
        .tool("sampling.createMessage", |cx: Cx| async move {
            let sample = Sample::new(Content::text("Hello?"), 10);
            Ok::<_, Error>(cx.sample(&sample).await?.text())
        })
        .tool("elicitation.create", |cx: Cx| async move {
            Ok::<_, Error>(match cx.elicit::<Word>("A word?").await? {
                Elicited::Accepted(form) => form.word,
                Elicited::Declined => "declined".to_owned(),
                Elicited::Cancelled => "cancelled".to_owned(),
            })
        })
        .build()
        .expect("a server")
}

/// Client that calls one tool and answers what the server asks.
struct Client {
    connection: RawConnection,
    revision: &'static str,
}

impl Client {
    /// Connects to a server.
    async fn connect(server: Server, revision: &'static str) -> Self {
        let (remote, connection) = RawConnection::pair();
        tokio::spawn(async move { server.serve(remote).await });
        let mut client = Self {
            connection,
            revision,
        };
        if has_handshake(revision) {
            let params = json!({
                "protocolVersion": revision,
                "capabilities": parse(CAPABILITIES),
                "clientInfo": { "name": "c", "version": "1" },
            });
            client
                .send(
                    &json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params }),
                )
                .await;
            client.receive().await;
            client
                .send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }))
                .await;
        }
        client
    }

    async fn send(&mut self, message: &Value) {
        self.connection.send(message.to_string().as_bytes()).await;
    }

    async fn receive(&mut self) -> Value {
        parse(&self.connection.receive().await.expect("a message"))
    }

    /// Calls the tool of a method, with members that only retries have.
    async fn call(&mut self, method: &str, more: Value) {
        let params = fill(r#"{$META"arguments":{}}"#, self.revision);
        let mut params = parse(&params.replace(
            "clientCapabilities\":{}",
            &format!("clientCapabilities\":{CAPABILITIES}"),
        ));
        params["name"] = json!(method.replace('/', "."));
        for (name, value) in more.as_object().expect("an object") {
            params[name] = value.clone();
        }
        self.send(&json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": params }))
            .await;
    }

    /// Calls the tool of a case, answers its request, and returns the text of the result.
    async fn answer(&mut self, case: &AnswerCase) -> String {
        self.call(case.method, json!({})).await;
        let asked = self.receive().await;
        if has_handshake(self.revision) {
            assert_eq!(asked["method"], case.method, "{asked}");
            let answer =
                json!({ "jsonrpc": "2.0", "id": asked["id"], "result": parse(case.sends) });
            self.send(&answer).await;
        } else {
            let asked = &asked["result"];
            let requests = asked["inputRequests"].as_object().expect("input requests");
            let responses: Value = requests
                .keys()
                .map(|key| (key.clone(), parse(case.sends)))
                .collect();
            let retry =
                json!({ "inputResponses": responses, "requestState": asked["requestState"] });
            self.call(case.method, retry).await;
        }
        let answer = self.receive().await;
        let text = answer["result"]["content"][0]["text"].as_str();
        text.map_or_else(|| answer.to_string(), str::to_owned)
    }
}

fn parse(text: &str) -> Value {
    serde_json::from_str(text).expect("JSON")
}

#[tokio::test]
async fn untidy_answers() {
    for case in ANSWERS {
        for revision in REVISIONS
            .into_iter()
            .filter(|revision| case.since <= *revision)
        {
            let reported = Arc::default();
            let mut client = Client::connect(asking_server(Arc::clone(&reported)), revision).await;
            let text = client.answer(case).await;
            assert_eq!(text, case.reads, "{revision} {}", case.name);
            let reported = reported.lock().expect("a lock").clone();
            let is_reported = reported.iter().any(|rule| rule == case.rule);
            assert!(is_reported, "{revision} {}: {reported:?}", case.name);
        }
    }
}

/// A client of a revision without batches sends no array, not even of one answer: the server refuses it, as before.
#[tokio::test]
async fn arrays_are_refused() {
    let case = &ANSWERS[0];
    for revision in ["2025-06-18", "2025-11-25"] {
        let reported = Arc::default();
        let mut client = Client::connect(asking_server(Arc::clone(&reported)), revision).await;
        client.call(case.method, json!({})).await;
        let asked = client.receive().await;
        let answer = |uri: &str| json!({ "jsonrpc": "2.0", "id": asked["id"], "result": { "roots": [{ "uri": uri }] } });
        client.send(&json!([answer("file:///array")])).await;
        client.send(&answer("file:///tidy")).await;
        let mut result = client.receive().await;
        // Some revisions answer what has no id.
        if result["error"]["code"] == -32600 {
            result = client.receive().await;
        }
        let text = &result["result"]["content"][0]["text"];
        assert_eq!(text, "file:///tidy", "{revision} {result}");
        assert_eq!(*reported.lock().expect("a lock"), Vec::<String>::new());
    }
}
