//! Tokens of users who have authorized the gateway: one record for each principal, with the tokens of its servers.

use std::collections::BTreeMap;
use std::sync::Arc;

use mcp_exact_auth::Secret;
use mcp_exact_auth::client::TokenStore;
use serde::{Deserialize, Serialize, Serializer};

use super::unix_time;

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
}

impl UserToken {
    /// Returns true if the access token expires within `seconds`.
    pub(super) fn expires_within(&self, seconds: u64) -> bool {
        self.expires.is_some_and(|at| at <= unix_time() + seconds)
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

/// Tokens of all users in a store.
#[derive(Clone)]
pub(super) struct UserTokens(Arc<dyn TokenStore>);

/// Tokens of a principal by server.
type OfPrincipal = BTreeMap<String, UserToken>;

impl UserTokens {
    pub(super) fn new(store: Arc<dyn TokenStore>) -> Self {
        Self(store)
    }

    /// Reads the tokens of a principal. A record that cannot be read is one without tokens: the user is asked again.
    async fn read(&self, principal: &str) -> Result<OfPrincipal, String> {
        let text = self.0.read(&record_of(principal)).await?;
        let read = text.and_then(|text| serde_json::from_str(text.expose()).ok());
        Ok(read.unwrap_or_default())
    }

    /// Writes the tokens of a principal; removes the record if there are none.
    async fn write(&self, principal: &str, all: &OfPrincipal) -> Result<(), String> {
        let record = record_of(principal);
        if all.is_empty() {
            return self.0.remove(&record).await;
        }
        let text = serde_json::to_string(all).map_err(|error| error.to_string())?;
        self.0.write(&record, &Secret::new(text)).await
    }

    /// Returns the tokens of a principal at a server.
    pub(super) async fn of(
        &self,
        principal: &str,
        server: &str,
    ) -> Result<Option<UserToken>, String> {
        Ok(self.read(principal).await?.remove(server))
    }

    /// Adds the tokens of a principal at a server, after the user has agreed.
    pub(super) async fn add(
        &self,
        principal: &str,
        server: &str,
        token: UserToken,
    ) -> Result<(), String> {
        let _lock = self.0.lock(&record_of(principal)).await?;
        let mut all = self.read(principal).await?;
        all.insert(server.to_owned(), token);
        self.write(principal, &all).await
    }

    /// Removes and returns the tokens of a principal, by server. A process that is refreshing them keeps none.
    pub(super) async fn take(&self, principal: &str) -> Result<OfPrincipal, String> {
        let _lock = self.0.lock(&record_of(principal)).await?;
        let all = self.read(principal).await?;
        self.0.remove(&record_of(principal)).await?;
        Ok(all)
    }

    /// Removes the tokens of a principal from a store whose key is not known. Returns false if there are none.
    pub(super) async fn remove(store: &dyn TokenStore, principal: &str) -> Result<bool, String> {
        let record = record_of(principal);
        let _lock = store.lock(&record).await?;
        let is_known = store.read(&record).await?.is_some();
        store.remove(&record).await?;
        Ok(is_known)
    }

    /// Replaces the tokens of a principal at a server, or removes them if `by` is `None`. Returns false if `old` is not the stored
    /// token any more, because it was revoked or replaced meanwhile; nothing is changed then.
    pub(super) async fn replace(
        &self,
        principal: &str,
        server: &str,
        old: &UserToken,
        by: Option<UserToken>,
    ) -> Result<bool, String> {
        let _lock = self.0.lock(&record_of(principal)).await?;
        let mut all = self.read(principal).await?;
        let is_stored = |known: &UserToken| known.access_token == old.access_token;
        if !all.get(server).is_some_and(is_stored) {
            return Ok(false);
        }
        match by {
            Some(token) => all.insert(server.to_owned(), token),
            None => all.remove(server),
        };
        self.write(principal, &all).await?;
        Ok(true)
    }
}

/// Returns the key of the record of a principal.
fn record_of(principal: &str) -> String {
    format!("user-tokens {principal}")
}

#[cfg(test)]
mod tests {
    use mcp_exact_auth::client::MemoryStore;

    use super::super::revoke;
    use super::*;

    /// What is revoked while it is refreshed stays revoked, and a token that was replaced meanwhile is not replaced by an older one.
    #[tokio::test]
    async fn replaced_tokens_stay_replaced() {
        let store = Arc::new(MemoryStore::default());
        let tokens = UserTokens::new(Arc::clone(&store) as Arc<dyn TokenStore>);
        let token = |text: &str| UserToken {
            access_token: Secret::new(text),
            refresh_token: None,
            expires: None,
            issuer: String::new(),
            client_id: String::new(),
            url: String::new(),
        };
        let (a, b) = (token("a"), token("b"));
        tokens
            .add("ann", "mail", a.clone())
            .await
            .expect("the store");
        tokens
            .add("ann", "web", b.clone())
            .await
            .expect("the store");
        for (old, by, is_replaced) in [(&a, &b, true), (&a, &a, false)] {
            let replaced = tokens.replace("ann", "mail", old, Some(by.clone())).await;
            assert_eq!(replaced, Ok(is_replaced));
        }
        assert_eq!(revoke(&*store, "ann").await, Ok(true));
        let replaced = tokens.replace("ann", "mail", &b, Some(a.clone())).await;
        assert_eq!(replaced, Ok(false));
        for server in ["mail", "web"] {
            assert!(tokens.of("ann", server).await.expect("the store").is_none());
        }
        // The record ends with its last token.
        tokens
            .add("ann", "mail", a.clone())
            .await
            .expect("the store");
        assert_eq!(tokens.replace("ann", "mail", &a, None).await, Ok(true));
        assert_eq!(revoke(&*store, "ann").await, Ok(false));
    }
}
