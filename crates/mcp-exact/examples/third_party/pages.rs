//! Web pages that obtain a credential of the service for a user, and only for the user who was asked ("Phishing").
//!
//! `/connect` signs the visitor in, `/signed-in` compares the visitor with the user who was asked, `/connected`
//! receives the credential. A cookie binds the three requests to one browser. An invitation can be used once, within
//! ten minutes.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use axum::Router;
use axum::extract::{Query, RawQuery, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::get;
use mcp_exact::auth::Secret;
use mcp_exact::auth::client::{CodeGrant, GrantedTokens, OAuthError, PendingGrant, Url};
use mcp_exact::auth::server::{TokenVerifier, User};
use serde::Deserialize;
use tokio::sync::watch;

/// Time after which an unused invitation expires.
const INVITATION_LIFETIME: Duration = Duration::from_secs(600);
/// Name of the cookie that identifies a visit.
const COOKIE_NAME: &str = "visit";

/// State of the pages: invitations, current visits, and credentials.
pub struct Pages {
    /// Public origin of the server.
    origin: String,
    /// OAuth code grant by which users sign in to the server.
    users: CodeGrant,
    /// Verifier of the access tokens for the server.
    verifier: Box<dyn TokenVerifier>,
    /// OAuth code grant that obtains the credentials of the service.
    service: CodeGrant,
    /// Invitations, visits and credentials.
    state: Mutex<PageState>,
    /// Notifies waiting tasks when a credential is added.
    credential_added: watch::Sender<()>,
}

/// Data that is changed by requests for the pages.
#[derive(Default)]
struct PageState {
    /// Invitations by id: the invited user, and the time of the invitation.
    invitations: HashMap<String, (User, Instant)>,
    /// Visits by cookie, with the time at which each began.
    visits: HashMap<String, (Visit, Instant)>,
    /// Credentials by user.
    credentials: HashMap<User, GrantedTokens>,
}

/// Next step of a browser's visit.
enum Visit {
    /// The visitor must sign in.
    SignIn {
        /// Id of the invitation.
        invitation: String,
        /// Grant that waits for the sign-in.
        pending: PendingGrant,
    },
    /// The visitor must connect an account at the service.
    Connect {
        /// User who was invited and has signed in.
        user: User,
        /// Grant that waits for the redirect of the service.
        pending: PendingGrant,
    },
}

/// Reason why a page refuses a request. The response contains no information about another user.
enum PageError {
    /// The invitation or the visit has expired, or never existed.
    InvitationExpired,
    /// The visitor is not the invited user.
    OtherUser,
    /// The sign-in or the connection has failed.
    Authorization(OAuthError),
}

impl From<OAuthError> for PageError {
    fn from(error: OAuthError) -> Self {
        Self::Authorization(error)
    }
}

impl IntoResponse for PageError {
    fn into_response(self) -> Response {
        let (status, words) = match self {
            Self::InvitationExpired => (
                StatusCode::NOT_FOUND,
                "This page has expired. Call the tool again.".to_owned(),
            ),
            Self::OtherUser => (
                StatusCode::FORBIDDEN,
                "Somebody else was asked to visit this page. Whoever sent it to you may want your documents.".to_owned(),
            ),
            Self::Authorization(error) => (StatusCode::BAD_GATEWAY, error.to_string()),
        };
        (status, words).into_response()
    }
}

impl Pages {
    /// Creates the pages of a server. `users` signs users in for the server, whose tokens `verifier` verifies;
    /// `service` obtains the credentials of the users.
    pub fn new(
        origin: String,
        users: CodeGrant,
        verifier: Box<dyn TokenVerifier>,
        service: CodeGrant,
    ) -> Self {
        Self {
            origin,
            users,
            verifier,
            service,
            state: Mutex::default(),
            credential_added: watch::Sender::default(),
        }
    }

    /// Locks the state and removes expired entries.
    fn lock_state(&self) -> MutexGuard<'_, PageState> {
        let mut table = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        table
            .invitations
            .retain(|_, (_, begun)| begun.elapsed() < INVITATION_LIFETIME);
        table
            .visits
            .retain(|_, (_, begun)| begun.elapsed() < INVITATION_LIFETIME);
        table
    }

    /// Returns the credential of a user.
    pub fn credential(&self, user: &User) -> Option<GrantedTokens> {
        self.lock_state().credentials.get(user).cloned()
    }

    /// Returns the URL of a page for one user. The URL contains no information about the user and grants no access.
    pub fn invitation_url(&self, user: &User) -> mcp_exact::Result<String> {
        let id = random_id()?;
        let invitation = (user.clone(), Instant::now());
        self.lock_state().invitations.insert(id.clone(), invitation);
        Ok(format!("{}/connect?id={id}", self.origin))
    }

    /// Waits for the credential of a user; `None` if the time limit elapses.
    pub async fn wait_for_credential(&self, user: &User, limit: Duration) -> Option<GrantedTokens> {
        let mut changed = self.credential_added.subscribe();
        let waiting = async {
            loop {
                if let Some(granted) = self.credential(user) {
                    return granted;
                }
                // The sender lives as long as this.
                let _ = changed.changed().await;
            }
        };
        tokio::time::timeout(limit, waiting).await.ok()
    }

    /// Redirects the browser to another page, with a cookie that identifies the visit.
    fn redirect_with_cookie(&self, visit: Visit, url: &Url) -> Result<Response, PageError> {
        let id = random_id().map_err(|_| OAuthError::NoRandomness)?;
        // A browser sends the cookie with the redirect back to this server (`Lax`), and hides it from scripts.
        let secure = if self.origin.starts_with("https") {
            "; Secure"
        } else {
            ""
        };
        let cookie =
            format!("{COOKIE_NAME}={id}; Path=/; HttpOnly; SameSite=Lax; Max-Age=600{secure}");
        self.lock_state().visits.insert(id, (visit, Instant::now()));
        let headers = [
            ("set-cookie", cookie),
            ("cache-control", "no-store".to_owned()),
        ];
        Ok((headers, Redirect::to(url.as_str())).into_response())
    }

    /// Removes and returns the visit that the browser's cookie identifies.
    fn take_visit(&self, headers: &HeaderMap) -> Result<Visit, PageError> {
        let cookies = headers.get_all("cookie").iter();
        let cookies = cookies.filter_map(|cookies| cookies.to_str().ok());
        let mut pairs = cookies.flat_map(|cookies| cookies.split("; "));
        let prefix = format!("{COOKIE_NAME}=");
        let id = pairs.find_map(|pair| pair.strip_prefix(&prefix));
        let visit = id.and_then(|id| self.lock_state().visits.remove(id));
        Ok(visit.ok_or(PageError::InvitationExpired)?.0)
    }
}

/// Returns 128 random bits in hexadecimal.
fn random_id() -> Result<String, getrandom::Error> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes)?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// Returns the routes of the pages.
pub fn router(pages: Arc<Pages>) -> Router {
    Router::new()
        .route("/connect", get(connect_page))
        .route("/signed-in", get(signed_in_page))
        .route("/connected", get(connected_page))
        .with_state(pages)
}

/// Query of the page `/connect`.
#[derive(Deserialize)]
struct Invitation {
    id: String,
}

/// Handles the page that the user was asked to visit. Anybody may open the page, so the visitor is identified first.
async fn connect_page(
    State(pages): State<Arc<Pages>>,
    Query(Invitation { id }): Query<Invitation>,
) -> Result<Response, PageError> {
    let is_known = pages.lock_state().invitations.contains_key(&id);
    if !is_known {
        return Err(PageError::InvitationExpired);
    }
    let (pending, url) = pages.users.begin()?;
    let visit = Visit::SignIn {
        invitation: id,
        pending,
    };
    pages.redirect_with_cookie(visit, &url)
}

/// Handles the redirect after the sign-in: only the invited user is redirected to the service.
async fn signed_in_page(
    State(pages): State<Arc<Pages>>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Result<Response, PageError> {
    let Visit::SignIn {
        invitation,
        pending,
    } = pages.take_visit(&headers)?
    else {
        return Err(PageError::InvitationExpired);
    };
    let query = Secret::new(query.unwrap_or_default());
    let granted = pages.users.finish(pending, &query).await?;
    let access = pages.verifier.verify(granted.access_token.expose()).await;
    let visitor = access.ok().and_then(|access| access.user());
    let visitor = visitor.ok_or(PageError::OtherUser)?;
    let mut table = pages.lock_state();
    let invited = table
        .invitations
        .get(&invitation)
        .ok_or(PageError::InvitationExpired)?;
    if invited.0 != visitor {
        return Err(PageError::OtherUser);
    }
    table.invitations.remove(&invitation);
    drop(table);
    let (pending, url) = pages.service.begin()?;
    let visit = Visit::Connect {
        user: visitor,
        pending,
    };
    pages.redirect_with_cookie(visit, &url)
}

/// Handles the redirect of the service: stores the credential of the user.
async fn connected_page(
    State(pages): State<Arc<Pages>>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Result<Response, PageError> {
    let Visit::Connect { user, pending } = pages.take_visit(&headers)? else {
        return Err(PageError::InvitationExpired);
    };
    let query = Secret::new(query.unwrap_or_default());
    let granted = pages.service.finish(pending, &query).await?;
    pages.lock_state().credentials.insert(user, granted);
    pages.credential_added.send_replace(());
    Ok("This server may read your documents now. You can close this page.".into_response())
}
