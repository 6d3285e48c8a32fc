//! The authorization request and the validation of its redirect (RFC 6749, section 4.1; RFC 9207).
//!
//! Creates the URL for the browser and validates the query of the redirect, without IO.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};
use url::Url;
use url::form_urlencoded;

use super::error::OAuthError;
use super::pkce::{Verifier, random_string};
use crate::locate;
use crate::metadata::{ServerMetadata, to_short_line};
use crate::scope::Scopes;
use crate::secret::{Secret, serialize_secret};

/// Maximum time for the user to complete the authorization.
pub(crate) const AUTHORIZATION_LIFETIME: Duration = Duration::from_secs(600);

/// Parameters of an authorization request's URL.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AuthorizationParams<'a> {
    pub(crate) client_id: &'a str,
    pub(crate) redirect_uri: &'a str,
    /// Value of `resource` (RFC 8707); `None` for 2025-03-26 servers.
    pub(crate) resource: Option<&'a str>,
    pub(crate) scopes: &'a Scopes,
    /// Further parameters.
    pub(crate) others: &'a [(String, String)],
}

/// Parameters that this client sets itself, if at all.
const RESERVED_PARAMETERS: [&str; 14] = [
    "client_id",
    "client_secret",
    "code",
    "code_challenge",
    "code_challenge_method",
    "code_verifier",
    "dpop_jkt",
    "redirect_uri",
    "request",
    "request_uri",
    "resource",
    "response_mode",
    "response_type",
    "state",
];

/// Checks that a parameter of the application is not one of the protocol, nor there twice.
pub(crate) fn check_parameters(parameters: &[(String, String)]) -> Result<(), OAuthError> {
    for (at, (name, _)) in parameters.iter().enumerate() {
        let is_repeated = parameters[..at].iter().any(|(known, _)| known == name);
        let is_own = RESERVED_PARAMETERS.contains(&&**name) || name == "scope";
        if name.is_empty() || is_repeated || is_own {
            return Err(OAuthError::Parameter { name: name.clone() });
        }
    }
    Ok(())
}

/// An authorization request that waits for its redirect and accepts one redirect.
#[derive(Debug)]
pub(crate) struct PendingAuthorization {
    /// Value of `state`.
    state: Secret,
    /// PKCE code verifier.
    verifier: Verifier,
    /// Issuer of the authorization server.
    issuer: String,
    /// True if the redirect must contain `iss`.
    requires_iss: bool,
    /// Redirect URI of the request.
    redirect_uri: String,
    /// Time after which the redirect is rejected.
    expires: SystemTime,
}

/// Code of a valid redirect, and the parameters that the token request repeats.
#[derive(Debug)]
pub(crate) struct CodeGrantResult {
    /// Authorization code.
    pub(crate) code: Secret,
    /// PKCE code verifier.
    pub(crate) verifier: Secret,
    /// Redirect URI of the authorization request.
    pub(crate) redirect_uri: String,
}

/// Pending authorization request, in the format of a store.
#[derive(Serialize, Deserialize)]
struct StoredAuthorization {
    #[serde(serialize_with = "serialize_secret")]
    state: Secret,
    #[serde(serialize_with = "serialize_secret")]
    verifier: Secret,
    issuer: String,
    requires_iss: bool,
    redirect_uri: String,
    /// Unix time in seconds.
    expires: u64,
}

impl PendingAuthorization {
    /// Returns the request as a text for a store that keeps secrets.
    pub(crate) fn to_text(&self) -> Secret {
        let expires = self.expires.duration_since(UNIX_EPOCH).unwrap_or_default();
        let stored = StoredAuthorization {
            state: self.state.clone(),
            verifier: self.verifier.secret().clone(),
            issuer: self.issuer.clone(),
            requires_iss: self.requires_iss,
            redirect_uri: self.redirect_uri.clone(),
            expires: expires.as_secs(),
        };
        Secret::new(serde_json::to_string(&stored).unwrap_or_default())
    }

    /// Restores a request from its text; `None` if the text is of none.
    pub(crate) fn from_text(text: &Secret) -> Option<Self> {
        let stored: StoredAuthorization = serde_json::from_str(text.expose()).ok()?;
        Some(Self {
            state: stored.state,
            verifier: Verifier::from_secret(stored.verifier),
            issuer: stored.issuer,
            requires_iss: stored.requires_iss,
            redirect_uri: stored.redirect_uri,
            expires: UNIX_EPOCH.checked_add(Duration::from_secs(stored.expires))?,
        })
    }

    /// Returns the issuer of the authorization server.
    pub(crate) fn issuer(&self) -> &str {
        &self.issuer
    }

    /// Returns the redirect URI of the request.
    pub(crate) fn redirect_uri(&self) -> &str {
        &self.redirect_uri
    }

    /// Returns true if the query of a redirect names this request by `state`.
    pub(crate) fn is_answered_by(&self, query: &Secret) -> bool {
        let parameters = QueryParameters::parse(query.expose());
        let state = parameters.single_value("state").ok().flatten();
        state.is_some_and(|state| Secret::from(state) == self.state)
    }

    /// Creates an authorization request; returns the request and the URL that the browser must open.
    pub(crate) fn begin_authorization(
        server: &ServerMetadata,
        params: AuthorizationParams<'_>,
        now: SystemTime,
    ) -> Result<(Self, Url), OAuthError> {
        let missing = || OAuthError::NoEndpoint {
            issuer: server.issuer.clone(),
            endpoint: "authorization_endpoint",
        };
        let endpoint = server.authorization_endpoint.as_deref();
        let endpoint = endpoint.ok_or_else(missing)?;
        let mut url = locate::parse_url(endpoint).ok_or_else(|| OAuthError::Url {
            what: "the authorization endpoint",
            url: endpoint.to_owned(),
            reason: "it is not an HTTP URL".to_owned(),
        })?;
        let pending = Self {
            state: Secret::new(random_string()?),
            verifier: Verifier::new()?,
            issuer: server.issuer.clone(),
            requires_iss: server.authorization_response_iss_parameter_supported == Some(true),
            redirect_uri: params.redirect_uri.to_owned(),
            expires: now + AUTHORIZATION_LIFETIME,
        };
        url.set_fragment(None);
        let scopes = params.scopes.to_string();
        let challenge = pending.verifier.challenge();
        let mut sent = vec![
            ("response_type", "code"),
            ("client_id", params.client_id),
            ("redirect_uri", params.redirect_uri),
            ("state", pending.state.expose()),
            ("code_challenge", &challenge),
            ("code_challenge_method", "S256"),
        ];
        if !params.scopes.is_empty() {
            sent.push(("scope", &scopes));
        }
        if params.scopes.contains("offline_access") {
            // OpenID Connect Core, section 11: without `prompt=consent`, the scope is ignored.
            sent.push(("prompt", "consent"));
        }
        sent.extend(params.resource.map(|resource| ("resource", resource)));
        let others = params
            .others
            .iter()
            .map(|(name, value)| (&**name, &**value));
        sent.retain(|(known, _)| params.others.iter().all(|(name, _)| name != known));
        sent.extend(others);
        // Some endpoints have parameters of their own. One that is sent here replaces them: "Request and response parameters MUST
        // NOT be included more than once" (RFC 6749, section 3.1).
        let own: Vec<_> = url.query_pairs().into_owned().collect();
        let own = own
            .iter()
            .filter(|(name, _)| sent.iter().all(|(known, _)| known != name));
        url.set_query(None);
        let mut query = url.query_pairs_mut();
        query.extend_pairs(own).extend_pairs(&sent);
        drop(query);
        Ok((pending, url))
    }

    /// Validates the query of the redirect and returns its code. Checks `state` first and `iss` second, before it uses
    /// or displays any other parameter.
    pub(crate) fn accept_redirect(
        self,
        query: &Secret,
        now: SystemTime,
    ) -> Result<CodeGrantResult, OAuthError> {
        let refused = |reason: &str| OAuthError::Callback {
            issuer: self.issuer.clone(),
            reason: reason.to_owned(),
        };
        let parameters = QueryParameters::parse(query.expose());
        let parameter = |name: &str| {
            parameters
                .single_value(name)
                .map_err(|RepeatedParameter| refused(&format!("`{name}` is repeated")))
        };
        match parameter("state")? {
            Some(state) if Secret::from(state) == self.state => {}
            _ => return Err(refused("`state` is not the one of the request")),
        }
        if now > self.expires {
            return Err(refused("it came too late; try again"));
        }
        match parameter("iss")? {
            // RFC 9207, section 2.4: simple string comparison, without normalization.
            Some(iss) if iss != self.issuer => {
                return Err(refused(
                    "`iss` names another issuer, so the answer may come from another authorization server",
                ));
            }
            None if self.requires_iss => {
                return Err(refused(
                    "`iss` is missing, though the metadata promises it (RFC 9207)",
                ));
            }
            _ => {}
        }
        if let Some(error) = parameter("error")? {
            return Err(OAuthError::Refused {
                issuer: self.issuer,
                error: to_short_line(error),
                description: parameters
                    .single_value("error_description")
                    .ok()
                    .flatten()
                    .map(to_short_line),
            });
        }
        let code = parameter("code")?.filter(|code| !code.is_empty());
        Ok(CodeGrantResult {
            code: Secret::new(code.ok_or_else(|| refused("`code` is missing"))?),
            verifier: self.verifier.secret().clone(),
            redirect_uri: self.redirect_uri,
        })
    }
}

/// Error for a parameter that occurs several times in a redirect.
struct RepeatedParameter;

/// Decoded parameters of a query.
struct QueryParameters<'q>(Vec<(std::borrow::Cow<'q, str>, std::borrow::Cow<'q, str>)>);

impl<'q> QueryParameters<'q> {
    /// Decodes a query.
    fn parse(query: &'q str) -> Self {
        Self(form_urlencoded::parse(query.as_bytes()).collect())
    }

    /// Returns the value of a parameter.
    ///
    /// # Errors
    /// [`RepeatedParameter`] if the parameter occurs several times.
    fn single_value(&self, name: &str) -> Result<Option<&str>, RepeatedParameter> {
        let mut values = self.0.iter().filter(|(known, _)| known == name);
        let first = values.next().map(|(_, value)| &**value);
        match values.next() {
            Some(_) => Err(RepeatedParameter),
            None => Ok(first),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Issuer of the test server.
    const ISSUER: &str = "https://as.example";

    /// Creates a request with `state` and PKCE at a server that lists the parameter `iss` or not.
    fn begin_authorization(advertises_iss: bool) -> (PendingAuthorization, Url) {
        let server = ServerMetadata {
            issuer: ISSUER.to_owned(),
            authorization_endpoint: Some(format!(
                "{ISSUER}/authorize?tenant=1&resource=x&state=x&prompt=login#x"
            )),
            authorization_response_iss_parameter_supported: Some(advertises_iss),
            ..ServerMetadata::default()
        };
        let others = [("audience", "x y"), ("tenant", "2")];
        let others = others.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let params = AuthorizationParams {
            client_id: "a client",
            redirect_uri: "http://127.0.0.1:7/callback",
            resource: Some("https://mcp.example"),
            scopes: &Scopes::parse("a b"),
            others: &others,
        };
        PendingAuthorization::begin_authorization(&server, params, SystemTime::UNIX_EPOCH)
            .expect("a request")
    }

    /// Returns a parameter of a URL; empty if it is absent.
    fn parameter(url: &Url, name: &str) -> String {
        let mut pairs = url.query_pairs();
        let found = pairs.find(|(known, _)| known == name);
        found
            .map(|(_, value)| value.into_owned())
            .unwrap_or_default()
    }

    /// Parameters of the application are further ones, once each.
    #[test]
    fn parameters_of_the_protocol_are_refused() {
        let check = |names: &[&str]| {
            let all = names.iter().map(|&name| (name.to_owned(), String::new()));
            check_parameters(&all.collect::<Vec<_>>()).is_ok()
        };
        assert!(check(&["audience", "prompt"]));
        for names in [
            &["state"][..],
            &["scope"],
            &["resource"],
            &[""],
            &["a", "a"],
        ] {
            assert!(!check(names), "{names:?}");
        }
    }

    /// The authorization URL contains `resource`, `state`, the PKCE challenge and the scopes.
    #[test]
    fn requests_contain_resource_and_challenge() {
        let (pending, url) = begin_authorization(false);
        assert!(url.as_str().starts_with(
            "https://as.example/authorize?prompt=login&response_type=code&client_id=a+client&redirect_uri=http%3A%2F%2F127.0.0.1%3A7%2Fcallback&state="
        ), "{url}");
        assert_eq!(
            parameter(&url, "code_challenge"),
            pending.verifier.challenge()
        );
        for (name, value) in [
            ("code_challenge_method", "S256"),
            ("scope", "a b"),
            ("resource", "https://mcp.example"),
            ("audience", "x y"),
            ("tenant", "2"),
        ] {
            assert_eq!(parameter(&url, name), value);
        }
        // What the endpoint has already is sent once.
        let mut names: Vec<_> = url.query_pairs().map(|(name, _)| name).collect();
        names.sort();
        let count = names.len();
        names.dedup();
        assert_eq!(names.len(), count, "{url}");
        assert_eq!(url.fragment(), None);
    }

    /// Redirects that are rejected or accepted, with the error or the code (RFC 9207, section 2.4; RFC 6749, section
    /// 4.1.2).
    #[test]
    fn redirects_are_validated() {
        let right = "https%3A%2F%2Fas.example";
        for (advertises_iss, query, expected) in [
            (false, "code=c&state=S", Ok("c")),
            (true, &format!("code=c&state=S&iss={right}"), Ok("c")),
            (false, &format!("code=c&state=S&iss={right}"), Ok("c")),
            (false, "code=c", Err("`state`")),
            (false, "code=c&state=other", Err("`state`")),
            (false, "code=c&state=S&state=S", Err("`state` is repeated")),
            (false, "code=c&code=d&state=S", Err("`code` is repeated")),
            (true, "code=c&state=S", Err("`iss` is missing")),
            (true, "error=access_denied&state=S", Err("`iss` is missing")),
            (
                false,
                "code=c&state=S&iss=https%3A%2F%2Fas.example%2F",
                Err("`iss` names another"),
            ),
            (
                false,
                "error=x&state=S&iss=https%3A%2F%2Fevil.example",
                Err("`iss` names another"),
            ),
            (
                false,
                &format!("code=c&state=S&iss={right}&iss={right}"),
                Err("`iss` is repeated"),
            ),
            (false, "state=S", Err("`code` is missing")),
            (false, "code=&state=S", Err("`code` is missing")),
            (
                false,
                "error=access_denied&error_description=no%0Aline&state=S",
                Err("access_denied (no line)"),
            ),
        ] {
            let (pending, url) = begin_authorization(advertises_iss);
            let state = parameter(&url, "state");
            let query = Secret::new(query.replace("state=S", &format!("state={state}")));
            let answered = pending.accept_redirect(&query, SystemTime::UNIX_EPOCH);
            match (answered, expected) {
                (Ok(grant), Ok(code)) => assert_eq!(grant.code.expose(), code),
                (Err(error), Err(message)) => {
                    assert!(error.to_string().contains(message), "{error}");
                }
                (answered, _) => panic!("{query:?}: {answered:?}"),
            }
        }
    }

    /// A redirect is accepted for ten minutes, and not later.
    #[test]
    fn late_redirects_are_refused() {
        for (seconds, is_accepted) in [(600, true), (601, false)] {
            let (pending, url) = begin_authorization(false);
            let query = Secret::new(format!("code=c&state={}", parameter(&url, "state")));
            let now = SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
            assert_eq!(pending.accept_redirect(&query, now).is_ok(), is_accepted);
        }
    }
}
