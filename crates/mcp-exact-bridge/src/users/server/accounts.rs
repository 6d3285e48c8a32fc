//! Tokens of accounts that users have connected at a server: they are refreshed by one process at a time.

use mcp_exact_auth::Secret;
use mcp_exact_auth::client::{CodeGrant, GrantedTokens, TokenStore as _};

use super::{NoToken, RENEWAL_MARGIN, UserServer};
use crate::users::tokens::UserToken;
use crate::users::values::unix_time;

impl UserServer {
    /// Returns the token of a user who has agreed, after a refresh if it expires soon or was refused.
    pub(super) async fn granted_token(
        &self,
        grant: CodeGrant,
        principal: &str,
        rejected: Option<&Secret>,
    ) -> Result<Secret, NoToken> {
        let known = self.known_token(&grant, principal).await?;
        if is_good(&known, rejected) {
            return Ok(known.access_token);
        }
        let Some(server) = self.this.upgrade() else {
            return Err(NoToken::Failed(
                "the server was taken out of the configuration".to_owned(),
            ));
        };
        let (owned, rejected) = (principal.to_owned(), rejected.cloned());
        let refreshing = async {
            // The new tokens are stored even if the call is cancelled: the old ones are used up.
            let refresh = async move { server.refresh(&grant, &owned, rejected.as_ref()).await };
            let ended = tokio::spawn(refresh).await;
            ended.unwrap_or_else(|error| {
                Err(NoToken::Failed(format!("a task ended early: {error}")))
            })
        };
        self.in_flight(principal, refreshing).await
    }

    /// Returns the stored token of a principal, if the issuer and the URL of the server are still those that it is for.
    async fn known_token(&self, grant: &CodeGrant, principal: &str) -> Result<UserToken, NoToken> {
        let known = self.gateway.tokens.of(principal, &self.name).await?;
        let is_right = |known: &UserToken| known.issuer == grant.issuer() && known.url == self.url;
        known.filter(is_right).ok_or(NoToken::NotAgreed)
    }

    /// Refreshes the token of a principal, unless another task or process has done so.
    async fn refresh(
        &self,
        grant: &CodeGrant,
        principal: &str,
        rejected: Option<&Secret>,
    ) -> Result<Secret, NoToken> {
        let tokens = &self.gateway.tokens;
        let record = format!("refresh {}\n{principal}", self.name);
        let _lock = self.gateway.store.lock(&record).await?;
        let known = self.known_token(grant, principal).await?;
        if is_good(&known, rejected) {
            return Ok(known.access_token);
        }
        // Another client cannot use the refresh token.
        let is_own = known.client_id == grant.client_id();
        let refresh_token = known.refresh_token.clone().filter(|_| is_own);
        let is_rejected = rejected == Some(&known.access_token);
        let is_over = is_rejected || known.expires_within(0);
        let Some(refresh_token) = refresh_token else {
            if !is_over {
                return Ok(known.access_token);
            }
            return self.give_account_up(grant, principal, &known).await;
        };
        // From here on, no other process uses the refresh token, unless this one stalls before the request has arrived.
        let claimed = tokens.claim(principal, &self.name, &known).await?;
        let Some(claimed) = claimed else {
            return self.renewed_token(grant, principal).await;
        };
        let refresh_token = claimed.refresh_token.as_ref().unwrap_or(&refresh_token);
        match grant.refresh(refresh_token).await {
            Ok(granted) => {
                let token = UserToken {
                    claims: claimed.claims,
                    visit: claimed.visit.clone(),
                    ..self.user_token(grant, granted)
                };
                let (name, kept) = (&self.name, token.clone());
                // Tokens that were revoked meanwhile stay so.
                if tokens.keep(principal, name, claimed, kept).await {
                    Ok(token.access_token)
                } else {
                    self.end_revoked(principal, &token).await;
                    self.renewed_token(grant, principal).await
                }
            }
            Err(error) if error.is_grant_ended() => {
                let server = self.name.as_str();
                tracing::info!(server, %error, "a user has to connect the account again");
                self.give_account_up(grant, principal, &claimed).await
            }
            Err(error) => {
                // Whatever else is wrong may be repaired, and takes no consent of a user away.
                tracing::warn!(server = self.name, %error, "a token was not refreshed");
                if !error.is_transient() {
                    // The authorization server may have changed, or have forgotten the client.
                    self.forget_metadata();
                }
                if is_over {
                    Err(self.failed(&error))
                } else {
                    Ok(known.access_token)
                }
            }
        }
    }

    /// Has the authorization server revoke the tokens of a refresh if the account was revoked meanwhile: whoever has revoked it knew
    /// the earlier tokens alone.
    async fn end_revoked(&self, principal: &str, token: &UserToken) {
        // Tokens that another process has stored instead may be of the same grant.
        if !matches!(
            self.gateway.tokens.of(principal, &self.name).await,
            Ok(None)
        ) {
            return;
        }
        let outcome = self.tell_revocation(token).await;
        tracing::info!(
            server = self.name,
            ?outcome,
            "an account was revoked while it was refreshed"
        );
    }

    /// Forgets the tokens of a principal, who has to connect the account again, unless another process has stored newer ones.
    async fn give_account_up(
        &self,
        grant: &CodeGrant,
        principal: &str,
        known: &UserToken,
    ) -> Result<Secret, NoToken> {
        let tokens = &self.gateway.tokens;
        if tokens.give_up(principal, &self.name, known).await? {
            return Err(NoToken::NotAgreed);
        }
        self.renewed_token(grant, principal).await
    }

    /// Returns the token that another process has stored while this one was about to.
    async fn renewed_token(&self, grant: &CodeGrant, principal: &str) -> Result<Secret, NoToken> {
        let known = self.known_token(grant, principal).await?;
        if known.expires_within(0) {
            let words = "another process renews the token of the user; call again";
            return Err(NoToken::Failed(words.to_owned()));
        }
        Ok(known.access_token)
    }

    /// Returns the record of tokens that were granted.
    pub(in crate::users) fn user_token(
        &self,
        grant: &CodeGrant,
        granted: GrantedTokens,
    ) -> UserToken {
        let lifetime = granted.expires_in.map(|lifetime| lifetime.as_secs());
        UserToken {
            access_token: granted.access_token,
            refresh_token: granted.refresh_token,
            expires: lifetime.map(|lifetime| unix_time().saturating_add(lifetime)),
            issuer: grant.issuer().to_owned(),
            client_id: grant.client_id().to_owned(),
            url: self.url.clone(),
            claims: 0,
            visit: None,
        }
    }
}

/// Returns true if a token can be sent.
fn is_good(known: &UserToken, rejected: Option<&Secret>) -> bool {
    rejected != Some(&known.access_token) && !known.expires_within(RENEWAL_MARGIN)
}
