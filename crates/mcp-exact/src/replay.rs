//! Record of one request across its retries: input requests with their answers, and results of `once`.
//!
//! The module is pure state without IO. From 2026-07-28 on, an input request ends the client's request, and the handler
//! runs again with the answers. The record lists the earlier input requests, detects a handler that sends different
//! input requests, and is sealed into `requestState`.

use std::collections::BTreeMap;
use std::task::Waker;
use std::thread::ThreadId;

use serde::{Deserialize, Serialize};

use crate::protocol::{InputRequest, Json, JsonObject, JsonRef, ObjectRef};

/// Record that is sealed into `requestState`, which the client returns with its retry.
///
/// The JSON form has the members `v`, `q` and, unless it is empty, `o`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(into = "JsonObject", try_from = "JsonObject")]
pub(crate) struct ReplayRecord {
    /// Version of the handler that created the record.
    version: String,
    /// Input requests of earlier runs, in the order in which the handler has sent them.
    input_requests: Vec<RecordedInputRequest>,
    /// Results of `once`, by key.
    once: BTreeMap<String, Json>,
}

/// Input request of an earlier round trip. The JSON form has the members `n`, `f` and, unless they are `None`, `d` and
/// `a`.
#[derive(Debug, Clone, PartialEq)]
struct RecordedInputRequest {
    /// Key of the input request in `inputRequests`.
    name: String,
    /// Hash of the method and params, by which a later run recognises the input request.
    fingerprint: u64,
    /// Deadline of the answer, in milliseconds of the server's clock.
    deadline: Option<u64>,
    /// Result of the input request; `false` if no answer was received before the deadline, and `None` while no answer
    /// was received.
    answer: Option<Json>,
}

impl RecordedInputRequest {
    /// Returns the JSON form.
    fn to_object(&self) -> JsonObject {
        let deadline = self.deadline.map(|deadline| ("d", Json::from(deadline)));
        let answer = self.answer.clone().map(|answer| ("a", answer));
        let members = [
            Some(("n", Json::string(&self.name))),
            Some(("f", Json::from(self.fingerprint))),
            deadline,
            answer,
        ];
        members.into_iter().flatten().collect()
    }

    /// Reads the JSON form.
    fn read(object: ObjectRef<'_>) -> Option<Self> {
        let [name, fingerprint, deadline, answer] = object.find_each(["n", "f", "d", "a"]);
        let deadline = deadline.map(|deadline| deadline.text().parse());
        Some(Self {
            name: name?.as_str()?.into_owned(),
            fingerprint: fingerprint?.text().parse().ok()?,
            deadline: deadline.transpose().ok()?,
            answer: answer.map(JsonRef::to_json),
        })
    }
}

impl From<ReplayRecord> for JsonObject {
    fn from(record: ReplayRecord) -> Self {
        let requests = record.input_requests.iter();
        let requests: Vec<Self> = requests.map(RecordedInputRequest::to_object).collect();
        let once = (!record.once.is_empty()).then(|| Self::from_iter(record.once));
        let members = [
            Some(("v", Json::string(&record.version))),
            Some(("q", Json::from_encode(&requests))),
            once.map(|once| ("o", Json::from(once))),
        ];
        members.into_iter().flatten().collect()
    }
}

impl TryFrom<JsonObject> for ReplayRecord {
    type Error = &'static str;

    fn try_from(object: JsonObject) -> Result<Self, Self::Error> {
        Self::read(object.view()).ok_or("the JSON is not a record of a request")
    }
}

/// Context that code runs in: a Tokio task, or a thread outside of all tasks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ExecutionContext {
    /// Tokio task with this id.
    Task(tokio::task::Id),
    /// Thread outside of all tasks.
    Thread(ThreadId),
}

impl ExecutionContext {
    /// Returns the context of the caller.
    pub(crate) fn current() -> Self {
        let thread = || Self::Thread(std::thread::current().id());
        tokio::task::try_id().map_or_else(thread, Self::Task)
    }
}

/// Index of an input request in a [`HandlerRun`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct InputRequestId(usize);

/// Outcome of an input request.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum InputOutcome {
    /// Result that the client has sent.
    Result(JsonObject),
    /// The client has not answered within the time limit.
    TimedOut,
}

/// Input request of this run of the handler.
#[derive(Debug)]
struct InputRequestState {
    /// Recorded form of the input request.
    record: RecordedInputRequest,
    /// True if an earlier run has sent the input request.
    was_sent_before: bool,
    /// True if this run has requested the input.
    is_requested: bool,
    /// True if this run has consumed the answer or no longer waits for it.
    is_settled: bool,
    /// Method and params of the input request; set once this run has requested the input.
    method_and_params: Option<InputRequest>,
    /// True if a caller waits for the answer.
    has_waiter: bool,
    /// Waker of the caller, for answers that are received while the handler runs as a task.
    waker: Option<Waker>,
}

/// One run of a handler.
#[derive(Debug, Default)]
pub(crate) struct HandlerRun {
    /// Version of the handler.
    version: String,
    /// Input requests of earlier runs, followed by those of this run.
    input_requests: Vec<InputRequestState>,
    /// Answers in the client's request, by key, that match no input request of the record.
    unmatched_answers: Vec<(String, JsonObject)>,
    /// Results of `once`, by key.
    once_results: BTreeMap<String, Json>,
    /// Contexts that run effects of `once`.
    running_effects: Vec<ExecutionContext>,
    /// Context that polls the handler, once the handler has been polled.
    handler_task: Option<ExecutionContext>,
    /// Waker of the task that polls the handler.
    runner_waker: Option<Waker>,
}

/// Input requests that end the client's request, and the record for its retry.
#[derive(Debug, PartialEq)]
pub(crate) struct Suspension {
    /// Input requests by their keys.
    pub(crate) input_requests: Vec<(String, InputRequest)>,
    /// Record that the client returns with its retry.
    pub(crate) record: ReplayRecord,
}

/// Reason why a request cannot continue.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ReplayError {
    /// Another version of the handler has created the record.
    #[error("the handler has changed since it asked; start the request again")]
    VersionMismatch,
    /// The handler has sent an input request without repeating its earlier ones.
    #[error(
        "the handler asks {now} although it has asked `{before}` before and not repeated that: a handler that asks runs again \
         with the answers and has to request the same questions in the same message; take values that change (time, random numbers, \
         data) through `Cx::once`"
    )]
    Diverged {
        /// Key of an input request of an earlier run that was not repeated.
        before: String,
        /// Key and method of the new input request.
        now: String,
    },
}

impl ReplayRecord {
    /// Returns the JSON text of the record.
    pub(crate) fn into_text(self) -> String {
        JsonObject::from(self).to_string()
    }

    /// Parses the JSON text of a record.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        Self::read(text.parse::<JsonObject>().ok()?.view())
    }

    /// Reads the JSON form.
    fn read(object: ObjectRef<'_>) -> Option<Self> {
        let [version, requests, once] = object.find_each(["v", "q", "o"]);
        let requests: Vec<JsonObject> = requests?.decode_as().ok()?;
        let requests = requests.iter().map(JsonObject::view);
        let mut record = Self {
            version: version?.as_str()?.into_owned(),
            input_requests: requests
                .map(RecordedInputRequest::read)
                .collect::<Option<_>>()?,
            once: BTreeMap::new(),
        };
        if let Some(once) = once {
            for (key, result) in once.object()?.iter() {
                record.once.insert(key.into_owned(), result.to_json());
            }
        }
        Some(record)
    }
}

impl HandlerRun {
    /// Starts the first run of a request.
    pub(crate) fn new(version: impl Into<String>) -> Self {
        Self {
            version: version.into(),
            ..Self::default()
        }
    }

    /// Starts another run with the record of the earlier runs and the answers of the retry. `answer` returns the answer
    /// to the input request with a key.
    ///
    /// # Errors
    /// [`ReplayError::VersionMismatch`] if another version of the handler created the record.
    pub(crate) fn resume(
        version: &str,
        record: ReplayRecord,
        mut answer: impl FnMut(&str) -> Option<JsonObject>,
    ) -> Result<Self, ReplayError> {
        if record.version != version {
            return Err(ReplayError::VersionMismatch);
        }
        let questions = record.input_requests.into_iter().map(|mut recorded| {
            if recorded.answer.is_none() {
                let given = answer(&recorded.name);
                recorded.answer = given.map(Json::from);
            }
            InputRequestState {
                record: recorded,
                was_sent_before: true,
                is_requested: false,
                is_settled: false,
                method_and_params: None,
                has_waiter: false,
                waker: None,
            }
        });
        Ok(Self {
            input_requests: questions.collect(),
            version: record.version,
            once_results: record.once,
            ..Self::default()
        })
    }

    /// Sets the answers that the client's request contains. An input request whose key the handler has set uses the
    /// answer with this key without being sent; unused answers are ignored.
    pub(crate) fn offer_answers(
        &mut self,
        answers: impl IntoIterator<Item = (String, JsonObject)>,
    ) {
        self.unmatched_answers.extend(answers);
    }

    /// Sets the key of an input request in `inputRequests`. The key is not changed if an earlier run has sent the input
    /// request, or if another input request already uses the new key.
    pub(crate) fn set_key(&mut self, id: InputRequestId, key: &str) {
        let mut others = self.input_requests.iter();
        if self.input_requests[id.0].was_sent_before || others.any(|entry| entry.record.name == key)
        {
            return;
        }
        let mut answers = self.unmatched_answers.iter();
        let answer = answers.position(|(name, _)| name == key);
        let answer = answer.map(|at| self.unmatched_answers.swap_remove(at).1.into());
        let recorded = &mut self.input_requests[id.0].record;
        key.clone_into(&mut recorded.name);
        recorded.answer = answer;
    }

    /// Records an input request of the handler; returns the id of the existing entry if an earlier run has recorded an
    /// equal one.
    pub(crate) fn record_input_request(&mut self, request: InputRequest) -> InputRequestId {
        let fingerprint = fingerprint(&request);
        let same = |entry: &InputRequestState| {
            !entry.is_requested && entry.record.fingerprint == fingerprint
        };
        let at = match self.input_requests.iter().position(same) {
            Some(at) => at,
            None => {
                let kind = request.method.split('/').next().unwrap_or_default();
                let name = format!("{kind}-{}", self.next_number());
                self.input_requests.push(InputRequestState {
                    record: RecordedInputRequest {
                        name,
                        fingerprint,
                        deadline: None,
                        answer: None,
                    },
                    was_sent_before: false,
                    is_requested: false,
                    is_settled: false,
                    method_and_params: None,
                    has_waiter: false,
                    waker: None,
                });
                self.input_requests.len() - 1
            }
        };
        let entry = &mut self.input_requests[at];
        entry.is_requested = true;
        entry.method_and_params = Some(request);
        InputRequestId(at)
    }

    /// Returns a number for the default key of a new input request. No other key of the request contains the number,
    /// because keys are unique within a request.
    fn next_number(&self) -> usize {
        let number = |entry: &InputRequestState| {
            let (_, number) = entry.record.name.rsplit_once('-')?;
            number.parse::<usize>().ok()
        };
        let used: Vec<usize> = self.input_requests.iter().filter_map(number).collect();
        let next = used
            .iter()
            .max()
            .map_or(Some(1), |last| last.checked_add(1));
        // Keys that a handler sets may contain any number.
        next.unwrap_or_else(|| (1..).find(|one| !used.contains(one)).unwrap_or_default())
    }

    /// Sets the deadline of an input request, in milliseconds of the server's clock. An input request of an earlier run
    /// keeps its deadline.
    pub(crate) fn set_deadline(&mut self, id: InputRequestId, deadline: u64) {
        let entry = &mut self.input_requests[id.0];
        if !entry.was_sent_before {
            entry.record.deadline = Some(deadline);
        }
    }

    /// Returns the answer to an input request, or records that a caller waits for the answer. `now` is the time in
    /// milliseconds of the server's clock. An answer that was received after the deadline counts as missing, in this
    /// run and in every later one.
    pub(crate) fn take_answer(&mut self, id: InputRequestId, now: u64) -> Option<InputOutcome> {
        let entry = &mut self.input_requests[id.0];
        let recorded = &mut entry.record;
        let deadline = recorded.deadline.filter(|_| entry.was_sent_before);
        let late = deadline.is_some_and(|deadline| deadline < now);
        // The deadline is cleared after an answer in time, so that a later run does not treat the answer as late.
        let given = recorded.answer.clone().map(JsonObject::try_from);
        let answer = match given {
            Some(Ok(answer)) if !late => {
                recorded.deadline = None;
                Some(InputOutcome::Result(answer))
            }
            None if !late => None,
            _ => {
                recorded.answer = Some(Json::from(false));
                Some(InputOutcome::TimedOut)
            }
        };
        entry.is_settled = answer.is_some();
        entry.has_waiter = answer.is_none();
        if entry.has_waiter {
            self.wake_runner();
        }
        answer
    }

    /// Records that no caller waits for the answer any more.
    pub(crate) fn release_input_request(&mut self, id: InputRequestId) {
        let entry = &mut self.input_requests[id.0];
        entry.has_waiter = false;
        entry.is_settled = true;
    }

    /// Returns true while the handler repeats the steps of an earlier run, that is, until it has consumed every
    /// recorded answer.
    pub(crate) fn is_replaying(&self) -> bool {
        let mut answered = self
            .input_requests
            .iter()
            .filter(|entry| entry.was_sent_before);
        answered.any(|entry| !entry.is_settled)
    }

    /// Returns the input requests that end the client's request now; `None` while no caller waits for an answer or
    /// while an effect of `once` is running.
    ///
    /// # Errors
    /// [`ReplayError::Diverged`] if the handler sends a new input request without repeating all earlier ones.
    pub(crate) fn suspend(&self) -> Result<Option<Suspension>, ReplayError> {
        if !self.running_effects.is_empty() {
            return Ok(None);
        }
        let wanted = || self.input_requests.iter().filter(|entry| entry.has_waiter);
        if wanted().next().is_none() {
            return Ok(None);
        }
        let forgotten = self
            .input_requests
            .iter()
            .find(|entry| entry.was_sent_before && !entry.is_requested);
        if let Some(new) = wanted().find(|entry| !entry.was_sent_before)
            && let Some(before) = forgotten
        {
            let now = new
                .method_and_params
                .as_ref()
                .map_or("something", |request| &request.method);
            return Err(ReplayError::Diverged {
                before: before.record.name.clone(),
                now: format!("`{}` ({now})", new.record.name),
            });
        }
        let input_requests = wanted().filter_map(|entry| {
            Some((entry.record.name.clone(), entry.method_and_params.clone()?))
        });
        Ok(Some(Suspension {
            input_requests: input_requests.collect(),
            record: self.to_record(),
        }))
    }

    /// Returns the record from which a later run of the handler reaches the same point.
    pub(crate) fn to_record(&self) -> ReplayRecord {
        let kept = self.input_requests.iter().filter(|entry| {
            entry.was_sent_before || entry.has_waiter || entry.record.answer.is_some()
        });
        ReplayRecord {
            version: self.version.clone(),
            input_requests: kept.map(|entry| entry.record.clone()).collect(),
            once: self.once_results.clone(),
        }
    }

    /// Sets the waker that is called when the answer to an input request is received while the handler runs.
    pub(crate) fn set_waker(&mut self, id: InputRequestId, waker: &Waker) {
        self.input_requests[id.0].waker = Some(waker.clone());
    }

    /// Returns the deadline of an input request, in milliseconds of the server's clock.
    pub(crate) fn deadline(&self, id: InputRequestId) -> Option<u64> {
        self.input_requests[id.0].record.deadline
    }

    /// Records that the answer to an input request was not received in time.
    pub(crate) fn record_timeout(&mut self, id: InputRequestId) {
        let entry = &mut self.input_requests[id.0];
        entry.record.answer = Some(Json::from(false));
        entry.has_waiter = false;
        entry.is_settled = true;
    }

    /// Delivers the answer to an input request of the running handler; returns true if a caller was waiting for this
    /// answer.
    pub(crate) fn deliver_answer(&mut self, key: &str, answer: JsonObject) -> bool {
        let waits = |entry: &&mut InputRequestState| entry.has_waiter && entry.record.name == key;
        let Some(entry) = self.input_requests.iter_mut().find(waits) else {
            return false;
        };
        entry.record.answer = Some(answer.into());
        // The deadline is cleared because the answer was received in time, so that a later run does not treat it as
        // late.
        entry.record.deadline = None;
        entry.has_waiter = false;
        let wakers = entry
            .waker
            .take()
            .into_iter()
            .chain(self.runner_waker.clone());
        wakers.for_each(Waker::wake);
        true
    }

    /// Returns the recorded result of the effect of `once` with a key.
    pub(crate) fn once_result(&self, key: &str) -> Option<&Json> {
        self.once_results.get(key)
    }

    /// Records that an effect of `once` runs in the context `place`, and wakes the pending input requests, because
    /// input requests of other tasks now fail; see [`has_effect_elsewhere`](Self::has_effect_elsewhere).
    pub(crate) fn start_once(&mut self, place: ExecutionContext) {
        self.running_effects.push(place);
        let wakers = self.input_requests.iter_mut();
        wakers
            .filter_map(|entry| entry.waker.take())
            .for_each(Waker::wake);
    }

    /// Returns true if `place` is not the context of the handler and an effect runs in a context other than `place`.
    pub(crate) fn has_effect_elsewhere(&self, place: ExecutionContext) -> bool {
        self.handler_task != Some(place)
            && self.running_effects.iter().any(|effect| *effect != place)
    }

    /// Records the context that polls the handler.
    pub(crate) fn set_handler(&mut self, place: ExecutionContext) {
        self.handler_task = Some(place);
    }

    /// Records the end of the effect of `once` that runs in the context `place`; stores the key and the result in
    /// `record`, if given.
    pub(crate) fn end_once(&mut self, place: ExecutionContext, record: Option<(&str, Json)>) {
        let ended = self
            .running_effects
            .iter()
            .position(|effect| *effect == place);
        ended.map(|at| self.running_effects.swap_remove(at));
        if let Some((key, value)) = record {
            self.once_results.insert(key.to_owned(), value);
        }
        self.wake_runner();
    }

    /// Wakes the task that polls the handler, so that it observes a change of the run that another task may have made.
    pub(crate) fn wake_runner(&self) {
        if let Some(runner) = &self.runner_waker {
            runner.wake_by_ref();
        }
    }

    /// Sets the waker of the task that polls the handler, which is woken when another task sends an input request.
    pub(crate) fn set_runner(&mut self, waker: &Waker) {
        match &mut self.runner_waker {
            Some(runner) => runner.clone_from(waker),
            None => self.runner_waker = Some(waker.clone()),
        }
    }
}

/// Returns the FNV-1a hash of an input request, which is the same in every build and process.
fn fingerprint(request: &InputRequest) -> u64 {
    let params = request.params.as_ref().map_or("", JsonObject::text);
    let bytes = request.method.bytes().chain([0]).chain(params.bytes());
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests;
