//! Cross-origin requests of browser clients (Fetch, section 3.2): preflights, and headers that scripts may read.
//!
//! Only responses for allowed origins contain these headers; preflights from other origins are rejected earlier.

use http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_HEADERS,
    ACCESS_CONTROL_REQUEST_METHOD, ORIGIN, VARY,
};
use http::request::Parts;
use http::{HeaderValue, Method, Response, StatusCode};

use super::checks::is_origin_allowed;
use super::options::Allowed;
use super::response::{ResponseBody, empty};

/// Responds to a preflight request. Every requested header is allowed, because tools choose the names of `Mcp-Param-*`
/// headers.
pub(super) fn preflight(parts: &Parts) -> Option<Response<ResponseBody>> {
    let headers = &parts.headers;
    let is_preflight = parts.method == Method::OPTIONS
        && headers.contains_key(ORIGIN)
        && headers.contains_key(ACCESS_CONTROL_REQUEST_METHOD);
    if !is_preflight {
        return None;
    }
    let mut response = empty(StatusCode::NO_CONTENT);
    let allowed = response.headers_mut();
    let methods = HeaderValue::from_static("POST, GET, DELETE");
    allowed.insert(ACCESS_CONTROL_ALLOW_METHODS, methods);
    if let Some(wanted) = headers.get(ACCESS_CONTROL_REQUEST_HEADERS) {
        allowed.insert(ACCESS_CONTROL_ALLOW_HEADERS, wanted.clone());
    }
    allowed.insert(ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static("7200"));
    Some(response)
}

/// Adds the headers that allow scripts to read a response, if `origin` is an allowed origin.
pub(super) fn expose(
    response: &mut Response<ResponseBody>,
    origin: Option<&HeaderValue>,
    origins: &Allowed,
) {
    let Some(origin) = origin else {
        return;
    };
    if !origin
        .to_str()
        .is_ok_and(|origin| is_origin_allowed(origin, origins))
    {
        return;
    }
    let headers = response.headers_mut();
    headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin.clone());
    let exposed = HeaderValue::from_static(
        "Mcp-Session-Id, Mcp-Protocol-Version, WWW-Authenticate, DPoP-Nonce",
    );
    headers.insert(ACCESS_CONTROL_EXPOSE_HEADERS, exposed);
    headers.append(VARY, HeaderValue::from_static("Origin"));
}
