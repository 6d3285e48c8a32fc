//! Comparison of the catalogue with the tools that a server has: what the operator has misspelt, and names that are taken.

use mcp_exact_session::{JsonObject, PeerError};
use mcp_exact_tool_schema::{Catalogue, CatalogueProblem};
use tokio::time::timeout;

use super::Backend;
use crate::servers::client_side::ClientSide;
use crate::servers::connection::Connection;
use crate::servers::tools;

impl Backend {
    /// Reads the tools of the server on a connection, if catalogue or pins are about them, and reports what is wrong with the
    /// catalogue, and definitions that are not the pinned ones. A server that does not list its tools in time is not looked at.
    pub(super) async fn check_tools(&self, connection: &Connection) {
        let rules = self.live.rules();
        if rules.pins.is_none() && rules.catalogue.server(&self.name).is_none() {
            return;
        }
        let reading = tools::definitions(connection, self.max_pages());
        if let Ok(Some(definitions)) = timeout(self.options.list_within, reading).await {
            self.set_problems(problems(&rules.catalogue, &self.name, &definitions));
            if let Some(pins) = &rules.pins {
                self.live.pins().look_at(pins, &self.name, definitions);
            }
        }
    }

    /// Reads the definitions of the server's tools, as it sends them, on a connection of their own.
    ///
    /// # Errors
    /// If the server cannot be reached, or does not list its tools to the end.
    pub(crate) async fn definitions(&self) -> Result<Vec<JsonObject>, PeerError> {
        let nobody = ClientSide::new(None, &JsonObject::new());
        let reading = async {
            loop {
                // A server that is replaced meanwhile is asked again.
                if let Some(connection) = self.open(&nobody).await? {
                    return Ok(tools::definitions(&connection, self.max_pages()).await);
                }
            }
        };
        let longest = self.options.connect_timeout;
        let read: Result<_, PeerError> = timeout(longest, reading).await.unwrap_or(Ok(None));
        read?.ok_or_else(|| {
            PeerError::internal(
                "the server does not list its tools to the end; see `timeout` and `max-pages`",
            )
        })
    }

    /// Returns what is wrong with a new catalogue in front of the tools of the server, which are read on a connection of their own;
    /// nothing if the server does not list its tools in time.
    pub(crate) async fn problems_with(&self, catalogue: &Catalogue) -> Vec<CatalogueProblem> {
        match timeout(self.options.list_within, self.definitions()).await {
            Ok(Ok(definitions)) => problems(catalogue, &self.name, &definitions),
            _ => Vec::new(),
        }
    }

    /// Reports what is wrong with the catalogue, unless it was reported when the server was looked at before.
    pub(crate) fn set_problems(&self, problems: Vec<CatalogueProblem>) {
        let mut known = self.problems.lock();
        for problem in problems.iter().filter(|problem| !known.contains(problem)) {
            let server = self.name.as_str();
            tracing::warn!(server, %problem, "the catalogue does not fit the tools of a server");
        }
        *known = problems;
    }

    /// Returns the first name of the catalogue that is taken, if the tools of the server are known.
    pub(crate) fn taken_name(&self) -> Option<CatalogueProblem> {
        let problems = self.problems.lock();
        problems.iter().find(|problem| problem.is_error()).cloned()
    }
}

/// Returns what is wrong with a catalogue in front of the tools of a server.
fn problems(
    catalogue: &Catalogue,
    server: &str,
    definitions: &[JsonObject],
) -> Vec<CatalogueProblem> {
    let of_server = catalogue.server(server);
    of_server.map_or_else(Vec::new, |of_server| of_server.problems(definitions))
}
