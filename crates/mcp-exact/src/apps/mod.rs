//! MCP Apps: pages that hosts show for the results of tools (extension `io.modelcontextprotocol/ui`, revision 2026-01-26 of its
//! specification).
//!
//! A tool names the page of its results, a resource with the scheme `ui:` that the server has too
//! ([`Tool::ui`](crate::Tool::ui), [`ServerBuilder::app`](crate::ServerBuilder::app)). A client that shows pages says so
//! when it connects, in every revision; all others get the same results as text, and no tools that are for pages alone.
//!
//! ```
//! use mcp_exact::apps::{App, Visibility};
//! use mcp_exact::{Cx, Server, Tool};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let page = App::new("<!doctype html><title>Clock</title><p id=time></p>")
//!     .connect_domain("https://time.example.com")
//!     .prefers_border(true);
//! let server = Server::builder("clock", "1.0.0")
//!     .app("ui://clock/page.html", page)
//!     .tool(Tool::new("time").ui("ui://clock/page.html"), |cx: Cx| async move {
//!         if cx.client_supports_ui() { "12:00" } else { "It is noon." }
//!     })
//!     // The page calls this tool; a host keeps it from the model, and clients without pages do not get it.
//!     .tool(
//!         Tool::new("adjust").ui("ui://clock/page.html").visibility([Visibility::App]),
//!         || async { "done" },
//!     )
//!     .build()?;
//! # Ok(())
//! # }
//! ```
//!
//! The messages between a page and its host are the types of the crate `mcp-ext-apps` in the repository. It is a draft and not
//! published, because the official schema has members that revision 2026-01-26 of the specification does not have.
//!
//! # What a host does
//!
//! [`Connect::apps`](crate::Connect::apps) declares that pages are shown, [`HostTools::for_model`](crate::HostTools::for_model)
//! leaves out the tools that are for pages alone, [`HostTools::for_model_call`](crate::HostTools::for_model_call) admits the calls of a
//! model and [`HostTools::for_page`](crate::HostTools::for_page) those of a page,
//! and [`Client::read_app`](crate::Client::read_app) reads a page with what it may load and use. A page is text of a stranger:
//! show it in a sandbox of another origin only, with the [policy](PageSettings::policy) of its settings.

#[cfg(feature = "client")]
mod page;
mod served;
mod settings;
mod source;
mod tool;

#[cfg(feature = "client")]
pub(crate) use page::PageUi;
#[cfg(feature = "client")]
pub use page::{AppError, AppPage, MAX_PAGE_BYTES, RefusedSetting};
pub use served::App;
pub use settings::{Csp, PageSettings, Permission};
pub use source::{CspSource, InvalidSource};
pub use tool::{ToolUi, Visibility};
pub(crate) use tool::{is_for_models, without_page};

use crate::protocol::{Json, JsonObject, extension};

/// Identifier of the extension.
pub const EXTENSION: &str = "io.modelcontextprotocol/ui";

/// Media type of pages.
pub const MIME_TYPE: &str = "text/html;profile=mcp-app";

/// Deprecated member of a tool's `_meta` that names its page.
pub(crate) const DEPRECATED_URI: &str = "ui/resourceUri";

/// Begin of the URIs of pages.
pub(crate) const SCHEME: &str = "ui://";

/// Returns true if a URI is that of a page.
pub(crate) fn is_page_uri(uri: &str) -> bool {
    uri.len() > SCHEME.len() && uri.starts_with(SCHEME)
}

/// Returns true if a client means the media type of pages. Servers write it as [`MIME_TYPE`], which hosts compare exactly. Names compare without case, and spaces beside the semicolon mean nothing.
pub(crate) fn means_page_type(mime_type: &str) -> bool {
    let parts = |text: &str| -> Vec<String> {
        let parts = text.split(';').map(str::trim);
        parts.map(str::to_ascii_lowercase).collect()
    };
    parts(mime_type) == parts(MIME_TYPE)
}

/// Returns the settings with which a client declares that it shows pages (`McpUiClientCapabilities`).
#[cfg(feature = "client")]
pub(crate) fn client_settings() -> JsonObject {
    JsonObject::from_iter([("mimeTypes", Json::from_encode(&vec![MIME_TYPE.to_owned()]))])
}

/// Returns true if the capabilities of a client say that it shows pages.
pub(crate) fn is_supported_by(capabilities: &JsonObject) -> bool {
    let settings = extension::settings_in(capabilities, EXTENSION);
    let types = settings.and_then(|settings| settings.get("mimeTypes"));
    let types = types.and_then(|types| types.decode_as::<Vec<Json>>().ok());
    let mut types = types.into_iter().flatten();
    types.any(|one| one.view().as_str().is_some_and(|one| means_page_type(&one)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// "`mimeTypes`: Array of supported content types (REQUIRED)" (Client Capabilities).
    #[test]
    fn clients_name_the_media_type() {
        let is_supported = |settings: &str| {
            let text = format!(r#"{{"extensions":{{"{EXTENSION}":{settings}}}}}"#);
            is_supported_by(&text.parse().expect("capabilities"))
        };
        for settings in [
            r#"{"mimeTypes":["text/html;profile=mcp-app"]}"#,
            r#"{"mimeTypes":[1,"text/plain","Text/HTML; profile=mcp-app"],"features":[]}"#,
        ] {
            assert!(is_supported(settings), "{settings}");
        }
        for settings in [
            "{}",
            "[]",
            r#"{"mimeTypes":"text/html;profile=mcp-app"}"#,
            r#"{"mimeTypes":["text/html"]}"#,
            r#"{"mimeTypes":["text/html;profile=mcp-app;v=2"]}"#,
        ] {
            assert!(!is_supported(settings), "{settings}");
        }
        assert!(!is_supported_by(&JsonObject::new()));
    }
}
