//! Page that a server offers: its HTML and its settings.

use std::borrow::Cow;

use super::settings::{PageSettings, Permission};
use super::source::{CspSource, NO_DOMAIN, is_domain};
use super::{MIME_TYPE, is_page_uri};
use crate::error::{Error, Problem};
use crate::reply::{Contents, IntoReply};

/// Page that hosts show: an HTML document, and what it may load and use. A handler of a resource can return it, and
/// [`ServerBuilder::app`](crate::ServerBuilder::app) registers one that is always the same.
///
/// Everything that the page does not declare is forbidden to it, including its own scripts from another host. A page that
/// consists of one document needs no declaration.
///
/// [`ServerBuilder::build`](crate::ServerBuilder::build) checks the declarations of a page that `app` registers. Those of a page that a
/// handler returns are known when it is read: reading it then fails with an error that names what to correct.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct App {
    /// The document.
    html: Cow<'static, str>,
    settings: PageSettings,
    /// What is wrong with the declarations, with a remedy.
    problems: Vec<String>,
}

/// Defines the setters of the lists of hosts.
macro_rules! domain_setters {
    ($($(#[doc = $docs:literal])* $setter:ident $list:ident $schemes:literal;)*) => {
        $(
            $(#[doc = $docs])*
            #[must_use]
            pub fn $setter(mut self, host: impl AsRef<str>) -> Self {
                match Self::source(stringify!($setter), host.as_ref(), $schemes) {
                    Ok(source) => self.settings.csp.$list.push(source),
                    Err(problem) => self.problems.push(problem),
                }
                self
            }
        )*
    };
}

impl App {
    /// Creates a page that loads and connects to nothing, from its HTML document.
    pub fn new(html: impl Into<Cow<'static, str>>) -> Self {
        let html = html.into();
        let mut problems = Vec::new();
        if !html
            .trim_start_matches(['\u{feff}', ' ', '\t', '\r', '\n'])
            .starts_with('<')
        {
            problems.push(
                "the page is not an HTML document; give its text, such as by `include_str!`"
                    .to_owned(),
            );
        }
        Self {
            html,
            settings: PageSettings::default(),
            problems,
        }
    }

    domain_setters! {
        /// Adds a [host](CspSource) to which the page may connect by `fetch`, `XMLHttpRequest` and `WebSocket`
        /// (`connectDomains`).
        connect_domain connect true;
        /// Adds a [host](CspSource) of images, scripts, styles, fonts and media (`resourceDomains`); `data:` and `blob:` are for
        /// images, fonts and media alone.
        resource_domain resources true;
        /// Adds a [host](CspSource) of nested frames (`frameDomains`).
        frame_domain frames false;
        /// Adds a [host](CspSource) of base URIs of the document (`baseUriDomains`).
        base_uri_domain base_uris false;
    }

    /// Asks for a feature of the browser. The host may refuse it; the page must detect what is there.
    #[must_use]
    pub fn permission(mut self, permission: Permission) -> Self {
        self.settings.permissions.insert(permission);
        self
    }

    /// Asks for an origin of its own, in the form that the host documents: each host has rules of its own, so it is not checked
    /// here beyond 255 bytes without control characters.
    #[must_use]
    pub fn domain(mut self, domain: impl Into<String>) -> Self {
        let domain = domain.into();
        if !is_domain(&domain) {
            self.problems.push(format!(
                "{domain:?} {NO_DOMAIN}; correct the argument of `domain`"
            ));
        }
        self.settings.domain = Some(domain);
        self
    }

    /// Asks for a visible border and background, or for none. Hosts differ in what they do otherwise.
    #[must_use]
    pub fn prefers_border(mut self, prefers_border: bool) -> Self {
        self.settings.prefers_border = Some(prefers_border);
        self
    }

    /// Returns the settings.
    pub fn settings(&self) -> &PageSettings {
        &self.settings
    }

    /// Returns the size of the document in bytes.
    pub(crate) fn size(&self) -> u64 {
        u64::try_from(self.html.len()).unwrap_or(u64::MAX)
    }

    /// Returns what is wrong with the page as the resource with this URI.
    pub(crate) fn problems(&self, uri: &str) -> Vec<Problem> {
        let scheme = (!is_page_uri(uri))
            .then(|| "the URI of a page begins with `ui://`; change it".to_owned());
        let reasons = scheme.into_iter().chain(self.problems.iter().cloned());
        reasons
            .map(|reason| Problem::Definition {
                kind: "resource",
                name: uri.to_owned(),
                reason,
            })
            .collect()
    }

    /// Parses a host; `setter` is the method that was called, which may permit schemes.
    fn source(setter: &str, host: &str, permits_schemes: bool) -> Result<CspSource, String> {
        let source = CspSource::parse_for(host, permits_schemes);
        source.map_err(|error| format!("{host:?} {error}; correct the argument of `{setter}`"))
    }
}

impl IntoReply<Contents> for App {
    fn into_reply(self) -> Result<Contents, Error> {
        if let Some(problem) = self.problems.into_iter().next() {
            return Err(Error::msg(problem));
        }
        let contents = Contents::text(self.html).mime_type(MIME_TYPE);
        let ui = self.settings.object();
        Ok(if ui.is_empty() {
            contents
        } else {
            contents.meta("ui", ui)
        })
    }
}
