//! Visits of the page that asks for consent: who was asked, for which server and program, and until when.

use std::time::Duration;

use mcp_exact_auth::Secret;
use mcp_exact_auth::client::{StoreLock, TokenStore as _};
use mcp_exact_auth::server::User;
use mcp_exact_session::Principal;
use serde::{Deserialize, Serialize};

use super::gateway::Gateway;
use super::revocations::{Consent, Seen};
use super::values::{random_text, unix_time};

/// Time within which a page has to be used, in seconds.
pub(super) const VISIT_SECONDS: u64 = 600;
/// Time that a visit must have left to be offered as it is, in seconds; with less it lasts as long as a new one.
const REUSE_SECONDS: u64 = 120;

/// Visit that a user was asked for.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct Visit {
    /// Principal that was asked.
    pub(super) principal: String,
    /// Issuer of the user.
    pub(super) issuer: String,
    /// Subject of the user.
    pub(super) subject: String,
    /// Name of the server.
    pub(super) server: String,
    /// Name that the client gives itself.
    pub(super) program: String,
    /// Id of the client at the issuer.
    pub(super) client_id: String,
    /// Unix time in seconds after which the visit is refused.
    expires: u64,
    /// True once the redirect of the authorization server was received.
    is_used: bool,
    /// What was known of revocations when the user was asked: the consent ends with a later one of the principal. `None` if an earlier
    /// version has asked.
    ///
    /// Processes of that version refuse `null`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    seen: Option<Seen>,
}

/// User who is asked, and the program for which.
pub(super) struct Asked<'a> {
    pub(super) principal: &'a Principal,
    pub(super) user: &'a User,
    pub(super) server: &'a str,
    pub(super) program: String,
    pub(super) client_id: String,
}

impl Visit {
    /// Returns true if the visitor is the user who was asked.
    pub(super) fn is_of(&self, visitor: &User) -> bool {
        self.issuer == visitor.issuer && self.subject == visitor.subject
    }

    /// Returns the time until the visit is over.
    fn lifetime(&self) -> Duration {
        Duration::from_secs(self.expires.saturating_sub(unix_time()))
    }
}

/// Returns the key of a visit.
fn record_of(id: &str) -> String {
    format!("visit {id}")
}

/// Returns true if a key is that of a visit, or of the id of the latest one.
pub(super) fn is_record(key: &str) -> bool {
    key.starts_with("visit ") || key.starts_with("visit-of ")
}

/// Returns the key of the id of the latest visit of a principal for a server.
fn latest_of(principal: &str, server: &str) -> String {
    // The name of a server has no line break.
    format!("visit-of {server}\n{principal}")
}

impl Gateway {
    /// Returns the id of a visit of a user, the earlier one if it is neither used nor over: a principal has at most one visit for
    /// each server. Visits that are over remain in no store.
    pub(super) async fn ask(&self, asked: Asked<'_>) -> Result<String, String> {
        let Principal(principal) = asked.principal;
        let latest = latest_of(principal, asked.server);
        let _lock = self.store.lock(&latest).await?;
        // What this process knows may be a second old: a user who was revoked in it would be asked in vain.
        let revoked = self.revocations.in_store().await?;
        if let Some(id) = self.store.read_opened(&latest).await? {
            let id = id.expose();
            let visit = self.visit(id).await?;
            let is_valid = |visit: &Visit| {
                revoked.consent_of(principal, visit.seen.as_ref()) == Consent::Valid
            };
            if let Some(visit) = visit.filter(is_valid) {
                if visit.expires <= unix_time() + REUSE_SECONDS {
                    let expires = unix_time() + VISIT_SECONDS;
                    self.write_latest(id, &Visit { expires, ..visit }).await?;
                }
                return Ok(id.to_owned());
            }
            self.store.remove(&record_of(id)).await?;
        }
        let id = random_text().ok_or("the system has no random numbers")?;
        let visit = Visit {
            principal: principal.clone(),
            issuer: asked.user.issuer.clone(),
            subject: asked.user.subject.clone(),
            server: asked.server.to_owned(),
            program: asked.program,
            client_id: asked.client_id,
            expires: unix_time() + VISIT_SECONDS,
            is_used: false,
            seen: Some(revoked.seen()),
        };
        self.write_latest(&id, &visit).await?;
        Ok(id)
    }

    /// Returns whether the consent to a visit holds, as the store knows of revocations.
    pub(super) async fn consent_to(&self, visit: &Visit) -> Result<Consent, String> {
        let revoked = self.revocations.in_store().await?;
        Ok(revoked.consent_of(&visit.principal, visit.seen.as_ref()))
    }

    /// Returns true if a principal has a visit for a server that is not over.
    pub(super) async fn is_asked(&self, principal: &str, server: &str) -> Result<bool, String> {
        let id = self
            .store
            .read_opened(&latest_of(principal, server))
            .await?;
        match id {
            Some(id) => Ok(self.read_visit(id.expose()).await?.is_some()),
            None => Ok(false),
        }
    }

    /// Returns a visit that is neither used nor over.
    pub(super) async fn visit(&self, id: &str) -> Result<Option<Visit>, String> {
        let visit = self.read_visit(id).await?;
        Ok(visit.filter(|visit| !visit.is_used))
    }

    /// Marks a visit as used; `None` if it was used before, or is over.
    pub(super) async fn use_visit(&self, id: &str) -> Result<Option<Visit>, String> {
        let Some(visit) = self.visit(id).await? else {
            return Ok(None);
        };
        let _lock = self.lock_visit(&visit).await?;
        let Some(visit) = self.visit(id).await? else {
            return Ok(None);
        };
        let used = Visit {
            is_used: true,
            ..visit.clone()
        };
        self.write_visit(id, &used).await?;
        Ok(Some(visit))
    }

    /// Removes a visit, and tells those who wait for it.
    pub(super) async fn end_visit(&self, id: &str, visit: &Visit) -> Result<(), String> {
        let lock = self.lock_visit(visit).await?;
        self.store.remove(&record_of(id)).await?;
        let latest = latest_of(&visit.principal, &visit.server);
        let known = self.store.read_opened(&latest).await?;
        if known.is_some_and(|known| known.expose() == id) {
            self.store.remove(&latest).await?;
        }
        drop(lock);
        self.decided.send_replace(());
        Ok(())
    }

    /// Locks the visits of a principal for a server.
    async fn lock_visit(&self, visit: &Visit) -> Result<StoreLock, String> {
        let latest = latest_of(&visit.principal, &visit.server);
        self.store.lock(&latest).await
    }

    async fn read_visit(&self, id: &str) -> Result<Option<Visit>, String> {
        let text = self.store.read_opened(&record_of(id)).await?;
        let visit = text.and_then(|text| serde_json::from_str::<Visit>(text.expose()).ok());
        Ok(visit.filter(|visit| visit.expires > unix_time()))
    }

    async fn write_visit(&self, id: &str, visit: &Visit) -> Result<(), String> {
        let text = serde_json::to_string(visit).map_err(|error| error.to_string())?;
        let (record, text) = (record_of(id), Secret::new(text));
        self.store.write_for(&record, &text, visit.lifetime()).await
    }

    /// Writes a visit as the latest one of its principal for its server.
    async fn write_latest(&self, id: &str, visit: &Visit) -> Result<(), String> {
        self.write_visit(id, visit).await?;
        let (latest, id) = (latest_of(&visit.principal, &visit.server), Secret::new(id));
        self.store.write_for(&latest, &id, visit.lifetime()).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A visit of an earlier version stays readable by it, whose `seen` is missing or an object.
    #[test]
    fn visits_of_earlier_versions_stay_so() {
        let text = r#"{"principal":"p","issuer":"i","subject":"s","server":"m","program":"g","client_id":"c","expires":1,"is_used":false}"#;
        let visit: Visit = serde_json::from_str(text).expect("a visit");
        assert_eq!(serde_json::to_string(&visit).expect("JSON"), text);
    }
}
