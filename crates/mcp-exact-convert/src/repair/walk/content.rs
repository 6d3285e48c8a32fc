//! The content of a tool's result: what is no content becomes a text, so that no word of a server is lost.

use std::borrow::Cow;

use mcp_exact_wire::{Json, Kind, Reader, from_str};

use super::Walk;
use crate::layout::Layout;
use crate::place::cut;
use crate::repair::{RepairRule, object_text, replace_lone_surrogates};

/// Definition and member of the content of a tool's result.
pub(super) const TOOL_CONTENT: (&str, &str) = ("CallToolResult", "content");

/// Maximum number of bytes of a value that is no content, in the text that shows it.
const MAX_SHOWN_CONTENT: usize = 16 << 10;

impl Walk {
    /// Repairs the content of a tool's result. Nothing of it is left out: what is no content is a text.
    pub(super) fn tool_content<'t>(&mut self, text: &'t str, items: u16) -> Cow<'t, str> {
        self.bytes_read += text.len();
        let mut r = Reader::of_checked(text);
        if r.kind() != Ok(Kind::Array) {
            self.note(RepairRule::ToolContent, "expected an array");
            return format!("[{}]", self.tool_content_item(text, items, true)).into();
        }
        let (mut kept, mut index) = (String::from("["), 0_usize);
        let mut more = r.begin_array().unwrap_or_default();
        while more {
            let Ok(item) = r.raw() else { break };
            let outer = self.enter(&index.to_string());
            if kept.len() > 1 {
                kept.push(',');
            }
            kept.push_str(&self.tool_content_item(item, items, false));
            self.leave(outer);
            index += 1;
            more = r.next_item().unwrap_or_default();
        }
        kept.push(']');
        kept.into()
    }

    /// Repairs one item of the content of a tool's result; `is_told` is true if its repair has been recorded.
    fn tool_content_item<'t>(&mut self, text: &'t str, items: u16, is_told: bool) -> Cow<'t, str> {
        let mark = self.mark();
        match self.value(text, items) {
            Ok(item) => item,
            Err(unfit) => {
                self.undo(mark);
                if !is_told {
                    self.note(RepairRule::ToolContent, &unfit.reason);
                }
                self.bytes_read += text.len();
                text_content(text).into()
            }
        }
    }
}

/// Returns the members of a tool's result without `content` that no result has, as JSON; `None` if there are none, or if there is
/// structured content.
pub(super) fn words_elsewhere(
    kept: &[(Cow<'_, str>, Cow<'_, str>)],
    layout: &Layout,
) -> Option<String> {
    // Names may be written with escapes.
    let decoded = |quoted: &str| from_str::<String>(quoted).unwrap_or_default();
    let is_other = |quoted: &str| {
        let name = decoded(quoted);
        // Older revisions do not know all of them.
        layout.find(&name).is_none() && !["resultType", "structuredContent"].contains(&&*name)
    };
    let is_structured = |(name, _): &(Cow<'_, str>, _)| decoded(name) == "structuredContent";
    let words = kept.iter().filter(|(name, _)| is_other(name));
    let words = object_text(words.map(|(name, value)| (&**name, &**value)));
    (words != "{}" && !kept.iter().any(is_structured)).then_some(words)
}

/// Returns a content block with a text: the words of a string, or the JSON text of another value, of which a long one is cut.
pub(super) fn text_content(text: &str) -> String {
    let words = if text.starts_with('"') {
        replace_lone_surrogates(text)
    } else if text.len() > MAX_SHOWN_CONTENT {
        let mut cut_text = text.to_owned();
        cut(&mut cut_text, MAX_SHOWN_CONTENT);
        Json::string(&cut_text).text().to_owned().into()
    } else {
        Json::string(text).text().to_owned().into()
    };
    format!(r#"{{"type":"text","text":{words}}}"#)
}
