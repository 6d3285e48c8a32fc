//! Bearer tokens that a server accepts over HTTP.

use std::sync::Arc;

use super::ServerBuilder;
use crate::error::Problem;
use crate::server::tokens::{BearerAuthenticator, BearerToken, CheckToken};

impl ServerBuilder {
    /// Requires one of these bearer tokens in every HTTP request; other transports are not affected. Each token has a
    /// [principal](crate::TokenGrant::new) and [scopes](crate::TokenGrant::scopes).
    ///
    /// ```
    /// # fn example() -> Result<(), mcp_exact::BuildError> {
    /// use mcp_exact::{BearerToken, Server, TokenGrant};
    ///
    /// let server = Server::builder("notes", "1.0.0")
    ///     .bearer_tokens(["c2VjcmV0"])
    ///     .bearer_tokens([BearerToken::new("YWRtaW4", TokenGrant::new("admin").scopes(["write"]))])
    ///     .build()?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// Send tokens over HTTPS only, and generate them from at least 16 random bytes.
    /// [`HttpServerOptions::authenticate`](crate::transport::http::server::HttpServerOptions::authenticate) replaces this
    /// setting.
    pub fn bearer_tokens(
        mut self,
        tokens: impl IntoIterator<Item = impl Into<BearerToken>>,
    ) -> Self {
        let tokens: Vec<BearerToken> = tokens.into_iter().map(Into::into).collect();
        if tokens.iter().any(|token| !token.is_usable) {
            let message =
                "a bearer token is empty or has characters other than A-Z a-z 0-9 - . _ ~ + / =";
            self.problems.push(Problem::Config(message.to_owned()));
        }
        self.bearer_authenticator().tokens.extend(tokens);
        self
    }

    /// Sets the function that checks tokens besides the listed ones.
    pub(super) fn set_token_check(&mut self, check: impl CheckToken) {
        let check = Arc::new(check);
        self.bearer_authenticator().check = Some(Arc::new(move |token| {
            let check = Arc::clone(&check);
            Box::pin(async move { check.check(&token).await })
        }));
    }

    /// Returns the authenticator, which is created by the first call.
    fn bearer_authenticator(&mut self) -> &mut BearerAuthenticator {
        self.bearer.get_or_insert_with(|| BearerAuthenticator {
            tokens: Vec::new(),
            check: None,
        })
    }
}
