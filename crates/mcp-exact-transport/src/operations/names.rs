//! Names of tools and prompts that are known to exist, so that invented names never become names of spans or attributes
//! of metrics.

use std::collections::HashSet;
use std::sync::{LazyLock, Mutex, PoisonError};

/// Maximum number of known names; further names are left out of spans and metrics.
const MAX_NAMES: usize = 1_000;
/// Maximum length in bytes of a name in spans and metrics.
pub(super) const MAX_NAME_BYTES: usize = 128;

/// Names that are known to exist.
static KNOWN: LazyLock<Mutex<HashSet<Box<str>>>> = LazyLock::new(Mutex::default);

/// Returns true if the name is known.
pub(super) fn is_known(name: &str) -> bool {
    let known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    known.contains(name)
}

/// Records that a tool or prompt of this name exists; returns true if the name is known from now on.
pub(crate) fn learn_name(name: &str) -> bool {
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    if known.contains(name) {
        return true;
    }
    let fits = known.len() < MAX_NAMES && name.len() <= MAX_NAME_BYTES;
    fits && known.insert(name.into())
}
