//! Servers that each user reaches with credentials of their own: what a bridge asks before it relays a request.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use mcp_exact_session::{CachedNegotiation, ClientSettings, IncomingRequest, Principal};
use mcp_exact_transport::{ClientHandler, RequestContext};

use crate::servers::upstream::Connected;

/// Future of a method of [`UserAccess`].
pub type UserFuture<'a> = Pin<Box<dyn Future<Output = Result<(), NotAdmitted>> + Send + 'a>>;

/// Access to a server with the credentials of each user; [`Upstream::users`](crate::Upstream::users) returns it.
///
/// A connection belongs to one principal and is never used for another one. The bridge calls [`admit`](Self::admit) before each
/// request, and [`connect`](Self::connect) for a principal that was admitted.
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

    /// Opens a connection whose requests have the credentials of a principal.
    ///
    /// # Errors
    /// [`ConnectError`](mcp_exact_transport::ConnectError) if the connection cannot be opened.
    fn connect(
        &self,
        principal: &Principal,
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
    /// The request is refused for this reason, which names the remedy.
    Refused(String),
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
