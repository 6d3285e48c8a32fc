//! Preconditions of the measurements: the corpus has the expected messages, and each library decodes the messages that
//! it claims to support.

use crate::contestant::{self, Role};
use crate::corpus;
use crate::entry::Layout;

/// Two calls of `corpus` return equal messages.
#[test]
fn corpus_is_deterministic() {
    let (first, second) = (corpus::corpus(), corpus::corpus());
    assert!(first.iter().zip(&second).all(|(a, b)| a.bytes == b.bytes));
}

/// The corpus has messages from 37 bytes to 1 MB, and at least 25 messages without counting layouts.
#[test]
fn corpus_spans_all_sizes() {
    let corpus = corpus::corpus();
    let sizes = || corpus.iter().map(|entry| entry.bytes.len());
    assert_eq!(sizes().min(), Some(37));
    assert!(sizes().max() >= Some(1_000_000));
    assert!(
        corpus
            .iter()
            .filter(|entry| entry.layout == Layout::Usual)
            .count()
            >= 25
    );
}

/// No two messages of the corpus have the same name.
#[test]
fn names_are_unique() {
    let mut names: Vec<_> = corpus::corpus()
        .into_iter()
        .map(|entry| entry.name)
        .collect();
    let count = names.len();
    names.sort();
    names.dedup();
    assert_eq!(names.len(), count);
}

/// A tool of the longest tool list has between 900 and 2,000 bytes.
#[test]
fn a_tool_takes_about_a_kilobyte() {
    let corpus = corpus::corpus();
    let list = corpus
        .iter()
        .find(|entry| entry.name == "tools-200")
        .expect("it is there");
    let each = list.bytes.len() / corpus::MANY_TOOLS;
    assert!((900..2_000).contains(&each), "{each}");
}

/// Every library except the peers decodes every message of the corpus.
#[test]
fn non_peer_libraries_decode_every_message() {
    for library in contestant::all() {
        if library.role() == Role::Peer {
            continue;
        }
        for entry in corpus::corpus() {
            let reason = library.prepare(&entry).err();
            assert_eq!(reason, None, "{} on {}", library.name(), entry.name);
        }
    }
}

/// Every library decodes at least three quarters of the corpus.
#[test]
fn each_peer_decodes_most_messages() {
    let corpus = corpus::corpus();
    for library in contestant::all() {
        let decoded = corpus
            .iter()
            .filter(|entry| library.prepare(entry).is_ok())
            .count();
        assert!(
            decoded * 4 >= corpus.len() * 3,
            "{}: {decoded} of {}",
            library.name(),
            corpus.len()
        );
    }
}

/// After decoding and encoding by our library, each message equals the original as a JSON value.
#[test]
fn decoded_messages_encode_unchanged() {
    let all = contestant::all();
    let ours = all
        .iter()
        .find(|library| library.role() == Role::Ours)
        .expect("it is there");
    for entry in corpus::corpus() {
        let mut out = Vec::new();
        ours.prepare(&entry).expect("it decodes").encode(&mut out);
        let parse = |bytes| serde_json::from_slice::<serde_json::Value>(bytes).expect("it is JSON");
        assert_eq!(parse(&out), parse(&entry.bytes), "{}", entry.name);
    }
}
