//! What a tool says of its page, and who may call it (`McpUiToolMeta`).

use std::collections::BTreeSet;

use super::{DEPRECATED_URI, is_page_uri};
use crate::params::string_member;
use crate::protocol::{Json, JsonObject};

/// Who may call a tool (section "Resource Discovery", "Visibility"). A tool that says nothing is for both.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Visibility {
    /// The model.
    Model,
    /// Pages of the same server.
    App,
}

impl Visibility {
    /// Returns the name in the protocol.
    pub fn name(self) -> &'static str {
        match self {
            Self::Model => "model",
            Self::App => "app",
        }
    }
}

/// Page and visibility of a tool, as its definition states them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolUi {
    /// URI of the page that shows results of the tool, whatever its scheme.
    pub resource_uri: Option<String>,
    /// Who may call the tool; values of later versions of the extension are left out.
    pub visibility: BTreeSet<Visibility>,
}

impl ToolUi {
    /// Reads `_meta.ui` of a tool, and the page of the deprecated member `ui/resourceUri`. A visibility that is no list of
    /// strings permits no call, because what the server meant is not known; nor does a `_meta` or `ui` that is no object.
    pub fn of_tool(definition: &JsonObject) -> Self {
        let (Ok(meta), Ok(ui)) = (object_in(definition, "_meta"), ui_in(definition)) else {
            return Self {
                resource_uri: None,
                visibility: BTreeSet::new(),
            };
        };
        let text = |object: &Option<JsonObject>, name: &str| string_member(object.as_ref()?, name);
        let visibility = ui.as_ref().and_then(|ui| ui.get("visibility"));
        Self {
            resource_uri: text(&ui, "resourceUri").or_else(|| text(&meta, DEPRECATED_URI)),
            visibility: match visibility {
                None => [Visibility::Model, Visibility::App].into(),
                Some(visibility) => read_visibility(&visibility),
            },
        }
    }

    /// Returns true if a model may see and call the tool.
    pub fn is_for_model(&self) -> bool {
        self.visibility.contains(&Visibility::Model)
    }

    /// Returns true if the pages of the tool's server may call it.
    pub fn is_for_app(&self) -> bool {
        self.visibility.contains(&Visibility::App)
    }

    /// Returns the URI of the page if it is one that a host may read (`ui://`).
    pub fn page_uri(&self) -> Option<&str> {
        self.resource_uri.as_deref().filter(|uri| is_page_uri(uri))
    }
}

/// Returns true if a model may see and call the tool that has this `_meta`, as [`ToolUi::is_for_model`] of its definition.
pub(crate) fn is_for_models(meta: &JsonObject) -> bool {
    let Some(ui) = meta.view().find("ui") else {
        return true;
    };
    let Some(ui) = ui.object() else {
        return false;
    };
    let visibility = ui.find("visibility");
    visibility.is_none_or(|visibility| {
        read_visibility(&visibility.to_json()).contains(&Visibility::Model)
    })
}

/// Returns the definition of a tool without its page.
pub(crate) fn without_page(mut tool: JsonObject) -> JsonObject {
    let Some(Ok(mut meta)) = tool.get("_meta").map(JsonObject::try_from) else {
        return tool;
    };
    meta.remove(DEPRECATED_URI);
    if let Some(Ok(mut ui)) = meta.get("ui").map(JsonObject::try_from) {
        ui.remove("resourceUri");
        meta.insert("ui", ui);
    }
    tool.insert("_meta", meta);
    tool
}

/// Reads a list of names; one that is no list of strings is empty.
fn read_visibility(value: &Json) -> BTreeSet<Visibility> {
    let names = value.decode_as::<Vec<String>>().unwrap_or_default();
    // One by one: `collect` would link a sort for two values.
    let mut visibility = BTreeSet::new();
    for one in [Visibility::Model, Visibility::App] {
        if names.iter().any(|name| name == one.name()) {
            visibility.insert(one);
        }
    }
    visibility
}

/// Returns `_meta.ui` of a definition or of contents; the error is a `_meta` or `ui` that is no object.
pub(super) fn ui_in(object: &JsonObject) -> Result<Option<JsonObject>, Json> {
    match object_in(object, "_meta")? {
        Some(meta) => object_in(&meta, "ui"),
        None => Ok(None),
    }
}

/// Returns a member; the error is one that is no object.
fn object_in(object: &JsonObject, name: &str) -> Result<Option<JsonObject>, Json> {
    object.get(name).map(JsonObject::try_from).transpose()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// "`visibility` defaults to `["model", "app"]` if omitted" (Visibility).
    #[test]
    fn visibility_is_read_strictly() {
        let visibility = |meta: &str| {
            let tool = format!(r#"{{"name":"t","inputSchema":{{}}{meta}}}"#);
            let ui = ToolUi::of_tool(&tool.parse().expect("a tool"));
            (ui.is_for_model(), ui.is_for_app())
        };
        assert_eq!(visibility(""), (true, true));
        assert_eq!(visibility(r#","_meta":{"ui":{}}"#), (true, true));
        for (list, expected) in [
            (r#"["model","app"]"#, (true, true)),
            (r#"["app"]"#, (false, true)),
            (r#"["model","later"]"#, (true, false)),
            ("[]", (false, false)),
            (r#""app""#, (false, false)),
            (r#"["app",1]"#, (false, false)),
            ("null", (false, false)),
        ] {
            let meta = format!(r#","_meta":{{"ui":{{"visibility":{list}}}}}"#);
            assert_eq!(visibility(&meta), expected, "{list}");
            let meta = format!(r#"{{"ui":{{"visibility":{list}}}}}"#);
            let meta = meta.parse().expect("an object");
            assert_eq!(is_for_models(&meta), expected.0, "{list}");
        }
        for (meta, expected) in [("{}", true), (r#"{"ui":{}}"#, true), (r#"{"ui":1}"#, false)] {
            assert_eq!(
                is_for_models(&meta.parse().expect(meta)),
                expected,
                "{meta}"
            );
        }
        // What the server meant is not known.
        for meta in [r#"{"ui":"app"}"#, r#"{"ui":null}"#, r#"["ui"]"#, "null"] {
            let member = format!(r#","_meta":{meta}"#);
            assert_eq!(visibility(&member), (false, false), "{meta}");
        }
    }

    /// Without its page, a tool keeps everything else that it says.
    #[test]
    fn pages_are_taken_from_tools() {
        let text = r#"{"name":"t","_meta":{"ui/resourceUri":"ui://a","x":1,"ui":{"resourceUri":"ui://a","visibility":["app"]}}}"#;
        let tool = without_page(text.parse().expect("a tool"));
        assert_eq!(
            tool.text(),
            r#"{"name":"t","_meta":{"x":1,"ui":{"visibility":["app"]}}}"#
        );
        let plain = r#"{"name":"t"}"#;
        assert_eq!(without_page(plain.parse().expect("a tool")).text(), plain);
    }

    /// "The flat `_meta["ui/resourceUri"]` format is deprecated. Use `_meta.ui.resourceUri` instead" (Resource Discovery).
    #[test]
    fn deprecated_member_names_the_page() {
        let page = |meta: &str| {
            let tool = format!(r#"{{"name":"t","_meta":{meta}}}"#);
            let ui = ToolUi::of_tool(&tool.parse().expect("a tool"));
            ui.page_uri().map(str::to_owned)
        };
        let expected = Some("ui://a/b".to_owned());
        assert_eq!(page(r#"{"ui":{"resourceUri":"ui://a/b"}}"#), expected);
        assert_eq!(page(r#"{"ui/resourceUri":"ui://a/b"}"#), expected);
        let both = r#"{"ui":{"resourceUri":"ui://a/b"},"ui/resourceUri":"ui://c"}"#;
        assert_eq!(page(both), expected);
        for other in ["https://a/b", "ui://", "ui:a", "file:///etc/passwd"] {
            let meta = format!(r#"{{"ui":{{"resourceUri":"{other}"}}}}"#);
            assert_eq!(page(&meta), None, "{other}");
        }
    }
}
