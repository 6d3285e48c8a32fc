//! Server whose tools run as tasks that survive a restart: results, answers and finished steps are stored in a folder.
//!
//! `task_server FOLDER [PORT]` listens on 127.0.0.1 and prints its URL on standard error.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::PathBuf;
use std::time::Duration;

use mcp_exact::transport::http::server::{HttpListener, HttpServerOptions};
use mcp_exact::{Cx, DirectoryTaskStore, Error, IntoServer, Result, Tasks, server};

/// Form that asks for a confirmation.
#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Confirm {
    yes: bool,
}

/// Printer that writes to a file.
struct Printer {
    /// File that the pages are written to.
    paper: PathBuf,
}

#[server(name = "printer", version = "1.0.0")]
impl Printer {
    /// Prints pages, and asks after each one whether to continue. No page is printed twice, even if the server is
    /// restarted.
    #[tool(task)]
    async fn print(&self, pages: u32, cx: &Cx) -> Result<String> {
        let mut printed = 0;
        while printed < pages {
            printed += 1;
            let line = format!("page {printed}\n");
            cx.once(&line, async {
                let mut paper = OpenOptions::new()
                    .create(true)
                    .append(true)
                    .open(&self.paper)?;
                paper.write_all(line.as_bytes())
            })
            .await?;
            cx.progress(printed, pages)?;
            let question = format!("Page {printed} is printed. Go on?");
            let answer = cx.elicit::<Confirm>(question).await?;
            if !answer.accepted_with(|form| form.yes) {
                break;
            }
        }
        Ok(format!("printed {printed} pages"))
    }
}

#[tokio::main]
#[allow(clippy::print_stderr, reason = "the URL is the output of the program")]
async fn main() -> Result {
    let mut arguments = std::env::args().skip(1);
    let usage = || Error::msg("usage: task_server FOLDER [PORT]");
    let folder = PathBuf::from(arguments.next().ok_or_else(usage)?);
    let port: u16 = arguments.next().map_or(Ok(0), |port| port.parse())?;
    let store = DirectoryTaskStore::open(&folder)?;
    let tasks = Tasks::new()
        .store(store)
        .poll_interval(Duration::from_millis(50));
    let paper = folder.join("paper.txt");
    let server = Printer { paper }.into_builder().tasks(tasks).build()?;
    server.resume_tasks().await?;
    let listener = HttpListener::bind(("127.0.0.1", port)).await?;
    eprintln!("http://{}/mcp", listener.local_addr()?);
    let service = server.http(HttpServerOptions::default());
    Ok(listener.serve(service, std::future::pending()).await?)
}
