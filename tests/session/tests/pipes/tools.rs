//! Memory usage of a tool list in a client that mirrors parameters into headers (2026-07-28:
//! `basic/transports/streamable-http`, "Custom Headers from Tool Parameters").

use mcp_exact_tests_session::*;

use crate::heap;

/// The memory for a schema is proportional to its text, even at the maximum nesting depth.
#[test]
fn deep_schema_memory_is_proportional() {
    let _alone = heap::lock_counting();
    let long = "x".repeat(1 << 20);
    let deep = format!(
        "{}{{\"const\":\"x-mcp-header {long}\"}}{}",
        "[".repeat(240),
        "]".repeat(240)
    );
    let schema = format!(r#"{{"type":"object","anyOf":{deep}}}"#);
    let mut http = HttpHarness::new(DISCOVER_REVISION);
    let (key, on, _, request) = http.request("tools/list", json!({}));
    let message = format!(
        r#"{{"jsonrpc":"2.0","id":{},"result":{{"resultType":"complete","ttlMs":0,"cacheScope":"private",
            "tools":[{{"name":"t","inputSchema":{schema}}}]}}}}"#,
        request["id"]
    );
    let peak = heap::peak_bytes_during(|| {
        let received = http.client.receive(on, message.as_bytes(), Time::ZERO);
        received.expect("open");
    });
    let ended = http.events();
    let [ClientEvent::Completed(done, Outcome::Result(result))] = &ended[..] else {
        panic!("{} events", ended.len());
    };
    assert_eq!(*done, key);
    assert!(result.object().text().contains(r#""name":"t""#));
    assert!(
        peak < 8 * message.len(),
        "{peak} bytes for {}",
        message.len()
    );
}
