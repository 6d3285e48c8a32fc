//! Compile-time index of the rule table: the row of each method, and the revisions that define the row.
//!
//! The index is computed from the rows of the table [`RULES`].

use mcp_exact_revisions::{MethodId, RevisionSpec, Side};

use super::rule::{MessageKind, Rule};
use super::table::RULES;

/// Number of kinds of messages, each of two senders.
const GROUP_COUNT: usize = 6;
/// Number for a method without a row.
const NO_ROW: u8 = u8::MAX;

/// Number of the row of each method, by the kind and sender of the message.
static ROWS: [[u8; MethodId::COUNT]; GROUP_COUNT] = {
    assert!(RULES.len() < NO_ROW as usize);
    let mut rows = [[NO_ROW; MethodId::COUNT]; GROUP_COUNT];
    let mut row = 0;
    while row < RULES.len() {
        let Rule {
            kind, sender, id, ..
        } = &RULES[row];
        rows[group(*kind, *sender)][id.index()] = row as u8;
        row += 1;
    }
    rows
};

/// Returns the index of a kind and sender.
const fn group(kind: MessageKind, sender: Side) -> usize {
    let of_server = match sender {
        Side::Client => 0,
        Side::Server => 1,
    };
    2 * kind as usize + of_server
}

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
    method: MethodId,
) -> Option<(usize, &'static Rule)> {
    let number = usize::from(ROWS[group(kind, sender)][method.index()]);
    // No row has the number of a method without one.
    Some((number, RULES.get(number)?))
}

/// Returns true if a revision defines the row with this number.
pub(super) fn is_defined(number: usize, spec: &RevisionSpec) -> bool {
    DEFINED_REVISIONS[number] >> spec.index() & 1 == 1
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
            let found = find_row(rule.kind, rule.sender, rule.id);
            assert_eq!(found.map(|(number, _)| number), Some(number));
        }
        for method in ["", "x", "tools/calls", "tools/cal", "Tools/call"] {
            let method = MethodId::from_name(method);
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
}
