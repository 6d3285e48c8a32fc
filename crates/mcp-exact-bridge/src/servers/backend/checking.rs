//! Comparison of the catalogue with the tools that a server has: what the operator has misspelt, and names that are taken.

use mcp_exact_session::{JsonObject, PeerError};
use mcp_exact_tool_schema::CatalogueProblem;
use tokio::time::timeout;

use super::Backend;
use crate::around::pin_states::{PinnedList, reason_against_pins};
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
        let list = self.begin_list(None, true);
        let reading = tools::definitions(connection, self.max_pages());
        if let Ok(Some(definitions)) = timeout(self.options.list_within, reading).await {
            self.look_at(&list, definitions);
        }
    }

    /// Does what [`check_tools`](Self::check_tools) does on a connection of its own, after the rules have changed.
    pub(crate) async fn look_again(&self) {
        let reading = self.read_definitions();
        if let Ok(Ok((list, Some(definitions)))) = timeout(self.options.list_within, reading).await
        {
            self.look_at(&list, definitions);
        }
    }

    /// Reports what is wrong with the catalogue, and definitions that are not the pinned ones.
    fn look_at(&self, list: &PinnedList, definitions: Vec<JsonObject>) {
        let rules = self.live.rules();
        let of_server = rules.catalogue.server(&self.name);
        self.set_problems(
            of_server.map_or_else(Vec::new, |of_server| of_server.problems(&definitions)),
        );
        if let Some(pins) = &rules.pins {
            let states = self.live.pins();
            states.look_at(pins, &self.name, list, definitions);
        }
    }

    /// Reads the definitions of the server's tools, as it sends them, on a connection of their own.
    ///
    /// # Errors
    /// If the server cannot be reached, does not list its tools to the end, or lists what cannot be pinned.
    pub(crate) async fn definitions(&self) -> Result<Vec<JsonObject>, PeerError> {
        let longest = self.options.connect_timeout;
        let read = timeout(longest, self.read_definitions()).await;
        let definitions = match read {
            Ok(read) => read?.1,
            Err(_) => None,
        };
        let definitions = definitions.ok_or_else(|| {
            PeerError::internal(
                "the server does not list its tools to the end; see `timeout` and `max-pages`",
            )
        })?;
        match reason_against_pins(&definitions) {
            Some(reason) => Err(PeerError::internal(reason)),
            None => Ok(definitions),
        }
    }

    /// Reads the definitions of the server's tools on a connection of their own; `None` if it does not list them to the end. Returns
    /// them with the begin of their list.
    async fn read_definitions(&self) -> Result<(PinnedList, Option<Vec<JsonObject>>), PeerError> {
        let gateway = ClientSide::of_gateway();
        loop {
            // A server that is replaced meanwhile is asked again.
            if let Some(connection) = self.open(&gateway).await? {
                let list = self.begin_list(None, true);
                let definitions = tools::definitions(&connection, self.max_pages()).await;
                return Ok((list, definitions));
            }
        }
    }

    /// Reports what is wrong with the catalogue, unless it was reported when the server was looked at before.
    fn set_problems(&self, problems: Vec<CatalogueProblem>) {
        let mut known = self.problems.lock();
        for problem in problems.iter().filter(|problem| !known.contains(problem)) {
            let server = self.name.as_str();
            tracing::warn!(server, %problem, "the catalogue does not fit the tools of a server");
        }
        *known = problems;
    }
}
