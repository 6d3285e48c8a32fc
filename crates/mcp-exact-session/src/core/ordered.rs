//! Map whose keys are mostly inserted in ascending order: a sorted vector that keeps its capacity.
//!
//! The map is efficient for few small values whose keys the endpoint chooses. Unlike a tree, it does not allocate and
//! free a node for each request of an endpoint that handles one request at a time.

/// Vector of keys and values, sorted by key.
#[derive(Debug)]
pub(crate) struct OrderedMap<K, V>(Vec<(K, V)>);

impl<K, V> Default for OrderedMap<K, V> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<K: Ord + Copy, V> OrderedMap<K, V> {
    /// Returns the index of a key, or the index for its insertion.
    fn index_of(&self, key: K) -> Result<usize, usize> {
        // Most lookups are for the first or the last key.
        match self.0.as_slice() {
            [] => Err(0),
            [.., (last, _)] if *last < key => Err(self.0.len()),
            [(first, _), ..] if *first == key => Ok(0),
            all => all.binary_search_by(|(known, _)| known.cmp(&key)),
        }
    }

    /// Sets the value of a key.
    pub(crate) fn insert(&mut self, key: K, value: V) {
        match self.index_of(key) {
            Ok(at) => self.0[at].1 = value,
            Err(at) => {
                if self.0.capacity() == 0 {
                    // Most maps of an idle endpoint never contain a second entry; `Vec` begins with room for four.
                    self.0.reserve_exact(1);
                }
                self.0.insert(at, (key, value));
            }
        }
    }

    /// Removes a key and returns its value.
    pub(crate) fn remove(&mut self, key: K) -> Option<V> {
        let at = self.index_of(key).ok()?;
        Some(self.0.remove(at).1)
    }

    pub(crate) fn get(&self, key: K) -> Option<&V> {
        let at = self.index_of(key).ok()?;
        Some(&self.0[at].1)
    }

    pub(crate) fn get_mut(&mut self, key: K) -> Option<&mut V> {
        let at = self.index_of(key).ok()?;
        Some(&mut self.0[at].1)
    }

    /// Returns the lowest key.
    pub(crate) fn first(&self) -> Option<K> {
        self.0.first().map(|(key, _)| *key)
    }

    /// Releases unused memory.
    pub(crate) fn release_memory(&mut self) {
        self.0.shrink_to_fit();
    }

    /// Iterates over the keys and values in ascending order of the keys.
    pub(crate) fn iter(&self) -> impl DoubleEndedIterator<Item = (K, &V)> {
        self.0.iter().map(|(key, value)| (*key, value))
    }

    /// Iterates over the values in ascending order of their keys.
    pub(crate) fn values_mut(&mut self) -> impl Iterator<Item = &mut V> {
        self.0.iter_mut().map(|(_, value)| value)
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The map behaves like a `BTreeMap` for any sequence of insertions and removals.
    #[test]
    fn keys_stay_in_order() {
        let mut map = OrderedMap::default();
        let mut tree = std::collections::BTreeMap::new();
        for step in 0..500_u32 {
            let key = step.wrapping_mul(2_654_435_761) % 40;
            match step % 3 {
                0 => assert_eq!(map.remove(key), tree.remove(&key)),
                _ => {
                    map.insert(key, step);
                    tree.insert(key, step);
                }
            }
            assert_eq!(map.get(key), tree.get(&key));
            assert_eq!(map.get_mut(key), tree.get_mut(&key));
            assert_eq!(map.first(), tree.keys().next().copied());
            assert!(map.iter().eq(tree.iter().map(|(key, value)| (*key, value))));
            assert_eq!(map.len(), tree.len());
        }
    }
}
