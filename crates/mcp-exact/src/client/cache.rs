//! Cache of list pages, kept as long as the server allows (2026-07-28, `server/utilities/caching`).
//!
//! A page is kept until its `ttlMs` has elapsed or the server announces a change of its list. Results of other requests
//! are not cached.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};

use super::event::ClientChange;
use crate::protocol::extension::SKILLS_LIST;
use crate::protocol::{JsonObject, method};
use crate::sync::lock;

/// Maximum number of cached pages.
const MAX_PAGES: usize = 256;
/// Maximum size of a cached page in bytes; larger pages are not cached.
const MAX_PAGE_BYTES: usize = 1 << 20;
/// Maximum time that a page is kept, even if its `ttlMs` is longer.
const MAX_AGE: Duration = Duration::from_secs(24 * 3600);

/// Cache of list pages, shared by the clones of a client.
#[derive(Debug, Default)]
pub(super) struct PageCache(Mutex<CacheState>);

/// Cached pages and the current cache generation.
#[derive(Debug, Default)]
struct CacheState {
    /// Expiry and content of each page, by list method and params.
    pages: HashMap<(&'static str, String), (Instant, JsonObject)>,
    /// Cache generation of a request that is sent now.
    generation: CacheGeneration,
}

/// Cache generation in which a request was sent. A page is not cached if the server has announced a change of any list,
/// or the access token was replaced, after its request was sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct CacheGeneration {
    /// Number of list changes that the server has announced.
    change_count: u64,
    /// Version number of the access token, which changes whenever the token is replaced.
    token_version: u64,
}

impl PageCache {
    /// Locks the state of the cache.
    fn state(&self) -> MutexGuard<'_, CacheState> {
        lock(&self.0)
    }

    /// Returns the cache generation for a request that is sent with the access token of version `token`. Clears the
    /// cache if the version of the token has changed ("a different access token requires a different cache").
    pub(super) fn current_generation(&self, token: u64) -> CacheGeneration {
        let mut state = self.state();
        if state.generation.token_version != token {
            state.generation.token_version = token;
            state.pages.clear();
        }
        state.generation
    }

    /// Returns the cached page for a list method and its params, unless the page has expired.
    pub(super) fn unexpired_page(&self, list: &'static str, params: &str) -> Option<JsonObject> {
        let state = self.state();
        let page = state.pages.get(&(list, params.to_owned()));
        let (_, page) = page.filter(|(end, _)| *end > Instant::now())?;
        Some(page.clone())
    }

    /// Stores a page and replaces the previous one, if the server allows caching. `asked` is the generation in which
    /// the page was requested, and `token` the current version of the access token.
    pub(super) fn insert_page(
        &self,
        list: &'static str,
        params: &str,
        asked: CacheGeneration,
        token: u64,
        page: &JsonObject,
    ) {
        if self.current_generation(token) != asked {
            return;
        }
        let lifetime = page.get("ttlMs").and_then(|ttl| ttl.parse::<u64>().ok());
        let lifetime = Duration::from_millis(lifetime.unwrap_or(0)).min(MAX_AGE);
        let key = (list, params.to_owned());
        let mut state = self.state();
        state.pages.remove(&key);
        if lifetime.is_zero() || page.text().len() > MAX_PAGE_BYTES {
            return;
        }
        let now = Instant::now();
        if state.pages.len() >= MAX_PAGES {
            state.pages.retain(|_, (end, _)| *end > now);
        }
        if state.pages.len() < MAX_PAGES {
            state.pages.insert(key, (now + lifetime, page.clone()));
        }
    }

    /// Removes all pages, and keeps none that was requested before.
    pub(super) fn clear(&self) {
        let mut state = self.state();
        state.generation.change_count += 1;
        state.pages.clear();
    }

    /// Removes the cached pages of one list; `list` is its method.
    pub(super) fn remove_list_pages(&self, list: &'static str) {
        self.state().pages.retain(|(kept, _), _| *kept != list);
    }

    /// Removes the cached pages of the lists that a change concerns.
    pub(super) fn remove_changed(&self, change: &ClientChange) {
        let lists: &[&str] = match change {
            ClientChange::Tools => &[method::TOOLS_LIST],
            ClientChange::Prompts => &[method::PROMPTS_LIST],
            ClientChange::Resources => &[
                method::RESOURCES_LIST,
                method::RESOURCES_TEMPLATES_LIST,
                SKILLS_LIST,
            ],
            // The resource may be a file of a skill, whose entry has another digest then.
            ClientChange::Resource(_) => &[SKILLS_LIST],
        };
        let mut state = self.state();
        state.generation.change_count += 1;
        state.pages.retain(|(list, _), _| !lists.contains(list));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Method of the list in these tests.
    const TOOLS_METHOD: &str = "tools/list";

    /// Parses a page.
    fn cached_page(text: &str) -> JsonObject {
        text.parse().expect(text)
    }

    /// "Caches MUST NOT be shared across authorization contexts (e.g. a different access token requires a different cache)".
    #[test]
    fn cached_pages_belong_to_one_token() {
        let cache = PageCache::default();
        let kept = cached_page(r#"{"ttlMs":60000}"#);
        let asked = cache.current_generation(1);
        cache.insert_page(TOOLS_METHOD, "", asked, 1, &kept);
        assert_eq!(cache.unexpired_page(TOOLS_METHOD, ""), Some(kept.clone()));
        let asked = cache.current_generation(2);
        assert_eq!(cache.unexpired_page(TOOLS_METHOD, ""), None);
        // The token was replaced while the request was in flight.
        cache.insert_page(TOOLS_METHOD, "", asked, 3, &kept);
        assert_eq!(cache.unexpired_page(TOOLS_METHOD, ""), None);
    }

    /// A changed resource may be a file of a skill, whose entry has its digest; it is in no other list.
    #[test]
    fn changed_resources_concern_skills() {
        let cache = PageCache::default();
        let kept = cached_page(r#"{"ttlMs":60000}"#);
        let asked = cache.current_generation(1);
        for list in ["skills/list", "resources/list"] {
            cache.insert_page(list, "", asked, 1, &kept);
        }
        cache.remove_changed(&ClientChange::Resource("skill://a/SKILL.md".to_owned()));
        assert_eq!(cache.unexpired_page("skills/list", ""), None);
        assert_eq!(cache.unexpired_page("resources/list", ""), Some(kept));
    }

    /// A page replaces the cached page of the same request; a page whose `ttlMs` is 0 only removes the cached page.
    #[test]
    fn newer_pages_replace_cached_pages() {
        let cache = PageCache::default();
        for (text, is_kept) in [
            (r#"{"ttlMs":60000,"tools":[]}"#, true),
            (r#"{"ttlMs":60000,"tools":[{}]}"#, true),
            (r#"{"ttlMs":0}"#, false),
        ] {
            cache.insert_page(
                TOOLS_METHOD,
                "",
                cache.current_generation(0),
                0,
                &cached_page(text),
            );
            assert_eq!(
                cache.unexpired_page(TOOLS_METHOD, ""),
                is_kept.then(|| cached_page(text)),
                "{text}"
            );
        }
    }
}
