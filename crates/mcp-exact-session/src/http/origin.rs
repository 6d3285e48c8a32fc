//! Whether a page may talk to this server (`basic/transports`, "Security Warning": DNS rebinding).
//!
//! Takes the `Origin` header and the origins that are allowed; decides before anything else of a request is looked at.

use super::Posted;
use crate::error::PeerError;
use crate::server::HttpRequest;

/// Checks the `Origin` of an incoming connection. Programs that are no browsers send none.
///
/// An allowed origin is written as browsers write it: scheme, host and, unless it is the scheme's own, port.
///
/// # Errors
/// [`Posted::Refused`] with status 403 and an error without id.
pub fn check_origin(http: &HttpRequest, allowed: &[&str]) -> Result<(), Posted> {
    let named = |(name, _): &&(String, String)| name.eq_ignore_ascii_case("origin");
    let known = |origin: &str| {
        allowed
            .iter()
            .any(|known| known.eq_ignore_ascii_case(origin))
    };
    let mut origins = http.headers.iter().filter(named);
    match origins.all(|(_, origin)| known(origin.trim())) {
        true => Ok(()),
        false => Err(Posted::Refused {
            status: 403,
            error: PeerError::invalid_request("the origin is not allowed"),
        }),
    }
}
