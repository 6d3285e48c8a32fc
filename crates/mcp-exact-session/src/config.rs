//! What a program says of itself: revisions in the order of its preference, a floor, capabilities, limits.
//!
//! Takes it once; a machine shares it with others and never changes it. Gives what is said towards one revision.

use std::sync::Arc;
use std::time::Duration;

use mcp_exact_wire::{Json, JsonObject, Revision};

use crate::capability;
use crate::error::ConfigError;
use crate::limits::{Limits, RequestTimeout};
use crate::log::Level;
use crate::meta;
use crate::revision::{self, Lifecycle, Rules, revisions};
use crate::seal::{CheckResult, Seal};

/// The revisions that one side speaks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Offer {
    /// In the order of preference, the most preferred one first.
    pub revisions: Vec<Revision>,
    /// The oldest revision that is spoken, whatever `revisions` says. Unknown revisions are neither older nor newer.
    pub floor: Option<Revision>,
}

impl Default for Offer {
    /// All that are compiled in, the newest first, without a floor.
    fn default() -> Self {
        Self {
            revisions: revisions().rev().collect(),
            floor: None,
        }
    }
}

impl Offer {
    /// These revisions, the most preferred one first.
    ///
    /// # Errors
    /// [`ConfigError::UnknownRevision`] for one that is not compiled in.
    pub fn of<'r>(ids: impl IntoIterator<Item = &'r str>) -> Result<Self, ConfigError> {
        let known = |id: &str| {
            let unknown = || ConfigError::UnknownRevision(id.to_owned());
            revision::find(id)
                .map(|rules| rules.revision)
                .ok_or_else(unknown)
        };
        Ok(Self {
            revisions: ids.into_iter().map(known).collect::<Result<_, _>>()?,
            floor: None,
        })
    }

    /// What is offered, in order.
    pub(crate) fn rules(&self) -> impl Iterator<Item = &'static Rules> {
        let known = |id: &Revision| revision::find(id.as_str());
        let above = |floor: &Revision| {
            let floor = known(floor).map(|floor| floor.revision);
            move |rules: &&Rules| {
                floor.is_some_and(|floor| revision::at_least(rules, floor.as_str()))
            }
        };
        let above = self.floor.as_ref().map(above);
        self.revisions
            .iter()
            .filter_map(known)
            .filter(move |rules| above.as_ref().is_none_or(|above| above(rules)))
    }

    pub(crate) fn of_lifecycle(&self, era: Lifecycle) -> impl Iterator<Item = &'static Rules> {
        self.rules().filter(move |rules| rules.lifecycle() == era)
    }

    /// The rules of a revision, when it is offered.
    pub(crate) fn find(&self, id: &str) -> Option<&'static Rules> {
        self.rules().find(|rules| rules.is(id))
    }

    pub(crate) fn list(&self) -> Vec<Revision> {
        self.rules().map(|rules| rules.revision).collect()
    }

    fn check(&self) -> Result<(), ConfigError> {
        let unknown = |id: &&Revision| revision::find(id.as_str()).is_none();
        if let Some(id) = self.revisions.iter().chain(&self.floor).find(unknown) {
            return Err(ConfigError::UnknownRevision(id.to_string()));
        }
        match self.rules().next() {
            Some(_) => Ok(()),
            None => Err(ConfigError::NoRevision),
        }
    }
}

/// What a program says of itself: `Implementation` in the specification.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// Its name, for programs.
    pub name: String,
    /// Its version.
    pub version: String,
    /// Its name, for people (from 2025-06-18 on).
    pub title: Option<String>,
    /// Anything more, such as `icons` or `websiteUrl` (from 2025-11-25 on).
    pub more: JsonObject,
}

impl Identity {
    /// A name and a version.
    pub fn new(name: impl Into<String>, version: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            version: version.into(),
            title: None,
            more: JsonObject::new(),
        }
    }

    /// As a revision has it.
    pub(crate) fn towards(&self, rules: &Rules) -> JsonObject {
        let mut said = JsonObject::from_iter([
            ("name", Json::string(&self.name)),
            ("version", Json::string(&self.version)),
        ]);
        if let Some(title) = &self.title
            && revision::at_least(rules, "2025-06-18")
        {
            said.insert("title", Json::string(title));
        }
        if revision::at_least(rules, "2025-11-25") {
            for (name, value) in self.more.iter() {
                said.insert(&name, value.parse().unwrap_or(Json::null()));
            }
        }
        said
    }
}

/// Methods beyond those of the revisions: of vendors and of extensions. They pass without a check of capabilities.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Extensions {
    /// Requests that this side answers.
    pub requests: Vec<String>,
    /// Notifications that this side takes.
    pub notifications: Vec<String>,
    /// Values of `resultType` that this side understands beside those of the core.
    pub result_types: Vec<String>,
    /// What is negotiated by name (from 2026-07-28 on: `basic/versioning`, "Extension Negotiation").
    pub negotiated: Vec<Extension>,
}

impl Extensions {
    /// The extension that adds a request of a client.
    pub(crate) fn of_request(&self, method: &str) -> Option<&Extension> {
        self.find(|extension| &extension.requests, method)
    }

    /// The extension that adds a notification of a server.
    pub(crate) fn of_notification(&self, method: &str) -> Option<&Extension> {
        self.find(|extension| &extension.notifications, method)
    }

    /// The extension that adds a type of results.
    pub(crate) fn of_result_type(&self, kind: &str) -> Option<&Extension> {
        self.find(|extension| &extension.result_types, kind)
    }

    fn find(&self, of: impl Fn(&Extension) -> &Vec<String>, name: &str) -> Option<&Extension> {
        let mut all = self.negotiated.iter();
        all.find(|extension| of(extension).iter().any(|known| known == name))
    }

    /// Declares the extensions beside other capabilities.
    fn declare(&self, rules: &Rules, capabilities: &mut JsonObject) {
        if rules.lifecycle() != Lifecycle::Discover || self.negotiated.is_empty() {
            return;
        }
        let said = capabilities.get("extensions");
        let said = said.and_then(|said| JsonObject::try_from(said).ok());
        let mut said = said.unwrap_or_default();
        for extension in &self.negotiated {
            if said.get(&extension.id).is_none() {
                said.insert(&extension.id, extension.settings.clone());
            }
        }
        capabilities.insert("extensions", said);
    }
}

/// An extension that both sides have to declare before it is used.
///
/// The machine declares it, refuses its methods, notifications and results where the other side has not declared it, and lets
/// them pass where it has. The types are those of the extension's own crate, such as `mcp-ext-tasks`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Extension {
    /// Its identifier, such as `io.modelcontextprotocol/tasks`.
    pub id: String,
    /// What is declared for it; an empty object where it has no settings.
    pub settings: JsonObject,
    /// Requests of a client that it adds.
    pub requests: Vec<String>,
    /// The parameter of these requests that `Mcp-Name` mirrors over HTTP.
    pub named_by: Option<String>,
    /// Notifications of a server that it adds.
    pub notifications: Vec<String>,
    /// Values of `resultType` that it adds.
    pub result_types: Vec<String>,
    /// Members of the filter of `subscriptions/listen` that it adds.
    pub filters: Vec<String>,
}

impl Extension {
    /// An extension that adds nothing yet.
    pub fn new(id: impl Into<String>) -> Self {
        Self {
            id: id.into(),
            ..Self::default()
        }
    }

    /// Whether the other side has declared it.
    pub(crate) fn declared(&self, capabilities: &JsonObject) -> bool {
        capability::declared(capabilities, &["extensions", &self.id])
    }

    /// Its name among capabilities.
    pub(crate) fn capability(&self) -> String {
        format!("extensions.{}", self.id)
    }
}

/// How long results may be kept (from 2026-07-28 on).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CacheHint {
    /// Milliseconds.
    pub ttl_ms: u64,
    /// Whether others may be given the same result. Lists always say what stands here: all pages of a list have to say the
    /// same (`server/utilities/caching`, "Interaction with Pagination").
    pub public: bool,
}

impl Default for CacheHint {
    /// Not at all, and to nobody else.
    fn default() -> Self {
        Self {
            ttl_ms: 0,
            public: false,
        }
    }
}

/// What a server says of itself.
#[derive(Debug, Clone)]
pub struct ServerConfig {
    /// The revisions that it speaks.
    pub offer: Offer,
    /// Who it is.
    pub identity: Identity,
    /// What it can do, as the newest revision spells it. Towards each revision only what that one defines is declared.
    pub capabilities: JsonObject,
    /// How to use it.
    pub instructions: Option<String>,
    /// Methods beyond those of the revisions.
    pub extensions: Extensions,
    /// The lowest level that is sent while the client has not chosen one (up to 2025-11-25).
    pub log_level: Level,
    /// How long results may be kept that do not say so themselves (from 2026-07-28 on).
    pub cache: CacheHint,
    /// Checks results before they leave, such as against the output schema of the tool.
    pub results: Option<Arc<dyn CheckResult>>,
    /// Protects states that travel through the client (from 2026-07-28 on); without it there are none.
    pub seal: Option<Arc<dyn Seal>>,
    /// How long such a state can be used.
    pub state_lifetime: Duration,
    /// How long its own requests wait.
    pub request_timeout: RequestTimeout,
    /// Its bounds.
    pub limits: Limits,
}

impl ServerConfig {
    /// A server that speaks every revision and declares nothing.
    pub fn new(identity: Identity) -> Self {
        Self {
            offer: Offer::default(),
            identity,
            capabilities: JsonObject::new(),
            instructions: None,
            extensions: Extensions::default(),
            log_level: Level::Info,
            cache: CacheHint::default(),
            results: None,
            seal: None,
            state_lifetime: Duration::from_secs(600),
            request_timeout: RequestTimeout::default(),
            limits: Limits::default(),
        }
    }

    /// Whether a session can start with it.
    ///
    /// # Errors
    /// [`ConfigError`].
    pub fn check(&self) -> Result<(), ConfigError> {
        check_extensions(&self.capabilities)?;
        self.offer.check()
    }

    pub(crate) fn towards(&self, rules: &Rules) -> JsonObject {
        let mut said = capability::towards(rules, &self.capabilities);
        self.extensions.declare(rules, &mut said);
        said
    }
}

/// What a client says of itself.
#[derive(Debug, Clone)]
pub struct ClientConfig {
    /// The revisions that it speaks.
    pub offer: Offer,
    /// Who it is.
    pub identity: Identity,
    /// What it can do, as the newest revision spells it. Towards each revision only what that one defines is declared.
    pub capabilities: JsonObject,
    /// Methods beyond those of the revisions.
    pub extensions: Extensions,
    /// How long the first answer of a server may take.
    pub handshake_timeout: Duration,
    /// How long a probe waits: old servers stay silent (`basic/transports/stdio`, "Backward Compatibility"). Where no
    /// revision with a handshake is offered there is nothing to fall back to, and `handshake` counts.
    pub probe_timeout: Duration,
    /// How long requests wait that do not say so themselves.
    pub request_timeout: RequestTimeout,
    /// Its bounds.
    pub limits: Limits,
}

impl ClientConfig {
    /// A client that speaks every revision and declares nothing.
    pub fn new(identity: Identity) -> Self {
        Self {
            offer: Offer::default(),
            identity,
            capabilities: JsonObject::new(),
            extensions: Extensions::default(),
            handshake_timeout: Duration::from_secs(60),
            probe_timeout: Duration::from_secs(5),
            request_timeout: RequestTimeout::default(),
            limits: Limits::default(),
        }
    }

    /// Whether a session can start with it.
    ///
    /// # Errors
    /// [`ConfigError`].
    pub fn check(&self) -> Result<(), ConfigError> {
        check_extensions(&self.capabilities)?;
        check_elicitation(&self.capabilities)?;
        self.offer.check()
    }

    pub(crate) fn towards(&self, rules: &Rules) -> JsonObject {
        let mut said = capability::towards(rules, &self.capabilities);
        self.extensions.declare(rules, &mut said);
        said
    }
}

/// "Clients declaring the `elicitation` capability MUST support at least one mode"; an empty object means `form`
/// (`client/elicitation`, "Capabilities").
fn check_elicitation(capabilities: &JsonObject) -> Result<(), ConfigError> {
    let declared = capabilities.get("elicitation").map(JsonObject::try_from);
    let none = match declared {
        None => false,
        Some(Err(_)) => true,
        Some(Ok(modes)) => {
            let able = |mode: &str| capability::declared(&modes, &[mode]);
            !modes.is_empty() && !able("form") && !able("url")
        }
    };
    match none {
        true => Err(ConfigError::NoElicitationMode),
        false => Ok(()),
    }
}

/// Names of extensions are keys of `_meta` with a prefix (2026-07-28, `basic`, "Extensions").
fn check_extensions(capabilities: &JsonObject) -> Result<(), ConfigError> {
    let extensions = capabilities.get("extensions").map(JsonObject::try_from);
    let Some(Ok(extensions)) = extensions else {
        return Ok(());
    };
    let bad = |name: &str| !name.contains('/') || !meta::is_key(name);
    let found = extensions
        .iter()
        .map(|(name, _)| name.into_owned())
        .find(|name| bad(name));
    match found {
        Some(name) => Err(ConfigError::Extension(name)),
        None => Ok(()),
    }
}
