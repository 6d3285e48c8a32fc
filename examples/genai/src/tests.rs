//! The agent with a stand-in for a provider, which answers like the chat completions of OpenAI.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::thread::JoinHandle;

use genai::adapter::AdapterKind;
use genai::resolver::{AuthData, Endpoint, ServiceTargetResolver};
use genai::{Client, ModelIden, ServiceTarget};
use mcp_exact::{Error, Host, Server};
use serde_json::{Value, json};

/// Answers one request for each of `turns`, the messages of the model, and returns the requests.
fn provider(turns: Vec<Value>) -> (String, JoinHandle<Vec<Value>>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}/v1/", listener.local_addr().expect("an address"));
    let serving = std::thread::spawn(move || {
        let answer = |message: Value| {
            let (stream, _) = listener.accept().expect("a connection");
            let mut reader = BufReader::new(stream);
            let mut length = 0;
            loop {
                let mut line = String::new();
                reader.read_line(&mut line).expect("a header");
                let line = line.trim().to_ascii_lowercase();
                if let Some(value) = line.strip_prefix("content-length:") {
                    length = value.trim().parse().expect("a length");
                }
                if line.is_empty() {
                    break;
                }
            }
            let mut body = vec![0; length];
            reader.read_exact(&mut body).expect("a body");
            let response = json!({
                "id": "1", "object": "chat.completion", "model": "scripted",
                "choices": [{ "index": 0, "message": message, "finish_reason": "stop" }],
                "usage": { "prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2 },
            });
            let response = response.to_string();
            let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close";
            let length = response.len();
            write!(
                reader.get_mut(),
                "{head}\r\ncontent-length: {length}\r\n\r\n{response}"
            )
            .expect("an answer");
            serde_json::from_slice(&body).expect("JSON")
        };
        turns.into_iter().map(answer).collect()
    });
    (url, serving)
}

/// Results and errors of tools reach the model, by the ids of its calls, and its text is the answer.
#[tokio::test]
async fn model_uses_the_tools_of_servers() {
    let notes = Server::builder("notes", "1").tool("find", || async { "a note" });
    let faulty = Server::builder("faulty", "1")
        .tool("work", || async { Err::<String, _>(Error::msg("no disk")) });
    let connect = |builder: mcp_exact::ServerBuilder| {
        mcp_exact::Client::in_memory(&builder.build().expect("a server"))
    };
    let host = Host::builder()
        .server("notes", connect(notes))
        .server("faulty", connect(faulty))
        .start()
        .await;
    let call = |id: &str, name: &str| json!({ "id": id, "type": "function", "function": { "name": name, "arguments": "{}" } });
    let calls = [call("a", "notes__find"), call("b", "faulty__work")];
    let (url, provider) = provider(vec![
        json!({ "role": "assistant", "content": null, "tool_calls": calls }),
        json!({ "role": "assistant", "content": "There is a note." }),
    ]);
    let resolver = ServiceTargetResolver::from_resolver_fn(move |target: ServiceTarget| {
        Ok::<_, genai::resolver::Error>(ServiceTarget {
            endpoint: Endpoint::from_owned(url.clone()),
            auth: AuthData::from_single("key"),
            model: ModelIden::new(AdapterKind::OpenAI, target.model.model_name),
        })
    });
    let client = Client::builder().with_service_target_resolver(resolver);
    let client = client.build().expect("a client");
    let answer = super::answer(&client, "scripted", &host, "What is there?").await;
    assert_eq!(answer.expect("an answer"), "There is a note.");

    let requests = provider.join().expect("two requests");
    let offered = requests[0]["tools"].as_array().expect("tools").iter();
    let offered: Vec<_> = offered
        .map(|tool| tool["function"]["name"].clone())
        .collect();
    assert_eq!(offered, ["faulty__work", "notes__find"]);
    let last = requests[1]["messages"].as_array().expect("messages").iter();
    let results = last.filter(|message| message["role"] == "tool");
    let results: Vec<_> = results
        .map(|message| (message["tool_call_id"].clone(), message["content"].clone()))
        .collect();
    let expected = [("a", "a note"), ("b", "the tool failed: no disk")];
    assert_eq!(results, expected.map(|(id, text)| (json!(id), json!(text))));
}
