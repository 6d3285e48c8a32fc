//! Pages of lists that are used again, as long as the server allows it (2026-07-28, `server/utilities/caching`).
//!
//! Keeps a page until its `ttlMs` is over or the server announces a change of its list. Results of other requests are not kept.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::connect::ClientChange;
use crate::link::JsonObject;

/// Pages that are kept at most, and the bytes of each.
const PAGES: usize = 256;
const PAGE_BYTES: usize = 1 << 20;
/// Longest time that a page is kept, whatever the server says.
const LONGEST: Duration = Duration::from_secs(24 * 3600);

#[derive(Debug, Default)]
pub(super) struct Cache(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    pages: HashMap<(&'static str, String), (Instant, JsonObject)>,
    /// Number of changes that were announced.
    changes: u64,
}

/// Point in time of a request: a page that was asked for before a change is not kept after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Asked(u64);

impl Cache {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the page that was kept for a request, or the point in time of the request.
    pub(super) fn get(&self, list: &'static str, params: &str) -> Result<JsonObject, Asked> {
        let state = self.state();
        let page = state.pages.get(&(list, params.to_owned()));
        match page.filter(|(end, _)| *end > Instant::now()) {
            Some((_, page)) => Ok(page.clone()),
            None => Err(Asked(state.changes)),
        }
    }

    /// Keeps a page, if the server allows it.
    pub(super) fn keep(&self, list: &'static str, params: &str, asked: Asked, page: &JsonObject) {
        let lifetime = page.get("ttlMs").and_then(|ttl| ttl.parse::<u64>().ok());
        let lifetime = Duration::from_millis(lifetime.unwrap_or(0)).min(LONGEST);
        let mut state = self.state();
        let is_new = asked == Asked(state.changes);
        if lifetime.is_zero() || !is_new || page.text().len() > PAGE_BYTES {
            return;
        }
        let now = Instant::now();
        if state.pages.len() >= PAGES {
            state.pages.retain(|_, (end, _)| *end > now);
        }
        if state.pages.len() < PAGES {
            let entry = (now + lifetime, page.clone());
            state.pages.insert((list, params.to_owned()), entry);
        }
    }

    /// Forgets the pages of the lists that have changed.
    pub(super) fn changed(&self, change: &ClientChange) {
        let lists: &[&str] = match change {
            ClientChange::Tools => &["tools/list"],
            ClientChange::Prompts => &["prompts/list"],
            ClientChange::Resources => &["resources/list", "resources/templates/list"],
            ClientChange::Resource(_) => return,
        };
        let mut state = self.state();
        state.changes += 1;
        state.pages.retain(|(list, _), _| !lists.contains(list));
    }
}
