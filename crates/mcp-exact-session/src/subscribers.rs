//! Registry of the subscriptions of many clients, so that a change is sent to the subscribed clients without a search
//! through all endpoints.
//!
//! The caller updates the filter of each client; the registry returns the clients whose filters include a change. The
//! registry does not refer to endpoints.

use std::collections::{BTreeMap, BTreeSet};

use crate::change::Change;
use crate::filter::Filter;

/// Index of clients by the changes to which they subscribe.
///
/// `K` identifies a client, or the endpoint that serves the client.
#[derive(Debug, Clone)]
pub struct Subscribers<K> {
    /// Filter of each client.
    interests: BTreeMap<K, Filter>,
    /// Clients that subscribe to changes of the list of tools.
    tools: BTreeSet<K>,
    /// Clients that subscribe to changes of the list of prompts.
    prompts: BTreeSet<K>,
    /// Clients that subscribe to changes of the list of resources.
    resources: BTreeSet<K>,
    /// Clients that subscribe to each resource, by URI.
    uris: BTreeMap<String, BTreeSet<K>>,
}

impl<K> Default for Subscribers<K> {
    fn default() -> Self {
        Self {
            interests: BTreeMap::new(),
            tools: BTreeSet::new(),
            prompts: BTreeSet::new(),
            resources: BTreeSet::new(),
            uris: BTreeMap::new(),
        }
    }
}

impl<K: Ord + Clone> Subscribers<K> {
    /// Creates an empty registry.
    pub fn new() -> Self {
        Self::default()
    }

    /// Replaces the filter of the changes to which a client subscribes; an empty filter removes the client.
    ///
    /// Call this function with [`ServerEndpoint::subscribed_changes`](crate::ServerEndpoint::subscribed_changes) after
    /// each frame that may have changed the subscriptions.
    pub fn replace(&mut self, key: K, interests: Filter) {
        if self.interests.get(&key) == Some(&interests) {
            return;
        }
        self.remove(&key);
        if interests.is_empty() {
            return;
        }
        let lists = [
            (interests.tools, &mut self.tools),
            (interests.prompts, &mut self.prompts),
            (interests.resources, &mut self.resources),
        ];
        for (wanted, keys) in lists {
            if wanted {
                keys.insert(key.clone());
            }
        }
        for uri in &interests.uris {
            let keys = self.uris.entry(uri.clone()).or_default();
            keys.insert(key.clone());
        }
        self.interests.insert(key, interests);
    }

    /// Removes a client and its filter from the registry.
    pub fn remove(&mut self, key: &K) {
        let Some(interests) = self.interests.remove(key) else {
            return;
        };
        self.tools.remove(key);
        self.prompts.remove(key);
        self.resources.remove(key);
        for uri in interests.uris {
            if let Some(keys) = self.uris.get_mut(&uri) {
                keys.remove(key);
                if keys.is_empty() {
                    self.uris.remove(&uri);
                }
            }
        }
    }

    /// Iterates over the clients whose filter includes the change.
    pub fn interested_clients(&self, change: &Change) -> impl Iterator<Item = &K> {
        let keys = match change {
            Change::Tools => Some(&self.tools),
            Change::Prompts => Some(&self.prompts),
            Change::Resources => Some(&self.resources),
            Change::Resource(uri) => self.uris.get(uri),
        };
        keys.into_iter().flatten()
    }

    /// Returns the number of clients with subscriptions.
    pub fn len(&self) -> usize {
        self.interests.len()
    }

    /// Returns true if no client has subscriptions.
    pub fn is_empty(&self) -> bool {
        self.interests.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Only clients whose current filter includes a change are returned.
    #[test]
    fn changes_reach_interested_clients_only() {
        let mut all = Subscribers::new();
        let filter = |tools, uris: &[&str]| Filter {
            tools,
            uris: uris.iter().map(|uri| (*uri).to_owned()).collect(),
            ..Filter::default()
        };
        all.replace(1, filter(true, &["file:///a"]));
        all.replace(2, filter(false, &["file:///a", "file:///b"]));
        all.replace(3, filter(true, &[]));
        let concerned = |all: &Subscribers<i32>, change: Change| {
            all.interested_clients(&change).copied().collect::<Vec<_>>()
        };
        let a = || Change::Resource("file:///a".into());
        assert_eq!(concerned(&all, Change::Tools), [1, 3]);
        assert_eq!(concerned(&all, a()), [1, 2]);
        all.replace(1, filter(false, &[]));
        all.remove(&3);
        assert_eq!(concerned(&all, a()), [2]);
        assert_eq!(concerned(&all, Change::Tools), Vec::<i32>::new());
        assert_eq!((all.len(), all.is_empty()), (1, false));
    }
}
