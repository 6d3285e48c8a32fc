//! Tests of conversions by method: unchanged, converted and refused messages; and errors between the lifecycles.

use std::borrow::Cow;

use mcp_exact_convert::{
    Context, ConvertError, KnownRevision, Lifecycle, Loss, MessageKind, Payload, Role,
    UnknownRevision, convert, convert_type, described_item, may_contain, params_change,
};
use serde_json::{Value, json};

/// Returns the revision with an identifier.
fn known_revision(id: &str) -> KnownRevision {
    KnownRevision::parse(id).expect("a known revision")
}

/// Describes the params of a request of this method and sender as the message part to convert.
fn request(method: &str, sender: Role) -> Payload<'_> {
    Payload {
        kind: MessageKind::Request,
        method,
        sender,
    }
}

/// Converts a message part from the first to the second revision; returns the output, and each loss as kind and JSON
/// pointer.
fn convert_payload<'t>(
    root: Payload<'_>,
    text: Option<&'t str>,
    revisions: (&str, &str),
) -> Result<(Option<Cow<'t, str>>, Vec<String>), ConvertError> {
    let mut cx = Context::new().requested_uri("file:///gone");
    let out = convert(
        root,
        text,
        known_revision(revisions.0),
        known_revision(revisions.1),
        &mut cx,
    )?;
    let losses = cx.losses().iter();
    Ok((
        out,
        losses
            .map(|l| format!("{} {}", l.kind.name(), l.pointer))
            .collect(),
    ))
}

/// Checks that the output is the same slice as the input, which means that nothing was parsed.
#[track_caller]
fn check_unchanged(root: Payload<'_>, text: &str, revisions: (&str, &str)) {
    let (out, losses) = convert_payload(root, Some(text), revisions).expect("convertible");
    assert!(matches!(out, Some(Cow::Borrowed(out)) if std::ptr::eq(out, text)));
    assert_eq!(losses, [""; 0]);
}

/// If the types of both revisions are identical, the output is the unparsed input, even if the input is invalid.
#[test]
fn identical_types_are_not_parsed() {
    let get = request("prompts/get", Role::Client);
    // White space, order and even a missing member are kept, because the text is not parsed.
    check_unchanged(
        get,
        r#" {"z":1.0, "arguments" : {"a":"b"}}"#,
        ("2024-11-05", "2025-11-25"),
    );
    check_unchanged(get, "{}", ("2025-03-26", "2025-03-26"));
    let vendor = request("vendor/thing", Role::Client);
    check_unchanged(vendor, "[1,  2]", ("2024-11-05", "2026-07-28"));
}

/// `params_change` names the members that a conversion changes, and `may_contain` finds them in every spelling of
/// RFC 8259, section 7.
#[test]
fn member_names_predict_params_change() {
    let call = request("tools/call", Role::Client);
    let (from, to) = (known_revision("2025-06-18"), known_revision("2025-11-25"));
    let change = params_change(call, from, to).expect("a change that depends on names");
    assert_eq!(
        (&change.names[..], change.adds_meta),
        (&["task"][..], false)
    );
    for length in [0, 1_000] {
        let long = " ".repeat(length);
        let quotes = format!(r#"{{"name":"a","arguments":{{"a":"\"\n{long}"}}}}"#);
        assert!(!may_contain(["task"], &quotes));
        for name in ["task", r"\u0074ask", r"tas\u006B"] {
            let text = format!(r#"{{"name":"a","{name}":1{long}}}"#);
            assert!(may_contain(["task"], &text), "{text}");
        }
    }
}

/// JSON-RPC over stdio: "Messages are delimited by newlines, and MUST NOT contain embedded newlines" (2025-06-18,
/// basic/transports). A line break between tokens becomes a space; within strings a line break is an escape sequence
/// and stays unchanged.
#[test]
fn line_breaks_become_spaces() {
    let tool = "{\"name\":\r\n\"a\", \"description\":\"b\\n\",\"inputSchema\":{\n\"type\":\"object\"}TITLE}";
    for (title, expected) in [
        ("", ""),
        (",\"title\":\"t\"", ",\"annotations\":{\"title\":\"t\"}"),
    ] {
        let tool = tool.replace("TITLE", title);
        let text = format!("{{\"tools\":[\n{tool}]}}");
        let result = Payload {
            kind: MessageKind::Result,
            method: "tools/list",
            sender: Role::Server,
        };
        let revisions = ("2025-06-18", "2025-03-26");
        let (out, _) = convert_payload(result, Some(&text), revisions).expect("convertible");
        let out = out.expect("a result");
        assert!(!out.contains(['\r', '\n']), "{out}");
        assert!(
            out.contains("\\n") && out.contains("{ \"type\":\"object\"}"),
            "{out}"
        );
        assert!(out.ends_with(&format!("{expected}}}]}}")), "{out}");
    }
}

/// "Messages are delimited by newlines, and MUST NOT contain embedded newlines" (2025-06-18, basic/transports), wherever a
/// single line break is.
#[test]
fn single_line_breaks_become_spaces() {
    let text =
        r#"{"tools":[{"name":"a","inputSchema":{"type":"object","b":[1,{}]}}],"nextCursor":"c"}"#;
    let result = Payload {
        kind: MessageKind::Result,
        method: "tools/list",
        sender: Role::Server,
    };
    let is_between = |at: &usize| text[..*at].matches('"').count().is_multiple_of(2);
    for at in (1..text.len()).filter(is_between) {
        let with = |space: &str| format!("{}{space}{}", &text[..at], &text[at..]);
        for line_break in ["\n", "\r"] {
            let text = with(line_break);
            let revisions = ("2025-06-18", "2025-03-26");
            let (out, _) = convert_payload(result, Some(&text), revisions).expect("convertible");
            assert_eq!(out.as_deref(), Some(&*with(" ")));
        }
    }
}

/// Returns the smallest valid params of a method: only the required members.
fn least_params(method: &str) -> Value {
    match method {
        "tools/call" | "prompts/get" => json!({ "name": "a" }),
        "resources/read" => json!({ "uri": "a:b" }),
        "completion/complete" => json!({
            "ref": { "type": "ref/prompt", "name": "a" },
            "argument": { "name": "a", "value": "" },
        }),
        _ => json!({}),
    }
}

/// The members of `_meta` that 2026-07-28 requires are the same for all methods of a session: params with other members
/// get the same `_meta` as empty params.
#[test]
fn metadata_is_equal_for_all_methods() {
    let meta = json!({
        "io.modelcontextprotocol/clientCapabilities": { "roots": {} },
        "io.modelcontextprotocol/clientInfo": { "name": "c", "version": "1" },
    });
    let to = known_revision("2026-07-28");
    let mut count = 0;
    for from in KnownRevision::ALL.iter().take_while(|from| **from != to) {
        let converted = |method: &str, text: &str| {
            let mut cx = Context::new().request_meta(meta.clone().try_into().expect("an object"));
            let out = convert(
                request(method, Role::Client),
                Some(text),
                *from,
                to,
                &mut cx,
            );
            let out = out.expect("convertible").expect("params").into_owned();
            (out, cx.into_losses())
        };
        let (all, losses) = converted("tools/list", "{}");
        for info in to.methods().filter(|info| info.request && info.from_client) {
            let text = least_params(info.method).to_string();
            let root = request(info.method, Role::Client);
            let change = params_change(root, *from, to).filter(|change| change.adds_meta);
            if let Some(change) = change.filter(|change| !may_contain(change.names.clone(), &text))
            {
                let subject = described_item(&text, change.definition);
                let losses = losses.iter().cloned();
                let losses = losses.map(|loss| Loss {
                    subject: subject.clone(),
                    ..loss
                });
                let comma = if text == "{}" { "" } else { "," };
                let expected = format!("{}{comma}{}", &text[..text.len() - 1], &all[1..]);
                assert_eq!(converted(info.method, &text), (expected, losses.collect()));
                count += 1;
            }
        }
    }
    // Calls, reads, prompts and four lists; completions where references have titles, as in 2026-07-28.
    assert_eq!(count, 7 * 4 + 2);
}

/// A conversion to a revision that does not define the method of the request is refused.
#[test]
fn undefined_methods_are_refused() {
    let cases = [
        (
            "ping",
            Role::Client,
            ("2025-11-25", "2026-07-28"),
            "in 2026-07-28 no client sends `ping`",
        ),
        (
            "elicitation/create",
            Role::Server,
            ("2025-06-18", "2025-03-26"),
            "in 2025-03-26 no server sends `elicitation/create`",
        ),
        (
            "tools/call",
            Role::Server,
            ("2025-06-18", "2025-11-25"),
            "in 2025-06-18 no server sends `tools/call`",
        ),
        (
            "server/discover",
            Role::Client,
            ("2026-07-28", "2024-11-05"),
            "in 2024-11-05 no client sends `server/discover`",
        ),
    ];
    for (method, sender, revisions, words) in cases {
        let refused =
            convert_payload(request(method, sender), None, revisions).expect_err("refused");
        assert_eq!(refused.reason(), words);
    }
}

/// The result of a request is converted by the rules of its method, and is refused if the target revision cannot
/// express it.
#[test]
fn results_are_converted_by_request_method() {
    let root = Payload {
        kind: MessageKind::Result,
        method: "tools/list",
        sender: Role::Server,
    };
    let text = r#"{"tools":[]}"#;
    let (out, losses) =
        convert_payload(root, Some(text), ("2024-11-05", "2026-07-28")).expect("convertible");
    let expected = r#"{"tools":[],"cacheScope":"private","resultType":"complete","ttlMs":0}"#;
    assert_eq!(out.as_deref(), Some(expected));
    assert_eq!(losses.len(), 3);
    let root = Payload {
        method: "tools/call",
        ..root
    };
    let text = r#"{"resultType":"input_required","requestState":"s"}"#;
    let refused =
        convert_payload(root, Some(text), ("2026-07-28", "2025-11-25")).expect_err("refused");
    assert!(refused.reason().contains("2025-11-25"), "{refused}");
    let refused = convert_payload(root, None, ("2026-07-28", "2025-11-25")).expect_err("refused");
    assert_eq!(refused.reason(), "a result is required");
}

/// Absent params get the metadata that the target revision requires, and params with only metadata become absent in the
/// other direction.
#[test]
fn params_follow_the_target_revision() {
    let list = request("tools/list", Role::Client);
    let (up, losses) =
        convert_payload(list, None, ("2025-11-25", "2026-07-28")).expect("convertible");
    let up = up.expect("params").into_owned();
    assert!(
        up.contains("io.modelcontextprotocol/protocolVersion"),
        "{up}"
    );
    assert!(losses.contains(&"rewritten ".to_owned()), "{losses:?}");
    let (down, _) =
        convert_payload(list, Some(&up), ("2026-07-28", "2025-11-25")).expect("convertible");
    assert_eq!(down, None);
    let (kept, _) = convert_payload(list, None, ("2024-11-05", "2025-11-25")).expect("convertible");
    assert_eq!(kept, None);
}

/// A value of the wrong type, malformed JSON, an unknown type and a type without a counterpart are refused with a
/// reason; wrong values also with a JSON pointer.
#[test]
fn mismatches_are_refused_with_pointer() {
    let call = request("tools/call", Role::Client);
    let revisions = ("2025-11-25", "2026-07-28");
    let refused = convert_payload(call, Some(r#"{"name":5}"#), revisions).expect_err("refused");
    assert_eq!(refused.pointer(), "/name");
    let refused = convert_payload(call, Some("{"), revisions).expect_err("refused");
    assert!(
        refused.reason().starts_with("no `CallToolRequestParams`"),
        "{refused}"
    );
    let mut cx = Context::new();
    let unknown = convert_type(
        "Tolo",
        "{}",
        known_revision(revisions.0),
        known_revision(revisions.1),
        &mut cx,
    );
    assert_eq!(
        unknown.expect_err("refused").reason(),
        "2025-11-25 has no type `Tolo`"
    );
    let gone = convert_type(
        "PingRequest",
        "{}",
        known_revision(revisions.0),
        known_revision(revisions.1),
        &mut cx,
    );
    let reason = "`PingRequest` has no counterpart in 2026-07-28";
    assert_eq!(gone.expect_err("refused").reason(), reason);
}

/// The conversion tables validate the envelope of a message with an unknown method as strictly as the types of its
/// revision do: a request has an id, and a notification has none (JSON-RPC 2.0, sections 4 and 4.1).
#[test]
fn unknown_methods_need_a_valid_envelope() {
    let whole = r#"{"jsonrpc":"2.0","id":1,"method":"vendor/x"}"#;
    let without_id = r#"{"jsonrpc":"2.0","method":"vendor/x"}"#;
    let wrong_version = r#"{"jsonrpc":"1.0","id":1,"method":"vendor/x"}"#;
    let twice = r#"{"jsonrpc":"2.0","id":1,"method":"vendor/x","params":{},"params":{}}"#;
    let (request, notification) = ("ClientRequest", "ClientNotification");
    let cases = [
        (request, whole, true),
        (request, without_id, false),
        (request, wrong_version, false),
        (request, twice, false),
        (notification, without_id, true),
        (notification, whole, false),
    ];
    for (name, text, fits) in cases {
        let mut cx = Context::new();
        let revisions = (known_revision("2025-11-25"), known_revision("2025-06-18"));
        let converted = convert_type(name, text, revisions.0, revisions.1, &mut cx);
        assert_eq!(converted.is_ok(), fits, "{name} {text}: {converted:?}");
    }
}

/// Up to 2025-06-18 the types of messages exclude the envelope; from 2025-11-25 on they include it. Messages of methods
/// that the source revision does not define get the envelope too, even if the target revision does not define the
/// method either.
#[test]
fn unknown_methods_gain_the_envelope() {
    let params = r#"{"taskId":"t","elicitationId":"e"}"#;
    let with_id = r#","jsonrpc":"2.0","id":"an id"}"#;
    let without_id = r#","jsonrpc":"2.0"}"#;
    let unions = [
        ("ClientRequest", "vendor/x", with_id),
        ("ClientRequest", "tasks/get", with_id),
        ("ServerRequest", "vendor/x", with_id),
        ("ServerRequest", "tasks/get", with_id),
        ("ClientNotification", "vendor/x", without_id),
        ("ServerNotification", "vendor/x", without_id),
        (
            "ServerNotification",
            "notifications/elicitation/complete",
            without_id,
        ),
    ];
    for from in ["2024-11-05", "2025-03-26", "2025-06-18"] {
        for (name, method, envelope) in unions {
            let text = format!(r#"{{"method":"{method}","params":{params}}}"#);
            let mut cx = Context::new().request_id("an id");
            let revisions = (known_revision(from), known_revision("2025-11-25"));
            let whole =
                convert_type(name, &text, revisions.0, revisions.1, &mut cx).expect("convertible");
            assert_eq!(whole, text[..text.len() - 1].to_owned() + envelope);
            let losses = cx.losses().iter().map(|loss| &*loss.pointer);
            let expected = ["/id"].into_iter().filter(|_| envelope == with_id);
            assert!(losses.eq(expected), "{name} {method}: {:?}", cx.losses());
        }
    }
}

/// The context provides the id of a request; without it, the message must have an id.
#[test]
fn unknown_requests_need_an_id() {
    let (from, to) = (known_revision("2025-06-18"), known_revision("2025-11-25"));
    let converted = |text: &str, mut cx: Context| {
        convert_type("ClientRequest", text, from, to, &mut cx).map(Cow::into_owned)
    };
    let own = r#"{"method":"vendor/x","id":1,"jsonrpc":"2.0"}"#;
    let given = own.replace(":1,", ":2,");
    assert_eq!(
        converted(own, Context::new().request_id(2)).as_ref(),
        Ok(&given)
    );
    assert_eq!(converted(own, Context::new()), Ok(own.to_owned()));
    for text in [
        r#"{"method":"vendor/x"}"#,
        r#"{"method":"vendor/x","id":[]}"#,
    ] {
        let refused = converted(text, Context::new()).expect_err("refused");
        assert_eq!(refused.pointer(), "/id", "{refused}");
    }
}

/// Converts an error object in answer to a request of this method; returns the output, and each loss as kind and JSON
/// pointer.
fn convert_error_text(
    method: &str,
    text: &str,
    revisions: (&str, &str),
) -> Result<(String, Vec<String>), ConvertError> {
    let root = Payload {
        kind: MessageKind::Error,
        method,
        sender: Role::Server,
    };
    let (out, losses) = convert_payload(root, Some(text), revisions)?;
    Ok((out.expect("an error").into_owned(), losses))
}

/// An error code whose meaning differs between the lifecycles is replaced by the code of the target revision; other
/// codes are unchanged.
#[test]
fn error_codes_follow_the_lifecycle() {
    let (d, e) = ("2025-11-25", "2026-07-28");
    let not_found = r#"{"code":-32002,"message":"m","data":{"uri":"file:///gone"}}"#;
    let invalid = not_found.replace("-32002", "-32602");
    let (up, losses) =
        convert_error_text("resources/read", not_found, (d, e)).expect("convertible");
    assert!(up.contains("-32602"), "{up}");
    assert_eq!(losses, ["rewritten /code"]);
    let (down, _) = convert_error_text("resources/read", &invalid, (e, d)).expect("convertible");
    assert!(down.contains("-32002"), "{down}");
    let other = invalid.replace("gone", "other");
    assert_eq!(
        convert_error_text("resources/read", &other, (e, d))
            .expect("convertible")
            .0,
        other
    );
    let (up, losses) = convert_error_text("tools/call", not_found, (d, e)).expect("convertible");
    assert!(up.contains("-32603"), "{up}");
    assert_eq!(losses, ["replaced /code"]);
    assert_eq!(
        convert_error_text("tools/call", not_found, ("2024-11-05", d))
            .expect("convertible")
            .0,
        not_found
    );
    let asks = r#"{"code":-32042,"message":"m"}"#;
    let refused = convert_error_text("tools/call", asks, (d, e)).expect_err("refused");
    assert_eq!(refused.pointer(), "/code");
    let reserved = r#"{"code":-32050,"message":"m"}"#;
    assert!(
        convert_error_text("tools/call", reserved, (d, e))
            .expect("convertible")
            .0
            .contains("-32603")
    );
    for code in ["-32001", "1e400", "5"] {
        let text = format!("{{\"code\":{code},\"message\":\"m\"}}");
        assert_eq!(
            convert_error_text("tools/call", &text, (d, e))
                .expect("convertible")
                .0,
            text
        );
    }
    assert!(convert_error_text("tools/call", "{}", (d, e)).is_err());
}

/// Each known revision has the id, the properties and the lifecycle of the revision table.
#[test]
fn known_revisions_have_a_spec() {
    for (revision, spec) in KnownRevision::ALL.iter().zip(mcp_exact_revisions::all()) {
        assert_eq!(revision.spec(), spec);
        assert_eq!(revision.as_str(), spec.id());
        assert_eq!(revision.lifecycle(), spec.lifecycle());
    }
    assert_eq!(
        known_revision("2025-11-25").lifecycle(),
        Lifecycle::Initialize
    );
    assert_eq!(
        known_revision("2026-07-28").lifecycle(),
        Lifecycle::Discover
    );
    let batches: Vec<&str> = KnownRevision::ALL
        .iter()
        .filter(|known| known.has_batches())
        .map(|known| known.as_str())
        .collect();
    assert_eq!(batches, ["2025-03-26"]);
    assert_eq!("2030-01-01".parse::<KnownRevision>(), Err(UnknownRevision));
    let elicits = |id| {
        known_revision(id)
            .methods()
            .any(|m| m.method == "elicitation/create" && m.from_server)
    };
    assert_eq!(
        [
            elicits("2025-03-26"),
            elicits("2025-06-18"),
            elicits("2026-07-28")
        ],
        [false, true, false]
    );
}
