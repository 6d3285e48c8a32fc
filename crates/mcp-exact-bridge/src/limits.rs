//! Limits per principal: requests per second, and concurrent requests.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use mcp_exact_session::{JsonObject, PeerError};
use tokio::time::Instant;

/// Number of principals from which on idle principals are removed.
const CLEANUP_THRESHOLD: usize = 10_000;

/// JSON-RPC error code of a request that exceeds a limit, from the range for implementation-defined errors.
const LIMIT_EXCEEDED: i64 = -32000;

/// Limits of each principal. All clients without a principal share one set of limits.
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

/// Token buckets and concurrent requests of all principals.
#[derive(Debug, Default)]
pub(crate) struct Principals {
    /// Usage of each principal; the key `None` stands for all clients without a principal.
    used: Mutex<HashMap<Option<String>, Bucket>>,
}

/// Usage of one principal: a token bucket, and the number of concurrent requests.
#[derive(Debug, Clone, Copy)]
struct Bucket {
    /// Number of requests that the principal may send now.
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

/// Permit for one request, which counts towards the concurrent requests of its principal until dropped.
#[derive(Debug)]
pub(crate) struct Admission {
    /// Table from which the request is removed when the permit is dropped.
    principals: Arc<Principals>,
    /// Principal of the request.
    principal: Option<String>,
}

impl Drop for Admission {
    fn drop(&mut self) {
        if let Some(used) = self.principals.lock().get_mut(&self.principal) {
            used.running = used.running.saturating_sub(1);
        }
    }
}

impl Principals {
    fn lock(&self) -> MutexGuard<'_, HashMap<Option<String>, Bucket>> {
        self.used.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a request; returns an error if the request exceeds a limit.
    pub(crate) fn admit(
        self: &Arc<Self>,
        limits: &PrincipalLimits,
        principal: Option<&str>,
        now: Instant,
    ) -> Result<Admission, PeerError> {
        let principal = principal.map(str::to_owned);
        let mut all = self.lock();
        if all.len() >= CLEANUP_THRESHOLD {
            all.retain(|_, used| {
                used.refill(limits, now);
                used.running > 0 || used.tokens < burst(limits)
            });
        }
        let used = all.entry(principal.clone()).or_insert(Bucket {
            tokens: burst(limits),
            since: now,
            running: 0,
        });
        used.refill(limits, now);
        if let Some(most) = limits.concurrent
            && used.running >= most
        {
            let words = format!(
                "this principal has {most} requests in progress, as many as it may have; repeat the request when one has ended"
            );
            return Err(PeerError::new(LIMIT_EXCEEDED, words));
        }
        if let Some(rate) = limits.per_second {
            if used.tokens < 1.0 {
                let wait = Duration::try_from_secs_f64((1.0 - used.tokens) / rate);
                let wait = wait.unwrap_or(Duration::MAX);
                let wait = u64::try_from(wait.as_micros().div_ceil(1000)).unwrap_or(u64::MAX);
                let words = format!(
                    "this principal may send {rate} requests per second; repeat the request after {wait} milliseconds"
                );
                let data = JsonObject::from_iter([("retryAfterMs", wait)]);
                return Err(PeerError::new(LIMIT_EXCEEDED, words).with_data(data));
            }
            used.tokens -= 1.0;
        }
        used.running += 1;
        Ok(Admission {
            principals: Arc::clone(self),
            principal,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
        let admit = |who, at| principals.admit(&limits, who, begin + Duration::from_millis(at));
        for _ in 0..3 {
            assert!(admit(Some("red"), 0).is_ok());
        }
        let refused = admit(Some("red"), 0).expect_err("a fourth one at once");
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
        let admit = || principals.admit(&limits, Some("red"), now);
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
        let held = principals.admit(&limits, Some("held"), begin);
        for number in 0..CLEANUP_THRESHOLD {
            let _ = principals.admit(&limits, Some(&number.to_string()), begin);
        }
        let _ = principals.admit(&limits, Some("next"), later);
        assert_eq!(principals.lock().len(), 2);
        drop(held);
    }
}
