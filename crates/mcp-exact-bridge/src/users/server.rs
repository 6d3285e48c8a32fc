//! One server that each user reaches with a token of their own: how the token is obtained, renewed and given up.

mod accounts;

use std::collections::HashMap;
use std::fmt;
use std::future::Future;
use std::sync::{Arc, Weak};
use std::time::{Duration, SystemTime};

use mcp_exact_auth::Secret;
use mcp_exact_auth::client::{CodeGrant, GrantedTokens, OAuth, OAuthError, TokenExchange};
use mcp_exact_auth::server::{Access, PresentedToken, TokenError};
use mcp_exact_session::{CachedNegotiation, ClientSettings, IncomingRequest, Principal};
use mcp_exact_transport::http::client::HttpEndpoint;
use mcp_exact_transport::{ClientHandler, RequestContext};
use parking_lot::Mutex;
use tokio::time::{Instant, timeout};

use super::callers::{CallerTokens, HeldToken};
use super::client::UserClient;
use super::gateway::Gateway;
use super::revocations::Seen;
use super::visits::Asked;
use crate::servers::upstream::{Connected, Upstream};
use crate::servers::upstream_settings::UpstreamSettings;
use crate::servers::users::{Caller, NotAdmitted, PageVisit, UserAccess, UserFuture, is_list};

/// Time before its expiry at which a token is renewed, in seconds.
const RENEWAL_MARGIN: u64 = 45;
/// Lifetime of an exchanged token whose issuer states none.
const UNSTATED_LIFETIME: Duration = Duration::from_secs(300);
/// Time after which the metadata of a server is read again.
const METADATA_LIFETIME: Duration = Duration::from_secs(3600);
/// Time before an authorization server that could not be used is tried again.
const RETRY_PAUSE: Duration = Duration::from_secs(5);
/// Interval at which a call that waits for a user looks for what another process has stored.
const POLL_INTERVAL: Duration = Duration::from_secs(1);

/// How the token of a user is obtained.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum UserGrant {
    /// By token exchange if the server trusts the issuer of the callers and the issuer lists the grant; otherwise by a code grant.
    #[default]
    Automatic,
    /// By token exchange (RFC 8693) at the issuer of the callers.
    TokenExchange,
    /// By an authorization code grant, for which the user visits a page of the gateway.
    AuthorizationCode,
}

/// Clients of the gateway for one server whose users have credentials of their own.
#[must_use]
pub struct UserClients {
    /// How tokens are obtained.
    pub grant: UserGrant,
    /// Client at the authorization server of the server, for users who have to agree; its store, user agent and account are not used.
    pub oauth: OAuth,
    /// Client at the issuer of the callers, [`OAuth::registered`] with [`OAuth::issuer`], for token exchanges.
    pub exchange: OAuth,
}

/// Server that each user reaches with credentials of their own; [`Users::server`](super::Users::server) creates it. It is shared:
/// its connections belong to principals, as [`SharedUpstream`](crate::SharedUpstream) describes.
#[derive(Clone)]
pub struct UserUpstream(pub(super) Arc<UserServer>);

/// State of a [`UserUpstream`].
pub(super) struct UserServer {
    this: Weak<Self>,
    gateway: Arc<Gateway>,
    /// Name of the server in the configuration.
    name: String,
    /// URL of the server.
    url: String,
    endpoint: HttpEndpoint,
    /// Clients of the gateway.
    clients: UserClients,
    /// What was discovered of the server, or why it could not be used, and until when it is used without a new attempt.
    prepared: Mutex<Option<(Instant, Result<Prepared, OAuthError>)>>,
    /// Held by the call that discovers.
    discovering: tokio::sync::Mutex<()>,
    /// Exchanged tokens by caller.
    pub(super) exchanged: CallerTokens,
    /// Locks of the callers whose tokens are being exchanged, and of the principals whose tokens are being refreshed.
    flights: Mutex<HashMap<String, Weak<Flight>>>,
}

/// Grant that was prepared by the metadata of a server.
#[derive(Clone)]
enum Prepared {
    Exchange(TokenExchange),
    Code(CodeGrant),
}

/// Lock of the calls that need the same token, with the time and the reason of the latest failure.
type Flight = tokio::sync::Mutex<Option<(Instant, String)>>;

/// Reason why there is no token of a user.
#[derive(Debug)]
pub(super) enum NoToken {
    /// The user has not agreed, or what the user has agreed to has ended.
    NotAgreed,
    /// It cannot be obtained, for this reason.
    Failed(String),
}

impl From<String> for NoToken {
    /// Logs the problem of a store, which is none of the caller's business.
    fn from(error: String) -> Self {
        tracing::warn!(error, "the store of the tokens of users has a problem");
        Self::Failed("the tokens of users cannot be read or written at present".to_owned())
    }
}

impl UserServer {
    pub(super) fn new(
        gateway: &Arc<Gateway>,
        name: String,
        endpoint: HttpEndpoint,
        mut clients: UserClients,
    ) -> Arc<Self> {
        let url = endpoint.target().to_string();
        clients.oauth = clients.oauth.store(gateway.store.clone());
        Arc::new_cyclic(|this| Self {
            this: this.clone(),
            gateway: Arc::clone(gateway),
            name,
            url,
            endpoint,
            clients,
            prepared: Mutex::default(),
            discovering: tokio::sync::Mutex::default(),
            exchanged: CallerTokens::default(),
            flights: Mutex::default(),
        })
    }

    /// Returns the URL of the server.
    pub(super) fn url(&self) -> &str {
        &self.url
    }

    /// Returns the name of the server.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Returns how tokens are obtained, after the metadata of the server. One call reads the metadata; while it does, and while the
    /// metadata is unavailable, the others use that of before.
    async fn prepared(&self) -> Result<Prepared, OAuthError> {
        let fresh = || {
            let prepared = self.prepared.lock();
            let known = prepared
                .as_ref()
                .filter(|(until, _)| Instant::now() < *until);
            known.map(|(_, known)| known.clone())
        };
        let before = || {
            let prepared = self.prepared.lock();
            prepared.as_ref().and_then(|(_, known)| known.clone().ok())
        };
        if let Some(known) = fresh() {
            return known;
        }
        let _discovering = match (self.discovering.try_lock(), before()) {
            (Ok(lock), _) => lock,
            (Err(_), Some(before)) => return Ok(before),
            (Err(_), None) => self.discovering.lock().await,
        };
        if let Some(known) = fresh() {
            return known;
        }
        let discovered = match (self.discover().await, before()) {
            (Err(error), Some(before)) if error.is_transient() => {
                tracing::warn!(server = self.name, %error, "the metadata of before is used");
                (RETRY_PAUSE, Ok(before))
            }
            (Err(error), _) => (RETRY_PAUSE, Err(error)),
            (Ok(found), _) => (METADATA_LIFETIME, Ok(found)),
        };
        let (lifetime, discovered) = discovered;
        *self.prepared.lock() = Some((Instant::now() + lifetime, discovered.clone()));
        discovered
    }

    async fn discover(&self) -> Result<Prepared, OAuthError> {
        let grant = self.clients.grant;
        if grant != UserGrant::AuthorizationCode {
            let exchange = self.clients.exchange.clone().fallback(false);
            match exchange.token_exchange_at(&self.url).await {
                Ok(exchange) if grant == UserGrant::TokenExchange || exchange.is_listed() => {
                    return Ok(Prepared::Exchange(exchange));
                }
                Err(error) if grant == UserGrant::TokenExchange => return Err(error),
                // The server does not trust the issuer of the callers, or the issuer does not exchange.
                Ok(_)
                | Err(OAuthError::IssuerNotListed { .. } | OAuthError::NoResourceMetadata { .. }) =>
                    {}
                Err(error) => return Err(error),
            }
        }
        let gateway = Arc::clone(&self.gateway);
        let oauth = self.clients.oauth.clone();
        let grant = oauth.code_grant_at(&self.url, move |issuer| gateway.connected_url(issuer));
        Ok(Prepared::Code(grant.await?))
    }

    /// Returns the grant of accounts; `None` if the tokens of callers are exchanged.
    pub(super) async fn code_grant(&self) -> Result<Option<CodeGrant>, OAuthError> {
        Ok(match self.prepared().await? {
            Prepared::Code(grant) => Some(grant),
            Prepared::Exchange(_) => None,
        })
    }

    /// Describes an error of authorization with its remedy.
    pub(super) fn describe(&self, error: &OAuthError) -> String {
        (self.gateway.client.describe)(error)
    }

    /// Forgets what was discovered, so that the next call reads it again.
    fn forget_metadata(&self) {
        *self.prepared.lock() = None;
    }

    /// Returns the token of a caller for the server; `rejected` is a token that the server has refused. An exchanged one was obtained
    /// with a token of the same scopes. An account that the user has connected belongs to the principal: the user has let the program
    /// use it, and its scopes do not come from a token of the program.
    pub(super) async fn token(
        &self,
        caller: &Caller,
        rejected: Option<&Secret>,
    ) -> Result<Secret, NoToken> {
        self.gateway.watch_revocations().await?;
        let prepared = self.prepared().await;
        match prepared.map_err(|error| self.failed(&error))? {
            Prepared::Exchange(exchange) => self.exchanged_token(&exchange, caller, rejected).await,
            Prepared::Code(grant) => {
                let Principal(principal) = &caller.principal;
                self.granted_token(grant, principal, rejected).await
            }
        }
    }

    /// Gives up a token that the server has refused although it was renewed.
    pub(super) async fn give_up(&self, caller: &Caller, token: &Secret) -> Result<(), NoToken> {
        self.exchanged.remove(caller, token);
        let Principal(principal) = &caller.principal;
        let Some(known) = self.gateway.tokens.of(principal, &self.name).await? else {
            return Ok(());
        };
        if known.access_token == *token {
            let tokens = &self.gateway.tokens;
            tokens.give_up(principal, &self.name, &known).await?;
        }
        Ok(())
    }

    /// Returns the problem of the authorization server.
    fn failed(&self, error: &OAuthError) -> NoToken {
        let name = &self.name;
        NoToken::Failed(format!(
            "no token of the user for the server {name:?} can be obtained: {}",
            self.describe(error)
        ))
    }

    /// Obtains a token: one call obtains it, and the others for whom it is the same use its token, or fail as it does.
    async fn in_flight(
        &self,
        whose: &str,
        obtain: impl Future<Output = Result<Secret, NoToken>>,
    ) -> Result<Secret, NoToken> {
        let began = Instant::now();
        let flight = self.flight(whose);
        let mut failure = flight.lock().await;
        if let Some((at, reason)) = &*failure
            && *at >= began
        {
            return Err(NoToken::Failed(reason.clone()));
        }
        let ended = obtain.await;
        *failure = match &ended {
            Err(NoToken::Failed(reason)) => Some((Instant::now(), reason.clone())),
            _ => None,
        };
        ended
    }

    /// Returns the lock of those for whom a token is the same.
    fn flight(&self, whose: &str) -> Arc<Flight> {
        let mut flights = self.flights.lock();
        if let Some(known) = flights.get(whose).and_then(Weak::upgrade) {
            return known;
        }
        flights.retain(|_, flight| flight.strong_count() > 0);
        let flight = Arc::default();
        flights.insert(whose.to_owned(), Arc::downgrade(&flight));
        flight
    }

    /// Exchanges the token of a caller, unless there is an exchanged one.
    async fn exchanged_token(
        &self,
        exchange: &TokenExchange,
        caller: &Caller,
        rejected: Option<&Secret>,
    ) -> Result<Secret, NoToken> {
        let exchanging = self.exchange_once(exchange, caller, rejected);
        // Scopes have no line breaks.
        let whose = format!("{}\n{}", caller.scopes, caller.principal.0);
        self.in_flight(&whose, exchanging).await
    }

    async fn exchange_once(
        &self,
        exchange: &TokenExchange,
        caller: &Caller,
        rejected: Option<&Secret>,
    ) -> Result<Secret, NoToken> {
        let (revocations, Principal(principal)) = (&self.gateway.revocations, &caller.principal);
        let seen = revocations.seen();
        let is_revoked = |held: &HeldToken| revocations.has_revoked(principal, &held.seen);
        let presented = self.gateway.callers.of(caller);
        let presented = presented.filter(|held| !is_revoked(held)).ok_or_else(|| {
            NoToken::Failed(
                "the gateway does not have the token of the caller any more: it has expired, the user was revoked, or tokens of more than \
                 four sets of scopes are in use; send the request again, with a valid token"
                    .to_owned(),
            )
        })?;
        let margin = Duration::from_secs(RENEWAL_MARGIN);
        let is_usable = |known: &HeldToken| {
            rejected != Some(&known.token)
                && known.expires > SystemTime::now() + margin
                && !is_revoked(known)
        };
        if let Some(known) = self.exchanged.of(caller).filter(is_usable) {
            return Ok(known.token);
        }
        let granted = exchange.exchange(&presented.token).await;
        let granted = granted.map_err(|error| self.failed(&error))?;
        self.check_not_own(&granted.access_token).await?;
        self.keep_exchanged(caller, presented.expires, &granted, seen.clone());
        if revocations.has_revoked(principal, &seen) {
            self.exchanged.remove_principal(principal);
            let words = "the access of the user was revoked meanwhile; call again";
            return Err(NoToken::Failed(words.to_owned()));
        }
        Ok(granted.access_token)
    }

    /// Refuses an exchanged token that the gateway itself accepts: with it, the server could call the gateway as the user ("Token
    /// Passthrough").
    async fn check_not_own(&self, token: &Secret) -> Result<(), NoToken> {
        let reason = match self.gateway.client.verifier.verify(token.expose()).await {
            Err(TokenError::Invalid(_)) => return Ok(()),
            Ok(_) => {
                "its issuer has exchanged the token of the caller for one of the gateway itself"
            }
            Err(error) => {
                tracing::warn!(server = self.name, %error, "an exchanged token was not checked");
                "the exchanged token cannot be checked at present"
            }
        };
        Err(NoToken::Failed(format!(
            "no token of the user for the server {:?} can be obtained: {reason}",
            self.name
        )))
    }

    /// Keeps an exchanged token, no longer than the token of the caller is valid.
    fn keep_exchanged(
        &self,
        caller: &Caller,
        latest: SystemTime,
        granted: &GrantedTokens,
        seen: Seen,
    ) {
        let lifetime = granted.expires_in.unwrap_or(UNSTATED_LIFETIME);
        let expires = SystemTime::now().checked_add(lifetime).unwrap_or(latest);
        let exchanged = HeldToken {
            token: granted.access_token.clone(),
            expires: expires.min(latest),
            seen,
        };
        self.exchanged.set(caller, exchanged);
    }

    /// Returns the visit that a user without a token is asked for.
    async fn ask(
        &self,
        request: &IncomingRequest<RequestContext>,
        principal: &Principal,
        access: &Access,
    ) -> NotAdmitted {
        let Some(user) = access.user() else {
            return NotAdmitted::Refused(format!(
                "the server {:?} needs the consent of a person, and the token of the caller names none (`sub`)",
                self.name
            ));
        };
        let Some(client_id) = access.client_id() else {
            // All programs without an id would share the consent of one ("Per-Client Consent Storage").
            return NotAdmitted::Refused(format!(
                "the server {:?} needs the consent of a user to one program, and the token of the caller names no program (`client_id` \
                 or `azp`)",
                self.name
            ));
        };
        let info = request.client().implementation.as_ref();
        let program = info.and_then(|info| Some(info.get("name")?.view().as_str()?.into_owned()));
        let asked = Asked {
            principal,
            user: &user,
            server: &self.name,
            program: program.unwrap_or_else(|| "a program without a name".to_owned()),
            client_id: client_id.to_owned(),
        };
        match self.gateway.ask(asked).await {
            Ok(id) => NotAdmitted::Visit(PageVisit {
                url: format!("{}/{id}", self.gateway.pages_url),
                message: format!("Connect your account at the server {:?}", self.name),
                id,
            }),
            Err(error) => not_asked(error),
        }
    }

    /// Makes sure that the user of a request has a token.
    async fn admit_user(
        &self,
        request: &IncomingRequest<RequestContext>,
    ) -> Result<(), NotAdmitted> {
        let refused = |reason: &str| NotAdmitted::Refused(reason.to_owned());
        if let Some(this) = self.this.upgrade() {
            self.gateway.use_server(&this);
        }
        let context = request.context();
        let principal = context.principal.as_ref();
        let principal = principal.ok_or_else(|| refused("the caller is not authenticated"))?;
        let http = context.app_data.http.as_ref();
        let access = http.and_then(|http| http.extensions.get::<Access>());
        let access = access.ok_or_else(|| refused("the caller has presented no token"))?;
        let presented = http.and_then(|http| http.extensions.get::<PresentedToken>());
        let caller = Caller::new(principal.clone(), access.scopes().iter());
        // Before the token is kept with what is known of revocations.
        let watching = self.gateway.watch_revocations().await;
        watching.map_err(NotAdmitted::Refused)?;
        if let Some(PresentedToken(token)) = presented {
            let held = HeldToken {
                token: token.clone(),
                expires: access.expires(),
                seen: self.gateway.revocations.seen(),
            };
            self.gateway.callers.set(&caller, held);
        }
        match self.token(&caller, None).await {
            Ok(_) => Ok(()),
            Err(NoToken::NotAgreed) if is_list(request.method_id()) => {
                Err(NotAdmitted::NotConnected)
            }
            Err(NoToken::NotAgreed) => Err(self.ask(request, principal, access).await),
            Err(NoToken::Failed(reason)) => Err(NotAdmitted::Refused(reason)),
        }
    }

    /// Waits until the user of a request has connected an account, or refused to.
    async fn wait_for_user(
        &self,
        request: &IncomingRequest<RequestContext>,
    ) -> Result<(), NotAdmitted> {
        let Some(caller) = Caller::of(request) else {
            return self.admit_user(request).await;
        };
        let Principal(principal) = &caller.principal;
        let mut decided = self.gateway.decided.subscribe();
        loop {
            match self.token(&caller, None).await {
                Err(NoToken::NotAgreed) => {
                    let asked = self.gateway.is_asked(principal, &self.name).await;
                    let is_asked = asked.map_err(not_asked)?;
                    // A user who has just agreed has a token before the visit ends.
                    if !is_asked && self.token(&caller, None).await.is_err() {
                        return Err(NotAdmitted::Refused(format!(
                            "no account of the user at the server {:?} was connected; call again to be asked again",
                            self.name
                        )));
                    }
                }
                _ => return self.admit_user(request).await,
            }
            // Another process may have received the decision.
            let _ = timeout(POLL_INTERVAL, decided.changed()).await;
        }
    }
}

/// Logs the problem of the store of visits.
fn not_asked(error: String) -> NotAdmitted {
    tracing::warn!(error, "a user cannot be asked to connect an account");
    NotAdmitted::Refused("the user cannot be asked to connect an account at present".to_owned())
}

/// Runs a future for at most a time, and then another one.
async fn within<T>(
    limit: Duration,
    work: impl Future<Output = T>,
    otherwise: impl Future<Output = T>,
) -> T {
    match timeout(limit, work).await {
        Ok(ended) => ended,
        Err(_) => otherwise.await,
    }
}

impl UserAccess for UserServer {
    fn admit<'a>(&'a self, request: &'a IncomingRequest<RequestContext>) -> UserFuture<'a> {
        Box::pin(self.admit_user(request))
    }

    fn wait<'a>(
        &'a self,
        request: &'a IncomingRequest<RequestContext>,
        limit: Duration,
    ) -> UserFuture<'a> {
        Box::pin(within(
            limit,
            self.wait_for_user(request),
            self.admit_user(request),
        ))
    }

    fn connect(
        &self,
        caller: &Caller,
        settings: Arc<ClientSettings>,
        prior: Option<&CachedNegotiation>,
        handler: Arc<dyn ClientHandler>,
    ) -> Connected {
        let revoked = self.gateway.revocations.revoked(&caller.principal.0);
        let (server, caller) = (self.this.clone(), caller.clone());
        let target = self.endpoint.target().clone();
        let endpoint = self.endpoint.clone();
        let endpoint = endpoint.map_client(|inner| {
            Arc::new(UserClient {
                server,
                caller,
                target,
                inner,
            })
        });
        let (client, driver) = endpoint.connect(settings, prior, handler);
        let connection = client.clone();
        tokio::spawn(async move {
            tokio::select! {
                _ = connection.closed() => {}
                () = revoked => connection.close(),
            }
        });
        Ok((client, driver))
    }
}

impl Upstream for UserUpstream {
    /// Connects without credentials of a user, which the bridge never does.
    fn connect(
        &self,
        settings: Arc<ClientSettings>,
        prior: Option<&CachedNegotiation>,
        handler: Arc<dyn ClientHandler>,
    ) -> Connected {
        Ok(self.0.endpoint.clone().connect(settings, prior, handler))
    }

    fn settings(&self) -> UpstreamSettings {
        UpstreamSettings {
            is_shared: true,
            ..UpstreamSettings::default()
        }
    }

    fn users(&self) -> Option<Arc<dyn UserAccess>> {
        Some(Arc::clone(&self.0) as Arc<dyn UserAccess>)
    }
}

impl fmt::Debug for UserUpstream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UserUpstream")
            .field("name", &self.0.name)
            .finish_non_exhaustive()
    }
}
