//! Requests in revisions that the server does not support (2026-07-28: `basic/transports/streamable-http`, "Protocol
//! Version Header"; before: `basic/transports`, "Protocol Version Header", "Session Management"), by every method,
//! header and body.
//!
//! The response must make the client negotiate again: the response is error -32022 with the supported revisions, or
//! status 404 if the request names a session.

use std::sync::Arc;

use http_body_util::BodyExt;
use mcp_exact_tests_transport::echo;
use mcp_exact_tests_transport::http::{INITIALIZE, respond, stateless_call};
use mcp_exact_transport::http::server::{HttpServerOptions, HttpService};
use serde_json::{Value, json};

/// Offer with only a revision without sessions.
const MODERN: [&str; 1] = ["2026-07-28"];
/// Offer with only revisions that have sessions.
const SESSIONS: [&str; 2] = ["2025-11-25", "2025-03-26"];
/// Offer with a revision without sessions and a revision with sessions.
const BOTH: [&str; 2] = ["2026-07-28", "2025-11-25"];

/// Request without `_meta`.
const REQUEST: &str = r#"{"jsonrpc":"2.0","id":7,"method":"tools/list"}"#;
/// Notification without `_meta`.
const NOTIFICATION: &str = r#"{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}"#;
/// Response to a request of the server.
const RESPONSE: &str = r#"{"jsonrpc":"2.0","id":3,"result":{}}"#;
/// Batch that contains one request.
const BATCH: &str = r#"[{"jsonrpc":"2.0","id":7,"method":"tools/list"}]"#;

/// Creates a service that offers these revisions.
fn service(revisions: &[&str]) -> HttpService {
    HttpService::new(
        echo::server_settings_of(revisions),
        Arc::new(echo::handle),
        HttpServerOptions::default(),
    )
}

/// Passes a request to the service; returns the HTTP status and the body as JSON.
async fn send(
    service: &HttpService,
    method: &str,
    headers: &[(&str, &str)],
    body: &str,
) -> (u16, Value) {
    let response = respond(service, method, headers, body).await;
    let status = response.status().as_u16();
    assert!(!response.headers().contains_key("mcp-session-id"));
    let body = response.into_body().collect().await.expect("a body");
    let body = serde_json::from_slice(&body.to_bytes()).unwrap_or(Value::Null);
    (status, body)
}

/// Returns the headers for a revision and a session id, as far as they are given.
fn headers<'h>(version: Option<&'h str>, session: Option<&'h str>) -> Vec<(&'h str, &'h str)> {
    let version = version.map(|version| ("mcp-protocol-version", version));
    let session = session.map(|session| ("mcp-session-id", session));
    version.into_iter().chain(session).collect()
}

/// "If the server does not implement the requested protocol version (whether the version is unknown to the server, or
/// is a known version the server has chosen not to support), it MUST respond with `400 Bad Request` and an
/// `UnsupportedProtocolVersionError` listing its supported versions"; "An `Mcp-Session-Id` header on a request: ignore
/// it".
#[tokio::test]
async fn old_versions_receive_supported_list() {
    let service = service(&MODERN);
    for version in ["2025-11-25", "2025-06-18", "3000-01-01", "nonsense"] {
        for session in [None, Some("ended")] {
            let headers = headers(Some(version), session);
            for body in [REQUEST, NOTIFICATION, RESPONSE, BATCH] {
                let (status, answer) = send(&service, "POST", &headers, body).await;
                assert_eq!(status, 400, "{headers:?} {body}: {answer}");
                let error = &answer["error"];
                assert_eq!(error["code"], -32022, "{headers:?} {body}: {answer}");
                let data = json!({ "supported": MODERN, "requested": version });
                assert_eq!(error["data"], data);
                let id = if body == REQUEST {
                    json!(7)
                } else {
                    Value::Null
                };
                assert_eq!(answer["id"], id, "{body}");
            }
            for method in ["GET", "DELETE"] {
                assert_eq!(send(&service, method, &headers, "").await.0, 405);
            }
        }
    }
}

/// "A server that does not support such clients MUST reject a request without the header per Server Validation": a
/// missing `MCP-Protocol-Version` is refused before `_meta` is checked.
#[tokio::test]
async fn missing_version_is_a_mismatch() {
    let service = service(&MODERN);
    for session in [None, Some("ended")] {
        let (status, answer) = send(&service, "POST", &headers(None, session), REQUEST).await;
        assert_eq!(status, 400);
        assert_eq!(answer["error"]["code"], -32020, "{answer}");
    }
    let headers = [("mcp-protocol-version", "2026-07-28")];
    let (status, answer) = send(&service, "POST", &headers, REQUEST).await;
    assert_eq!((status, &answer["error"]["code"]), (400, &json!(-32602)));
}

/// "The header value MUST match the `io.modelcontextprotocol/protocolVersion` field": this comparison precedes the
/// check that the server supports the version.
#[tokio::test]
async fn body_version_is_compared_first() {
    let service = service(&MODERN);
    let body = |method: &str, version: &str| {
        let id = if method == "tools/list" {
            r#""id":7,"#
        } else {
            ""
        };
        let meta = format!(r#"{{"io.modelcontextprotocol/protocolVersion":"{version}"}}"#);
        format!(r#"{{"jsonrpc":"2.0",{id}"method":"{method}","params":{{"_meta":{meta}}}}}"#)
    };
    let headers = [("mcp-protocol-version", "2025-11-25")];
    for version in ["2026-07-28", "1900-01-01"] {
        let (status, answer) = send(&service, "POST", &headers, &body("tools/list", version)).await;
        assert_eq!((status, &answer["error"]["code"]), (400, &json!(-32020)));
    }
    let (status, answer) = send(
        &service,
        "POST",
        &headers,
        &body("tools/list", "2025-11-25"),
    )
    .await;
    assert_eq!((status, &answer["error"]["code"]), (400, &json!(-32022)));
    let (status, _) = send(&service, "POST", &headers, &body("x/changed", "2025-11-25")).await;
    assert_eq!(status, 400);
}

/// "A server that supports only modern versions SHOULD name the protocol versions it supports in any error it returns
/// to an `initialize` request, on any transport" (2026-07-28, `basic/versioning`): the error lists the supported
/// revisions.
#[tokio::test]
async fn initialize_error_lists_supported_versions() {
    let service = service(&MODERN);
    for version in [None, Some("2025-11-25"), Some("2026-07-28")] {
        let (status, answer) = send(&service, "POST", &headers(version, None), INITIALIZE).await;
        assert_eq!((status, &answer["error"]["code"]), (400, &json!(-32022)));
        assert_eq!(answer["error"]["data"]["supported"], json!(MODERN));
    }
}

/// "The server MUST respond to requests containing that session ID with HTTP 404 Not Found" (2025-11-25,
/// `basic/transports`, "Session Management"): an ended session gets 404 even if the server no longer supports the
/// session's revision, so that the client starts a new session.
#[tokio::test]
async fn ended_session_precedes_unsupported_revision() {
    for offered in [&SESSIONS[..], &BOTH[..]] {
        let service = service(offered);
        for version in [
            None,
            Some("2025-06-18"),
            Some("2025-11-25"),
            Some("1900-01-01"),
        ] {
            let headers = headers(version, Some("ended"));
            for body in [REQUEST, NOTIFICATION, RESPONSE, BATCH] {
                let (status, answer) = send(&service, "POST", &headers, body).await;
                assert_eq!(status, 404, "{offered:?} {headers:?} {body}: {answer}");
            }
            for method in ["GET", "DELETE"] {
                assert_eq!(send(&service, method, &headers, "").await.0, 404);
            }
        }
    }
}

/// "If the server receives a request with an invalid or unsupported `MCP-Protocol-Version`, it MUST respond with
/// `400 Bad Request`" (2025-11-25, `basic/transports`, "Protocol Version Header"): the request is refused with and
/// without an existing session. A server that also supports 2026-07-28 lists its revisions.
#[tokio::test]
async fn unsupported_version_header_is_refused() {
    for (offered, code) in [(&SESSIONS[..], -32600), (&BOTH[..], -32022)] {
        let service = service(offered);
        let begun = respond(&service, "POST", &[], INITIALIZE).await;
        let session = begun.headers()["mcp-session-id"].to_str().expect("ASCII");
        for version in ["2025-06-18", "1900-01-01"] {
            for session in [None, Some(session)] {
                let headers = headers(Some(version), session);
                let (status, answer) = send(&service, "POST", &headers, REQUEST).await;
                assert_eq!(status, 400, "{offered:?} {headers:?}: {answer}");
                assert_eq!(answer["error"]["code"], code, "{answer}");
                assert_eq!(answer["id"], 7);
                if code == -32022 {
                    let data = json!({ "supported": BOTH, "requested": version });
                    assert_eq!(answer["error"]["data"], data);
                }
                for method in ["GET", "DELETE"] {
                    assert_eq!(send(&service, method, &headers, "").await.0, 400);
                }
            }
        }
    }
}

/// A server that supports only 2026-07-28 "SHOULD respond as follows: HTTP GET or DELETE to the MCP endpoint: respond with
/// `405 Method Not Allowed`. An `Mcp-Session-Id` header on a request: ignore it, and do not mint or echo session IDs. A
/// `Last-Event-ID` header: ignore it" (2026-07-28, `basic/transports/streamable-http`, "Earlier Streamable HTTP Revisions").
#[tokio::test]
async fn modern_servers_ignore_older_traffic() {
    let service = service(&MODERN);
    let older = [("mcp-session-id", "s-1"), ("last-event-id", "1-0")];
    for method in ["GET", "DELETE"] {
        for headers in [&[][..], &older] {
            let (status, answer) = send(&service, method, headers, "").await;
            assert_eq!(status, 405, "{method} {headers:?}: {answer}");
        }
    }
    let (headers, body) = stateless_call(7, "echo", "heard");
    let headers = headers.iter().map(|(name, value)| (*name, &**value));
    let headers: Vec<_> = headers.chain(older).collect();
    let (status, answer) = send(&service, "POST", &headers, &body).await;
    assert_eq!(status, 200, "{answer}");
    assert_eq!(answer["result"]["content"][0]["text"], "heard");
}
