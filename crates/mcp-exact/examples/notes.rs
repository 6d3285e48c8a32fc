//! The server of the README: three tools, one of which asks the user, a resource and a prompt. `notes http` serves HTTP,
//! otherwise standard input and output are served.

use mcp_exact::{Cx, Error, IntoServer, PromptResult, Result, Server, server};
use std::{collections::BTreeMap, time::Duration};
use tokio::{sync::Mutex, time::sleep};

/// Form that asks for a confirmation.
#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Confirm {
    yes: bool,
}

/// Server with texts of notes, by name.
struct Notes(Mutex<BTreeMap<String, String>>);

#[server(name = "notes", version = "1.0.0")]
impl Notes {
    /// Adds a note.
    #[tool(idempotent)]
    async fn add(&self, name: String, text: String) {
        self.0.lock().await.insert(name, text);
    }
    /// Removes a note, if the user agrees.
    #[tool(destructive)]
    async fn remove(&self, name: String, cx: &Cx) -> Result<String> {
        let sure = cx
            .elicit::<Confirm>(format!("Remove {name}?"))
            .await?
            .accepted_with(|form| form.yes);
        if sure {
            self.0.lock().await.remove(&name);
        }
        Ok(format!("removed: {sure}"))
    }
    /// Counts the notes, slowly.
    #[tool(read_only)]
    async fn count(&self, cx: &Cx) -> Result<String> {
        let total = self.0.lock().await.len();
        for done in 0..total {
            cx.progress(done, total)?;
            cx.cancelled_or(sleep(Duration::from_millis(10))).await?;
        }
        Ok(total.to_string())
    }
    /// The text of a note.
    #[resource("note:///{name}", mime_type = "text/plain")]
    async fn read(&self, name: String) -> Result<String> {
        self.0
            .lock()
            .await
            .get(&name)
            .cloned()
            .ok_or_else(|| Error::resource_not_found(format!("note:///{name}")))
    }
    /// Asks for a summary of a note.
    #[prompt]
    async fn summarise(&self, name: String) -> Result<PromptResult> {
        Ok(PromptResult::user(format!(
            "Summarise this note:\n{}",
            self.read(name).await?
        )))
    }
}

/// Builds the server.
pub(crate) fn server() -> Result<Server> {
    Ok(Notes(Mutex::default()).into_server()?)
}

#[tokio::main]
async fn main() -> Result {
    match std::env::args().nth(1).as_deref() {
        Some("http") => server()?.serve_http("127.0.0.1:8080").await,
        _ => server()?.serve_stdio().await,
    }
}
