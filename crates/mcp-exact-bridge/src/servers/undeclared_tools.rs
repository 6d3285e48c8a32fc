//! Servers that have forgotten to declare their tools.

use std::time::Duration;

use mcp_exact_revisions::method;
use mcp_exact_session::code::METHOD_NOT_FOUND;
use mcp_exact_session::{JsonObject, Outcome, SessionInfo};
use mcp_exact_transport::ClientHandle;
use parking_lot::Mutex;

/// Time that a server has to list tools that it has not declared. Who has such tools answers at once; others may never answer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(2);

/// Whether a server has tools although it declares no lists. The server is asked once, and not on every connection.
#[derive(Debug, Default)]
pub(crate) struct UndeclaredTools {
    /// Latest answer, if the server was asked.
    known: Mutex<Option<(Asked, bool)>>,
}

/// Who was asked: the number of replacements of the upstream, and the server's `Implementation`.
type Asked = (u64, Option<JsonObject>);

impl UndeclaredTools {
    /// Returns true if a server that declares no lists lists tools: it has forgotten to declare them.
    pub(crate) async fn are_listed(
        &self,
        client: &ClientHandle,
        generation: u64,
        info: &SessionInfo,
    ) -> bool {
        let declared = info.capabilities.view();
        let lists = ["tools", "prompts", "resources", "extensions"];
        if lists.iter().any(|name| declared.find(name).is_some()) {
            return false;
        }
        let asked = (generation, info.implementation.clone());
        if let Some((of, are_listed)) = &*self.known.lock()
            && *of == asked
        {
            return *are_listed;
        }
        let Ok(listing) = client.request(method::TOOLS_LIST, None, <_>::default(), None) else {
            return false;
        };
        let are_listed = match tokio::time::timeout(ANSWER_TIMEOUT, listing).await {
            // Some servers answer everything with an empty result.
            Ok(Outcome::Result(list)) => list.object().view().find("tools").is_some(),
            Ok(Outcome::Error(error)) if error.code() == Some(METHOD_NOT_FOUND) => false,
            Ok(Outcome::TimedOut) | Err(_) => false,
            // The next connection may get another answer at once.
            Ok(_) => return false,
        };
        *self.known.lock() = Some((asked, are_listed));
        are_listed
    }
}
