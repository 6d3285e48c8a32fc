//! MCP server with additional web pages.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use mcp_exact::auth::Secret;
use mcp_exact::auth::client::{GrantedTokens, OAuth};
use mcp_exact::auth::server::{Access, Jwks, ResourceServer};
use mcp_exact::transport::http::client::{HttpClient as _, HyperClient};
use mcp_exact::transport::http::server::{Allowed, HttpServerOptions};
use mcp_exact::{Cx, Elicited, Error, Server};
use serde::Deserialize;

use super::pages::{self, Pages};

/// Addresses of the application and its peers. The redirect URIs of both clients are `{origin}/signed-in` and
/// `{origin}/connected`.
#[derive(Debug, Clone, Deserialize)]
pub struct Configuration {
    /// Public origin of this server; its endpoint is `{origin}/mcp`.
    pub origin: String,
    /// Values of the header `Host` that this server accepts.
    pub hosts: Vec<String>,
    /// Issuer of the authorization server for MCP clients.
    pub issuer: String,
    /// Client id of the web pages at the authorization server for MCP clients.
    pub client_id: String,
    /// Issuer of the authorization server of the third-party service.
    pub service_issuer: String,
    /// Client id of this server at the service's authorization server.
    pub service_client_id: String,
    /// Client secret of this server at the service's authorization server.
    pub service_client_secret: Secret,
    /// URL of a user's documents at the service.
    pub service_url: String,
}

/// Creates the server and its pages.
pub async fn router(configuration: Configuration) -> Result<Router, Box<dyn std::error::Error>> {
    let origin = &configuration.origin;
    let endpoint = format!("{origin}/mcp");
    let users = OAuth::registered(&configuration.issuer, &configuration.client_id);
    let users = users.code_grant(&format!("{origin}/signed-in")).await?;
    let service = OAuth::registered(
        &configuration.service_issuer,
        &configuration.service_client_id,
    );
    let service = service
        .secret(configuration.service_client_secret.clone())
        .scopes(["documents"])
        .code_grant(&format!("{origin}/connected"))
        .await?;
    let pages = Arc::new(Pages::new(
        origin.clone(),
        users.resource(&endpoint),
        Box::new(Jwks::new(&configuration.issuer, &endpoint)),
        service,
    ));
    let auth = ResourceServer::jwks(&configuration.issuer, &endpoint)?;
    let options = HttpServerOptions {
        path: Some("/mcp".to_owned()),
        hosts: Allowed::Only(configuration.hosts.clone()),
        authenticate: Some(Arc::new(auth)),
        ..HttpServerOptions::default()
    };
    let server = server(Arc::clone(&pages), configuration.service_url)?;
    Ok(pages::router(pages).fallback_service(server.http(options)))
}

/// Builds the MCP server.
fn server(pages: Arc<Pages>, url: String) -> Result<Server, mcp_exact::BuildError> {
    Server::builder("documents", "1.0.0")
        .tool("documents", move |cx: Cx, access: Access| {
            let (pages, url) = (Arc::clone(&pages), url.clone());
            async move {
                let granted = credential(&cx, &access, &pages).await?;
                fetch_documents(&url, &granted).await
            }
        })
        .build()
}

/// Returns the credential of the user; asks the user to connect an account if the user has none.
async fn credential(cx: &Cx, access: &Access, pages: &Pages) -> mcp_exact::Result<GrantedTokens> {
    // The access token identifies the user; data that the client claims is not used.
    let user = access.user();
    let user = user.ok_or_else(|| Error::msg("the token names no user"))?;
    if let Some(granted) = pages.credential(&user) {
        return Ok(granted);
    }
    let page = cx
        .once("page", async { pages.invitation_url(&user) })
        .await?;
    let words = "The documents are kept by another service. Allow this server to read yours.";
    match cx.elicit_url(words, page).await? {
        Elicited::Accepted(()) => {}
        Elicited::Declined | Elicited::Cancelled => {
            return Err(Error::msg("the user did not allow access to the documents"));
        }
    }
    // Consent is not completion: the user is in the browser now.
    let granted = pages
        .wait_for_credential(&user, Duration::from_secs(300))
        .await;
    granted.ok_or_else(|| Error::msg("the user has not finished yet; call the tool again"))
}

/// Fetches the documents of a user from the service.
async fn fetch_documents(url: &str, granted: &GrantedTokens) -> mcp_exact::Result<String> {
    let bearer = format!("Bearer {}", granted.access_token.expose());
    let mut bearer = http::HeaderValue::from_str(&bearer)?;
    bearer.set_sensitive(true);
    let request = http::Request::get(url).header(http::header::AUTHORIZATION, bearer);
    let request = request.body(bytes::Bytes::new())?;
    let response = HyperClient::default().send(request).await;
    let response = response.map_err(|error| Error::msg(error.to_string()))?;
    if response.status().is_success() {
        Ok("1 document".to_owned())
    } else {
        Err(Error::msg(format!(
            "the service answered {}",
            response.status()
        )))
    }
}
