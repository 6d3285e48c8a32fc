//! Elicitations by URL that outlive their request (2025-11-25, `client/elicitation`, "URL Mode"): the ids of a
//! session's elicitations, and the error `URLElicitationRequired`.
//!
//! Elicitations are recorded when they are sent or received, and removed on completion. The number and the length of the ids are
//! limited.

use std::collections::VecDeque;

use mcp_exact_revisions::{Lifecycle, RevisionSpec};
use mcp_exact_wire::order::joined;
use mcp_exact_wire::{Json, JsonObject};

use crate::capabilities;
use crate::error::{PeerError, SendError, code};
use crate::input_request;
use crate::rules;

/// Method of elicitation requests.
const ELICITATION_METHOD: &str = "elicitation/create";

/// Ids of a session's elicitations that are not completed.
#[derive(Debug)]
pub(crate) struct Elicitations {
    /// Ids of the elicitations, oldest first.
    ids: VecDeque<String>,
    /// Maximum number of recorded ids.
    count_limit: usize,
    /// Maximum length of an id in bytes.
    bytes_limit: usize,
    /// True if the session was resumed from a snapshot that does not contain all ids.
    has_unknown_ids: bool,
    /// True if an id was added or removed since the ids were saved.
    has_unsaved_changes: bool,
}

impl Elicitations {
    /// Creates an empty set of ids with these limits.
    pub(crate) fn new(count_limit: usize, bytes_limit: usize) -> Self {
        Self {
            ids: VecDeque::new(),
            count_limit,
            bytes_limit,
            has_unknown_ids: false,
            has_unsaved_changes: false,
        }
    }

    /// Restores the ids of a resumed session; `None` if the ids are unknown.
    pub(crate) fn restore(&mut self, ids: Option<Vec<String>>) {
        self.has_unknown_ids = ids.is_none();
        self.ids.clear();
        for id in ids.into_iter().flatten() {
            self.insert_id(id);
        }
        self.has_unsaved_changes = false;
    }

    /// Adds ids that another process has saved.
    pub(crate) fn merge(&mut self, ids: Option<Vec<String>>) {
        let changed = self.has_unsaved_changes;
        self.has_unknown_ids |= ids.is_none();
        for id in ids.into_iter().flatten() {
            self.insert_id(id);
        }
        self.has_unsaved_changes = changed;
    }

    /// Returns true if the ids have changed since they were saved.
    pub(crate) fn has_changed(&self) -> bool {
        self.has_unsaved_changes
    }

    /// Returns the ids and marks them as saved; `None` if not all ids of the session are known.
    pub(crate) fn save_ids(&mut self) -> Option<Vec<String>> {
        self.has_unsaved_changes = false;
        (!self.has_unknown_ids).then(|| self.ids.iter().cloned().collect())
    }

    /// Returns the number of recorded elicitation ids.
    pub(crate) fn len(&self) -> usize {
        self.ids.len()
    }

    /// Records the id of an elicitation request; does nothing for other methods.
    pub(crate) fn record(&mut self, method: &str, params: Option<&JsonObject>) {
        if rules::is_elicitation(method)
            && let Some(id) = params.and_then(elicitation_id)
        {
            self.insert_id(id);
        }
    }

    /// Records the ids of all elicitations that an error requires.
    pub(crate) fn record_error(&mut self, error: &PeerError) {
        for id in required_elicitations(error)
            .iter()
            .flatten()
            .filter_map(elicitation_id)
        {
            self.insert_id(id);
        }
    }

    /// Adds an id; removes the oldest id if the limit is exceeded.
    fn insert_id(&mut self, id: String) {
        if self.count_limit == 0 || id.len() > self.bytes_limit || self.ids.contains(&id) {
            return;
        }
        if self.ids.len() >= self.count_limit {
            self.ids.pop_front();
        }
        self.ids.push_back(id);
        self.has_unsaved_changes = true;
    }

    /// Removes the elicitation that a completion notification names; returns true if the elicitation belongs to this
    /// session and was not completed before.
    ///
    /// If not all ids of the session are known, completions of unknown elicitations are accepted.
    pub(crate) fn complete(&mut self, params: Option<&JsonObject>) -> bool {
        let Some(id) = params.and_then(elicitation_id) else {
            return false;
        };
        match self.ids.iter().position(|known| *known == id) {
            Some(at) => {
                self.has_unsaved_changes = true;
                self.ids.remove(at).is_some()
            }
            None => self.has_unknown_ids,
        }
    }
}

/// Checks an error before it is sent: if it requires elicitations, it must list at least one, each must be by URL and
/// have an id, and the client must have declared the URL mode.
pub(crate) fn check_error(
    error: &PeerError,
    spec: &RevisionSpec,
    declared: &JsonObject,
) -> Result<(), SendError> {
    if error.code() != Some(code::URL_ELICITATION_REQUIRED)
        || spec.lifecycle() == Lifecycle::Discover
    {
        return Ok(());
    }
    if spec.has_elicitation_complete() {
        check_required_elicitations(error, spec).map_err(|reason| SendError::Params {
            method: ELICITATION_METHOD.to_owned(),
            reason,
        })?;
    }
    let path = ["elicitation", "url"];
    if spec.has_elicitation_modes() && !capabilities::is_declared(declared, &path) {
        Err(SendError::Capability {
            method: ELICITATION_METHOD.to_owned(),
            capability: joined(&path, "."),
        })
    } else {
        Ok(())
    }
}

/// Checks the elicitations that an error requires: at least one, each by URL and with an id.
fn check_required_elicitations(error: &PeerError, spec: &RevisionSpec) -> Result<(), String> {
    let demanded = required_elicitations(error).unwrap_or_default();
    if demanded.is_empty() {
        return Err("`data.elicitations` has to list what is required".to_owned());
    }
    for params in &demanded {
        let mode = params.view().find("mode").and_then(|mode| mode.as_str());
        if mode.as_deref() != Some("url") {
            return Err("only elicitations by URL can be required".to_owned());
        }
        input_request::check_elicitation(Some(params), spec, true)?;
    }
    Ok(())
}

/// Returns the elicitations that an error requires.
fn required_elicitations(error: &PeerError) -> Option<Vec<JsonObject>> {
    if error.code() != Some(code::URL_ELICITATION_REQUIRED) {
        return None;
    }
    let data = error.data()?.view().object()?;
    let items: Vec<Json> = data.find("elicitations")?.decode_as().ok()?;
    let objects = items.into_iter().map(JsonObject::try_from);
    objects.collect::<Result<_, _>>().ok()
}

/// Returns the id of an elicitation.
fn elicitation_id(params: &JsonObject) -> Option<String> {
    let id = params.view().find("elicitationId")?;
    id.as_str().map(std::borrow::Cow::into_owned)
}
