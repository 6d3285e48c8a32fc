//! Routing of requests for resources among many servers.
//!
//! A page of MCP Apps (`ui://`) and a Skill (`skill://`) name their server, see
//! [`ServerUris`](crate::around::server_uris::ServerUris), and belong to it alone. All other resources keep their URIs,
//! since tools and prompts mention them: a request for a URI is sent first to the server that lists the URI or a template with a
//! matching prefix, and then to the other servers in turn, until a server has the resource. If several servers claim a URI, it
//! belongs to the one that the configuration names first: the lists of the servers before a claimer are read before it
//! is asked.

use std::sync::Arc;

use mcp_exact_revisions::MethodId;
use mcp_exact_session::{IncomingRequest, PeerError, Reply};
use mcp_exact_transport::{RequestContext, ServerHandle};

use super::lists::{Entries, LISTS};
use super::{SERVER_ANSWER_TIMEOUT, is_retry, is_unknown};
use crate::around::access::Item;
use crate::around::gate::{self, Gate};
use crate::around::resource_uri::ResourceUri;
use crate::around::server_uris::{is_of_one_server, split};
use crate::around::skills;
use crate::around::target::{self, Target};
use crate::clients::shared_state::SharedState;
use crate::route::server::Server;

impl SharedState {
    /// Translates a URI that a client sent into the one that the server itself uses; `None` if it belongs to another server.
    pub(crate) fn own_uri(&self, server: &Server, uri: &str) -> Option<String> {
        if !self.is_joint || !is_of_one_server(uri) {
            return Some(uri.to_owned());
        }
        let (name, own) = split(uri)?;
        name.eq_ignore_ascii_case(&server.name).then_some(own)
    }

    /// Relays a request that names a resource of one server alone to this server.
    pub(super) async fn relay_to_its_server(
        self: &Arc<Self>,
        gate: &Gate,
        uri: &str,
        client: &ServerHandle,
        request: IncomingRequest<RequestContext>,
    ) -> Result<Reply, PeerError> {
        let backends = self.backends.all();
        let mut servers = backends.iter().enumerate();
        let found = servers.find_map(|(server, backend)| {
            let own = self.own_uri(backend, uri)?;
            (!backend.is_removed()).then_some((server, own))
        });
        let Some((server, own)) = found else {
            let error = gate::unknown_resource(uri, &request);
            return Err(self.refuse(&request, error));
        };
        let params = request.params();
        let params = params.map(|params| target::renamed(request.method(), params, "uri", &own));
        let request = request.with_call(request.method(), params);
        self.relay_to(gate, server, client, request).await
    }

    /// Returns the server that a URI belongs to: of the servers that list it or a template with a matching prefix, the first
    /// of the configuration. Reads the lists of the servers before it that are not known yet, so that no server gets a
    /// URI because it lists it earlier.
    async fn claimer(
        self: &Arc<Self>,
        gate: &Gate,
        uri: &str,
        item: &Item<'_>,
        client: &ServerHandle,
        request: &IncomingRequest<RequestContext>,
    ) -> Option<usize> {
        let backends = self.backends.all();
        let shown = || {
            let all = backends.iter().enumerate();
            all.filter(|(_, backend)| gate.shows(backend.listed_name(), item))
                .map(|(server, _)| server)
        };
        let reader = gate.principal();
        let found = self.uris.claimed_by(reader, uri, shown())?;
        let is_unknown = |server: usize| server < found && !self.uris.is_known(server, reader);
        let unknown: Vec<usize> = shown().filter(|server| is_unknown(*server)).collect();
        // A retry has answers for one server, which its state names.
        if unknown.is_empty() || is_retry(request) {
            return Some(found);
        }
        let mut stand_ins = Vec::new();
        for list in LISTS {
            if matches!(list.entries, Entries::Resources | Entries::Templates) {
                let is_wanted = |server: usize| unknown.contains(&server);
                let within = SERVER_ANSWER_TIMEOUT;
                let read = self.entries_of(gate, is_wanted, list, client, request, within);
                let (listed, _) = read.await;
                let listed = listed.iter().filter(|listed| listed.is_stand_in);
                stand_ins.extend(listed.map(|listed| listed.server));
            }
        }
        for server in unknown {
            // A server that cannot be reached fails at once, and is asked when it is back.
            let backend = &backends[server];
            // The user may connect an account at any time.
            if !self.uris.is_known(server, reader)
                && !backend.is_unreachable()
                && !stand_ins.contains(&server)
            {
                let owner = backend.users().map(|_| reader.unwrap_or_default());
                self.uris.set_unlisted(server, owner);
            }
        }
        self.uris.claimed_by(reader, uri, shown())
    }

    /// Returns the indices of the servers that were not removed.
    pub(crate) fn present_servers(&self) -> impl Iterator<Item = usize> {
        let backends = self.backends.all();
        (0..backends.len()).filter(move |server| !backends[*server].is_removed())
    }

    /// Relays a request to one server after the other, until a server has the named item. Starts with the server whose
    /// input requests the retry answers, or else with the server that is known to have the item.
    pub(super) async fn relay_to_first(
        self: &Arc<Self>,
        gate: &Gate,
        target: Target,
        client: &ServerHandle,
        request: &IncomingRequest<RequestContext>,
    ) -> Result<Reply, PeerError> {
        let reader = gate.principal();
        let uri = target.uri();
        let normal = uri.as_deref().and_then(ResourceUri::parse);
        let item = match &uri {
            Some(_) => skills::item(request.method(), normal.as_ref()),
            None => Item::Name(request.method()),
        };
        let (mut claimer, mut answered) = (None, None);
        if let Some(uri) = &uri {
            claimer = self.claimer(gate, uri, &item, client, request).await;
            answered = self.uris.answered_by(reader, uri);
        }
        let first = self
            .server_of_retry(client, request)
            .or_else(|| Some(answered.filter(|_| is_retry(request))?.0))
            .or(claimer)
            .or_else(|| Some(answered.filter(|(_, is_sure)| *is_sure)?.0));
        let (mut last, mut subscribed) = (None, None);
        // A resource that no server lists may belong to any server that accepts a subscription.
        let is_for_all = uri.as_ref().is_some_and(|uri| {
            let is_subscription = matches!(
                request.method_id(),
                MethodId::ResourcesSubscribe | MethodId::ResourcesUnsubscribe
            );
            is_subscription
                && self
                    .uris
                    .listed_by(reader, uri, self.present_servers())
                    .is_none()
        });
        let backends = self.backends.all();
        // False once a server that may have the resource could not be reached.
        let mut is_sure = true;
        let mut servers: Vec<_> = backends.iter().enumerate().collect();
        servers.sort_by_key(|(server, _)| Some(*server) != first);
        for (server, backend) in servers {
            if !gate.shows(backend.listed_name(), &item) {
                continue;
            }
            // The responses are for the server that has sent the input requests.
            let is_last = is_retry(request) && first == Some(server);
            match self.relay_to(gate, server, client, request.clone()).await {
                Err(error) if is_unknown(&error) && !is_last => {
                    last.get_or_insert(error);
                }
                // An unreachable server may have the item, but its error is returned only after all other servers were
                // tried. What belongs to it is read from no other one.
                Err(error) if backend.is_unreachable() && !is_last && claimer != Some(server) => {
                    is_sure = false;
                    last = Some(error);
                }
                Ok(reply) if is_for_all => subscribed = Some(reply),
                answered => {
                    if let (MethodId::ResourcesRead, Some(uri), Ok(_)) =
                        (request.method_id(), &uri, &answered)
                    {
                        self.uris.record_answer(server, reader, uri, is_sure);
                    }
                    return answered;
                }
            }
        }
        if let Some(reply) = subscribed {
            return Ok(reply);
        }
        Err(last.unwrap_or_else(|| {
            let error = match (&uri, &normal) {
                (Some(_), None) => gate::ambiguous_uri(),
                (Some(uri), Some(_)) => gate::unknown_resource(uri, request),
                (None, _) => PeerError::method_not_found(request.method()),
            };
            self.refuse(request, error)
        }))
    }
}
