//! InputResponses: results, errors, and questions to the client before there is one.
//!
//! Takes replies of the program; gives frames, on the stream that the request came on. InputResponses a request once at most.

use std::collections::BTreeSet;
use std::sync::Arc;

use mcp_exact_wire::JsonObject;

use super::incoming::{Caller, Reply};
use super::{Asking, Purpose, ServerEndpoint, discover, request_meta};
use crate::Time;
use crate::builtin_notifications;
use crate::capability;
use crate::config::Extension;
use crate::elicitation;
use crate::error::{PeerError, SendError, code};
use crate::input_request;
use crate::limits::Limit;
use crate::message;
use crate::outbox::Address;
use crate::pending::NewRequest;
use crate::revision::{Lifecycle, Rules};
use crate::types::{InputRequest, Outcome, RequestKey, Sent};

impl<C> ServerEndpoint<C> {
    /// Replies to a request.
    ///
    /// [`Sent::Suppressed`] says that the client has cancelled it: races are normal.
    ///
    /// # Errors
    /// [`SendError`]; nothing has left then, and the request still waits.
    pub fn reply(
        &mut self,
        to: RequestKey,
        reply: impl Into<Reply>,
        now: Time,
    ) -> Result<Sent, SendError> {
        self.advance(now);
        let Some(serving) = self.served.get(to) else {
            return match self.served.was_cancelled(to) {
                true => Ok(Sent::Suppressed),
                false => Err(SendError::UnknownRequest),
            };
        };
        if serving.rest.asking.is_some() || serving.rest.listening.is_some() {
            return Err(SendError::AwaitingInput);
        }
        match reply.into() {
            Reply::Result(result) => self.result(to, result.object()),
            Reply::Error(error) => self.error(to, &error),
            Reply::InputRequired { asks, state } => self.ask(to, asks, state),
        }
    }

    fn result(&mut self, to: RequestKey, result: &JsonObject) -> Result<Sent, SendError> {
        let serving = self.served.get(to).ok_or(SendError::UnknownRequest)?;
        let (caller, origin) = (&serving.rest.caller, &serving.rest.origin);
        if let Some(check) = &self.config.results {
            let (method, params) = (&*origin.call.method, origin.call.params.as_ref());
            if let Err(reason) = check.check(method, params, result) {
                return self.error(to, &PeerError::internal(reason));
            }
        }
        let bytes = if caller.rules.lifecycle() == Lifecycle::Discover {
            let extension = self.of_result_type(result);
            if let Some(extension) =
                extension.filter(|known| !known.declared(&caller.agreed.capabilities))
            {
                return Err(SendError::Capability {
                    method: origin.call.method.clone(),
                    capability: extension.capability(),
                });
            }
            let method = &origin.call.method;
            request_meta::check_hints(method, result)?;
            let origin = Arc::clone(origin);
            let words = self.words(caller.rules);
            words.beside(&origin.id, result, Some(&origin.call.method))
        } else {
            message::result(&serving.id, result)
        };
        self.note_subscription(to);
        Ok(self.answer(to, bytes, 200))
    }

    /// The extension that a result belongs to, by its type.
    fn of_result_type(&self, result: &JsonObject) -> Option<&Extension> {
        let extensions = &self.config.extensions;
        if extensions.negotiated.is_empty() {
            return None;
        }
        let kind: String = result.view().find("resultType")?.decode_as().ok()?;
        extensions.of_result_type(&kind)
    }

    fn error(&mut self, to: RequestKey, error: &PeerError) -> Result<Sent, SendError> {
        let serving = self.served.get(to).ok_or(SendError::UnknownRequest)?;
        let rules = serving.rest.caller.rules;
        let stateless = rules.lifecycle() == Lifecycle::Discover;
        let theirs = &serving.rest.caller.agreed.capabilities;
        check_required(error, rules, theirs)?;
        let error = match stateless {
            true => discover::allowed(error),
            false => error.clone(),
        };
        let bytes = message::error(Some(&serving.id), &error);
        let status = match stateless {
            true => crate::http::status_of(&error),
            false => 200,
        };
        self.elicited.note_error(&error);
        Ok(self.answer(to, bytes, status))
    }

    /// Sends the one answer of a request and forgets it.
    pub(super) fn answer(&mut self, to: RequestKey, bytes: Vec<u8>, status: u16) -> Sent {
        let Some(serving) = self.served.take(to) else {
            return Sent::Suppressed;
        };
        if let Some(batch) = serving.batch {
            let gathered = self.batches.answered(batch, Some(bytes));
            self.gathered(gathered);
            return Sent::Queued;
        }
        let on = serving.stream;
        if !self.streams.contains_key(&on) {
            return Sent::Suppressed;
        }
        let mut address = Address::on(on).about(to).last(self.is_post(on));
        address.http.status = Some(status);
        self.outbox.frame(address, bytes);
        self.leave(on);
        Sent::Queued
    }

    /// The client is subscribed to a resource once the program has said so (`server/resources`, "Subscriptions").
    fn note_subscription(&mut self, to: RequestKey) {
        let Some(serving) = self.served.get(to) else {
            return;
        };
        let call = &serving.rest.origin.call;
        let subscribes = match call.method.as_str() {
            "resources/subscribe" => true,
            "resources/unsubscribe" => false,
            _ => return,
        };
        let uri = call.param("uri");
        let Some(uri) = uri.and_then(|uri| uri.decode_as::<String>().ok()) else {
            return;
        };
        match subscribes {
            true => self.subscriptions.insert(uri),
            false => self.subscriptions.remove(&uri),
        };
    }

    fn ask(
        &mut self,
        to: RequestKey,
        asks: Vec<(String, InputRequest)>,
        state: Option<String>,
    ) -> Result<Sent, SendError> {
        let serving = self.served.get(to).ok_or(SendError::UnknownRequest)?;
        let caller = Arc::clone(&serving.rest.caller);
        let round = serving.rest.round;
        self.check_asks(&caller, &asks, state.as_deref(), round)?;
        if caller.rules.lifecycle() == Lifecycle::Discover {
            return self.input_required(to, &asks, state);
        }
        if self.sent.len() + asks.len() > self.config.limits.pending {
            return Err(SendError::Limit(Limit::Pending));
        }
        let serving = self.served.get_mut(to).ok_or(SendError::UnknownRequest)?;
        let on = serving.stream;
        if !self.streams.contains_key(&on) {
            return Err(SendError::NoStream);
        }
        let names = asks.iter().map(|(name, _)| (name.clone(), None::<Outcome>));
        serving.rest.asking = Some(Asking {
            waiting: asks.len(),
            answers: names.collect(),
            bytes: 0,
            state,
        });
        if asks.is_empty() {
            self.raise_again(to);
        }
        for (at, (_, ask)) in asks.into_iter().enumerate() {
            self.elicited.note(&ask.method, ask.params.as_ref());
            let opening = NewRequest {
                key: self.key(),
                method: ask.method,
                stream: on,
                timeout: self.config.request_timeout,
                progress: false,
                purpose: Purpose::InputRequest { of: to, at },
            };
            self.send_request(opening, ask.params, Address::on(on).about(to));
        }
        Ok(Sent::Queued)
    }

    /// Checks questions before anything leaves: bounds, names, methods, and what the client has declared.
    fn check_asks(
        &self,
        caller: &Caller,
        asks: &[(String, InputRequest)],
        state: Option<&str>,
        round: u32,
    ) -> Result<(), SendError> {
        let limits = &self.config.limits;
        if asks.is_empty() && state.is_none() {
            return Err(SendError::InputRequests(
                "ask at least one question, or give a state",
            ));
        }
        if asks.len() > limits.input_requests {
            return Err(SendError::Limit(Limit::InputRequests));
        }
        if round >= limits.retries {
            return Err(SendError::Limit(Limit::Retries));
        }
        if state.is_some_and(|state| state.len() > limits.state_bytes) {
            return Err(SendError::Limit(Limit::StateBytes));
        }
        let names: BTreeSet<&str> = asks.iter().map(|(name, _)| &**name).collect();
        if names.len() < asks.len() {
            return Err(SendError::InputRequests("two questions have the same name"));
        }
        asks.iter()
            .try_for_each(|(_, ask)| self.may_ask(caller, ask))
    }

    fn may_ask(&self, caller: &Caller, ask: &InputRequest) -> Result<(), SendError> {
        const QUESTIONS: [&str; 3] = ["elicitation/create", "roots/list", "sampling/createMessage"];
        let rules = caller.rules;
        let known = QUESTIONS.contains(&ask.method.as_str());
        let spoken = rules.lifecycle() == Lifecycle::Discover || rules.server.request(&ask.method);
        if !known || !spoken {
            return Err(SendError::Method {
                method: ask.method.clone(),
                revision: rules.revision,
            });
        }
        fits(caller, &ask.method, ask.params.as_ref())
    }
}

/// Whether a client may be sent a request with these parameters: by its capabilities, and by what the request has to say.
pub(super) fn fits(
    caller: &Caller,
    method: &str,
    params: Option<&JsonObject>,
) -> Result<(), SendError> {
    let rules = caller.rules;
    let names = ["_meta", "task"];
    let [meta, task] = params.map_or([None; 2], |params| params.view().find_each(names));
    builtin_notifications::no_own_token(method, meta)?;
    let theirs = &caller.agreed.capabilities;
    let lacking = capability::of_request(method, params, rules, theirs);
    let of_task = |_| capability::of_task(method, rules, theirs);
    if let Some(lacking) = lacking.or_else(|| task.and_then(of_task)) {
        return Err(SendError::Capability {
            method: method.to_owned(),
            capability: lacking.capability,
        });
    }
    input_request::check_sent(method, params, rules).map_err(|reason| SendError::Params {
        method: method.to_owned(),
        reason,
    })
}

/// Checks the error that demands elicitations by URL, before it leaves (2025-11-25, `client/elicitation`).
fn check_required(error: &PeerError, rules: &Rules, theirs: &JsonObject) -> Result<(), SendError> {
    let method = "elicitation/create";
    elicitation::check_error(error, rules).map_err(|reason| SendError::Params {
        method: method.to_owned(),
        reason,
    })?;
    let demands = error.code() == Some(code::URL_ELICITATION_REQUIRED);
    let path = ["elicitation", "url"];
    if demands
        && capability::has_modes(rules)
        && rules.lifecycle() == Lifecycle::Initialize
        && !capability::declared(theirs, &path)
    {
        return Err(SendError::Capability {
            method: method.to_owned(),
            capability: path.join("."),
        });
    }
    Ok(())
}
