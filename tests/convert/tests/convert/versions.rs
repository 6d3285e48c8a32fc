//! The revision that each request names in its metadata, between all revisions.

use mcp_exact_convert::{Context, KnownRevision, Lifecycle, MessageKind, Payload, Role, convert};
use serde_json::Value;

/// A request that reaches a revision without a handshake names this revision, whichever revision it comes from
/// (2026-07-28 `basic`, "_meta").
#[test]
fn requests_name_their_revision() {
    let name = "io.modelcontextprotocol/protocolVersion";
    for from in KnownRevision::ALL {
        for to in KnownRevision::ALL {
            if to.lifecycle() != Lifecycle::Discover {
                continue;
            }
            let own = match from.lifecycle() {
                Lifecycle::Discover => format!(
                    r#","_meta":{{"{name}":"{from}","io.modelcontextprotocol/clientCapabilities":{{}}}}"#
                ),
                Lifecycle::Initialize => String::new(),
            };
            let text = format!(r#"{{"name":"a"{own}}}"#);
            let root = Payload {
                kind: MessageKind::Request,
                method: "tools/call",
                sender: Role::Client,
            };
            let mut cx = Context::new();
            let converted = convert(root, Some(&text), *from, *to, &mut cx);
            let converted = converted.expect("a request").expect("params");
            let params: Value = serde_json::from_str(&converted).expect("JSON");
            assert_eq!(params["_meta"][name], to.as_str(), "{from} to {to}");
        }
    }
}
