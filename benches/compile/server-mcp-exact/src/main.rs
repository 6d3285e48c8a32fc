//! Server of notes over stdio: three tools, one with progress and one with an elicitation, a resource template and a
//! prompt.

use std::{collections::BTreeMap, time::Duration};

use mcp_exact::{Cx, Error, IntoServer, PromptResult, Result, server};
use tokio::{sync::Mutex, time::sleep};

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Confirm {
    yes: bool,
}

/// Server whose notes are stored by name.
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
        let answer = cx.elicit::<Confirm>(format!("Remove {name}?")).await?;
        let sure = answer.accepted_with(|form| form.yes);
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
        let notes = self.0.lock().await;
        let note = notes.get(&name).cloned();
        note.ok_or_else(|| Error::resource_not_found(name))
    }

    /// Asks for a summary of a note.
    #[prompt]
    async fn summarise(&self, name: String) -> Result<PromptResult> {
        let notes = self.0.lock().await;
        let text = notes.get(&name).map_or("", String::as_str);
        Ok(PromptResult::user(format!("Summarise this note:\n{text}")))
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result {
    Notes(Mutex::default()).serve_stdio().await
}
