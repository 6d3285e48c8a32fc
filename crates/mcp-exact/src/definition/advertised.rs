//! A definition in every revision, as clients receive it.

use std::sync::{Arc, Mutex};

use crate::apps::DEPRECATED_URI;
use crate::outgoing;
use crate::protocol::{Json, JsonObject, Revision};
use crate::sync::lock;

/// Definition with its cached conversions to other revisions.
#[derive(Debug)]
pub(crate) struct AdvertisedDefinition {
    /// Name of the definition in the schema, such as `Tool` or `Resource`.
    kind: &'static str,
    /// Definition in the form of the home revision.
    home_definition: JsonObject,
    /// JSON text in each revision that was requested so far; `None` if the revision cannot express the definition.
    converted_forms: Mutex<Vec<(Revision, Option<Arc<str>>)>>,
}

impl AdvertisedDefinition {
    /// Creates the definition if it conforms to the schema of `kind` (`Tool`, `Resource`, …) in the home revision.
    pub(crate) fn new(kind: &'static str, home: JsonObject) -> Result<Self, String> {
        outgoing::check_definition(kind, &home)?;
        Ok(Self {
            kind,
            home_definition: home,
            converted_forms: Mutex::default(),
        })
    }

    /// Returns the JSON text of the definition in a revision; `None` if the revision cannot express the definition.
    pub(crate) fn text_for_revision(&self, revision: Revision) -> Option<Arc<str>> {
        let mut forms = lock(&self.converted_forms);
        if let Some((_, form)) = forms.iter().find(|(known, _)| *known == revision) {
            return form.clone();
        }
        let form = outgoing::convert_definition(self.kind, &self.home_definition, revision);
        let omitted = |reason: &String| {
            tracing::warn!(kind = self.kind, %revision, %reason, "left out of a list");
        };
        let form = form.inspect_err(omitted);
        let form = form.map(|form| self.with_ui(form));
        let form: Option<Arc<str>> = form.ok().map(|form| form.text().into());
        forms.push((revision, form.clone()));
        form
    }

    /// Puts the page and the visibility of a tool into its form in a revision whose tools have no `_meta`. Tools may have
    /// further members there, and a host that lost the visibility would give a tool for pages to its model.
    fn with_ui(&self, form: Json) -> Json {
        let meta = self.home_definition.view().find("_meta");
        let meta = meta.and_then(|meta| meta.object());
        let Some(meta) = meta.filter(|_| self.kind == "Tool") else {
            return form;
        };
        let names = ["ui", DEPRECATED_URI].into_iter();
        let kept = names.filter_map(|name| Some((name, meta.find(name)?.to_json())));
        let kept: JsonObject = kept.collect();
        match JsonObject::try_from(form) {
            Ok(mut tool) if !kept.is_empty() && tool.get("_meta").is_none() => {
                tool.insert("_meta", kept);
                tool.into()
            }
            Ok(tool) => tool.into(),
            Err(other) => other,
        }
    }
}
