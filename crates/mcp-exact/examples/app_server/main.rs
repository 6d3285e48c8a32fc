//! A server with a page (MCP Apps): hosts show a poll, and its buttons vote by a tool that the model does not get. Hosts without
//! pages show the same result as text. `app_server http ADDRESS` serves HTTP, otherwise standard input and output are served.

use std::collections::BTreeMap;
use std::sync::Mutex;

use mcp_exact::apps::App;
use mcp_exact::transport::http::server::HttpListener;
use mcp_exact::{Cx, Error, IntoServer, Result, Server, ToolResult, server};

/// Votes by choice.
struct Poll(Mutex<BTreeMap<String, u32>>);

#[server(name = "poll", version = "1.0.0")]
impl Poll {
    /// Shows how many votes each choice has.
    #[tool(read_only, ui = "ui://poll/page.html")]
    async fn poll(&self, cx: &Cx, question: String) -> ToolResult {
        let seen = if cx.client_supports_ui() {
            "The user sees the poll"
        } else {
            "Tell the user"
        };
        self.result(&format!("{seen}: {question}"))
    }
    /// Counts a vote; the buttons of the page call this.
    #[tool(ui = "ui://poll/page.html", visibility = "app")]
    async fn vote(&self, choice: String) -> Result<ToolResult> {
        let mut votes = self
            .0
            .lock()
            .map_err(|_| Error::msg("the votes are lost"))?;
        let count = votes
            .get_mut(&choice)
            .ok_or_else(|| Error::msg("there is no such choice"))?;
        *count += 1;
        drop(votes);
        Ok(self.result(&format!("A vote for {choice}")))
    }
    /// The page, which is one document and uses nothing of other hosts.
    #[resource("ui://poll/page.html", title = "Poll")]
    fn page() -> App {
        App::new(include_str!("page.html")).prefers_border(true)
    }
}

impl Poll {
    /// Returns the votes as text for the model and as structured content for the page.
    fn result(&self, text: &str) -> ToolResult {
        let votes = self.0.lock().map(|votes| votes.clone()).unwrap_or_default();
        let votes = serde_json::json!({ "votes": votes });
        ToolResult::new()
            .content(format!("{text} {votes}"))
            .structured(votes)
    }
}

/// Builds the server.
fn poll() -> Result<Server> {
    let votes = ["tea", "coffee", "water"].map(|choice| (choice.to_owned(), 0));
    Ok(Poll(Mutex::new(votes.into())).into_server()?)
}

#[tokio::main]
#[allow(clippy::print_stderr, reason = "the URL is the output of the program")]
async fn main() -> Result {
    let mut arguments = std::env::args().skip(1);
    match (arguments.next().as_deref(), arguments.next()) {
        (Some("http"), Some(address)) => {
            let listener = HttpListener::bind(address).await?;
            eprintln!("listening on http://{}/", listener.local_addr()?);
            poll()?.serve_listener(listener).await
        }
        _ => poll()?.serve_stdio().await,
    }
}
