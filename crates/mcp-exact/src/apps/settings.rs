//! What a page may load and use: its Content Security Policy, permissions of the browser, origin and border
//! (`McpUiResourceMeta`). Servers write the settings, hosts read them.

use std::collections::BTreeSet;

use super::source::CspSource;
use crate::protocol::{Json, JsonObject};

/// Settings of a page, `_meta.ui` of its contents (section "UI Resource Format").
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PageSettings {
    /// Hosts that the page uses.
    pub csp: Csp,
    /// Features of the browser that the page asks for. A host may refuse each of them.
    pub permissions: BTreeSet<Permission>,
    /// Origin that the page asks for, in a form that its host defines and checks; here it is a text of at most 255 bytes without
    /// control characters.
    pub domain: Option<String>,
    /// True if the page asks for a visible border and background, false if it asks for none; `None` to leave it to the host.
    pub prefers_border: Option<bool>,
}

/// Hosts that a page uses. A page without any can load and connect to nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Csp {
    /// Hosts for requests by `fetch`, `XMLHttpRequest` and `WebSocket`.
    pub connect: Vec<CspSource>,
    /// Hosts of images, scripts, styles, fonts and media.
    pub resources: Vec<CspSource>,
    /// Hosts of nested frames.
    pub frames: Vec<CspSource>,
    /// Hosts of base URIs of the document.
    pub base_uris: Vec<CspSource>,
}

impl Csp {
    /// Returns the lists with their names in the protocol.
    pub(super) fn lists(&self) -> [(&'static str, &Vec<CspSource>); 4] {
        [
            ("connectDomains", &self.connect),
            ("resourceDomains", &self.resources),
            ("frameDomains", &self.frames),
            ("baseUriDomains", &self.base_uris),
        ]
    }
}

/// Feature of the browser that a page can ask for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Permission {
    /// The camera.
    Camera,
    /// The microphone.
    Microphone,
    /// The position of the device.
    Geolocation,
    /// Writing to the clipboard.
    ClipboardWrite,
}

impl Permission {
    /// All permissions that the specification knows.
    pub(super) const ALL: [Self; 4] = [
        Self::Camera,
        Self::Microphone,
        Self::Geolocation,
        Self::ClipboardWrite,
    ];

    /// Returns the name in the protocol, such as `clipboardWrite`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Camera => "camera",
            Self::Microphone => "microphone",
            Self::Geolocation => "geolocation",
            Self::ClipboardWrite => "clipboardWrite",
        }
    }

    /// Returns the name of the feature in a Permissions Policy, such as `clipboard-write`.
    pub fn feature(self) -> &'static str {
        match self {
            Self::ClipboardWrite => "clipboard-write",
            other => other.name(),
        }
    }
}

impl PageSettings {
    /// Returns the value of the header `Content-Security-Policy` with which a host serves the page, by the section
    /// "Content Security Policy Enforcement". Connections, fonts and nested frames are forbidden unless the page declares a host,
    /// and forms are in every case.
    ///
    /// The policy of a page does not keep it from navigating its own frame to another address, which receives what the page puts in
    /// there. The policy of the document around the frame does: give that one a `frame-src` with the origin of the sandbox alone.
    pub fn policy(&self) -> String {
        let joined = |before: &str, sources: &[CspSource]| {
            let mut words: Vec<&str> = before.split_whitespace().collect();
            for source in sources {
                if !words.contains(&source.as_str()) {
                    words.push(source.as_str());
                }
            }
            words.join(" ")
        };
        let or = |sources: &[CspSource], with: &str, without: &str| match sources {
            [] => without.to_owned(),
            sources => joined(with, sources),
        };
        let csp = &self.csp;
        // A page that is scripted by `data:` is scripted by whatever it receives.
        let hosts = |sources: &[CspSource]| -> Vec<CspSource> {
            let sources = sources.iter().filter(|source| !source.is_scheme());
            sources.cloned().collect()
        };
        let code = hosts(&csp.resources);
        let directives = [
            "default-src 'none'".to_owned(),
            joined("script-src 'self' 'unsafe-inline'", &code),
            joined("style-src 'self' 'unsafe-inline'", &code),
            joined("img-src 'self' data:", &csp.resources),
            or(&csp.resources, "font-src 'self'", "font-src 'none'"),
            joined("media-src 'self' data:", &csp.resources),
            or(&csp.connect, "connect-src 'self'", "connect-src 'none'"),
            or(&hosts(&csp.frames), "frame-src", "frame-src 'none'"),
            "object-src 'none'".to_owned(),
            or(&hosts(&csp.base_uris), "base-uri", "base-uri 'self'"),
            "form-action 'none'".to_owned(),
        ];
        directives.join("; ")
    }

    /// Returns the value of the attribute `allow` of the frame that shows the page, such as `camera; clipboard-write`, if the host
    /// grants everything that the page asks for. Take from [`permissions`](Self::permissions) what it does not grant.
    pub fn allow_attribute(&self) -> String {
        let features = self.permissions.iter().map(|one| one.feature());
        features.collect::<Vec<_>>().join("; ")
    }

    /// Returns `_meta.ui` of the page; empty without settings.
    pub(crate) fn object(&self) -> JsonObject {
        let mut ui = JsonObject::new();
        let lists = self.csp.lists().into_iter();
        let lists = lists.filter(|(_, sources)| !sources.is_empty());
        let csp: JsonObject = lists
            .map(|(name, sources)| {
                let sources = sources.iter().map(|source| source.as_str().to_owned());
                (name, Json::from_encode(&sources.collect::<Vec<_>>()))
            })
            .collect();
        if !csp.is_empty() {
            ui.insert("csp", csp);
        }
        if !self.permissions.is_empty() {
            let names = self.permissions.iter().map(|one| one.name());
            let permissions: JsonObject = names
                .map(|name| (name, Json::from(JsonObject::new())))
                .collect();
            ui.insert("permissions", permissions);
        }
        if let Some(domain) = &self.domain {
            ui.insert("domain", Json::string(domain));
        }
        if let Some(prefers_border) = self.prefers_border {
            ui.insert("prefersBorder", prefers_border);
        }
        ui
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// "Restrictive Default: If `ui.csp` is omitted, Host MUST use" this policy (Host Behavior), and "Block dangerous features".
    #[test]
    fn nothing_is_allowed_by_default() {
        assert_eq!(
            PageSettings::default().policy(),
            "default-src 'none'; script-src 'self' 'unsafe-inline'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; \
             font-src 'none'; media-src 'self' data:; connect-src 'none'; frame-src 'none'; object-src 'none'; base-uri 'self'; \
             form-action 'none'"
        );
        assert_eq!(PageSettings::default().allow_attribute(), "");
        assert!(PageSettings::default().object().is_empty());
    }

    /// "CSP Enforcement: Host MUST construct CSP headers based on declared domains" (Host Behavior).
    #[test]
    fn declared_hosts_are_in_the_policy() {
        let source = |text: &str| vec![text.parse().expect("a source")];
        let settings = PageSettings {
            csp: Csp {
                connect: source("wss://a.example.com"),
                resources: source("https://*.b.example.com"),
                frames: source("https://c.example.com"),
                base_uris: source("https://d.example.com"),
            },
            permissions: Permission::ALL.into(),
            domain: Some("e.example.com".to_owned()),
            prefers_border: Some(false),
        };
        assert_eq!(
            settings.policy(),
            "default-src 'none'; script-src 'self' 'unsafe-inline' https://*.b.example.com; \
             style-src 'self' 'unsafe-inline' https://*.b.example.com; img-src 'self' data: https://*.b.example.com; \
             font-src 'self' https://*.b.example.com; media-src 'self' data: https://*.b.example.com; \
             connect-src 'self' wss://a.example.com; frame-src https://c.example.com; object-src 'none'; \
             base-uri https://d.example.com; form-action 'none'"
        );
        let allowed = "camera; microphone; geolocation; clipboard-write";
        assert_eq!(settings.allow_attribute(), allowed);
    }

    /// `data:` and `blob:` are no hosts: what they hold is not of the server, so no script and no frame is taken from them.
    #[test]
    fn schemes_grant_no_scripts_and_no_frames() {
        let schemes = ["data:", "blob:"].map(|text| text.parse().expect("a source"));
        let settings = PageSettings {
            csp: Csp {
                connect: schemes.to_vec(),
                resources: schemes.to_vec(),
                frames: schemes.to_vec(),
                base_uris: schemes.to_vec(),
            },
            ..PageSettings::default()
        };
        assert_eq!(
            settings.policy(),
            "default-src 'none'; script-src 'self' 'unsafe-inline'; style-src 'self' 'unsafe-inline'; \
             img-src 'self' data: blob:; font-src 'self' data: blob:; media-src 'self' data: blob:; \
             connect-src 'self' data: blob:; frame-src 'none'; object-src 'none'; base-uri 'self'; form-action 'none'"
        );
    }
}
