//! Building a server of its builder: every problem of the definitions, handlers and settings, and the capabilities.

use std::fmt;
use std::sync::{Arc, RwLock};

use super::ServerBuilder;
use crate::definition::icons_to_json;
use crate::error::{BuildError, Problem};
use crate::link::Listeners;
use crate::protocol::{Json, JsonObject, extension, tasks_extension};
use crate::seal::KeyRing;
use crate::server::catalogue::Catalogue;
use crate::server::page::CursorSeal;
use crate::server::{Server, ServerInner};

impl ServerBuilder {
    /// Builds the server.
    ///
    /// # Errors
    /// [`BuildError`], which lists all problems of the definitions, handlers and settings, each with a hint how to
    /// fix it.
    pub fn build(mut self) -> Result<Server, BuildError> {
        let mut catalogue = Catalogue {
            layers: std::mem::take(&mut self.tool_layers),
            ..Catalogue::default()
        };
        let mut problems = std::mem::take(&mut self.problems);
        for registration in std::mem::take(&mut self.registrations) {
            problems.extend(registration(&mut catalogue, &self.states).err());
        }
        problems.extend(catalogue.unregistered_completion_targets());
        problems.extend(catalogue.lists_without_template());
        let may_come_later = self.declared_lists.contains(&"resources");
        problems.extend(catalogue.missing_pages(may_come_later));
        BuildError::check(problems)?;
        self.config.capabilities = self.capabilities(&catalogue);
        // Acknowledgements are sent by this crate, because resources that are hidden from the subscriber must be
        // removed first.
        self.config.application_acknowledges = true;
        let mut tools = catalogue.tools.iter();
        if let Some(default) = tools.find_map(|entry| entry.tool.tasks) {
            self.tasks.get_or_insert_with(default.0);
        }
        if catalogue.has_pages() {
            extension::declared(&mut self.config.extensions, crate::apps::EXTENSION);
        }
        if self.tasks.is_some() {
            extension::declare(&mut self.config.extensions, tasks_extension());
        }
        if !self.icons.is_empty() {
            self.config
                .identity
                .additional_members
                .insert("icons", icons_to_json(&self.icons));
        }
        if self.visibility.has_rules() {
            self.config.cache.is_public = false;
        }
        // A list that is inserted while the server runs makes the results of `resources/list` private.
        self.config.keeps_cache_scope = self.config.cache.is_public;
        let config =
            |error: &dyn fmt::Display| BuildError::from(Problem::Config(error.to_string()));
        let keys = match self.keys.take() {
            Some(keys) => keys,
            None => KeyRing::random().map_err(|error| config(&error))?,
        };
        let keys = Arc::new(keys);
        let cursors = CursorSeal {
            seal: keys.clone(),
            server: self.config.identity.name.clone(),
        };
        self.config.seal = Some(keys);
        let version = format!(
            "{}/{}",
            self.config.identity.name, self.config.identity.version
        );
        let settings = self.config.build().map_err(|error| config(&error))?;
        Ok(Server(Arc::new(ServerInner {
            settings,
            catalogue: RwLock::new(Arc::new(catalogue)),
            states: self.states,
            visibility: self.visibility,
            subscription_checks: self.subscription_checks,
            page_size: self.page_size,
            cursors,
            timeout: self.timeout,
            server_version: version,
            listeners: Listeners::default(),
            tasks: self.tasks,
            start_hooks: self.start_hooks,
            shutdown_hooks: self.shutdown_hooks,
            notification_handlers: self.notification_handlers,
            repairs: self.repairs,
            #[cfg(feature = "http-server")]
            bearer: self.bearer.map(Arc::new),
        })))
    }

    /// Derives the capabilities from the registered definitions.
    fn capabilities(&self, catalogue: &Catalogue) -> JsonObject {
        let has_resources = !catalogue.resources.is_empty() || !catalogue.templates.is_empty();
        let registered = [
            (
                "tools",
                !catalogue.tools.is_empty(),
                r#"{"listChanged":true}"#,
            ),
            (
                "resources",
                has_resources,
                r#"{"subscribe":true,"listChanged":true}"#,
            ),
            (
                "prompts",
                !catalogue.prompts.is_empty(),
                r#"{"listChanged":true}"#,
            ),
            ("completions", !catalogue.completions.is_empty(), "{}"),
            ("logging", self.declares_logging, "{}"),
        ];
        let mut capabilities = self.additional_capabilities.clone();
        for (name, is_there, value) in registered {
            if is_there || self.declared_lists.contains(&name) {
                capabilities.insert(name, value.parse::<Json>().unwrap_or(Json::null()));
            }
        }
        capabilities
    }
}
