//! Options for certificates: those that are trusted besides the system's, and the one that the program presents to a server.
//!
//! Files are read once, when the connection is prepared. Their contents are in no output.

use std::path::PathBuf;

use anyhow::{anyhow, bail};
use clap::Args;
use mcp_exact::transport::http::client::{CertificateFiles, HyperOptions};

use crate::server_address::ConnectionSettings;

/// Options for certificates of HTTPS.
#[derive(Debug, Clone, Default, Args)]
pub struct Certificates {
    /// Trust the certificates of a file besides those of the system, in PEM format.
    #[arg(long, value_name = "FILE", help_heading = "Connection")]
    ca: Option<PathBuf>,
    /// Present the certificate of a file to a server that asks for one (mutual TLS): PEM, with its intermediate certificates.
    #[arg(
        long,
        value_name = "FILE",
        requires = "client_key",
        help_heading = "Connection"
    )]
    client_cert: Option<PathBuf>,
    /// The private key of --client-cert: PEM, not encrypted.
    #[arg(
        long,
        value_name = "FILE",
        requires = "client_cert",
        help_heading = "Connection"
    )]
    client_key: Option<PathBuf>,
    /// True if the files are those of a configured server's entry.
    #[arg(skip)]
    is_of_entry: bool,
}

impl Certificates {
    /// Returns these certificates, or those in the entry of a configured server if there are none.
    pub fn or_of(&self, entry: &ConnectionSettings) -> Self {
        if self.first_option().is_some() {
            return self.clone();
        }
        let file = |path: &Option<String>| path.as_ref().map(PathBuf::from);
        Self {
            ca: file(&entry.ca),
            client_cert: file(&entry.client_cert),
            client_key: file(&entry.client_key),
            is_of_entry: true,
        }
    }

    /// Reads the files into the settings of connections; an error names the option and the file.
    pub fn read(&self, options: HyperOptions) -> anyhow::Result<HyperOptions> {
        let files = CertificateFiles {
            ca: self.ca.clone(),
            client_cert: self.client_cert.clone(),
            client_key: self.client_key.clone(),
        };
        let read = options.certificate_files(&files);
        read.map_err(|error| {
            if self.is_of_entry {
                anyhow!("the entry of the server: {error}")
            } else {
                anyhow!("--{error}")
            }
        })
    }

    /// Checks that a certificate can be presented to the server at a URL, if there is one.
    pub fn check_url(&self, url: &str) -> anyhow::Result<()> {
        if self.client_cert.is_some() && url.to_ascii_lowercase().starts_with("http:") {
            bail!("--client-cert: {url} is not https; a certificate is presented over TLS alone");
        }
        Ok(())
    }

    /// Returns the first option that is given.
    pub fn first_option(&self) -> Option<&'static str> {
        let options = [
            ("--ca", &self.ca),
            ("--client-cert", &self.client_cert),
            ("--client-key", &self.client_key),
        ];
        let mut given = options.into_iter().filter(|(_, file)| file.is_some());
        given.next().map(|(option, _)| option)
    }
}
