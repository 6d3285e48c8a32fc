//! Pages of lists (`server/utilities/pagination`).
//!
//! A cursor contains the name of the last entry of its page, so that insertions and removals between two pages neither
//! repeat nor skip other entries. Cursors are opaque to clients; those of lists that handlers supply are sealed.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use crate::protocol::{Json, JsonObject, PeerError, Principal, Seal, method};

/// Entry of a list: its name, and its definition in the revision of the client.
pub(super) struct ListEntry<'e> {
    /// Name or URI of the entry.
    pub(super) name: &'e str,
    /// Definition in the revision of the client, as JSON text.
    pub(super) definition: Arc<str>,
}

/// Returns one page of a list, with at most `size` entries in the member `member`, such as `tools`.
///
/// # Errors
/// The error to reply with: "Invalid cursors SHOULD result in an error with code -32602".
pub(super) fn list_page<'e>(
    member: &str,
    entries: &mut dyn Iterator<Item = ListEntry<'e>>,
    params: Option<&JsonObject>,
    size: usize,
) -> Result<JsonObject, PeerError> {
    let mut entries: Vec<ListEntry<'_>> = entries.collect();
    if let Some(cursor) = params.and_then(|params| params.get("cursor")) {
        let last = cursor
            .decode_as::<String>()
            .ok()
            .and_then(|cursor| entry_name_of_cursor(&cursor));
        let at = last.and_then(|last| entries.iter().position(|entry| entry.name == last));
        entries.drain(..=at.ok_or_else(invalid_cursor)?);
    }
    let more = entries.len() > size;
    entries.truncate(size);
    let last = entries.last().filter(|_| more);
    let next = last.map(|last| URL_SAFE_NO_PAD.encode(last.name));
    let forms: Vec<Arc<str>> = entries.into_iter().map(|entry| entry.definition).collect();
    page_object(member, &forms, next.as_deref())
}

/// Returns a page with these definitions; `next` is the cursor of the next page, in characters of base64url.
pub(super) fn page_object(
    member: &str,
    definitions: &[Arc<str>],
    next: Option<&str>,
) -> Result<JsonObject, PeerError> {
    let mut text = format!("{{{:?}:[{}]", member, definitions.join(","));
    if let Some(next) = next {
        text.push_str(&format!(",\"nextCursor\":\"{next}\""));
    }
    text.push('}');
    text.parse()
        .map_err(|error| PeerError::internal(format!("{error}")))
}

/// Returns the error for a cursor that the server has not given, or whose place is gone.
pub(super) fn invalid_cursor() -> PeerError {
    PeerError::invalid_params("the cursor is not valid any more; list from the beginning")
}

/// Decodes a cursor to the name of the last entry of its page.
pub(super) fn entry_name_of_cursor(cursor: &str) -> Option<String> {
    let bytes = URL_SAFE_NO_PAD.decode(cursor).ok()?;
    String::from_utf8(bytes).ok()
}

/// Seal of the cursors of a server.
pub(super) struct CursorSeal {
    pub(super) seal: Arc<dyn Seal>,
    /// Name of the server: servers that share their keys do not accept each other's cursors.
    pub(super) server: String,
}

impl CursorSeal {
    /// Returns the context in which the cursors of a principal are valid.
    pub(super) fn context(&self, principal: Option<&Principal>) -> Vec<u8> {
        let principal = principal.map(|Principal(name)| Json::string(name).text().to_owned());
        let principal = principal.as_deref().unwrap_or("null");
        let server = Json::string(&self.server);
        let context = format!(
            "[{:?},{},{principal}]",
            method::RESOURCES_LIST,
            server.text()
        );
        context.into_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the JSON text of the page after a cursor, or the message of the error. Without a cursor, returns the
    /// first page.
    fn page_text(cursor: Option<&str>) -> Result<String, String> {
        let names = ["a", "b", "c"];
        let mut entries = names.iter().map(|name| ListEntry {
            name,
            definition: format!("{{\"name\":{name:?}}}").into(),
        });
        let params = cursor.map(|cursor| {
            let cursor = crate::protocol::Json::string(cursor);
            JsonObject::from_iter([("cursor", cursor)])
        });
        let page = list_page("tools", &mut entries, params.as_ref(), 2);
        page.map(|page| page.to_string())
            .map_err(|error| error.message().to_owned())
    }

    /// The cursor of the first page selects the second page.
    #[test]
    fn list_pages_follow_each_other() {
        let first = r#"{"tools":[{"name":"a"},{"name":"b"}],"nextCursor":"Yg"}"#;
        assert_eq!(page_text(None).as_deref(), Ok(first));
        assert_eq!(
            page_text(Some("Yg")).as_deref(),
            Ok(r#"{"tools":[{"name":"c"}]}"#)
        );
    }

    #[test]
    fn unknown_cursors_are_refused() {
        let error = "the cursor is not valid any more; list from the beginning".to_owned();
        for cursor in ["", "ZZ", "?"] {
            assert_eq!(page_text(Some(cursor)), Err(error.clone()));
        }
    }
}
