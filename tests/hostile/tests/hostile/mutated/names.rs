//! Deserialises an object with serde_json as a list of names and value texts; unlike a map of serde_json, the list
//! keeps the order and duplicates.

use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

/// Members of an object, in order.
pub(crate) struct Members<'de>(Vec<(String, &'de RawValue)>);

impl Members<'_> {
    /// Iterates over names and texts of values.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, raw)| (name.as_str(), raw.get()))
    }

    /// Returns true if two members have the same name.
    pub(crate) fn has_duplicate(&self) -> bool {
        let mut names: Vec<&str> = self.iter().map(|(name, _)| name).collect();
        names.sort_unstable();
        names.windows(2).any(|pair| pair[0] == pair[1])
    }
}

impl<'de> Deserialize<'de> for Members<'de> {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        d.deserialize_map(OrderedMembersVisitor)
    }
}

/// Visitor that keeps the order of the members.
struct OrderedMembersVisitor;

impl<'de> Visitor<'de> for OrderedMembersVisitor {
    type Value = Members<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members<'de>, A::Error> {
        let mut members = Vec::new();
        while let Some(member) = map.next_entry()? {
            members.push(member);
        }
        Ok(Members(members))
    }
}
