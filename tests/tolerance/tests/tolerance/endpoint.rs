//! The client endpoint without IO: what it repairs itself, and what it leaves to its application.

use mcp_exact_convert::Tolerance;
use mcp_exact_session::{
    Binding, CallOptions, ClientConfig, ClientEndpoint, ClientEvent, Identity, Outcome, StreamId,
    Time,
};
use mcp_exact_tests_tolerance::zoo::{Case, Peer, TIDY};
use mcp_exact_wire::JsonObject;

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

/// "Implementations [...] MUST support receiving JSON-RPC batches" (2025-03-26, `basic`, "Batching"): an error in a batch that is no
/// error object ends its request with the words of the server, as one outside of a batch, and the report says which it is.
#[test]
fn errors_in_batches_have_words() {
    for (tolerance, words) in [
        (Tolerance::Lenient, "the disk is full (-32603)"),
        (Tolerance::Strict, "the response does not fit its request"),
    ] {
        let mut config = ClientConfig::new(Identity::new("client", "1"));
        config.tolerance = tolerance;
        let settings = config.build().expect("a configuration");
        let mut client = ClientEndpoint::new(settings, Binding::Duplex, None, Time::ZERO);
        exchange(&mut client, &Peer::new(TIDY, "2025-03-26"));
        let mut ids = Vec::new();
        for _ in 0..2 {
            let sent = client.request("ping", None, CallOptions::default(), Time::ZERO);
            sent.expect("it is sent");
            let mut bytes = Vec::new();
            client.poll_transmit(&mut bytes).expect("a request");
            let request: JsonObject = String::from_utf8_lossy(&bytes).parse().expect("JSON");
            ids.push(request.get("id").expect("an id").text().to_owned());
        }
        let batch = format!(
            r#"[{{"jsonrpc":"2.0","id":{},"result":{{}}}},{{"jsonrpc":"2.0","id":{},"error":"the disk is full"}}]"#,
            ids[0], ids[1]
        );
        let received = client.receive(StreamId::DUPLEX, batch.as_bytes(), Time::ZERO);
        received.expect("it is open");
        let (mut errors, mut repairs) = (Vec::new(), Vec::new());
        while let Some(event) = client.poll_event() {
            match event {
                ClientEvent::Completed(_, Outcome::Error(error)) => errors.push(error.to_string()),
                ClientEvent::Repaired(repaired) => {
                    repairs.extend(repaired.repairs.iter().map(ToString::to_string));
                }
                _ => {}
            }
        }
        assert_eq!(errors.len(), 1, "{errors:?}");
        assert!(errors[0].starts_with(words), "{errors:?}");
        let report = "error-object at \"/1/error\": expected an object";
        let reports = [report]
            .into_iter()
            .filter(|_| tolerance == Tolerance::Lenient);
        assert_eq!(repairs, reports.collect::<Vec<_>>());
    }
}

/// The beginning of an answer that cannot be used is shown as it was sent, on one line, and the error does not blame the caller.
#[test]
fn unusable_answers_are_shown() {
    for (sends, shown) in [
        (
            "{\"jsonrpc\":\"2.0\",\"id\":$ID,\t\"result\":{\"a\":\"\\\\\",}}",
            r#",\t"result":{"a":"\\",}}"#,
        ),
        (
            r#"{"jsonrpc":"2.0","id":$ID,"result":"no disk"}"#,
            r#","result":"no disk"}"#,
        ),
    ] {
        let case = Case {
            method: "ping",
            sends,
            ..TIDY
        };
        let peer = Peer::new(case, "2025-11-25");
        let config = ClientConfig::new(Identity::new("client", "1"));
        let settings = config.build().expect("a configuration");
        let mut client = ClientEndpoint::new(settings, Binding::Duplex, None, Time::ZERO);
        exchange(&mut client, &peer);
        let sent = client.request("ping", None, CallOptions::default(), Time::ZERO);
        sent.expect("it is sent");
        let events = exchange(&mut client, &peer);
        let error = events.iter().find_map(|event| match event {
            ClientEvent::Completed(_, Outcome::Error(error)) => Some(error),
            _ => None,
        });
        let error = error.expect("an error");
        let text = error.to_string();
        assert!(
            text.contains(r#"; it begins {"jsonrpc":"2.0","id":"#),
            "{text}"
        );
        assert!(text.ends_with(shown), "{text}");
        assert_eq!((error.is_local(), error.code()), (true, Some(-32603)));
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
