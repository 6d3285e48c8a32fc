//! States that travel through the client (2026-07-28, `basic/patterns/mrtr`): what is sealed, and how it is opened again.
//!
//! Takes a seal of the program, which holds the key; the machine holds none. Gives back nothing that was not sealed for the
//! same caller and the same request, or that has expired.

use std::fmt;

use mcp_exact_wire::{Json, JsonObject, from_str};

use crate::Time;

/// Protects a state that travels through the client, such as by an AEAD or an HMAC with a key of the program.
pub trait Seal: fmt::Debug + Send + Sync {
    /// Makes a string of a payload that cannot be changed or made without the key, nor be opened in another context.
    fn seal(&self, payload: &str, context: &[u8]) -> String;

    /// The payload, when the string was sealed in this context and nothing has been changed.
    fn open(&self, sealed: &str, context: &[u8]) -> Option<String>;
}

/// Checks the results of a program before they leave. The machine runs no JSON Schema: a server whose tools have output
/// schemas brings a validator here ("Servers MUST provide structured results that conform", `server/tools`).
pub trait CheckResult: fmt::Debug + Send + Sync {
    /// Looks at the result of a request.
    ///
    /// # Errors
    /// What is wrong with it, in words: the client gets an internal error with them instead of the result.
    fn check(
        &self,
        method: &str,
        params: Option<&JsonObject>,
        result: &JsonObject,
    ) -> Result<(), String>;
}

/// What is sealed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Payload {
    pub(crate) round: u32,
    pub(crate) expires: Time,
    pub(crate) state: Option<String>,
}

impl Payload {
    pub(crate) fn text(&self) -> String {
        let expires = u64::try_from(self.expires.elapsed().as_millis()).unwrap_or(u64::MAX);
        let mut payload = JsonObject::from_iter([
            ("round", Json::from(self.round)),
            ("expires", Json::from(expires)),
        ]);
        if let Some(state) = &self.state {
            payload.insert("state", Json::string(state));
        }
        payload.to_string()
    }

    pub(crate) fn read(text: &str) -> Option<Self> {
        let payload: JsonObject = from_str(text).ok()?;
        let number = |name: &str| {
            let value = payload.get(name)?;
            from_str::<mcp_exact_wire::Integer>(value.text())
                .ok()?
                .as_u64()
        };
        let state = payload.get("state").map(|state| from_str(state.text()));
        Some(Self {
            round: number("round")?.try_into().ok()?,
            expires: Time::from_millis(number("expires")?),
            state: state.transpose().ok()?,
        })
    }
}

/// Who asks what: the principal, the method and the parameters, without what differs between the rounds of one request.
pub(crate) fn context(
    principal: Option<&str>,
    method: &str,
    params: Option<&JsonObject>,
) -> Vec<u8> {
    let mut context = Json::string(principal.unwrap_or_default()).to_string();
    context.push_str(if principal.is_some() { "+" } else { "-" });
    context.push_str(&Json::string(method).to_string());
    let members = params.into_iter().flat_map(JsonObject::iter);
    for (name, value) in members {
        if !matches!(&*name, "_meta" | "inputResponses" | "requestState") {
            context.push_str(&Json::string(&name).to_string());
            context.push_str(value);
        }
    }
    context.into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_payload_comes_back() {
        let payload = Payload {
            round: 2,
            expires: Time::from_millis(1500),
            state: Some("so \"far\"".into()),
        };
        assert_eq!(Payload::read(&payload.text()), Some(payload));
        assert_eq!(Payload::read("{}"), None);
    }

    #[test]
    fn the_context_leaves_out_what_differs_between_rounds() {
        let params = |text: &str| text.parse::<JsonObject>().expect(text);
        let (a, b) = (
            params(r#"{"name":"x","_meta":{}}"#),
            params(r#"{"name":"x","inputResponses":{"a":{}},"requestState":"s"}"#),
        );
        let of = |principal, params| context(principal, "tools/call", Some(params));
        assert_eq!(of(None, &a), of(None, &b));
        assert_ne!(of(None, &a), of(Some(""), &a));
        assert_ne!(of(None, &a), of(None, &params(r#"{"name":"y"}"#)));
    }
}
