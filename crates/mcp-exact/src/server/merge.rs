//! Merging of the entries of two builders.

use std::sync::Arc;

use super::catalogue::{Catalogue, Reference};
use crate::error::Problem;

impl Catalogue {
    /// Adds the entries of another catalogue, with a prefix for the names of tools and prompts.
    pub(super) fn merge_builder(
        &mut self,
        other: Self,
        prefix: Option<&str>,
    ) -> Result<(), Problem> {
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
            self.completions.push(Arc::new(entry));
        }
        Ok(())
    }
}
