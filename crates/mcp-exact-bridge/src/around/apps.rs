//! Tools of pages (MCP Apps, specification 2026-01-26): which clients get them, and in what form.
//!
//! "Host MUST NOT include tools in the agent's tool list when their visibility does not include "model"" ("Visibility"). A client that
//! has not declared the extension does not know what a visibility is, and would give such a tool to its model.

use mcp_exact_session::{Json, JsonObject, RawResult};

/// Identifier of the extension.
pub(crate) const EXTENSION: &str = "io.modelcontextprotocol/ui";

/// Media type of pages, in the form in which media types are compared.
const MIME_TYPE: [&str; 2] = ["text/html", "profile=mcp-app"];

/// Members of a tool's `_meta` that the extension defines: page and visibility, and the deprecated name of the page.
const MEMBERS: [&str; 2] = ["ui", "ui/resourceUri"];

/// Returns true if the capabilities of a client say that it shows pages.
pub(crate) fn shows_pages(capabilities: &JsonObject) -> bool {
    let extensions = capabilities.view().find("extensions");
    let settings = extensions.and_then(|extensions| extensions.object()?.find(EXTENSION));
    let types = settings.and_then(|settings| settings.object()?.find("mimeTypes"));
    let types = types.and_then(|types| types.decode_as::<Vec<Json>>().ok());
    let mut types = types.into_iter().flatten();
    types.any(|one| one.view().as_str().is_some_and(|one| is_page_type(&one)))
}

/// Returns capabilities that declare the extension alone, with which the gateway reads all tools of a server.
pub(crate) fn capabilities() -> JsonObject {
    let types = vec![MIME_TYPE.join(";")];
    let settings = JsonObject::from_iter([("mimeTypes", Json::from_encode(&types))]);
    let extensions = JsonObject::from_iter([(EXTENSION, settings)]);
    JsonObject::from_iter([("extensions", extensions)])
}

/// Returns true for the media type of pages (MCP Apps), `text/html;profile=mcp-app`. Letter case and spaces around the semicolon are ignored.
fn is_page_type(mime_type: &str) -> bool {
    let parts = mime_type.split(';').map(str::trim);
    parts.map(str::to_ascii_lowercase).eq(MIME_TYPE)
}

/// Returns true if a model may see and call a tool. What cannot be read permits nothing, because what the server meant is not known.
pub(crate) fn is_for_models(tool: &JsonObject) -> bool {
    let Some(meta) = tool.view().find("_meta") else {
        return true;
    };
    let Some(meta) = meta.object() else {
        return false;
    };
    let Some(ui) = meta.find("ui") else {
        return true;
    };
    let Some(ui) = ui.object() else {
        return false;
    };
    let Some(visibility) = ui.find("visibility") else {
        return true;
    };
    let names = visibility.decode_as::<Vec<String>>().unwrap_or_default();
    names.iter().any(|name| name == "model")
}

/// Returns a list of tools without those that are for pages alone.
pub(crate) fn without_tools_of_pages(result: RawResult) -> RawResult {
    let Some(tools) = tools_with_ui(&result) else {
        return result;
    };
    let is_shown = |tool: &Json| {
        let read = Some(tool).filter(|tool| may_have_ui(tool.text()));
        let read = read.and_then(|tool| JsonObject::try_from(tool.clone()).ok());
        read.is_none_or(|tool| is_for_models(&tool))
    };
    let count = tools.len();
    let shown: Vec<Json> = tools.into_iter().filter(is_shown).collect();
    if shown.len() == count {
        return result;
    }
    let mut result = result.into_object();
    result.insert("tools", Json::from_encode(&shown));
    result.into()
}

/// Pages and visibility of the tools of a list, while it is converted. Tools have no `_meta` by the schemas before 2025-06-18, but may
/// have further members, and a host that lost the visibility would give a tool of pages to its model.
#[derive(Debug, Default)]
pub(crate) struct ToolPages(Vec<(String, JsonObject)>);

impl ToolPages {
    /// Takes what the extension defines out of a list of tools.
    pub(crate) fn take(result: RawResult) -> (Self, RawResult) {
        let Some(tools) = tools_with_ui(&result) else {
            return (Self::default(), result);
        };
        let mut taken = Vec::new();
        let rest = tools
            .into_iter()
            .map(|tool| match JsonObject::try_from(tool) {
                Ok(mut tool) => {
                    taken.push((name_of(&tool), take_members(&mut tool)));
                    tool.into()
                }
                Err(other) => other,
            });
        let rest: Vec<Json> = rest.collect();
        if taken.iter().all(|(_, members)| members.is_empty()) {
            return (Self::default(), result);
        }
        let mut result = result.into_object();
        result.insert("tools", Json::from_encode(&rest));
        (Self(taken), result.into())
    }

    /// Puts what was taken back into the list, whose tools are in the same order; a conversion may have left out some of them.
    pub(crate) fn put_back(self, result: RawResult) -> RawResult {
        if self.0.is_empty() {
            return result;
        }
        let tools = result.object().view().find("tools");
        let Some(tools) = tools.and_then(|tools| tools.decode_as::<Vec<Json>>().ok()) else {
            return result;
        };
        let mut left = self.0.as_slice();
        let tools = tools.into_iter().map(|tool| {
            let Ok(mut tool) = JsonObject::try_from(tool.clone()) else {
                return tool;
            };
            let name = name_of(&tool);
            if let Some(at) = left.iter().position(|(known, _)| *known == name) {
                insert_members(&mut tool, &left[at].1);
                left = &left[at + 1..];
            }
            tool.into()
        });
        let tools: Vec<Json> = tools.collect();
        let mut result = result.into_object();
        result.insert("tools", Json::from_encode(&tools));
        result.into()
    }
}

/// Returns the entries of a list of tools; `None` if none of them can have a member of the extension.
fn tools_with_ui(result: &RawResult) -> Option<Vec<Json>> {
    if !may_have_ui(result.object().text()) {
        return None;
    }
    result.object().view().find("tools")?.decode_as().ok()
}

/// Returns false if a text has no member `_meta`, also none with another spelling, which has an escape sequence.
fn may_have_ui(text: &str) -> bool {
    text.contains("_meta") || text.contains("\\u")
}

/// Removes the members of the extension from the `_meta` of a tool, and returns them.
fn take_members(tool: &mut JsonObject) -> JsonObject {
    let Some(Ok(mut meta)) = tool.get("_meta").map(JsonObject::try_from) else {
        return JsonObject::new();
    };
    let taken = MEMBERS.into_iter();
    let taken = taken.filter_map(|name| Some((name, meta.remove(name)?)));
    let taken: JsonObject = taken.collect();
    if taken.is_empty() {
        return taken;
    }
    if meta.is_empty() {
        tool.remove("_meta");
    } else {
        tool.insert("_meta", meta);
    }
    taken
}

/// Sets members of the `_meta` of a tool.
fn insert_members(tool: &mut JsonObject, members: &JsonObject) {
    if members.is_empty() {
        return;
    }
    let meta = tool.get("_meta").map(JsonObject::try_from);
    let mut meta = meta.and_then(Result::ok).unwrap_or_default();
    for (name, value) in members.view().iter() {
        meta.insert(&name, value.to_json());
    }
    tool.insert("_meta", meta);
}

/// Returns the name of a tool.
fn name_of(tool: &JsonObject) -> String {
    let name = tool.view().find("name").and_then(|name| name.as_str());
    name.map(|name| name.into_owned()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(text: &str) -> JsonObject {
        text.parse().expect(text)
    }

    /// "`visibility` defaults to `["model", "app"]` if omitted" (Visibility).
    #[test]
    fn visibility_is_read_strictly() {
        for (meta, expected) in [
            ("{}", true),
            (r#"{"ui":{}}"#, true),
            (r#"{"ui":{"visibility":["app","model"]}}"#, true),
            (r#"{"ui":{"visibility":["app"]}}"#, false),
            (r#"{"\u0075i":{"visibility":["app"]}}"#, false),
            (r#"{"ui":{"visibility":[]}}"#, false),
            (r#"{"ui":{"visibility":"model"}}"#, false),
            (r#"{"ui":{"visibility":["model",1]}}"#, false),
            (r#"{"ui":"model"}"#, false),
            (r#"{"ui":null}"#, false),
            ("null", false),
        ] {
            let tool = object(&format!(r#"{{"name":"t","_meta":{meta}}}"#));
            assert_eq!(is_for_models(&tool), expected, "{meta}");
            let list = object(&format!(r#"{{"tools":[{tool},{{"name":"u"}},1]}}"#));
            let shown = without_tools_of_pages(list.clone().into()).into_object();
            if expected {
                assert_eq!(shown, list, "{meta}");
            } else {
                assert_eq!(shown.text(), r#"{"tools":[{"name":"u"},1]}"#, "{meta}");
            }
        }
        assert!(is_for_models(&object(r#"{"name":"t"}"#)));
    }

    /// "`mimeTypes`: Array of supported content types (REQUIRED)" (Client Capabilities).
    #[test]
    fn clients_name_the_media_type() {
        assert!(shows_pages(&capabilities()));
        for (settings, expected) in [
            (r#"{"mimeTypes":[1,"Text/HTML; profile=mcp-app"]}"#, true),
            (r#"{"mimeTypes":["text/html"]}"#, false),
            (r#"{"mimeTypes":"text/html;profile=mcp-app"}"#, false),
            ("{}", false),
            ("true", false),
        ] {
            let text = format!(r#"{{"extensions":{{"{EXTENSION}":{settings}}}}}"#);
            assert_eq!(shows_pages(&object(&text)), expected, "{settings}");
        }
        assert!(!shows_pages(&JsonObject::new()));
    }

    /// Each tool gets its own members back, also beside tools of the same name and tools that were left out.
    #[test]
    fn pages_return_to_their_tools() {
        let list = object(
            r#"{"tools":[{"name":"a","_meta":{"x":1,"ui":{"visibility":["app"]}}},{"name":"b"},{"name":"c","_meta":{"ui/resourceUri":"ui://c"}},{"name":"c"},{"name":"d","_meta":{"ui":{}}}]}"#,
        );
        let (pages, rest) = ToolPages::take(list.into());
        assert_eq!(
            rest.object().text(),
            r#"{"tools":[{"name":"a","_meta":{"x":1}},{"name":"b"},{"name":"c"},{"name":"c"},{"name":"d"}]}"#
        );
        let converted = object(
            r#"{"tools":[{"name":"a"},{"name":"c"},{"name":"c"},{"name":"d","_meta":{"y":2}}]}"#,
        );
        let whole = pages.put_back(converted.into()).into_object();
        assert_eq!(
            whole.text(),
            r#"{"tools":[{"name":"a","_meta":{"ui":{"visibility":["app"]}}},{"name":"c","_meta":{"ui/resourceUri":"ui://c"}},{"name":"c"},{"name":"d","_meta":{"y":2,"ui":{}}}]}"#
        );
        let plain = object(r#"{"tools":[{"name":"a","_meta":{"x":1}}]}"#);
        let (pages, rest) = ToolPages::take(plain.clone().into());
        assert_eq!(pages.put_back(rest).into_object(), plain);
    }
}
