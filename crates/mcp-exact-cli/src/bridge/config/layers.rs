//! Layers around the calls of a server: circuit breaker, repetition of reads, and cache.

use anyhow::bail;
use mcp_exact_bridge::{CircuitBreaker, RetryPolicy};
use serde::Deserialize;

use crate::time_limit;

/// Circuit breaker of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Breaker {
    /// Number of failures in a row after which calls are refused; 0 for never.
    failures: u32,
    /// Number of seconds for which calls are refused.
    pause: u64,
}

impl Default for Breaker {
    fn default() -> Self {
        let own = CircuitBreaker::default();
        Self {
            failures: own.failures,
            pause: own.pause.as_secs(),
        }
    }
}

impl Breaker {
    /// Returns the settings in the type of the bridge library.
    pub fn settings(self) -> CircuitBreaker {
        CircuitBreaker::new(self.failures, time_limit::from_seconds(self.pause))
    }
}

/// Repetition of reads that a server did not answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Retry {
    /// Maximum number of repetitions of a request; 0 for none.
    times: u32,
    /// True if tools that the server marks as read-only or idempotent are called again, too.
    tools: bool,
}

impl Default for Retry {
    fn default() -> Self {
        let own = RetryPolicy::default();
        Self {
            times: own.times,
            tools: own.tools,
        }
    }
}

impl Retry {
    /// Returns the settings in the type of the bridge library.
    pub fn settings(self) -> RetryPolicy {
        let mut policy = RetryPolicy::new(self.times);
        policy.tools = self.tools;
        policy
    }
}

/// Limits of the cache of answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Cache {
    /// Maximum size of all answers that are kept, in bytes.
    bytes: usize,
    /// Number of seconds after which an answer is requested again.
    max_age: u64,
}

impl Default for Cache {
    fn default() -> Self {
        let own = mcp_exact_bridge::Cache::default();
        Self {
            bytes: own.bytes,
            max_age: own.max_age.as_secs(),
        }
    }
}

impl Cache {
    /// Returns the settings in the type of the bridge library.
    pub fn settings(self) -> mcp_exact_bridge::Cache {
        mcp_exact_bridge::Cache::new(self.bytes, time_limit::from_seconds(self.max_age))
    }
}

/// Checks the layers of a server or of the whole file; the error names the invalid key.
pub fn check(breaker: Option<Breaker>, retry: Option<Retry>) -> anyhow::Result<()> {
    /// Largest number of repetitions.
    const MAX_TIMES: u32 = 10;
    if breaker.is_some_and(|breaker| breaker.pause == 0) {
        bail!("breaker: write a number of seconds above 0, such as `breaker = {{ pause = 30 }}`");
    }
    if retry.is_some_and(|retry| retry.times > MAX_TIMES) {
        bail!(
            "retry: a request is repeated at most {MAX_TIMES} times; write `retry = {{ times = 2 }}`"
        );
    }
    Ok(())
}
