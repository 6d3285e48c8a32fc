//! Pages of a server (MCP Apps): their registration, and the check that the page of each tool is there.

use std::sync::Arc;

use super::builder::ServerBuilder;
use super::catalogue::Catalogue;
use super::visibility::ListedDefinition;
use crate::apps::{self, App, is_page_uri};
use crate::definition::{Resource, Tool};
use crate::error::Problem;
use crate::protocol::method;

impl ServerBuilder {
    /// Registers a page that is always the same, as a resource whose URI begins with `ui://`. Tools refer to it by
    /// [`Tool::ui`](crate::Tool::ui). A page that a handler makes is a [resource](Self::resource) whose handler returns an
    /// [`App`].
    ///
    /// The server declares the extension `io.modelcontextprotocol/ui`. One whose pages and tools are all inserted while it runs
    /// declares it by [`extension`](Self::extension), with [`apps::EXTENSION`] and no settings.
    pub fn app(mut self, resource: impl Into<Resource>, app: App) -> Self {
        let resource = resource.into();
        self.problems.extend(app.problems(resource.uri()));
        self.resource(
            resource.with_page(app.size(), app.settings().object()),
            move || {
                let app = app.clone();
                async move { app }
            },
        )
    }
}

impl Catalogue {
    /// Returns true if the server has a page, or a tool with a page.
    pub(super) fn has_pages(&self) -> bool {
        let mut uris = self.resources.iter().map(|entry| entry.resource.uri());
        let mut templates = self.templates.iter().map(|entry| entry.template.template());
        let mut tools = self.tools.iter();
        uris.any(is_page_uri)
            || templates.any(is_page_uri)
            || tools.any(|entry| entry.tool.page().is_some())
    }

    /// Returns a problem for each tool whose page the server does not have. `may_come_later` is true if resources are inserted
    /// while the server runs.
    pub(super) fn missing_pages(&self, may_come_later: bool) -> impl Iterator<Item = Problem> {
        let tools = self.tools.iter();
        tools.filter_map(move |entry| self.check_page(&entry.tool, may_come_later).err())
    }

    /// Returns the names of the tools whose page is not there at the moment.
    pub(super) fn tools_without_pages(&self) -> Vec<String> {
        let tools = self.tools.iter().map(|entry| &entry.tool);
        let tools = tools.filter(|tool| self.check_page(tool, false).is_err());
        tools.map(|tool| tool.name().to_owned()).collect()
    }

    /// Returns the definition of a tool without its page if the page was removed, or is still to come; every other one as it is.
    pub(super) fn without_missing_page(
        &self,
        listed: ListedDefinition<'_>,
        definition: Arc<str>,
    ) -> Arc<str> {
        let ListedDefinition::Tool(tool) = listed else {
            return definition;
        };
        if self.check_page(tool, false).is_ok() {
            return definition;
        }
        match definition.parse() {
            Ok(tool) => apps::without_page(tool).text().into(),
            Err(_) => definition,
        }
    }

    /// Checks that the server has the page of a tool: "Resource MUST exist on the server" (MCP Apps, "Resource Discovery").
    pub(super) fn check_page(&self, tool: &Tool, may_come_later: bool) -> Result<(), Problem> {
        let Some(uri) = tool.page() else {
            return Ok(());
        };
        let reason = if !is_page_uri(&uri) {
            "its URI does not begin with `ui://`; change it here and in the resource".to_owned()
        } else if let Some(entry) = self.resource(&uri) {
            match wrong_type("resource", entry.resource.media_type()) {
                Some(reason) => reason,
                None => return Ok(()),
            }
        } else if let Some((entry, _)) = self.matching_templates(&uri).next() {
            match wrong_type("resource template", entry.template.media_type()) {
                Some(reason) => reason,
                None => return Ok(()),
            }
        } else if may_come_later
            || self
                .registered_method(method::RESOURCES_READ, Some(&uri))
                .is_some()
        {
            return Ok(());
        } else {
            "the server has no resource with this URI; register it, such as by `app`".to_owned()
        };
        Err(Problem::Page {
            tool: tool.name().to_owned(),
            uri,
            reason,
        })
    }
}

/// Returns what is wrong with the media type of a page; hosts compare it exactly.
fn wrong_type(kind: &str, mime_type: Option<&str>) -> Option<String> {
    let mime_type = mime_type.filter(|mime_type| *mime_type != apps::MIME_TYPE)?;
    Some(format!(
        "the media type of the {kind} is {mime_type:?}, and hosts show {} alone; leave `mime_type` out",
        apps::MIME_TYPE
    ))
}
