//! Obtains a token after a refused request: discovery, refresh, grants, and storage.
//!
//! For each credential, only one task of all processes obtains a token at a time; other tasks wait and use this token.

mod client_id;
mod code_grant;
mod exchange;
mod grants;
mod present;
mod redirect;
mod revoke;
mod state;

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use http::header::HeaderValue;
use url::Url;

use self::client_id::{ClientId, client_key};
pub use self::code_grant::{CodeGrant, GrantedTokens, PendingGrant};
pub use self::exchange::TokenExchange;
use self::present::{DPOP_HEADER, secret_header};
use self::state::FlowState;
use super::discover::{
    ChallengeParams, DiscoveryResult, discover_authorization, fetch_server_metadata,
};
use super::error::OAuthError;
use super::fetch::{MetadataClient, Response};
use super::gate::UrlGate;
use super::key::DpopKey;
use super::log_problem;
use super::options::{GrantKind, OAuth};
use super::store::{Records, StoredToken};
use super::token::{IssuedToken, TokenRequest, parse_token_response};
use crate::locate;
use crate::metadata::ServerMetadata;
use crate::scope::Scopes;

/// Time before the expiry of a token at which the token is refreshed, in seconds.
const REFRESH_MARGIN_SECONDS: u64 = 45;
/// Maximum number of additional authorizations per operation, and after tokens that the server rejects. The
/// specification says "a few times" (`basic/authorization`, "Step-Up Authorization Flow").
const MAX_AUTHORIZATION_ROUNDS: u32 = 2;

/// Token that requests are sent with.
#[derive(Debug)]
pub(crate) struct CurrentToken {
    /// Token in the format of the store.
    pub(crate) stored: StoredToken,
    /// Key of DPoP proofs; `None` for a bearer token.
    key: Option<DpopKey>,
}

impl CurrentToken {
    fn new(stored: StoredToken) -> Result<Arc<Self>, OAuthError> {
        let key = stored.dpop_key.as_ref().filter(|_| stored.is_dpop);
        let key = key.map(DpopKey::from_text).transpose()?;
        Ok(Arc::new(Self { stored, key }))
    }

    /// Returns the error for a token that the server rejects although it was just issued.
    pub(crate) fn rejection_error(&self, challenge: &ChallengeParams) -> OAuthError {
        OAuthError::StillUnauthorized {
            issuer: self.stored.issuer.clone(),
            resource: locate::url_for_logs(&self.stored.resource),
            description: challenge.description.clone(),
        }
    }
}

/// Way in which a token was obtained.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TokenOrigin {
    /// Another task or process obtained the token.
    Adopted,
    /// The refresh token was exchanged for the token.
    Refreshed,
    /// A grant has issued the token.
    Authorized,
}

/// Authorization of the requests to one endpoint.
pub(crate) struct Flow {
    /// Options of the application.
    options: OAuth,
    /// True if tokens may be sent to the endpoint; false for plain HTTP to another host.
    sends_tokens: bool,
    /// URL of the MCP endpoint.
    endpoint: Url,
    /// HTTP client for metadata and token requests.
    metadata_client: MetadataClient,
    /// Records of the token store.
    stored_records: Records,
    /// Key of the token in the store.
    key: String,
    /// State of the authorization; locked while a task obtains a token.
    state: tokio::sync::Mutex<FlowState>,
    /// Token that requests are sent with.
    current_token: Mutex<Option<Arc<CurrentToken>>>,
    /// Version of the token in use, incremented by each new token.
    version: AtomicU64,
    /// Set once the token was loaded from the store.
    is_loaded: tokio::sync::OnceCell<()>,
    /// Number of attempts to authorize after rejected, unexpired tokens, since the server last accepted a token.
    rejected_tokens: AtomicU32,
    /// Latest DPoP nonce of each origin.
    nonces: Mutex<HashMap<String, String>>,
    /// Error of the last authorization.
    last_error: Mutex<Option<OAuthError>>,
    /// True if the token in use could not be stored, so that the store has an older one.
    is_unstored: AtomicBool,
}

impl Flow {
    /// Checks the endpoint's URL and the URL of the client metadata document.
    pub(crate) fn new(options: OAuth, endpoint: &str) -> Result<Arc<Self>, OAuthError> {
        let bad = |reason: &str| OAuthError::Url {
            what: "the endpoint of the server",
            url: locate::url_for_logs(endpoint),
            reason: reason.to_owned(),
        };
        let url = locate::parse_url(endpoint)
            .ok_or_else(|| bad("it is not an absolute HTTP URL without a user name"))?;
        let is_secure = url.scheme() == "https" || super::gate::is_loopback(&url);
        let sends_tokens = is_secure || options.allows_private;
        if let Some(metadata_url) = &options.metadata_url {
            let parsed = locate::parse_url(metadata_url);
            if !parsed.is_some_and(|url| url.scheme() == "https" && url.path().len() > 1) {
                return Err(OAuthError::Url {
                    what: "the client metadata URL",
                    url: locate::url_for_logs(metadata_url),
                    reason: "it must be https and have a path".to_owned(),
                });
            }
        }
        let clients = options.registered_clients.iter();
        let issuers = clients.filter_map(|client| client.issuer.as_ref());
        super::request::check_parameters(&options.authorization_parameters)?;
        let gate = UrlGate::new(
            &url,
            issuers.chain(&options.issuer),
            options.allows_private,
            options.allows_other_ports,
        );
        let revision = options.revision.as_deref();
        let revision = revision.and_then(|revision| HeaderValue::from_str(revision).ok());
        let key = format!(
            "token {} {}",
            locate::canonical_resource(&url),
            options.account
        );
        Ok(Arc::new(Self {
            metadata_client: MetadataClient::new(
                gate,
                options.http.clone(),
                &options.http_options,
                revision,
                options.timeout,
            ),
            stored_records: Records(Arc::clone(&options.store)),
            options,
            sends_tokens,
            endpoint: url,
            key,
            state: tokio::sync::Mutex::default(),
            current_token: Mutex::default(),
            version: AtomicU64::default(),
            is_loaded: tokio::sync::OnceCell::new(),
            rejected_tokens: AtomicU32::default(),
            nonces: Mutex::default(),
            last_error: Mutex::default(),
            is_unstored: AtomicBool::default(),
        }))
    }

    /// Returns the error for an endpoint that asks for a token although none may be sent to it; `None` if tokens may be sent.
    pub(crate) fn insecurity(&self) -> Option<OAuthError> {
        (!self.sends_tokens).then(|| OAuthError::Insecure {
            url: locate::url_for_logs(self.endpoint.as_str()),
        })
    }

    /// Returns the URL of the MCP endpoint.
    pub(crate) fn endpoint(&self) -> &Url {
        &self.endpoint
    }

    /// Waits while another task obtains a token. Returns true if the call has waited.
    pub(crate) async fn wait_until_settled(&self) -> bool {
        let is_busy = self.state.try_lock().is_err();
        drop(self.state.lock().await);
        is_busy
    }

    /// Stores the error of the last authorization.
    pub(crate) fn record_error(&self, error: OAuthError) {
        *self.error_slot() = Some(error);
    }

    /// Returns the error of the last authorization and clears it.
    pub(crate) fn take_error(&self) -> Option<OAuthError> {
        self.error_slot().take()
    }

    /// Locks the error of the last authorization.
    fn error_slot(&self) -> std::sync::MutexGuard<'_, Option<OAuthError>> {
        self.last_error
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the token that requests are sent with.
    fn current_token(&self) -> Option<Arc<CurrentToken>> {
        self.current_token
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Returns the version of the token in use.
    pub(crate) fn token_version(&self) -> u64 {
        self.version.load(Ordering::Acquire)
    }

    /// Sets the token that requests are sent with, and increments its version.
    fn set_current_token(&self, token: Option<Arc<CurrentToken>>) {
        *self
            .current_token
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = token;
        self.version.fetch_add(1, Ordering::AcqRel);
    }

    /// Returns the token to send, after refreshing a token that expires soon.
    pub(crate) async fn token_to_send(
        self: &Arc<Self>,
    ) -> Result<Option<Arc<CurrentToken>>, OAuthError> {
        let load = || async {
            let stored = self.stored_records.read::<StoredToken>(&self.key).await?;
            self.set_current_token(stored.map(CurrentToken::new).transpose()?);
            Ok::<_, OAuthError>(())
        };
        self.is_loaded.get_or_try_init(load).await?;
        let Some(token) = self.current_token() else {
            return Ok(None);
        };
        let ends = token
            .stored
            .expires_within(REFRESH_MARGIN_SECONDS, unix_time());
        if !ends || token.stored.refresh_token.is_none() {
            return Ok(Some(token));
        }
        let flow = Arc::clone(self);
        match run_in_task(async move { flow.refresh_early(token).await }).await {
            Ok(token) => Ok(Some(token)),
            // The server decides whether the old token is still valid.
            Err(_) => Ok(self.current_token()),
        }
    }

    /// Obtains a new token after the server rejected one with status 401.
    pub(crate) async fn renew_token(
        self: &Arc<Self>,
        used: Option<Arc<CurrentToken>>,
        challenge: ChallengeParams,
        may_refresh: bool,
    ) -> Result<(Arc<CurrentToken>, TokenOrigin), OAuthError> {
        let flow = Arc::clone(self);
        run_in_task(async move { flow.renew_locked(used, &challenge, may_refresh).await }).await
    }

    /// Obtains a token with more scopes after a response with status 403.
    pub(crate) async fn step_up(
        self: &Arc<Self>,
        used: Option<Arc<CurrentToken>>,
        challenge: ChallengeParams,
        operation: String,
    ) -> Result<Arc<CurrentToken>, OAuthError> {
        let flow = Arc::clone(self);
        run_in_task(async move { flow.step_up_locked(used, &challenge, operation).await }).await
    }

    /// Records that the server has accepted a token.
    pub(crate) fn record_accepted_token(&self) {
        self.rejected_tokens.store(0, Ordering::Relaxed);
    }

    /// Resets the count of authorizations for an operation that succeeded.
    pub(crate) fn record_success(&self, operation: &str) {
        if let Ok(mut state) = self.state.try_lock() {
            state.authorization_counts.remove(operation);
        }
    }

    /// Removes the token from memory and from the token store, and resets the state of the authorization.
    pub(crate) async fn sign_out(&self) -> Result<(), OAuthError> {
        let mut state = self.state.lock().await;
        *state = FlowState::default();
        self.record_accepted_token();
        self.set_current_token(None);
        self.is_unstored.store(false, Ordering::Release);
        self.stored_records.remove(&self.key).await
    }

    /// Refreshes a token that expires soon, unless another task or process has done so.
    async fn refresh_early(
        &self,
        used: Arc<CurrentToken>,
    ) -> Result<Arc<CurrentToken>, OAuthError> {
        let _state = self.state.lock().await;
        if let Some(current) = self.current_other_than(Some(&used)) {
            return Ok(current);
        }
        let _lock = self.stored_records.lock(&self.key).await?;
        if let Some(token) = self.adopt_other_process_token(Some(&used)).await? {
            return Ok(token);
        }
        let used = self.newest_token(&used).await?;
        let stored = &used.stored;
        let server = if stored.is_assumed {
            ServerMetadata::assumed_for_origin(&stored.issuer)
        } else {
            fetch_server_metadata(&self.metadata_client, &self.options, &stored.issuer).await?
        };
        match self.refresh_token(&used, &server).await {
            Err(OAuthError::Token { .. }) => {
                // The token is still valid for a short time and is not refreshed again.
                self.store_and_use(StoredToken {
                    refresh_token: None,
                    ..stored.clone()
                })
                .await
            }
            refreshed => refreshed,
        }
    }

    /// Obtains a new token under the lock, unless another task or process has done so.
    async fn renew_locked(
        &self,
        used: Option<Arc<CurrentToken>>,
        challenge: &ChallengeParams,
        may_refresh: bool,
    ) -> Result<(Arc<CurrentToken>, TokenOrigin), OAuthError> {
        let mut state = self.state.lock().await;
        if let Some(current) = self.current_other_than(used.as_ref()) {
            return Ok((current, TokenOrigin::Adopted));
        }
        // The user may have resolved the error in another process.
        if let Some(token) = self.adopt_other_process_token(used.as_ref()).await? {
            return Ok((token, TokenOrigin::Adopted));
        }
        if let Some(error) = state.permanent_error() {
            return Err(error);
        }
        let _lock = self.stored_records.lock(&self.key).await?;
        if let Some(token) = self.adopt_other_process_token(used.as_ref()).await? {
            return Ok((token, TokenOrigin::Adopted));
        }
        let obtained = self
            .obtain_token(used.as_ref(), challenge, may_refresh)
            .await;
        if let Err(error) = &obtained {
            state.record(error);
        }
        obtained
    }

    /// Discovers the authorization server, then refreshes the token or obtains a new one by the configured grant.
    async fn obtain_token(
        &self,
        used: Option<&Arc<CurrentToken>>,
        challenge: &ChallengeParams,
        may_refresh: bool,
    ) -> Result<(Arc<CurrentToken>, TokenOrigin), OAuthError> {
        // If the resource uses another authorization server now, nothing of the old one is sent to the new one.
        let found = discover_authorization(
            &self.metadata_client,
            &self.options,
            &self.endpoint,
            challenge,
        )
        .await?;
        let newest = match used {
            Some(used) => Some(self.newest_token(used).await?),
            None => None,
        };
        let known = newest.filter(|token| token.stored.issuer == found.server.issuer);
        if let Some(token) = &known
            && may_refresh
            && token.stored.refresh_token.is_some()
        {
            match self.refresh_token(token, &found.server).await {
                Ok(token) => return Ok((token, TokenOrigin::Refreshed)),
                Err(error) if error.is_transient() => return Err(error),
                Err(_) => {}
            }
        }
        // Without a limit, each call would ask the user again if the server rejects every token.
        if let Some(token) = used.filter(|token| !token.stored.expires_within(0, unix_time()))
            && self.rejected_tokens.fetch_add(1, Ordering::Relaxed) >= MAX_AUTHORIZATION_ROUNDS
        {
            return Err(token.rejection_error(challenge));
        }
        let scopes = self.scopes_to_request(challenge, &found, known.as_ref());
        let token = self.authorize(&found, scopes).await?;
        Ok((token, TokenOrigin::Authorized))
    }

    /// Obtains a token with more scopes under the lock, unless the token in use has them.
    async fn step_up_locked(
        &self,
        used: Option<Arc<CurrentToken>>,
        challenge: &ChallengeParams,
        operation: String,
    ) -> Result<Arc<CurrentToken>, OAuthError> {
        let mut state = self.state.lock().await;
        let wanted = challenge.scopes.clone().unwrap_or_default();
        let has_all = |token: &CurrentToken| token.stored.requested_scopes.contains_all(&wanted);
        if let Some(current) = self.current_other_than(used.as_ref())
            && has_all(&current)
        {
            return Ok(current);
        }
        if let Some(error) = state.permanent_error() {
            return Err(error);
        }
        let rounds = state
            .authorization_counts
            .entry(operation.clone())
            .or_default();
        if *rounds >= MAX_AUTHORIZATION_ROUNDS {
            return Err(OAuthError::StepUpLimit {
                operation,
                scopes: wanted.to_string(),
                attempts: *rounds,
            });
        }
        let _lock = self.stored_records.lock(&self.key).await?;
        let known = match self.adopt_other_process_token(used.as_ref()).await? {
            Some(token) if has_all(&token) => return Ok(token),
            // Keeps scopes that another operation has obtained meanwhile.
            _ => self.current_token().or(used),
        };
        *rounds += 1;
        let found = discover_authorization(
            &self.metadata_client,
            &self.options,
            &self.endpoint,
            challenge,
        )
        .await?;
        let known = known.filter(|token| token.stored.issuer == found.server.issuer);
        let scopes = self.scopes_to_request(challenge, &found, known.as_ref());
        // A refresh cannot add scopes (RFC 6749, section 6).
        self.authorize(&found, scopes).await
    }

    /// Returns the current token if it differs from `used`.
    fn current_other_than(&self, used: Option<&Arc<CurrentToken>>) -> Option<Arc<CurrentToken>> {
        let current = self.current_token()?;
        let is_other = used.is_none_or(|used| !Arc::ptr_eq(used, &current));
        is_other.then_some(current)
    }

    /// Adopts a token that another process has stored meanwhile.
    async fn adopt_other_process_token(
        &self,
        used: Option<&Arc<CurrentToken>>,
    ) -> Result<Option<Arc<CurrentToken>>, OAuthError> {
        if !self.is_store_current().await {
            return Ok(None);
        }
        let Some(stored) = self.stored_records.read::<StoredToken>(&self.key).await? else {
            return Ok(None);
        };
        let is_used = used.is_some_and(|used| used.stored.access_token == stored.access_token);
        if is_used || stored.expires_within(0, unix_time()) {
            return Ok(None);
        }
        let token = CurrentToken::new(stored)?;
        self.set_current_token(Some(Arc::clone(&token)));
        Ok(Some(token))
    }

    /// Returns the token whose refresh token is the latest: one that another process has stored, although it has expired, or `used`.
    async fn newest_token(
        &self,
        used: &Arc<CurrentToken>,
    ) -> Result<Arc<CurrentToken>, OAuthError> {
        if !self.is_store_current().await {
            return Ok(Arc::clone(used));
        }
        let stored = self.stored_records.read::<StoredToken>(&self.key).await?;
        let is_newer = |stored: &StoredToken| {
            stored.access_token != used.stored.access_token && stored.refresh_token.is_some()
        };
        match stored.filter(is_newer) {
            Some(stored) => CurrentToken::new(stored),
            None => Ok(Arc::clone(used)),
        }
    }

    /// Returns true unless the token in use could not be stored. In that case, tries to store it again.
    async fn is_store_current(&self) -> bool {
        if !self.is_unstored.load(Ordering::Acquire) {
            return true;
        }
        let Some(token) = self.current_token() else {
            return true;
        };
        let written = self.stored_records.write(&self.key, &token.stored).await;
        if written.is_ok() {
            self.is_unstored.store(false, Ordering::Release);
        }
        written.is_ok()
    }

    /// Returns the scopes to request ("Scope Selection Strategy"): the scopes of the challenge, or else all scopes of
    /// the resource, and the previously requested scopes. The scopes that the authorization server lists are never
    /// used.
    fn scopes_to_request(
        &self,
        challenge: &ChallengeParams,
        found: &DiscoveryResult,
        known: Option<&Arc<CurrentToken>>,
    ) -> Scopes {
        let before = known.map_or(Scopes::default(), |token| {
            token.stored.requested_scopes.clone()
        });
        let named = challenge.scopes.as_ref().or(found.scopes.as_ref());
        let named = named.cloned().unwrap_or_default();
        let scopes = before.union(&named).union(&self.options.scopes);
        let offline = Scopes::parse("offline_access");
        let is_listed =
            ServerMetadata::lists_value(&found.server.scopes_supported, "offline_access");
        let wants_offline = self.options.requests_refresh_tokens
            && matches!(self.options.grant, GrantKind::AuthorizationCode);
        if is_listed == Some(true) && wants_offline {
            scopes.union(&offline)
        } else {
            scopes
        }
    }

    /// Exchanges the refresh token for a new token.
    async fn refresh_token(
        &self,
        token: &CurrentToken,
        server: &ServerMetadata,
    ) -> Result<Arc<CurrentToken>, OAuthError> {
        let old = &token.stored;
        let secret = old.refresh_token.clone().unwrap_or_default();
        let client = self.known_client(&old.client_id, server).await?;
        let resource = Some(&*old.resource).filter(|_| old.sends_resource);
        let form = || {
            TokenRequest::new("refresh_token")
                .set_param("refresh_token", secret.expose())
                .set_optional_param("resource", resource)
                .set_scopes(&old.granted_scopes)
        };
        let issued = self
            .request_token(&form, &client, server, token.key.as_ref())
            .await?;
        let stored = StoredToken {
            access_token: issued.access_token,
            // Without a new refresh token, the old one stays valid (RFC 6749, section 6).
            refresh_token: Some(issued.refresh_token.unwrap_or(secret)),
            is_dpop: issued.is_dpop,
            expires_at: issued.expires_in.map(unix_time_after),
            granted_scopes: issued.scopes.unwrap_or_else(|| old.granted_scopes.clone()),
            ..old.clone()
        };
        self.store_and_use(stored).await
    }

    /// Stores a token, and then uses it for requests. A token that cannot be stored, for example because the disk is full, is used
    /// nevertheless and stored later: the refresh token before it may have ended with its use.
    async fn store_and_use(&self, stored: StoredToken) -> Result<Arc<CurrentToken>, OAuthError> {
        let written = self.stored_records.write(&self.key, &stored).await;
        if let Err(error) = &written {
            log_problem("a token is kept in memory alone for now", error);
        }
        self.is_unstored.store(written.is_err(), Ordering::Release);
        let token = CurrentToken::new(stored)?;
        self.set_current_token(Some(Arc::clone(&token)));
        Ok(token)
    }

    /// Sends a token request and parses the token response.
    async fn request_token(
        &self,
        form: &(dyn Fn() -> TokenRequest + Sync),
        client: &ClientId,
        server: &ServerMetadata,
        key: Option<&DpopKey>,
    ) -> Result<IssuedToken, OAuthError> {
        let (url, response) = self.send_token_request(form, client, server, key).await?;
        let issued = parse_token_response(&url, response.status.as_u16(), &response.body);
        if let Err(OAuthError::Token { error, .. }) = &issued
            && error == "invalid_client"
            && client.is_dynamic
        {
            // The server has deleted the registration: the next attempt registers again.
            self.stored_records
                .remove(&client_key(&server.issuer))
                .await?;
        }
        let issued = issued?;
        if issued.is_dpop && key.is_none() {
            Err(OAuthError::BadToken {
                url,
                reason: "it is bound to a key that the client does not have".to_owned(),
            })
        } else {
            Ok(issued)
        }
    }

    /// Sends a token request, and repeats it once if the server requires a nonce in the DPoP proof (RFC 9449, section
    /// 8).
    async fn send_token_request(
        &self,
        form: &(dyn Fn() -> TokenRequest + Sync),
        client: &ClientId,
        server: &ServerMetadata,
        key: Option<&DpopKey>,
    ) -> Result<(String, Response), OAuthError> {
        let missing = || OAuthError::NoEndpoint {
            issuer: server.issuer.clone(),
            endpoint: "token_endpoint",
        };
        let url = server.token_endpoint.clone().ok_or_else(missing)?;
        let mut has_retried = false;
        loop {
            let request =
                form().authenticate(&client.id, &client.credential, server, unix_time())?;
            let (mut headers, body) = request.into_parts();
            if let Some(key) = key {
                let nonce = self.latest_nonce(&url);
                let proof = key.dpop_proof("POST", &url, None, nonce.as_deref(), unix_time())?;
                headers.insert(DPOP_HEADER, secret_header(proof.expose())?);
            }
            let kind = "application/x-www-form-urlencoded";
            let posted = self
                .metadata_client
                .post("the token endpoint", &url, kind, headers, body);
            let response = posted.await?;
            let has_nonce = self.record_nonce(&url, &response.headers);
            let wants_nonce = response.status == 400
                && has_nonce
                && key.is_some()
                && matches!(
                    parse_token_response(&url, 400, &response.body),
                    Err(OAuthError::Token { error, .. }) if error == "use_dpop_nonce"
                );
            if !wants_nonce || std::mem::replace(&mut has_retried, true) {
                return Ok((url, response));
            }
        }
    }
}

/// Runs a future in a task, so that it completes even if the request is cancelled: input of the user is not lost.
async fn run_in_task<T: Send + 'static>(
    work: impl Future<Output = Result<T, OAuthError>> + Send + 'static,
) -> Result<T, OAuthError> {
    let ended = tokio::spawn(work).await;
    ended.unwrap_or_else(|error| {
        Err(OAuthError::UserAgent(format!(
            "a task ended early: {error}"
        )))
    })
}

/// Returns the Unix time that is `seconds` from now, without overflow: servers may send any number.
fn unix_time_after(seconds: u64) -> u64 {
    unix_time().saturating_add(seconds)
}

/// Returns the Unix time in seconds.
fn unix_time() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_secs())
}
