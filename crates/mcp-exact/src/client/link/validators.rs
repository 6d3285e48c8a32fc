//! Compiled output schemas of the tools of a server, until the server announces a change of its tools.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};

use jsonschema::Validator;

use crate::sync::lock;

/// Validators by tool name.
pub(in crate::client) type Validators = Arc<HashMap<String, Validator>>;

/// Output validators of a server's tools, compiled when the first result is validated.
#[derive(Debug, Default)]
pub(in crate::client) struct OutputChecks(Mutex<CheckState>);

/// Compiled validators, and the version of the tool list that they belong to.
#[derive(Debug, Default)]
struct CheckState {
    /// Validators of all tools; `None` if they must be compiled again.
    validators_by_tool: Option<Validators>,
    /// Number of changes of the tool list that the server has announced.
    change_count: u64,
}

impl OutputChecks {
    /// Locks the compiled validators.
    fn state(&self) -> MutexGuard<'_, CheckState> {
        lock(&self.0)
    }

    /// Discards the schemas, because the list of tools has changed.
    pub(in crate::client) fn discard_schemas(&self) {
        let mut state = self.state();
        state.change_count += 1;
        state.validators_by_tool = None;
    }

    /// Returns the validators, if they are compiled, and the number of changes of the tool list so far.
    pub(in crate::client) fn known(&self) -> (Option<Validators>, u64) {
        let state = self.state();
        (state.validators_by_tool.clone(), state.change_count)
    }

    /// Keeps validators, unless the tool list has changed since there were `changes` of it.
    pub(in crate::client) fn keep(&self, validators: &Validators, changes: u64) {
        let mut state = self.state();
        if state.change_count == changes {
            state.validators_by_tool = Some(Arc::clone(validators));
        }
    }
}
