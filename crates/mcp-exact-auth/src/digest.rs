//! The hash of OAuth, for clients and servers alike: SHA-256 in base64url without padding.

use aws_lc_rs::digest::{SHA256, digest};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

/// Returns the SHA-256 hash in base64url, for example for `code_challenge` (RFC 7636, section 4.2), `ath` (RFC 9449,
/// section 4.2) and thumbprints (RFC 7638).
pub(crate) fn sha256_base64url(bytes: &[u8]) -> String {
    URL_SAFE_NO_PAD.encode(digest(&SHA256, bytes))
}
