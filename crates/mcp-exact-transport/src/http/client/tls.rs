//! Certificates of HTTP clients: those that are trusted besides the system's, and the one that a client presents.
//!
//! Keys are in no error and no `Debug` output.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use tokio_rustls::rustls::client::danger::{
    HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier,
};
use tokio_rustls::rustls::client::{ResolvesClientCert, WebPkiServerVerifier, verify_server_name};
use tokio_rustls::rustls::crypto::{CryptoProvider, aws_lc_rs};
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use tokio_rustls::rustls::server::ParsedCertificate;
use tokio_rustls::rustls::sign::CertifiedKey;
use tokio_rustls::rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme,
};

use super::HttpClientError;

/// Files in PEM format with the certificates of a client ([`HyperOptions::certificate_files`](super::HyperOptions::certificate_files)).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CertificateFiles {
    /// Certificates that are trusted besides those of the system.
    pub ca: Option<PathBuf>,
    /// Certificate that the client presents, and its intermediate certificates.
    pub client_cert: Option<PathBuf>,
    /// Private key of the certificate that the client presents.
    pub client_key: Option<PathBuf>,
}

/// Reason why certificates cannot be used. It never contains a key.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidCertificate {
    /// A certificate cannot be used, for this reason.
    #[error("the certificate cannot be used: {0}")]
    Certificate(String),
    /// The private key cannot be used, for this reason.
    #[error("the private key cannot be used: {0}")]
    Key(String),
    /// The private key is that of another certificate.
    #[error("the private key does not belong to the certificate")]
    Mismatch,
}

/// Reason why [`CertificateFiles`] cannot be used: the name of a setting (`ca`, `client-cert` or `client-key`), its file, and
/// what is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CertificateFileError {
    /// Name of the setting.
    pub setting: &'static str,
    /// The file; `None` if it is missing.
    pub file: Option<PathBuf>,
    /// What is wrong.
    pub reason: String,
}

impl fmt::Display for CertificateFileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.file {
            Some(file) => write!(f, "{} {file:?}: {}", self.setting, self.reason),
            None => write!(f, "{}: {}", self.setting, self.reason),
        }
    }
}

impl std::error::Error for CertificateFileError {}

/// What a client trusts, and who it is.
#[derive(Clone, Default)]
pub(super) struct ClientTls {
    /// Certificates that are trusted besides those of the system.
    roots: Vec<CertificateDer<'static>>,
    /// Certificate that the client presents, with its key.
    identity: Option<Arc<CertifiedKey>>,
    /// Configuration of the application, in place of all this.
    pub(super) config: Option<Arc<ClientConfig>>,
}

impl ClientTls {
    /// Trusts the certificates of a text in PEM format.
    pub(super) fn trust(&mut self, pem: &[u8]) -> Result<(), InvalidCertificate> {
        let certificates = parse_certificates(pem)?;
        let mut store = RootCertStore::empty();
        for certificate in &certificates {
            let added = store.add(certificate.clone());
            added.map_err(|error| InvalidCertificate::Certificate(error.to_string()))?;
        }
        self.roots.extend(certificates);
        Ok(())
    }

    /// Sets the certificate that the client presents.
    pub(super) fn identify(&mut self, chain: &[u8], key: &[u8]) -> Result<(), InvalidCertificate> {
        let chain = parse_certificates(chain)?;
        let key = PrivateKeyDer::from_pem_slice(key).map_err(|_| {
            let reason = "there is no private key in PEM format that is not encrypted";
            InvalidCertificate::Key(reason.to_owned())
        })?;
        let certified = CertifiedKey::from_der(chain, key, &provider());
        let certified = certified.map_err(|error| match error {
            Error::InconsistentKeys(_) => InvalidCertificate::Mismatch,
            Error::InvalidCertificate(_) => InvalidCertificate::Certificate(error.to_string()),
            error => InvalidCertificate::Key(error.to_string()),
        })?;
        self.identity = Some(Arc::new(certified));
        Ok(())
    }

    /// Reads files, each once.
    pub(super) fn read(&mut self, files: &CertificateFiles) -> Result<(), CertificateFileError> {
        let fail = |setting, file: &Path, reason: String| CertificateFileError {
            setting,
            file: Some(file.to_owned()),
            reason,
        };
        let read = |setting, file: &Path| {
            let bytes = std::fs::read(file);
            bytes.map_err(|error| fail(setting, file, format!("cannot read the file: {error}")))
        };
        if let Some(file) = &files.ca {
            let trusted = self.trust(&read("ca", file)?);
            trusted.map_err(|error| fail("ca", file, error.to_string()))?;
        }
        let missing = |setting, other| CertificateFileError {
            setting,
            file: None,
            reason: format!("required besides `{other}`"),
        };
        let (cert, key) = match (&files.client_cert, &files.client_key) {
            (None, None) => return Ok(()),
            (Some(_), None) => return Err(missing("client-key", "client-cert")),
            (None, Some(_)) => return Err(missing("client-cert", "client-key")),
            (Some(cert), Some(key)) => (cert, key),
        };
        let chain = read("client-cert", cert)?;
        let identified = self.identify(&chain, &read("client-key", key)?);
        identified.map_err(|error| match error {
            InvalidCertificate::Certificate(_) => fail("client-cert", cert, error.to_string()),
            _ => fail("client-key", key, error.to_string()),
        })
    }

    /// Removes the certificate that the client presents.
    pub(super) fn forget_identity(&mut self) {
        self.identity = None;
        if let Some(config) = &self.config {
            self.config = Some(Arc::new(without_certificate(config)));
        }
    }

    /// Returns the configuration of connections to servers, which records that a server asks for a certificate.
    pub(super) fn for_servers(&self, requests: &CertificateRequests) -> ClientConfig {
        if let Some(config) = &self.config {
            return ClientConfig::clone(config);
        }
        let mut roots = RootCertStore::clone(&system_roots());
        roots.add_parsable_certificates(self.roots.iter().cloned());
        let identity = Identity {
            key: self.identity.clone(),
            was_asked: Arc::clone(&requests.was_asked),
        };
        let builder = ClientConfig::builder_with_provider(provider())
            .with_safe_default_protocol_versions()
            .expect("the provider has suites of TLS 1.2 and 1.3");
        let builder = match self.verifier(&roots) {
            Some(verifier) => builder
                .dangerous()
                .with_custom_certificate_verifier(Arc::new(verifier)),
            None => builder.with_root_certificates(roots),
        };
        builder.with_client_cert_resolver(Arc::new(identity))
    }

    /// Returns the verifier of servers for a client that trusts more than the system does.
    fn verifier(&self, roots: &RootCertStore) -> Option<OwnVerifier> {
        if self.roots.is_empty() {
            return None;
        }
        let roots = Arc::new(roots.clone());
        let by_issuer = WebPkiServerVerifier::builder_with_provider(roots, provider());
        Some(OwnVerifier {
            by_issuer: by_issuer.build().ok()?,
            trusted: self.roots.clone(),
        })
    }

    /// Returns the record of a client for the servers that ask for a certificate.
    pub(super) fn requests(&self) -> CertificateRequests {
        CertificateRequests {
            was_asked: Arc::default(),
            has_identity: self.identity.is_some(),
        }
    }
}

/// Whether a server has asked a client for a certificate since the last response.
#[derive(Debug, Clone, Default)]
pub(super) struct CertificateRequests {
    /// Set to true when a server asks.
    was_asked: Arc<AtomicBool>,
    /// True if the client presents a certificate.
    has_identity: bool,
}

impl CertificateRequests {
    /// Notes that a server has responded, and so has accepted the client.
    pub(super) fn record_response(&self) {
        self.was_asked.store(false, Ordering::Relaxed);
    }

    /// Returns the error of a request with what is known of certificates: the server is not trusted, or has asked for a certificate.
    /// With TLS 1.3 it refuses a client after the handshake, often by nothing but the end of the connection.
    pub(super) fn explain(&self, error: HttpClientError) -> HttpClientError {
        let reason = if is_untrusted(&*error) {
            "the certificate of the server is not trusted; set `ca` to a file with it, or with that of its issuer"
        } else if !self.was_asked.load(Ordering::Relaxed) {
            return error;
        } else if self.has_identity {
            "the server asks for a client certificate, and may not accept the one that is set"
        } else {
            "the server asks for a client certificate, and none is set"
        };
        Box::new(CertificateProblem { reason, error })
    }
}

/// Error of a request that certificates may explain.
#[derive(Debug, thiserror::Error)]
#[error("{reason}")]
struct CertificateProblem {
    /// What is wrong, or what the server asks for.
    reason: &'static str,
    /// Error of the request.
    #[source]
    error: HttpClientError,
}

/// Returns true if the error is that the client trusts neither the certificate of the server nor its issuer.
fn is_untrusted(error: &(dyn std::error::Error + 'static)) -> bool {
    let mut cause = Some(error);
    while let Some(error) = cause {
        if let Some(Error::InvalidCertificate(reason)) = error.downcast_ref() {
            return *reason == CertificateError::UnknownIssuer || is_authority(reason);
        }
        // The source of an error of IO is that of its inner error.
        let io = error.downcast_ref::<std::io::Error>();
        cause = match io.and_then(std::io::Error::get_ref) {
            Some(inner) => Some(inner),
            None => error.source(),
        };
    }
    false
}

/// Returns true if a certificate is refused because it is that of an authority, which signs others.
fn is_authority(reason: &CertificateError) -> bool {
    matches!(reason, CertificateError::Other(error) if error.to_string() == "CaUsedAsEndEntity")
}

/// Verifier that accepts the certificates that the client trusts as those of servers too, as other clients do: `openssl req -x509`
/// makes a certificate that has signed itself, and may sign others.
#[derive(Debug)]
struct OwnVerifier {
    /// Verifier of certificates that an issuer has signed.
    by_issuer: Arc<WebPkiServerVerifier>,
    /// Certificates that are trusted besides those of the system.
    trusted: Vec<CertificateDer<'static>>,
}

impl ServerCertVerifier for OwnVerifier {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let verified =
            self.by_issuer
                .verify_server_cert(certificate, intermediates, name, ocsp, now);
        match verified {
            // What it is used for is checked after the time for which it is valid.
            Err(Error::InvalidCertificate(reason))
                if is_authority(&reason) && self.trusted.contains(certificate) =>
            {
                verify_server_name(&ParsedCertificate::try_from(certificate)?, name)?;
                Ok(ServerCertVerified::assertion())
            }
            verified => verified,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.by_issuer
            .verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.by_issuer
            .verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.by_issuer.supported_verify_schemes()
    }
}

impl fmt::Debug for ClientTls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientTls")
            .field("roots", &self.roots.len())
            .field("has_certificate", &self.identity.is_some())
            .finish_non_exhaustive()
    }
}

/// Returns a configuration that presents no certificate: that of the client is for its server, and not for a proxy.
pub(super) fn without_certificate(config: &ClientConfig) -> ClientConfig {
    let mut config = config.clone();
    config.client_auth_cert_resolver = Arc::new(Identity::default());
    config
}

/// The certificate that is presented to a server that asks for one, if there is one.
#[derive(Default)]
struct Identity {
    /// Certificate with its key.
    key: Option<Arc<CertifiedKey>>,
    /// Set to true when a server asks for a certificate.
    was_asked: Arc<AtomicBool>,
}

impl ResolvesClientCert for Identity {
    fn resolve(&self, _: &[&[u8]], _: &[SignatureScheme]) -> Option<Arc<CertifiedKey>> {
        self.was_asked.store(true, Ordering::Relaxed);
        self.key.clone()
    }

    fn has_certs(&self) -> bool {
        self.key.is_some()
    }
}

impl fmt::Debug for Identity {
    /// The output has no key.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Identity").finish_non_exhaustive()
    }
}

/// Parses the certificates of a text in PEM format; there is one at least.
fn parse_certificates(pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, InvalidCertificate> {
    let parsed: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    match parsed {
        Ok(certificates) if !certificates.is_empty() => Ok(certificates),
        _ => {
            let reason = "there is no certificate in PEM format";
            Err(InvalidCertificate::Certificate(reason.to_owned()))
        }
    }
}

/// Returns the cryptography provider, which is set explicitly, because an application may link several without a default.
fn provider() -> Arc<CryptoProvider> {
    Arc::new(aws_lc_rs::default_provider())
}

/// Returns the certificates that the system trusts, which are read once; if the system has none, every HTTPS connection fails
/// with an error that reports their absence.
fn system_roots() -> Arc<RootCertStore> {
    /// Certificates that were read at the first call.
    static ROOTS: OnceLock<Arc<RootCertStore>> = OnceLock::new();
    let roots = ROOTS.get_or_init(|| {
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        Arc::new(roots)
    });
    Arc::clone(roots)
}
