//! Changes while the server runs: insertion and removal of tools, resources and prompts.
//!
//! Every subscribed client is notified of each change (`list_changed`, `resources/updated`). Open connections use the
//! new catalogue from their next request on.

use std::sync::{Arc, PoisonError};

use super::Server;
use super::catalogue::{Catalogue, TemplateEntry};
use super::entries;
use crate::definition::{Prompt, Resource, ResourceTemplate, Tool};
use crate::error::Problem;
use crate::handler::{ErasedHandler, Handler};
use crate::listing::ResourcePage;
use crate::protocol::Change;
use crate::reply::{Contents, PromptResult, ToolResult};

/// Handle that inserts and removes tools.
#[derive(Debug, Clone)]
pub struct Tools(pub(super) Server);

/// Handle that inserts and removes resources and resource templates, and announces changes of resources.
#[derive(Debug, Clone)]
pub struct Resources(pub(super) Server);

/// Handle that inserts and removes prompts.
#[derive(Debug, Clone)]
pub struct Prompts(pub(super) Server);

impl Tools {
    /// Inserts a tool and replaces a tool of the same name.
    ///
    /// # Errors
    /// The [`Problem`] of the definition, [`Problem::NotDeclared`] if the server was built without tools, or
    /// [`Problem::NoTasks`].
    pub fn insert<A, H: Handler<A, ToolResult>>(
        &self,
        tool: impl Into<Tool>,
        handler: H,
    ) -> Result<(), Problem> {
        let mut entry =
            entries::tool_entry(tool.into(), ErasedHandler::new(handler), &self.0.0.states)?;
        if entry.tool.task_required && self.0.0.tasks.is_none() {
            let name = entry.tool.name().to_owned();
            return Err(Problem::NoTasks { name });
        }
        let catalogue = self.0.catalogue();
        catalogue.check_page(&entry.tool, false)?;
        catalogue.wrap_in_layers(&mut entry);
        self.0.insert_entry(
            "tools",
            &Change::Tools,
            |all| &mut all.tools,
            entry,
            |a, b| a.tool.name() == b.tool.name(),
        )
    }

    /// Removes a tool; returns true if the tool existed. Calls in flight are completed.
    pub fn remove(&self, name: &str) -> bool {
        self.0.remove_entry(
            &Change::Tools,
            |catalogue| &mut catalogue.tools,
            |known| known.tool.name() == name,
        )
    }

    /// Returns the names of all tools, in the order of registration.
    pub fn names(&self) -> Vec<String> {
        let catalogue = self.0.catalogue();
        catalogue
            .tools
            .iter()
            .map(|entry| entry.tool.name().to_owned())
            .collect()
    }
}

impl Resources {
    /// Inserts a resource and replaces a resource of the same URI. Tools that name a page with this URI
    /// ([`Tool::ui`](crate::Tool::ui)) are listed with it from then on.
    ///
    /// # Errors
    /// The [`Problem`] of the definition, or [`Problem::NotDeclared`] if the server was built without resources.
    pub fn insert<A, H: Handler<A, Contents>>(
        &self,
        resource: impl Into<Resource>,
        handler: H,
    ) -> Result<(), Problem> {
        let entry = entries::resource_entry(
            resource.into(),
            ErasedHandler::new(handler),
            &self.0.0.states,
        )?;
        self.0.insert_entry(
            "resources",
            &Change::Resources,
            |all| &mut all.resources,
            entry,
            |a, b| a.resource.uri() == b.resource.uri(),
        )
    }

    /// Inserts a resource template and replaces a template with the same text.
    ///
    /// # Errors
    /// The errors of [`insert`](Self::insert).
    pub fn insert_template<A, H: Handler<A, Contents>>(
        &self,
        template: impl Into<ResourceTemplate>,
        handler: H,
    ) -> Result<(), Problem> {
        let entry = entries::template_entry(
            template.into(),
            ErasedHandler::new(handler),
            &self.0.0.states,
        )?;
        self.0.insert_entry(
            "resources",
            &Change::Resources,
            |all| &mut all.templates,
            entry,
            |a, b| a.template.template() == b.template.template(),
        )
    }

    /// Inserts the list of a template's resources ([`ServerBuilder::list`](crate::ServerBuilder::list)) and replaces a list of
    /// the same template.
    ///
    /// # Errors
    /// The errors of [`insert`](Self::insert), and [`Problem::List`] if the server has no such template.
    pub fn insert_list<A, H: Handler<A, ResourcePage>>(
        &self,
        template: impl Into<String>,
        handler: H,
    ) -> Result<(), Problem> {
        let template = template.into();
        let handler = ErasedHandler::new(handler);
        let entry = entries::list_entry(template.clone(), handler, &self.0.0.states)?;
        if self.0.catalogue().template(&template).is_none() {
            return Err(Problem::List { template });
        }
        self.0.insert_entry(
            "resources",
            &Change::Resources,
            |all| &mut all.lists,
            entry,
            |a, b| a.template == b.template,
        )
    }

    /// Removes a resource; returns true if the resource existed. If it was the page of tools, they are listed without a page, until
    /// one with the same URI is inserted.
    pub fn remove(&self, uri: &str) -> bool {
        self.0.remove_entry(
            &Change::Resources,
            |catalogue| &mut catalogue.resources,
            |known| known.resource.uri() == uri,
        )
    }

    /// Removes a resource template; returns true if the template existed. Its list is not called any more, until a template with
    /// the same text is inserted.
    pub fn remove_template(&self, template: &str) -> bool {
        let found = |known: &TemplateEntry| known.template.template() == template;
        self.0.remove_entry(
            &Change::Resources,
            |catalogue| &mut catalogue.templates,
            found,
        )
    }

    /// Notifies every subscribed client that the list of resources has changed: resources that a
    /// [list](crate::ServerBuilder::list) supplies, such as rows of a database, were added, removed or renamed.
    pub fn list_changed(&self) {
        self.0.publish(&Change::Resources);
    }

    /// Notifies every subscribed client that the resource has changed. The URI of a resource of a template is the expanded one,
    /// such as `note:///a` of `note:///{name}`.
    pub fn updated(&self, uri: impl Into<String>) {
        self.0.publish(&Change::Resource(uri.into()));
    }
}

impl Prompts {
    /// Inserts a prompt and replaces a prompt of the same name.
    ///
    /// # Errors
    /// The [`Problem`] of the definition, or [`Problem::NotDeclared`] if the server was built without prompts.
    pub fn insert<A, H: Handler<A, PromptResult>>(
        &self,
        prompt: impl Into<Prompt>,
        handler: H,
    ) -> Result<(), Problem> {
        let entry =
            entries::prompt_entry(prompt.into(), ErasedHandler::new(handler), &self.0.0.states)?;
        self.0.insert_entry(
            "prompts",
            &Change::Prompts,
            |all| &mut all.prompts,
            entry,
            |a, b| a.prompt.name() == b.prompt.name(),
        )
    }

    /// Removes a prompt; returns true if the prompt existed.
    pub fn remove(&self, name: &str) -> bool {
        self.0.remove_entry(
            &Change::Prompts,
            |catalogue| &mut catalogue.prompts,
            |known| known.prompt.name() == name,
        )
    }
}

impl Server {
    /// Returns a handle that inserts and removes tools while the server runs.
    pub fn tools(&self) -> Tools {
        Tools(self.clone())
    }

    /// Returns a handle that inserts and removes resources while the server runs, and notifies subscribers of their
    /// changes.
    pub fn resources(&self) -> Resources {
        Resources(self.clone())
    }

    /// Returns a handle that inserts and removes prompts while the server runs.
    pub fn prompts(&self) -> Prompts {
        Prompts(self.clone())
    }

    /// Inserts an entry in place of the one that is the same definition, and notifies subscribers.
    ///
    /// # Errors
    /// [`Problem::NotDeclared`] if the server has not declared the capability.
    fn insert_entry<E>(
        &self,
        capability: &'static str,
        change: &Change,
        list: fn(&mut Catalogue) -> &mut Vec<Arc<E>>,
        entry: E,
        is_same: fn(&E, &E) -> bool,
    ) -> Result<(), Problem> {
        if self.capabilities().get(capability).is_none() {
            return Err(Problem::NotDeclared { capability });
        }
        let changes_pages = self.update_catalogue(|catalogue| {
            let before = catalogue.tools_without_pages();
            let list = list(catalogue);
            match list.iter_mut().find(|known| is_same(known, &entry)) {
                Some(known) => *known = Arc::new(entry),
                None => list.push(Arc::new(entry)),
            }
            before != catalogue.tools_without_pages()
        });
        self.publish_change(change, changes_pages);
        Ok(())
    }

    /// Removes the entries that `found` accepts and notifies subscribers; returns true if at least one entry was
    /// removed.
    fn remove_entry<E>(
        &self,
        change: &Change,
        list: impl FnOnce(&mut Catalogue) -> &mut Vec<Arc<E>>,
        found: impl Fn(&E) -> bool,
    ) -> bool {
        let (removed, changes_pages) = self.update_catalogue(|catalogue| {
            let without_pages = catalogue.tools_without_pages();
            let list = list(catalogue);
            let before = list.len();
            list.retain(|known| !found(known));
            let removed = list.len() < before;
            (removed, without_pages != catalogue.tools_without_pages())
        });
        if removed {
            self.publish_change(change, changes_pages);
        }
        removed
    }

    /// Publishes a change of a list, and that of the tools if a page of theirs has come or gone.
    fn publish_change(&self, change: &Change, changes_pages: bool) {
        self.publish(change);
        if changes_pages && *change != Change::Tools {
            self.publish(&Change::Tools);
        }
    }

    /// Replaces the catalogue by a copy that `apply` has changed, and returns the result of `apply`. Requests in flight keep the
    /// catalogue that they started with.
    fn update_catalogue<T>(&self, apply: impl FnOnce(&mut Catalogue) -> T) -> T {
        let mut catalogue = self
            .0
            .catalogue
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        apply(Arc::make_mut(&mut catalogue))
    }
}
