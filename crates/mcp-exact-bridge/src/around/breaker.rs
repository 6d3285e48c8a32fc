//! Circuit breaker of a server: calls are refused for a time when the server fails again and again.
//!
//! Requests of clients only raise the suspicion that the server fails: whether calls are refused depends on what the gateway asks on
//! its own, so that no client decides about the calls of others. Any answer of the server ends the refusals.

use std::sync::Arc;
use std::time::Duration;

use mcp_exact_session::{Json, JsonObject, PeerError};
use parking_lot::Mutex;
use tokio::time::Instant;

use crate::around::backoff::Backoff;
use crate::around::limits::LIMIT_EXCEEDED;

/// Settings of the circuit breaker of a server.
///
/// After [`failures`](Self::failures) requests in a row without an answer (no connection, no answer in time, a lost connection, an
/// HTTP status 5xx), the bridge asks for a sign of life on the connections that are open, and then on one of its own. If the server does
/// not answer there either, calls are refused at once
/// for [`pause`](Self::pause) with an error that says when the server is tried again. The first call after that waits until the bridge
/// has asked again. An answer ends the refusals, also one to a request that was sent before; otherwise the pause doubles, up to eight
/// times the first one. JSON-RPC
/// errors, errors of tools, HTTP statuses 4xx and requests that clients cancel are no failures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct CircuitBreaker {
    /// Number of failures in a row; 0 refuses no calls.
    pub failures: u32,
    /// Time for which calls are refused.
    pub pause: Duration,
}

impl Default for CircuitBreaker {
    fn default() -> Self {
        Self {
            failures: 5,
            pause: Duration::from_secs(30),
        }
    }
}

impl CircuitBreaker {
    /// Creates the settings of a circuit breaker.
    pub fn new(failures: u32, pause: Duration) -> Self {
        Self { failures, pause }
    }
}

/// State of a circuit breaker, for monitoring.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct BreakerState {
    /// True while calls are refused.
    pub is_open: bool,
    /// Number of times that the bridge has begun to refuse calls.
    pub openings: u64,
    /// Number of calls that were refused.
    pub refused: u64,
}

/// Circuit breaker of a server.
#[derive(Debug, Default)]
pub(crate) struct Breaker(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    /// Number of failures since the latest answer of the server.
    failures: u32,
    /// True while an examination runs.
    is_examined: bool,
    /// Refusal of calls; `None` while calls are accepted.
    open: Option<Open>,
    /// Number of times that the server was replaced: examinations of an earlier one have no effect.
    epoch: u64,
    /// Number of answers of the server to requests.
    answers: u64,
    openings: u64,
    refused: u64,
}

/// Refusal of calls.
#[derive(Debug)]
struct Open {
    /// How the server has failed the latest examination.
    reason: String,
    /// Time from which on the next call examines the server.
    until: Instant,
    /// Times for which calls are refused.
    pauses: Backoff,
}

/// Decision of a circuit breaker about a call.
#[derive(Debug)]
pub(crate) enum Passage {
    /// The call is relayed.
    Free,
    /// The call is refused.
    Refused(RefusedCall),
    /// The call waits for an examination of the server.
    Trial(Examination),
}

/// Reason and end of the refusal of a call.
#[derive(Debug)]
pub(crate) struct RefusedCall {
    reason: String,
    /// Time until the server is tried again; zero if that happens at the moment.
    pub(crate) wait: Duration,
}

/// Examination of a server; it ends without an effect if it is dropped.
#[derive(Debug)]
pub(crate) struct Examination {
    breaker: Arc<Breaker>,
    settings: CircuitBreaker,
    epoch: u64,
    /// Number of answers before.
    answers: u64,
}

impl Breaker {
    /// Decides about a call.
    pub(crate) fn pass(self: &Arc<Self>, settings: CircuitBreaker) -> Passage {
        let mut state = self.0.lock();
        let now = Instant::now();
        let is_examined = state.is_examined;
        let Some(open) = &state.open else {
            return Passage::Free;
        };
        if !is_examined && now >= open.until {
            return Passage::Trial(self.begin(&mut state, settings));
        }
        let refused = open.refuse(now);
        state.refused += 1;
        Passage::Refused(refused)
    }

    /// Returns the refusal of a connection, if calls are refused at the moment.
    pub(crate) fn refusal(&self) -> Option<RefusedCall> {
        let now = Instant::now();
        let state = self.0.lock();
        let open = state.open.as_ref().filter(|open| now < open.until)?;
        Some(open.refuse(now))
    }

    /// Records an answer of the server to a request; returns true if calls were refused, which are accepted again.
    pub(crate) fn record_answer(&self) -> bool {
        let mut state = self.0.lock();
        state.failures = 0;
        state.answers += 1;
        state.open.take().is_some()
    }

    /// Records that the server, or what is in front of it, has refused a request in a way that is no failure.
    pub(crate) fn record_refusal(&self) {
        self.0.lock().failures = 0;
    }

    /// Records a failure of the server; returns an examination if there were as many in a row as the settings allow.
    pub(crate) fn record_failure(
        self: &Arc<Self>,
        settings: CircuitBreaker,
    ) -> Option<Examination> {
        let mut state = self.0.lock();
        state.failures = state.failures.saturating_add(1);
        let is_due = state.failures >= settings.failures && !state.is_examined;
        (is_due && state.open.is_none()).then(|| self.begin(&mut state, settings))
    }

    /// Accepts calls again, because the server was replaced.
    pub(crate) fn reset(&self) {
        let mut state = self.0.lock();
        (state.failures, state.open, state.is_examined) = (0, None, false);
        state.epoch += 1;
    }

    /// Returns true while calls are refused.
    pub(crate) fn is_open(&self) -> bool {
        self.0.lock().open.is_some()
    }

    /// Returns the state for monitoring.
    pub(crate) fn state(&self) -> BreakerState {
        let state = self.0.lock();
        BreakerState {
            is_open: state.open.is_some(),
            openings: state.openings,
            refused: state.refused,
        }
    }

    fn begin(self: &Arc<Self>, state: &mut State, settings: CircuitBreaker) -> Examination {
        state.is_examined = true;
        Examination {
            breaker: Arc::clone(self),
            settings,
            epoch: state.epoch,
            answers: state.answers,
        }
    }
}

impl Open {
    fn refuse(&self, now: Instant) -> RefusedCall {
        RefusedCall {
            reason: self.reason.clone(),
            wait: self.until.saturating_duration_since(now),
        }
    }
}

impl Examination {
    /// Ends the examination; `failed` is how the server has failed. Returns the time for which calls are refused from now on, or
    /// zero if they are accepted again; `None` if nothing has changed.
    pub(crate) fn end(self, failed: Option<String>) -> Option<Duration> {
        let mut state = self.breaker.0.lock();
        if state.epoch != self.epoch {
            return None;
        }
        // A server that takes one connection at a time may have answered on that of a client meanwhile.
        let failed = failed.filter(|_| state.answers == self.answers);
        let Some(reason) = failed else {
            state.failures = 0;
            return state.open.take().map(|_| Duration::ZERO);
        };
        let before = state.open.take();
        state.openings += u64::from(before.is_none());
        let pauses = before.map(|open| open.pauses);
        let mut pauses = pauses.unwrap_or_else(|| Backoff::of_breaker(self.settings.pause));
        let pause = pauses.next();
        state.open = Some(Open {
            reason,
            until: Instant::now() + pause,
            pauses,
        });
        Some(pause)
    }
}

impl Drop for Examination {
    fn drop(&mut self) {
        let mut state = self.breaker.0.lock();
        if state.epoch == self.epoch {
            state.is_examined = false;
        }
    }
}

impl RefusedCall {
    /// Returns the error for the client of the call.
    pub(crate) fn error(&self, server: &str) -> PeerError {
        let seconds = self.seconds();
        let name = match server {
            "" => "the server".to_owned(),
            name => format!("the server {name:?}"),
        };
        let next = match seconds {
            0 => "it is being tried again now".to_owned(),
            1 => "it is tried again in 1 second".to_owned(),
            seconds => format!("it is tried again in {seconds} seconds"),
        };
        let words = format!(
            "{name} fails, so that its calls are refused; {next}; last failure: {}",
            self.reason
        );
        let mut data = JsonObject::from_iter([("retryAfterMs", seconds.saturating_mul(1000))]);
        data.insert("server", Json::string(server));
        PeerError::new(LIMIT_EXCEEDED, words).with_data(data)
    }

    /// Returns the number of seconds until the server is tried again, rounded up.
    fn seconds(&self) -> u64 {
        self.wait.as_secs() + u64::from(self.wait.subsec_nanos() > 0)
    }
}

/// Returns the number of seconds after which the server of a refused call is tried again, rounded up, if an error says that a
/// server's calls are refused. It may be the error of another gateway.
#[cfg(feature = "http-server")]
pub(crate) fn retry_after(error: &PeerError) -> Option<u64> {
    let data = error
        .data()
        .filter(|_| error.code() == Some(LIMIT_EXCEEDED));
    let data: JsonObject = data?.clone().try_into().ok()?;
    let [server, wait] = data.view().find_each(["server", "retryAfterMs"]);
    let milliseconds: u64 = wait?.text().parse().ok()?;
    server.map(|_| milliseconds.div_ceil(1000).max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SETTINGS: CircuitBreaker = CircuitBreaker {
        failures: 3,
        pause: Duration::from_secs(30),
    };

    fn is_refused(breaker: &Arc<Breaker>) -> bool {
        matches!(breaker.pass(SETTINGS), Passage::Refused(_))
    }

    /// Failures alone refuse no calls: an examination that the server fails does, and only one runs at a time.
    #[tokio::test(start_paused = true)]
    async fn examinations_decide() {
        let breaker = Arc::new(Breaker::default());
        assert!(breaker.record_failure(SETTINGS).is_none());
        breaker.record_answer();
        assert!(breaker.record_failure(SETTINGS).is_none());
        assert!(breaker.record_failure(SETTINGS).is_none());
        let first = breaker.record_failure(SETTINGS).expect("the third one");
        assert!(breaker.record_failure(SETTINGS).is_none(), "it runs");
        assert!(!is_refused(&breaker), "nothing is known yet");
        assert_eq!(first.end(None), None);
        assert!(breaker.record_failure(SETTINGS).is_none(), "from the start");
        assert!(breaker.record_failure(SETTINGS).is_none());
        let second = breaker.record_failure(SETTINGS).expect("again");
        let pause = second.end(Some("status 503".to_owned()));
        assert_eq!(pause, Some(SETTINGS.pause));
        assert!(is_refused(&breaker));
        assert!(breaker.record_failure(SETTINGS).is_none());
    }

    /// An answer ends the refusals whenever it comes, and outweighs an examination that it comes before the end of; a refusal of the
    /// request does not.
    #[tokio::test(start_paused = true)]
    async fn answers_end_refusals() {
        let breaker = Arc::new(Breaker::default());
        let settings = CircuitBreaker::new(1, SETTINGS.pause);
        let found = breaker.record_failure(settings).expect("due");
        assert!(found.end(Some("lost".to_owned())).is_some());
        breaker.record_refusal();
        assert!(is_refused(&breaker));
        assert!(breaker.record_answer(), "it has ended the refusals");
        assert!(matches!(breaker.pass(settings), Passage::Free));
        let found = breaker.record_failure(settings).expect("due");
        assert!(!breaker.record_answer());
        assert_eq!(found.end(Some("no second connection".to_owned())), None);
        assert!(!breaker.is_open());
        let found = breaker.record_failure(settings).expect("due");
        assert!(found.end(Some("lost".to_owned())).is_some());
        assert_eq!(breaker.state().openings, 2);
    }

    /// After the pause, one call examines the server; each failed examination doubles the pause, up to eight times.
    #[tokio::test(start_paused = true)]
    async fn pauses_double_and_end() {
        let breaker = Arc::new(Breaker::default());
        let settings = CircuitBreaker::new(1, SETTINGS.pause);
        let found = breaker.record_failure(settings).expect("due");
        let mut pause = found.end(Some("lost".to_owned())).expect("refused");
        for factor in [2, 4, 8, 8] {
            tokio::time::advance(pause - Duration::from_millis(1)).await;
            assert!(is_refused(&breaker));
            tokio::time::advance(Duration::from_millis(1)).await;
            let Passage::Trial(trial) = breaker.pass(SETTINGS) else {
                panic!("a trial");
            };
            assert!(is_refused(&breaker), "one trial at a time");
            pause = trial.end(Some("lost".to_owned())).expect("refused");
            assert_eq!(pause, SETTINGS.pause * factor);
        }
        tokio::time::advance(pause).await;
        // An examination that nobody ends leaves the way for the next one.
        drop(breaker.pass(SETTINGS));
        let Passage::Trial(trial) = breaker.pass(SETTINGS) else {
            panic!("a trial");
        };
        assert_eq!(trial.end(None), Some(Duration::ZERO));
        assert!(matches!(breaker.pass(SETTINGS), Passage::Free));
        assert_eq!(breaker.state().openings, 1);
    }

    /// An examination of a server that was replaced meanwhile says nothing about the next one.
    #[tokio::test(start_paused = true)]
    async fn replaced_servers_begin_anew() {
        let breaker = Arc::new(Breaker::default());
        let settings = CircuitBreaker::new(1, SETTINGS.pause);
        let old = breaker.record_failure(settings).expect("due");
        breaker.reset();
        let new = breaker.record_failure(settings).expect("due");
        assert_eq!(old.end(Some("lost".to_owned())), None);
        assert!(!breaker.is_open());
        assert!(breaker.record_failure(settings).is_none(), "it runs");
        assert!(new.end(Some("lost".to_owned())).is_some());
        let refused = breaker.refusal().expect("open").error("files");
        expect(&refused.to_string());
        breaker.reset();
        assert!(breaker.refusal().is_none());
    }

    fn expect(words: &str) {
        let expected = "the server \"files\" fails, so that its calls are refused; it is tried again in 30 seconds; last failure: lost (-32000)";
        assert_eq!(words, expected);
    }
}
