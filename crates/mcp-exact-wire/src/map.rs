//! Maps with values of one type, in the order of arrival and with unique names.

use std::collections::HashMap;
use std::fmt;

use crate::error::ReadResult;
use crate::order::duplicate;
use crate::reader::{Reader, duplicate_in};
use crate::traits::{Decode, Encode};
use crate::writer::Writer;

/// A JSON object of values of one type, in order of arrival.
///
/// A lookup is a linear search, because the maps of the protocol are small.
#[derive(Clone, PartialEq, Eq)]
pub struct Map<V>(Vec<(String, V)>);

impl<V> Map<V> {
    /// Creates an empty map.
    pub const fn new() -> Self {
        Self(Vec::new())
    }

    /// Returns the number of entries.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns true if the map has no entries.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the value of the entry `name`.
    pub fn get(&self, name: &str) -> Option<&V> {
        self.0
            .iter()
            .find_map(|(known, value)| (known == name).then_some(value))
    }

    /// Returns the value of the entry `name` for modification.
    pub fn get_mut(&mut self, name: &str) -> Option<&mut V> {
        self.0
            .iter_mut()
            .find_map(|(known, value)| (known == name).then_some(value))
    }

    /// Sets the value of `name` and returns the previous value. A new name is added at the end.
    pub fn insert(&mut self, name: impl Into<String>, value: V) -> Option<V> {
        let name = name.into();
        match self.get_mut(&name) {
            Some(old) => Some(std::mem::replace(old, value)),
            None => {
                self.0.push((name, value));
                None
            }
        }
    }

    /// Removes an entry and returns its value; the other entries keep their order.
    pub fn remove(&mut self, name: &str) -> Option<V> {
        let at = self.0.iter().position(|(known, _)| known == name)?;
        Some(self.0.remove(at).1)
    }

    /// Iterates over all entries in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&str, &V)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value))
    }
}

impl<V> Default for Map<V> {
    fn default() -> Self {
        Self::new()
    }
}

impl<V: fmt::Debug> fmt::Debug for Map<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

impl<N: Into<String>, V> FromIterator<(N, V)> for Map<V> {
    /// Collects entries; a repeated name has its last value.
    fn from_iter<I: IntoIterator<Item = (N, V)>>(entries: I) -> Self {
        let mut map = Self::new();
        map.extend(entries);
        map
    }
}

impl<N: Into<String>, V> Extend<(N, V)> for Map<V> {
    fn extend<I: IntoIterator<Item = (N, V)>>(&mut self, entries: I) {
        let mut places = Places::default();
        for (name, _) in &self.0 {
            places.place_of(name.as_bytes());
        }
        for (name, value) in entries {
            let name = name.into();
            let place = places.place_of(name.as_bytes());
            if place == self.0.len() {
                self.0.push((name, value));
            } else {
                self.0[place].1 = value;
            }
        }
    }
}

/// Positions of names in the order of arrival, for collecting entries into a map; not generic, so that the code is
/// compiled once.
#[derive(Default)]
pub(crate) struct Places(HashMap<Box<[u8]>, usize>);

impl Places {
    /// Returns the position of a name; a new name gets the next position.
    pub(crate) fn place_of(&mut self, name: &[u8]) -> usize {
        if let Some(&place) = self.0.get(name) {
            return place;
        }
        let place = self.0.len();
        self.0.insert(name.into(), place);
        place
    }
}

impl<V> IntoIterator for Map<V> {
    type Item = (String, V);
    type IntoIter = std::vec::IntoIter<(String, V)>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl<V: Decode> Decode for Map<V> {
    fn decode(r: &mut Reader<'_>) -> ReadResult<Self> {
        r.open_object()?;
        let start = r.at() - 1;
        let mut entries = Vec::new();
        let mut first = true;
        while r.next_member(&mut first)?.is_some() {
            let name = r.string()?;
            r.colon()?;
            entries.push((name, V::decode(r)?));
        }
        if let Some(name) = duplicate(entries.len(), &|at| entries[at].0.as_str()) {
            return Err(duplicate_in(r, start, name));
        }
        Ok(Self(entries))
    }
}

impl<V: Encode> Encode for Map<V> {
    fn encode(&self, w: &mut Writer<'_>) {
        w.put("{");
        for (name, value) in &self.0 {
            w.name(name);
            value.encode(w);
        }
        w.put("}");
    }
}
