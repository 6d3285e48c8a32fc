//! Pages on which a user agrees that the gateway uses an account at a server (`client/elicitation`, "URL Mode Elicitation for OAuth
//! Flows"; security best practices, "Consent Flow Implementation").
//!
//! | Request | What happens |
//! |---|---|
//! | `GET PATH/consent/ID` | a visitor who is not known yet is signed in at the issuer of the gateway's clients; the user who was asked sees the page |
//! | `GET PATH/consent/signed-in` | redirect of the issuer: the visitor is compared with the user who was asked |
//! | `POST PATH/consent/ID?csrf=…&decision=…` | the user agrees, and goes to the authorization server of the server, or refuses |
//! | `GET PATH/consent/connected/ISSUER` | redirect of that authorization server, whose issuer is in base64url: the tokens are stored |

use std::borrow::Cow;
use std::sync::Arc;

use bytes::Bytes;
use http::header::{COOKIE, HOST, ORIGIN};
use http::request::Parts;
use http::{Method, Response, StatusCode};
use mcp_exact_auth::Secret;
use mcp_exact_auth::client::{OAuthError, PendingGrant};
use mcp_exact_transport::http::server::{PageFuture, Pages};
use serde::{Deserialize, Serialize};

use super::gateway::{CONNECTED, Gateway, SIGNED_IN};
use super::render::{escape, page, redirect, sentence};
use super::revocations::Consent;
use super::server::UserServer;
use super::tokens::UserToken;
use super::values::{is_same, random_text, unix_time};
use super::visits::{VISIT_SECONDS, Visit};

/// Maximum length of an issuer in base64url.
const MAX_ISSUER: usize = 2_048;
/// Prefix of the names of cookies. Browsers accept the name from this host alone, for all paths, and with `Secure`.
const COOKIE_PREFIX: &str = "__Host-mcp-exact-";
/// Context in which cookies are sealed.
const COOKIE_CONTEXT: &[u8] = b"consent cookie";
/// Maximum number of characters of the name of a program.
const MAX_NAME: usize = 100;
/// Number of characters of the id of a visit, and of those in the name of its cookie.
const ID_LENGTHS: (usize, usize) = (43, 16);

/// Pages of a gateway.
pub(super) struct ConsentPages(pub(super) Arc<Gateway>);

/// Step of a browser's visit, in its cookie.
#[derive(Serialize, Deserialize)]
struct Step {
    /// Id of the visit.
    id: String,
    /// Unix time in seconds after which the cookie is not accepted.
    expires: u64,
    kind: StepKind,
}

#[derive(Serialize, Deserialize)]
enum StepKind {
    /// The visitor is being signed in.
    SignIn { pending: String },
    /// The visitor is the user who was asked, and has to decide. The text protects the form.
    Decide { csrf: String },
    /// The user has agreed, and is at the authorization server of the server.
    Connect { pending: String },
}

/// Reason why a page refuses a request. The response tells nothing about another user.
enum PageError {
    /// The visit is unknown, over, or was used.
    Over,
    /// The step does not belong to this browser, or the form not to this page.
    OtherBrowser,
    /// The visitor is not the user who was asked.
    OtherUser,
    /// The user, or the authorization server, has refused.
    Refused,
    /// The access of the user was revoked after the user was asked.
    Revoked,
    /// The access of the user may have been revoked after the user was asked.
    PerhapsRevoked,
    /// The gateway or an authorization server has a problem, which is in the log: visitors have no setting of the gateway.
    Failed,
}

impl From<String> for PageError {
    fn from(error: String) -> Self {
        tracing::warn!(error, "a page of consent cannot go on");
        Self::Failed
    }
}

impl From<OAuthError> for PageError {
    fn from(error: OAuthError) -> Self {
        tracing::warn!(%error, "a page of consent cannot go on");
        match error {
            OAuthError::Refused { .. } => Self::Refused,
            _ => Self::Failed,
        }
    }
}

impl PageError {
    fn response(&self) -> Response<Bytes> {
        match self {
            Self::Over => sentence(
                StatusCode::NOT_FOUND,
                "This page is over",
                "It was used, or not used in time. Call the tool again.",
            ),
            Self::OtherBrowser => sentence(
                StatusCode::FORBIDDEN,
                "This step was begun elsewhere",
                "It belongs to another browser or page. Open the page again that your program has shown to you.",
            ),
            Self::OtherUser => sentence(
                StatusCode::FORBIDDEN,
                "Somebody else was asked",
                "You are not the person whom the program has asked. Whoever sent this page to you may want to use your account.",
            ),
            Self::Refused => sentence(
                StatusCode::BAD_GATEWAY,
                "The account was not connected",
                "You or the authorization server have refused. Call the tool again to be asked again.",
            ),
            Self::Revoked => sentence(
                StatusCode::FORBIDDEN,
                "The account was not connected",
                "The access of the user was revoked after the program has asked. Call the tool again to be asked again.",
            ),
            Self::PerhapsRevoked => sentence(
                StatusCode::FORBIDDEN,
                "The account was not connected",
                "The program has asked some time ago, and the gateway cannot tell whether the access of the user was revoked since. Call \
                 the tool again to begin again.",
            ),
            Self::Failed => sentence(
                StatusCode::BAD_GATEWAY,
                "The account was not connected",
                "The gateway or an authorization server has a problem, which is in the log of the gateway. Try again later.",
            ),
        }
    }
}

impl Pages for ConsentPages {
    fn respond<'a>(&'a self, request: &'a Parts) -> Option<PageFuture<'a>> {
        let page = self.page_of(request.uri.path())?;
        Some(Box::pin(async move {
            let answered = self.answer(page, request).await;
            answered.unwrap_or_else(|error| error.response())
        }))
    }
}

impl ConsentPages {
    /// Returns the last segment of the path of a page: below the public path, or below `/mcp` behind a proxy that changes it.
    fn page_of<'p>(&self, path: &'p str) -> Option<&'p str> {
        let below = |base: &str| path.strip_prefix(base)?.strip_prefix('/');
        let page = below(&self.0.pages_path).or_else(|| below("/mcp/consent"))?;
        let is_plain = |text: &str| {
            let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
            text.bytes().all(is_plain)
        };
        let is_known = match page.strip_prefix(CONNECTED) {
            Some(issuer) => !issuer.is_empty() && issuer.len() <= MAX_ISSUER && is_plain(issuer),
            None => page == SIGNED_IN || page.len() == ID_LENGTHS.0 && is_plain(page),
        };
        is_known.then_some(page)
    }

    async fn answer(&self, page: &str, request: &Parts) -> Result<Response<Bytes>, PageError> {
        match (&request.method, page) {
            (&Method::GET, SIGNED_IN) => self.signed_in(request).await,
            (&Method::GET, page) if page.starts_with(CONNECTED) => {
                self.connected(page, request).await
            }
            (&Method::GET, id) => self.open(id, request).await,
            (&Method::POST, id) if id != SIGNED_IN && !id.starts_with(CONNECTED) => {
                self.decide(id, request).await
            }
            _ => Ok(sentence(
                StatusCode::METHOD_NOT_ALLOWED,
                "Nothing happens here",
                "The page has no such method.",
            )),
        }
    }

    /// Shows the page to the user who was asked, and signs other visitors in.
    async fn open(&self, id: &str, request: &Parts) -> Result<Response<Bytes>, PageError> {
        let visit = self.0.visit(id).await?.ok_or(PageError::Over)?;
        let known = self.steps(request).find(|step| step.id == id);
        if let Some(Step {
            kind: StepKind::Decide { csrf },
            ..
        }) = known
        {
            return self.show(id, &visit, &csrf).await;
        }
        let (pending, url) = self.0.sign_in().await?.begin()?;
        let pending = pending.to_secret().expose().to_owned();
        let cookie = self.cookie(id, StepKind::SignIn { pending })?;
        Ok(redirect(url.as_str(), cookie))
    }

    /// Compares the visitor with the user who was asked ("Phishing").
    async fn signed_in(&self, request: &Parts) -> Result<Response<Bytes>, PageError> {
        let query = query_of(request);
        let (id, pending) = self.pending(request, SIGNED_IN, &query, |kind| match kind {
            StepKind::SignIn { pending } => Some(pending),
            _ => None,
        })?;
        let granted = self.0.sign_in().await?.finish(pending, &query).await?;
        let verifier = &self.0.client.verifier;
        let access = verifier.verify(granted.access_token.expose()).await;
        let access = access.map_err(|error| {
            format!("the issuer has signed a visitor in with a token that is not valid: {error}")
        })?;
        let visitor = access.user().ok_or(PageError::OtherUser)?;
        let visit = self.0.visit(&id).await?.ok_or(PageError::Over)?;
        if !visit.is_of(&visitor) {
            return Err(PageError::OtherUser);
        }
        let csrf = random_text().ok_or(OAuthError::NoRandomness)?;
        let cookie = self.cookie(&id, StepKind::Decide { csrf })?;
        Ok(redirect(&format!("{}/{id}", self.0.pages_url), cookie))
    }

    /// Shows who asks for what ("Consent UI Requirements").
    async fn show(
        &self,
        id: &str,
        visit: &Visit,
        csrf: &str,
    ) -> Result<Response<Bytes>, PageError> {
        let server = self.server_of(visit)?;
        let grant = server.code_grant().await?.ok_or(PageError::Over)?;
        let scopes = match grant.scopes() {
            scopes if scopes.is_empty() => "those that its authorization server chooses".to_owned(),
            scopes => scopes.to_string(),
        };
        let rows = [
            ("Client id", visit.client_id.clone()),
            ("The program calls itself", short(&visit.program)),
            ("Server", format!("{} at {}", server.name(), server.url())),
            ("Authorization server", grant.issuer().to_owned()),
            ("You are", format!("{} at {}", visit.subject, visit.issuer)),
            ("Scopes", scopes),
            ("Tokens are sent to", grant.redirect_uri().to_owned()),
        ];
        let rows = rows
            .iter()
            .map(|(name, value)| format!("<dt>{name}</dt><dd>{}</dd>\n", escape(value)));
        let form = |decision: &str, words: &str| {
            let (id, csrf) = (escape(id), escape(csrf));
            format!(
                "<form method=\"post\" action=\"{id}?csrf={csrf}&amp;decision={decision}\"><button>{words}</button></form>\n"
            )
        };
        let body = format!(
            "<p>The program wants to use your account at this server through this gateway. The gateway keeps the access, and \
             the program never sees it.</p>\n<dl>\n{}</dl>\n{}{}",
            rows.collect::<String>(),
            form("allow", "Allow"),
            form("refuse", "Refuse")
        );
        Ok(page(StatusCode::OK, "Connect your account?", &body, &[]))
    }

    /// Goes on to the authorization server of the server if the user agrees.
    async fn decide(&self, id: &str, request: &Parts) -> Result<Response<Bytes>, PageError> {
        if !self.is_own_page(request) {
            return Err(PageError::OtherBrowser);
        }
        let known = self.steps(request).find_map(|step| match step.kind {
            StepKind::Decide { csrf } if step.id == id => Some(csrf),
            _ => None,
        });
        let csrf = known.ok_or(PageError::OtherBrowser)?;
        let query = query_of(request);
        let parameter = |name: &str| {
            let mut all = parameters(&query).filter(|(known, _)| known == name);
            let value = all.next().map(|(_, value)| value.into_owned());
            value.filter(|_| all.next().is_none())
        };
        if !parameter("csrf").is_some_and(|given| is_same(&given, &csrf)) {
            return Err(PageError::OtherBrowser);
        }
        let visit = self.0.visit(id).await?.ok_or(PageError::Over)?;
        match parameter("decision").as_deref() {
            Some("allow") => {}
            Some("refuse") => {
                self.0.end_visit(id, &visit).await?;
                let body = "<p>The account is not connected. You can close this page.</p>";
                let cookies = [no_cookie(id)];
                return Ok(page(StatusCode::OK, "Refused", body, &cookies));
            }
            _ => return Err(PageError::OtherBrowser),
        }
        let server = self.server_of(&visit)?;
        let grant = server.code_grant().await?.ok_or(PageError::Over)?;
        let (pending, url) = grant.begin()?;
        let pending = pending.to_secret().expose().to_owned();
        let cookie = self.cookie(id, StepKind::Connect { pending })?;
        Ok(redirect(url.as_str(), cookie))
    }

    /// Stores the tokens of the user who has agreed.
    async fn connected(
        &self,
        page_name: &str,
        request: &Parts,
    ) -> Result<Response<Bytes>, PageError> {
        let query = query_of(request);
        let (id, pending) = self.pending(request, page_name, &query, |kind| match kind {
            StepKind::Connect { pending } => Some(pending),
            _ => None,
        })?;
        // In a task: the browser may close the connection, and tokens are never stored without the look at revocations after it.
        let (pages, visit) = (Self(Arc::clone(&self.0)), id.clone());
        let connecting = tokio::spawn(async move { pages.connect(&visit, pending, &query).await });
        let connected = connecting.await;
        connected.map_err(|error| format!("a task ended early: {error}"))??;
        let body = "<p>The program can use it now. You can close this page.</p>";
        let title = "The account is connected";
        Ok(page(StatusCode::OK, title, body, &[no_cookie(&id)]))
    }

    /// Stores the tokens of a visit, which ends in any case.
    async fn connect(
        &self,
        id: &str,
        pending: PendingGrant,
        query: &Secret,
    ) -> Result<(), PageError> {
        let visit = self.0.use_visit(id).await?.ok_or(PageError::Over)?;
        let connected = self.store_tokens((id, &visit), pending, query).await;
        let ended = self.0.end_visit(id, &visit).await;
        connected?;
        ended?;
        Ok(())
    }

    /// Stores the tokens of a visit. If they are not known to be stored with the consent of the user, nobody has them after that.
    async fn store_tokens(
        &self,
        (id, visit): (&str, &Visit),
        pending: PendingGrant,
        query: &Secret,
    ) -> Result<(), PageError> {
        let server = self.server_of(visit)?;
        let grant = server.code_grant().await?.ok_or(PageError::Over)?;
        let granted = grant.finish(pending, query).await?;
        let token = UserToken {
            visit: Some(id.to_owned()),
            ..server.user_token(&grant, granted)
        };
        let stored = self.store_token(visit, &token).await;
        if stored.is_err() {
            self.take_back(&server, visit, token).await;
        }
        stored
    }

    /// Stores tokens while the consent of the user holds.
    async fn store_token(&self, visit: &Visit, token: &UserToken) -> Result<(), PageError> {
        self.check_consent(visit).await?;
        let tokens = &self.0.tokens;
        let adding = tokens.add(&visit.principal, &visit.server, token.clone());
        adding.await?;
        // A revocation takes the tokens before and after it is announced: what it has not taken is seen here.
        self.check_consent(visit).await
    }

    /// Removes the tokens of a visit, also if a call has refreshed them meanwhile, and requests that their authorization server
    /// revokes them.
    async fn take_back(&self, server: &UserServer, visit: &Visit, token: UserToken) {
        let (principal, name) = (&visit.principal, &visit.server);
        let taking = self.0.tokens.take_of_visit(principal, name, &token);
        let mut taken = match taking.await {
            Ok(taken) => taken,
            Err(error) => {
                tracing::warn!(
                    principal,
                    server = name,
                    error,
                    "tokens of a user may still be stored"
                );
                let gateway = Arc::downgrade(&self.0);
                let account = (principal.clone(), name.clone());
                tokio::spawn(Gateway::take_back_later(gateway, account, token.clone()));
                Vec::new()
            }
        };
        if !taken.iter().any(|taken| taken.is_same(&token)) {
            taken.push(token);
        }
        for token in taken {
            let outcome = server.tell_revocation(&token).await;
            tracing::info!(
                server = server.name(),
                ?outcome,
                "the tokens of an account that was not connected"
            );
        }
    }

    /// Returns an error if the access of the user was revoked since the visit began, or may have been.
    async fn check_consent(&self, visit: &Visit) -> Result<(), PageError> {
        match self.0.consent_to(visit).await? {
            Consent::Valid => Ok(()),
            Consent::Revoked => Err(PageError::Revoked),
            Consent::Unknown => Err(PageError::PerhapsRevoked),
        }
    }

    /// Returns the server of a visit, unless it was removed meanwhile.
    fn server_of(&self, visit: &Visit) -> Result<Arc<UserServer>, PageError> {
        self.0.server(&visit.server).ok_or(PageError::Over)
    }

    /// Returns true if a form was sent by a page of the gateway itself.
    fn is_own_page(&self, request: &Parts) -> bool {
        let headers = &request.headers;
        let text = |name: &str| headers.get(name).map(|value| value.to_str().unwrap_or(""));
        let is_own_site = text("sec-fetch-site").is_none_or(|site| site == "same-origin");
        // A browser names the origin of every form that it posts.
        let mut origins = headers.get_all(ORIGIN).iter();
        let origin = origins.next().and_then(|origin| origin.to_str().ok());
        let is_own_origin = origin == Some(&*self.0.origin) && origins.next().is_none();
        is_own_site && is_own_origin && headers.contains_key(HOST)
    }

    /// Returns the steps in the cookies of a browser.
    fn steps<'r>(&'r self, request: &'r Parts) -> impl Iterator<Item = Step> + 'r {
        let cookies = request.headers.get_all(COOKIE).iter();
        let cookies = cookies.filter_map(|cookies| cookies.to_str().ok());
        let pairs = cookies.flat_map(|cookies| cookies.split("; "));
        let sealed = pairs.filter_map(|pair| {
            let (_, value) = pair.strip_prefix(COOKIE_PREFIX)?.split_once('=')?;
            Some(value)
        });
        sealed.take(32).filter_map(|sealed| {
            let text = self.0.seal.open(sealed, COOKIE_CONTEXT)?;
            let step: Step = serde_json::from_str(&text).ok()?;
            (step.expires > unix_time()).then_some(step)
        })
    }

    /// Returns the visit and the grant that a redirect to a page belongs to, by the `state` in a cookie of this browser. A redirect
    /// that arrives at the page of another issuer has the code of that one ("Mix-Up Attacks").
    fn pending(
        &self,
        request: &Parts,
        page: &str,
        query: &Secret,
        of_kind: impl Fn(StepKind) -> Option<String>,
    ) -> Result<(String, PendingGrant), PageError> {
        let mut steps = self.steps(request);
        let redirect_uri = format!("{}/{page}", self.0.pages_url);
        let found = steps.find_map(|step| {
            let pending = Secret::new(of_kind(step.kind)?);
            let pending = PendingGrant::from_secret(&pending)?;
            let is_its = pending.is_answered_by(query) && pending.redirect_uri() == redirect_uri;
            is_its.then_some((step.id, pending))
        });
        found.ok_or(PageError::OtherBrowser)
    }

    /// Returns the cookie of a step.
    fn cookie(&self, id: &str, kind: StepKind) -> Result<String, PageError> {
        let step = Step {
            id: id.to_owned(),
            expires: unix_time() + VISIT_SECONDS,
            kind,
        };
        let text = serde_json::to_string(&step).map_err(|error| error.to_string())?;
        let sealed = self.0.seal.seal(&text, COOKIE_CONTEXT);
        if sealed.is_empty() {
            return Err(OAuthError::NoRandomness.into());
        }
        Ok(set_cookie(id, &sealed, VISIT_SECONDS))
    }
}

/// Returns the value of `Set-Cookie` for a visit ("Consent Cookie Security").
fn set_cookie(id: &str, value: &str, seconds: u64) -> String {
    let name = id.get(..ID_LENGTHS.1).unwrap_or(id);
    format!(
        "{COOKIE_PREFIX}{name}={value}; Path=/; Max-Age={seconds}; Secure; HttpOnly; SameSite=Lax"
    )
}

/// Returns the value of `Set-Cookie` that removes the cookie of a visit.
fn no_cookie(id: &str) -> String {
    set_cookie(id, "", 0)
}

/// Returns a name that a program has chosen, cut so that it cannot look like the rows below it.
fn short(name: &str) -> String {
    let mut shown: String = name.chars().take(MAX_NAME).collect();
    if name.chars().nth(MAX_NAME).is_some() {
        shown.push('…');
    }
    shown
}

/// Returns the undecoded query of a request.
fn query_of(request: &Parts) -> Secret {
    Secret::new(request.uri.query().unwrap_or_default())
}

/// Returns the decoded parameters of a query.
fn parameters(query: &Secret) -> impl Iterator<Item = (Cow<'_, str>, Cow<'_, str>)> {
    url::form_urlencoded::parse(query.expose().as_bytes())
}
