//! Client id and credential of the client at an authorization server.
//!
//! The order of preference is: configured ids, the client metadata document, dynamic registration.

use std::time::Duration;

use http::header::HeaderMap;

use super::{Flow, REFRESH_MARGIN_SECONDS, unix_time};
use crate::client::error::OAuthError;
use crate::client::options::RegisteredClient;
use crate::client::register;
use crate::client::store::StoredClient;
use crate::client::token::{Credential, is_temporary_status};
use crate::locate;
use crate::metadata::ServerMetadata;

/// Time for which a registration is kept that another one has replaced: refresh tokens that are not used for longer have usually
/// ended.
const EARLIER_CLIENT_LIFETIME: Duration = Duration::from_secs(180 * 24 * 60 * 60);

/// The client's registration at an authorization server.
#[derive(Clone)]
pub(super) struct ClientId {
    /// Client id.
    pub(super) id: String,
    /// Credential for the token endpoint.
    pub(super) credential: Credential,
    /// True if this crate registered the client dynamically, so that the registration can be removed.
    pub(super) is_dynamic: bool,
}

impl Flow {
    /// Returns the client with an id at an authorization server. A configured client is used only at its own issuer, so
    /// that no other authorization server receives its secret.
    pub(super) async fn known_client(
        &self,
        client_id: &str,
        server: &ServerMetadata,
    ) -> Result<ClientId, OAuthError> {
        for client in &self.options.registered_clients {
            if client.client_id == client_id
                && self
                    .issuer_of(Some(client), server)
                    .await?
                    .is_issuer_of(server)
            {
                return Ok(configured_client_id(client));
            }
        }
        let record = client_key(&server.issuer);
        let stored = self.stored_records.read::<StoredClient>(&record).await?;
        if let Some(stored) = stored.filter(|stored| stored.client_id == client_id) {
            return Ok(dynamic_client_id(stored));
        }
        // Another registration is in its place now; removing that one would not help this client.
        let record = earlier_client_key(&server.issuer, client_id);
        let earlier = self.stored_records.read::<StoredClient>(&record).await?;
        let credential = earlier.map(|earlier| dynamic_client_id(earlier).credential);
        Ok(ClientId {
            id: client_id.to_owned(),
            credential: credential.unwrap_or(Credential::None),
            is_dynamic: false,
        })
    }

    /// Returns the client for an authorization server: the configured client, the client whose id is the URL of its
    /// metadata document, or a newly registered client.
    pub(super) async fn select_client(
        &self,
        server: &ServerMetadata,
        redirect_uri: &str,
    ) -> Result<ClientId, OAuthError> {
        let configured = self.configured_client(server).await;
        let (Some(registration_endpoint), true) = (
            server.registration_endpoint.as_deref(),
            self.options.is_dynamic,
        ) else {
            return match (configured, self.client_by_metadata(server)) {
                (Ok(client), _) | (Err(_), Some(client)) => Ok(client),
                (Err(error), None) => Err(error),
            };
        };
        if let Some(client) = configured.ok().or_else(|| self.client_by_metadata(server)) {
            return Ok(client);
        }
        let record = client_key(&server.issuer);
        let stored = self.stored_records.read::<StoredClient>(&record).await?;
        let is_usable = |stored: &StoredClient| {
            stored.redirect_uri.as_deref() == Some(redirect_uri)
                && (stored.secret_expires_at == 0
                    || stored.secret_expires_at > unix_time() + REFRESH_MARGIN_SECONDS)
        };
        let replaced = match stored {
            Some(stored) if is_usable(&stored) => return Ok(dynamic_client_id(stored)),
            replaced => replaced,
        };
        let body = register::registration_body(&self.options.name, redirect_uri, server);
        let what = "the registration endpoint";
        let response = self
            .metadata_client
            .post(
                what,
                registration_endpoint,
                "application/json",
                HeaderMap::new(),
                body.to_string().into(),
            )
            .await?;
        let status = response.status.as_u16();
        let is_assumed = *server == ServerMetadata::assumed_for_origin(&server.issuer);
        if is_assumed
            && matches!(status, 400..500)
            && !is_temporary_status(status)
            && !register::is_registration_error(&response.body)
        {
            // Whatever answers at the default path is no registration endpoint.
            return Err(OAuthError::NotNamed {
                url: locate::url_for_logs(self.endpoint().as_str()),
                origin: None,
            });
        }
        let client = register::parse_registration(
            registration_endpoint,
            redirect_uri,
            status,
            &response.body,
        )?;
        if let Some(replaced) = replaced {
            self.keep_replaced(server, &replaced, &client).await?;
        }
        self.stored_records.write(&record, &client).await?;
        Ok(dynamic_client_id(client))
    }

    /// Keeps the secret of a registration that another one replaces: the tokens of other accounts and servers that were issued to
    /// it are refreshed with it.
    async fn keep_replaced(
        &self,
        server: &ServerMetadata,
        replaced: &StoredClient,
        by: &StoredClient,
    ) -> Result<(), OAuthError> {
        let lifetime = match replaced.secret_expires_at {
            0 => EARLIER_CLIENT_LIFETIME,
            at => Duration::from_secs(at.saturating_sub(unix_time())).min(EARLIER_CLIENT_LIFETIME),
        };
        let has_secret = replaced.client_secret.is_some() && !lifetime.is_zero();
        if !has_secret || replaced.client_id == by.client_id {
            return Ok(());
        }
        let record = earlier_client_key(&server.issuer, &replaced.client_id);
        let records = &self.stored_records;
        records.write_for(&record, replaced, lifetime).await
    }

    /// Returns the client whose id is the URL of its metadata document; `None` if the authorization server does not
    /// support such ids.
    fn client_by_metadata(&self, server: &ServerMetadata) -> Option<ClientId> {
        let is_supported = server.client_id_metadata_document_supported == Some(true);
        let url = self.options.metadata_url.clone().filter(|_| is_supported)?;
        Some(ClientId {
            id: url,
            credential: Credential::None,
            is_dynamic: false,
        })
    }

    /// Returns the client that is configured for an authorization server. A client without an issuer belongs to the
    /// first server that it is used with, so that a resource cannot redirect its secret to another server later.
    pub(super) async fn configured_client(
        &self,
        server: &ServerMetadata,
    ) -> Result<ClientId, OAuthError> {
        let mut other = None;
        for client in &self.options.registered_clients {
            let issuer = self.issuer_of(Some(client), server).await?;
            if issuer.is_issuer_of(server) {
                return Ok(configured_client_id(client));
            }
            other = Some(issuer.into_text());
        }
        Err(OAuthError::NoClientId {
            issuer: server.issuer.clone(),
            configured: other,
        })
    }

    /// Returns the issuer that a configured client belongs to, or that a workload without a client does.
    async fn issuer_of(
        &self,
        client: Option<&RegisteredClient>,
        server: &ServerMetadata,
    ) -> Result<ClientIssuer, OAuthError> {
        let written = client.and_then(|client| client.issuer.as_ref());
        if let Some(issuer) = written.or(self.options.issuer.as_ref()) {
            return Ok(ClientIssuer::Written(issuer.clone()));
        }
        let client_id = client.map_or("", |client| &*client.client_id);
        let first = self.record_first_issuer(client_id, server).await?;
        Ok(ClientIssuer::Recorded(first))
    }

    /// Returns the first issuer that a client id was used with; if there is none, records the current issuer.
    async fn record_first_issuer(
        &self,
        client_id: &str,
        server: &ServerMetadata,
    ) -> Result<String, OAuthError> {
        let record = format!("issuer {} {client_id}", self.key);
        if let Some(issuer) = self.stored_records.read::<String>(&record).await? {
            return Ok(issuer);
        }
        self.stored_records.write(&record, &server.issuer).await?;
        Ok(server.issuer.clone())
    }

    /// Returns the client of a workload: the client that is configured for the authorization server, or no client.
    /// Without a client, the workload belongs to the issuer of the options, or else to the first server that it is used
    /// with, so that a resource cannot redirect the platform's token to another server later; fails with `OtherIssuer`
    /// for any other server.
    pub(super) async fn workload_client(
        &self,
        server: &ServerMetadata,
    ) -> Result<ClientId, OAuthError> {
        let is_of_server = |client: &&RegisteredClient| {
            let issuer = client.issuer.as_deref();
            issuer.is_some_and(|issuer| locate::is_same_issuer(issuer, &server.issuer))
        };
        if let Some(client) = self.options.registered_clients.iter().find(is_of_server) {
            return Ok(configured_client_id(client));
        }
        let issuer = self.issuer_of(None, server).await?;
        if !issuer.is_issuer_of(server) {
            return Err(OAuthError::OtherIssuer {
                issuer: server.issuer.clone(),
                expected: issuer.into_text(),
            });
        }
        Ok(ClientId {
            id: String::new(),
            credential: Credential::None,
            is_dynamic: false,
        })
    }
}

/// Issuer that a client belongs to.
enum ClientIssuer {
    /// A person has written it, perhaps with a slash at the end of an origin.
    Written(String),
    /// The client was first used with it.
    Recorded(String),
}

impl ClientIssuer {
    /// Returns true if the metadata is of this issuer.
    fn is_issuer_of(&self, server: &ServerMetadata) -> bool {
        match self {
            Self::Written(issuer) => locate::is_same_issuer(issuer, &server.issuer),
            Self::Recorded(issuer) => *issuer == server.issuer,
        }
    }

    /// Returns the issuer for an error.
    fn into_text(self) -> String {
        match self {
            Self::Written(issuer) | Self::Recorded(issuer) => issuer,
        }
    }
}

/// Returns the store key of a registered client.
pub(super) fn client_key(issuer: &str) -> String {
    format!("client {issuer}")
}

/// Returns the store key of a registration that another one has replaced.
fn earlier_client_key(issuer: &str, client_id: &str) -> String {
    format!("earlier-client {issuer} {client_id}")
}

/// Returns the id and credential of a client that was registered manually.
fn configured_client_id(client: &RegisteredClient) -> ClientId {
    ClientId {
        id: client.client_id.clone(),
        credential: client.credential.clone(),
        is_dynamic: false,
    }
}

/// Returns the id and credential of a client that was registered dynamically.
fn dynamic_client_id(stored: StoredClient) -> ClientId {
    let credential = match stored.client_secret {
        Some(secret) => Credential::Secret {
            secret,
            method: stored.auth_method,
        },
        None => Credential::None,
    };
    ClientId {
        id: stored.client_id,
        credential,
        is_dynamic: true,
    }
}
