//! Measures what a model is shown of the tools of real servers behind the gateway, with and without its search: bytes and tokens, and
//! whether the wanted tool is among the first five for questions that were written before the search.
//!
//! Argument: the folder in which the servers of `servers/package.json` are installed.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Context;
use mcp_exact::Client;
use mcp_exact::transport::{ConnectionOptions, ServerCommand, memory_pair, serve};
use mcp_exact_bridge::{Bridge, Options, ToolSearch, Upstream};
use serde::Deserialize;
use serde_json::{Value, json};

/// Number of tools in an answer of the search.
const RESULTS: usize = 5;

/// Servers by name: the program in its package, and its arguments.
const SERVERS: [(&str, &str, &[&str]); 4] = [
    ("everything", "server-everything/dist/index.js", &["stdio"]),
    ("filesystem", "server-filesystem/dist/index.js", &["."]),
    ("github", "server-github/dist/index.js", &[]),
    ("memory", "server-memory/dist/index.js", &[]),
];

#[derive(Deserialize)]
struct Questions {
    question: Vec<Question>,
}

/// What a person asks for, and the tools that do it, as `server tool`.
#[derive(Deserialize)]
struct Question {
    ask: String,
    want: Vec<String>,
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let folder = std::env::args_os().nth(1).map(PathBuf::from);
    let folder = folder.context("give the folder in which the servers are installed")?;
    let questions: Questions = toml::from_str(include_str!("../questions.toml"))?;
    let tokens = tiktoken_rs::o200k_base()?;
    let size = |text: &str| (text.len(), tokens.encode_ordinary(text).len());

    let bridge = bridge_of(&folder, None).await?;
    let client = client_of(&bridge).await?;
    let all = list(&client).await?;
    let (bytes, count) = size(&shown(&all));
    println!("{} tools of {} servers, as a model is shown them (name, description, input schema)", all.len(), SERVERS.len());
    println!("  all of them: {bytes} bytes, {count} tokens (o200k)");
    client.close();
    bridge.shutdown().await;

    let mut search = ToolSearch::default();
    search.results = RESULTS;
    let bridge = bridge_of(&folder, Some(search)).await?;
    let client = client_of(&bridge).await?;
    let (bytes, count) = size(&shown(&list(&client).await?));
    println!("  with the search: {bytes} bytes, {count} tokens");
    let (mut first, mut among, mut sizes, mut missed) = (0, 0, Vec::new(), Vec::new());
    for question in &questions.question {
        let answer = client.call_tool("search_tools", &json!({"query": question.ask})).await?;
        let text = answer.text();
        sizes.push(size(&text));
        let found: Value = serde_json::from_str(&text).unwrap_or_default();
        let found = found["tools"].as_array().cloned().unwrap_or_default();
        let names: Vec<&str> = found.iter().filter_map(|tool| tool["name"].as_str()).collect();
        let wanted = |name: &&str| question.want.iter().any(|want| want.replace(' ', "__") == **name);
        match names.iter().position(|name| wanted(&name)) {
            Some(place) => {
                among += 1;
                first += usize::from(place == 0);
            }
            None => missed.push(format!("{}: {}", question.ask, names.join(", "))),
        }
    }
    sizes.sort_unstable();
    let (bytes, count) = sizes[sizes.len() / 2];
    println!("  one answer of the search (median of {}): {bytes} bytes, {count} tokens", sizes.len());
    println!("{} questions: the wanted tool is the first one for {first}, and among the first {RESULTS} for {among}", questions.question.len());
    for question in missed {
        println!("  not found: {question}");
    }
    client.close();
    bridge.shutdown().await;
    Ok(())
}

/// Creates a gateway in front of all servers.
async fn bridge_of(folder: &std::path::Path, search: Option<ToolSearch>) -> anyhow::Result<Bridge> {
    let packages = folder.join("node_modules").join("@modelcontextprotocol");
    let servers = SERVERS.map(|(name, program, arguments)| {
        let mut command = ServerCommand::new("node").arg(packages.join(program));
        for argument in arguments {
            command = command.arg(argument);
        }
        let command = command.env("GITHUB_PERSONAL_ACCESS_TOKEN", "none");
        (name.to_owned(), Arc::new(command) as Arc<dyn Upstream>)
    });
    let mut options = Options::default();
    options.rules.search = search;
    options.list_within = std::time::Duration::from_secs(60);
    Ok(Bridge::many(servers, options).await?)
}

async fn client_of(bridge: &Bridge) -> anyhow::Result<Client> {
    let (local, remote) = memory_pair(256 << 10, 4 << 20);
    let (settings, handler) = bridge.endpoint();
    tokio::spawn(async move {
        let options = ConnectionOptions::default();
        let _ = serve(settings, handler, remote, options, std::future::pending()).await;
    });
    Ok(Client::over(local).await?)
}

async fn list(client: &Client) -> anyhow::Result<Vec<Value>> {
    let tools = client.tools().all().await?;
    let tools = tools.iter().map(|tool| serde_json::from_str(tool.object().text()));
    Ok(tools.collect::<Result<_, _>>()?)
}

/// Returns definitions as interfaces of models take them.
fn shown(tools: &[Value]) -> String {
    let tools = tools.iter().map(|tool| {
        json!({"name": tool["name"], "description": tool["description"], "parameters": tool["inputSchema"]})
    });
    Value::Array(tools.collect()).to_string()
}
