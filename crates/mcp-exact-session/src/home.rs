//! Typed views in one revision that the application chooses, independent of the negotiated revision.
//!
//! The functions convert messages between revisions and report the changes, so that a handler that is written for one revision
//! serves peers of every revision. Endpoints are not changed.

mod session;

use std::borrow::Cow;

use mcp_exact_convert::{
    Context, ConvertError, Home, KnownRevision, Lifecycle, Loss, MessageKind, Payload, Role,
    convert,
};
use mcp_exact_wire::{
    Decode, DecodeError, DecodeFailed, DecodeParams, Direction, Encode, EncodeParams, ErrorObject,
    Json, JsonObject, ProvidedParam, Reader, Request, Revision, RevisionTypes, from_str, to_string,
};

#[cfg(feature = "client")]
use crate::client::{ClientEndpoint, ServerNotification, ServerRequest};
use crate::error::{PeerError, SendError};
use crate::input_request::InputRequest;
use crate::message::Call;
use crate::outcome::RawResult;
use crate::server::{ClientNotification, IncomingRequest, Reply};
use crate::stream::RequestKey;
use crate::typed::{ClientNotifications, ClientRequests, ReceivedCall, ServerNotifications, View};
use crate::{CallOptions, Time};

pub(crate) use session::HomeSession;
use session::ParamsEffect;
pub use session::RequestLosses;

/// Policy for messages that a conversion changes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum LossPolicy {
    /// The message is refused if the conversion drops, replaces or defaults a value.
    Refuse,
    /// The message is converted, and the changes are reported.
    #[default]
    Report,
    /// The message is converted, and the changes are not reported.
    Accept,
}

/// A value in the types of another revision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConvertedValue<T, L = Vec<Loss>> {
    /// The converted value.
    pub value: T,
    /// Changes that the conversion made, as a slice of [`Loss`]; empty with [`LossPolicy::Accept`].
    pub losses: L,
}

/// A client's request in the types of the revision `H`.
pub type HomeRequest<'r, H> =
    ConvertedValue<<<H as RevisionTypes>::FromClient as Direction>::Request, RequestLosses<'r>>;

impl<T> ConvertedValue<T> {
    /// Converts the value and keeps the losses.
    fn map_value<U>(
        self,
        f: impl FnOnce(T) -> Result<U, PeerError>,
    ) -> Result<ConvertedValue<U>, PeerError> {
        Ok(ConvertedValue {
            value: f(self.value)?,
            losses: self.losses,
        })
    }
}

impl<C> IncomingRequest<C> {
    /// Decodes the request by the types of the revision `H`.
    ///
    /// # Errors
    /// The error to reply with, if the parameters do not match the method, `H` does not define the method or cannot express the
    /// parameters, or the policy refuses the changes.
    pub fn typed_as<H: Home>(&self, policy: LossPolicy) -> Result<HomeRequest<'_, H>, PeerError> {
        let received = &self.received_call.call;
        let (call, meta, losses) = match self.without_conversion::<H>(policy) {
            Some((meta, losses)) => (Cow::Borrowed(received), meta, losses),
            None => {
                let converted = self.converted_call(H::KNOWN, policy)?;
                (converted.value, None, converted.losses.into())
            }
        };
        let value = ClientRequests::decode::<H>(ReceivedCall {
            id: Some(self.id()),
            call: &call,
            meta,
        })?;
        Ok(ConvertedValue { value, losses })
    }

    /// Creates the reply in the revision of the request from a result of the revision `H`.
    ///
    /// # Errors
    /// The error to reply with instead, if the other revision cannot express the result or the policy refuses the changes.
    pub fn reply_as<H: Home>(
        &self,
        result: &impl Encode,
        policy: LossPolicy,
    ) -> Result<ConvertedValue<Reply>, PeerError> {
        let root = Payload {
            kind: MessageKind::Result,
            method: self.method(),
            sender: Role::Server,
        };
        let direction = (H::KNOWN.revision(), self.revision());
        let text = to_string(result);
        let result = convert_text(root, Some(&text), direction, Context::new(), policy);
        let result = result.map_err(|error| PeerError::internal(error.message()))?;
        result.map_value(|text| Ok(Reply::Result(RawResult::from(parse_object(text)?))))
    }

    /// Creates the reply in the revision of the request from an error of the revision `H`, and converts the error code.
    ///
    /// # Errors
    ///
    /// The error to reply with instead, if the other revision has a result in place of the error.
    pub fn error_as<H: Home>(&self, error: &PeerError) -> Result<Reply, PeerError> {
        let uri = self.params().and_then(|params| params.get("uri"));
        let uri: Option<String> = uri.and_then(|uri| from_str(uri.text()).ok());
        let cx = uri.map_or_else(Context::new, |uri| Context::new().requested_uri(uri));
        let root = Payload {
            kind: MessageKind::Error,
            method: self.method(),
            sender: Role::Server,
        };
        let direction = (H::KNOWN.revision(), self.revision());
        let text = to_string(error.object());
        let error = convert_text(root, Some(&text), direction, cx, LossPolicy::Accept)?;
        let error: ErrorObject = from_str(error.value.as_deref().unwrap_or_default())
            .map_err(|error| PeerError::internal(format!("{error}")))?;
        Ok(Reply::Error(PeerError::from(error)))
    }

    /// Creates an input request in the revision of this request's client from an input request of the revision `H`.
    ///
    /// # Errors
    /// [`SendError`] if the other revision cannot express the input request, or the policy refuses the changes.
    pub fn input_request_as<H: Home, Q: Request>(
        &self,
        params: &Q::Params,
        policy: LossPolicy,
    ) -> Result<ConvertedValue<InputRequest>, PeerError>
    where
        Q::Params: EncodeParams,
    {
        let root = Payload {
            kind: MessageKind::Request,
            method: Q::METHOD,
            sender: Role::Server,
        };
        let direction = (H::KNOWN.revision(), self.revision());
        let text = params.encode_params();
        let converted = convert_text(root, text.as_deref(), direction, Context::new(), policy)?;
        converted.map_value(|text| {
            let params = text.map(|text| parse_object(Some(text))).transpose()?;
            Ok(InputRequest::new(Q::METHOD, params))
        })
    }

    /// Decodes the response to the input request of this name by the types of the revision `H`; `None` if there is no
    /// such response or it is an error.
    ///
    /// # Errors
    ///
    /// An error if the response does not match the schema, `H` cannot express the response, or the policy refuses the
    /// changes.
    pub fn response_as<H: Home, Q: Request>(
        &self,
        name: &str,
        policy: LossPolicy,
    ) -> Option<Result<ConvertedValue<Q::Result>, PeerError>>
    where
        Q::Result: Decode,
    {
        let result = self.responses.result(name)?;
        let direction = (self.revision(), H::KNOWN.revision());
        Some(convert_result::<Q>(result, Role::Client, direction, policy))
    }

    /// Converts the params to a home revision.
    fn converted_call(
        &self,
        home: KnownRevision,
        policy: LossPolicy,
    ) -> Result<ConvertedValue<Cow<'_, Call>>, PeerError> {
        let root = Payload {
            kind: MessageKind::Request,
            method: self.method(),
            sender: Role::Client,
        };
        // The application reads answers and state of a retry from the request.
        let mut cx = Context::new().assume_input_read();
        cx = cx.request_id(self.id().clone());
        if home.lifecycle() == Lifecycle::Discover {
            cx = cx.request_meta(self.client.request_meta());
        }
        let direction = (self.revision(), home);
        convert_call(root, &self.received_call.call, direction, cx, policy)
    }

    /// Returns the member that the conversion to `H` adds to the params, if any, and the losses of the conversion;
    /// `None` if the conversion may change other members, if the policy refuses the losses, or if the requests of the
    /// session are converted to another home revision.
    fn without_conversion<H: Home>(
        &self,
        policy: LossPolicy,
    ) -> Option<(Option<&ProvidedParam>, RequestLosses<'_>)> {
        if self.revision() == H::REVISION {
            return Some(Default::default());
        }
        let (call, decode) = (
            &self.received_call.call,
            ProvidedParam::decode::<H::RequestMeta>,
        );
        self.client.added_member(H::KNOWN, call, policy, decode)
    }
}

impl<C> ClientNotification<C> {
    /// Decodes the notification by the types of the revision `H`.
    ///
    /// # Errors
    /// The errors of [`IncomingRequest::typed_as`]; they are not sent, because notifications are never answered.
    pub fn typed_as<H: Home>(
        &self,
        policy: LossPolicy,
    ) -> Result<ConvertedValue<<H::FromClient as Direction>::Notification>, PeerError> {
        let root = Payload {
            kind: MessageKind::Notification,
            method: self.method(),
            sender: Role::Client,
        };
        let direction = (self.revision(), H::KNOWN);
        let call = convert_call(root, &self.call, direction, Context::new(), policy)?;
        call.map_value(|call| {
            ClientNotifications::decode::<H>(ReceivedCall {
                id: None,
                call: &call,
                meta: None,
            })
        })
    }
}

#[cfg(feature = "client")]
impl ServerNotification {
    /// Decodes the notification by the types of the revision `H`.
    ///
    /// # Errors
    /// The errors of [`IncomingRequest::typed_as`]; they are not sent, because notifications are never answered.
    pub fn typed_as<H: Home>(
        &self,
        policy: LossPolicy,
    ) -> Result<ConvertedValue<<H::FromServer as Direction>::Notification>, PeerError> {
        let root = Payload {
            kind: MessageKind::Notification,
            method: self.method(),
            sender: Role::Server,
        };
        let direction = (self.revision(), H::KNOWN);
        let call = convert_call(root, &self.call, direction, Context::new(), policy)?;
        call.map_value(|call| {
            ServerNotifications::decode::<H>(ReceivedCall {
                id: None,
                call: &call,
                meta: None,
            })
        })
    }
}

#[cfg(feature = "client")]
impl ServerRequest {
    /// Decodes the parameters of the request `Q` by the types of the revision `H`.
    ///
    /// # Errors
    /// The error to answer with, if the method is not that of `Q`, the parameters do not match the schema, `H` cannot express the
    /// parameters, or the policy refuses the changes.
    pub fn typed_as<H: Home, Q: Request>(
        &self,
        policy: LossPolicy,
    ) -> Result<ConvertedValue<Q::Params>, PeerError>
    where
        Q::Params: DecodeParams,
    {
        if self.method() != Q::METHOD {
            return Err(PeerError::method_not_found(self.method()));
        }
        let root = Payload {
            kind: MessageKind::Request,
            method: Q::METHOD,
            sender: Role::Server,
        };
        let direction = (self.revision(), H::KNOWN.revision());
        let text = self.params().map(JsonObject::text);
        let decoded = |text: Option<Cow<'_, str>>| {
            let params = Q::Params::decode_params(text.as_deref());
            params.map_err(|error| mismatch_error(&error))
        };
        if is_unchanged(root, &self.call, self.revision(), H::KNOWN) {
            return Ok(ConvertedValue {
                value: decoded(text.map(Cow::Borrowed))?,
                losses: Vec::new(),
            });
        }
        convert_text(root, text, direction, Context::new(), policy)?.map_value(decoded)
    }

    /// Creates the answer in the revision of the request from a result of the revision `H`.
    ///
    /// # Errors
    /// The error to answer with instead, if the other revision cannot express the result or the policy refuses the changes.
    pub fn response_as<H: Home>(
        &self,
        result: &impl Encode,
        policy: LossPolicy,
    ) -> Result<ConvertedValue<RawResult>, PeerError> {
        let root = Payload {
            kind: MessageKind::Result,
            method: self.method(),
            sender: Role::Client,
        };
        let direction = (H::KNOWN.revision(), self.revision());
        let text = to_string(result);
        let result = convert_text(root, Some(&text), direction, Context::new(), policy)?;
        result.map_value(|text| Ok(RawResult::from(parse_object(text)?)))
    }
}

impl RawResult {
    /// Decodes the result of a client's request `Q` by the types of the revision `H`; `revision` is the negotiated
    /// revision.
    ///
    /// # Errors
    ///
    /// An error if the result does not match the schema, `H` cannot express the result, or the policy refuses the
    /// changes.
    pub fn typed_as<H: Home, Q: Request>(
        &self,
        revision: Revision,
        policy: LossPolicy,
    ) -> Result<ConvertedValue<Q::Result>, PeerError>
    where
        Q::Result: Decode,
    {
        let direction = (revision, H::KNOWN.revision());
        convert_result::<Q>(self, Role::Server, direction, policy)
    }
}

#[cfg(feature = "client")]
impl ClientEndpoint {
    /// Sends a request of the revision `H` in the negotiated revision.
    ///
    /// # Errors
    /// The errors of [`ClientEndpoint::request`], and [`SendError`] if the negotiated revision cannot express the request or the
    /// policy refuses the changes.
    pub fn request_as<H: Home, Q: Request>(
        &mut self,
        params: &Q::Params,
        options: CallOptions,
        policy: LossPolicy,
        now: Time,
    ) -> Result<ConvertedValue<RequestKey>, SendError>
    where
        Q::Params: EncodeParams,
    {
        let revision = self.session_info().map(|info| info.revision);
        let direction = (H::KNOWN.revision(), revision.unwrap_or(H::REVISION));
        let root = Payload {
            kind: MessageKind::Request,
            method: Q::METHOD,
            sender: Role::Client,
        };
        let text = params.encode_params();
        let refused = |error: PeerError| SendError::Params {
            method: Q::METHOD.to_owned(),
            reason: error.message().to_owned(),
        };
        let params = convert_text(root, text.as_deref(), direction, Context::new(), policy);
        let ConvertedValue { value, losses } = params.map_err(refused)?;
        let params = value.map(|text| parse_object(Some(text))).transpose();
        let value = self.request(Q::METHOD, params.map_err(refused)?, options, now)?;
        Ok(ConvertedValue { value, losses })
    }
}

/// Converts the result of the request `Q` between two revisions and decodes it.
fn convert_result<Q: Request>(
    result: &RawResult,
    sender: Role,
    direction: (Revision, Revision),
    policy: LossPolicy,
) -> Result<ConvertedValue<Q::Result>, PeerError>
where
    Q::Result: Decode,
{
    let root = Payload {
        kind: MessageKind::Result,
        method: Q::METHOD,
        sender,
    };
    let text = Some(result.object().text());
    let result = convert_text(root, text, direction, Context::new(), policy)?;
    result.map_value(|text| decode_converted(text.as_deref().unwrap_or_default()))
}

/// Converts the parameters of a message to the revision `to`; borrows the message if the conversion does not change the
/// parameters.
fn convert_call<'c>(
    root: Payload<'_>,
    call: &'c Call,
    (from, to): (Revision, KnownRevision),
    cx: Context,
    policy: LossPolicy,
) -> Result<ConvertedValue<Cow<'c, Call>>, PeerError> {
    if is_unchanged(root, call, from, to) {
        return Ok(ConvertedValue {
            value: Cow::Borrowed(call),
            losses: Vec::new(),
        });
    }
    let text = call.params.as_ref().map(JsonObject::text);
    let params = convert_text(root, text, (from, to.revision()), cx, policy)?;
    params.map_value(|converted| {
        let params = match converted {
            // The identical string, and not only an equal one, means that nothing was converted.
            Some(Cow::Borrowed(same)) if text.is_some_and(|own| std::ptr::eq(own, same)) => {
                return Ok(Cow::Borrowed(call));
            }
            None => None,
            converted => Some(parse_object(converted)?),
        };
        Ok(Cow::Owned(call.with_params(params)))
    })
}

/// Returns true if the names of a message's members show that a conversion, whose output is decoded, does not change the
/// params.
fn is_unchanged(root: Payload<'_>, call: &Call, from: Revision, to: KnownRevision) -> bool {
    KnownRevision::parse(from.as_str()).is_some_and(|from| {
        let effect = ParamsEffect::new(root, from, to);
        let change = effect.change_without_members(call);
        change.is_some_and(|change| !change.adds_meta)
    })
}

/// Converts JSON text between two revisions; borrows the text if nothing changes.
fn convert_text<'t>(
    root: Payload<'_>,
    text: Option<&'t str>,
    (from, to): (Revision, Revision),
    cx: Context,
    policy: LossPolicy,
) -> Result<ConvertedValue<Option<Cow<'t, str>>>, PeerError> {
    // The text was checked when received, or was encoded from a value.
    let mut cx = cx.assume_json();
    let known = |revision: Revision| {
        let unknown =
            || PeerError::internal(format!("the conversions of {revision} are not compiled in"));
        KnownRevision::parse(revision.as_str()).ok_or_else(unknown)
    };
    let value = convert(root, text, known(from)?, known(to)?, &mut cx);
    let value = value.map_err(|refused| conversion_error(&refused))?;
    if policy == LossPolicy::Refuse
        && let Some(loss) = cx.losses().iter().find(|loss| loss.kind.is_lossy())
    {
        return Err(error_with_pointer(&loss.pointer, format!("{loss}")));
    }
    let losses = match policy {
        LossPolicy::Accept => Vec::new(),
        LossPolicy::Refuse | LossPolicy::Report => cx.into_losses(),
    };
    Ok(ConvertedValue { value, losses })
}

/// Creates the error for a failed conversion.
fn conversion_error(refused: &ConvertError) -> PeerError {
    error_with_pointer(refused.pointer(), format!("{refused}"))
}

/// Creates an error with code -32602 whose data contains a JSON pointer.
fn error_with_pointer(pointer: &str, words: String) -> PeerError {
    let data = JsonObject::from_iter([("pointer", Json::string(pointer))]);
    PeerError::invalid_params(words).with_data(data)
}

/// Parses the JSON text of an object; an absent text is an empty object.
fn parse_object(text: Option<Cow<'_, str>>) -> Result<JsonObject, PeerError> {
    match text {
        None => Ok(JsonObject::new()),
        Some(text) if text.starts_with('{') => Ok(JsonObject::from_checked_text(text.into_owned())),
        Some(text) => decode_converted(&text),
    }
}

/// Decodes the JSON text that a conversion has produced.
fn decode_converted<T: Decode>(text: &str) -> Result<T, PeerError> {
    let mut r = Reader::of_checked(text);
    let decoded = T::decode(&mut r).and_then(|value| r.end().map(|()| value));
    decoded.map_err(|DecodeFailed| mismatch_error(&r.into_error()))
}

/// Creates the error for a value that does not match its type.
fn mismatch_error(error: &DecodeError) -> PeerError {
    error_with_pointer(error.pointer(), format!("{error}"))
}
