//! Our example clients and servers, which the peers meet.

use std::path::{Path, PathBuf};

use super::peers::Transport;

/// Package with the stdio examples.
const STDIO_PACKAGE: &str = "mcp-exact-session";
/// Package with the HTTP examples.
const HTTP_PACKAGE: &str = "mcp-exact-transport";

/// Paths of the built examples.
pub(super) struct Examples {
    /// Example client for stdio.
    client: PathBuf,
    /// Example server for stdio.
    server: PathBuf,
    /// Example client for HTTP.
    http_client: PathBuf,
    /// Example server for HTTP.
    http_server: PathBuf,
}

impl Examples {
    /// Builds the examples.
    pub(super) fn build(root: &Path) -> anyhow::Result<Self> {
        let [client, server] =
            crate::examples::build(root, STDIO_PACKAGE, ["stdio_client", "stdio_server"])?;
        let [http_client, http_server] =
            crate::examples::build(root, HTTP_PACKAGE, ["http_client", "http_server"])?;
        Ok(Self {
            client,
            server,
            http_client,
            http_server,
        })
    }

    /// Returns the path of the example client for a transport.
    pub(super) fn client(&self, transport: Transport) -> &Path {
        match transport {
            Transport::Stdio => &self.client,
            Transport::Http | Transport::Sse => &self.http_client,
        }
    }

    /// Returns the path of the example server for a transport.
    pub(super) fn server(&self, transport: Transport) -> &Path {
        match transport {
            Transport::Stdio => &self.server,
            Transport::Http | Transport::Sse => &self.http_server,
        }
    }
}
