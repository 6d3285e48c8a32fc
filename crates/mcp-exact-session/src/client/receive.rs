//! What came in: which message it is, whether it may come now, and who deals with it.
//!
//! Takes parsed frames; ends requests, raises questions and notifications, answers what the machine answers by itself.

use mcp_exact_wire::{
    ErrorMessage, JsonObject, JsonRef, Message, MessageError, MessageErrorKind, Nullable,
    RequestId, ResultMessage, WithId, from_str,
};

use super::call::Own;
use super::events::{ClientEvent, LogMessage, ServerNotification, ServerRequest, ServerRequestKey};
use super::negotiate::State;
use super::retry::ResultType;
use super::{ClientEndpoint, Purpose, Rest};
use crate::builtin_notifications::{Cancel, ProgressNotice, is_token};
use crate::capability;
use crate::config::Extension;
use crate::elicitation::COMPLETE;
use crate::error::{PeerError, Violation, code};
use crate::events::Held;
use crate::in_flight::Serving;
use crate::input_request;
use crate::limits::{Limit, RateDecision};
use crate::message::{self, Body, Call, Parsed, Raw, Read1, own_id, token_length};
use crate::meta;
use crate::pending::{PendingRequest, ProgressOf};
use crate::revision::{Lifecycle, Rules};
use crate::server::Filter;
use crate::types::{Change, Outcome, RawResult, RequestKey, StreamId};

impl ClientEndpoint {
    pub(super) fn frame(&mut self, on: StreamId, parsed: Parsed) {
        match parsed {
            Parsed::One(Ok(message)) => self.message(on, None, message),
            Parsed::One(Err(error)) => self.no_message(on, None, error),
            Parsed::Batch(items) => self.batch(on, items),
            Parsed::Exceeds(limit, id) => {
                if let Some(id) = id {
                    self.refuse(on, None, &id, &PeerError::limit(limit));
                }
                self.violation(Violation::Limit(limit));
            }
        }
    }

    fn message(&mut self, on: StreamId, batch: Option<u64>, message: Message<Raw>) {
        match message {
            Message::Request(request) => self.asked(on, batch, request),
            Message::Notification(call) => self.notification(on, call),
            Message::Result(ResultMessage { id, result, .. }) => {
                let Body(object) = result;
                self.response_to(&id, Outcome::Result(RawResult::from(object)));
            }
            Message::Error(ErrorMessage { id, error, .. }) => {
                match id.as_ref().and_then(Nullable::as_value) {
                    Some(id) => self.response_to(id, Outcome::Error(error.into())),
                    None => self.violation(Violation::Unaddressed(error.into())),
                }
            }
        }
    }

    /// A document that is no message: answered where its id can be read and the server waits for an answer.
    fn no_message(&mut self, on: StreamId, batch: Option<u64>, error: MessageError) {
        match (error.kind(), error.id()) {
            (MessageErrorKind::InvalidResponse, Some(id)) => {
                let outcome = Outcome::Error(PeerError::from(&error).local());
                let id = id.clone();
                self.violation(Violation::NoMessage(error));
                return self.response_to(&id, outcome);
            }
            (_, Some(id)) if error.code().is_some() => {
                let answer = PeerError::from(&error);
                self.refuse(on, batch, id, &answer);
            }
            _ if error.code().is_some() && batch.is_none() => {
                self.unaddressed(on, &PeerError::from(&error));
            }
            _ => {}
        }
        self.violation(Violation::NoMessage(error));
    }

    /// An error without id, where the revision has such errors and the server takes responses (2025-11-25).
    fn unaddressed(&mut self, on: StreamId, error: &PeerError) {
        let allowed =
            |rules: &Rules| rules.lifecycle() == Lifecycle::Initialize && !rules.error_needs_id;
        if self.rules().is_some_and(allowed) {
            self.respond(on, None, message::error(None, error));
        }
    }

    fn batch(&mut self, on: StreamId, items: Vec<Read1>) {
        let rules = self.rules();
        if items.is_empty() || !rules.is_some_and(|rules| rules.batches) {
            let error = PeerError::invalid_request("no batches here; send the messages one by one");
            let mut requests = Vec::new();
            for item in items {
                if let Ok(Message::Request(request)) = item {
                    requests.push(request.id);
                }
            }
            for id in &requests {
                self.refuse(on, None, id, &error);
            }
            if requests.is_empty() {
                self.unaddressed(on, &error);
            }
            let revision = rules.map(|rules| rules.revision);
            return self.violation(Violation::Batch(revision));
        }
        let batch = self.batches.begin(on);
        for item in items {
            match item {
                Ok(message) => self.message(on, Some(batch), message),
                Err(error) => self.no_message(on, Some(batch), error),
            }
        }
        let gathered = self.batches.end(batch);
        self.gathered(gathered);
    }

    /// Refuses a request, unless the revision knows no requests of servers: then a client never sends responses
    /// (2026-07-28, `basic/transports/stdio`, "Sending Messages").
    fn refuse(&mut self, on: StreamId, batch: Option<u64>, id: &RequestId, error: &PeerError) {
        if self
            .rules()
            .is_none_or(|rules| rules.lifecycle() == Lifecycle::Initialize)
        {
            self.respond(on, batch, message::error(Some(id), error));
        }
    }

    /// A request of the server.
    fn asked(&mut self, on: StreamId, batch: Option<u64>, request: WithId<Call>) {
        let WithId { id, request: call } = request;
        let most = self.config.limits.requests_per_second;
        match self.request_rate.take(self.now, most) {
            RateDecision::Yes => {}
            taken => {
                if taken == RateDecision::NoLonger {
                    self.violation(Violation::Limit(Limit::Requests));
                }
                return self.refuse(on, batch, &id, &PeerError::limit(Limit::Requests));
            }
        }
        let rules = self.rules();
        if rules.is_some_and(|rules| rules.lifecycle() == Lifecycle::Discover) {
            return self.violation(Violation::Method(call.method));
        }
        if self.served.find(None, &id).is_some() {
            let error = PeerError::invalid_request("the id belongs to another request in flight");
            self.refuse(on, batch, &id, &error);
            return self.violation(Violation::IdInUse(id));
        }
        if call.method == "ping" {
            return self.respond(on, batch, message::result(&id, &JsonObject::new()));
        }
        let Some(rules) = rules else {
            let words = "the session is not initialized yet";
            self.refuse(on, batch, &id, &PeerError::invalid_request(words));
            return self.violation(Violation::BeforeInitialize(call.method));
        };
        let token = call.meta("progressToken").filter(is_token);
        let most = self.config.limits.name_bytes;
        if token.is_some_and(|token| token_length(token) > most) {
            self.violation(Violation::Limit(Limit::NameBytes));
            return self.refuse(on, batch, &id, &PeerError::limit(Limit::NameBytes));
        }
        match self.admit(rules, &call) {
            Ok(()) => self.serve(on, batch, id, call, rules),
            Err(error) => self.refuse(on, batch, &id, &error),
        }
    }

    fn admit(&self, rules: &Rules, call: &Call) -> Result<(), PeerError> {
        let method = &call.method;
        let ours = self.config.extensions.requests.contains(method);
        if !rules.server.request(method) && (!ours || rules.client.request(method)) {
            return Err(PeerError::method_not_found(method));
        }
        let own = &self.config.capabilities;
        let lacking = capability::of_request(method, call.params.as_ref(), rules, own);
        if let Some(lacking) = lacking {
            let words = format!("the client has not declared `{}`", lacking.capability);
            return Err(PeerError::new(lacking.code, words));
        }
        input_request::check_received(method, call.params.as_ref(), rules)
            .map_err(PeerError::invalid_params)?;
        let limits = &self.config.limits;
        if self.served.len() >= limits.in_flight {
            return Err(PeerError::limit(Limit::InFlight));
        }
        if self.served.bytes() + call.size() > limits.in_flight_bytes {
            return Err(PeerError::limit(Limit::InFlightBytes));
        }
        match self.full() {
            Some(limit) => Err(PeerError::limit(limit)),
            None => Ok(()),
        }
    }

    fn serve(
        &mut self,
        on: StreamId,
        batch: Option<u64>,
        id: RequestId,
        call: Call,
        rules: &'static Rules,
    ) {
        let key = self.key();
        self.elicited.note(&call.method, call.params.as_ref());
        if let Some(batch) = batch {
            self.batches.serve(batch);
        }
        let serving = Serving {
            id,
            stream: on,
            batch,
            size: call.size(),
            scope: None,
            rest: Rest {
                token: call
                    .meta("progressToken")
                    .filter(is_token)
                    .map(JsonRef::to_json),
                progress: None,
            },
        };
        self.served.insert(key, serving);
        let during = self.request_on(on);
        self.events.push_back(ClientEvent::Request {
            key: ServerRequestKey(key.0),
            during,
            request: ServerRequest { rules, call },
        });
    }

    /// The request whose stream this is; none on a stream for everything.
    fn request_on(&self, on: StreamId) -> Option<RequestKey> {
        if on == StreamId::DUPLEX {
            return None;
        }
        let mut sent = self.sent.iter();
        let found = sent.find(|(_, request)| request.stream == on);
        found.map(|(_, request)| request.key)
    }

    /// An answer to a request of this side. Late ones are ignored (`basic/utilities/cancellation`).
    fn response_to(&mut self, id: &RequestId, outcome: Outcome) {
        let own = own_id(id);
        match own.and_then(|id| self.sent.take(id)) {
            Some(request) => {
                self.note_task(own, &request, &outcome);
                self.request_ended(request, outcome);
            }
            None if own.is_some_and(|id| self.sent.has_ended(id)) => {}
            None => self.violation(Violation::UnexpectedResponse(Some(id.clone()))),
        }
    }

    /// What an answer tells of tasks (2025-11-25).
    fn note_task(&mut self, id: Option<u64>, request: &PendingRequest<Purpose>, outcome: &Outcome) {
        let tasks = self.rules().is_some_and(|rules| rules.tasks);
        let (Purpose::Program(own), true) = (&request.purpose, tasks) else {
            return;
        };
        match (&*request.method, outcome, id) {
            ("tasks/get" | "tasks/cancel", Outcome::Result(result), _) => {
                self.tasks.told(result.object());
            }
            ("tasks/result", ..) => self.tasks.result_of(own.params.as_ref()),
            (_, Outcome::Result(result), Some(id)) if own.task && own.options.progress => {
                let progress = request.last_progress();
                self.tasks
                    .created(id, request.key, progress, result.object());
            }
            _ => {}
        }
    }

    /// A request of this side has ended, or goes into another round.
    pub(super) fn request_ended(&mut self, request: PendingRequest<Purpose>, outcome: Outcome) {
        let PendingRequest {
            key,
            method,
            stream,
            purpose,
            ..
        } = request;
        if stream != StreamId::DUPLEX {
            self.streams.remove(&stream);
        }
        let own = match purpose {
            Purpose::Probe(rules) => return self.probed(rules, outcome),
            Purpose::Initialize => return self.initialize_ended(outcome),
            Purpose::Relist(relist) => return self.relisted(key, *relist, outcome),
            Purpose::Program(own) => own,
        };
        if let Outcome::Error(error) = &outcome {
            self.elicited.note_error(error);
        }

        let modern = own.rules.lifecycle() == Lifecycle::Discover;
        let outcome = match outcome {
            Outcome::Result(result) if modern => match ResultType::of(&result) {
                ResultType::Complete if method == "tools/list" => {
                    Outcome::Result(self.listed(&own, result))
                }
                ResultType::Complete => Outcome::Result(result),
                ResultType::InputRequired => {
                    return self.input_required(key, method, *own, &result);
                }
                ResultType::Unknown(kind) => self.result_of_kind(&kind, result),
            },
            Outcome::Error(error) if modern => match self.try_again(key, method, *own, error) {
                Some(error) => Outcome::Error(error),
                None => return,
            },
            outcome => outcome,
        };
        self.events.push_back(ClientEvent::Completed(key, outcome));
    }

    /// Some errors say what would be right (2026-07-28). Gives the error back when there is nothing to try.
    fn try_again(
        &mut self,
        key: RequestKey,
        method: String,
        own: Own,
        error: PeerError,
    ) -> Option<PeerError> {
        match error.code() {
            _ if error.is_local() || matches!(self.state, State::Ended) => Some(error),
            // It is kept until another answer is there.
            _ if error.size() > self.config.limits.state_bytes => Some(error),
            Some(code::HEADER_MISMATCH) => self.relist(key, method, own, error),
            Some(code::UNSUPPORTED_VERSION) => self.moved(key, method, own, error),
            _ => Some(error),
        }
    }

    /// "A `resultType` of any value unrecognized by the client MUST be considered invalid."
    fn result_of_kind(&self, kind: &str, result: RawResult) -> Outcome {
        let extension = self.config.extensions.of_result_type(kind);
        if extension.is_some() {
            return Outcome::Result(result);
        }
        if self
            .config
            .extensions
            .result_types
            .iter()
            .any(|known| known == kind)
        {
            return Outcome::Result(result);
        }
        let words = format!("the result is of the unknown type {kind:?}");
        Outcome::Error(PeerError::invalid_request(words).local())
    }

    fn notification(&mut self, on: StreamId, call: Call) {
        if call.method == "notifications/cancelled" {
            return self.cancelled(&call);
        }
        match self
            .rate
            .take(self.now, self.config.limits.notifications_per_second)
        {
            RateDecision::Yes => {}
            RateDecision::NoLonger => {
                return self.violation(Violation::Limit(Limit::Notifications));
            }
            RateDecision::No => return,
        }
        match call.method.as_str() {
            "notifications/progress" => self.progressed(&call),
            "notifications/message" => self.logged(on, &call),
            _ => self.notified(on, call),
        }
    }

    /// The server does not want an answer to a question any more, or ends a subscription.
    fn cancelled(&mut self, call: &Call) {
        let Some(cancel) = Cancel::of(call) else {
            return self.violation(Violation::Notification(call.method.clone()));
        };
        if self
            .rules()
            .is_some_and(|rules| rules.lifecycle() == Lifecycle::Discover)
        {
            return self.subscription_cancelled(&cancel.id);
        }
        let Some(key) = self.served.find(None, &cancel.id) else {
            return;
        };
        if let Some(serving) = self.served.take_cancelled(key) {
            if let Some(batch) = serving.batch {
                let gathered = self.batches.answered(batch, None);
                self.gathered(gathered);
            }
            self.events
                .push_back(ClientEvent::RequestCancelled(ServerRequestKey(key.0)));
        }
    }

    /// A server ends a subscription with `cancelled`, with a result, or with both: the first one of them ends it here.
    fn subscription_cancelled(&mut self, id: &RequestId) {
        let id = own_id(id).filter(|id| {
            let request = self.sent.get(*id);
            request.is_some_and(|request| request.method == "subscriptions/listen")
        });
        if let Some(request) = id.and_then(|id| self.sent.take(id)) {
            let result =
                JsonObject::from_iter([("resultType", mcp_exact_wire::Json::string("complete"))]);
            self.request_ended(request, Outcome::Result(RawResult::from(result)));
        }
    }

    fn progressed(&mut self, call: &Call) {
        let Some(notice) = ProgressNotice::of(call) else {
            return self.violation(Violation::Notification(call.method.clone()));
        };
        let done = notice.progress.done;
        let of = match self.sent.progress(notice.token, done, self.now) {
            ProgressOf::Ended => self.tasks.progress(notice.token, done),
            of => of,
        };
        match of {
            ProgressOf::Request(key) => {
                self.events
                    .push_back(ClientEvent::Progress(key, notice.progress));
            }
            ProgressOf::Ended => {}
            ProgressOf::NotIncreasing => self.violation(Violation::Progress),
            ProgressOf::Nothing => self.violation(Violation::UnknownToken),
        }
    }

    /// Servers may log before anything is agreed (`basic/lifecycle`, "Initialization").
    fn logged(&mut self, on: StreamId, call: &Call) {
        let level = call
            .param("level")
            .and_then(|level| from_str::<String>(level.text()).ok());
        let level = level.and_then(|level| level.parse().ok());
        let logger = call
            .param("logger")
            .map(|logger| from_str(logger.text()))
            .transpose();
        let (Some(level), Ok(logger), Some(data)) = (level, logger, call.param("data")) else {
            return self.violation(Violation::Notification(call.method.clone()));
        };
        if !self.has_room() {
            return;
        }
        let about = self.request_on(on);
        let logged = LogMessage {
            level,
            logger,
            data: data.to_json(),
        };
        self.events.push_back(ClientEvent::Log(about, logged));
    }

    fn has_room(&mut self) -> bool {
        let full = self.full();
        if let Some(limit) = full {
            self.violation(Violation::Limit(limit));
        }
        full.is_none()
    }

    fn notified(&mut self, on: StreamId, call: Call) {
        let Some(spoken) = self.state.spoken().map(std::sync::Arc::clone) else {
            return self.violation(Violation::BeforeInitialize(call.method));
        };
        let rules = spoken.rules;
        let ours = self.config.extensions.notifications.contains(&call.method);
        let extension = self.config.extensions.of_notification(&call.method);
        let declared = |known: &Extension| known.declared(&spoken.agreed.capabilities);
        let ours =
            ours || (rules.lifecycle() == Lifecycle::Discover && extension.is_some_and(declared));
        if !ours && !rules.server.notification(&call.method) {
            return self.violation(Violation::Method(call.method));
        }
        let theirs = &spoken.agreed.capabilities;
        if let Some(lacking) = capability::of_notification(&call.method, theirs) {
            return self.violation(Violation::Capability {
                method: call.method,
                capability: lacking.capability,
            });
        }
        // "Clients MUST ignore notifications referencing unknown or already-completed IDs."
        if call.method == COMPLETE && !self.elicited.complete(call.params.as_ref()) {
            return;
        }
        if call.method == "notifications/tasks/status"
            && let Some(task) = &call.params
        {
            self.tasks.told(task);
        }
        if !self.has_room() {
            return;
        }
        let subscribed = match rules.lifecycle() {
            Lifecycle::Discover => match self.subscription_of(&call) {
                Ok(key) => Some(key),
                Err(()) => return self.violation(Violation::Subscription(call.method)),
            },
            Lifecycle::Initialize => self.request_on(on),
        };
        if call.method == "notifications/subscriptions/acknowledged" {
            return self.acknowledged(subscribed, &call);
        }
        let event = match Change::of(&call.method, call.params.as_ref()) {
            Some(change) => ClientEvent::Changed(subscribed, change),
            None => ClientEvent::Notification(ServerNotification { rules, call }),
        };
        self.events.push_back(event);
    }

    /// The subscription that a notification belongs to. The acknowledgement comes first (`basic/patterns/subscriptions`).
    fn subscription_of(&self, call: &Call) -> Result<RequestKey, ()> {
        let id: RequestId = call
            .meta(meta::SUBSCRIPTION_ID)
            .and_then(|id| from_str(id.text()).ok())
            .ok_or(())?;
        let request = own_id(&id).and_then(|id| self.sent.get(id)).ok_or(())?;
        let Purpose::Program(own) = &request.purpose else {
            return Err(());
        };
        let first = call.method == "notifications/subscriptions/acknowledged";
        let fits = request.method == "subscriptions/listen" && first != own.listening;
        if fits { Ok(request.key) } else { Err(()) }
    }

    fn acknowledged(&mut self, key: Option<RequestKey>, call: &Call) {
        let filter = call.param("notifications").and_then(JsonRef::object);
        let (Some(filter), Some(key)) = (filter.and_then(Filter::of), key) else {
            return self.violation(Violation::Notification(call.method.clone()));
        };
        if let Some(id) = self.sent.id_of(key)
            && let Some(request) = self.sent.last_long(id)
            && let Purpose::Program(own) = &mut request.purpose
        {
            own.listening = true;
        }
        self.events.push_back(ClientEvent::Subscribed(key, filter));
    }
}
