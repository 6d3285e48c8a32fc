//! Servers that each user reaches with credentials of their own: what a bridge asks before it relays a request.

use std::collections::BTreeSet;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use mcp_exact_revisions::MethodId;
use mcp_exact_session::{CachedNegotiation, ClientSettings, IncomingRequest, Principal};
use mcp_exact_transport::{ClientHandler, RequestContext};

use crate::servers::upstream::Connected;

/// Future of a method of [`UserAccess`].
pub type UserFuture<'a> = Pin<Box<dyn Future<Output = Result<(), NotAdmitted>> + Send + 'a>>;

/// Caller whose credentials a server is reached with: a principal, and the scopes of its token.
///
/// A program may have tokens of several scopes for one user. What was obtained with one of them is used for requests with a token of
/// the same scopes alone: a call with a narrow token is never sent with what a broader one has obtained.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Caller {
    /// Principal of the request.
    pub principal: Principal,
    /// Scopes of the token, in alphabetical order, separated by spaces; empty without the feature `users`, or if the request was
    /// not authenticated by a token.
    pub scopes: String,
}

impl Caller {
    /// Creates a caller from the scopes of its token, in any order.
    pub fn new<'a>(principal: Principal, scopes: impl IntoIterator<Item = &'a str>) -> Self {
        let scopes: BTreeSet<&str> = scopes.into_iter().collect();
        let scopes: Vec<&str> = scopes.into_iter().collect();
        Self {
            principal,
            scopes: scopes.join(" "),
        }
    }

    /// Returns the caller of a request; `None` if it is not authenticated.
    pub fn of(request: &IncomingRequest<RequestContext>) -> Option<Self> {
        let context = request.context();
        let principal = context.principal.clone()?;
        #[cfg(feature = "users")]
        {
            let http = context.app_data.http.as_ref();
            let access =
                http.and_then(|http| http.extensions.get::<mcp_exact_auth::server::Access>());
            if let Some(access) = access {
                return Some(Self::new(principal, access.scopes().iter()));
            }
        }
        Some(Self::new(principal, []))
    }
}

/// Access to a server with the credentials of each user; [`Upstream::users`](crate::Upstream::users) returns it.
///
/// A connection belongs to one [`Caller`] and is never used for another one. The bridge calls [`admit`](Self::admit) before each
/// request, and [`connect`](Self::connect) for a caller that was admitted.
pub trait UserAccess: Send + Sync + 'static {
    /// Makes sure that the principal of a request has credentials for the server; obtains them if the user is not needed for it.
    fn admit<'a>(&'a self, request: &'a IncomingRequest<RequestContext>) -> UserFuture<'a>;

    /// As [`admit`](Self::admit), but waits for the user, who has agreed to visit the page; after `limit` the error of `admit` is
    /// returned.
    fn wait<'a>(
        &'a self,
        request: &'a IncomingRequest<RequestContext>,
        limit: Duration,
    ) -> UserFuture<'a>;

    /// Opens a connection whose requests have the credentials of a caller.
    ///
    /// # Errors
    /// [`ConnectError`](mcp_exact_transport::ConnectError) if the connection cannot be opened.
    fn connect(
        &self,
        caller: &Caller,
        settings: Arc<ClientSettings>,
        prior: Option<&CachedNegotiation>,
        handler: Arc<dyn ClientHandler>,
    ) -> Connected;
}

/// Reason why a request is not relayed to a server with credentials per user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NotAdmitted {
    /// The user has to visit a page first. The client shows its URL to the user (`client/elicitation`, "URL Mode Elicitation
    /// Requests").
    Visit(PageVisit),
    /// The user has no credentials, and is not asked for them: the answer to a list shows no URL.
    NotConnected,
    /// The request is refused for this reason, which names the remedy.
    Refused(String),
}

/// Returns true if a request is for a list, in whose answer a user without credentials is offered a tool that asks for them.
pub(crate) fn is_list(method: MethodId) -> bool {
    matches!(
        method,
        MethodId::ToolsList
            | MethodId::PromptsList
            | MethodId::ResourcesList
            | MethodId::ResourcesTemplatesList
    )
}

/// Page that a user has to visit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PageVisit {
    /// URL of the page. It tells nothing about the user, and grants no access.
    pub url: String,
    /// Identifier of the visit (`elicitationId` of 2025-11-25).
    pub id: String,
    /// Text that tells the user why.
    pub message: String,
}
