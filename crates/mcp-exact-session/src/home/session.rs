//! Conversions to the application's home revision that are the same for all requests of a session: the members that a
//! conversion changes, by method, and the metadata that describes the client.
//!
//! Each part is created once a session, when the first request needs it.

use std::fmt;
use std::ops::Deref;
use std::sync::{Arc, OnceLock};

use mcp_exact_convert::{
    Context, KnownRevision, Loss, MessageKind, ParamsChange, Payload, Role, convert,
    described_item, may_contain, params_change,
};
use mcp_exact_wire::{DecodeError, JsonObject, ProvidedParam, from_str};

use super::LossPolicy;
use crate::message::Call;
use crate::meta;
use crate::server::ClientContext;

/// Conversions of a session's requests to one home revision.
#[derive(Debug)]
pub(crate) struct HomeSession {
    /// Revision of the session.
    from: KnownRevision,
    /// Home revision of the application.
    home: KnownRevision,
    /// Effects of the conversion on the methods that were received.
    effects: MethodEffects,
    /// Metadata for a home revision in which each request describes its client; `None` if the conversion fails.
    meta: OnceLock<Option<SessionMeta>>,
}

impl HomeSession {
    /// Returns the effect of the conversion on the params of a request; `None` if the revision of the session has no
    /// such method.
    pub(super) fn effect(&self, method: &str) -> Option<&ParamsEffect> {
        let mut effects = &self.effects;
        loop {
            let first = match effects.0.get() {
                Some(first) => first,
                None => {
                    // Only known methods are listed, because a peer can send any number of other methods.
                    let known = self.from.method(method, true)?.method;
                    effects
                        .0
                        .get_or_init(|| Box::new(self.create_effect(known)))
                }
            };
            if first.method == method {
                return Some(&first.effect);
            }
            effects = &first.others;
        }
    }

    /// Determines the effect of the conversion on a method.
    fn create_effect(&self, method: &'static str) -> MethodEffect {
        let root = Payload {
            kind: MessageKind::Request,
            method,
            sender: Role::Client,
        };
        MethodEffect {
            method,
            effect: ParamsEffect::new(root, self.from, self.home),
            others: MethodEffects::default(),
        }
    }
}

/// Effects by method: an append-only list, which all threads read without a lock.
#[derive(Debug, Default)]
struct MethodEffects(OnceLock<Box<MethodEffect>>);

/// Effect on one method, and those on other methods.
#[derive(Debug)]
struct MethodEffect {
    /// Method of the requests.
    method: &'static str,
    /// Effect of the conversion on the params of the method.
    effect: ParamsEffect,
    /// Effects on further methods.
    others: MethodEffects,
}

/// Effect of a conversion on the params of a method.
#[derive(Debug)]
pub(super) struct ParamsEffect {
    /// Change that depends on the names of members; `None` if the conversion may change all params.
    change: Option<ParamsChange>,
    /// Bit set of the changed members that a received call has located.
    located: u8,
    /// Names of the other changed members.
    others: Vec<&'static str>,
}

impl ParamsEffect {
    /// Determines the effect of the conversion between two revisions.
    pub(super) fn new(root: Payload<'_>, from: KnownRevision, to: KnownRevision) -> Self {
        let change = params_change(root, from, to);
        let names = change.iter().flat_map(|change| &change.names);
        let (mut located, mut others) = (0, Vec::new());
        for name in names {
            match Call::location_bit(name) {
                Some(bit) => located |= bit,
                None => others.push(*name),
            }
        }
        Self {
            change,
            located,
            others,
        }
    }

    /// Returns the change of the params of a call, if the params have no member whose value a step may change.
    pub(super) fn change_without_members(&self, call: &Call) -> Option<&ParamsChange> {
        let (change, params) = (self.change.as_ref()?, call.params.as_ref()?);
        let (is_located, others) = match call.located_params() {
            Some(located) => (located & self.located != 0, &self.others),
            None => (false, &change.names),
        };
        let is_changed = is_located || may_contain(others.iter().copied(), params.text());
        (!is_changed).then_some(change)
    }
}

/// Decoder of `_meta` by the types of the home revision.
pub(super) type MetaDecoder = fn(&'static str, &str) -> Result<ProvidedParam, DecodeError>;

/// Member `_meta` that describes the client of a session. The member is added to a request that is converted to a home
/// revision in which every request describes its client.
#[derive(Debug)]
struct SessionMeta {
    /// The member, decoded by the types of the home revision.
    member: ProvidedParam,
    /// Losses of the conversion.
    losses: Vec<Loss>,
}

impl SessionMeta {
    /// Converts a request without params, and decodes the resulting `_meta`.
    fn new(client: &ClientContext, session: &HomeSession, decode: MetaDecoder) -> Option<Self> {
        let mut cx = Context::new().request_meta(client.request_meta());
        let root = Payload {
            kind: MessageKind::Request,
            method: "tools/list",
            sender: Role::Client,
        };
        let params = convert(root, Some("{}"), session.from, session.home, &mut cx).ok()??;
        let params: JsonObject = from_str(&params).ok()?;
        Some(Self {
            member: decode("_meta", params.get("_meta")?.text()).ok()?,
            losses: cx.into_losses(),
        })
    }
}

impl ClientContext {
    /// Returns the members of `_meta` that describe the client in a request of 2026-07-28 (`basic`, "Per-Request
    /// Protocol Fields").
    pub(super) fn request_meta(&self) -> JsonObject {
        let mut known = JsonObject::new();
        let capabilities = self.info.capabilities.clone();
        known.insert(meta::CLIENT_CAPABILITIES, capabilities);
        if let Some(info) = &self.info.implementation {
            known.insert(meta::CLIENT_INFO, info.clone());
        }
        known
    }

    /// Returns the member that the conversion of a call to a home revision adds to the params, if any, and the losses of
    /// the conversion; `None` if the conversion may change other members, or the policy refuses the losses.
    pub(super) fn added_member<'r>(
        &'r self,
        home: KnownRevision,
        call: &'r Call,
        policy: LossPolicy,
        decode: MetaDecoder,
    ) -> Option<(Option<&'r ProvidedParam>, RequestLosses<'r>)> {
        let session = self.home_session(home)?;
        let change = session.effect(&call.method)?.change_without_members(call)?;
        if !change.adds_meta {
            return Some(Default::default());
        }
        let (member, losses) = self.added_meta(session, (change, call), (policy, decode))?;
        Some((Some(member), losses))
    }

    /// Returns the conversions to a home revision; `None` if they were created for another home revision.
    fn home_session(&self, home: KnownRevision) -> Option<&HomeSession> {
        let session = self.home.get_or_init(|| {
            Some(Arc::new(HomeSession {
                from: KnownRevision::parse(self.info.revision.as_str())?,
                home,
                effects: MethodEffects::default(),
                meta: OnceLock::new(),
            }))
        });
        session.as_deref().filter(|session| session.home == home)
    }

    /// Returns the member to add to params that lack `_meta`, and the losses of its conversion; `None` if the conversion
    /// fails or the policy refuses the losses.
    fn added_meta<'r>(
        &'r self,
        session: &'r HomeSession,
        (change, call): (&'r ParamsChange, &'r Call),
        (policy, decode): (LossPolicy, MetaDecoder),
    ) -> Option<(&'r ProvidedParam, RequestLosses<'r>)> {
        let create = || SessionMeta::new(self, session, decode);
        let meta = session.meta.get_or_init(create);
        let SessionMeta { member, losses } = meta.as_ref()?;
        if policy == LossPolicy::Refuse && losses.iter().any(|loss| loss.kind.is_lossy()) {
            return None;
        }
        let losses = match policy {
            LossPolicy::Accept => RequestLosses::default(),
            LossPolicy::Refuse | LossPolicy::Report => RequestLosses {
                shared: Some((losses, change.definition, call)),
                created: OnceLock::new(),
            },
        };
        Some((member, losses))
    }
}

/// Losses of the conversion of a request; a slice that is created when it is first read.
///
/// The conversion of a request often loses only what every request of the session loses. Such losses are kept once, and
/// copied with the name of the request's tool, prompt or resource.
#[derive(Clone, Default)]
pub struct RequestLosses<'r> {
    /// Losses of the session, and definition and call of the request from which they get their subject.
    shared: Option<(&'r [Loss], &'static str, &'r Call)>,
    /// Losses of the request.
    created: OnceLock<Vec<Loss>>,
}

impl RequestLosses<'_> {
    /// Returns the losses as a vector.
    pub fn into_vec(self) -> Vec<Loss> {
        match self.created.get() {
            Some(_) => self.created.into_inner().unwrap_or_default(),
            None => self.create(),
        }
    }

    /// Copies the losses of the session, with the subject of the request.
    fn create(&self) -> Vec<Loss> {
        let Some((losses, definition, call)) = self.shared else {
            return Vec::new();
        };
        let params = call.params.as_ref();
        let subject = params.and_then(|params| described_item(params.text(), definition));
        let of_request = |loss: &Loss| Loss {
            subject: subject.clone(),
            ..loss.clone()
        };
        losses.iter().map(of_request).collect()
    }
}

impl From<Vec<Loss>> for RequestLosses<'_> {
    fn from(losses: Vec<Loss>) -> Self {
        Self {
            shared: None,
            created: losses.into(),
        }
    }
}

impl Deref for RequestLosses<'_> {
    type Target = [Loss];

    fn deref(&self) -> &[Loss] {
        self.created.get_or_init(|| self.create())
    }
}

impl PartialEq for RequestLosses<'_> {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl Eq for RequestLosses<'_> {}

impl fmt::Debug for RequestLosses<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&**self, f)
    }
}
