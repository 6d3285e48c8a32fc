//! Limits of each client, which is a principal or an address: requests per second, concurrent requests, and connections.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Weak};
use std::time::Duration;

use mcp_exact_session::{IncomingRequest, JsonObject, PeerError, Principal};
use mcp_exact_transport::RequestContext;
use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, TryAcquireError};
use tokio::time::Instant;

/// Number of clients from which on idle clients are removed.
const CLEANUP_THRESHOLD: usize = 10_000;

/// JSON-RPC error code of a request that exceeds a limit, from the range for implementation-defined errors.
pub(crate) const LIMIT_EXCEEDED: i64 = -32000;

/// Limits of each principal; clients without a principal are told apart by their address.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
#[non_exhaustive]
pub struct PrincipalLimits {
    /// Average number of requests per second; `None` for no limit.
    pub per_second: Option<f64>,
    /// Maximum number of requests that a principal may send immediately after a pause; at least one.
    pub burst: u32,
    /// Maximum number of concurrent requests; `None` for no limit.
    pub concurrent: Option<usize>,
}

/// Token buckets and concurrent requests of all clients.
#[derive(Debug, Default)]
pub(crate) struct Principals {
    /// Usage of each client.
    used: Mutex<HashMap<Holder, Bucket>>,
}

/// Usage of one client: a token bucket, and the number of concurrent requests.
#[derive(Debug, Clone, Copy)]
struct Bucket {
    /// Number of requests that the client may send now.
    tokens: f64,
    /// Time of the latest refill.
    since: Instant,
    /// Number of requests in progress.
    running: usize,
}

impl Bucket {
    /// Adds the tokens that have accrued since the latest refill.
    fn refill(&mut self, limits: &PrincipalLimits, now: Instant) {
        let passed = now.duration_since(self.since).as_secs_f64();
        let rate = limits.per_second.unwrap_or(f64::INFINITY);
        // If no time has passed, nothing is added, even at an infinite rate.
        let more = if passed > 0.0 { passed * rate } else { 0.0 };
        self.tokens = (self.tokens + more).min(burst(limits));
        self.since = now;
    }
}

/// Returns the capacity of the token bucket.
fn burst(limits: &PrincipalLimits) -> f64 {
    f64::from(limits.burst.max(1))
}

/// Limit that a client has reached.
#[derive(Debug)]
pub(crate) struct OverLimit {
    /// What the limit is, and what the client can do.
    words: String,
    /// Time after which the client may try again, if it is known.
    pub(crate) wait: Option<Duration>,
}

impl From<OverLimit> for PeerError {
    fn from(OverLimit { words, wait }: OverLimit) -> Self {
        let error = Self::new(LIMIT_EXCEEDED, words);
        match wait {
            Some(wait) => {
                let data = JsonObject::from_iter([("retryAfterMs", milliseconds(wait))]);
                error.with_data(data)
            }
            None => error,
        }
    }
}

/// Returns a duration in whole milliseconds.
fn milliseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros().div_ceil(1000)).unwrap_or(u64::MAX)
}

/// Permit for one request, which counts towards the concurrent requests of its client until dropped.
#[derive(Debug)]
pub(crate) struct Admission {
    /// Table from which the request is removed when the permit is dropped.
    principals: Arc<Principals>,
    /// Client that the request counts towards.
    client: Holder,
}

impl Drop for Admission {
    fn drop(&mut self) {
        if let Some(used) = self.principals.used.lock().get_mut(&self.client) {
            used.running = used.running.saturating_sub(1);
        }
    }
}

impl Principals {
    /// Counts a request; returns an error if the request exceeds a limit.
    pub(crate) fn admit(
        self: &Arc<Self>,
        limits: &PrincipalLimits,
        mut client: Holder,
        now: Instant,
    ) -> Result<Admission, OverLimit> {
        let mut all = self.used.lock();
        if all.len() >= CLEANUP_THRESHOLD {
            all.retain(|_, used| {
                used.refill(limits, now);
                used.running > 0 || used.tokens < burst(limits)
            });
            // One attacker may have any number of addresses: those that come when there are too many share one set of limits.
            let is_address = matches!(client, Holder::Address(_));
            if is_address && all.len() >= CLEANUP_THRESHOLD && !all.contains_key(&client) {
                client = Holder::Unknown;
            }
        }
        let used = all.entry(client.clone()).or_insert(Bucket {
            tokens: burst(limits),
            since: now,
            running: 0,
        });
        used.refill(limits, now);
        if let Some(most) = limits.concurrent
            && used.running >= most
        {
            let words = format!(
                "this client has {most} requests in progress, as many as it may have; repeat the request when one has ended"
            );
            return Err(OverLimit { words, wait: None });
        }
        if let Some(rate) = limits.per_second {
            if used.tokens < 1.0 {
                let wait = Duration::try_from_secs_f64((1.0 - used.tokens) / rate);
                let wait = wait.unwrap_or(Duration::MAX);
                let words = format!(
                    "this client may send {rate} requests per second; repeat the request after {} milliseconds",
                    milliseconds(wait)
                );
                return Err(OverLimit {
                    words,
                    wait: Some(wait),
                });
            }
            used.tokens -= 1.0;
        }
        used.running += 1;
        Ok(Admission {
            principals: Arc::clone(self),
            client,
        })
    }
}

/// Client that holds connections to a server: a principal, the address of an anonymous client, or a client of this process.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Holder {
    Principal(String),
    Address(IpAddr),
    Local,
    /// Client that has not sent a request yet.
    Unknown,
}

impl Holder {
    /// Returns the client that sends a request.
    pub(crate) fn of(request: &IncomingRequest<RequestContext>) -> Self {
        let context = request.context();
        match (&context.principal, context.app_data.client_address()) {
            (Some(Principal(name)), _) => Self::Principal(name.clone()),
            (None, Some(address)) => Self::Address(address),
            (None, None) => Self::Local,
        }
    }

    /// Returns the client with a principal, or with an address.
    #[cfg(feature = "http-server")]
    pub(crate) fn of_client(principal: Option<&str>, address: Option<IpAddr>) -> Self {
        match (principal, address) {
            (Some(name), _) => Self::Principal(name.to_owned()),
            (None, Some(address)) => Self::Address(address),
            (None, None) => Self::Unknown,
        }
    }
}

/// Places for connections to one server, in total and by client.
#[derive(Debug)]
pub(crate) struct Places {
    /// Number of all places.
    count: usize,
    free: Arc<Semaphore>,
    /// Semaphores of the shares of which places are taken.
    shares: Mutex<HashMap<ShareKey, Weak<Semaphore>>>,
}

/// Whose share of the places for sessions, calls or subscriptions is counted.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum ShareKey {
    /// Sessions of one client.
    Sessions(Holder),
    /// Connections that one client shares, or leases for a call.
    Calls(Holder),
    /// Subscriptions and waiting calls of one address.
    Lasting(Holder),
    /// Subscriptions and waiting calls of all clients without a principal.
    LastingOfAll,
}

impl ShareKey {
    /// Returns how many of `all` places the share may take. The client of this process may take all. Clients behind one proxy have
    /// one address, and thus one share; those that have not sent a request yet have a quarter together.
    fn of(&self, all: usize) -> usize {
        match self {
            Self::Sessions(Holder::Local) | Self::Calls(Holder::Local) => all,
            Self::Sessions(Holder::Unknown) => (all / 4).max(1),
            Self::Sessions(_) | Self::LastingOfAll | Self::Calls(Holder::Principal(_)) => {
                all.div_ceil(2).max(1)
            }
            Self::Calls(_) => all - all / 4,
            Self::Lasting(_) => (3 * all).div_ceil(8),
        }
    }
}

/// Place that a client holds until the value is dropped.
#[derive(Debug)]
pub(crate) struct Place {
    /// Client that the place counts for.
    pub(crate) holder: Holder,
    _place: OwnedSemaphorePermit,
    /// Permits that count towards shares.
    pub(crate) shares: Vec<OwnedSemaphorePermit>,
}

impl Places {
    pub(crate) fn new(count: usize) -> Self {
        // Whoever wants no limit writes a number that no semaphore has.
        let count = count.min(Semaphore::MAX_PERMITS);
        Self {
            count,
            free: Arc::new(Semaphore::new(count)),
            shares: Mutex::default(),
        }
    }

    /// Returns the semaphore of all places.
    pub(crate) fn free(&self) -> &Arc<Semaphore> {
        &self.free
    }

    /// Returns the semaphore of a share.
    pub(crate) fn share(&self, key: ShareKey) -> Arc<Semaphore> {
        let mut shares = self.shares.lock();
        shares.retain(|_, share| share.strong_count() > 0);
        let known = shares.get(&key).and_then(Weak::upgrade);
        known.unwrap_or_else(|| {
            let share = Arc::new(Semaphore::new(key.of(self.count)));
            shares.insert(key, Arc::downgrade(&share));
            share
        })
    }

    /// Takes a place for a session, or returns an error at once.
    pub(crate) fn take(&self, holder: Holder) -> Result<Place, PeerError> {
        let share = self.session_share(&holder)?;
        let place = Arc::clone(&self.free).try_acquire_owned();
        Ok(Place::new(holder, place.map_err(no_place)?, vec![share]))
    }

    fn session_share(&self, holder: &Holder) -> Result<OwnedSemaphorePermit, PeerError> {
        let share = self.share(ShareKey::Sessions(holder.clone()));
        share.try_acquire_owned().map_err(no_place)
    }
}

impl Place {
    pub(crate) fn new(
        holder: Holder,
        place: OwnedSemaphorePermit,
        shares: Vec<OwnedSemaphorePermit>,
    ) -> Self {
        Self {
            holder,
            _place: place,
            shares,
        }
    }

    /// Counts the place of a session towards the client that turned out to hold it.
    pub(crate) fn pass_to(&mut self, holder: &Holder, places: &Places) -> Result<(), PeerError> {
        if self.holder != *holder {
            self.shares = vec![places.session_share(holder)?];
            self.holder = holder.clone();
        }
        Ok(())
    }
}

fn no_place(_: TryAcquireError) -> PeerError {
    let words = "too many sessions have connections to this server; end one, or try again later";
    PeerError::new(LIMIT_EXCEEDED, words)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a principal, or a client of this process.
    fn holder(principal: Option<&str>) -> Holder {
        principal.map_or(Holder::Local, |name| Holder::Principal(name.to_owned()))
    }

    /// Anonymous clients of different addresses do not take requests from each other; beyond the number of clients that are
    /// remembered, further addresses share what one may send.
    #[test]
    fn addresses_have_limits_of_their_own() {
        let limits = PrincipalLimits {
            per_second: Some(0.001),
            burst: 1,
            concurrent: None,
        };
        let principals = Arc::new(Principals::default());
        let now = Instant::now();
        let admit = |number: usize| {
            let number = u32::try_from(number).expect("an address");
            let address = IpAddr::V4(number.into());
            principals.admit(&limits, Holder::Address(address), now)
        };
        for number in 0..=CLEANUP_THRESHOLD {
            assert!(admit(number).is_ok(), "{number}");
            assert!(admit(number).is_err(), "{number}");
        }
        assert!(admit(CLEANUP_THRESHOLD + 1).is_err());
        assert!(principals.used.lock().len() <= CLEANUP_THRESHOLD + 1);
    }

    /// One client holds at most half of the connections, clients that have sent no request a quarter, and what is released
    /// is free again.
    #[test]
    fn connections_have_shares() {
        let places = Places::new(8);
        let named = |name: &str| Holder::Principal(name.to_owned());
        let taken = |holder: &Holder| -> Vec<Place> {
            std::iter::from_fn(|| places.take(holder.clone()).ok()).collect()
        };
        let mut unknown = taken(&Holder::Unknown);
        let red = taken(&named("red"));
        let blue = taken(&named("blue"));
        assert_eq!((unknown.len(), red.len(), blue.len()), (2, 4, 2));
        assert!(unknown[0].pass_to(&named("red"), &places).is_err());
        assert!(unknown[0].pass_to(&named("blue"), &places).is_ok());
        drop((unknown, red, blue));
        assert_eq!(taken(&Holder::Local).len(), 8);
        drop(places.share(ShareKey::LastingOfAll));
        assert_eq!(places.shares.lock().len(), 1, "of nobody who is gone");
    }

    /// Requests above the rate of one principal are rejected, and requests of other principals are not.
    #[test]
    fn rate_limits_apply_per_principal() {
        let limits = PrincipalLimits {
            per_second: Some(2.0),
            burst: 3,
            concurrent: None,
        };
        let principals = Arc::new(Principals::default());
        let begin = Instant::now();
        let admit = |who: Option<&str>, at| {
            principals.admit(&limits, holder(who), begin + Duration::from_millis(at))
        };
        for _ in 0..3 {
            assert!(admit(Some("red"), 0).is_ok());
        }
        let refused = PeerError::from(admit(Some("red"), 0).expect_err("a fourth one at once"));
        assert_eq!(refused.code(), Some(LIMIT_EXCEEDED));
        let data = refused.data().map(|data| data.text().to_owned());
        assert_eq!(data.as_deref(), Some(r#"{"retryAfterMs":500}"#));
        assert!(admit(Some("blue"), 0).is_ok());
        assert!(admit(None, 0).is_ok());
        assert!(admit(Some("red"), 499).is_err());
        assert!(admit(Some("red"), 500).is_ok());
        assert!(admit(Some("red"), 500).is_err());
    }

    /// A request counts towards the limit of concurrent requests only until its permit is dropped.
    #[test]
    fn ended_requests_do_not_count() {
        let limits = PrincipalLimits {
            concurrent: Some(2),
            ..PrincipalLimits::default()
        };
        let principals = Arc::new(Principals::default());
        let now = Instant::now();
        let admit = || principals.admit(&limits, holder(Some("red")), now);
        let (first, _second) = (admit().expect("a place"), admit().expect("a place"));
        assert!(admit().is_err());
        drop(first);
        assert!(admit().is_ok());
    }

    /// Above [`CLEANUP_THRESHOLD`] principals, principals without recent requests are removed.
    #[test]
    fn idle_principals_are_forgotten() {
        let limits = PrincipalLimits {
            per_second: Some(1.0),
            ..PrincipalLimits::default()
        };
        let principals = Arc::new(Principals::default());
        let begin = Instant::now();
        let later = begin + Duration::from_secs(10);
        let held = principals.admit(&limits, holder(Some("held")), begin);
        for number in 0..CLEANUP_THRESHOLD {
            let _ = principals.admit(&limits, holder(Some(&number.to_string())), begin);
        }
        let _ = principals.admit(&limits, holder(Some("next")), later);
        assert_eq!(principals.used.lock().len(), 2);
        drop(held);
    }
}
