//! Session store on Redis: one string per session, `<version> <lineage> <length of the principal> <principal><snapshot>`,
//! or `ended`.
//!
//! Each operation of the store is one script and one round trip.

use std::sync::{Arc, LazyLock};
use std::time::Duration;

use mcp_exact_transport::event_log::StoreFuture;
use mcp_exact_transport::store::{SessionRecord, SessionStore, SessionStoreError};
use redis::Script;

use crate::connection::{CommandError, SharedConnection};
use crate::keys::Keys;

/// Saves a record if none is stored, or if the stored record has a lower version and the lineage number that the new
/// record replaces. Returns 1 if the record was saved, otherwise 0.
static SAVE: LazyLock<Script> = LazyLock::new(|| {
    Script::new(
        r"
        local known = redis.call('GETRANGE', KEYS[1], 0, 31)
        if known ~= '' then
            local version, number = string.match(known, '^(%d+) (%x%x%x%x%x%x%x%x)')
            if not version or tonumber(version) >= tonumber(ARGV[1]) or number ~= ARGV[4] then return 0 end
        end
        redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3])
        return 1
        ",
    )
});

/// Ends a session: prevents all processes from saving it again for the given time, or for the remaining lifetime of the
/// record. Returns 1, or 0 if there was no record.
pub(crate) static REMOVE: LazyLock<Script> = LazyLock::new(|| {
    Script::new(
        r"
        local known = redis.call('GETRANGE', KEYS[1], 0, 4)
        if ARGV[1] == '' then
            if known == '' or known == 'ended' then return 0 end
            redis.call('SET', KEYS[1], 'ended', 'KEEPTTL')
            return 1
        end
        redis.call('SET', KEYS[1], 'ended', 'PX', ARGV[1])
        if known == '' or known == 'ended' then return 0 end
        return 1
        ",
    )
});

/// Session store on Redis.
pub struct RedisSessionStore {
    pub(crate) connection: Arc<SharedConnection>,
    pub(crate) keys: Keys,
}

impl std::fmt::Debug for RedisSessionStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RedisSessionStore").finish_non_exhaustive()
    }
}

/// Returns the error for a failed command.
fn store_error(failure: CommandError) -> SessionStoreError {
    match failure {
        CommandError::Full => SessionStoreError::Full,
        CommandError::Unavailable(_) => SessionStoreError::Unavailable(failure.into()),
    }
}

/// Returns the stored value of a record.
pub(crate) fn encode(record: &SessionRecord) -> String {
    let (version, lineage, snapshot) = (record.version, record.lineage, &record.snapshot);
    match &record.principal {
        Some(principal) => {
            let length = principal.len();
            format!("{version} {lineage} {length} {principal}{snapshot}")
        }
        None => format!("{version} {lineage} - {snapshot}"),
    }
}

/// Parses a stored value as a record; `None` if the session has ended or the value is invalid.
pub(crate) fn decode(value: &str) -> Option<SessionRecord> {
    let mut parts = value.splitn(4, ' ');
    let version = parts.next()?.parse().ok()?;
    let lineage = parts.next()?.parse().ok()?;
    let (length, rest) = (parts.next()?, parts.next()?);
    let (principal, snapshot) = match length {
        "-" => (None, rest),
        length => {
            let (principal, snapshot) = rest.split_at_checked(length.parse().ok()?)?;
            (Some(principal.to_owned()), snapshot)
        }
    };
    Some(SessionRecord {
        snapshot: snapshot.to_owned(),
        principal,
        version,
        lineage,
    })
}

/// Returns a lifetime in milliseconds, at most a century, so that Redis can add it to the current time without an
/// overflow.
fn milliseconds(lifetime: Duration) -> u64 {
    let milliseconds = u64::try_from(lifetime.as_millis()).unwrap_or(u64::MAX);
    milliseconds.clamp(1, 3_155_760_000_000)
}

impl SessionStore for RedisSessionStore {
    fn save<'a>(
        &'a self,
        id: &'a str,
        record: SessionRecord,
        lifetime: Duration,
    ) -> StoreFuture<'a, (), SessionStoreError> {
        Box::pin(async move {
            let mut save = SAVE.key(self.keys.session(id));
            save.arg(record.version)
                .arg(encode(&record))
                .arg(milliseconds(lifetime))
                .arg(format!("{:08x}", record.lineage.replaced()));
            let saved = self.connection.script(&save).await;
            let is_saved: bool = saved.map_err(store_error)?;
            is_saved.then_some(()).ok_or(SessionStoreError::Superseded)
        })
    }

    fn load<'a>(
        &'a self,
        id: &'a str,
    ) -> StoreFuture<'a, Option<SessionRecord>, SessionStoreError> {
        Box::pin(async move {
            let mut command = redis::cmd("GET");
            command.arg(self.keys.session(id));
            let run = self.connection.command(&command);
            let value: Option<String> = run.await.map_err(store_error)?;
            Ok(value.as_deref().and_then(decode))
        })
    }

    fn remove<'a>(
        &'a self,
        id: &'a str,
        lifetime: Duration,
    ) -> StoreFuture<'a, bool, SessionStoreError> {
        Box::pin(async move {
            let mut remove = REMOVE.key(self.keys.session(id));
            remove.arg(milliseconds(lifetime));
            let run = self.connection.script(&remove);
            run.await.map_err(store_error)
        })
    }
}
