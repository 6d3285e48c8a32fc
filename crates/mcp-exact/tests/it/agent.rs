//! The example `agent`, with a scripted model and servers in memory.

#[path = "../../examples/agent.rs"]
#[allow(dead_code, reason = "the test has a main function of its own")]
mod example;

use std::sync::Mutex;

use mcp_exact::apps::Visibility;
use mcp_exact::{Client, Error, Host, Server, Tool};
use serde_json::{Value, json};

use example::{ChatModel, Message, ToolCall, Turn, chat};

/// Model that calls tools in the order of its script, and then says what it has read.
struct Scripted {
    /// Names of the tools that are left.
    script: Mutex<Vec<&'static str>>,
    /// Names of the tools that it was offered.
    offered: Mutex<Vec<String>>,
}

impl ChatModel for Scripted {
    async fn turn(&self, conversation: &[Message], tools: &[Value]) -> mcp_exact::Result<Turn> {
        let names = tools.iter().map(|tool| tool["name"].to_string());
        *self.offered.lock().expect("no panic") = names.collect();
        if let Some(name) = self.script.lock().expect("no panic").pop() {
            return Ok(Turn::Call(vec![ToolCall {
                name: name.to_owned(),
                arguments: json!({}),
            }]));
        }
        let read = conversation.iter().map(|message| match message {
            Message::User(text) => text.clone(),
            Message::Tool(call, result) => format!("{}: {result}", call.name),
        });
        Ok(Turn::Say(read.collect::<Vec<_>>().join("\n")))
    }
}

/// Tools of all servers are offered, results and errors reach the model, and the answer ends the loop.
#[tokio::test]
async fn agents_use_tools_of_several_servers() {
    let notes = Server::builder("notes", "1").tool("find", || async { "a note" });
    let faulty = Server::builder("faulty", "1")
        .tool("work", || async { Err::<String, _>(Error::msg("no disk")) })
        .tool(Tool::new("press").visibility([Visibility::App]), || async {
            "pressed"
        });
    let connect =
        |builder: mcp_exact::ServerBuilder| Client::in_memory(&builder.build().expect("a server"));
    let host = Host::builder()
        .server("notes", connect(notes))
        .server("faulty", connect(faulty))
        .start()
        .await;
    let model = Scripted {
        script: Mutex::new(vec![
            "faulty__press",
            "missing__tool",
            "faulty__work",
            "notes__find",
        ]),
        offered: Mutex::default(),
    };
    let text = chat(&host, &model, "Find it.".to_owned()).await;
    let text = text.expect("an answer");
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[..2], ["Find it.", "notes__find: a note"], "{text}");
    assert_eq!(lines[2], "faulty__work: the tool failed: no disk");
    assert!(lines[3].starts_with("missing__tool: error: "), "{text}");
    assert!(
        lines[4].starts_with("faulty__press: error: there is no tool"),
        "{text}"
    );
    let offered = model.offered.lock().expect("no panic").clone();
    assert_eq!(offered, [r#""faulty__work""#, r#""notes__find""#]);
}
