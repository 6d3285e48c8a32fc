//! Extractors: the possible arguments of handlers.
//!
//! Each extractor obtains its value from a call and declares its requirements when the handler is registered.

use std::any::type_name;
use std::ops::Deref;

use schemars::JsonSchema;
use serde::de::DeserializeOwned;

use crate::call::{Call, FromCall, Signature};
use crate::cx::Cx;
use crate::decode::{self, Mismatch};
use crate::error::Error;
use crate::protocol::{JsonObject, Principal, Revision};

/// Decoded arguments of the call: the arguments of a tool or prompt, or the variables of a resource template.
///
/// `T` derives `serde::Deserialize` and `schemars::JsonSchema`; doc comments become descriptions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Input<T>(pub T);

impl<T: DeserializeOwned + JsonSchema> FromCall for Input<T> {
    fn from_call(call: &Call) -> Result<Self, Error> {
        match decode::decode_object(call.argument_view()) {
            Ok(arguments) => Ok(Self(arguments)),
            Err(mismatch) => Err(bad_arguments(mismatch)),
        }
    }

    fn declare_requirements(signature: &mut Signature) {
        signature.takes_input::<T>();
    }
}

/// Returns the error for arguments that cannot be decoded.
fn bad_arguments(mismatch: Mismatch) -> Error {
    Error::invalid_arguments(mismatch.pointer(), mismatch.into_reason())
}

/// State of the server that was registered with [`state`](crate::ServerBuilder::state). States are cloned for each
/// call: use `Arc` for values that are expensive to clone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct State<S>(pub S);

impl<S> Deref for State<S> {
    type Target = S;

    fn deref(&self) -> &S {
        &self.0
    }
}

impl<S: Clone + Send + Sync + 'static> FromCall for State<S> {
    fn from_call(call: &Call) -> Result<Self, Error> {
        // The builder has checked that the state is registered.
        let missing = || Error::msg(format!("the server has no state `{}`", type_name::<S>()));
        call.state().map(Self).ok_or_else(missing)
    }

    fn declare_requirements(signature: &mut Signature) {
        signature.takes_state::<S>();
    }
}

impl FromCall for Cx {
    fn from_call(call: &Call) -> Result<Self, Error> {
        Ok(call.cx().clone())
    }
}

impl FromCall for Call {
    fn from_call(call: &Call) -> Result<Self, Error> {
        Ok(call.clone())
    }

    fn declare_requirements(signature: &mut Signature) {
        signature.takes_any_arguments();
    }
}

/// Arguments of the call, as received.
impl FromCall for JsonObject {
    fn from_call(call: &Call) -> Result<Self, Error> {
        Ok(call.arguments().clone())
    }

    fn declare_requirements(signature: &mut Signature) {
        signature.takes_any_arguments();
    }
}

/// Authenticated principal; a call without authentication ends with an error.
impl FromCall for Principal {
    fn from_call(call: &Call) -> Result<Self, Error> {
        let missing =
            || Error::msg("the request is not authenticated; authenticate and call again");
        call.cx().principal().cloned().ok_or_else(missing)
    }
}

impl FromCall for Option<Principal> {
    fn from_call(call: &Call) -> Result<Self, Error> {
        Ok(call.cx().principal().cloned())
    }
}

/// Claims of the access token; a call without a token ends with an error.
#[cfg(feature = "oauth-server")]
impl FromCall for mcp_exact_auth::server::Access {
    fn from_call(call: &Call) -> Result<Self, Error> {
        let missing = || Error::msg("the request has no access token; authorize and call again");
        call.cx().access().cloned().ok_or_else(missing)
    }
}

#[cfg(feature = "oauth-server")]
impl FromCall for Option<mcp_exact_auth::server::Access> {
    fn from_call(call: &Call) -> Result<Self, Error> {
        Ok(call.cx().access().cloned())
    }
}

impl FromCall for Revision {
    fn from_call(call: &Call) -> Result<Self, Error> {
        Ok(call.cx().revision())
    }
}

/// Names and values of the HTTP request's headers; empty on other transports.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Headers(pub Vec<(String, String)>);

impl Headers {
    /// Returns the value of a header, or the first of several values; the name is case-insensitive.
    pub fn get(&self, name: &str) -> Option<&str> {
        let mut all = self.0.iter();
        let found = all.find(|(known, _)| known.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    }
}

impl FromCall for Headers {
    fn from_call(call: &Call) -> Result<Self, Error> {
        let all = call.cx().request().headers();
        let owned = all.map(|(name, value)| (name.to_owned(), value.to_owned()));
        Ok(Self(owned.collect()))
    }
}

/// `_meta` of the request's parameters; empty if the request has none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Meta(pub JsonObject);

impl FromCall for Meta {
    fn from_call(call: &Call) -> Result<Self, Error> {
        Ok(Self(call.cx().meta().unwrap_or_default()))
    }
}

/// A complete request as received, for handlers of [`ServerBuilder::raw`](crate::ServerBuilder::raw) and
/// [`ServerBuilder::method`](crate::ServerBuilder::method).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RawRequest {
    /// Method of the request, such as `tools/call`.
    pub method: String,
    /// Parameters of the request, in the form of the negotiated revision.
    pub params: Option<JsonObject>,
}

impl FromCall for RawRequest {
    fn from_call(call: &Call) -> Result<Self, Error> {
        let request = call.cx().request();
        Ok(Self {
            method: request.method().to_owned(),
            params: request.params().cloned(),
        })
    }
}

/// URI of the resource that is read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Uri(pub String);

impl FromCall for Uri {
    fn from_call(call: &Call) -> Result<Self, Error> {
        let missing =
            || Error::msg("`Uri` belongs to handlers of resources; take it out of this one");
        call.uri()
            .map(|uri| Self(uri.to_owned()))
            .ok_or_else(missing)
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;
    use crate::error::InvalidArguments;

    /// Type of the decoded arguments.
    #[derive(Debug, Deserialize)]
    #[allow(dead_code)]
    struct Route {
        stops: Vec<Stop>,
    }

    /// Object with a member whose name is escaped in a JSON pointer.
    #[derive(Debug, Deserialize)]
    #[allow(dead_code)]
    struct Stop {
        #[serde(rename = "a/b")]
        at: u8,
    }

    /// Decodes a [`Route`], which must fail; returns the pointer and the reason of the error.
    fn route_error(text: &str) -> (String, String) {
        let arguments: JsonObject = text.parse().expect("an object");
        let mismatch = decode::decode_object::<Route>(arguments.view()).expect_err("bad arguments");
        let error = bad_arguments(mismatch);
        let error = error
            .downcast_ref::<InvalidArguments>()
            .expect("bad arguments");
        (error.pointer.clone(), error.reason.clone())
    }

    /// The error for invalid arguments contains the JSON pointer of the value that does not match its type.
    #[test]
    fn bad_arguments_name_the_member() {
        let (pointer, reason) = route_error(r#"{"stops":[{"a/b":1},{"a/b":256}]}"#);
        assert_eq!(pointer, "/stops/1/a~1b");
        assert_eq!(
            reason,
            "invalid value: integer `256`, expected an integer from 0 to 255"
        );
        let (pointer, reason) = route_error(r#"{"stops":[{}]}"#);
        assert_eq!(pointer, "/stops/0");
        assert_eq!(reason, "missing field `a/b`");
        assert_eq!(route_error("{}").0, "");
    }
}
