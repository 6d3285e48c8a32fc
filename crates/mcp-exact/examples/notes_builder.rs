//! The server of the README, written with closures instead of attributes. `notes_builder http` serves HTTP, otherwise
//! standard input and output are served.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use mcp_exact::{
    Cx, Error, Input, Prompt, PromptResult, ResourceTemplate, Result, Server, State, Tool,
};
use schemars::JsonSchema;
use serde::Deserialize;
use tokio::{sync::Mutex, time::sleep};

/// Form that asks for a confirmation.
#[derive(Deserialize, JsonSchema)]
struct Confirm {
    yes: bool,
}

#[derive(Deserialize, JsonSchema)]
struct Note {
    name: String,
    text: String,
}

#[derive(Deserialize, JsonSchema)]
struct Name {
    name: String,
}

/// Texts of the notes, by name.
type Notes = Arc<Mutex<BTreeMap<String, String>>>;

/// Returns the text of a note.
async fn read(notes: &Notes, name: String) -> Result<String> {
    let note = notes.lock().await.get(&name).cloned();
    note.ok_or_else(|| Error::resource_not_found(format!("note:///{name}")))
}

/// Builds the server.
pub(crate) fn server() -> Result<Server> {
    let add = |State(notes): State<Notes>, Input(note): Input<Note>| async move {
        notes.lock().await.insert(note.name, note.text);
    };
    let remove = |State(notes): State<Notes>, Input(Name { name }): Input<Name>, cx: Cx| async move {
        let answer = cx.elicit::<Confirm>(format!("Remove {name}?")).await?;
        let sure = answer.accepted_with(|form| form.yes);
        if sure {
            notes.lock().await.remove(&name);
        }
        mcp_exact::Ok(format!("removed: {sure}"))
    };
    let count = |State(notes): State<Notes>, cx: Cx| async move {
        let total = notes.lock().await.len();
        for done in 0..total {
            cx.progress(done, total)?;
            cx.cancelled_or(sleep(Duration::from_millis(10))).await?;
        }
        mcp_exact::Ok(total.to_string())
    };
    let note = |State(notes): State<Notes>, Input(Name { name }): Input<Name>| async move {
        read(&notes, name).await
    };
    let summarise = |State(notes): State<Notes>, Input(Name { name }): Input<Name>| async move {
        let text = read(&notes, name).await?;
        mcp_exact::Ok(PromptResult::user(format!("Summarise this note:\n{text}")))
    };
    let server = Server::builder("notes", "1.0.0")
        .state(Notes::default())
        .tool(
            Tool::new("add")
                .description("Adds a note.")
                .idempotent(true),
            add,
        )
        .tool(
            Tool::new("remove")
                .description("Removes a note, if the user agrees.")
                .destructive(true),
            remove,
        )
        .tool(
            Tool::new("count")
                .description("Counts the notes, slowly.")
                .read_only(true),
            count,
        )
        .template(
            ResourceTemplate::new("note:///{name}")
                .with_name("read")
                .description("The text of a note.")
                .mime_type("text/plain"),
            note,
        )
        .prompt(
            Prompt::new("summarise").description("Asks for a summary of a note."),
            summarise,
        )
        .build()?;
    Ok(server)
}

#[tokio::main]
async fn main() -> Result {
    match std::env::args().nth(1).as_deref() {
        Some("http") => server()?.serve_http("127.0.0.1:8080").await,
        _ => server()?.serve_stdio().await,
    }
}
