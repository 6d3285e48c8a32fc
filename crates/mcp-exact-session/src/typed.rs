//! Typed views: received messages, decoded as the types of the negotiated revision or of a revision that the application names.
//!
//! No other module of the crate uses the type crates, which are optional features. Messages are decoded on demand from
//! the JSON text that the endpoints keep.

use std::fmt::Debug;

use mcp_exact_wire::{
    DecodeResult, Direction, JsonObject, MessageError, Never, ProvidedParam, Reader, RequestId,
    Revision, RevisionTypes, decode_notification, decode_request,
};

#[cfg(feature = "client")]
use crate::client::{ServerNotification, ServerRequest};
use crate::error::PeerError;
use crate::message::{self, Call};
use crate::outcome::RawResult;
use crate::server::{ClientNotification, IncomingRequest};

mod sealed {
    /// Prevents implementations in other crates.
    pub trait Sealed {}
}

/// Kind of value that a [`Negotiated`] contains, such as requests of a client.
pub trait View: sealed::Sealed + Debug + Clone + PartialEq {
    /// The type in one revision.
    type InRevision<R: RevisionTypes>: Debug + Clone + PartialEq;

    /// Received message or result, before the decoding.
    #[doc(hidden)]
    type Received<'a>;

    /// Decodes the received value by the types of the revision `R`.
    #[doc(hidden)]
    fn decode<R: RevisionTypes>(from: Self::Received<'_>)
    -> Result<Self::InRevision<R>, PeerError>;
}

/// Request or notification of the peer.
#[doc(hidden)]
#[derive(Debug, Clone, Copy)]
pub struct ReceivedCall<'a> {
    /// The id, if the message is a request.
    pub(crate) id: Option<&'a RequestId>,
    /// Method and parameters, as received.
    pub(crate) call: &'a Call,
    /// Member `_meta` for a request whose parameters require the member and lack it in the text.
    pub(crate) meta: Option<&'a ProvidedParam>,
}

/// Decodes the text of a request.
#[inline]
fn request<D: Direction>(text: &str, from: ReceivedCall<'_>) -> Result<D::Request, MessageError> {
    decode_request::<D>(text, Some(&from.call.method), from.meta)
}

/// Decodes the text of a notification.
#[inline]
fn notification<D: Direction>(
    text: &str,
    _: ReceivedCall<'_>,
) -> Result<D::Notification, MessageError> {
    decode_notification::<D>(text)
}

/// Defines the view types of requests and notifications.
macro_rules! views {
    ($($(#[$doc:meta])* $name:ident $side:ident $class:ident $decode:ident;)*) => {
        $(
            $(#[$doc])*
            #[derive(Debug, Clone, Copy, PartialEq, Eq)]
            pub enum $name {}

            impl sealed::Sealed for $name {}

            impl View for $name {
                type InRevision<R: RevisionTypes> = <R::$side as Direction>::$class;
                type Received<'a> = ReceivedCall<'a>;

                #[inline]
                fn decode<R: RevisionTypes>(call: ReceivedCall<'_>) -> Result<Self::InRevision<R>, PeerError> {
                    let text = message::message_text(call.id, call.call);
                    // Without `map_err`, which would move a large value once more.
                    match $decode::<R::$side>(&text, call) {
                        Ok(value) => Ok(value),
                        Err(error) => Err(PeerError::from(&error)),
                    }
                }
            }
        )*
    };
}

views! {
    /// Requests of a client.
    ClientRequests FromClient Request request;
    /// Requests of a server (up to 2025-11-25).
    ServerRequests FromServer Request request;
    /// Notifications of a client.
    ClientNotifications FromClient Notification notification;
    /// Notifications of a server.
    ServerNotifications FromServer Notification notification;
}

/// Defines the view types of results.
macro_rules! results {
    ($($(#[$doc:meta])* $name:ident $side:ident;)*) => {
        $(
            $(#[$doc])*
            #[derive(Debug, Clone, Copy, PartialEq, Eq)]
            pub enum $name {}

            impl sealed::Sealed for $name {}

            impl View for $name {
                type InRevision<R: RevisionTypes> = <R::$side as Direction>::Result;
                type Received<'a> = (&'a str, &'a JsonObject);

                fn decode<R: RevisionTypes>(
                    (method, result): (&str, &JsonObject),
                ) -> Result<Self::InRevision<R>, PeerError> {
                    let mut r = result.reader();
                    let decoded = <R::$side as Direction>::Result::decode_result(method, &mut r);
                    decoded.map_err(|_| decode_error(method, r))
                }
            }
        )*
    };
}

results! {
    /// Results of a server.
    ServerResults FromServer;
    /// Results of a client (up to 2025-11-25).
    ClientResults FromClient;
}

/// Creates the error for a result that does not match the types of its method.
fn decode_error(method: &str, r: Reader<'_>) -> PeerError {
    let error = r.into_error();
    PeerError::invalid_params(format!("the result does not fit `{method}`: {error}")).into_local()
}

/// Returns the error for a revision whose type crate is not enabled.
fn disabled_error(revision: Revision) -> PeerError {
    let text = format!("the types of {revision} are not compiled in; enable their feature");
    PeerError::internal(text).into_local()
}

/// Placeholder for the types of a revision whose feature is disabled.
#[doc(hidden)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(dead_code, reason = "with every feature on, no revision is disabled")]
pub struct DisabledRevision;

impl mcp_exact_wire::private::Generated for DisabledRevision {}

impl RevisionTypes for DisabledRevision {
    const REVISION: Revision = Revision::new("");
    type FromClient = Self;
    type FromServer = Self;
    type RequestMeta = Never;
    type ClientRequest = Never;
    type ClientNotification = Never;
    type ClientResult = Never;
    type ServerRequest = Never;
    type ServerNotification = Never;
    type ServerResult = Never;
}

impl Direction for DisabledRevision {
    type Request = Never;
    type Notification = Never;
    type Result = Never;
    const REQUESTS: &'static [&'static str] = &[];
    const NOTIFICATIONS: &'static [&'static str] = &[];
    const BATCHES: bool = false;
    const ENVELOPE_INSIDE: bool = false;
    const ERROR_NEEDS_ID: bool = false;
}

/// Defines [`Negotiated`] with one variant per revision.
macro_rules! revisions {
    ($($id:literal $marker:ident $library:ident $spec:ident;)*) => {
        mod markers {
            $(
                #[cfg(feature = $id)]
                pub use $library::$marker;
                #[cfg(not(feature = $id))]
                pub type $marker = super::DisabledRevision;
            )*
        }

        /// A value in the types of the negotiated revision; each revision has one variant.
        ///
        /// `V` names the kind of value: [`ClientRequests`](crate::ClientRequests) for requests of a client, and so on.
        #[derive(Debug, Clone, PartialEq)]
        pub enum Negotiated<V: View> {
            $(
                #[doc = concat!("Revision ", $id, ".")]
                $marker(V::InRevision<markers::$marker>),
            )*
        }

        impl<V: View> Negotiated<V> {
            /// Decodes a received value by the types of a revision; an error if the types are not enabled.
            #[allow(unused_variables, reason = "without a feature, no revision has types")]
            fn decode(revision: Revision, from: V::Received<'_>) -> Result<Self, PeerError> {
                match revision.as_str() {
                    $(
                        // Without `map`, which would move a large value once more.
                        #[cfg(feature = $id)]
                        $id => match V::decode::<markers::$marker>(from) {
                            Ok(value) => Ok(Self::$marker(value)),
                            Err(error) => Err(error),
                        },
                    )*
                    _ => Err(disabled_error(revision)),
                }
            }
        }
    };
}

mcp_exact_revisions::for_each_revision!(revisions);

impl<C> IncomingRequest<C> {
    /// Decodes the request by the types of its revision.
    ///
    /// # Errors
    ///
    /// The error to reply with, if the parameters do not match the method.
    pub fn typed(&self) -> Result<Negotiated<ClientRequests>, PeerError> {
        Negotiated::decode(self.revision(), self.to_received_call())
    }

    /// Decodes the request by the types of the revision `R`, which must be the revision of the request.
    ///
    /// # Errors
    /// The error to reply with, if the parameters do not match the method or the request has another revision.
    pub fn typed_exactly<R: RevisionTypes>(
        &self,
    ) -> Result<<R::FromClient as Direction>::Request, PeerError> {
        if R::REVISION != self.revision() {
            let text = format!(
                "the request speaks {}, not {}",
                self.revision(),
                R::REVISION
            );
            return Err(PeerError::internal(text));
        }
        ClientRequests::decode::<R>(self.to_received_call())
    }

    /// Returns the received message for decoding.
    fn to_received_call(&self) -> ReceivedCall<'_> {
        ReceivedCall {
            id: Some(self.id()),
            call: &self.received_call.call,
            meta: None,
        }
    }
}

impl<C> ClientNotification<C> {
    /// Decodes the notification by the types of its revision.
    ///
    /// # Errors
    ///
    /// [`PeerError`] if the parameters do not match the method; the error is not sent, because notifications are never
    /// answered.
    pub fn typed(&self) -> Result<Negotiated<ClientNotifications>, PeerError> {
        let received = ReceivedCall {
            id: None,
            call: &self.call,
            meta: None,
        };
        Negotiated::decode(self.revision(), received)
    }
}

#[cfg(feature = "client")]
impl ServerRequest {
    /// Decodes the request by the types of its revision, if the revision has server requests.
    ///
    /// # Errors
    ///
    /// The error to answer with, if the parameters do not match the method.
    pub fn typed(&self) -> Result<Negotiated<ServerRequests>, PeerError> {
        let received = ReceivedCall {
            id: Some(&0_i64.into()),
            call: &self.call,
            meta: None,
        };
        Negotiated::decode(self.revision(), received)
    }
}

#[cfg(feature = "client")]
impl ServerNotification {
    /// Decodes the notification by the types of its revision.
    ///
    /// # Errors
    ///
    /// [`PeerError`] if the parameters do not match the method; the error is not sent, because notifications are never
    /// answered.
    pub fn typed(&self) -> Result<Negotiated<ServerNotifications>, PeerError> {
        let received = ReceivedCall {
            id: None,
            call: &self.call,
            meta: None,
        };
        Negotiated::decode(self.revision(), received)
    }
}

impl RawResult {
    /// Decodes the result of a request of `method` by the types of a revision.
    ///
    /// # Errors
    /// [`PeerError`] if the result does not match the schema, or the types of the revision are not compiled in.
    pub fn typed<V>(&self, method: &str, revision: Revision) -> Result<Negotiated<V>, PeerError>
    where
        V: for<'a> View<Received<'a> = (&'a str, &'a JsonObject)>,
    {
        Negotiated::decode(revision, (method, self.object()))
    }
}
