//! Discovery of the authorization server's metadata from the endpoint of an MCP server ("Authorization Server
//! Discovery").

use url::Url;

use super::error::OAuthError;
use super::fetch::MetadataClient;
use super::options::{DpopPolicy, GrantKind, OAuth};
use crate::challenge::Challenge;
use crate::locate;
use crate::metadata::{
    MetadataResponse, ResourceMetadata, ServerMetadata, parse_metadata_response, to_short_line,
};
use crate::scope::Scopes;

/// Name of the resource metadata in errors.
const RESOURCE_METADATA: &str = "the resource metadata";
/// Name of the authorization server's metadata in errors.
const SERVER_METADATA: &str = "the metadata of the authorization server";

/// Parameters of the authorization challenge in a response with status 401 or 403.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ChallengeParams {
    /// URL of the resource metadata (`resource_metadata`).
    pub(crate) metadata_url: Option<String>,
    /// Required scopes (`scope`).
    pub(crate) scopes: Option<Scopes>,
    /// Error code (`error`).
    pub(crate) error: Option<String>,
    /// Error description (`error_description`).
    pub(crate) description: Option<String>,
    /// True if a challenge has the scheme DPoP: the server requires a token that is bound to a key.
    pub(crate) wants_dpop: bool,
}

impl ChallengeParams {
    /// Parses the challenges of a response. Bearer and DPoP challenges are used in any position; other schemes are
    /// ignored.
    pub(crate) fn from_headers(challenges: &[Challenge]) -> Self {
        let of_scheme = |scheme| {
            challenges
                .iter()
                .find(|challenge| challenge.has_scheme(scheme))
        };
        let (bearer, dpop) = (of_scheme("Bearer"), of_scheme("DPoP"));
        let Some(challenge) = bearer.or(dpop) else {
            return Self::default();
        };
        // With both schemes, each challenge may contain parameters that the other omits.
        let param = |name| {
            let mut both = [Some(challenge), dpop].into_iter().flatten();
            both.find_map(|challenge| challenge.param(name))
        };
        Self {
            metadata_url: param("resource_metadata").map(str::to_owned),
            scopes: param("scope")
                .map(Scopes::parse)
                .filter(|scopes| !scopes.is_empty()),
            error: param("error").map(str::to_owned),
            description: param("error_description").map(to_short_line),
            wants_dpop: bearer.is_none(),
        }
    }
}

/// Result of discovery.
#[derive(Debug, Clone)]
pub(crate) struct DiscoveryResult {
    /// Identifier of the resource.
    pub(crate) resource: String,
    /// True if `resource` is sent to the authorization server.
    pub(crate) sends_resource: bool,
    /// Metadata of the authorization server.
    pub(crate) server: ServerMetadata,
    /// True if the metadata is assumed because the server publishes none (2025-03-26).
    pub(crate) is_assumed: bool,
    /// Scopes in the resource metadata.
    pub(crate) scopes: Option<Scopes>,
    /// True if the resource requires tokens that are bound to a key.
    pub(crate) requires_dpop: bool,
}

/// Discovers the resource and its authorization server.
pub(crate) async fn discover_authorization(
    fetch: &MetadataClient,
    options: &OAuth,
    endpoint: &Url,
    challenge: &ChallengeParams,
) -> Result<DiscoveryResult, OAuthError> {
    let found = fetch_resource_metadata(fetch, endpoint, challenge.metadata_url.as_deref()).await?;
    let Some((url, metadata)) = found else {
        return fetch_origin_metadata(fetch, options, endpoint).await;
    };
    let is_wanted = match &options.resource {
        Some(wanted) => metadata.resource == *wanted,
        None => locate::is_metadata_of(&metadata.resource, &url, endpoint),
    };
    if !is_wanted {
        return Err(OAuthError::ResourceMismatch {
            url,
            resource: locate::url_for_logs(&metadata.resource),
            endpoint: match &options.resource {
                Some(wanted) => locate::url_for_logs(wanted),
                None => locate::url_for_logs(endpoint.as_str()),
            },
        });
    }
    let issuer = choose_issuer(options, &url, &metadata.authorization_servers)?;
    let server = fetch_server_metadata(fetch, options, &issuer).await?;
    let supports = ServerMetadata::lists_value(&server.dpop_signing_alg_values_supported, "ES256");
    let is_demanded =
        challenge.wants_dpop || metadata.dpop_bound_access_tokens_required == Some(true);
    Ok(DiscoveryResult {
        resource: metadata.resource,
        sends_resource: options.sends_resource,
        is_assumed: false,
        scopes: metadata
            .scopes_supported
            .map(|scopes| scopes.into_iter().collect()),
        requires_dpop: match options.dpop {
            DpopPolicy::Never => false,
            DpopPolicy::WhenRequired => is_demanded,
            DpopPolicy::WhenSupported => is_demanded || supports == Some(true),
        },
        server,
    })
}

/// Returns the issuer to use: the configured issuer if the resource metadata lists it, or the first listed issuer. The
/// string of the issuer is not normalized.
fn choose_issuer(options: &OAuth, url: &str, named: &[String]) -> Result<String, OAuthError> {
    let Some(wanted) = &options.issuer else {
        let first = named.first().cloned();
        return first.ok_or_else(|| OAuthError::NoAuthorizationServer {
            url: url.to_owned(),
        });
    };
    let mut named_like_it = named.iter();
    let found = named_like_it.find(|issuer| locate::is_same_issuer(issuer, wanted));
    found.cloned().ok_or_else(|| OAuthError::IssuerNotListed {
        issuer: wanted.clone(),
        listed_issuers: named.to_vec(),
    })
}

/// Fetches the metadata of the resource; returns `None` if no well-known URL has a document.
async fn fetch_resource_metadata(
    fetch: &MetadataClient,
    endpoint: &Url,
    named: Option<&str>,
) -> Result<Option<(String, ResourceMetadata)>, OAuthError> {
    let candidates = match named {
        Some(url) => vec![url.to_owned()],
        None => locate::resource_metadata_urls(endpoint),
    };
    let mut unreadable = None;
    for url in candidates {
        let response = fetch.get(RESOURCE_METADATA, &url).await?;
        match parse_metadata_response(response.status.as_u16(), &response.body) {
            MetadataResponse::Found(metadata) => return Ok(Some((url, metadata))),
            MetadataResponse::Unavailable => {
                return Err(metadata_error(RESOURCE_METADATA, url, response.status));
            }
            MetadataResponse::Unreadable(reason) => {
                unreadable.get_or_insert_with(|| unreadable_error(RESOURCE_METADATA, &url, reason));
            }
            MetadataResponse::Absent => {}
        }
    }
    if let Some(unreadable) = unreadable {
        return Err(unreadable);
    }
    match named {
        Some(url) => Err(OAuthError::NoResourceMetadata {
            url: url.to_owned(),
        }),
        None => Ok(None),
    }
}

/// Returns the error for a temporary problem of the server at the URL of a metadata document.
fn metadata_error(what: &'static str, url: String, status: http::StatusCode) -> OAuthError {
    OAuthError::Unavailable {
        what,
        url,
        reason: format!("the server answered with status {}", status.as_u16()),
    }
}

/// Fetches and validates the metadata of an issuer.
pub(crate) async fn fetch_server_metadata(
    fetch: &MetadataClient,
    options: &OAuth,
    issuer: &str,
) -> Result<ServerMetadata, OAuthError> {
    let url = fetch.check_url("the issuer", issuer)?;
    let tried = locate::server_metadata_urls(&url);
    match fetch_first_document(fetch, &tried).await? {
        Some((url, server)) => check_metadata(options, &url, issuer, server),
        None => Err(OAuthError::NoServerMetadata {
            issuer: issuer.to_owned(),
            tried_urls: tried,
        }),
    }
}

/// Requests the URLs in order, and returns the first existing document with its URL.
async fn fetch_first_document(
    fetch: &MetadataClient,
    urls: &[String],
) -> Result<Option<(String, ServerMetadata)>, OAuthError> {
    let mut unreadable = None;
    for url in urls {
        let response = fetch.get(SERVER_METADATA, url).await?;
        match parse_metadata_response(response.status.as_u16(), &response.body) {
            MetadataResponse::Found(server) => return Ok(Some((url.clone(), server))),
            MetadataResponse::Unavailable => {
                return Err(metadata_error(
                    SERVER_METADATA,
                    url.clone(),
                    response.status,
                ));
            }
            MetadataResponse::Unreadable(reason) => {
                unreadable.get_or_insert_with(|| unreadable_error(SERVER_METADATA, url, reason));
            }
            MetadataResponse::Absent => {}
        }
    }
    unreadable.map_or(Ok(None), Err)
}

/// Returns the error for a document that is JSON, but not metadata.
fn unreadable_error(what: &'static str, url: &str, reason: String) -> OAuthError {
    OAuthError::Unreadable {
        what,
        url: url.to_owned(),
        reason,
    }
}

/// Checks that metadata belongs to the issuer, and that it lists PKCE if the grant uses an authorization code.
fn check_metadata(
    options: &OAuth,
    url: &str,
    issuer: &str,
    server: ServerMetadata,
) -> Result<ServerMetadata, OAuthError> {
    let ignores_slash = || {
        let mut named = options.ignores_slash_of.iter();
        named.any(|known| locate::is_same_issuer(known, issuer))
    };
    let is_same = server.issuer == issuer
        || (locate::is_same_issuer(&server.issuer, issuer) && ignores_slash());
    if !is_same {
        return Err(OAuthError::IssuerMismatch {
            url: url.to_owned(),
            expected: issuer.to_owned(),
            found_issuer: to_short_line(&server.issuer),
        });
    }
    let methods = &server.code_challenge_methods_supported;
    let is_assumed = methods.is_none() && assumes_pkce(options, issuer);
    let has_pkce = ServerMetadata::lists_value(methods, "S256") == Some(true) || is_assumed;
    if has_pkce || !matches!(options.grant, GrantKind::AuthorizationCode) {
        Ok(server)
    } else {
        Err(OAuthError::NoPkce {
            issuer: issuer.to_owned(),
        })
    }
}

/// Returns true if the application assumes that an issuer supports PKCE.
fn assumes_pkce(options: &OAuth, issuer: &str) -> bool {
    let mut assumed = options.assumes_pkce_at.iter();
    assumed.any(|known| locate::is_same_issuer(known, issuer))
}

/// Returns the default endpoints of a 2025-03-26 server, which is its own authorization server ("Authorization Base
/// URL").
async fn fetch_origin_metadata(
    fetch: &MetadataClient,
    options: &OAuth,
    endpoint: &Url,
) -> Result<DiscoveryResult, OAuthError> {
    let origin = locate::origin_of(endpoint);
    // A server without metadata must not replace the issuer that the application has chosen.
    let is_chosen = |issuer: &String| locate::is_same_issuer(issuer, &origin);
    if !options.has_fallback || !options.issuer.as_ref().is_none_or(is_chosen) {
        let mut urls = locate::resource_metadata_urls(endpoint);
        return Err(OAuthError::NoResourceMetadata {
            url: urls.swap_remove(0),
        });
    }
    let url = fetch.check_url("the issuer", &origin)?;
    let mut tried = locate::server_metadata_urls(&url);
    tried.truncate(1);
    let (server, is_assumed) = match fetch_first_document(fetch, &tried).await? {
        Some((url, server)) => (check_metadata(options, &url, &origin, server)?, false),
        // "If `code_challenge_methods_supported` is absent, the authorization server does not support PKCE and MCP clients MUST
        // refuse to proceed": without metadata nothing says that it does.
        None if matches!(options.grant, GrantKind::AuthorizationCode)
            && !assumes_pkce(options, &origin) =>
        {
            return Err(OAuthError::NotNamed {
                url: locate::url_for_logs(endpoint.as_str()),
                origin: Some(origin),
            });
        }
        None => (ServerMetadata::assumed_for_origin(&origin), true),
    };
    Ok(DiscoveryResult {
        resource: match &options.resource {
            Some(resource) => resource.clone(),
            None => locate::canonical_resource(endpoint),
        },
        // "MCP clients MUST send this parameter regardless of whether authorization servers support it."
        sends_resource: options.sends_resource,
        server,
        is_assumed,
        scopes: None,
        requires_dpop: false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bearer and DPoP challenges are used at every position in a header, and challenges of other schemes are ignored.
    #[test]
    fn challenges_are_found_in_any_position() {
        let challenge = |text| ChallengeParams::from_headers(&Challenge::parse(text));
        let expected = ChallengeParams {
            metadata_url: Some("https://a/m".to_owned()),
            scopes: Some(Scopes::parse("x")),
            error: None,
            description: None,
            wants_dpop: false,
        };
        for text in [
            r#"Bearer resource_metadata="https://a/m", scope="x""#,
            r#"Negotiate, Basic realm="r", bearer scope=x, resource_metadata="https://a/m""#,
            r#"DPoP algs="ES256", Bearer scope=x, resource_metadata="https://a/m""#,
            r#"Bearer scope=x, DPoP resource_metadata="https://a/m""#,
        ] {
            assert_eq!(challenge(text), expected, "{text}");
        }
        assert!(challenge("DPoP").wants_dpop);
        assert_eq!(
            challenge("Basic resource_metadata=\"https://evil\""),
            ChallengeParams::default()
        );
    }
}
