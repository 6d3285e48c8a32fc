//! The id of elicitation by URL, which 2025-11-25 wants and 2026-07-28 does not have.

use mcp_2026_07_28::ElicitRequestURLParams;
use mcp_exact_wire::Json;

use crate::{Context, LossKind, Refused};

/// Gives elicitation by URL an id where its sender gave none: made of URL and message, so that it stays the same.
pub fn with_id(
    mut params: ElicitRequestURLParams,
    cx: &mut Context,
) -> Result<ElicitRequestURLParams, Refused> {
    const MEMBER: &str = "elicitationId";
    if params.extra.get(MEMBER).is_none() {
        let id = format!("{:016x}", fingerprint(&[&params.url, &params.message]));
        if params.extra.insert(MEMBER, Json::string(&id)).is_ok() {
            let reason = "an id is made of the URL and the message; 2026-07-28 has none";
            cx.lost(MEMBER, LossKind::Defaulted, reason);
        }
    }
    Ok(params)
}

/// FNV-1a: the same everywhere and always, which is all that is asked of it.
fn fingerprint(texts: &[&str]) -> u64 {
    let bytes = texts.iter().flat_map(|text| text.bytes().chain([0]));
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}
