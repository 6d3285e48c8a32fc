//! A document that would be valid in the target revision with another meaning is converted, refused or reported. A
//! value with the same meaning as its absence is neither refused nor reported.

use mcp_exact_convert::{Context, MessageKind, NewerMembers, Payload, Role, convert, convert_type};
use serde_json::{Value, json};

use crate::chosen::{
    V2024_11_05, V2025_03_26, V2025_06_18, V2025_11_25, V2026_07_28, check_refusal, convert_value,
    known_revision,
};

/// Converts a value of the type `name`; returns the output, and each loss of information as kind and JSON pointer.
fn convert_with_losses(revisions: (&str, &str), name: &str, input: &Value) -> (Value, Vec<String>) {
    let (out, losses) = convert_value(revisions, name, input, Context::new());
    let out = out.unwrap_or_else(|(pointer, reason)| panic!("{reason} at {pointer:?}"));
    let words = ["dropped", "replaced", "defaulted"];
    let is_lossy = |loss: &String| words.iter().any(|word| loss.starts_with(word));
    (out, losses.into_iter().filter(is_lossy).collect())
}

/// Checks the output of a conversion, and its losses of information, each written as kind and JSON pointer.
#[track_caller]
fn check_losses(revisions: (&str, &str), name: &str, input: Value, output: Value, losses: &[&str]) {
    let (out, found) = convert_with_losses(revisions, name, &input);
    assert_eq!(out, output);
    assert_eq!(found, losses);
}

/// Creates a task with the status `working`.
fn task() -> Value {
    json!({"taskId": "t", "status": "working", "createdAt": "2025-11-25T00:00:00Z",
        "lastUpdatedAt": "2025-11-25T00:00:00Z", "ttl": null})
}

/// 2026-07-28 basic/patterns/mrtr: a result of type `input_required` is not a final result, whatever other members it
/// has.
#[test]
fn input_required_results_are_not_final() {
    let asks = json!({"resultType": "input_required", "content": [], "messages": [], "contents": [],
        "ttlMs": 0, "cacheScope": "private", "inputRequests": {}});
    for name in ["CallToolOutcome", "GetPromptOutcome", "ReadResourceOutcome"] {
        for to in [V2024_11_05, V2025_03_26, V2025_06_18, V2025_11_25] {
            check_refusal((V2026_07_28, to), name, asks.clone(), "", "asks for input");
        }
    }
    let result = json!({"resultType": "input_required", "content": []});
    for newer in [NewerMembers::Report, NewerMembers::KeepInExtra] {
        let cx = Context::new().newer_members(newer);
        let (out, _) = convert_value((V2026_07_28, V2025_11_25), "CallToolResult", &result, cx);
        assert_eq!(
            out.map_err(|(pointer, _)| pointer),
            Err("/resultType".into())
        );
    }
    for from in [V2024_11_05, V2025_03_26, V2025_06_18, V2025_11_25] {
        for kind in ["input_required", "task", "vendor"] {
            let result = json!({"content": [], "resultType": kind});
            check_refusal(
                (from, V2026_07_28),
                "CallToolResult",
                result,
                "/resultType",
                "complete",
            );
        }
    }
}

/// 2025-11-25 basic/utilities/tasks: a result with a `task` is a handle; the actual result follows later.
#[test]
fn task_handles_are_not_results() {
    let results = [
        ("CallToolOutcome", json!({"content": [], "task": task()})),
        ("ElicitOutcome", json!({"action": "accept", "task": task()})),
        ("CallToolOutcome", json!({"task": task()})),
    ];
    for (name, result) in results {
        for to in [V2024_11_05, V2025_03_26, V2025_06_18, V2026_07_28] {
            let (out, _) = convert_value((V2025_11_25, to), name, &result, Context::new());
            let Err((_, reason)) = out else {
                panic!("{name} to {to}: {out:?}");
            };
            let is_explained = ["task", "no counterpart"]
                .iter()
                .any(|word| reason.contains(word));
            assert!(is_explained, "{reason}");
        }
    }
    // In a source revision without tasks, the member has no meaning and must not get one.
    let stray = json!({"content": [], "task": {"taskId": "t"}});
    check_losses(
        (V2025_06_18, V2025_11_25),
        "CallToolResult",
        stray,
        json!({"content": []}),
        &["dropped /task"],
    );
}

/// The loss that reports a dropped `execution` member states whether the tool requires task execution.
#[test]
fn dropped_task_execution_states_its_effect() {
    let tool = |execution: Value| json!({"name": "n", "inputSchema": {"type": "object"}, "execution": execution});
    let bare = json!({"name": "n", "inputSchema": {"type": "object"}});
    for to in [V2024_11_05, V2025_03_26, V2025_06_18, V2026_07_28] {
        let required = tool(json!({"taskSupport": "required"}));
        check_losses(
            (V2025_11_25, to),
            "Tool",
            required.clone(),
            bare.clone(),
            &["dropped /execution"],
        );
        let mut cx = Context::new();
        let text = required.to_string();
        convert_type(
            "Tool",
            &text,
            known_revision(V2025_11_25),
            known_revision(to),
            &mut cx,
        )
        .expect("convertible");
        let loss = cx
            .losses()
            .iter()
            .find(|loss| &*loss.pointer == "/execution");
        let loss = loss.expect("a loss").to_string();
        assert!(loss.contains("requires task execution"), "{loss}");
        assert!(loss.contains("tool `n`"), "{loss}");
        for silent in [json!({}), json!({"taskSupport": "forbidden"})] {
            check_losses((V2025_11_25, to), "Tool", tool(silent), bare.clone(), &[]);
        }
    }
    let call = json!({"name": "n", "task": {"ttl": 1}, "_meta": {}});
    let (_, losses) =
        convert_with_losses((V2025_11_25, V2026_07_28), "CallToolRequestParams", &call);
    assert!(losses.contains(&"dropped /task".to_owned()), "{losses:?}");
    let capabilities = json!({"tasks": {"list": {}}});
    check_losses(
        (V2025_11_25, V2026_07_28),
        "ClientCapabilities",
        capabilities.clone(),
        json!({}),
        &["dropped /tasks"],
    );
    check_losses(
        (V2025_11_25, V2026_07_28),
        "ServerCapabilities",
        capabilities,
        json!({}),
        &["dropped /tasks"],
    );
}

/// An elicitation of another mode, and a capability for another mode, never becomes one by form in 2025-06-18, which
/// supports only forms.
#[test]
fn url_elicitation_never_becomes_a_form() {
    let params = |mode: &str| json!({"mode": mode, "message": "m", "requestedSchema": {"type": "object", "properties": {}}});
    let bare = json!({"message": "m", "requestedSchema": {"type": "object", "properties": {}}});
    for from in [V2025_11_25, V2026_07_28] {
        check_refusal(
            (from, V2025_06_18),
            "ElicitRequestParams",
            params("voice"),
            "",
            "no counterpart",
        );
        check_losses(
            (from, V2025_06_18),
            "ElicitRequestParams",
            params("form"),
            bare.clone(),
            &[],
        );
    }
    let unknown = params("url");
    check_losses(
        (V2025_06_18, V2025_11_25),
        "ElicitRequestParams",
        unknown,
        bare,
        &["dropped /mode"],
    );
    let by_url = json!({"elicitation": {"url": {}}});
    for from in [V2025_11_25, V2026_07_28] {
        check_losses(
            (from, V2025_06_18),
            "ClientCapabilities",
            by_url.clone(),
            json!({}),
            &["dropped /elicitation"],
        );
        let (out, losses) = convert_with_losses(
            (from, V2025_06_18),
            "ClientCapabilities",
            &json!({"elicitation": {}}),
        );
        assert_eq!((out, losses.len()), (json!({"elicitation": {}}), 0));
    }
}

/// 2026-07-28 basic/patterns/mrtr: a retry contains the user's input, which a plain call would ignore.
#[test]
fn input_responses_are_not_lost() {
    let call = |responses: Value| {
        json!({"name": "n", "inputResponses": responses, "_meta": {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {}}})
    };
    let declined = call(json!({"a": {"action": "decline"}}));
    for to in [V2024_11_05, V2025_03_26, V2025_06_18, V2025_11_25] {
        check_refusal(
            (V2026_07_28, to),
            "CallToolRequestParams",
            declined.clone(),
            "/inputResponses",
            "answered",
        );
        let (_, losses) =
            convert_with_losses((V2026_07_28, to), "CallToolRequestParams", &call(json!({})));
        assert_eq!(losses, [""; 0]);
    }
    let cx = Context::new().assume_input_read();
    let (out, _) = convert_value(
        (V2026_07_28, V2025_11_25),
        "CallToolRequestParams",
        &declined,
        cx,
    );
    assert_eq!(out, Ok(json!({"name": "n"})));
}

/// 2025-11-25 basic/utilities/tasks: a request with `task` asks for a task, and `execution` and `tasks` announce them.
/// In a source revision without these members, they have no meaning and must not get one.
#[test]
fn requests_gain_no_task() {
    let sampling = json!({"messages": [], "maxTokens": 1});
    let form = json!({"message": "m", "requestedSchema": {"type": "object", "properties": {}}});
    let page =
        json!({"message": "m", "mode": "url", "url": "https://a.example/", "elicitationId": "e"});
    let tool = json!({"name": "n", "inputSchema": {"type": "object"}});
    for (revisions, name, bare, member) in [
        (
            &[V2025_06_18, V2026_07_28][..],
            "CallToolRequestParams",
            json!({"name": "n"}),
            "task",
        ),
        (
            &[V2025_06_18, V2026_07_28],
            "CreateMessageRequestParams",
            sampling,
            "task",
        ),
        (&[V2025_06_18], "ElicitRequestParams", form.clone(), "task"),
        (&[V2026_07_28], "ElicitRequestFormParams", form, "task"),
        (&[V2026_07_28], "ElicitRequestURLParams", page, "task"),
        (&[V2025_06_18, V2026_07_28], "Tool", tool, "execution"),
        (
            &[V2025_06_18, V2026_07_28],
            "ClientCapabilities",
            json!({"roots": {}}),
            "tasks",
        ),
        (
            &[V2025_06_18, V2026_07_28],
            "ServerCapabilities",
            json!({"logging": {}}),
            "tasks",
        ),
    ] {
        let mut stray = bare.clone();
        stray[member] = json!({"taskSupport": "required"});
        let loss = format!("dropped /{member}");
        for from in revisions {
            let mut input = stray.clone();
            if *from == V2026_07_28 && name == "CallToolRequestParams" {
                input["_meta"] = json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28",
                    "io.modelcontextprotocol/clientCapabilities": {}});
            }
            check_losses((from, V2025_11_25), name, input, bare.clone(), &[&loss]);
        }
    }
}

/// 2025-11-25 client/sampling, "Sampling with Tools", and client/elicitation, "Capabilities": 2025-06-18 defines neither
/// tools in sampling nor elicitation by URL, and a message of that revision must not get them.
#[test]
fn older_clients_gain_no_capability() {
    let sampling = json!({"messages": [], "maxTokens": 1});
    let mut stray = sampling.clone();
    stray["tools"] = json!([{"name": "n", "inputSchema": {"type": "object"}}]);
    stray["toolChoice"] = json!({"mode": "required"});
    check_losses(
        (V2025_06_18, V2025_11_25),
        "CreateMessageRequestParams",
        stray,
        sampling,
        &["dropped /toolChoice", "dropped /tools"],
    );
    for (from, stray, expected, losses) in [
        (
            V2025_06_18,
            json!({"elicitation": {"url": {}}, "sampling": {"tools": {}, "own": 1}}),
            json!({"elicitation": {}, "sampling": {"own": 1}}),
            &["dropped /elicitation/url", "dropped /sampling/tools"][..],
        ),
        (
            V2025_06_18,
            json!({"elicitation": {"form": {}}, "sampling": {}}),
            json!({"elicitation": {"form": {}}, "sampling": {}}),
            &[],
        ),
        (
            V2025_03_26,
            json!({"elicitation": {}, "roots": {}}),
            json!({"roots": {}}),
            &["dropped /elicitation"],
        ),
    ] {
        check_losses(
            (from, V2025_11_25),
            "ClientCapabilities",
            stray,
            expected,
            losses,
        );
    }
}

/// 2026-07-28 basic/patterns/mrtr: a request with `inputResponses` or `requestState` is a retry that answers input
/// requests. Older revisions have no input requests, so that their requests answer none.
#[test]
fn older_requests_answer_no_input_request() {
    let stray = json!({"name": "n", "uri": "a:b", "requestState": "s",
        "inputResponses": {"a": {"action": "accept", "content": {}}}});
    for name in [
        "CallToolRequestParams",
        "GetPromptRequestParams",
        "ReadResourceRequestParams",
    ] {
        for from in [V2024_11_05, V2025_03_26, V2025_06_18, V2025_11_25] {
            let (out, losses) = convert_with_losses((from, V2026_07_28), name, &stray);
            for member in ["inputResponses", "requestState"] {
                assert_eq!(out.get(member), None, "{name} of {from}");
                assert!(losses.contains(&format!("dropped /{member}")), "{losses:?}");
            }
        }
    }
}

/// 2026-07-28 server/utilities/caching: with the `cacheScope` "public", shared intermediaries may cache a result. Older
/// revisions do not define the member, so that none of their results is public.
#[test]
fn older_results_are_never_public() {
    let result = |scope: &str| json!({"contents": [], "cacheScope": scope});
    for from in [V2024_11_05, V2025_11_25] {
        for (scope, count) in [("public", 1), ("private", 0)] {
            let revisions = (from, V2026_07_28);
            let (out, losses) =
                convert_with_losses(revisions, "ReadResourceResult", &result(scope));
            assert_eq!(out["cacheScope"], "private");
            let dropped = losses.iter().filter(|loss| *loss == "dropped /cacheScope");
            assert_eq!(dropped.count(), count, "{losses:?}");
        }
    }
}

/// Members of `_meta` that 2026-07-28 reserves have no meaning in older requests: a conversion to 2026-07-28 drops
/// their values and reports the loss.
#[test]
fn reserved_metadata_of_older_requests_drops() {
    let reserved = "io.modelcontextprotocol/clientCapabilities";
    let call = json!({"name": "n", "_meta": {reserved: {"roots": {}}, "own": 1}});
    for from in [V2024_11_05, V2025_03_26, V2025_06_18, V2025_11_25] {
        let (out, losses) =
            convert_with_losses((from, V2026_07_28), "CallToolRequestParams", &call);
        assert_eq!(out["_meta"][reserved], json!({}), "{from}");
        assert_eq!(out["_meta"]["own"], 1);
        let pointer = "dropped /_meta/io.modelcontextprotocol~1clientCapabilities";
        assert!(losses.contains(&pointer.to_owned()), "{from}: {losses:?}");
    }
}

/// The `protocolVersion` of `initialize` becomes the target revision if it names the source revision, and is unchanged
/// otherwise.
#[test]
fn initialize_names_the_target_revision() {
    let request = |version: &str| json!({"protocolVersion": version, "capabilities": {}, "clientInfo": {"name": "n", "version": "1"}});
    for from in [V2024_11_05, V2025_03_26, V2025_06_18, V2025_11_25] {
        for to in [V2024_11_05, V2025_03_26, V2025_06_18, V2025_11_25] {
            let root = Payload {
                kind: MessageKind::Request,
                method: "initialize",
                sender: Role::Client,
            };
            for (before, after) in [(from, to), ("3000-01-01", "3000-01-01")] {
                let (text, mut cx) = (request(before).to_string(), Context::new());
                let out = convert(
                    root,
                    Some(&text),
                    known_revision(from),
                    known_revision(to),
                    &mut cx,
                );
                let out = out.expect("convertible").expect("params");
                let out: Value = serde_json::from_str(&out).expect("JSON");
                assert_eq!(out, request(after), "{from} to {to}");
                assert_eq!(cx.losses().len(), usize::from(before != after));
                assert!(!cx.is_lossy());
            }
        }
    }
}

/// An error code that has a defined meaning in only one of the two revisions is replaced by -32603; -32042 is refused
/// for 2026-07-28, where a result requests the input instead.
#[test]
fn revision_specific_error_codes_are_replaced() {
    let convert_code = |from: &str, to: &str, code: i64| {
        let root = Payload {
            kind: MessageKind::Error,
            method: "tools/call",
            sender: Role::Server,
        };
        let text = json!({"code": code, "message": "m", "data": [1]}).to_string();
        let mut cx = Context::new();
        let out = convert(
            root,
            Some(&text),
            known_revision(from),
            known_revision(to),
            &mut cx,
        );
        let out: Option<Value> = out
            .ok()
            .flatten()
            .map(|out| serde_json::from_str(&out).expect("JSON"));
        out.map(|out| {
            assert_eq!((&out["message"], &out["data"]), (&json!("m"), &json!([1])));
            (out["code"].as_i64(), cx.losses().len())
        })
    };
    for from in [V2024_11_05, V2025_03_26, V2025_06_18, V2025_11_25] {
        for code in [-32020, -32021, -32022, -32050] {
            assert_eq!(
                convert_code(from, V2026_07_28, code),
                Some((Some(-32603), 1)),
                "{from} {code}"
            );
        }
    }
    assert_eq!(
        convert_code(V2025_11_25, V2026_07_28, -32042),
        None,
        "the result asks for input instead"
    );
    for (from, to) in [
        (V2024_11_05, V2026_07_28),
        (V2025_03_26, V2026_07_28),
        (V2025_06_18, V2026_07_28),
        (V2025_06_18, V2025_11_25),
        (V2024_11_05, V2025_11_25),
        (V2025_11_25, V2025_06_18),
        (V2025_11_25, V2024_11_05),
        (V2026_07_28, V2025_11_25),
    ] {
        assert_eq!(
            convert_code(from, to, -32042),
            Some((Some(-32603), 1)),
            "{from} to {to}"
        );
    }
    for (from, to) in [
        (V2024_11_05, V2025_06_18),
        (V2025_06_18, V2024_11_05),
        (V2025_03_26, V2025_06_18),
    ] {
        assert_eq!(
            convert_code(from, to, -32042),
            Some((Some(-32042), 0)),
            "{from} to {to}"
        );
    }
}

/// If newer members are kept, `structuredContent` is kept with its text block, but the titles of an enum (`oneOf`) are
/// replaced by `enumNames`.
#[test]
fn deciding_newer_members_are_not_kept() {
    let titled = json!({"type": "string", "oneOf": [{"const": "a", "title": "V2024_11_05"}]});
    let keeps = || Context::new().newer_members(NewerMembers::KeepInExtra);
    let (out, _) = convert_value(
        (V2025_11_25, V2025_06_18),
        "PrimitiveSchemaDefinition",
        &titled,
        keeps(),
    );
    let named = json!({"type": "string", "enum": ["a"], "enumNames": ["V2024_11_05"]});
    assert_eq!(out, Ok(named));
    let structured = json!({"content": [], "structuredContent": {"a": 1}});
    let (out, _) = convert_value(
        (V2025_06_18, V2025_03_26),
        "CallToolResult",
        &structured,
        keeps(),
    );
    let out = out.expect("convertible");
    assert_eq!(out["structuredContent"], json!({"a": 1}));
    assert_eq!(out["content"][0]["text"], "{\"a\":1}");
}

/// An empty `tools` array, which has the same meaning as an absent one, is removed without a loss.
#[test]
fn values_equal_to_absence_are_lossless() {
    let sampling = json!({"maxTokens": 1, "messages": [], "tools": []});
    let bare = json!({"maxTokens": 1, "messages": []});
    for (from, to) in [
        (V2025_11_25, V2025_06_18),
        (V2025_11_25, V2024_11_05),
        (V2026_07_28, V2025_06_18),
        (V2026_07_28, V2024_11_05),
    ] {
        check_losses(
            (from, to),
            "CreateMessageRequestParams",
            sampling.clone(),
            bare.clone(),
            &[],
        );
    }
}

/// An invalid value of a member that only the target revision defines is kept and reported if the member is a hint,
/// dropped and reported if the member is optional, and refused if the member is required (docs/conversions.md).
#[test]
fn invalid_hints_are_kept_and_reported() {
    let content = |block: Value| json!({"content": [block]});
    let link = |annotations: Value| json!({"type": "resource_link", "name": "n", "uri": "a:b", "annotations": annotations});
    for from in [V2024_11_05, V2025_03_26] {
        for to in [V2025_06_18, V2025_11_25] {
            for annotations in [json!({"audience": ["robot"]}), json!({"priority": 7})] {
                let block = content(link(annotations));
                let (out, losses) =
                    convert_value((from, to), "CallToolResult", &block, Context::new());
                assert_eq!(out, Ok(block), "{from} to {to}");
                assert!(
                    losses[0].starts_with("kept /content/0/annotations/"),
                    "{losses:?}"
                );
            }
            let wrong = json!({"type": "resource_link", "name": "n", "uri": "a:b", "size": "big"});
            let right = json!({"type": "resource_link", "name": "n", "uri": "a:b"});
            check_losses(
                (from, to),
                "CallToolResult",
                content(wrong),
                content(right),
                &["dropped /content/0/size"],
            );
            let nameless = content(json!({"type": "resource_link", "uri": "a:b"}));
            check_refusal(
                (from, to),
                "CallToolResult",
                nameless,
                "/content/0",
                "missing member `name`",
            );
        }
    }
    let audio = content(
        json!({"type": "audio", "data": "AAAA", "mimeType": "a/b", "annotations": {"priority": 7}}),
    );
    let (out, losses) = convert_value(
        (V2024_11_05, V2025_03_26),
        "CallToolResult",
        &audio,
        Context::new(),
    );
    assert_eq!(
        (out, losses),
        (
            Ok(audio),
            vec!["kept /content/0/annotations/priority".into()]
        )
    );
    // The union stays open: a value that no revision defines is unknown in each.
    let unknown = content(json!({"type": "hologram", "name": 1}));
    for from in [V2024_11_05, V2025_03_26, V2025_06_18, V2025_11_25] {
        let (out, losses) = convert_value(
            (from, V2025_11_25),
            "CallToolResult",
            &unknown,
            Context::new(),
        );
        assert_eq!((out, losses.len()), (Ok(unknown.clone()), 0), "{from}");
    }
}
