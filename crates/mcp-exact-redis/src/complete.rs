//! Complete streams: streams that begin with their last event, such as the streams of most calls.
//!
//! No events are appended to a complete stream, so the stream needs no owner and no last will. Redis stores a complete
//! stream as a field of a hash, which takes a fifth of the time and a third of the memory of a Redis Stream. A field
//! starts with the number of the latest trimmed event, the number of the last event and a line feed; the events follow,
//! as in an entry of a Redis Stream.

use std::time::{Duration, SystemTime};

use mcp_exact_transport::event_log::LogStream;
use redis::Pipeline;

use crate::entry::Entry;
use crate::keys::{COMPLETE_HASHES, Keys};

/// Returns the commands that store a complete stream. The hash expires one to two lifetimes later.
pub(crate) fn store_commands(
    keys: &Keys,
    stream: &LogStream,
    entry: &Entry,
    lifetime: Duration,
) -> Pipeline {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let (index, expiry) = current_hash(now.unwrap_or_default(), lifetime);
    let key = keys.complete_hash(&stream.session, index);
    let mut field = format!("{} {}\n", entry.after, entry.latest).into_bytes();
    field.extend_from_slice(&entry.events);
    let mut commands = Pipeline::with_capacity(2);
    commands.atomic();
    commands
        .cmd("HSET")
        .arg(&key)
        .arg(stream.stream)
        .arg(&field[..])
        .ignore();
    commands.cmd("PEXPIRE").arg(&key).arg(expiry).ignore();
    commands
}

/// Returns the index of the hash for streams that are stored at the time `now` since the Unix epoch, and the time to
/// live of the hash in milliseconds.
fn current_hash(now: Duration, lifetime: Duration) -> (usize, u64) {
    let lifetime = lifetime.as_millis().max(1);
    let period = now.as_millis() / lifetime;
    let expiry = (period + 2) * lifetime - now.as_millis();
    let index = (period % COMPLETE_HASHES as u128) as usize;
    (index, u64::try_from(expiry).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A hash is stored for at least one lifetime after its last write, and has expired before streams are stored in it
    /// again.
    #[test]
    fn hashes_expire_before_reuse() {
        let lifetime = Duration::from_secs(60);
        let mut expiries = [0; COMPLETE_HASHES];
        let mut latest = None;
        for now in (1_000_000..2_000_000).step_by(7) {
            let (index, expiry) = current_hash(Duration::from_millis(now), lifetime);
            assert!((60_001..=120_000).contains(&expiry), "{expiry}");
            if latest.replace(index) != Some(index) {
                assert!(expiries[index] <= now, "{now}: {expiries:?}");
            }
            expiries[index] = now + expiry;
        }
    }
}
