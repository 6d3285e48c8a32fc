//! Requests that a server answers with questions (2026-07-28, `basic/patterns/mrtr`): what was asked, what was answered, and
//! the request once more.
//!
//! Takes results of type `input_required`; one key spans all rounds. Never looks into the server's state.

use mcp_exact_wire::{Json, JsonObject, from_str};

use super::ClientEndpoint;
use super::call::Own;
use super::events::{ClientEvent, ServerRequest, ServerRequestKey};
use crate::capability;
use crate::error::PeerError;
use crate::input_request;
use crate::limits::Limit;
use crate::message::Call;
use crate::meta;
use crate::revision::{Lifecycle, Rules};
use crate::types::{Outcome, RawResult, RequestKey};

/// A request that waits for the program.
#[derive(Debug)]
pub(super) struct Round {
    method: String,
    own: Own,
    answers: Vec<(String, Option<JsonObject>)>,
    waiting: usize,
    state: Option<Json>,
}

/// Questions by their names, and the server's state.
type Questions = (Vec<(String, Call)>, Option<Json>);

/// What a result is, by its `resultType`.
pub(super) enum ResultType {
    Complete,
    InputRequired,
    Unknown(String),
}

impl ResultType {
    /// "Clients MUST treat an absent `resultType` as `complete`."
    pub(super) fn of(result: &RawResult) -> Self {
        let Some(value) = result.object().view().find("resultType") else {
            return Self::Complete;
        };
        match value.text() {
            "\"complete\"" => Self::Complete,
            "\"input_required\"" => Self::InputRequired,
            other => Self::Unknown(value.decode_as().unwrap_or_else(|_| other.to_owned())),
        }
    }
}

impl ClientEndpoint {
    /// The server asks: every question goes to the program, and the request waits.
    pub(super) fn input_required(
        &mut self,
        key: RequestKey,
        method: String,
        own: Own,
        result: &RawResult,
    ) {
        let rules = own.rules;
        match self.questions(&method, &own, result) {
            Ok((questions, state)) => {
                let names = questions.iter().map(|(name, _)| (name.clone(), None));
                let round = Round {
                    method,
                    own,
                    answers: names.collect(),
                    waiting: questions.len(),
                    state,
                };
                self.rounds.insert(key, round);
                for (at, (_, call)) in questions.into_iter().enumerate() {
                    let ask = ServerRequestKey(self.key().0);
                    self.asks.insert(ask, (key, at));
                    self.events.push_back(ClientEvent::Request {
                        key: ask,
                        during: Some(key),
                        request: ServerRequest { rules, call },
                    });
                }
                self.next_round(key);
            }
            Err(error) => {
                let outcome = Outcome::Error(error.local());
                self.events.push_back(ClientEvent::Completed(key, outcome));
            }
        }
    }

    fn questions(
        &self,
        method: &str,
        own: &Own,
        result: &RawResult,
    ) -> Result<Questions, PeerError> {
        let invalid = |words: &str| PeerError::invalid_request(words.to_owned());
        let limits = &self.config.limits;
        if !meta::may_ask(method) {
            return Err(invalid(
                "a request that may not be answered with questions was",
            ));
        }
        if own.round >= limits.retries {
            return Err(PeerError::limit(Limit::Retries));
        }
        let state = result.object().get("requestState");
        if state
            .as_ref()
            .is_some_and(|state| state.text().len() > limits.state_bytes)
        {
            return Err(PeerError::limit(Limit::StateBytes));
        }
        let requests = result
            .object()
            .get("inputRequests")
            .map(JsonObject::try_from);
        let requests = requests
            .transpose()
            .map_err(|_| invalid("`inputRequests` is no object"))?;
        if requests.is_none() && state.is_none() {
            return Err(invalid(
                "`input_required` without questions and without a state",
            ));
        }
        let mut questions = Vec::new();
        for (name, text) in requests.iter().flat_map(JsonObject::iter) {
            if questions.len() >= limits.input_requests {
                return Err(PeerError::limit(Limit::InputRequests));
            }
            let request: JsonObject = from_str(text).map_err(|_| invalid("no question"))?;
            let method = request
                .get("method")
                .and_then(|method| from_str(method.text()).ok());
            let method: String = method.ok_or_else(|| invalid("a question without a method"))?;
            let params = request.get("params").map(JsonObject::try_from).transpose();
            let params = params.map_err(|_| invalid("the parameters are no object"))?;
            self.may_be_asked(&method, params.as_ref(), own.rules)?;
            questions.push((name.into_owned(), Call::new(method, params)));
        }
        Ok((questions, state))
    }

    /// A server asks only what the client has declared.
    fn may_be_asked(
        &self,
        method: &str,
        params: Option<&JsonObject>,
        rules: &Rules,
    ) -> Result<(), PeerError> {
        if !matches!(
            method,
            "sampling/createMessage" | "roots/list" | "elicitation/create"
        ) {
            return Err(PeerError::method_not_found(method));
        }
        let own = &self.config.capabilities;
        match capability::of_request(method, params, rules, own) {
            Some(lacking) => {
                let words = format!("the client has not declared `{}`", lacking.capability);
                Err(PeerError::new(lacking.code, words))
            }
            None => input_request::check_received(method, params, rules)
                .map_err(PeerError::invalid_params),
        }
    }

    pub(super) fn round_answered(
        &mut self,
        key: RequestKey,
        at: usize,
        answer: Result<RawResult, PeerError>,
    ) {
        match answer {
            Ok(result) => {
                if let Some(round) = self.rounds.get_mut(&key)
                    && let Some((_, place)) = round.answers.get_mut(at)
                {
                    *place = Some(result.into_object());
                    round.waiting -= 1;
                }
                self.next_round(key);
            }
            Err(error) => {
                if self.rounds.remove(&key).is_some() {
                    self.forget_asks(key);
                    let outcome = Outcome::Error(error.local());
                    self.events.push_back(ClientEvent::Completed(key, outcome));
                }
            }
        }
    }

    /// Sends the request again once nothing is waited for, with the answers under their names and the exact state.
    fn next_round(&mut self, key: RequestKey) {
        let ready = self
            .rounds
            .get(&key)
            .is_some_and(|round| round.waiting == 0);
        if !ready {
            return;
        }
        let Some(mut round) = self.rounds.remove(&key) else {
            return;
        };
        round.own.round += 1;
        let mut more = JsonObject::new();
        if !round.answers.is_empty() {
            let answers = round.answers.into_iter();
            let answers = answers.filter_map(|(name, answer)| Some((name, answer?)));
            more.insert("inputResponses", JsonObject::from_iter(answers));
        }
        if let Some(state) = round.state {
            more.insert("requestState", state);
        }
        round.own.more = Some(more);
        let spoken = self.state.spoken().map(std::sync::Arc::clone);
        match spoken.filter(|spoken| spoken.rules.lifecycle() == Lifecycle::Discover) {
            Some(spoken) => self.send_round(key, &round.method, round.own, &spoken),
            None => {
                let words = "the server has changed its revision between two rounds";
                let outcome = Outcome::Error(PeerError::invalid_request(words).local());
                self.events.push_back(ClientEvent::Completed(key, outcome));
            }
        }
    }

    pub(super) fn forget_asks(&mut self, of: RequestKey) {
        let asks: Vec<ServerRequestKey> = self
            .asks
            .iter()
            .filter(|(_, (key, _))| *key == of)
            .map(|(ask, _)| *ask)
            .collect();
        for ask in asks {
            self.asks.remove(&ask);
            self.events.push_back(ClientEvent::RequestCancelled(ask));
        }
    }
}
