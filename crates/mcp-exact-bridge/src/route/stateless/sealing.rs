//! Binds the `requestState` of a server to the principal that receives it (2026-07-28, `basic/patterns/mrtr`).
//!
//! The specification requires a server to check that a `requestState` belongs to its user. The server sees only one
//! client, the bridge, so the bridge checks that the `requestState` belongs to its user.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use chacha20poly1305::aead::{Aead, KeyInit, Payload};
use chacha20poly1305::{Key, XChaCha20Poly1305, XNonce};
use mcp_exact_session::{Json, JsonObject, PeerError, RawResult, Seal};

use crate::servers::tasks;

/// Prefix of every `requestState` that is bound to a principal.
const SEALED_PREFIX: &str = "mcp-exact-bridge-sealed:";

/// Prefix of every task id that is bound to a principal.
const TASK_PREFIX: &str = "mcp-exact-bridge-task:";

/// Length of the nonce, in bytes.
const NONCE: usize = 24;

/// Random key of this process. Other processes cannot open values that this key has sealed.
pub(crate) struct ProcessKey(XChaCha20Poly1305);

impl ProcessKey {
    /// Creates a random key; `None` if the system provides no random numbers.
    pub(crate) fn random() -> Option<Self> {
        let mut key = [0; 32];
        getrandom::fill(&mut key).ok()?;
        Some(Self(XChaCha20Poly1305::new(&Key::from(key))))
    }
}

impl fmt::Debug for ProcessKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ProcessKey")
    }
}

impl Seal for ProcessKey {
    fn seal(&self, payload: &str, context: &[u8]) -> String {
        let mut nonce = [0; NONCE];
        // The empty string cannot be opened.
        let Ok(()) = getrandom::fill(&mut nonce) else {
            return String::new();
        };
        let payload = Payload {
            msg: payload.as_bytes(),
            aad: context,
        };
        let sealed = self.0.encrypt(&XNonce::from(nonce), payload);
        let sealed = sealed.map(|sealed| URL_SAFE_NO_PAD.encode([&nonce[..], &sealed].concat()));
        sealed.unwrap_or_default()
    }

    fn open(&self, sealed: &str, context: &[u8]) -> Option<String> {
        let bytes = URL_SAFE_NO_PAD.decode(sealed).ok()?;
        let (nonce, sealed) = bytes.split_at_checked(NONCE)?;
        let nonce = XNonce::from(<[u8; NONCE]>::try_from(nonce).ok()?);
        let payload = Payload {
            msg: sealed,
            aad: context,
        };
        let text = self.0.decrypt(&nonce, payload).ok()?;
        String::from_utf8(text).ok()
    }
}

/// Task whose id was given to a client.
pub(super) struct OpenedTask {
    /// Id that the server has assigned to the task.
    pub(super) id: String,
    /// Tool whose call has become the task; `None` if the id was not sealed.
    pub(super) tool: Option<String>,
}

/// Binding of `requestState` values and task ids to a principal, and to one server of many. In front of a single
/// server, the values for clients without a principal are relayed unchanged.
#[derive(Debug, Clone, Copy)]
pub(super) struct Binding<'a> {
    /// Key that seals the values.
    pub(super) seal: &'a dyn Seal,
    /// Name of the server; empty if there is only one server.
    pub(super) server: &'a str,
    /// Principal that values are bound to.
    pub(super) principal: Option<&'a str>,
}

impl Binding<'_> {
    /// Returns the context that a sealed value of this kind is bound to; `None` if values are not sealed.
    fn context(&self, kind: &str) -> Option<Vec<u8>> {
        // The name of a server has no line break, and is empty if there is one server.
        let context = match self.principal {
            Some(principal) => format!("{kind}\n{}\n{principal}", self.server),
            None if self.server.is_empty() => return None,
            None => format!("{kind} of nobody\n{}", self.server),
        };
        Some(context.into_bytes())
    }

    /// Seals the `requestState` of a result of type `input_required`.
    pub(super) fn bind(&self, result: RawResult) -> RawResult {
        let Some(context) = self.context("requestState") else {
            return result;
        };
        let names = ["resultType", "requestState"];
        let [kind, state] = result.object().view().find_each(names);
        let asks = kind.and_then(|kind| kind.as_str());
        let Some(state) = state.filter(|_| asks.as_deref() == Some("input_required")) else {
            return result;
        };
        let sealed = self.seal.seal(state.text(), &context);
        let mut object = result.object().clone();
        object.insert(
            "requestState",
            Json::string(&format!("{SEALED_PREFIX}{sealed}")),
        );
        object.into()
    }

    /// Seals the id of the task in a result of type `task` (extension `io.modelcontextprotocol/tasks`), together with the tool
    /// of the call.
    pub(super) fn bind_task(&self, result: RawResult, tool: &str) -> RawResult {
        let Some(context) = self.context("taskId") else {
            return result;
        };
        let kind = result.object().view().find("resultType");
        let is_task = kind.is_some_and(|kind| kind.as_str().as_deref() == Some("task"));
        let Some(id) = tasks::id_of(result.object()).filter(|_| is_task) else {
            return result;
        };
        let task = JsonObject::from_iter([("id", Json::string(&id)), ("tool", Json::string(tool))]);
        let sealed = self.seal.seal(task.text(), &context);
        let sealed = format!("{TASK_PREFIX}{sealed}");
        let rename = |other: &str| (other == id).then(|| sealed.clone());
        tasks::rename_ids(result.into_object(), rename).into()
    }

    /// Opens the id of a task from a client; `None` if the id was not given to this principal.
    pub(super) fn unbind_task(&self, id: &str) -> Option<OpenedTask> {
        let Some(context) = self.context("taskId") else {
            return Some(OpenedTask {
                id: id.to_owned(),
                tool: None,
            });
        };
        let sealed = id.strip_prefix(TASK_PREFIX)?;
        let opened: JsonObject = self.seal.open(sealed, &context)?.parse().ok()?;
        let [id, tool] = opened.view().find_each(["id", "tool"]);
        Some(OpenedTask {
            id: id?.as_str()?.into_owned(),
            tool: Some(tool?.as_str()?.into_owned()),
        })
    }

    /// Opens a `requestState` from a client; returns the server's original value.
    pub(super) fn unbind(&self, state: Json) -> Result<Json, PeerError> {
        let text = state.view().as_str();
        let sealed = text
            .as_deref()
            .and_then(|text| text.strip_prefix(SEALED_PREFIX));
        // A state that is not sealed here may have been sealed by a bridge behind this one.
        let Some(context) = self.context("requestState") else {
            return Ok(state);
        };
        let opened = sealed.and_then(|sealed| self.seal.open(sealed, &context));
        let opened = opened.and_then(|opened| opened.parse().ok());
        opened.ok_or_else(foreign_state_error)
    }
}

/// Returns the error for a `requestState` that is invalid for this principal and server.
fn foreign_state_error() -> PeerError {
    PeerError::invalid_params(
        "`requestState` was not given to this principal by this gateway, or the gateway was restarted; begin the call anew",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The sealed id of a task can be opened only for the principal that has received it.
    #[test]
    fn task_ids_belong_to_one_principal() {
        let key = ProcessKey::random().expect("random numbers");
        let binding = |server, principal| Binding {
            seal: &key,
            server,
            principal,
        };
        let created: JsonObject = r#"{"resultType":"task","taskId":"a","ttlMs":1.0}"#
            .parse()
            .expect("an object");
        let own = binding("", Some("red"));
        let given = own.bind_task(created.clone().into(), "slow").into_object();
        let id = tasks::id_of(&given).expect("an id");
        assert_eq!(tasks::with_id(given, "a").text(), created.text());
        let opened = own.unbind_task(&id).expect("its own");
        assert_eq!((&*opened.id, opened.tool.as_deref()), ("a", Some("slow")));
        for other in [
            binding("", Some("blue")),
            binding("web", Some("red")),
            binding("web", None),
        ] {
            assert!(other.unbind_task(&id).is_none(), "{other:?}");
        }
        assert!(own.unbind_task("a").is_none(), "the server's own id");
        let nobody = binding("", None);
        let unchanged = nobody.bind_task(created.clone().into(), "slow");
        assert_eq!(unchanged.into_object(), created);
    }

    /// A sealed `requestState` can be opened only for the same principal and the same server.
    #[test]
    fn states_belong_to_principal_and_server() {
        let key = ProcessKey::random().expect("random numbers");
        let binding = |server, principal| Binding {
            seal: &key,
            server,
            principal,
        };
        let own = binding("files", Some("red"));
        let required: JsonObject = r#"{"resultType":"input_required","requestState":"a\u0062"}"#
            .parse()
            .expect("an object");
        let bound = own.bind(required.clone().into()).into_object();
        let state = bound.get("requestState").expect("a state");
        assert_eq!(
            own.unbind(state.clone()).expect("its own").text(),
            r#""a\u0062""#
        );
        for other in [
            binding("files", Some("blue")),
            binding("files", None),
            binding("web", Some("red")),
        ] {
            assert!(other.unbind(state.clone()).is_err(), "{other:?}");
        }
        let nobody = binding("files", None);
        let bound = nobody.bind(required.clone().into()).into_object();
        let state = bound.get("requestState").expect("a state");
        assert!(nobody.unbind(state.clone()).is_ok());
        assert!(binding("web", None).unbind(state).is_err());
        let nobody = binding("", None);
        let passed = nobody.bind(required.into()).into_object();
        let state = passed.get("requestState").expect("a state");
        assert_eq!(state.text(), r#""a\u0062""#);
        assert!(nobody.unbind(state.clone()).is_ok());
        assert!(
            own.unbind(state).is_err(),
            "it was given to nobody in particular"
        );
    }
}
