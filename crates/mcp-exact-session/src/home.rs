//! Typed views in one revision that the application chooses, independent of the negotiated revision.
//!
//! The functions convert messages between revisions and report the changes, so that a handler that is written for one revision
//! serves peers of every revision. Endpoints are not changed.

use std::borrow::Cow;
use std::sync::Arc;

use mcp_exact_convert::{
    Context, ConvertError, Home, KnownRevision, Lifecycle, Loss, MessageKind, ParamsChange,
    Payload, Role, convert, params_change,
};
use mcp_exact_wire::{
    Decode, DecodeError, DecodeFailed, DecodeParams, Direction, Encode, EncodeParams, ErrorObject,
    Json, JsonObject, Reader, Request, Revision, from_str, to_string,
};

#[cfg(feature = "client")]
use crate::client::{ClientEndpoint, ServerNotification, ServerRequest};
use crate::error::{PeerError, SendError};
use crate::input_request::InputRequest;
use crate::message::Call;
use crate::meta;
use crate::outcome::RawResult;
use crate::server::{ClientContext, ClientNotification, IncomingRequest, Reply};
use crate::stream::RequestKey;
use crate::typed::{ClientNotifications, ClientRequests, ReceivedCall, ServerNotifications, View};
use crate::{CallOptions, Time};

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
pub struct ConvertedValue<T> {
    /// The converted value.
    pub value: T,
    /// Changes that the conversion made; empty with [`LossPolicy::Accept`].
    pub losses: Vec<Loss>,
}

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
    pub fn typed_as<H: Home>(
        &self,
        policy: LossPolicy,
    ) -> Result<ConvertedValue<<H::FromClient as Direction>::Request>, PeerError> {
        let (id, call) = (Some(self.id()), &self.received_call.call);
        let direction = (self.revision(), H::KNOWN);
        let root = Payload {
            kind: MessageKind::Request,
            method: self.method(),
            sender: Role::Client,
        };
        if let Some((added, losses)) = self.without_conversion::<H>(root, policy) {
            let value = ClientRequests::decode::<H>(ReceivedCall { id, call, added })?;
            return Ok(ConvertedValue { value, losses });
        }
        // The application reads answers and state of a retry from the request.
        let mut cx = Context::new().assume_input_read();
        cx = cx.request_id(self.id().clone());
        if H::KNOWN.lifecycle() == Lifecycle::Discover {
            cx = cx.request_meta(self.client.request_meta());
        }
        let call = convert_call(root, call, direction, cx, policy)?;
        call.map_value(|call| {
            ClientRequests::decode::<H>(ReceivedCall {
                id,
                call: &call,
                added: "",
            })
        })
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

    /// Returns the members that the conversion to `H` adds to the params, and the losses of the conversion; `None` if the
    /// conversion also changes other members.
    fn without_conversion<H: Home>(
        &self,
        root: Payload<'_>,
        policy: LossPolicy,
    ) -> Option<(&str, Vec<Loss>)> {
        match predicted_change(root, &self.received_call.call, self.revision(), H::KNOWN) {
            ParamsChange::None => Some(("", Vec::new())),
            ParamsChange::Metadata(subject) => {
                let meta = self.client.session_meta(H::KNOWN)?;
                Some((&meta.member, meta.losses(policy, subject)?))
            }
            ParamsChange::Unknown => None,
        }
    }
}

/// Members of `_meta` that describe the client of a session. The members are added to a request that is converted to a
/// home revision in which every request describes its client.
///
/// The metadata is the same for all requests of the session.
#[derive(Debug)]
pub(crate) struct SessionMeta {
    /// Home revision of the metadata.
    home: KnownRevision,
    /// JSON text of the member `_meta`, with its name.
    member: String,
    /// Losses of the conversion.
    losses: Vec<Loss>,
}

impl SessionMeta {
    /// Converts a request without params, and keeps the resulting `_meta`.
    fn new(client: &ClientContext, home: KnownRevision) -> Option<Self> {
        let mut cx = Context::new().request_meta(client.request_meta());
        let root = Payload {
            kind: MessageKind::Request,
            method: "tools/list",
            sender: Role::Client,
        };
        let from = KnownRevision::parse(client.info.revision.as_str())?;
        let params = convert(root, Some("{}"), from, home, &mut cx).ok()??;
        Some(Self {
            home,
            member: params.strip_prefix('{')?.strip_suffix('}')?.to_owned(),
            losses: cx.into_losses(),
        })
    }

    /// Returns the losses to report for a request about `subject`, such as a tool; `None` if the policy refuses the
    /// losses.
    fn losses(&self, policy: LossPolicy, subject: Option<Arc<str>>) -> Option<Vec<Loss>> {
        let is_lossy = || self.losses.iter().any(|loss| loss.kind.is_lossy());
        match policy {
            LossPolicy::Refuse if is_lossy() => None,
            LossPolicy::Accept => Some(Vec::new()),
            LossPolicy::Refuse | LossPolicy::Report => {
                let mut losses = self.losses.clone();
                losses
                    .iter_mut()
                    .for_each(|loss| loss.subject.clone_from(&subject));
                Some(losses)
            }
        }
    }
}

impl ClientContext {
    /// Returns the members of `_meta` that describe the client in a request of 2026-07-28 (`basic`, "Per-Request
    /// Protocol Fields").
    fn request_meta(&self) -> JsonObject {
        let mut known = JsonObject::new();
        let capabilities = self.info.capabilities.clone();
        known.insert(meta::CLIENT_CAPABILITIES, capabilities);
        if let Some(info) = &self.info.implementation {
            known.insert(meta::CLIENT_INFO, info.clone());
        }
        known
    }

    /// Returns the metadata for a home revision; `None` if the conversion fails, or the metadata was created for
    /// another home revision.
    fn session_meta(&self, home: KnownRevision) -> Option<&SessionMeta> {
        let meta = self
            .meta
            .get_or_init(|| SessionMeta::new(self, home).map(Box::new));
        meta.as_deref().filter(|meta| meta.home == home)
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
                added: "",
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
                added: "",
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
        if predicted_change(root, &self.call, self.revision(), H::KNOWN) == ParamsChange::None {
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
    if predicted_change(root, call, from, to) == ParamsChange::None {
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

/// Predicts, from the names of a message's members, whether a conversion changes the params, for a conversion whose
/// output is decoded.
fn predicted_change(
    root: Payload<'_>,
    call: &Call,
    from: Revision,
    to: KnownRevision,
) -> ParamsChange {
    match (&call.params, KnownRevision::parse(from.as_str())) {
        (Some(params), Some(from)) if !call.has_extra() => {
            params_change(root, params.text(), from, to, &|name| {
                call.lacks_param(name)
            })
        }
        _ => ParamsChange::Unknown,
    }
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
