//! Functions that are compiled once for all types, because callers describe their values by index: sorting, joining, a
//! map of numbers, and the search for duplicates and substrings.

use std::cmp::Ordering;
use std::collections::HashMap;

/// Maximum number of names that are compared pairwise to find duplicates.
pub(crate) const MAX_PAIRWISE_NAMES: usize = 8;

/// Returns the numbers below `count` in the order of `compare`; equal elements keep their order. Outside semantic
/// versioning.
#[doc(hidden)]
pub fn sorted(count: usize, compare: &dyn Fn(usize, usize) -> Ordering) -> Vec<usize> {
    // A merge sort of a few lines: the sorts of the standard library take ten kilobytes of code for one type.
    let mut order: Vec<usize> = (0..count).collect();
    let mut merged = Vec::with_capacity(count);
    let mut width = 1;
    while width < count {
        for pair in order.chunks(2 * width) {
            let (mut left, mut right) = pair.split_at(width.min(pair.len()));
            // Most inputs are nearly sorted.
            if let (Some(one), Some(other)) = (left.last(), right.first())
                && compare(*one, *other).is_le()
            {
                merged.extend_from_slice(pair);
                continue;
            }
            while let ([one, ..], [other, ..]) = (left, right) {
                if compare(*one, *other).is_le() {
                    merged.push(*one);
                    left = &left[1..];
                } else {
                    merged.push(*other);
                    right = &right[1..];
                }
            }
            merged.extend_from_slice(left);
            merged.extend_from_slice(right);
        }
        std::mem::swap(&mut order, &mut merged);
        merged.clear();
        width *= 2;
    }
    order
}

/// Returns the first name in alphabetical order that occurs twice among `count` names. Outside semantic versioning.
#[doc(hidden)]
pub fn duplicate<'n>(count: usize, name: &dyn Fn(usize) -> &'n str) -> Option<&'n str> {
    if count <= MAX_PAIRWISE_NAMES {
        let is_repeated = |at: usize| (0..at).any(|before| name(before) == name(at));
        return (1..count).filter(|at| is_repeated(*at)).map(name).min();
    }
    let order = sorted(count, &|one, other| name(one).cmp(name(other)));
    let mut pairs = order.windows(2);
    pairs
        .find(|pair| name(pair[0]) == name(pair[1]))
        .map(|pair| name(pair[0]))
}

/// Map from numbers to numbers. Outside semantic versioning.
#[doc(hidden)]
#[derive(Debug, Default)]
pub struct NumberMap(HashMap<u64, usize>);

impl NumberMap {
    /// Sets the value of a key, and returns the previous one.
    pub fn insert(&mut self, key: u64, value: usize) -> Option<usize> {
        self.0.insert(key, value)
    }

    /// Removes a key, and returns its value.
    pub fn remove(&mut self, key: u64) -> Option<usize> {
        self.0.remove(&key)
    }

    /// Returns the value of a key.
    pub fn get(&self, key: u64) -> Option<usize> {
        self.0.get(&key).copied()
    }
}

/// Returns the parts with a separator between them. Outside semantic versioning.
#[doc(hidden)]
pub fn joined(parts: &[&str], separator: &str) -> String {
    let mut text =
        String::with_capacity(parts.iter().map(|part| part.len() + separator.len()).sum());
    for (at, part) in parts.iter().enumerate() {
        if at > 0 {
            text.push_str(separator);
        }
        text.push_str(part);
    }
    text
}

/// Minimum length of a text, in bytes, from which on [`contains`] prepares a substring search.
const LONG: usize = 512;

/// Returns true if `text` contains `part`. In a short text, comparing at each occurrence of the first byte costs less
/// than preparing a substring search. Outside semantic versioning.
#[doc(hidden)]
pub fn contains(text: &str, part: &str) -> bool {
    let (text, part) = (text.as_bytes(), part.as_bytes());
    if text.len() >= LONG {
        return memchr::memmem::find(text, part).is_some();
    }
    let Some(&first) = part.first() else {
        return true;
    };
    memchr::memchr_iter(first, text).any(|at| text[at..].starts_with(part))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sorting keeps the order of equal elements.
    #[test]
    fn equal_ones_keep_their_order() {
        let values: Vec<usize> = (0..200).map(|at| at * 7919 % 13).collect();
        let order = sorted(values.len(), &|one, other| values[one].cmp(&values[other]));
        let mut expected: Vec<usize> = (0..values.len()).collect();
        expected.sort_by_key(|at| values[*at]);
        assert_eq!(order, expected);
    }

    #[test]
    fn parts_are_joined() {
        assert_eq!(joined(&[], "."), "");
        assert_eq!(joined(&["a"], "."), "a");
        assert_eq!(joined(&["a", "", "b"], "."), "a..b");
        assert_eq!(joined(&["a", "b"], ""), "ab");
    }

    /// A duplicate is found at any distance from the first occurrence, with few and with many names.
    #[test]
    fn duplicates_are_found_at_any_distance() {
        for count in [0, 1, 2, 5, MAX_PAIRWISE_NAMES, MAX_PAIRWISE_NAMES + 1, 40] {
            let names: Vec<String> = (0..count).map(|at| at.to_string()).collect();
            assert_eq!(duplicate(count, &|at| &names[at]), None);
            for (one, other) in [(0, 1), (0, count.saturating_sub(1)), (count / 2, 0)] {
                if one != other && one.max(other) < count {
                    let mut twice = names.clone();
                    twice[one] = twice[other].clone();
                    let expected = twice[other].as_str();
                    assert_eq!(duplicate(count, &|at| &twice[at]), Some(expected));
                }
            }
        }
    }

    /// A substring is found in short and in long texts, also at the end.
    #[test]
    fn parts_of_texts_are_found() {
        for length in [0, 10, LONG, 3 * LONG] {
            let run = "ab".repeat(length / 2);
            assert!(contains(&format!("{run}acd{run}"), "acd"));
            assert!(contains(&format!("{run}acd"), "acd"));
            assert!(!contains(&format!("{run}ac"), "acd"));
            assert!(contains(&run, ""));
        }
    }
}
