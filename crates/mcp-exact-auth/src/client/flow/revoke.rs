//! Revocation of the tokens of a code grant at its authorization server (RFC 7009).

use super::code_grant::CodeGrant;
use super::unix_time;
use crate::client::error::OAuthError;
use crate::client::token::{TokenRequest, parse_token_response};
use crate::metadata::ServerMetadata;
use crate::secret::Secret;

impl CodeGrant {
    /// Revokes the tokens of a user: the refresh token first, which ends the grant, and then the access token. Returns false, and
    /// sends nothing, if the metadata of the authorization server names no revocation endpoint. Tokens that the server does not know
    /// any more are revoked (RFC 7009, section 2.2).
    ///
    /// # Errors
    /// Returns an error if the server cannot be reached or refuses. A server that revokes refresh tokens alone
    /// (`unsupported_token_type` for the access token) does not refuse.
    pub async fn revoke(
        &self,
        access_token: &Secret,
        refresh_token: Option<&Secret>,
    ) -> Result<bool, OAuthError> {
        let Some(url) = &self.server.revocation_endpoint else {
            return Ok(false);
        };
        if let Some(refresh_token) = refresh_token {
            let revoking = self.revoke_token(url, refresh_token, "refresh_token");
            revoking.await?;
        }
        match self.revoke_token(url, access_token, "access_token").await {
            Err(OAuthError::Token { error, .. })
                if refresh_token.is_some() && error == "unsupported_token_type" => {}
            revoked => revoked?,
        }
        Ok(true)
    }

    /// Revokes one token.
    async fn revoke_token(&self, url: &str, token: &Secret, kind: &str) -> Result<(), OAuthError> {
        // Without a list, the methods are the default (RFC 8414, section 2).
        let listed = &self.server.revocation_endpoint_auth_methods_supported;
        let server = ServerMetadata {
            token_endpoint_auth_methods_supported: listed.clone(),
            ..self.server.clone()
        };
        let (id, credential) = (&self.client.id, &self.client.credential);
        let request = TokenRequest::empty()
            .set_param("token", token.expose())
            .set_param("token_type_hint", kind)
            .authenticate(id, credential, &server, unix_time())?;
        let (headers, body) = request.into_parts();
        let (what, form) = (
            "the revocation endpoint",
            "application/x-www-form-urlencoded",
        );
        let posted = self
            .flow
            .metadata_client
            .post(what, url, form, headers, body);
        let response = posted.await?;
        let status = response.status.as_u16();
        match status {
            200..=299 => Ok(()),
            408 | 429 | 500.. => Err(OAuthError::Unavailable {
                what,
                url: url.to_owned(),
                reason: format!("it answered with status {status}"),
            }),
            // Errors are those of the token endpoint (RFC 7009, section 2.2.1).
            _ => parse_token_response(url, status, &response.body).map(drop),
        }
    }
}
