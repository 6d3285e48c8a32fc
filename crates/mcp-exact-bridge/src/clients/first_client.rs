//! Client that is known before the bridge connects to its servers, by its first message. The connections that the bridge
//! makes to learn about the servers are made in the name of this client and kept for it.

use mcp_exact_revisions::method;
use mcp_exact_session::{Json, JsonObject, Lifecycle, Offer};

use crate::route::translate::Translation;
use crate::servers::client_side::ClientSide;

/// Names of the members of `_meta` in which clients of 2026-07-28 name themselves.
const META: [&str; 3] = [
    "io.modelcontextprotocol/protocolVersion",
    "io.modelcontextprotocol/clientInfo",
    "io.modelcontextprotocol/clientCapabilities",
];

/// First client of a bridge, as its first message names it; see [`Bridge::new_for`](crate::Bridge::new_for).
#[derive(Debug, Clone)]
pub struct FirstClient {
    /// Revision that the client asks for.
    revision: String,
    /// True if the client begins a session.
    has_session: bool,
    /// Name of the client.
    info: Option<JsonObject>,
    /// Capabilities of the client.
    capabilities: JsonObject,
}

impl FirstClient {
    /// Reads the first message of a client; `None` if the message does not name its client.
    pub fn of_message(message: &[u8]) -> Option<Self> {
        let message: JsonObject = std::str::from_utf8(message).ok()?.parse().ok()?;
        let [method, params] = message.view().find_each(["method", "params"]);
        let params = params?.object()?;
        let has_session = method?.as_str()? == method::INITIALIZE;
        let members = if has_session {
            params.find_each(["protocolVersion", "clientInfo", "capabilities"])
        } else {
            params.find("_meta")?.object()?.find_each(META)
        };
        let [revision, info, capabilities] = members.map(|member| member.map(|it| it.to_json()));
        let object = |member: Option<Json>| JsonObject::try_from(member?).ok();
        Some(Self {
            revision: revision?.view().as_str()?.into_owned(),
            has_session,
            info: object(info),
            capabilities: object(capabilities).unwrap_or_default(),
        })
    }

    /// Returns name and capabilities for servers, in the revision that will be negotiated with the client. If another one is
    /// negotiated, the client gets connections of its own.
    pub(crate) fn side(&self, offer: &Offer) -> Option<ClientSide> {
        let lifecycle = if self.has_session {
            Lifecycle::Initialize
        } else {
            Lifecycle::Discover
        };
        let offered = offer
            .revisions
            .iter()
            .filter(|revision| mcp_exact_session::lifecycle(revision.as_str()) == Some(lifecycle));
        let asked = offered
            .clone()
            .find(|revision| revision.as_str() == self.revision);
        let translation = Translation::to_newest(
            *asked.or_else(|| offered.max_by_key(|revision| revision.as_str()))?,
        );
        // Tasks are declared to servers of the same revision alone, which is not known yet.
        let mut declared = self.capabilities.clone();
        if self.has_session {
            declared.remove("tasks");
        }
        let capabilities = translation.definition("ClientCapabilities", &declared);
        Some(ClientSide::new(self.info.as_ref(), &capabilities.ok()?))
    }
}
