//! Tokens of clients over HTTP. Each endpoint of the gateway is a resource of its own: `PATH` the endpoint of all servers, and
//! `PATH/NAME` that of one server. A token is valid for the endpoint alone that its audience names.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use anyhow::Context;
use bytes::Bytes;
use http::Response;
use http::request::Parts;
use mcp_exact::auth::server::{InvalidResource, Jwks, ResourceServer};
use mcp_exact::transport::http::server::{AuthError, AuthFuture, Authenticate, EndpointName};
use mcp_exact_bridge::Bridge;

use super::config::Auth;

/// Authenticator of the clients of all endpoints.
pub struct Clients {
    auth: Auth,
    /// Verifier of the tokens for all servers, whose keys all endpoints share.
    tokens: Jwks,
    /// Endpoint of all servers.
    joint: ResourceServer,
    /// Endpoints of single servers, by the name of the server.
    of_servers: Mutex<HashMap<String, Arc<ResourceServer>>>,
    /// Bridge that knows the servers, once it is created.
    bridge: Arc<OnceLock<Bridge>>,
}

impl Clients {
    pub fn new(auth: &Auth, bridge: Arc<OnceLock<Bridge>>) -> anyhow::Result<Self> {
        let tokens = Jwks::new(&auth.issuer, &auth.resource);
        let joint = resource_server(auth, &auth.resource, &tokens);
        Ok(Self {
            joint: joint.context("[auth] resource: write the public URL of the bridge")?,
            auth: auth.clone(),
            tokens,
            of_servers: Mutex::default(),
            bridge,
        })
    }

    /// Returns the resource server of the endpoint of a server.
    fn of_server(&self, name: &str) -> Option<Arc<ResourceServer>> {
        let mut all = self
            .of_servers
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = all.get(name) {
            return Some(Arc::clone(known));
        }
        let resource = resource_of_server(&self.auth.resource, name);
        let server = resource_server(&self.auth, &resource, &self.tokens).ok()?;
        let server = Arc::new(server.endpoint(name));
        all.insert(name.to_owned(), Arc::clone(&server));
        Some(server)
    }

    /// Returns the resource server of a request that was routed to an endpoint of a server; `None` for the endpoint of all.
    fn of_request(&self, request: &Parts) -> Option<Arc<ResourceServer>> {
        // The endpoint of all servers authorizes no request for another one.
        let EndpointName(name) = request.extensions.get()?;
        self.of_server(name)
    }
}

impl Authenticate for Clients {
    fn authenticate<'a>(&'a self, request: &'a mut Parts) -> AuthFuture<'a> {
        Box::pin(async move {
            match self.of_request(request) {
                Some(server) => server.authenticate(request).await,
                None => self.joint.authenticate(request).await,
            }
        })
    }

    fn authorize(&self, request: &Parts, scopes: &[String]) -> Result<(), AuthError> {
        match self.of_request(request) {
            Some(server) => server.authorize(request, scopes),
            None => self.joint.authorize(request, scopes),
        }
    }

    fn respond(&self, request: &Parts) -> Option<Response<Bytes>> {
        self.joint.respond(request).or_else(|| {
            let path = request.uri.path().strip_prefix("/.well-known/")?;
            let name = path.trim_end_matches('/').rsplit('/').next()?;
            let servers = self.bridge.get()?.servers();
            let is_known = servers.iter().any(|(known, _)| known == name);
            let server = self.of_server(name).filter(|_| is_known)?;
            server.respond(request)
        })
    }
}

/// Creates the resource server of an endpoint.
fn resource_server(
    auth: &Auth,
    resource: &str,
    tokens: &Jwks,
) -> Result<ResourceServer, InvalidResource> {
    let server = ResourceServer::new(&auth.issuer, resource, tokens.for_resource(resource));
    let server = server?.scopes(&auth.scopes);
    // For token exchanges.
    Ok(match auth.client_id {
        Some(_) => server.keep_token(),
        None => server,
    })
}

/// Returns the public URL of the endpoint of a server; `resource` is that of the bridge, which may be an origin alone.
fn resource_of_server(resource: &str, name: &str) -> String {
    let resource = resource.split('?').next().unwrap_or(resource);
    let resource = resource.trim_end_matches('/');
    let has_path = resource
        .split_once("://")
        .is_some_and(|(_, rest)| rest.contains('/'));
    let path = if has_path { "" } else { "/mcp" };
    format!("{resource}{path}/{name}")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The endpoint of a server is below that of the bridge.
    #[test]
    fn servers_have_urls_below_the_bridge() {
        for (resource, expected) in [
            ("https://x.example/mcp", "https://x.example/mcp/files"),
            ("https://x.example/a/mcp/", "https://x.example/a/mcp/files"),
            ("https://x.example", "https://x.example/mcp/files"),
            ("https://x.example/", "https://x.example/mcp/files"),
        ] {
            assert_eq!(resource_of_server(resource, "files"), expected);
        }
    }
}
