//! A host of servers with pages (MCP Apps): `app_host mcp.json` prints which tools are for the model and which for pages, and reads
//! each page with what it may load and use. It shows no page; a program with a window does that from here.

#![allow(clippy::print_stderr, clippy::print_stdout, reason = "a terminal")]

use std::collections::BTreeMap;

use mcp_exact::{Host, HostTool, Result};

#[tokio::main]
async fn main() -> Result {
    let file = std::env::args().nth(1);
    let file =
        file.ok_or_else(|| mcp_exact::Error::msg("name a configuration: app_host mcp.json"))?;
    let host = Host::builder().config_file(file)?.apps().start().await;
    for (server, error) in host.failures() {
        eprintln!("{server} is not used: {error}");
    }
    let tools = host.tools().await;
    for tool in tools.for_model() {
        println!("for the model: {}", tool.name());
    }
    for tool in &tools.tools {
        if tools
            .for_page(&tool.server, &tool.definition.name())
            .is_ok()
        {
            println!("for pages of {}: {}", tool.server, tool.definition.name());
        }
    }
    // Several tools may have one page.
    let mut pages: BTreeMap<(&str, String), &HostTool> = BTreeMap::new();
    for tool in &tools.tools {
        if let Some(uri) = tool.definition.ui().resource_uri {
            pages.entry((&tool.server, uri)).or_insert(tool);
        }
    }
    for ((server, uri), tool) in pages {
        match host.read_app(tool).await {
            Ok(page) => {
                println!("page {uri} of {server}: {} bytes", page.html.len());
                println!("  {}", page.settings.policy());
                for refused in page.refused {
                    println!("  {refused:?}");
                }
            }
            Err(error) => println!("page {uri} of {server}: {error}"),
        }
    }
    // The servers end by themselves; the end of the program would kill them.
    host.close();
    host.closed().await;
    Ok(())
}
