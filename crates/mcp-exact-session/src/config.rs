//! What a program says of itself: revisions in the order of its preference, a floor, capabilities, limits.
//!
//! Takes it once; a machine shares it with others and never changes it. Gives what is said towards one revision.

use std::sync::Arc;
use std::time::Duration;

use mcp_exact_wire::{Json, JsonObject, Revision};

use crate::capability;
use crate::error::ConfigError;
use crate::limits::{Limits, Patience};
use crate::log::Level;
use crate::revision::{self, Era, Rules, revisions};
use crate::seal::Seal;

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
        let floor = self.floor;
        self.revisions
            .iter()
            .filter_map(known)
            .filter(move |rules| {
                floor.is_none_or(|floor| revision::at_least(rules, floor.as_str()))
            })
    }

    pub(crate) fn of_era(&self, era: Era) -> impl Iterator<Item = &'static Rules> {
        self.rules().filter(move |rules| rules.era() == era)
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
}

/// How long results may be kept (from 2026-07-28 on).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CacheHint {
    /// Milliseconds.
    pub ttl_ms: u64,
    /// Whether others may be given the same result.
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
    /// Protects states that travel through the client (from 2026-07-28 on); without it there are none.
    pub seal: Option<Arc<dyn Seal>>,
    /// How long such a state can be used.
    pub state_lifetime: Duration,
    /// How long its own requests wait.
    pub patience: Patience,
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
            seal: None,
            state_lifetime: Duration::from_secs(600),
            patience: Patience::default(),
            limits: Limits::default(),
        }
    }

    /// Whether a session can start with it.
    ///
    /// # Errors
    /// [`ConfigError`].
    pub fn check(&self) -> Result<(), ConfigError> {
        self.offer.check()
    }

    pub(crate) fn towards(&self, rules: &Rules) -> JsonObject {
        capability::towards(rules, &self.capabilities)
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
    pub handshake: Duration,
    /// How long a probe waits: old servers stay silent (`basic/transports/stdio`, "Backward Compatibility"). Where no
    /// revision with a handshake is offered there is nothing to fall back to, and `handshake` counts.
    pub probe: Duration,
    /// How long requests wait that do not say so themselves.
    pub patience: Patience,
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
            handshake: Duration::from_secs(60),
            probe: Duration::from_secs(5),
            patience: Patience::default(),
            limits: Limits::default(),
        }
    }

    /// Whether a session can start with it.
    ///
    /// # Errors
    /// [`ConfigError`].
    pub fn check(&self) -> Result<(), ConfigError> {
        self.offer.check()
    }

    pub(crate) fn towards(&self, rules: &Rules) -> JsonObject {
        capability::towards(rules, &self.capabilities)
    }
}
