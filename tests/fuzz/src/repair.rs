//! Properties of repairs: a valid text is never touched, a repaired text is valid, and what a repair costs is in proportion
//! to the text.

use mcp_exact_convert::{
    KnownRevision, MAX_REPAIRS, MessageKind, Payload, RepairRule, Repaired, Role,
    bytes_read_by_repair, check, check_type, repair as repair_payload, repair_message, repair_type,
    violations,
};
use mcp_exact_wire::JsonObject;

use crate::convert::definition_of_input;
use crate::heap::peak_bytes_during;

/// Bytes of text that a repair may read for each byte of the text: once on each typed level, and on a level whose variant
/// is unknown once for each variant.
const MAX_READ: usize = 400;
/// Bytes that a repair may hold for each byte of the text: a member of six bytes has a name, a value and their places.
const MAX_HELD: usize = 64;
/// Bytes that a repair may hold for any text: its records are bounded in number and size.
const MAX_HELD_ALWAYS: usize = 64 << 10;

/// What a repair has cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cost {
    /// Bytes of text that were read, counting those that were read again.
    pub read: usize,
    /// Bytes of memory that were in use at the same time.
    pub held: usize,
}

/// Runs the repairs that the input describes.
///
/// The first line names a definition and the index of a revision, as that of [`conversion`](crate::conversion) does; the rest
/// is the text. It is repaired as that definition and as the params of some methods; the whole input is repaired as a message.
pub fn repair(bytes: &[u8]) {
    if let Some((after, repairs)) = repair_message(bytes) {
        // An error that is no error object is in the data of one, with its words as the message.
        assert!(!repairs.is_empty() && after.len() <= 2 * bytes.len() + 1_024);
        assert_eq!(repair_message(&after), None);
    }
    let Some((name, of, text)) = definition_of_input(bytes) else {
        return;
    };
    check_repair(name, of, text);
    measure_repair(name, of, text);
    for method in METHODS {
        check_params(method, of, text);
    }
}

/// Methods whose params are repaired, with required, optional and nested members and maps.
const METHODS: &[&str] = &[
    "initialize",
    "tools/call",
    "tools/list",
    "prompts/get",
    "notifications/progress",
];

/// Checks that a repair of a definition touches no valid text, gives valid text, and that the text and the report of the
/// repair are bounded.
fn check_repair(name: &str, of: KnownRevision, text: &str) {
    let way = format!("{of} {name}: {text}");
    let Some(repaired) = repair_type(name, text, of) else {
        return;
    };
    let after = &repaired.text;
    // Decoding keeps schemas of tools as they are.
    let was_valid = violations(name, text, of).is_ok_and(|found| found.is_empty());
    assert!(!was_valid, "{way} was valid");
    assert_eq!(check_type(name, after, of), Ok(()), "{way}\n{after}");
    assert_eq!(repair_type(name, after, of), None, "{way}\n{after}");
    check_report(&repaired, text, &way);
    // What a repair puts is valid by `validate()` too; items that are left out move the pointers of others.
    let puts = |rule| !matches!(rule, RepairRule::LoneSurrogate | RepairRule::LeftOut);
    let mut rules = repaired.repairs.iter().map(|repair| repair.rule);
    if !rules.all(puts) {
        return;
    }
    let found = violations(name, after, of).expect("it decodes");
    for repair in &repaired.repairs {
        let mut listed = found.listed().iter();
        let minded = listed.find(|found| *found.pointer == *repair.pointer);
        assert!(minded.is_none(), "{way}\n{after}\n{minded:?}");
    }
}

/// Checks the same of the params of a method, of which nothing but `null` is dropped.
fn check_params(method: &str, of: KnownRevision, text: &str) {
    let kind = if method.starts_with("notifications/") {
        MessageKind::Notification
    } else {
        MessageKind::Request
    };
    let root = Payload {
        kind,
        method,
        sender: Role::Client,
    };
    let Ok(params) = text.parse::<JsonObject>() else {
        return;
    };
    let Some(repaired) = repair_payload(root, &params, of) else {
        return;
    };
    let (after, way) = (&repaired.text, format!("{of} {method}: {text}"));
    assert!(check(root, Some(text), of).is_err(), "{way} was valid");
    assert_eq!(check(root, Some(after), of), Ok(()), "{way}\n{after}");
    let params: JsonObject = after.parse().expect("an object");
    assert_eq!(repair_payload(root, &params, of), None, "{way}\n{after}");
    check_report(&repaired, text, &way);
    for repair in &repaired.repairs {
        let drops = matches!(repair.rule, RepairRule::WrongType | RepairRule::LeftOut);
        assert!(!drops, "{way}\n{after}\n{repair}");
    }
}

/// Checks that text and records of a repair are bounded.
fn check_report(repaired: &Repaired, text: &str, way: &str) {
    let after = &repaired.text;
    assert!(after.len() <= 16 * text.len() + 4_096, "{way}\n{after}");
    let listed = repaired.repairs.len();
    assert_eq!(listed, repaired.count.min(MAX_REPAIRS), "{way}");
    assert!(listed > 0, "{way}");
}

/// Returns what the repair of a text as a definition costs, whether it succeeds or not; `None` for text that is no JSON.
///
/// # Panics
/// The cost exceeds the bounds for a text of this size.
pub fn measure_repair(name: &str, of: KnownRevision, text: &str) -> Option<Cost> {
    let read = bytes_read_by_repair(name, text, of)?;
    let (_, held) = peak_bytes_during(|| repair_type(name, text, of));
    let way = format!("{of} {name}: {text}");
    assert!(read <= MAX_READ * (text.len() + 1), "{read} read, {way}");
    let most = MAX_HELD * text.len() + MAX_HELD_ALWAYS;
    assert!(held <= most, "{held} held, {way}");
    Some(Cost { read, held })
}
