//! Properties of conversions: the parse tables have the same outcome as the types, and no text causes a panic.

use mcp_exact_convert::{
    Context, KnownRevision, MAX_REPAIRS, NewerMembers, check_type, convert_type, repair_message,
    repair_type,
};
use mcp_exact_tests_tables::check_agreement;
use mcp_exact_wire::{Definition, Json, MAX_POINTER, from_str};

/// Defines [`REVISIONS`] from the list of all revisions.
macro_rules! revisions {
    ($($id:literal $marker:ident $library:ident $spec:ident;)*) => {
        /// Definitions of each convertible revision, oldest first.
        const REVISIONS: &[&[Definition]] = &[$(mcp_exact_tests_types::$library::DEFINITIONS),*];
    };
}

mcp_exact_revisions::for_each_revision!(revisions);

/// Runs the conversion that the input describes.
///
/// The first line names a definition, the indices of two revisions, and a digit for the options; the rest is the text.
/// Values that the first line does not contain are derived from the bytes of the line.
pub fn conversion(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    let (line, text) = text.split_once('\n').unwrap_or((text, "{}"));
    let mut words = line.split(' ');
    let name = words.next().unwrap_or_default();
    let mut number = |limit: usize| -> usize {
        let word = words.next().unwrap_or_default();
        let sum = || word.bytes().map(usize::from).sum::<usize>();
        word.parse().unwrap_or_else(|_| sum()) % limit
    };
    let (from, to) = (number(REVISIONS.len()), number(REVISIONS.len()));
    let wanted = number(8);
    let definitions = REVISIONS[from];
    let named = definitions
        .iter()
        .find(|definition| definition.name == name);
    let sum: usize = name.bytes().map(usize::from).sum();
    let definition = named.unwrap_or(&definitions[sum % definitions.len()]);
    check_agreement(definition, KnownRevision::ALL[from], text);
    check_repair(definition.name, KnownRevision::ALL[from], text);
    check_bounded_conversion(definition.name, (from, to), wanted, text);
}

/// Checks that a repair touches no valid text, gives valid text, and grows no more than the text allows.
pub fn check_repair(name: &str, of: KnownRevision, text: &str) {
    let way = format!("{of} {name}: {text}");
    if let Some(repaired) = repair_type(name, text, of) {
        let after = &repaired.text;
        assert!(check_type(name, text, of).is_err(), "{way} was valid");
        assert_eq!(check_type(name, after, of), Ok(()), "{way}\n{after}");
        assert_eq!(repair_type(name, after, of), None, "{way}\n{after}");
        assert!(after.len() <= 16 * text.len() + 4_096, "{way}\n{after}");
        assert!(
            repaired.repairs.len() <= MAX_REPAIRS && repaired.count > 0,
            "{way}"
        );
    }
    if let Some((after, repairs)) = repair_message(text.as_bytes()) {
        assert!(!repairs.is_empty() && after.len() <= text.len(), "{way}");
        assert!(repair_message(&after).is_none(), "{way}");
    }
}

/// Converts a text between two revisions, with the options in the bits of `wanted`. Checks that the output is a value
/// of the target type, and that the sizes of the output and of the losses are limited by the size of the text.
fn check_bounded_conversion(name: &str, (from, to): (usize, usize), wanted: usize, text: &str) {
    let (from, to) = (KnownRevision::ALL[from], KnownRevision::ALL[to]);
    let mut cx = Context::new();
    if wanted & 1 != 0 {
        cx = cx.newer_members(NewerMembers::KeepInExtra);
    }
    if wanted & 2 != 0 {
        cx = cx.request_id("an id");
    }
    if wanted & 4 != 0 {
        cx = cx.assume_input_read();
    }
    let way = format!("{from} to {to} {name}: {text}");
    match convert_type(name, text, from, to, &mut cx) {
        Ok(out) => {
            let is_json = from_str::<Json>(&out).is_ok();
            assert!(is_json || *out == *text, "{way}\n{out}");
            assert!(out.len() <= 16 * text.len() + 4_096, "{way}\n{out}");
            if is_json && check_type(name, text, from).is_ok() {
                let target = mcp_exact_convert::counterpart(name, from, to).expect("it converted");
                let checked = check_type(target, &out, to);
                assert!(checked.is_ok(), "{way}\n{out}\n{checked:?}");
            }
        }
        Err(refused) => {
            assert!(!refused.reason().is_empty(), "{way}");
            assert!(refused.pointer().len() <= MAX_POINTER + 3, "{way}");
        }
    }
    assert!(cx.losses().len() <= 4 * text.len() + 64, "{way}");
    for loss in cx.losses() {
        assert!(!loss.reason.is_empty(), "{way}");
        assert!(loss.pointer.len() <= MAX_POINTER + 3, "{way}");
    }
}
