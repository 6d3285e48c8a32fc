//! The id of URL elicitation, which 2025-11-25 requires and 2026-07-28 does not have.

use crate::LossKind;
use crate::conversion::Conversion;
use crate::loss::Step;
use crate::node::{NOWHERE, Node};

const ELICITATION_ID: &str = "elicitationId";

/// Adds an id to a URL elicitation without an id: a hash of URL and message, so that equal requests have equal ids.
pub fn with_id<'t>(cx: &mut Conversion<'_, 't>, node: &mut Node<'t>) -> Step<()> {
    if node.member(ELICITATION_ID).is_some() {
        return Ok(());
    }
    let mut string = |name: &str| {
        let text = node
            .member(name)
            .and_then(|value| value.string().map(String::from));
        text.unwrap_or_default()
    };
    let (url, message) = (string("url"), string("message"));
    let id = format!("{:016x}", fingerprint(&[&url, &message]));
    node.set(ELICITATION_ID, Node::new_string(&id));
    let reason = "an id is made of the URL and the message; 2026-07-28 has none";
    cx.record_loss(ELICITATION_ID, NOWHERE, LossKind::Defaulted, reason);
    Ok(())
}

/// Computes the FNV-1a hash of several strings, which is stable across platforms and versions.
fn fingerprint(texts: &[&str]) -> u64 {
    let bytes = texts.iter().flat_map(|text| text.bytes().chain([0]));
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}
