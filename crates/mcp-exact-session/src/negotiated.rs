//! Typed views of what came in: the types of the revision that was negotiated, or of one that the program chooses.
//!
//! Takes the text of a message that the machines keep; gives types of the revision crates. Decodes only when asked.

use std::fmt::Debug;

use mcp_exact_wire::{
    DecodeResult, Direction, JsonObject, Message, Reader, RevisionTypes, decode_message,
};

use crate::error::PeerError;
pub use crate::revision::Negotiated;

mod sealed {
    pub trait Sealed {}
}

/// What a [`Negotiated`] is a value of.
pub trait View: sealed::Sealed + Debug + Clone + PartialEq {
    /// The type in one revision.
    type Of<R: RevisionTypes>: Debug + Clone + PartialEq;

    #[doc(hidden)]
    type Source<'a>;

    #[doc(hidden)]
    fn decode<R: RevisionTypes>(from: Self::Source<'_>) -> Result<Self::Of<R>, PeerError>;
}

macro_rules! views {
    ($($(#[$doc:meta])* $name:ident $side:ident $variant:ident;)*) => {
        $(
            $(#[$doc])*
            #[derive(Debug, Clone, Copy, PartialEq, Eq)]
            pub enum $name {}

            impl sealed::Sealed for $name {}

            impl View for $name {
                type Of<R: RevisionTypes> = <R::$side as Direction>::$variant;
                type Source<'a> = &'a [u8];

                fn decode<R: RevisionTypes>(text: &[u8]) -> Result<Self::Of<R>, PeerError> {
                    match decode_message::<R::$side>(text, &|_| None) {
                        Ok(Message::$variant(value)) => Ok(value),
                        Ok(_) => Err(PeerError::invalid_request("a message of another kind")),
                        Err(error) => Err(PeerError::from(&error)),
                    }
                }
            }
        )*
    };
}

views! {
    /// Requests of a client.
    ClientRequests FromClient Request;
    /// Requests of a server (up to 2025-11-25).
    ServerRequests FromServer Request;
    /// Notifications of a client.
    ClientNotifications FromClient Notification;
    /// Notifications of a server.
    ServerNotifications FromServer Notification;
}

macro_rules! results {
    ($($(#[$doc:meta])* $name:ident $side:ident;)*) => {
        $(
            $(#[$doc])*
            #[derive(Debug, Clone, Copy, PartialEq, Eq)]
            pub enum $name {}

            impl sealed::Sealed for $name {}

            impl View for $name {
                type Of<R: RevisionTypes> = <R::$side as Direction>::Result;
                type Source<'a> = (&'a str, &'a JsonObject);

                fn decode<R: RevisionTypes>(
                    (method, result): (&str, &JsonObject),
                ) -> Result<Self::Of<R>, PeerError> {
                    let mut r = Reader::new(result.text());
                    let decoded = <R::$side as Direction>::Result::decode_result(method, &mut r);
                    decoded.map_err(|_| unreadable(method, r))
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

fn unreadable(method: &str, r: Reader<'_>) -> PeerError {
    let error = r.into_error();
    PeerError::invalid_params(format!("the result does not fit `{method}`: {error}")).local()
}
