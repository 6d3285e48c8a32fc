//! Elicitations by URL that go on outside of the session (2025-11-25, `client/elicitation`, "URL Mode"): which ids were
//! established on it, and the error that demands some first.
//!
//! Takes what was asked; says whether a completion belongs to it. Keeps a bounded number of ids, none of them longer than it
//! may be.

use std::collections::VecDeque;

use mcp_exact_wire::{Json, JsonObject, from_str};

use crate::error::{PeerError, code};
use crate::input_request;
use crate::revision::Rules;

/// The notification that one of them is over.
pub(crate) const COMPLETE: &str = "notifications/elicitation/complete";

/// The ids that were established on a session and are not completed yet.
#[derive(Debug)]
pub(crate) struct Elicited {
    ids: VecDeque<String>,
    most: usize,
    longest: usize,
    /// Whether the session began elsewhere, so that there are ids which are not known here.
    restored: bool,
}

impl Elicited {
    /// At most so many ids, and none that takes more bytes: its completion is one of something unknown, which is ignored.
    pub(crate) fn new(most: usize, longest: usize, restored: bool) -> Self {
        Self {
            ids: VecDeque::new(),
            most,
            longest,
            restored,
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.ids.len()
    }

    /// An elicitation was asked for: by a request, or by an entry of the error that demands it.
    pub(crate) fn note(&mut self, method: &str, params: Option<&JsonObject>) {
        let id = params
            .filter(|_| method == "elicitation/create")
            .and_then(id_of);
        let kept =
            |id: &String| self.most > 0 && id.len() <= self.longest && !self.ids.contains(id);
        let Some(id) = id.filter(kept) else {
            return;
        };
        if self.ids.len() >= self.most {
            self.ids.pop_front();
        }
        self.ids.push_back(id);
    }

    /// The same for all that an error demands.
    pub(crate) fn note_error(&mut self, error: &PeerError) {
        for demanded in demanded(error).into_iter().flatten() {
            self.note("elicitation/create", Some(&demanded));
        }
    }

    /// Whether a completion belongs to something that was asked here; once for each.
    pub(crate) fn complete(&mut self, params: Option<&JsonObject>) -> bool {
        let Some(id) = params.and_then(id_of) else {
            return false;
        };
        match self.ids.iter().position(|known| *known == id) {
            Some(at) => self.ids.remove(at).is_some(),
            None => self.restored,
        }
    }
}

/// Checks an error that is to leave: the one that demands elicitations has at least one, all of them by URL and with ids.
pub(crate) fn check_error(error: &PeerError, rules: &Rules) -> Result<(), String> {
    if error.code() != Some(code::URL_ELICITATION_REQUIRED) || !rules.server.notification(COMPLETE)
    {
        return Ok(());
    }
    let demanded = demanded(error).unwrap_or_default();
    if demanded.is_empty() {
        return Err("`data.elicitations` has to list what is required".to_owned());
    }
    for params in &demanded {
        if params.get("mode").map(|mode| mode.to_string()).as_deref() != Some("\"url\"") {
            return Err("only elicitations by URL can be required".to_owned());
        }
        input_request::check_sent("elicitation/create", Some(params), rules)?;
    }
    Ok(())
}

fn demanded(error: &PeerError) -> Option<Vec<JsonObject>> {
    if error.code() != Some(code::URL_ELICITATION_REQUIRED) {
        return None;
    }
    let data = JsonObject::try_from(error.data()?.clone()).ok()?;
    let items: Vec<Json> = from_str(data.get("elicitations")?.text()).ok()?;
    let objects = items.into_iter().map(JsonObject::try_from);
    objects.collect::<Result<_, _>>().ok()
}

fn id_of(params: &JsonObject) -> Option<String> {
    from_str(params.get("elicitationId")?.text()).ok()
}
