//! Pages of tools in a client (MCP Apps): the declaration, the pages, and who may call a tool.

use super::list::Definition;
use super::{Client, ClientError, Connect};
use crate::apps::{self, AppError, AppPage, MAX_PAGE_BYTES, PageUi, ToolUi};
use crate::protocol::{JsonObject, METHOD_NOT_FOUND};

impl Connect {
    /// Declares to servers of every revision that pages of [MCP Apps](crate::apps) are shown: the extension
    /// `io.modelcontextprotocol/ui` with the media type of pages.
    ///
    /// Hosts that declare this leave out the tools that are for pages alone where a model chooses
    /// ([`Definition::ui`], [`HostTools::for_model`](crate::HostTools::for_model)).
    pub fn apps(self) -> Self {
        self.extension(apps::EXTENSION, apps::client_settings())
    }

    /// Declares that pages are shown, unless the application has declared the extension with settings of its own.
    #[cfg(all(feature = "process", feature = "http-client"))]
    pub(crate) fn or_apps(mut self) -> Self {
        let extensions = &mut self.settings.extensions;
        let declared = crate::protocol::extension::declared(extensions, apps::EXTENSION);
        if declared.settings.is_empty() {
            declared.settings = apps::client_settings();
        }
        self
    }
}

impl Definition {
    /// Returns the page of a tool, and who may call the tool. Definitions of another kind have no such settings; what is returned
    /// of them means nothing.
    pub fn ui(&self) -> ToolUi {
        ToolUi::of_tool(self.object())
    }
}

impl Client {
    /// Reads the page of a tool, up to 8 MiB: its document and what it may load and use.
    ///
    /// # Errors
    /// [`AppError`], which says what the server has to change.
    ///
    /// ```
    /// # use mcp_exact::apps::App;
    /// # use mcp_exact::{Client, Server, Tool};
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// # let server = Server::builder("clock", "1.0.0")
    /// #     .app("ui://clock/page.html", App::new("<!doctype html>…").resource_domain("https://cdn.example.com"))
    /// #     .tool(Tool::new("time").ui("ui://clock/page.html"), || async { "12:00" })
    /// #     .build()?;
    /// let client = Client::in_memory(&server).apps().await?;
    /// for tool in client.tools().all().await? {
    ///     if tool.ui().resource_uri.is_some() {
    ///         let page = client.read_app(&tool).await?;
    ///         assert!(page.settings.policy().contains("img-src 'self' data: https://cdn.example.com"));
    ///         assert_eq!(page.refused, []);
    ///     }
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub async fn read_app(&self, tool: &Definition) -> Result<AppPage, AppError> {
        self.read_app_within(tool, MAX_PAGE_BYTES).await
    }

    /// Reads the page of a tool, up to `limit` bytes. The limits of messages apply too
    /// ([`Connect::message_bytes`]).
    ///
    /// # Errors
    /// [`AppError`], which says what the server has to change.
    pub async fn read_app_within(
        &self,
        tool: &Definition,
        limit: usize,
    ) -> Result<AppPage, AppError> {
        let ui = tool.ui();
        let Some(uri) = ui.page_uri() else {
            let tool = tool.name();
            return Err(match ui.resource_uri {
                Some(uri) => AppError::Scheme { tool, uri },
                None => AppError::NoPage(tool),
            });
        };
        let failed = |error| AppError::Read {
            uri: uri.to_owned(),
            error: Box::new(error),
        };
        let output = self.read(uri).await.map_err(failed)?;
        let has_own = |item: &JsonObject| PageUi::of(item).is_given();
        let listed = if output.items().iter().any(has_own) {
            PageUi::default()
        } else {
            self.listed_ui(uri).await.map_err(failed)?
        };
        AppPage::of_contents(uri, output.items(), &listed, limit)
    }

    /// Returns `_meta.ui` of a resource in the list of the server; none if the server does not list it, which it need not.
    async fn listed_ui(&self, uri: &str) -> Result<PageUi, ClientError> {
        let mut list = self.resources();
        loop {
            match list.try_next().await {
                Ok(Some(resource)) if resource.uri().as_deref() == Some(uri) => {
                    return Ok(PageUi::of(resource.object()));
                }
                Ok(Some(_)) => {}
                Ok(None) => return Ok(PageUi::default()),
                Err(ClientError::Server(error)) if error.code() == Some(METHOD_NOT_FOUND) => {
                    return Ok(PageUi::default());
                }
                Err(error) => return Err(error),
            }
        }
    }
}
