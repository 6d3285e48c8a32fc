//! Page that a host has read from a server: checked as far as it can be without showing it.
//!
//! What a page asks for and is not understood is refused, never granted, and listed; the page itself is then shown with less.

use std::fmt;

use thiserror::Error;

use super::settings::{Csp, PageSettings, Permission};
use super::source::{CspSource, NO_DOMAIN, is_domain};
use super::tool::ui_in;
use super::{MIME_TYPE, means_page_type};
use crate::client::ClientError;
use crate::content::decode_base64;
use crate::params::string_member;
use crate::protocol::{Json, JsonObject};

/// Size up to which [`Client::read_app`](crate::Client::read_app) takes a page, in bytes.
pub const MAX_PAGE_BYTES: usize = 8 << 20;

/// Number of sources of a page that are taken, of all four lists together.
const MAX_SOURCES: usize = 256;

/// Size of the sources of a page that are taken, of all four lists together: a policy names the resources up to five times, and
/// servers and browsers limit the size of a header.
const MAX_SOURCE_BYTES: usize = 4096;

/// Number of refused settings that are listed.
const MAX_REFUSED: usize = 32;

/// Number of characters of a refused value that are shown.
const MAX_SHOWN: usize = 80;

/// Page that a server offers for the results of a tool.
///
/// The document is text of a stranger. Show it in a sandboxed frame of an origin that has nothing else, with the
/// [policy](PageSettings::policy) and the [`allow` attribute](PageSettings::allow_attribute) of its settings.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct AppPage {
    /// URI of the page, which begins with `ui://`.
    pub uri: String,
    /// The HTML document.
    pub html: String,
    /// What the page may load and use.
    pub settings: PageSettings,
    /// What the page asks for and does not get, because it is not understood; at most 32 of these are listed.
    pub refused: Vec<RefusedSetting>,
}

/// Setting of a page that is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct RefusedSetting {
    /// JSON pointer of the setting, from `_meta.ui` on, such as `/csp/connectDomains/0`; empty for all settings.
    pub pointer: String,
    /// The refused value, shortened: text of the server.
    pub value: String,
    /// What is wrong with it.
    pub reason: String,
}

impl fmt::Display for RefusedSetting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:?} of the page {}: {:?}",
            self.pointer, self.reason, self.value
        )
    }
}

/// Reason why a page was not read, or why a page or a model may not call a tool.
#[derive(Debug, Clone, PartialEq, Error)]
#[non_exhaustive]
pub enum AppError {
    /// The tool has no page.
    #[error("the tool {0:?} has no page; show its result as text")]
    NoPage(String),
    /// The tool names a resource that is no page.
    #[error(
        "the page {uri:?} of the tool {tool:?} does not begin with ui://; its server must name a resource with this scheme"
    )]
    Scheme {
        /// Name of the tool.
        tool: String,
        /// URI of the resource.
        uri: String,
    },
    /// The server did not give the page.
    #[error("the page {uri:?} was not read: {error}")]
    Read {
        /// URI of the page.
        uri: String,
        /// Cause of the failure.
        error: Box<ClientError>,
    },
    /// The server gave what is no page.
    #[error("the page {uri:?} cannot be shown: {reason}")]
    Page {
        /// URI of the page.
        uri: String,
        /// What is wrong, by which rule of the extension.
        reason: String,
    },
    /// There is no such tool, or none that a model may call ([`HostTools::for_model_call`](crate::HostTools::for_model_call)).
    #[error("there is no tool {0:?} for a model; its tools are those of its list")]
    NotForModel(String),
    /// The server has no such tool, or none that its pages may call
    /// ([`HostTools::for_page`](crate::HostTools::for_page)).
    #[error("pages of server {server:?} may not call {tool:?}")]
    NotForPages {
        /// Name of the server.
        server: String,
        /// Name of the tool, as the page gave it.
        tool: String,
    },
    /// The page is larger than the limit.
    #[error(
        "the page {uri:?} has {bytes} bytes, and {limit} are allowed; raise the limit with `read_app_within`"
    )]
    TooLarge {
        /// URI of the page.
        uri: String,
        /// Size of the page.
        bytes: usize,
        /// Limit, in bytes.
        limit: usize,
    },
}

impl AppPage {
    /// Makes a page of the contents of a resource. `listed` are the settings of the resource in the list of the server, which
    /// apply if the contents have none.
    pub(crate) fn of_contents(
        uri: &str,
        items: &[JsonObject],
        listed: &PageUi,
        limit: usize,
    ) -> Result<Self, AppError> {
        let fail = |reason: String| AppError::Page {
            uri: uri.to_owned(),
            reason,
        };
        let [item] = items else {
            let count = items.len();
            return Err(fail(format!(
                "the server gave {count} contents; a page is one"
            )));
        };
        let found = string_member(item, "uri").unwrap_or_default();
        if found != uri {
            let found = shortened(&found);
            return Err(fail(format!(
                "the server gave contents with the URI {found:?}; they must have the URI that is read"
            )));
        }
        let mime_type = string_member(item, "mimeType").unwrap_or_default();
        if !means_page_type(&mime_type) {
            let found = shortened(&mime_type);
            return Err(fail(format!(
                "its media type is {found:?}; pages are {MIME_TYPE}"
            )));
        }
        let too_large = |bytes: usize| AppError::TooLarge {
            uri: uri.to_owned(),
            bytes,
            limit,
        };
        for name in ["text", "blob"] {
            let is_given = item.view().find(name).is_some();
            if is_given && string_member(item, name).is_none() {
                let reason = "is not a string, or is one with half a surrogate pair";
                return Err(fail(format!("`{name}` {reason}")));
            }
        }
        let html = match (string_member(item, "text"), string_member(item, "blob")) {
            (Some(text), None) => text,
            (None, Some(blob)) if blob.len() / 4 * 3 > limit.saturating_add(2) => {
                return Err(too_large(blob.len() / 4 * 3));
            }
            (None, Some(blob)) => {
                let bytes = decode_base64(&blob);
                let bytes = bytes.ok_or_else(|| fail("`blob` is not base64".to_owned()))?;
                String::from_utf8(bytes).map_err(|_| fail("it is not in UTF-8".to_owned()))?
            }
            _ => {
                let reason = "it has neither `text` nor `blob`, or both";
                return Err(fail(reason.to_owned()));
            }
        };
        if html.len() > limit {
            return Err(too_large(html.len()));
        }
        let own = PageUi::of(item);
        let ui = if own.is_given() { &own } else { listed };
        let (settings, refused) = SettingsReader::read(ui);
        Ok(Self {
            uri: uri.to_owned(),
            html,
            settings,
            refused,
        })
    }
}

/// `_meta.ui` of contents or of a resource; the error is what stands in its place.
#[derive(Debug, Default)]
pub(crate) struct PageUi(Option<Result<JsonObject, Json>>);

impl PageUi {
    /// Reads `_meta.ui`.
    pub(crate) fn of(object: &JsonObject) -> Self {
        Self(ui_in(object).transpose())
    }

    /// Returns true if there is one, well-formed or not.
    pub(crate) fn is_given(&self) -> bool {
        self.0.is_some()
    }
}

/// Returns the beginning of a text.
fn shortened(text: &str) -> String {
    let mut shown: String = text.chars().take(MAX_SHOWN).collect();
    if shown.len() < text.len() {
        shown.push('…');
    }
    shown
}

/// Reader of the settings of a page.
#[derive(Default)]
struct SettingsReader {
    settings: PageSettings,
    refused: Vec<RefusedSetting>,
    /// Number of sources that were taken.
    sources: usize,
    /// Size of the sources that were taken, in bytes.
    source_bytes: usize,
}

impl SettingsReader {
    /// Reads `_meta.ui`. Members that the specification does not define are no settings.
    fn read(ui: &PageUi) -> (PageSettings, Vec<RefusedSetting>) {
        let mut reader = Self::default();
        let ui = match &ui.0 {
            None => return Default::default(),
            Some(Err(other)) => {
                reader.refuse(String::new(), other.text(), "is not an object");
                return (reader.settings, reader.refused);
            }
            Some(Ok(ui)) => ui,
        };
        for (name, value) in ui.view().iter() {
            let value = value.to_json();
            match &*name {
                "csp" => reader.read_csp(&value),
                "permissions" => reader.read_permissions(&value),
                "domain" => reader.read_domain(&value),
                "prefersBorder" => match value.text() {
                    "true" => reader.settings.prefers_border = Some(true),
                    "false" => reader.settings.prefers_border = Some(false),
                    other => reader.refuse(
                        "/prefersBorder".to_owned(),
                        other,
                        "is neither true nor false",
                    ),
                },
                _ => {}
            }
        }
        (reader.settings, reader.refused)
    }

    /// Notes a setting that is refused.
    fn refuse(&mut self, pointer: String, value: &str, reason: impl Into<String>) {
        if self.refused.len() < MAX_REFUSED {
            self.refused.push(RefusedSetting {
                pointer: shortened(&pointer),
                value: shortened(value),
                reason: reason.into(),
            });
        }
    }

    /// Reads the lists of hosts.
    fn read_csp(&mut self, value: &Json) {
        let Ok(csp) = JsonObject::try_from(value.clone()) else {
            return self.refuse("/csp".to_owned(), value.text(), "is not an object");
        };
        let names = Csp::default().lists().map(|(name, _)| name);
        let [connect, resources, frames, base_uris] =
            names.map(|name| self.read_sources(name, csp.get(name)));
        self.settings.csp = Csp {
            connect,
            resources,
            frames,
            base_uris,
        };
    }

    /// Reads a list of hosts, which may be absent.
    fn read_sources(&mut self, name: &str, value: Option<Json>) -> Vec<CspSource> {
        let pointer = format!("/csp/{name}");
        let Some(value) = value else {
            return Vec::new();
        };
        let Ok(items) = value.decode_as::<Vec<Json>>() else {
            self.refuse(pointer, value.text(), "is not a list");
            return Vec::new();
        };
        let permits_schemes = matches!(name, "connectDomains" | "resourceDomains");
        let mut sources = Vec::new();
        for (at, item) in items.iter().enumerate() {
            let pointer = format!("{pointer}/{at}");
            if self.sources == MAX_SOURCES {
                let reason = format!("is behind the first {MAX_SOURCES} hosts of the page");
                self.refuse(pointer, item.text(), reason);
                break;
            }
            let text = item.view().as_str();
            let text = text.as_deref();
            match text.map(|text| CspSource::parse_for(text, permits_schemes)) {
                Some(Ok(source)) => {
                    let bytes = self.source_bytes + source.as_str().len();
                    if bytes > MAX_SOURCE_BYTES {
                        let reason = format!("is behind {MAX_SOURCE_BYTES} bytes of hosts");
                        self.refuse(pointer, item.text(), reason);
                        break;
                    }
                    self.source_bytes = bytes;
                    self.sources += 1;
                    sources.push(source);
                }
                Some(Err(error)) => self.refuse(pointer, item.text(), error.to_string()),
                None => self.refuse(pointer, item.text(), "is not a string"),
            }
        }
        sources
    }

    /// Reads the permissions; an object stands for each that is asked for.
    fn read_permissions(&mut self, value: &Json) {
        let Ok(permissions) = JsonObject::try_from(value.clone()) else {
            return self.refuse("/permissions".to_owned(), value.text(), "is not an object");
        };
        for (name, value) in permissions.view().iter() {
            let known = Permission::ALL.into_iter().find(|one| one.name() == name);
            // As RFC 6901 writes a name.
            let escaped = name.replace('~', "~0").replace('/', "~1");
            let pointer = format!("/permissions/{escaped}");
            match known {
                Some(permission) if value.object().is_some() => {
                    self.settings.permissions.insert(permission);
                }
                Some(_) => self.refuse(pointer, value.text(), "is not an object"),
                None => self.refuse(pointer, value.text(), "is not a known permission"),
            }
        }
    }

    /// Reads the origin that the page asks for.
    fn read_domain(&mut self, value: &Json) {
        let text = value.view().as_str();
        match text.as_deref() {
            Some(domain) if is_domain(domain) => self.settings.domain = Some(domain.to_owned()),
            _ => self.refuse("/domain".to_owned(), value.text(), NO_DOMAIN),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Makes a page of contents that are JSON.
    fn page(contents: &str) -> Result<AppPage, String> {
        let items: Vec<JsonObject> = contents
            .parse::<Json>()
            .expect("JSON")
            .decode_as()
            .expect("objects");
        let listed = PageUi::default();
        AppPage::of_contents("ui://a", &items, &listed, 40).map_err(|error| error.to_string())
    }

    /// "mimeType MUST be `text/html;profile=mcp-app`", "Content MUST be provided via either `text` (string) or `blob`
    /// (base64-encoded)" (Content Requirements).
    #[test]
    fn contents_are_one_page() {
        let html = r#""uri":"ui://a","mimeType":"text/html;profile=mcp-app""#;
        let text = page(&format!(r#"[{{{html},"text":"<p>é"}}]"#));
        assert_eq!(text.expect("a page").html, "<p>é");
        let blob = page(&format!(r#"[{{{html},"blob":"PHA+w6k="}}]"#));
        assert_eq!(blob.expect("a page").html, "<p>é");
        let long = "x".repeat(41);
        let blob_of_long = "eHh4".repeat(20);
        for (contents, problem) in [
            ("[]".to_owned(), "the server gave 0 contents"),
            ("[{},{}]".to_owned(), "the server gave 2 contents"),
            (
                r#"[{"text":"<p>"}]"#.to_owned(),
                r#"contents with the URI """#,
            ),
            (
                format!(
                    "[{{{},\"text\":\"<p>\"}}]",
                    html.replace("ui://a", "ui://b")
                ),
                r#"contents with the URI "ui://b"; they must have the URI that is read"#,
            ),
            (
                r#"[{"uri":"ui://a","text":"<p>"}]"#.to_owned(),
                r#"its media type is """#,
            ),
            (
                r#"[{"uri":"ui://a","mimeType":"text/html","text":"<p>"}]"#.to_owned(),
                r#"its media type is "text/html"; pages are text/html;profile=mcp-app"#,
            ),
            (format!("[{{{html}}}]"), "it has neither `text` nor `blob`"),
            (format!(r#"[{{{html},"text":"","blob":""}}]"#), "or both"),
            (
                format!(r#"[{{{html},"text":5}}]"#),
                "`text` is not a string",
            ),
            (
                format!(r#"[{{{html},"text":"<p>\ud800"}}]"#),
                "or is one with half a surrogate pair",
            ),
            (
                format!(r#"[{{{html},"blob":"?"}}]"#),
                "`blob` is not base64",
            ),
            (
                format!(r#"[{{{html},"blob":"/w=="}}]"#),
                "it is not in UTF-8",
            ),
            (
                format!(r#"[{{{html},"text":"{long}"}}]"#),
                "has 41 bytes, and 40 are allowed",
            ),
            (
                format!(r#"[{{{html},"blob":"{blob_of_long}"}}]"#),
                "has 60 bytes, and 40 are allowed",
            ),
        ] {
            let error = page(&contents).expect_err(&contents);
            assert!(error.contains(problem), "{contents}: {error}");
        }
    }

    /// What a page asks for and is not understood is not granted, whatever else it asks for.
    #[test]
    fn settings_are_refused_one_by_one() {
        let ui: JsonObject = r#"{
            "csp": {
                "connectDomains": ["https://a.example.com", "https://b.example.com; script-src *", 7],
                "resourceDomains": "https://c.example.com",
                "frameDomains": ["data:"],
                "baseUriDomains": null,
                "workerDomains": ["https://d.example.com"]
            },
            "permissions": {"camera": {}, "microphone": true, "u/s~b": {}},
            "domain": "a\nb",
            "prefersBorder": 1,
            "later": {"anything": []}
        }"#
        .parse()
        .expect("an object");
        let (settings, refused) = SettingsReader::read(&PageUi(Some(Ok(ui))));
        let shown = refused[0].to_string();
        assert_eq!(
            shown.split(' ').next(),
            Some(r#""/csp/connectDomains/1""#),
            "{shown}"
        );
        assert_eq!(
            settings.object().text(),
            r#"{"csp":{"connectDomains":["https://a.example.com"]},"permissions":{"camera":{}}}"#
        );
        let refused: Vec<&str> = refused.iter().map(|one| &*one.pointer).collect();
        assert_eq!(
            refused,
            [
                "/csp/connectDomains/1",
                "/csp/connectDomains/2",
                "/csp/resourceDomains",
                "/csp/frameDomains/0",
                "/csp/baseUriDomains",
                "/permissions/microphone",
                "/permissions/u~1s~0b",
                "/domain",
                "/prefersBorder"
            ]
        );
    }

    /// A hostile list is cut, and so are the reports about it.
    #[test]
    fn lists_of_hosts_are_bounded() {
        let hosts: Vec<String> = (0..5000).map(|at| format!("h{at}.de")).collect();
        let bad = vec!["*".repeat(10_000); 5000];
        let csp = JsonObject::from_iter([
            ("connectDomains", Json::from_encode(&hosts)),
            ("frameDomains", Json::from_encode(&bad)),
        ]);
        let ui = JsonObject::from_iter([("csp", csp)]);
        let (settings, refused) = SettingsReader::read(&PageUi(Some(Ok(ui))));
        assert_eq!(settings.csp.connect.len(), MAX_SOURCES);
        assert!(refused.len() <= MAX_REFUSED);
        assert!(refused.iter().all(|one| one.value.len() < 100));
        let reason = "is behind the first 256 hosts of the page";
        assert_eq!(refused[0].reason, reason);
        let hosts: Vec<String> = (0..50)
            .map(|at| format!("h{at}.{}", "a.".repeat(60) + "de"))
            .collect();
        let csp = JsonObject::from_iter([("resourceDomains", Json::from_encode(&hosts))]);
        let ui = PageUi(Some(Ok(JsonObject::from_iter([("csp", csp)]))));
        let (settings, refused) = SettingsReader::read(&ui);
        let bytes = settings.csp.resources.iter();
        let bytes: usize = bytes.map(|source| source.as_str().len()).sum();
        assert!((4000..=MAX_SOURCE_BYTES).contains(&bytes), "{bytes}");
        assert_eq!(refused[0].reason, "is behind 4096 bytes of hosts");
    }

    /// "Format and validation rules are determined by each host" (UI Resource Format, `domain`).
    #[test]
    fn domains_are_for_the_host_to_check() {
        for domain in [
            "https://my-app.example.com",
            "a904794854a047f6.claudemcpcontent.com",
            "my-app",
        ] {
            let ui = JsonObject::from_iter([("domain", Json::string(domain))]);
            let (settings, refused) = SettingsReader::read(&PageUi(Some(Ok(ui))));
            assert_eq!(settings.domain.as_deref(), Some(domain));
            assert_eq!(refused, []);
        }
    }

    /// "Hosts read it from the `resources/read` content item (with `resources/list` entry as fallback)" (`McpUiToolMeta`).
    #[test]
    fn contents_precede_the_list() {
        let listed = r#"{"_meta":{"ui":{"prefersBorder":true}}}"#;
        let listed = PageUi::of(&listed.parse().expect("an object"));
        let refusals = std::cell::RefCell::new(Vec::<String>::new());
        let border = |meta: &str| {
            let item = format!(
                r#"{{"uri":"ui://a","mimeType":"text/html;profile=mcp-app","text":"<p>"{meta}}}"#
            );
            let items = [item.parse().expect("an item")];
            let page = AppPage::of_contents("ui://a", &items, &listed, 40);
            let page = page.expect("a page");
            let refused = page.refused.iter().map(ToString::to_string).collect();
            *refusals.borrow_mut() = refused;
            page.settings.prefers_border
        };
        assert_eq!(border(""), Some(true));
        assert_eq!(border(r#","_meta":{"other":1}"#), Some(true));
        assert_eq!(border(r#","_meta":{"ui":{}}"#), None);
        assert_eq!(
            border(r#","_meta":{"ui":{"prefersBorder":false}}"#),
            Some(false)
        );
        assert!(refusals.borrow().is_empty());
        // Settings that are not understood are none, whatever the list says.
        assert_eq!(border(r#","_meta":{"ui":"x"}"#), None);
        assert_eq!(
            *refusals.borrow(),
            [r#""" of the page is not an object: "\"x\"""#]
        );
    }
}
