//! Tokens of users who have authorized the gateway: one record for each principal, with the tokens of its servers.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use mcp_exact_auth::Secret;
use mcp_exact_auth::client::{NotTaken, Resealed, SealedStore, Taken, TokenStore};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize, Serializer};
use tokio::time::sleep;

use super::values::unix_time;

/// Tokens of one principal at one server.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct UserToken {
    #[serde(serialize_with = "serialize_secret")]
    pub(super) access_token: Secret,
    #[serde(default, serialize_with = "serialize_optional_secret")]
    pub(super) refresh_token: Option<Secret>,
    /// Expiry in Unix time in seconds; `None` if the issuer has not stated it.
    #[serde(default)]
    pub(super) expires: Option<u64>,
    /// Issuer of the tokens.
    pub(super) issuer: String,
    /// Id of the client that the tokens were issued to.
    pub(super) client_id: String,
    /// URL of the server that the tokens are for.
    pub(super) url: String,
    /// Number of claims of processes that were about to use the refresh token.
    #[serde(default)]
    pub(super) claims: u64,
    /// Id of the visit on which the user has agreed; `None` if an earlier version has stored the tokens. Refreshed tokens keep it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) visit: Option<String>,
}

impl UserToken {
    /// Returns true if the access token expires within `seconds`.
    pub(super) fn expires_within(&self, seconds: u64) -> bool {
        self.expires.is_some_and(|at| at <= unix_time() + seconds)
    }

    /// Returns true if these are the same tokens; claims do not count.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        self.access_token == other.access_token && self.refresh_token == other.refresh_token
    }

    /// Returns true if these are the tokens of a visit, which has stored `first`, refreshed or not.
    fn is_of_visit(&self, first: &Self) -> bool {
        // A process of an earlier version that writes the record drops the visit.
        self.is_same(first) || (self.visit.is_some() && self.visit == first.visit)
    }
}

fn serialize_secret<S: Serializer>(secret: &Secret, to: S) -> Result<S::Ok, S::Error> {
    secret.expose().serialize(to)
}

fn serialize_optional_secret<S: Serializer>(
    secret: &Option<Secret>,
    to: S,
) -> Result<S::Ok, S::Error> {
    secret.as_ref().map(Secret::expose).serialize(to)
}

/// Tokens of all users in a store. Clones share them.
///
/// # Fencing
///
/// A lock may end before its holder does, if the process stalls. A process therefore claims the tokens right before it uses their refresh
/// token: [`claim`](Self::claim) fails if another process has refreshed them meanwhile. Each record is changed by compare-and-set, and an
/// end of the grant takes tokens away from the latest claim alone, so that a process that was overtaken takes nothing away.
#[derive(Clone)]
pub(super) struct UserTokens(Arc<State>);

struct State {
    store: SealedStore,
    /// Tokens that could not be written after a refresh.
    unsaved: Mutex<HashMap<Account, Unsaved>>,
}

/// Principal and server.
type Account = (String, String);

/// Tokens by server.
pub(super) type OfPrincipal = BTreeMap<String, UserToken>;

/// What [`UserTokens::take`] has removed.
pub(super) struct TakenTokens {
    /// Tokens by server.
    pub(super) tokens: OfPrincipal,
    /// Why some that were removed cannot be read.
    pub(super) problem: Option<String>,
    /// Error of the store, which may still have the tokens.
    pub(super) failure: Option<String>,
}

/// Tokens that could not be written.
#[derive(Clone)]
struct Unsaved {
    /// Tokens in the store, whose refresh token is used up.
    old: UserToken,
    token: UserToken,
}

/// Maximum number of attempts to change a record that others change at the same time.
const MAX_ATTEMPTS: usize = 20;
/// Shortest and longest time between attempts to write tokens.
pub(super) const SAVE_PAUSES: (Duration, Duration) =
    (Duration::from_secs(1), Duration::from_secs(30));

impl UserTokens {
    pub(super) fn new(store: SealedStore) -> Self {
        let unsaved = Mutex::default();
        Self(Arc::new(State { store, unsaved }))
    }

    /// Changes the tokens of a principal, and returns what `change` returns. `change` is repeated if another process has changed them
    /// meanwhile. A record that cannot be read is an error, so that the tokens of other servers in it are not overwritten.
    async fn update<T>(
        &self,
        principal: &str,
        mut change: impl FnMut(&mut OfPrincipal) -> T,
    ) -> Result<T, String> {
        let (store, record) = (&self.0.store, record_of(principal));
        // Spares attempts.
        let _lock = store.lock(&record).await?;
        for _ in 0..MAX_ATTEMPTS {
            let before = store.read(&record).await?;
            let mut all = parse(before.as_ref())?;
            let changed = change(&mut all);
            let after = (!all.is_empty()).then(|| serde_json::to_string(&all));
            let after = after.transpose().map_err(|error| error.to_string())?;
            let after = after.map(Secret::new);
            let is_written = before == after
                || store
                    .replace(&record, before.as_ref(), after.as_ref())
                    .await?;
            if is_written {
                return Ok(changed);
            }
        }
        Err("the tokens of a user are changed again and again".to_owned())
    }

    /// Returns the tokens of a principal at a server: those that could not be written, as long as the store has those before them or
    /// cannot be read.
    pub(super) async fn of(
        &self,
        principal: &str,
        server: &str,
    ) -> Result<Option<UserToken>, String> {
        let account = (principal.to_owned(), server.to_owned());
        let unsaved = self.0.unsaved.lock().get(&account).cloned();
        let text = self.0.store.read(&record_of(principal)).await;
        let Some(unsaved) = unsaved else {
            return Ok(parse(text?.as_ref())?.remove(server));
        };
        let Ok(text) = text else {
            return Ok(Some(unsaved.token));
        };
        let stored = parse(text.as_ref())?.remove(server);
        let is_old = |stored: &UserToken| stored.is_same(&unsaved.old);
        if stored.as_ref().is_some_and(is_old) {
            return Ok(Some(unsaved.token));
        }
        // Written, revoked or replaced.
        self.forget_unsaved(&account, &unsaved);
        Ok(stored)
    }

    /// Adds the tokens of a principal at a server, after the user has agreed.
    pub(super) async fn add(
        &self,
        principal: &str,
        server: &str,
        token: UserToken,
    ) -> Result<(), String> {
        let adding = self.update(principal, |all| {
            all.insert(server.to_owned(), token.clone());
        });
        adding.await
    }

    /// Removes and returns the tokens of a principal, by server. A process that is refreshing them keeps none. If the store fails, it
    /// returns those that it has seen: they may be removed.
    pub(super) async fn take(&self, principal: &str) -> TakenTokens {
        let removed = self.take_record(principal).await;
        let (seen, failure) = match removed {
            Ok(taken) => (taken, None),
            Err(NotTaken { seen, reason }) => (seen, Some(reason)),
        };
        let read = match seen {
            Taken::Absent => Ok(OfPrincipal::new()),
            Taken::Value(text) => decode(&text).map_err(|damage| damage.to_string()),
            Taken::Unreadable(failure) if failure.is_damage() => Err(format!(
                "the stored tokens of the user were damaged: {failure}"
            )),
            Taken::Unreadable(_) => {
                Err("none of the keys opens the stored tokens of the user".to_owned())
            }
            Taken::Malformed => Err(
                "the stored tokens of the user were damaged, or had a form that this version does not know"
                    .to_owned(),
            ),
        };
        let (mut tokens, problem) = match read {
            Ok(tokens) => (tokens, None),
            Err(problem) => (OfPrincipal::new(), Some(problem)),
        };
        let mut all = self.0.unsaved.lock();
        for ((_, server), unsaved) in all.extract_if(|(of, _), _| of == principal) {
            tokens.insert(server, unsaved.token);
        }
        TakenTokens {
            tokens,
            problem,
            failure,
        }
    }

    async fn take_record(&self, principal: &str) -> Result<Taken, NotTaken> {
        let (store, record) = (&self.0.store, record_of(principal));
        let lock = store.lock(&record).await;
        let _lock = lock.map_err(|reason| NotTaken {
            seen: Taken::Absent,
            reason,
        })?;
        store.take(&record).await
    }

    /// Removes the tokens of a principal from a store whose key is not known. Returns whether there were any, and the error of the
    /// store if they may still be there.
    pub(super) async fn remove(
        store: &dyn TokenStore,
        principal: &str,
    ) -> (bool, Result<(), String>) {
        let record = record_of(principal);
        let mut is_known = false;
        let removing = async {
            let _lock = store.lock(&record).await?;
            is_known = match store.read(&record).await {
                Ok(stored) => stored.is_some(),
                // It is removed, too.
                Err(error) if store.is_malformed(&record).await != Ok(true) => return Err(error),
                Err(_) => true,
            };
            store.remove(&record).await
        };
        let removed = removing.await;
        (is_known, removed)
    }

    /// Removes and returns the tokens of a principal at a server if the user has agreed to them on the visit that has stored `first`,
    /// refreshed or not.
    pub(super) async fn take_of_visit(
        &self,
        principal: &str,
        server: &str,
        first: &UserToken,
    ) -> Result<Vec<UserToken>, String> {
        let is_of_visit = |token: &UserToken| token.is_of_visit(first);
        let taking = self.update(principal, |all| {
            if all.get(server).is_some_and(is_of_visit) {
                all.remove(server)
            } else {
                None
            }
        });
        let mut taken: Vec<_> = taking.await?.into_iter().collect();
        let account = (principal.to_owned(), server.to_owned());
        let mut unsaved = self.0.unsaved.lock();
        if unsaved
            .get(&account)
            .is_some_and(|unsaved| is_of_visit(&unsaved.token))
        {
            taken.extend(unsaved.remove(&account).map(|unsaved| unsaved.token));
        }
        Ok(taken)
    }

    /// Claims tokens for a refresh, right before their refresh token is used. Returns them as they are stored then; `None` if `known`
    /// is not the stored token any more, because it was refreshed, revoked or replaced meanwhile.
    pub(super) async fn claim(
        &self,
        principal: &str,
        server: &str,
        known: &UserToken,
    ) -> Result<Option<UserToken>, String> {
        let account = (principal.to_owned(), server.to_owned());
        let unsaved = self.0.unsaved.lock().get(&account).cloned();
        if let Some(unsaved) = unsaved {
            // What is not stored is lost with the process.
            self.save(&account, &unsaved).await?;
        }
        let claiming = self.update(principal, |all| {
            let stored = all.get_mut(server)?;
            if !stored.is_same(known) {
                return None;
            }
            stored.claims += 1;
            Some(stored.clone())
        });
        claiming.await
    }

    /// Stores the tokens of a refresh. Returns false if the claimed tokens are not the stored ones any more, because they were revoked or
    /// replaced meanwhile; nothing is changed then. If the store fails, the tokens are kept in memory, and written as soon as it works
    /// again.
    pub(super) async fn keep(
        &self,
        principal: &str,
        server: &str,
        claimed: UserToken,
        token: UserToken,
    ) -> bool {
        let account = (principal.to_owned(), server.to_owned());
        let unsaved = Unsaved {
            old: claimed,
            token,
        };
        // In memory first: the call may be cancelled while the store works.
        self.0
            .unsaved
            .lock()
            .insert(account.clone(), unsaved.clone());
        match self.save(&account, &unsaved).await {
            Ok(is_kept) => is_kept,
            Err(error) => {
                tracing::error!(
                    server,
                    error,
                    "new tokens of a user are not stored yet; they are lost if the process ends before"
                );
                tokio::spawn(self.clone().save_later(account, unsaved));
                true
            }
        }
    }

    /// Writes tokens that could not be written, until they are, or others have taken their place.
    async fn save_later(self, account: Account, unsaved: Unsaved) {
        let (mut pause, longest) = SAVE_PAUSES;
        loop {
            sleep(pause).await;
            let known = self.0.unsaved.lock().get(&account).cloned();
            let is_unsaved =
                |known: &Unsaved| known.token.access_token == unsaved.token.access_token;
            if !known.as_ref().is_some_and(is_unsaved) {
                return;
            }
            match self.save(&account, &unsaved).await {
                Ok(_) => return,
                Err(error) => tracing::warn!(error, "new tokens of a user are not stored yet"),
            }
            pause = longest.min(pause * 2);
        }
    }

    /// Returns true if the store works, and what it has of a principal cannot be read by this process, however often it tries.
    pub(super) async fn is_unreadable(&self, principal: &str) -> bool {
        let (store, record) = (&self.0.store, record_of(principal));
        match store.read_opened(&record).await {
            Ok(Some(text)) => decode(&text).is_err(),
            // No key opens it, or it is absent.
            Ok(None) => matches!(store.reseal(&record).await, Ok(Resealed::Unreadable(_))),
            Err(_) => store.is_malformed(&record).await == Ok(true),
        }
    }

    /// Writes tokens that are in memory, and removes them there. Returns false if the old ones are not the stored ones any more.
    async fn save(&self, account: &Account, unsaved: &Unsaved) -> Result<bool, String> {
        let (principal, server) = account;
        let saving = self.update(principal, |all| {
            let stored = all.get_mut(server);
            // Whoever has claimed them after this process has used a refresh token that is used up.
            let is_old = |stored: &&mut UserToken| stored.is_same(&unsaved.old);
            match stored.filter(is_old) {
                Some(stored) => {
                    *stored = unsaved.token.clone();
                    true
                }
                None => false,
            }
        });
        let is_saved = saving.await?;
        self.forget_unsaved(account, unsaved);
        Ok(is_saved)
    }

    /// Removes tokens from memory, unless newer ones are there.
    fn forget_unsaved(&self, account: &Account, unsaved: &Unsaved) {
        let mut all = self.0.unsaved.lock();
        let known = all.get(account);
        if known.is_some_and(|known| known.token.access_token == unsaved.token.access_token) {
            all.remove(account);
        }
    }

    /// Removes the tokens of a principal at a server. Returns false if `claimed` are not the stored tokens any more, because they were
    /// refreshed, claimed by another process, revoked or replaced meanwhile; nothing is changed then.
    pub(super) async fn give_up(
        &self,
        principal: &str,
        server: &str,
        claimed: &UserToken,
    ) -> Result<bool, String> {
        let giving_up = self.update(principal, |all| {
            let is_claimed =
                |stored: &UserToken| stored.is_same(claimed) && stored.claims == claimed.claims;
            let is_claimed = all.get(server).is_some_and(is_claimed);
            if is_claimed {
                all.remove(server);
            }
            is_claimed
        });
        giving_up.await
    }
}

/// What is wrong with a record that a key opens. The error of the parser is not shown: it may quote a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
enum RecordDamage {
    #[error("the stored tokens of the user were damaged: they are not JSON")]
    NotJson,
    #[error("the stored tokens of the user have a format that this version does not know")]
    UnknownFormat,
}

/// Returns the tokens in a record; none if there is no record.
fn parse(text: Option<&Secret>) -> Result<OfPrincipal, String> {
    let read = text.map_or_else(|| Ok(OfPrincipal::new()), decode);
    read.map_err(|damage| match damage {
        RecordDamage::NotJson => format!("{damage}; revoke the user"),
        RecordDamage::UnknownFormat => {
            format!("{damage}; run the version that has written them, or revoke the user")
        }
    })
}

/// Returns the tokens in the text of a record.
fn decode(text: &Secret) -> Result<OfPrincipal, RecordDamage> {
    serde_json::from_str(text.expose()).map_err(|error| {
        if error.is_data() {
            RecordDamage::UnknownFormat
        } else {
            RecordDamage::NotJson
        }
    })
}

/// Returns the key of the record of a principal.
fn record_of(principal: &str) -> String {
    format!("user-tokens {principal}")
}

#[cfg(test)]
mod tests {
    use mcp_exact::KeyRing;
    use mcp_exact_auth::client::MemoryStore;

    use super::super::revoke;
    use super::*;

    fn token(text: &str) -> UserToken {
        UserToken {
            access_token: Secret::new(text),
            refresh_token: None,
            expires: None,
            issuer: String::new(),
            client_id: String::new(),
            url: String::new(),
            claims: 0,
            visit: None,
        }
    }

    /// Two processes with one store.
    fn processes() -> (Arc<MemoryStore>, [UserTokens; 2]) {
        let store = Arc::new(MemoryStore::default());
        let keys = Arc::new(KeyRing::new([1; 32], []));
        let process = || {
            let store = Arc::clone(&store) as Arc<dyn TokenStore>;
            UserTokens::new(SealedStore::new(store, keys.clone()))
        };
        let processes = [process(), process()];
        (store, processes)
    }

    async fn stored(tokens: &UserTokens, server: &str) -> Option<String> {
        let known = tokens.of("ann", server).await.expect("the store")?;
        Some(known.access_token.expose().to_owned())
    }

    /// What is revoked while it is refreshed stays revoked, and the record ends with its last token.
    #[tokio::test]
    async fn revoked_tokens_stay_revoked() {
        let (store, [tokens, _]) = processes();
        for server in ["mail", "web"] {
            let adding = tokens.add("ann", server, token("a"));
            adding.await.expect("the store");
        }
        let claimed = tokens.claim("ann", "mail", &token("a")).await;
        let claimed = claimed.expect("the store").expect("it is stored");
        assert_eq!(revoke(&*store, "ann").await, Ok(true));
        assert!(!tokens.keep("ann", "mail", claimed, token("b")).await);
        for server in ["mail", "web"] {
            assert_eq!(stored(&tokens, server).await, None);
        }
        tokens.add("ann", "mail", token("a")).await.expect("added");
        let given_up = tokens.give_up("ann", "mail", &token("a")).await;
        assert_eq!(given_up, Ok(true));
        assert_eq!(revoke(&*store, "ann").await, Ok(false));
    }

    /// A revocation removes tokens that cannot be read. Its report says what is wrong with the record, and quotes nothing from it.
    #[tokio::test]
    async fn unreadable_tokens_are_described() {
        let (store, [tokens, _]) = processes();
        let stranger = Arc::new(KeyRing::new([2; 32], []));
        let sealed = |keys| SealedStore::new(Arc::clone(&store) as Arc<dyn TokenStore>, keys);
        let own = Arc::new(KeyRing::new([1; 32], []));
        let (record, all) = (record_of("ann"), Secret::new("{\"mail\":{\"version\":2}}"));
        for (keys, text, words) in [
            (&own, &all, "have a format that this version does not know"),
            (
                &own,
                &Secret::new("{\"mail"),
                "were damaged: they are not JSON",
            ),
            (&stranger, &all, "none of the keys opens"),
        ] {
            let store = sealed(keys.clone());
            store.write(&record, text).await.expect("written");
            let known = tokens.of("ann", "mail").await;
            let error = known.err().expect("unreadable");
            assert!(!error.contains("mail"), "{error}");
            assert!(tokens.is_unreadable("ann").await);
            let taken = tokens.take("ann").await;
            assert!(taken.tokens.is_empty() && taken.failure.is_none());
            let problem = taken.problem.expect("a problem");
            assert!(problem.contains(words), "{problem}");
        }
        store
            .write(&record, &Secret::new("cut"))
            .await
            .expect("written");
        let problem = tokens.take("ann").await.problem;
        let problem = problem.expect("a problem");
        assert!(problem.contains("damaged: it is cut off"), "{problem}");
        assert_eq!(tokens.take("ann").await.problem, None);
        assert!(!tokens.is_unreadable("ann").await);
    }

    /// What is taken back of a visit is what it has stored, also if it was refreshed meanwhile, and nothing of another visit.
    #[tokio::test]
    async fn tokens_of_a_visit_are_taken_back() {
        let (_, [tokens, other]) = processes();
        let of_visit = |text, visit: &str| UserToken {
            visit: Some(visit.to_owned()),
            ..token(text)
        };
        let adding = tokens.add("ann", "mail", of_visit("a", "v"));
        adding.await.expect("added");
        let claimed = other.claim("ann", "mail", &token("a")).await;
        let claimed = claimed.expect("the store").expect("it is stored");
        assert!(other.keep("ann", "mail", claimed, of_visit("b", "v")).await);
        let first = of_visit("a", "v");
        let taken = tokens.take_of_visit("ann", "mail", &first).await;
        let taken = taken.expect("the store");
        assert_eq!(taken.len(), 1);
        assert!(taken[0].is_same(&token("b")));
        assert_eq!(stored(&tokens, "mail").await, None);
        let adding = tokens.add("ann", "mail", of_visit("c", "w"));
        adding.await.expect("added");
        let taken = tokens.take_of_visit("ann", "mail", &first).await;
        assert!(taken.expect("the store").is_empty());
        assert_eq!(stored(&tokens, "mail").await.as_deref(), Some("c"));
        // A process of an earlier version writes the record of the user, without the visit.
        tokens.add("ann", "mail", token("c")).await.expect("added");
        let first = of_visit("c", "w");
        let taken = tokens.take_of_visit("ann", "mail", &first);
        assert_eq!(taken.await.expect("the store").len(), 1);
        assert_eq!(stored(&tokens, "mail").await, None);
    }

    /// A process that stalls for longer than its lock lasts uses no refresh token that another one has used, and takes away no tokens
    /// that another one has stored.
    #[tokio::test]
    async fn stalled_processes_are_fenced() {
        let (_, [slow, quick]) = processes();
        slow.add("ann", "mail", token("a")).await.expect("added");
        // It stalls before its claim.
        let claimed = quick.claim("ann", "mail", &token("a")).await;
        let claimed = claimed.expect("the store").expect("it is stored");
        assert!(quick.keep("ann", "mail", claimed, token("b")).await);
        let late = slow.claim("ann", "mail", &token("a")).await;
        assert!(late.expect("the store").is_none());
        // It stalls after its claim: the other one is told that the grant has ended, and takes nothing away once the tokens are there.
        let [first, second] = [&slow, &quick];
        let early = first.claim("ann", "mail", &token("b")).await;
        let early = early.expect("the store").expect("it is stored");
        let late = second.claim("ann", "mail", &token("b")).await;
        let late = late.expect("the store").expect("it is stored");
        assert_eq!(first.give_up("ann", "mail", &early).await, Ok(false));
        assert!(first.keep("ann", "mail", early, token("c")).await);
        assert_eq!(second.give_up("ann", "mail", &late).await, Ok(false));
        assert_eq!(stored(second, "mail").await.as_deref(), Some("c"));
    }
}
