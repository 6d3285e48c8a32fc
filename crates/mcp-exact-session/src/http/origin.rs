//! Check of the `Origin` header: the web pages that may use a server (`basic/transports`, "Security Warning": DNS
//! rebinding).
//!
//! The check needs only the `Origin` header and the allowed origins, and precedes all other checks of a request.

use crate::http_request::HttpRequest;
use crate::refusal::Refusal;

/// Checks the `Origin` of an incoming request. Only browsers send this header.
///
/// An allowed origin has the form in which browsers send it: scheme, host and, unless it is the default port of the scheme,
/// port.
///
/// # Errors
/// [`Refusal::OriginNotAllowed`], status 403.
pub fn check_origin(http: &HttpRequest, allowed: &[&str]) -> Result<(), Refusal> {
    let known = |origin: &str| {
        allowed
            .iter()
            .any(|known| known.eq_ignore_ascii_case(origin))
    };
    if http.values("origin").all(|origin| known(origin.trim())) {
        Ok(())
    } else {
        Err(Refusal::OriginNotAllowed)
    }
}
