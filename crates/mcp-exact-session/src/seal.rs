//! Request states that the client echoes (2026-07-28, `basic/patterns/mrtr`): sealing and opening.
//!
//! The application provides the seal and its key; the endpoint has no access to the key. A state can be opened only for
//! the principal and the request for which it was sealed, and only until it expires. A state can be used more than once
//! until it expires, so a handler that must not repeat its work must record the executed attempts in a store.

use std::fmt;

use mcp_exact_wire::{Integer, Json, JsonObject, from_str};

use crate::Time;
use crate::canonical;

/// Protects a state that the client echoes, for example by an AEAD or an HMAC with a key of the application.
pub trait Seal: fmt::Debug + Send + Sync {
    /// Seals a payload. Without the key, the sealed string can be neither changed nor forged, and it cannot be opened in another
    /// context.
    fn seal(&self, payload: &str, context: &[u8]) -> String;

    /// Returns the payload if the string was sealed in this context and has not been changed.
    fn open(&self, sealed: &str, context: &[u8]) -> Option<String>;

    /// Returns true if a string that [`open`](Self::open) opens was sealed with the key that [`seal`](Self::seal) uses now, and not
    /// with an older one that is kept to open strings of before. By default, there is one key.
    fn is_current(&self, sealed: &str, context: &[u8]) -> bool {
        self.open(sealed, context).is_some()
    }

    /// Returns why [`open`](Self::open) does not open a string, for programs that keep sealed values and have to say what helps. By
    /// default, this is [`OpenFailure::OtherKey`].
    fn open_failure(&self, _sealed: &str) -> OpenFailure {
        OpenFailure::OtherKey
    }
}

/// Reason why a sealed string cannot be opened; [`Seal::open_failure`] returns it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum OpenFailure {
    /// The string does not have the form of sealed strings.
    NotSealed,
    /// The string is shorter than any sealed string.
    TooShort,
    /// One of the keys has sealed the string, which was changed or cut off afterwards, or was sealed in another context.
    Changed,
    /// None of the keys has sealed the string, as far as its form shows.
    OtherKey,
}

impl OpenFailure {
    /// Returns true if no key helps: the string is damaged, or belongs to another context.
    pub fn is_damage(self) -> bool {
        self != Self::OtherKey
    }
}

impl fmt::Display for OpenFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotSealed => "it does not have the form of encrypted values",
            Self::TooShort => "it is cut off",
            Self::Changed => {
                "it was changed or cut off after one of the keys had encrypted it, or belongs to another record"
            }
            Self::OtherKey => "none of the keys opens it",
        })
    }
}

/// Content of a sealed string.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Payload {
    /// Number of the retry that contains the state.
    pub(crate) retries: u32,
    /// Time at which the state expires.
    pub(crate) expires_at: Time,
    /// State that the application has supplied.
    pub(crate) state: Option<String>,
}

impl Payload {
    /// Returns the JSON text of the payload.
    pub(crate) fn to_text(&self) -> String {
        let expires = u64::try_from(self.expires_at.elapsed().as_millis()).unwrap_or(u64::MAX);
        let mut payload = JsonObject::from_iter([
            ("retry", Json::from(self.retries)),
            ("expires", Json::from(expires)),
        ]);
        if let Some(state) = &self.state {
            payload.insert("state", Json::string(state));
        }
        payload.to_string()
    }

    /// Parses the JSON text of a payload.
    pub(crate) fn from_text(text: &str) -> Option<Self> {
        let payload: JsonObject = from_str(text).ok()?;
        let number = |name: &str| {
            let value = payload.get(name)?;
            from_str::<Integer>(value.text()).ok()?.as_u64()
        };
        let state = payload.get("state").map(|state| from_str(state.text()));
        Some(Self {
            retries: number("retry")?.try_into().ok()?,
            expires_at: Time::from_millis(number("expires")?),
            state: state.transpose().ok()?,
        })
    }
}

/// Returns the context of a sealed state: principal, method and params, without the members that differ between the
/// attempts of one request.
///
/// The params are compared as JSON values, because a client may spell them differently in a retry.
pub(crate) fn seal_context(
    principal: Option<&str>,
    method: &str,
    params: Option<&JsonObject>,
) -> Vec<u8> {
    let mut context = Json::string(principal.unwrap_or_default()).to_string();
    context.push_str(if principal.is_some() { "+" } else { "-" });
    context.push_str(Json::string(method).text());
    if let Some(params) = params {
        let left_out = ["_meta", "inputResponses", "requestState"];
        context.push_str(&canonical::canonical_object(params, &left_out));
    }
    context.into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A payload that was written as text is parsed to an equal payload.
    #[test]
    fn payload_is_read_as_written() {
        let payload = Payload {
            retries: 2,
            expires_at: Time::from_millis(1500),
            state: Some("so \"far\"".into()),
        };
        assert_eq!(Payload::from_text(&payload.to_text()), Some(payload));
        assert_eq!(Payload::from_text("{}"), None);
    }

    /// The seal context is the same for all retries of a request, and different for other principals and other params.
    #[test]
    fn context_is_equal_for_retries() {
        let params = |text: &str| text.parse::<JsonObject>().expect(text);
        let (a, b) = (
            params(r#"{"name":"x","_meta":{},"arguments":{"a":1,"b":2}}"#),
            params(
                r#"{"arguments":{"b":2.0, "a":1},"name":"\u0078","inputResponses":{"a":{}},"requestState":"s"}"#,
            ),
        );
        let of = |principal, params| seal_context(principal, "tools/call", Some(params));
        assert_eq!(of(None, &a), of(None, &b));
        assert_ne!(of(None, &a), of(Some(""), &a));
        assert_ne!(of(None, &a), of(None, &params(r#"{"name":"y"}"#)));
    }
}
