//! What a client's program sends: requests, cancellations, answers to questions, notifications.
//!
//! Takes what the program wants; checks that the server may be told so, by revision, capability and bounds, before anything
//! leaves.

use std::borrow::Cow;
use std::sync::Arc;

use mcp_exact_wire::{EncodeParams, Json, JsonObject, JsonRef, Request};

use super::events::ServerRequestKey;
use super::negotiate::{NegotiatedSession, State};
use super::{ClientEndpoint, ClientEvent, Purpose};
use crate::Time;
use crate::builtin_notifications;
use crate::capability;
use crate::error::{PeerError, SendError};
use crate::limits::{Limit, RequestTimeout};
use crate::log::Level;
use crate::message::{self, Call};
use crate::meta;
use crate::outbox::Address;
use crate::pending::NewRequest;
use crate::revision::{Lifecycle, Rules};
use crate::types::{Outcome, Progress, RawResult, RequestKey, Sent, params_of};

/// How a request is sent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CallOptions {
    /// How long it waits; as the configuration says when absent.
    pub timeout: Option<RequestTimeout>,
    /// Whether progress notifications are wanted.
    pub progress: bool,
    /// The level of log messages that are wanted about this request (from 2026-07-28 on).
    pub log_level: Option<Level>,
}

/// A request of the program.
#[derive(Debug)]
pub(super) struct Own {
    /// The revision that it was sent in.
    pub(super) rules: &'static Rules,
    /// As the program has given it, for another round.
    pub(super) params: Option<JsonObject>,
    pub(super) options: CallOptions,
    pub(super) round: u32,
    /// What another round adds to the parameters.
    pub(super) more: Option<JsonObject>,
    /// Whether a subscription was acknowledged.
    pub(super) listening: bool,
    /// Whether the server was asked to make a task of it (2025-11-25).
    pub(super) task: bool,
    /// Whether the tools were listed again because its headers were refused.
    pub(super) relisted: bool,
    /// Whether it was sent again because the server changed its revision.
    pub(super) moved: bool,
}

/// What the machine looks for in the parameters of a request that is to leave.
pub(super) struct ParamsHeader<'a> {
    meta: Option<JsonRef<'a>>,
    task: bool,
}

impl<'a> ParamsHeader<'a> {
    pub(super) fn at(params: Option<&'a JsonObject>) -> Self {
        let names = ["_meta", "task"];
        let [meta, task] = params.map_or([None; 2], |params| params.view().find_each(names));
        Self {
            meta,
            task: task.is_some(),
        }
    }
}

impl ClientEndpoint {
    /// Sends a request; [`ClientEvent::Completed`] follows, exactly once.
    ///
    /// Parameters are those of the agreed revision. The machine adds to their `_meta` what the revision and the options want.
    ///
    /// # Errors
    /// [`SendError`]; nothing has left then.
    pub fn request(
        &mut self,
        method: &str,
        params: Option<JsonObject>,
        options: CallOptions,
        now: Time,
    ) -> Result<RequestKey, SendError> {
        self.advance(now);
        let spoken = self.spoken()?;
        let looked = ParamsHeader::at(params.as_ref());
        self.may_send(&spoken, method, params.as_ref(), &looked)?;
        let task = looked.task;
        self.mirrored_headers(spoken.rules, method, params.as_ref())?;
        if self.sent.len() + self.rounds.len() + self.parked.len() >= self.config.limits.pending {
            return Err(SendError::Limit(Limit::Pending));
        }
        if let Some(limit) = self.outbox.full(&self.config.limits) {
            return Err(SendError::Limit(limit));
        }
        let key = self.key();
        let own = Own {
            rules: spoken.rules,
            params,
            options,
            round: 0,
            more: None,
            listening: false,
            task,
            relisted: false,
            moved: false,
        };
        self.send_round(key, method, own, &spoken);
        Ok(key)
    }

    /// Sends a request of a generated type, of the agreed revision.
    ///
    /// # Errors
    /// As [`request`](Self::request).
    pub fn request_typed<Q: Request>(
        &mut self,
        params: &Q::Params,
        options: CallOptions,
        now: Time,
    ) -> Result<RequestKey, SendError>
    where
        Q::Params: EncodeParams,
    {
        let params = params_of(Q::METHOD, params)?;
        self.request(Q::METHOD, params, options, now)
    }

    fn spoken(&self) -> Result<Arc<NegotiatedSession>, SendError> {
        match &self.state {
            State::Operating(spoken) => Ok(Arc::clone(spoken)),
            State::Ended => Err(SendError::Closed),
            _ => Err(SendError::NotReady),
        }
    }

    pub(super) fn may_send(
        &self,
        spoken: &NegotiatedSession,
        method: &str,
        params: Option<&JsonObject>,
        looked: &ParamsHeader<'_>,
    ) -> Result<(), SendError> {
        let rules = spoken.rules;
        let ours = self
            .config
            .extensions
            .requests
            .iter()
            .any(|known| known == method);
        let vendor = ours && !rules.server.request(method);
        let extension = self.config.extensions.of_request(method);
        if let Some(extension) = extension.filter(|_| rules.lifecycle() == Lifecycle::Discover) {
            let declared = extension.declared(&spoken.agreed.capabilities);
            return declared.then_some(()).ok_or_else(|| SendError::Capability {
                method: method.to_owned(),
                capability: extension.capability(),
            });
        }
        if method == "initialize" || !(rules.client.request(method) || vendor) {
            return Err(SendError::Method {
                method: method.to_owned(),
                revision: rules.revision,
            });
        }
        builtin_notifications::no_own_token(method, looked.meta)?;
        let theirs = &spoken.agreed.capabilities;
        let of_task = || match looked.task {
            true => capability::of_task(method, rules, theirs),
            false => None,
        };
        match capability::of_request(method, params, rules, theirs).or_else(of_task) {
            Some(lacking) => Err(SendError::Capability {
                method: method.to_owned(),
                capability: lacking.capability,
            }),
            None => Ok(()),
        }
    }

    /// Sends a request, or sends it again with what was asked for: under a new id and the same key.
    pub(super) fn send_round(
        &mut self,
        key: RequestKey,
        method: &str,
        own: Own,
        spoken: &NegotiatedSession,
    ) {
        let rules = spoken.rules;
        let mut own = Own { rules, ..own };
        let (stream, options) = (self.outgoing(), own.options);
        let id = self.sent.next_id();
        let bytes = round(id, method, &own, spoken);
        let to = Address::on(stream).about(key);
        let to = self.with_hints(to, rules, method, own.params.as_ref());
        // In a session nothing is sent twice, and only a task's id is looked for again.
        if rules.lifecycle() == Lifecycle::Initialize && method != "tasks/result" {
            own.params = None;
        }
        self.sent.open(
            NewRequest {
                key,
                method: method.to_owned(),
                stream,
                timeout: options.timeout.unwrap_or(self.config.request_timeout),
                progress: options.progress,
                purpose: Purpose::Program(Box::new(own)),
            },
            self.now,
        );
        self.outbox.frame(to, bytes);
    }

    /// Cancels a request: [`Outcome::Cancelled`] follows, and an answer that still comes is ignored. Nothing happens when
    /// it has ended.
    pub fn cancel(&mut self, key: RequestKey, reason: &str, now: Time) {
        self.advance(now);
        if let Some(id) = self.sent.id_of(key)
            && let Some(request) = self.sent.take(id)
        {
            self.tell_cancelled(id, &request, reason);
            self.request_ended(request, Outcome::Cancelled);
        } else if self.rounds.remove(&key).is_some() || self.unpark(key) {
            self.forget_asks(key);
            self.events
                .push_back(ClientEvent::Completed(key, Outcome::Cancelled));
        }
    }

    /// InputResponses a question of the server.
    ///
    /// From 2026-07-28 on an error cannot be sent: it ends the request in the middle of which the server has asked.
    ///
    /// # Errors
    /// [`SendError::UnknownRequest`] when it does not wait for an answer.
    pub fn answer(
        &mut self,
        to: ServerRequestKey,
        answer: Result<RawResult, PeerError>,
        now: Time,
    ) -> Result<Sent, SendError> {
        self.advance(now);
        if let Some((key, at)) = self.asks.remove(&to) {
            self.round_answered(key, at, answer);
            return Ok(Sent::Queued);
        }
        let key = RequestKey(to.0);
        if self.served.was_cancelled(key) {
            return Ok(Sent::Suppressed);
        }
        let serving = self.served.take(key).ok_or(SendError::UnknownRequest)?;
        let bytes = match answer {
            Ok(result) => message::result(&serving.id, result.object()),
            Err(error) => message::error(Some(&serving.id), &error),
        };
        match serving.batch {
            Some(batch) => {
                let gathered = self.batches.answered(batch, Some(bytes));
                self.gathered(gathered);
            }
            None => self.send_back(serving.stream, bytes),
        }
        Ok(Sent::Queued)
    }

    /// Says how far the answer to a question has come; nothing leaves when the server did not ask for it.
    ///
    /// # Errors
    /// [`SendError::Progress`] when it does not increase.
    pub fn progress(
        &mut self,
        of: ServerRequestKey,
        progress: &Progress,
    ) -> Result<Sent, SendError> {
        let Some(rules) = self.rules() else {
            return Err(SendError::NotReady);
        };
        let full = self.outbox.full(&self.config.limits).is_some();
        let Some(serving) = self.served.get_mut(RequestKey(of.0)) else {
            return Ok(Sent::Suppressed);
        };
        let Some(token) = serving.rest.token.clone() else {
            return Ok(Sent::Suppressed);
        };
        if serving
            .rest
            .progress
            .is_some_and(|last| progress.done <= last)
        {
            return Err(SendError::Progress);
        }
        let call =
            builtin_notifications::progress(rules, &token, progress).ok_or(SendError::Progress)?;
        if full {
            return Ok(Sent::Dropped);
        }
        serving.rest.progress = Some(progress.done);
        self.send_notification(call);
        Ok(Sent::Queued)
    }

    /// Sends a notification, such as `notifications/roots/list_changed`.
    ///
    /// # Errors
    /// [`SendError`] when the revision has no such notification of a client, the machine sends it by itself, or this side
    /// has not declared what it needs.
    pub fn notify(&mut self, method: &str, params: Option<JsonObject>) -> Result<Sent, SendError> {
        let spoken = self.spoken()?;
        let rules = spoken.rules;
        let own = matches!(
            method,
            "notifications/initialized" | "notifications/cancelled" | "notifications/progress"
        );
        let ours = self
            .config
            .extensions
            .notifications
            .iter()
            .any(|known| known == method);
        let vendor = ours && !rules.server.notification(method);
        if own || !(rules.client.notification(method) || vendor) {
            return Err(SendError::Method {
                method: method.to_owned(),
                revision: rules.revision,
            });
        }
        if let Some(lacking) = capability::of_notification(method, &self.config.capabilities) {
            return Err(SendError::Capability {
                method: method.to_owned(),
                capability: lacking.capability,
            });
        }
        if self.outbox.full(&self.config.limits).is_some() {
            return Ok(Sent::Dropped);
        }
        self.send_notification(Call::new(method, params));
        Ok(Sent::Queued)
    }
}

/// The message of one round: the program's parameters, and what the round, the options and the revision add to them. The
/// progress token of a request is its id.
fn round(id: u64, method: &str, own: &Own, spoken: &NegotiatedSession) -> Vec<u8> {
    let options = own.options;
    let params = own.params.as_ref().map(JsonObject::view);
    let sender = spoken.sender.as_ref();
    if sender.is_none() && own.more.is_none() && !options.progress {
        return message::request(id, method, own.params.as_ref());
    }
    let token = options.progress.then(|| Json::from(id));
    let level = options.log_level.filter(|_| sender.is_some());
    let level = level.map(|level| Json::string(level.name()));
    let names = ["_meta", "inputResponses", "requestState"];
    let there = params.map_or([None; 3], |params| params.find_each(names));
    let said = there[0].and_then(JsonRef::object);
    let said = match (sender, said) {
        (None, said) => Cow::Owned(said.unwrap_or_default().to_object()),
        (Some(sender), None) => Cow::Borrowed(sender.meta()),
        (Some(sender), Some(said)) => Cow::Owned(JsonObject::from(sender.beside(said))),
    };
    let more = [
        ("progressToken", token.as_ref().map(Json::view)),
        (meta::LOG_LEVEL, level.as_ref().map(Json::view)),
    ];
    let said = match more {
        [(_, None), (_, None)] => said,
        more => Cow::Owned(JsonObject::from(said.view().with(more))),
    };
    let more = own.more.as_ref().map(JsonObject::view);
    let [_, responses, state] = more.map_or([None; 3], |more| more.find_each(names));
    let more = [
        (names[0], Some(said.as_json().view())),
        (names[1], responses),
        (names[2], state),
    ];
    let params = params.unwrap_or_default();
    let params = match there {
        [None, None, None] => params.with_new(more),
        _ => params.with(more),
    };
    message::request(id, method, Some(params))
}
