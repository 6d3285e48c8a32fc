//! The client endpoint without IO: what it repairs itself, and what it leaves to its application.

use mcp_exact_convert::Tolerance;
use mcp_exact_session::{
    Binding, CallOptions, ClientConfig, ClientEndpoint, ClientEvent, Identity, Outcome, StreamId,
    Time,
};
use mcp_exact_tests_tolerance::zoo::{Case, Peer, TIDY};

/// Passes the output of a client to its server until there is none; returns the events.
fn exchange(client: &mut ClientEndpoint, peer: &Peer) -> Vec<ClientEvent> {
    let (mut events, mut bytes) = (Vec::new(), Vec::new());
    while client.poll_transmit(&mut bytes).is_some() {
        for answer in peer.answers(&String::from_utf8_lossy(&bytes)) {
            let received = client.receive(StreamId::DUPLEX, &answer, Time::ZERO);
            received.expect("it is open");
        }
        events.extend(std::iter::from_fn(|| client.poll_event()));
        bytes.clear();
    }
    events
}

/// Calls a tool; returns the text of the result, and the number of repaired messages.
fn call(sends: &'static str, revision: &'static str, checks_result: bool) -> (String, usize) {
    let case = Case {
        method: "tools/call",
        sends,
        ..TIDY
    };
    let peer = Peer::new(case, revision);
    let mut config = ClientConfig::new(Identity::new("client", "1"));
    config.tolerance = Tolerance::Lenient;
    let settings = config.build().expect("a configuration");
    let mut client = ClientEndpoint::new(settings, Binding::Duplex, None, Time::ZERO);
    exchange(&mut client, &peer);
    let params = r#"{"name":"echo","arguments":{}}"#.parse().expect("an object");
    let options = CallOptions {
        checks_result,
        ..CallOptions::default()
    };
    let sent = client.request("tools/call", Some(params), options, Time::ZERO);
    sent.expect("it is sent");
    let events = exchange(&mut client, &peer);
    let repaired = |event: &&ClientEvent| matches!(event, ClientEvent::Repaired(_));
    let result = events.iter().find_map(|event| match event {
        ClientEvent::Completed(_, Outcome::Result(result)) => Some(result.object().text()),
        _ => None,
    });
    let result = result.unwrap_or("no result").to_owned();
    (result, events.iter().filter(repaired).count())
}

#[test]
fn results_are_left_to_applications_that_check_them() {
    let sends = r#"{"jsonrpc":"2.0","id":$ID,"result":{$NEW"content":[],"isError":null}}"#;
    for (revision, new) in [
        ("2025-11-25", ""),
        ("2026-07-28", "\"resultType\":\"complete\","),
    ] {
        let raw = format!("{{{new}\"content\":[],\"isError\":null}}");
        assert_eq!(call(sends, revision, true), (raw.clone(), 0));
        let repaired = raw.replace(",\"isError\":null", "");
        assert_eq!(call(sends, revision, false), (repaired, 1));
    }
}

/// The endpoint reads the kind of a result, and so repairs a result whose kind it does not know.
#[test]
fn results_that_the_endpoint_reads_are_repaired() {
    let sends = r#"{"jsonrpc":"2.0","id":$ID,"result":{"resultType":null,"content":[]}}"#;
    for checks_result in [true, false] {
        let (result, repaired) = call(sends, "2026-07-28", checks_result);
        assert!(result.contains(r#""resultType":"complete""#), "{result}");
        assert_eq!(repaired, 1);
    }
}

/// `2.0` is an integer (JSON Schema 2020-12, section 4.2.3), as an id, as a size and as the code of an error.
#[test]
fn integers_may_be_written_with_a_fraction() {
    let sends = r#"{"jsonrpc":"2.0","id":$ID.0,"result":{"content":[{"type":"resource_link","uri":"a:b","name":"a","size":5.0}]}}"#;
    let (result, repaired) = call(sends, "2025-11-25", false);
    assert!(result.contains(r#""size":5.0"#), "{result}");
    assert_eq!(repaired, 0);
}
