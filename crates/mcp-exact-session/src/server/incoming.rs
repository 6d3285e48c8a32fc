//! What a server's program is given and gives back: requests with who has sent them, events, replies.
//!
//! Plain data and typed views of it. Takes what the machine keeps; never changes the machine.

use std::sync::Arc;

use mcp_exact_wire::{Direction, Encode, JsonObject, RequestId, Revision, RevisionTypes};

use super::listen::Filter;
use crate::error::{PeerError, SendError, Violation};
use crate::log::Level;
use crate::message::{self, Call};
use crate::negotiated::{ClientNotifications, ClientRequests, Negotiated, View};
use crate::revision::Rules;
use crate::types::{
    InputRequest, InputResponses, Outcome, Progress, RawResult, RequestKey, SessionInfo, StreamId,
};

/// What a transport knows of a frame.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FrameContext<C> {
    /// The HTTP request that it came in.
    pub http: Option<HttpRequest>,
    /// Who was authenticated.
    pub principal: Option<Principal>,
    /// Whatever the program wants to know again.
    pub cx: C,
}

impl<C> FrameContext<C> {
    /// A frame of which nothing is known but what the program wants to know again.
    pub fn new(cx: C) -> Self {
        Self {
            http: None,
            principal: None,
            cx,
        }
    }
}

/// The headers of a POST.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HttpRequest {
    /// Names, in any case, and values.
    pub headers: Vec<(String, String)>,
}

impl HttpRequest {
    /// The value of a header; of one that is there twice, the first one.
    pub fn header(&self, name: &str) -> Option<&str> {
        let mut all = self.headers.iter();
        let found = all.find(|(known, _)| known.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    }
}

/// Who was authenticated, as the program names it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Principal(pub String);

/// What is known of whoever has sent a request: of the session, or of the request alone.
#[derive(Debug)]
pub(super) struct Caller {
    pub(super) rules: &'static Rules,
    pub(super) agreed: SessionInfo,
    /// The level that the request wants logs from (2026-07-28 on).
    pub(super) level: Option<Level>,
}

/// A request as it came.
#[derive(Debug)]
pub(crate) struct Origin<C> {
    pub(super) id: RequestId,
    pub(crate) call: Call,
    pub(super) with: Arc<FrameContext<C>>,
}

/// A request of the client that waits for [`ServerEndpoint::reply`](super::ServerEndpoint::reply).
#[derive(Debug)]
pub struct IncomingRequest<C> {
    /// What to reply to.
    pub key: RequestKey,
    /// How often it has asked already.
    pub round: u32,
    /// The answers to its questions.
    pub answers: InputResponses,
    /// The state that came with its questions.
    pub state: Option<String>,
    /// The stream that it came on.
    pub stream: StreamId,
    pub(super) caller: Arc<Caller>,
    pub(crate) origin: Arc<Origin<C>>,
}

impl<C> IncomingRequest<C> {
    /// The revision that it speaks.
    pub fn revision(&self) -> Revision {
        self.caller.rules.revision
    }

    /// Its id, as the client spells it.
    pub fn id(&self) -> &RequestId {
        &self.origin.id
    }

    /// Its method.
    pub fn method(&self) -> &str {
        &self.origin.call.method
    }

    /// Its parameters, as they came.
    pub fn params(&self) -> Option<&JsonObject> {
        self.origin.call.params.as_ref()
    }

    /// What the client says of itself: in the handshake, or in this request.
    pub fn client(&self) -> &SessionInfo {
        &self.caller.agreed
    }

    /// What the transport knows of it.
    pub fn with(&self) -> &FrameContext<C> {
        &self.origin.with
    }

    /// The request by the types of the revision that it speaks.
    ///
    /// # Errors
    /// The error to reply with: the parameters do not fit the method.
    pub fn typed(&self) -> Result<Negotiated<ClientRequests>, PeerError> {
        Negotiated::decode(self.caller.rules, self.text().as_slice())
    }

    /// The request by the types of the revision `H`, which has to be the one that it speaks.
    ///
    /// # Errors
    /// The error to reply with: the parameters do not fit the method, or the revision is another one.
    pub fn exact<H: RevisionTypes>(
        &self,
    ) -> Result<<H::FromClient as Direction>::Request, PeerError> {
        if H::REVISION != self.revision() {
            let words = format!(
                "the request speaks {}, not {}",
                self.revision(),
                H::REVISION
            );
            return Err(PeerError::internal(words));
        }
        ClientRequests::decode::<H>(&self.text())
    }

    fn text(&self) -> Vec<u8> {
        message::request_text(&self.origin.id, &self.origin.call)
    }
}

/// A notification of the client that the machine does not deal with itself.
#[derive(Debug)]
pub struct ClientNotification<C> {
    pub(super) rules: &'static Rules,
    pub(crate) call: Call,
    pub(super) with: Arc<FrameContext<C>>,
}

impl<C> ClientNotification<C> {
    /// Its method.
    pub fn method(&self) -> &str {
        &self.call.method
    }

    /// Its parameters, as they came.
    pub fn params(&self) -> Option<&JsonObject> {
        self.call.params.as_ref()
    }

    /// The revision that was agreed.
    pub fn revision(&self) -> Revision {
        self.rules.revision
    }

    /// What the transport knows of it.
    pub fn with(&self) -> &FrameContext<C> {
        &self.with
    }

    /// The notification by the types of the revision that was agreed.
    ///
    /// # Errors
    /// When the parameters do not fit the method. Notifications are never answered.
    pub fn typed(&self) -> Result<Negotiated<ClientNotifications>, PeerError> {
        Negotiated::decode(
            self.rules,
            message::notification(self.call.clone()).as_slice(),
        )
    }
}

/// What has happened to a server.
#[derive(Debug)]
#[non_exhaustive]
pub enum ServerEvent<C> {
    /// A client has begun a session.
    Negotiated(SessionInfo),
    /// The client is ready for requests of the server.
    Ready,
    /// A request waits for a reply.
    Request(IncomingRequest<C>),
    /// The client does not want an answer any more; a reply would not leave.
    Cancelled {
        /// The request.
        key: RequestKey,
        /// Why, in words.
        reason: Option<String>,
    },
    /// The client listens to changes (from 2026-07-28 on). The machine has acknowledged it and sends what is published.
    Subscribed {
        /// The request that lasts as long as it listens.
        key: RequestKey,
        /// What it listens to, as far as this server honours it.
        filter: Filter,
    },
    /// A notification of the client.
    Notification(ClientNotification<C>),
    /// A request of this side has ended.
    Completed(RequestKey, Outcome),
    /// A request of this side has come this far.
    Progress(RequestKey, Progress),
    /// The client did something that it should not have done.
    Violation(Violation),
    /// Nothing more comes.
    Closed,
}

/// How a request is answered.
#[derive(Debug, Clone, PartialEq)]
pub enum Reply {
    /// With a result.
    Result(RawResult),
    /// With an error.
    Error(PeerError),
    /// With questions to the client. The request is raised again with the answers.
    ///
    /// Towards 2026-07-28 this is a result of type `input_required`; towards older clients the machine sends the questions
    /// as requests.
    InputRequired {
        /// The questions by names of the program's choice.
        asks: Vec<(String, InputRequest)>,
        /// What the program wants to know again with the answers.
        state: Option<String>,
    },
}

impl Reply {
    /// A result of a generated type, of the revision that the request speaks.
    ///
    /// # Errors
    /// [`SendError::Params`] when it is no object.
    pub fn result<T: Encode + ?Sized>(value: &T) -> Result<Self, SendError> {
        RawResult::of(value).map(Self::Result)
    }
}

impl From<PeerError> for Reply {
    fn from(error: PeerError) -> Self {
        Self::Error(error)
    }
}

impl From<RawResult> for Reply {
    fn from(result: RawResult) -> Self {
        Self::Result(result)
    }
}

/// Where a message of the server belongs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Scope {
    /// To a request that is being served: it goes where its answer will go.
    During(RequestKey),
    /// To the client as such.
    Peer,
}
