//! Compile-time index of the rule table: the row of each method, and the revisions that define the row.
//!
//! The index is computed from the rows of the table [`RULES`].

use mcp_exact_revisions::{RevisionSpec, Side};

use super::rule::{MessageKind, Rule};
use super::table::RULES;

/// Number of slots of the hash index: a power of two, of which more than half are free.
const SLOT_COUNT: usize = 128;
/// Value of a slot without a row.
const FREE_SLOT: u8 = u8::MAX;

/// Hash index with linear probing: each slot contains the number of a row or [`FREE_SLOT`].
static ROWS: [u8; SLOT_COUNT] = {
    assert!(RULES.len() < SLOT_COUNT / 2 && RULES.len() < FREE_SLOT as usize);
    let mut rows = [FREE_SLOT; SLOT_COUNT];
    let mut row = 0;
    while row < RULES.len() {
        let mut slot = hash_slot(RULES[row].method);
        while rows[slot] != FREE_SLOT {
            slot = (slot + 1) % SLOT_COUNT;
        }
        rows[slot] = row as u8;
        row += 1;
    }
    rows
};

/// Revisions that define each row, one bit per revision, by [`RevisionSpec::index`].
static DEFINED_REVISIONS: [u64; RULES.len()] = {
    let all = mcp_exact_revisions::all();
    assert!(all.len() <= 64);
    let mut defined = [0; RULES.len()];
    let mut row = 0;
    while row < RULES.len() {
        let mut index = 0;
        while index < all.len() {
            if defines_method(&all[index], &RULES[row]) {
                defined[row] |= 1 << index;
            }
            index += 1;
        }
        row += 1;
    }
    defined
};

/// Returns the row of a method, with its number.
pub(super) fn find_row(
    kind: MessageKind,
    sender: Side,
    method: &str,
) -> Option<(usize, &'static Rule)> {
    let mut slot = hash_slot(method);
    loop {
        let number = usize::from(ROWS[slot]);
        // A free slot has no row.
        let rule = RULES.get(number)?;
        if rule.method == method && rule.kind == kind && rule.sender == sender {
            return Some((number, rule));
        }
        slot = (slot + 1) % SLOT_COUNT;
    }
}

/// Returns true if a revision defines the row with this number.
pub(super) fn is_defined(number: usize, spec: &RevisionSpec) -> bool {
    DEFINED_REVISIONS[number] >> spec.index() & 1 == 1
}

/// Returns the first slot of a method, computed from its length and a few of its letters.
const fn hash_slot(method: &str) -> usize {
    let bytes = method.as_bytes();
    if bytes.is_empty() {
        return 0;
    }
    let last = bytes[bytes.len().saturating_sub(4)] as usize;
    let middle = bytes[bytes.len() / 2] as usize;
    (7 * last + 21 * middle) % SLOT_COUNT
}

/// Returns true if a revision defines the method of a row.
const fn defines_method(spec: &RevisionSpec, rule: &Rule) -> bool {
    let methods = spec.methods(rule.sender);
    match rule.kind {
        MessageKind::Request => contains_method(methods.requests(), rule.method),
        MessageKind::Notification => contains_method(methods.notifications(), rule.method),
        MessageKind::InputRequest => spec.has_input_required(),
    }
}

/// Returns true if the list contains the method.
const fn contains_method(methods: &[&str], method: &str) -> bool {
    let mut at = 0;
    while at < methods.len() {
        if is_equal(methods[at].as_bytes(), method.as_bytes()) {
            return true;
        }
        at += 1;
    }
    false
}

/// Compares two byte strings at compile time.
const fn is_equal(one: &[u8], other: &[u8]) -> bool {
    if one.len() != other.len() {
        return false;
    }
    let mut at = 0;
    while at < one.len() {
        if one[at] != other[at] {
            return false;
        }
        at += 1;
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The index finds each row of the rule table by its method, and finds no row for other methods.
    #[test]
    fn every_row_is_found() {
        for (number, rule) in RULES.iter().enumerate() {
            let found = find_row(rule.kind, rule.sender, rule.method);
            assert_eq!(found.map(|(number, _)| number), Some(number));
        }
        for method in ["", "x", "tools/calls", "tools/cal", "Tools/call"] {
            assert!(find_row(MessageKind::Request, Side::Client, method).is_none());
        }
    }

    /// A row is defined in exactly those revisions whose revision table contains the method of the row.
    #[test]
    fn row_revisions_match_revision_table() {
        for (number, rule) in RULES.iter().enumerate() {
            for spec in mcp_exact_revisions::all() {
                let defines = match rule.kind {
                    MessageKind::Request => spec.sends_request(rule.sender, rule.method),
                    MessageKind::Notification => spec.sends_notification(rule.sender, rule.method),
                    MessageKind::InputRequest => spec.has_input_required(),
                };
                assert_eq!(is_defined(number, spec), defines, "{} {spec}", rule.method);
            }
        }
    }

    /// Few methods share a slot, so that most lookups read one row.
    #[test]
    fn lookups_probe_few_slots() {
        let probe_count = |rule: &Rule| {
            let mut slot = hash_slot(rule.method);
            let mut steps = 1;
            while !std::ptr::eq(&RULES[usize::from(ROWS[slot])], rule) {
                slot = (slot + 1) % SLOT_COUNT;
                steps += 1;
            }
            steps
        };
        let longest = RULES.iter().map(probe_count).max();
        assert!(longest <= Some(5), "{longest:?}");
        let all: usize = RULES.iter().map(probe_count).sum();
        assert!(all <= 69, "{all} steps for {} rows", RULES.len());
    }
}
