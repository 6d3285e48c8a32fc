//! Merging of two builders.

use std::sync::Arc;

use super::ServerBuilder;
use crate::error::Problem;
use crate::protocol::extension;
use crate::server::catalogue::{Catalogue, Reference};

impl ServerBuilder {
    /// Adds the definitions, handlers, notifications, states, and start and shutdown functions of another builder. The states must
    /// have different types. With a prefix, tools and prompts are named `prefix_name`. Layers of the other builder
    /// apply to its own tools and run inside the layers of this builder.
    ///
    /// A visibility rule, a declared capability or a bearer token of the other builder is a [`Problem`], because these settings concern
    /// the complete server. Other settings, such as limits and keys, are not transferred.
    pub fn merge(mut self, prefix: Option<&str>, other: Self) -> Self {
        let twice = self.states.merge(&other.states).into_iter();
        self.problems.extend(other.problems);
        self.problems
            .extend(twice.map(|state| Problem::SecondState { state }));
        let rule = other.visibility.has_rules().then_some("visible");
        let capability = (!other.additional_capabilities.is_empty()).then_some("capability");
        #[cfg(feature = "http-server")]
        let tokens = other.bearer.is_some().then_some("bearer_tokens");
        #[cfg(not(feature = "http-server"))]
        let tokens = None;
        let settings = rule.into_iter().chain(capability).chain(tokens);
        self.problems
            .extend(settings.map(|setting| Problem::Merge { setting }));
        self.subscription_checks.extend(other.subscription_checks);
        self.start_hooks.extend(other.start_hooks);
        self.shutdown_hooks.extend(other.shutdown_hooks);
        self.notification_handlers
            .merge(other.notification_handlers);
        let prefix = prefix.map(str::to_owned);
        for registration in other.registrations {
            let (prefix, layers) = (prefix.clone(), other.tool_layers.clone());
            self = self.add_registration(Box::new(move |catalogue, states| {
                let mut own = Catalogue {
                    layers,
                    ..Catalogue::default()
                };
                registration(&mut own, states)?;
                catalogue.merge_builder(own, prefix.as_deref())
            }));
        }
        let extensions = other.config.extensions;
        for added in extensions.negotiated {
            extension::declare(&mut self.config.extensions, added);
        }
        self.config.extensions.requests.extend(extensions.requests);
        self = self.notifications(extensions.notifications);
        for capability in other.declared_lists {
            self = self.declare_list(capability);
        }
        self
    }
}

impl Catalogue {
    /// Adds the entries of another catalogue, with a prefix for the names of tools and prompts.
    fn merge_builder(&mut self, other: Self, prefix: Option<&str>) -> Result<(), Problem> {
        let prefixed = |name: &str| match prefix {
            Some(prefix) => format!("{prefix}_{name}"),
            None => name.to_owned(),
        };
        for entry in other.tools.into_iter().filter_map(Arc::into_inner) {
            let name = prefixed(entry.tool.name());
            self.add_tool(entry.with_name(name)?)?;
        }
        for entry in other.prompts.into_iter().filter_map(Arc::into_inner) {
            let name = prefixed(entry.prompt.name());
            self.add_prompt(entry.with_name(name)?)?;
        }
        for entry in other.resources.into_iter().filter_map(Arc::into_inner) {
            self.add_resource(entry)?;
        }
        for entry in other.templates.into_iter().filter_map(Arc::into_inner) {
            self.add_template(entry)?;
        }
        for entry in other.lists.into_iter().filter_map(Arc::into_inner) {
            self.add_list(entry)?;
        }
        for entry in other.methods.into_iter().filter_map(Arc::into_inner) {
            self.add_method(entry)?;
        }
        if let Some(entry) = other.raw_handler.and_then(Arc::into_inner) {
            self.set_raw(entry)?;
        }
        for mut entry in other.completions.into_iter().filter_map(Arc::into_inner) {
            if let Reference::Prompt(name) = &entry.reference {
                entry.reference = Reference::Prompt(prefixed(name));
            }
            self.add_completion(entry)?;
        }
        Ok(())
    }
}
