//! Admission of requests to a server: whether the rules let a request through, and the params that are sent.
//!
//! [`Gate::admit`] alone creates an [`Admitted`], and only an [`Admitted`] can be relayed, so that rules, audit log, routing
//! and the server have one reading of a request.

use std::sync::Arc;

use mcp_exact_session::code::INVALID_PARAMS;
use mcp_exact_session::{IncomingRequest, InputResponses, Json, JsonObject, PeerError, Principal};
use mcp_exact_tool_schema::ServerCatalogue;
use mcp_exact_transport::RequestContext;

use crate::around::access::{self, Item};
use crate::around::cache::CacheTicket;
use crate::around::live::LiveRules;
use crate::around::names::Kind;
use crate::around::pin_states::PinStates;
use crate::around::pins::Pins;
use crate::around::resource_uri::ResourceUri;
use crate::around::rules::Rules;
use crate::around::server_uris::ServerUris;
use crate::around::skills;
use crate::around::target::{self, Target, missing_member, renamed};

/// Rules for one request: those that apply when it arrives, until it ends.
#[derive(Debug, Clone)]
pub(crate) struct Gate {
    rules: Arc<Rules>,
    pins: Arc<PinStates>,
    principal: Option<Principal>,
}

impl Gate {
    pub(crate) fn new(live: &LiveRules, principal: Option<&Principal>) -> Self {
        Self {
            rules: live.rules(),
            pins: Arc::clone(live.pins()),
            principal: principal.cloned(),
        }
    }

    /// Returns the rules.
    pub(crate) fn rules(&self) -> &Rules {
        &self.rules
    }

    /// Returns the principal of the request.
    pub(crate) fn principal(&self) -> Option<&str> {
        self.principal.as_ref().map(|Principal(name)| name.as_str())
    }

    /// Returns true if the principal may see and use an item of the server with this name; `None` is a server that was removed.
    pub(crate) fn shows(&self, server: Option<&str>, item: &Item<'_>) -> bool {
        let rules = &self.rules.access;
        server.is_some_and(|server| access::may_use(rules, server, self.principal(), item))
    }

    /// Returns true if access rules let the principal see and use a tool or prompt. The name is the one in the server's own list.
    pub(crate) fn shows_named(&self, server: Option<&str>, kind: Kind, own: &str) -> bool {
        let is_left_out = kind == Kind::Tool && self.leaves_out(server, own);
        !is_left_out && self.shows(server, &Item::Name(own))
    }

    /// Returns the catalogue of the tools of a server.
    pub(crate) fn catalogue(&self, server: Option<&str>) -> Option<&ServerCatalogue> {
        self.rules.catalogue.server(server?)
    }

    /// Returns true if clients may get other tools than those that the server with this name lists.
    pub(crate) fn changes_tools(&self, server: &str) -> bool {
        let withholds = self.rules.pins.as_ref().is_some_and(Pins::withholds);
        withholds || self.rules.search.is_some() || self.catalogue(Some(server)).is_some()
    }

    /// Returns the number of changes of servers so far if the definition of a tool has to be seen before it can be called.
    pub(crate) fn unseen_since(&self, server: Option<&str>, own: &str) -> Option<u64> {
        let (pins, server) = self.rules.pins.as_ref().zip(server)?;
        let principal = self.principal();
        self.pins.unseen_since(pins, (server, own), principal)
    }

    /// Returns true if the definition of a tool was seen after this number of changes.
    pub(crate) fn is_seen_since(&self, server: Option<&str>, own: &str, changes: u64) -> bool {
        let (pins, principal) = (self.rules.pins.as_ref().zip(server), self.principal());
        pins.is_some_and(|(pins, server)| {
            self.pins
                .is_seen_since(pins, (server, own), principal, changes)
        })
    }

    /// Returns true if the principal may have tasks of a tool. The name is the one in the server's own list.
    pub(crate) fn shows_tasks_of(&self, server: Option<&str>, own: &str) -> bool {
        let (pins, principal) = (self.rules.pins.as_ref().zip(server), self.principal());
        let is_denied = pins
            .is_some_and(|(pins, server)| self.pins.denies_tasks(pins, (server, own), principal));
        !is_denied && !self.hides(server, own) && self.shows(server, &Item::Name(own))
    }

    /// Returns true if no client sees a tool of a server.
    fn leaves_out(&self, server: Option<&str>, own: &str) -> bool {
        let (pins, principal) = (self.rules.pins.as_ref().zip(server), self.principal());
        self.hides(server, own)
            || pins
                .is_some_and(|(pins, server)| !self.pins.lets_use(pins, (server, own), principal))
    }

    /// Returns true if the catalogue hides a tool of a server.
    fn hides(&self, server: Option<&str>, own: &str) -> bool {
        let catalogue = self.catalogue(server);
        catalogue.is_some_and(|catalogue| catalogue.listed_name(own).is_none())
    }

    /// Returns the error for a tool or prompt of a server that the principal cannot use. The name is the one in the server's own list.
    fn unknown_item(&self, server: Option<&str>, kind: Kind, own: &str) -> PeerError {
        let catalogue = self.catalogue(server).filter(|_| kind == Kind::Tool);
        let key = catalogue.and_then(|catalogue| catalogue.filter().key_against(own));
        key.map_or_else(
            || unknown_item(kind, own),
            |key| tool_switched_off(own, key),
        )
    }

    /// Returns true if a rule is for the server with this name and the principal.
    pub(crate) fn has_rule(&self, server: Option<&str>) -> bool {
        server.is_some_and(|name| access::has_rule(&self.rules.access, name, self.principal()))
    }

    /// Returns true if the principal may subscribe to a resource of a server by `subscriptions/listen`. Changes are announced
    /// under the URI that the server knows, so only a URI in normal form is accepted where a rule applies.
    pub(crate) fn lets_listen(&self, server: Option<&str>, uri: &str) -> bool {
        if !self.has_rule(server) {
            return server.is_some();
        }
        let normal = ResourceUri::parse(uri).filter(|normal| normal.text() == uri);
        self.shows(server, &Item::Uri(normal.as_ref()))
    }

    /// Admits a request to a server. If a rule is for the server and the principal, the URI of a resource is replaced by
    /// its normal form, which the rules have seen. `uris` is the form in which the client knows the URIs of the server; those
    /// of the request are the server's own.
    pub(crate) fn admit(
        &self,
        server: Option<&str>,
        uris: &ServerUris,
        request: IncomingRequest<RequestContext>,
    ) -> Result<Admitted, PeerError> {
        let admitted = |request| {
            let uris = uris.clone();
            Ok(Admitted {
                request,
                uris,
                ticket: None,
            })
        };
        let changes_tools = server.is_some_and(|server| self.changes_tools(server));
        if !self.has_rule(server) && !changes_tools {
            return admitted(request);
        }
        match Target::of(request.method(), request.params()) {
            Target::Missing(name) => Err(missing_member(name)),
            Target::Named(kind, name) if self.shows_named(server, kind, &name) => admitted(request),
            Target::Named(kind, name) => Err(self.unknown_item(server, kind, &name)),
            Target::Resource(_) if !self.has_rule(server) => admitted(request),
            Target::Resource(uri) => {
                let Some(normal) = ResourceUri::parse(&uri) else {
                    return Err(ambiguous_uri());
                };
                if !self.shows(server, &skills::item(request.method(), Some(&normal))) {
                    return Err(unknown_resource(&uri, &request));
                }
                if normal.text() == uri {
                    return admitted(request);
                }
                let params = request.params().cloned().unwrap_or_default();
                let params = renamed(request.method(), &params, "uri", normal.text());
                admitted(request.with_call(request.method(), Some(params)))
            }
            // Whose task it is decides about it.
            Target::Task(_) | Target::Nothing => admitted(request),
        }
    }
}

/// Request of a client that the rules have let through to a server.
#[derive(Debug, Clone)]
pub(crate) struct Admitted {
    request: IncomingRequest<RequestContext>,
    uris: ServerUris,
    /// Where the answer is kept; `None` if it is not.
    ticket: Option<Arc<CacheTicket>>,
}

impl Admitted {
    /// Returns the request, with the params that were admitted.
    pub(crate) fn request(&self) -> &IncomingRequest<RequestContext> {
        &self.request
    }

    /// Returns the request without its responses to input requests of the bridge itself, which are not for the server.
    pub(crate) fn without_input(mut self) -> Self {
        self.request.responses = InputResponses::default();
        self.request.state = None;
        let params = self.request.params();
        let params = params.map(|params| target::without(params, &target::INPUT));
        self.request = self.request.with_call(self.request.method(), params);
        self
    }

    /// Sets where the answer is kept.
    pub(crate) fn with_ticket(mut self, ticket: Arc<CacheTicket>) -> Self {
        self.ticket = Some(ticket);
        self
    }

    /// Returns where the answer is kept; `None` if it is not.
    pub(crate) fn ticket(&self) -> Option<&Arc<CacheTicket>> {
        self.ticket.as_ref()
    }

    /// Returns the form in which the client knows the URIs of the server.
    pub(crate) fn uris(&self) -> &ServerUris {
        &self.uris
    }
}

/// Returns the error for a tool or prompt that no server has, or that the rules hide.
pub(crate) fn unknown_item(kind: Kind, name: &str) -> PeerError {
    let what = match kind {
        Kind::Tool => "tool",
        Kind::Prompt => "prompt",
    };
    PeerError::invalid_params(format!("Unknown {what}: {name}"))
}

/// Returns the error for a tool that a list in the configuration of its server switches off.
pub(crate) fn tool_switched_off(name: &str, key: &str) -> PeerError {
    PeerError::invalid_params(format!(
        "Unknown tool: {name} (`{key}` in the configuration of its server switches it off)"
    ))
}

/// Returns the error for a missing or hidden resource, with the code of the client's revision (`server/resources`,
/// "Error Handling").
pub(crate) fn unknown_resource(uri: &str, request: &IncomingRequest<RequestContext>) -> PeerError {
    let data = JsonObject::from_iter([("uri", Json::string(uri))]);
    let code = if skills::is_method(request.method()) {
        // In every revision (SEP-2640, "Error Handling").
        INVALID_PARAMS
    } else {
        request.spec().resource_not_found_code()
    };
    PeerError::new(code, "Resource not found").with_data(data)
}

/// Returns the error for a URI that servers may read in several ways.
pub(crate) fn ambiguous_uri() -> PeerError {
    PeerError::invalid_params(
        "`uri` has no normal form (RFC 3986) that all servers read alike; write it without dot segments, encoded \
         separators and, for files, without query and fragment",
    )
}
