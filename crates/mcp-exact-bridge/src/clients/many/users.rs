//! Requests to servers with credentials per user: a user without credentials is asked to visit a page that obtains them.
//!
//! The client is asked in the way of its revision: by an input request with a URL (from 2025-11-25 on, with the capability), by the
//! error -32042 (2025-11-25, for requests that allow no input requests), or by an error whose text has the URL.

use std::time::Duration;

use mcp_exact_revisions::{MethodId, method};
use mcp_exact_session::{
    IncomingRequest, InputRequest, Json, JsonObject, Outcome, PeerError, RawResult, Reply,
};
use mcp_exact_transport::RequestContext;

use crate::around::gate::Admitted;
use crate::around::losses::Losses;
use crate::route::server::Server;
use crate::route::translate::Translation;
use crate::servers::errors::no_user_error;
use crate::servers::users::{Caller, NotAdmitted, PageVisit, is_list};

/// Returns the name of the tool that a server has for users without credentials; a call asks for them.
fn connect_tool(server: &Server) -> String {
    // The name of the server, because clients may see the tools of several servers without a prefix.
    format!("connect_{}", server.name)
}

/// Name of the input request.
const INPUT_REQUEST: &str = "connect-account";

/// Prefix of the `requestState` of the input request. It holds no secret: whose account is connected depends on the principal
/// of the retry alone.
const STATE_PREFIX: &str = "mcp-exact-bridge-account:";

/// Time that a call waits for a user who has agreed to visit the page.
const VISIT_TIMEOUT: Duration = Duration::from_secs(120);

/// Returns true if a retry answers the input request for credentials of this server.
pub(super) fn is_state_of(server: &str, request: &IncomingRequest<RequestContext>) -> bool {
    let state = request.state.as_deref();
    state.and_then(|state| state.strip_prefix(STATE_PREFIX)) == Some(server)
}

/// Makes sure that the user of a request has credentials for the server; returns the request for the server, and true if its answer
/// is for this user alone. The error is the reply to a user without credentials.
pub(super) async fn admit(server: &Server, admitted: Admitted) -> Result<(Admitted, bool), Reply> {
    let Some(users) = server.users() else {
        return Ok((admitted, false));
    };
    let request = admitted.request();
    let Some(caller) = Caller::of(request) else {
        return Err(Reply::Error(no_user_error()));
    };
    let is_retry = is_state_of(&server.name, request);
    let is_admitted = if is_retry && has_agreed(request)? {
        users.wait(request, VISIT_TIMEOUT).await
    } else {
        users.admit(request).await
    };
    match is_admitted {
        Ok(()) => {}
        Err(NotAdmitted::Visit(visit)) => return Err(ask(server, request, &visit)),
        Err(NotAdmitted::NotConnected) => return Err(stand_in(server, request)),
        Err(NotAdmitted::Refused(reason)) => {
            return Err(Reply::Error(PeerError::internal(reason)));
        }
    }
    if is_connect_call(server, request) {
        let words =
            "The account is connected. The tools of the server are in the list of tools now.";
        return Err(text_result(request, words));
    }
    let introduced = server.introduce(Some(caller)).await;
    introduced.map_err(Reply::Error)?;
    let admitted = if is_retry {
        admitted.without_input()
    } else {
        admitted
    };
    Ok((admitted, true))
}

/// Marks an answer that depends on the user as one that caches must not share (2026-07-28, `server/utilities/caching`).
pub(super) fn keep_private(reply: Reply) -> Reply {
    match reply {
        Reply::Result(result) if result.object().get("cacheScope").is_some() => {
            let mut object = result.into_object();
            object.insert("cacheScope", Json::string("private"));
            Reply::Result(object.into())
        }
        reply => reply,
    }
}

/// Returns true if the user has agreed to visit the page, and false without an answer.
fn has_agreed(request: &IncomingRequest<RequestContext>) -> Result<bool, Reply> {
    let refused = || {
        let words = "the user has not agreed to connect an account of the server";
        Reply::Error(PeerError::internal(words))
    };
    match request.responses.get(INPUT_REQUEST) {
        None => Ok(false),
        Some(Outcome::Result(answer)) => {
            let action = answer.object().get("action");
            let action = action.as_ref().and_then(|action| action.view().as_str());
            match action.as_deref() {
                Some("accept") => Ok(true),
                _ => Err(refused()),
            }
        }
        Some(_) => Err(refused()),
    }
}

/// Returns true if a request calls the tool for users without credentials.
fn is_connect_call(server: &Server, request: &IncomingRequest<RequestContext>) -> bool {
    let name = request.param("name").and_then(|name| name.as_str());
    request.method_id() == MethodId::ToolsCall && name.as_deref() == Some(&connect_tool(server))
}

/// Returns the reply that asks a user to visit a page.
fn ask(server: &Server, request: &IncomingRequest<RequestContext>, visit: &PageVisit) -> Reply {
    if is_list(request.method_id()) {
        return stand_in(server, request);
    }
    let spec = request.spec();
    let may_ask = request.method_id().may_require_input();
    let mut params = JsonObject::from_iter([
        ("mode", Json::string("url")),
        ("message", Json::string(&visit.message)),
        ("url", Json::string(&visit.url)),
    ]);
    if spec.has_elicitation_complete() {
        params.insert("elicitationId", Json::string(&visit.id));
    }
    let shows_urls = spec.has_elicitation_modes() && declares_url_mode(request);
    if may_ask && shows_urls {
        let input = InputRequest::new(method::ELICITATION_CREATE, Some(params));
        return Reply::InputRequired {
            requests: vec![(INPUT_REQUEST.to_owned(), input)],
            state: Some(format!("{STATE_PREFIX}{}", server.name)),
        };
    }
    let words = format!("{}: {}", visit.message, visit.url);
    if shows_urls && spec.has_elicitation_complete() {
        let all = Json::from_encode(&vec![Json::from(params)]);
        let data = JsonObject::from_iter([("elicitations", all)]);
        let code = mcp_exact_session::code::URL_ELICITATION_REQUIRED;
        return Reply::Error(PeerError::new(code, words).with_data(data));
    }
    Reply::Error(PeerError::internal(words))
}

/// Returns true if the client declares elicitation by URLs.
fn declares_url_mode(request: &IncomingRequest<RequestContext>) -> bool {
    let capabilities = request.client().capabilities.view();
    let elicitation = capabilities.find("elicitation");
    let elicitation = elicitation.and_then(|elicitation| elicitation.object());
    elicitation.is_some_and(|elicitation| elicitation.find("url").is_some())
}

/// Returns the list of a server for a user without credentials: of tools, the one that asks for them; an error if the request is
/// for no list.
fn stand_in(server: &Server, request: &IncomingRequest<RequestContext>) -> Reply {
    let method = request.method_id();
    let Some(member) = method.list_member().filter(|_| is_list(method)) else {
        let words = "the user has no credentials for the server";
        return Reply::Error(PeerError::internal(words));
    };
    let mut entries = Vec::new();
    if member == "tools" {
        let description = format!(
            "Connects the user's account at the server {:?}, whose tools are listed once that is done.",
            server.name
        );
        let schema = JsonObject::from_iter([("type", Json::string("object"))]);
        entries.push(JsonObject::from_iter([
            ("name", Json::string(&connect_tool(server))),
            ("description", Json::string(&description)),
            ("inputSchema", schema.into()),
        ]));
    }
    let result = JsonObject::from_iter([(member, Json::from_encode(&entries))]);
    keep_private(in_revision_of(request, result))
}

/// Returns the result of a call of a tool with a text.
fn text_result(request: &IncomingRequest<RequestContext>, words: &str) -> Reply {
    let text = JsonObject::from_iter([
        ("type", Json::string("text")),
        ("text", Json::string(words)),
    ]);
    let result = JsonObject::from_iter([("content", Json::from_encode(&vec![text]))]);
    in_revision_of(request, result)
}

/// Returns a result that is valid in the oldest revision as the reply in the revision of the client.
fn in_revision_of(request: &IncomingRequest<RequestContext>, result: JsonObject) -> Reply {
    let oldest = mcp_exact_session::revisions().next();
    let translation = Translation::new(
        oldest.unwrap_or_else(|| request.revision()),
        request.revision(),
        Losses::new(None),
    );
    let converted = translation.result(request.method(), RawResult::from(result), None);
    converted.map_or_else(Reply::Error, Reply::Result)
}
