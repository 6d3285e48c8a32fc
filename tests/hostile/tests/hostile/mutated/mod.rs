//! Compares the JSON reader of `mcp-exact-wire` with serde_json on a million seeded mutations of small documents.
//!
//! Both must accept the same documents with the same values, except for the exceptions in `exceptions.rs`, which must
//! explain every difference.

mod exceptions;
mod mutate;
mod names;

use self::exceptions::Exceptions;
use self::mutate::Mutator;
use self::names::Members;
use mcp_exact_tests_support::Cases;
use mcp_exact_wire::{Json, Map, Number, from_slice, to_string};
use serde_json::Value;
use serde_json::value::RawValue;

/// Seed of the random documents.
const SEED: u64 = 0x8259;
/// Number of generated documents.
const DOCUMENT_COUNT: Cases = Cases {
    short: 100_000,
    long: 1_000_000,
};

/// Number of documents with each outcome.
#[derive(Debug, Default)]
struct Counts {
    /// Number of documents that are JSON.
    accepted: usize,
    /// Number of documents that are not JSON.
    rejected: usize,
    /// Number of documents with a number that exceeds `f64`.
    number_out_of_range: usize,
    /// Number of documents with a lone surrogate.
    lone_surrogate: usize,
    /// Number of documents that are nested too deep for serde_json.
    too_deep: usize,
    /// Number of documents with an internal member name of serde_json.
    private_name: usize,
    /// Number of documents that are strings.
    typed_strings: usize,
    /// Number of documents that are numbers.
    typed_numbers: usize,
    /// Number of documents that are booleans.
    typed_booleans: usize,
    /// Number of documents that are objects without duplicate names.
    typed_objects: usize,
    /// Number of documents that are objects with duplicate names.
    duplicate: usize,
    /// Number of documents that are arrays.
    typed_arrays: usize,
}

/// Each mutated document is accepted and decoded as by serde_json, in untyped JSON and in the types of the wire crate.
#[test]
fn mutated_documents_agree_with_serde_json() {
    let mut mutator = Mutator::new(SEED);
    let mut counts = Counts::default();
    for _ in 0..DOCUMENT_COUNT.number() {
        let bytes = mutator.document();
        check_untyped_json(bytes, &mut counts);
        check_string(bytes, &mut counts);
        check_number(bytes, &mut counts);
        check_boolean(bytes, &mut counts);
        check_object(bytes, &mut counts);
        check_array(bytes, &mut counts);
    }
    println!("{counts:#?}");
    assert_eq!(counts.accepted + counts.rejected, DOCUMENT_COUNT.number());
    assert!(counts.accepted > DOCUMENT_COUNT.number() / 10);
    assert!(counts.rejected > DOCUMENT_COUNT.number() / 10);
}

/// Checks that a document is accepted as untyped JSON exactly if serde_json accepts it, with the same value.
fn check_untyped_json(bytes: &[u8], counts: &mut Counts) {
    let json = from_slice::<Json>(bytes);
    let raw = serde_json::from_slice::<&RawValue>(bytes);
    assert_eq!(json.is_ok(), raw.is_ok(), "{}", excerpt(bytes));
    let value = serde_json::from_slice::<Value>(bytes);
    let (Ok(json), Ok(raw)) = (json, raw) else {
        assert!(value.is_err(), "{}", excerpt(bytes));
        counts.rejected += 1;
        return;
    };
    counts.accepted += 1;
    assert_eq!(json.text(), raw.get());
    assert_eq!(to_string(&json), raw.get());
    let exceptions = Exceptions::of(json.text());
    counts.number_out_of_range += usize::from(exceptions.number_out_of_range);
    counts.lone_surrogate += usize::from(exceptions.lone_surrogate);
    counts.too_deep += usize::from(exceptions.too_deep);
    counts.private_name += usize::from(exceptions.private_name);
    if exceptions.private_name {
        return;
    }
    assert_eq!(
        value.is_err(),
        exceptions.is_refused_by_value(),
        "{}",
        excerpt(bytes)
    );
    if let Ok(value) = value {
        assert_eq!(json.parse::<Value>().expect("it is JSON"), value);
    }
}

/// Checks that a document is decoded as a string exactly as by serde_json.
fn check_string(bytes: &[u8], counts: &mut Counts) {
    let ours = from_slice::<String>(bytes).ok();
    let theirs = serde_json::from_slice::<String>(bytes).ok();
    assert_eq!(ours, theirs, "{}", excerpt(bytes));
    if let Some(text) = ours {
        counts.typed_strings += 1;
        let written = serde_json::to_string(&text).expect("it is a string");
        assert_eq!(to_string(&text), written);
    }
}

/// Checks that a document is decoded as a number exactly as by serde_json.
fn check_number(bytes: &[u8], counts: &mut Counts) {
    let ours = from_slice::<Number>(bytes).ok();
    let theirs = serde_json::from_slice::<serde_json::Number>(bytes).ok();
    let Some(ours) = ours else {
        assert_eq!(theirs, None, "{}", excerpt(bytes));
        return;
    };
    counts.typed_numbers += 1;
    assert_eq!(
        ours.to_string().as_bytes(),
        bytes.trim_ascii(),
        "{}",
        excerpt(bytes)
    );
    let Some(theirs) = theirs else {
        assert!(Exceptions::of(&ours.to_string()).number_out_of_range);
        return;
    };
    if let Some(value) = theirs.as_i64() {
        assert_eq!(ours.as_i64(), Some(value));
    }
    if let Some(value) = theirs.as_u64() {
        assert_eq!(ours.as_u64(), Some(value));
    }
    let (ours, theirs) = (
        ours.as_f64(),
        theirs.as_f64().expect("a number has a value"),
    );
    assert!(
        (ours - theirs).abs() <= ours.abs() * 1e-14,
        "{}",
        excerpt(bytes)
    );
}

/// Checks that a document is decoded as a boolean exactly as by serde_json.
fn check_boolean(bytes: &[u8], counts: &mut Counts) {
    let ours = from_slice::<bool>(bytes).ok();
    let theirs = serde_json::from_slice::<bool>(bytes).ok();
    assert_eq!(ours, theirs, "{}", excerpt(bytes));
    counts.typed_booleans += usize::from(ours.is_some());
}

/// Checks that a document is decoded as an object of untyped JSON with the members that serde_json finds.
fn check_object(bytes: &[u8], counts: &mut Counts) {
    let ours = from_slice::<Map<Json>>(bytes).ok();
    let theirs = serde_json::from_slice::<Members>(bytes).ok();
    let twice = theirs.as_ref().is_some_and(Members::has_duplicate);
    counts.duplicate += usize::from(twice);
    let theirs = theirs.filter(|_| !twice);
    assert_eq!(ours.is_some(), theirs.is_some(), "{}", excerpt(bytes));
    if let (Some(ours), Some(theirs)) = (ours, theirs) {
        counts.typed_objects += 1;
        let ours = ours.iter().map(|(name, value)| (name, value.text()));
        assert!(ours.eq(theirs.iter()), "{}", excerpt(bytes));
    }
}

/// Checks that a document is decoded as an array of untyped JSON with the items that serde_json finds.
fn check_array(bytes: &[u8], counts: &mut Counts) {
    let ours = from_slice::<Vec<Json>>(bytes).ok();
    let theirs = serde_json::from_slice::<Vec<&RawValue>>(bytes).ok();
    assert_eq!(ours.is_some(), theirs.is_some(), "{}", excerpt(bytes));
    if let (Some(ours), Some(theirs)) = (ours, theirs) {
        counts.typed_arrays += 1;
        let theirs = theirs.iter().map(|raw| raw.get());
        assert!(ours.iter().map(Json::text).eq(theirs), "{}", excerpt(bytes));
    }
}

/// Returns a document as printable text, for failure messages.
fn excerpt(bytes: &[u8]) -> String {
    bytes.escape_ascii().to_string()
}
