//! Skills (extension `io.modelcontextprotocol/skills`, SEP-2640): what the gateway declares of them, and what rules hide.
//!
//! The entries of all servers are one list. A rule that denies a `SKILL.md` denies everything in its directory; another file that
//! is hidden is in no entry and in no directory.

use mcp_exact_session::{Json, JsonObject, RawResult, Reply};

use crate::around::access::Item;
use crate::around::gate::Gate;
use crate::around::resource_uri::ResourceUri;
use crate::around::server_uris::is_of_one_server;

/// Identifier of the extension.
pub(crate) const EXTENSION: &str = "io.modelcontextprotocol/skills";
/// Method that lists the skills.
pub(crate) const LIST: &str = "skills/list";
/// Method that returns the entry of one skill.
pub(crate) const GET: &str = "skills/get";
/// Method that lists the children of a directory.
pub(crate) const READ_DIRECTORY: &str = "resources/directory/read";
/// Setting of servers that have [`READ_DIRECTORY`].
const DIRECTORY_READ: &str = "directoryRead";

/// Returns true if the method is one of the extension.
pub(crate) fn is_method(method: &str) -> bool {
    [LIST, GET, READ_DIRECTORY].contains(&method)
}

/// Returns the resource or directory that a request names by a URI, for rules.
pub(crate) fn item<'a>(method: &str, uri: Option<&'a ResourceUri>) -> Item<'a> {
    if method == READ_DIRECTORY {
        Item::Directory(uri)
    } else {
        Item::Uri(uri)
    }
}

/// Returns true if the URIs of an entry, that of the skill and those of its files, are such that one server alone can have them.
/// Another URI may be one that another server serves, so that a skill would consist of files of two servers.
pub(crate) fn is_entry_of_one_server(entry: &JsonObject) -> bool {
    let own = |object: &JsonObject| {
        let uri = object.view().find("uri");
        uri.is_some_and(|uri| uri.as_str().is_some_and(|uri| is_of_one_server(&uri)))
    };
    let files = entry.view().find("resources");
    let files = files.and_then(|files| files.decode_as::<Vec<JsonObject>>().ok());
    own(entry) && files.unwrap_or_default().iter().all(own)
}

/// Returns the settings of the extension that capabilities declare; `None` if they do not declare it.
fn settings(capabilities: &JsonObject) -> Option<JsonObject> {
    let extensions = capabilities.view().find("extensions")?.object()?;
    Some(extensions.find(EXTENSION)?.object()?.to_object())
}

/// Returns true if capabilities declare the extension.
pub(crate) fn is_declared(capabilities: &JsonObject) -> bool {
    settings(capabilities).is_some()
}

/// Returns the settings of the extension for clients of all these servers, by the capabilities of each; `None` if none declares it.
/// Directories are declared if every server with skills has them: "A server that declares `directoryRead` MUST support the
/// method for every directory within the skill namespaces it serves".
pub(crate) fn joined_settings<'c>(all: impl Iterator<Item = &'c JsonObject>) -> Option<JsonObject> {
    let mut declared = all.filter_map(settings).peekable();
    declared.peek()?;
    let has_directories = declared.all(|settings| {
        let reads = settings.view().find(DIRECTORY_READ);
        reads.is_some_and(|reads| reads.text() == "true")
    });
    let settings = has_directories.then_some((DIRECTORY_READ, true));
    Some(settings.into_iter().collect())
}

/// Returns an answer of a server to a request of the extension without the files that the rules hide from the principal.
pub(crate) fn without_hidden(
    gate: &Gate,
    server: Option<&str>,
    method: &str,
    reply: Reply,
) -> Reply {
    let Reply::Result(result) = reply else {
        return reply;
    };
    if gate.rules().access.is_empty() {
        return Reply::Result(result);
    }
    let mut object = result.into_object();
    if object.get("cacheScope").is_some() {
        // What depends on the principal must not be shared between principals.
        object.insert("cacheScope", Json::string("private"));
    }
    match method {
        GET => {
            let skill = object.get("skill").map(JsonObject::try_from);
            if let Some(Ok(skill)) = skill {
                object.insert("skill", without_hidden_files(gate, server, skill));
            }
        }
        READ_DIRECTORY => object = without_hidden_files(gate, server, object),
        _ => {}
    }
    Reply::Result(RawResult::from(object))
}

/// Returns an object whose `resources` are a list without those that the rules hide; another value of the member, such as
/// `"dynamic"`, does not change.
pub(crate) fn without_hidden_files(
    gate: &Gate,
    server: Option<&str>,
    mut object: JsonObject,
) -> JsonObject {
    if server.is_some() && !gate.has_rule(server) {
        return object;
    }
    let resources = object.view().find("resources");
    let Some(Ok(mut resources)) = resources.map(|all| all.decode_as::<Vec<JsonObject>>()) else {
        return object;
    };
    let before = resources.len();
    resources.retain(|resource| {
        let uri = resource
            .view()
            .find("uri")
            .and_then(|uri| Some(uri.as_str()?.into_owned()));
        let normal = uri.as_deref().and_then(ResourceUri::parse);
        let media_type = resource.view().find("mimeType");
        let media_type = media_type.and_then(|media_type| Some(media_type.as_str()?.into_owned()));
        let item = match media_type.as_deref() {
            Some("inode/directory") => Item::Directory(normal.as_ref()),
            _ => Item::Uri(normal.as_ref()),
        };
        gate.shows(server, &item)
    });
    if resources.len() < before {
        object.insert("resources", Json::from_encode(&resources));
    }
    object
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Directories are declared if all servers with skills have them.
    #[test]
    fn settings_hold_for_every_server() {
        let capabilities = |settings: &str| -> JsonObject {
            let text = format!(r#"{{"extensions":{{"{EXTENSION}":{settings}}}}}"#);
            text.parse().expect("an object")
        };
        let with = capabilities(r#"{"directoryRead":true}"#);
        let without = capabilities("{}");
        let none = JsonObject::new();
        for (all, expected) in [
            (vec![], None),
            (vec![&none], None),
            (vec![&with, &none], Some(r#"{"directoryRead":true}"#)),
            (vec![&with, &without], Some("{}")),
            (vec![&without, &with], Some("{}")),
        ] {
            let settings = joined_settings(all.into_iter()).map(|settings| settings.to_string());
            assert_eq!(settings.as_deref(), expected);
        }
    }
}
