//! Server of notes over stdio: three tools, one with progress and one with an elicitation, a resource template and a
//! prompt.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use rmcp::handler::server::router::prompt::PromptRouter;
use rmcp::handler::server::router::tool::ToolRouter;
use rmcp::handler::server::wrapper::Parameters;
use rmcp::model::{
    ListResourceTemplatesResult, PaginatedRequestParams, ProgressNotificationParam, PromptMessage,
    ReadResourceRequestParams, ReadResourceResponse, ReadResourceResult, RequestMetaObject,
    ResourceContents, ResourceTemplate, Role, ServerCapabilities, ServerConfig,
};
use rmcp::service::{Peer, RequestContext};
use rmcp::{
    ErrorData, RoleServer, ServerHandler, ServiceExt, prompt, prompt_handler, prompt_router, tool,
    tool_handler, tool_router,
};
use schemars::JsonSchema;
use serde::Deserialize;
use tokio::sync::Mutex;
use tokio::time::sleep;

#[derive(Deserialize, JsonSchema)]
struct Confirm {
    yes: bool,
}

rmcp::elicit_safe!(Confirm);

#[derive(Deserialize, JsonSchema)]
struct Note {
    name: String,
    text: String,
}

#[derive(Deserialize, JsonSchema)]
struct Name {
    name: String,
}

/// Server with its notes and its routers.
#[derive(Clone)]
struct Notes {
    /// Texts of the notes, by name.
    notes: Arc<Mutex<BTreeMap<String, String>>>,
    tool_router: ToolRouter<Self>,
    prompt_router: PromptRouter<Self>,
}

#[tool_router]
impl Notes {
    fn new() -> Self {
        Self {
            notes: Arc::default(),
            tool_router: Self::tool_router(),
            prompt_router: Self::prompt_router(),
        }
    }

    /// Adds a note.
    #[tool(annotations(idempotent_hint = true))]
    async fn add(&self, Parameters(note): Parameters<Note>) {
        self.notes.lock().await.insert(note.name, note.text);
    }

    /// Removes a note, if the user agrees.
    #[tool(annotations(destructive_hint = true))]
    async fn remove(
        &self,
        Parameters(Name { name }): Parameters<Name>,
        peer: Peer<RoleServer>,
    ) -> Result<String, ErrorData> {
        let answer = peer.elicit::<Confirm>(format!("Remove {name}?")).await;
        let answer = answer.map_err(|error| ErrorData::internal_error(error.to_string(), None))?;
        let sure = answer.is_some_and(|form| form.yes);
        if sure {
            self.notes.lock().await.remove(&name);
        }
        Ok(format!("removed: {sure}"))
    }

    /// Counts the notes, slowly.
    #[tool(annotations(read_only_hint = true))]
    async fn count(
        &self,
        meta: RequestMetaObject,
        peer: Peer<RoleServer>,
    ) -> Result<String, ErrorData> {
        let total = self.notes.lock().await.len();
        for done in 0..total {
            if let Some(token) = meta.get_progress_token() {
                let progress = ProgressNotificationParam::new(token, done as f64);
                let _ = peer
                    .notify_progress(progress.with_total(total as f64))
                    .await;
            }
            sleep(Duration::from_millis(10)).await;
        }
        Ok(total.to_string())
    }
}

#[prompt_router]
impl Notes {
    /// Asks for a summary of a note.
    #[prompt]
    async fn summarise(&self, Parameters(Name { name }): Parameters<Name>) -> Vec<PromptMessage> {
        let notes = self.notes.lock().await;
        let text = notes.get(&name).map_or("", String::as_str);
        let text = format!("Summarise this note:\n{text}");
        vec![PromptMessage::new_text(Role::User, text)]
    }
}

#[tool_handler(router = self.tool_router)]
#[prompt_handler(router = self.prompt_router)]
impl ServerHandler for Notes {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder()
            .enable_tools()
            .enable_resources()
            .enable_prompts()
            .build();
        ServerConfig::new(capabilities)
    }

    async fn list_resource_templates(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        let template = ResourceTemplate::new("note:///{name}", "read");
        Ok(ListResourceTemplatesResult::with_all_items(vec![template]))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let notes = self.notes.lock().await;
        let name = request.uri.strip_prefix("note:///").unwrap_or_default();
        let missing = || ErrorData::resource_not_found("no such note", None);
        let text = notes.get(name).ok_or_else(missing)?;
        let contents = ResourceContents::text(text, &request.uri);
        Ok(ReadResourceResult::new(vec![contents]).into())
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let service = Notes::new().serve(rmcp::transport::stdio()).await?;
    service.waiting().await?;
    Ok(())
}
