//! Configuration of a server, checked once and shared by all its endpoints.

use std::borrow::Cow;
use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use mcp_exact_convert::Tolerance;
use mcp_exact_revisions::{Lifecycle, RevisionSpec};
use mcp_exact_wire::{Json, JsonObject, JsonRef, RequestId};

use super::{Identity, Offer};
use crate::capabilities::DeclaredNames;
use crate::check_result::CheckResult;
use crate::error::ConfigError;
use crate::extensions::{Extensions, check_names};
use crate::http::ToolHeaders;
use crate::limits::{Limits, RequestTimeout};
use crate::log::Level;
use crate::message;
use crate::meta;
use crate::rules::results::{COMPLETE, RESULT_TYPE};
use crate::rules::{CachePolicy, Rule, capability};
use crate::seal::Seal;

/// Cache lifetime and cache scope of results (from 2026-07-28 on: `server/utilities/caching`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CacheHint {
    /// Lifetime in milliseconds; 0 by default.
    pub ttl_ms: u64,
    /// True if a cached result may be shared between users; false by default. Every list result carries this scope: all pages of
    /// a list must agree ("Interaction with Pagination").
    pub is_public: bool,
}

/// Handling of input requests and request states: by the endpoint or by the application (from 2026-07-28 on:
/// `basic/patterns/mrtr`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum InputMode {
    /// The endpoint seals states, counts retries, and delivers the input responses with the state.
    #[default]
    Managed,
    /// The application gets `requestState` as received and creates results of type `input_required` itself, as gateways
    /// do whose upstream server has created the state.
    ///
    /// The endpoint still checks that the client has declared the capabilities that the input requests need.
    PassThrough,
}

/// Configuration of a server, which [`build`](Self::build) checks.
#[derive(Debug, Clone)]
pub struct ServerConfig {
    /// Revisions that the server offers.
    pub offer: Offer,
    /// Identity of the server.
    pub identity: Identity,
    /// Capabilities of the server, in the form of the newest revision. In each revision, only the capabilities that the revision
    /// defines are declared.
    pub capabilities: JsonObject,
    /// Instructions for the use of the server.
    pub instructions: Option<String>,
    /// Extensions, and vendor-specific methods that no revision defines.
    pub extensions: Extensions,
    /// Minimum level of the log messages that are sent until the client chooses a level (up to 2025-11-25).
    pub log_level: Level,
    /// Cache hint of results for which the application sets none (from 2026-07-28 on).
    pub cache: CacheHint,
    /// True if list results keep the `cacheScope` that the application sets, as gateways need for the scopes of their
    /// upstream servers. By default every list carries the scope of `cache`.
    pub keeps_cache_scope: bool,
    /// Checks results before they are sent, for example against the output schema of the tool.
    pub result_check: Option<Arc<dyn CheckResult>>,
    /// Protects request states that the client echoes (from 2026-07-28 on); without a seal, replies cannot carry a state.
    pub seal: Option<Arc<dyn Seal>>,
    /// Handling of input requests and request states (from 2026-07-28 on).
    pub input: InputMode,
    /// Source of the header-mirrored parameters of each tool, so that the endpoint compares headers and arguments (from
    /// 2026-07-28 on, over HTTP); without it the application calls [`check_params`](crate::http::check_params).
    pub tool_headers: Option<Arc<dyn ToolHeaders>>,
    /// True if the application acknowledges subscriptions by
    /// [`ServerEndpoint::acknowledge`](crate::ServerEndpoint::acknowledge), as gateways need, which first subscribe at
    /// their upstream servers.
    ///
    /// By default the endpoint acknowledges a subscription immediately (from 2026-07-28 on:
    /// `basic/patterns/subscriptions`).
    pub application_acknowledges: bool,
    /// True if error codes that 2026-07-28 reserves or forbids pass unchanged. By default -32002 becomes -32602 and
    /// undefined codes from -32020 to -32099 become -32603.
    pub keeps_error_codes: bool,
    /// Time for which a sealed request state is valid.
    pub state_lifetime: Duration,
    /// Timeout of the requests that the server sends.
    pub request_timeout: RequestTimeout,
    /// Policy for what clients send: [`Tolerance::Strict`] by default, because repairs are the choice of an application.
    pub tolerance: Tolerance,
    /// Limits of each endpoint.
    pub limits: Limits,
}

impl ServerConfig {
    /// Creates a configuration that offers every revision and declares no capabilities.
    pub fn new(identity: Identity) -> Self {
        Self {
            offer: Offer::default(),
            identity,
            capabilities: JsonObject::new(),
            instructions: None,
            extensions: Extensions::default(),
            log_level: Level::Info,
            cache: CacheHint::default(),
            keeps_cache_scope: false,
            result_check: None,
            seal: None,
            input: InputMode::default(),
            tool_headers: None,
            application_acknowledges: false,
            keeps_error_codes: false,
            state_lifetime: Duration::from_secs(600),
            request_timeout: RequestTimeout::default(),
            tolerance: Tolerance::Strict,
            limits: Limits::default(),
        }
    }

    /// Checks the configuration and computes the settings that all endpoints share.
    ///
    /// # Errors
    /// [`ConfigError`] if the configuration is invalid.
    pub fn build(self) -> Result<Arc<ServerSettings>, ConfigError> {
        check_names(&self.capabilities)?;
        self.offer.check()?;
        let discover = self.offer.specs_of_lifecycle(Lifecycle::Discover);
        let results = discover
            .map(|spec| ResultDefaults::new(&self, spec))
            .collect();
        Ok(Arc::new(ServerSettings {
            results,
            declared_capabilities: DeclaredNames::from_object(&self.capabilities),
            offers_initialize: self.offer.offers(Lifecycle::Initialize),
            offers_discover: self.offer.offers(Lifecycle::Discover),
            shared_limits: Arc::new(self.limits.clone()),
            config: self,
        }))
    }
}

/// Checked configuration of a server; any number of endpoints can share one instance.
#[derive(Debug)]
pub struct ServerSettings {
    /// The checked configuration.
    config: ServerConfig,
    /// Default members of results, for each offered revision without handshake.
    results: Vec<ResultDefaults>,
    /// Precomputed lookup of the declared capabilities.
    pub(crate) declared_capabilities: DeclaredNames,
    /// Limits of the configuration, which all endpoints share.
    pub(crate) shared_limits: Arc<Limits>,
    /// True if a revision with handshake is offered.
    pub(crate) offers_initialize: bool,
    /// True if a revision without handshake is offered.
    pub(crate) offers_discover: bool,
}

impl Deref for ServerSettings {
    type Target = ServerConfig;

    fn deref(&self) -> &ServerConfig {
        &self.config
    }
}

impl ServerSettings {
    /// Returns the capabilities that are declared in a revision.
    pub(crate) fn capabilities_for(&self, spec: &RevisionSpec) -> JsonObject {
        let mut declared = capability::capabilities_for(spec, &self.capabilities);
        self.extensions.declare(spec, &mut declared);
        declared
    }

    /// Returns the members that results carry by default in a revision of the lifecycle `Discover`.
    pub(crate) fn result_defaults(&self, spec: &RevisionSpec) -> Option<&ResultDefaults> {
        let mut all = self.results.iter();
        all.find(|defaults| defaults.spec == spec)
    }
}

/// Members that every result carries from 2026-07-28 on, unless the application sets them.
#[derive(Debug)]
pub(crate) struct ResultDefaults {
    /// Revision of the results.
    spec: &'static RevisionSpec,
    /// Value of `resultType` for a complete result.
    complete_type: Json,
    /// `Implementation` of the server.
    server_info: Json,
    /// `_meta` object that contains only the server's `Implementation`.
    meta: JsonObject,
    /// Default value of `ttlMs`.
    ttl: Json,
    /// Default value of `cacheScope`.
    scope: Json,
    /// True if a `cacheScope` that the application sets is kept.
    keeps_scope: bool,
    /// Complete result of `server/discover`.
    discover_result: JsonObject,
}

/// Members of a result that [`ResultDefaults`] sets.
const DEFAULT_MEMBERS: [&str; 4] = [RESULT_TYPE, "ttlMs", "cacheScope", "_meta"];

/// Members of an application's result to which defaults apply.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ResultMembers<'a> {
    /// Value of the member `resultType`.
    pub(crate) kind: Option<JsonRef<'a>>,
    /// Value of the member `ttlMs`; present only for results with cache hints.
    pub(crate) ttl: Option<JsonRef<'a>>,
    /// Value of the member `cacheScope`; present only for results with cache hints.
    scope: Option<JsonRef<'a>>,
    /// Value of the member `_meta`.
    meta: Option<JsonRef<'a>>,
    /// Requirement on cache hints in the request's row of the rule table.
    cache_policy: CachePolicy,
}

impl<'a> ResultMembers<'a> {
    /// Finds the members in a result; `rule` is the request's row of the rule table, and without a row the result has
    /// no cache hints.
    pub(crate) fn find(result: &'a JsonObject, rule: Option<&Rule>) -> Self {
        let cached = rule.map_or(CachePolicy::Never, |rule| rule.cache_policy);
        let [name, .., meta] = DEFAULT_MEMBERS;
        let [kind, ttl, scope, meta] = match cached {
            CachePolicy::Never => {
                let [kind, meta] = result.view().find_rare([name, meta]);
                [kind, None, None, meta]
            }
            CachePolicy::Single | CachePolicy::List => result.view().find_rare(DEFAULT_MEMBERS),
        };
        Self {
            kind,
            ttl,
            scope,
            meta,
            cache_policy: cached,
        }
    }

    /// Removes the cache hints, for a result that is not final.
    pub(crate) fn without_cache_hints(self) -> Self {
        Self {
            ttl: None,
            scope: None,
            cache_policy: CachePolicy::Never,
            ..self
        }
    }
}

impl ResultDefaults {
    /// Creates the default members of results in this revision from the configuration of the server.
    fn new(config: &ServerConfig, spec: &'static RevisionSpec) -> Self {
        let scope = if config.cache.is_public {
            "public"
        } else {
            "private"
        };
        let info = Json::from(config.identity.to_object(spec));
        let mut declared = capability::capabilities_for(spec, &config.capabilities);
        config.extensions.declare(spec, &mut declared);
        let mut discover = JsonObject::from_iter([
            ("supportedVersions", Json::from_encode(&config.offer.ids())),
            ("capabilities", declared.into()),
        ]);
        if let Some(instructions) = &config.instructions {
            discover.insert("instructions", Json::string(instructions));
        }
        Self {
            spec,
            complete_type: Json::string(COMPLETE),
            meta: JsonObject::from_iter([(meta::SERVER_INFO, info.clone())]),
            server_info: info,
            ttl: config.cache.ttl_ms.into(),
            scope: Json::string(scope),
            keeps_scope: config.keeps_cache_scope,
            discover_result: discover,
        }
    }

    /// Returns the result of `server/discover`.
    pub(crate) fn discover_result(&self) -> &JsonObject {
        &self.discover_result
    }

    /// Builds the message of a result with the default members.
    pub(crate) fn build_message(
        &self,
        id: &RequestId,
        result: &JsonObject,
        members: &ResultMembers<'_>,
    ) -> Vec<u8> {
        let names = DEFAULT_MEMBERS;
        let present = [members.kind, members.ttl, members.scope, members.meta];
        let meta = match present[3].map(JsonRef::object) {
            None => Some(Cow::Borrowed(&self.meta)),
            Some(meta) => meta
                .filter(|meta| meta.find(meta::SERVER_INFO).is_none())
                .map(|meta| {
                    let with = meta.with_new([(meta::SERVER_INFO, Some(self.server_info.view()))]);
                    Cow::Owned(with.into())
                }),
        };
        let cached = members.cache_policy;
        let missing = |at: usize, value| present[at].map_or(Some(value), |_: JsonRef<'_>| None);
        let ttl = (cached != CachePolicy::Never).then_some(self.ttl.view());
        // All pages of a list carry the same scope, and the endpoint remembers none of them.
        let scope = match cached {
            CachePolicy::Never => None,
            CachePolicy::Single => missing(2, self.scope.view()),
            CachePolicy::List if self.keeps_scope => missing(2, self.scope.view()),
            CachePolicy::List => Some(self.scope.view()),
        };
        let more = [
            (names[0], missing(0, self.complete_type.view())),
            (names[1], ttl.and_then(|ttl| missing(1, ttl))),
            (names[2], scope),
            (names[3], meta.as_ref().map(|meta| meta.as_json().view())),
        ];
        let mut set = present.iter().zip(&more);
        let is_new = !set.any(|(present, (_, value))| present.is_some() && value.is_some());
        if is_new {
            message::write_result(id, result.view().with_new(more))
        } else {
            message::write_result(id, result.view().with(more))
        }
    }
}
