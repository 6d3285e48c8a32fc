//! Attacks on the gateway, a row each: what rules and hooks have seen is what the server is asked for, and no message of a
//! call reaches another client.

use std::future::ready;
use std::sync::{Arc, Mutex};

use mcp_exact::{JsonObject, Revision, revisions};
use mcp_exact_bridge::{
    AccessRule, Bridge, Call, CallObserver, Decision, Hook, HookFuture, Hooks, Options,
    PrincipalLimits, Upstream,
};

use mcp_exact_tests_support::flood::Caller;

use crate::common::{answer_to, line_after, listen, object, patient};
use crate::matrix::wait_on_paused_clock;
use crate::scripted::{ELICIT, Scripted, called_tool, request, response, text_of, tool_response};

/// Requests and notifications that the server behind the bridge has received, in their order.
pub type Received = Arc<Mutex<Vec<JsonObject>>>;

fn revision(id: &str) -> Revision {
    let mut all = revisions();
    all.find(|revision| revision.as_str() == id).expect("known")
}

/// Creates a server of 2025-11-25 that records what it receives, and answers everything unless `script` does.
pub fn recording(
    script: impl Fn(&JsonObject) -> Vec<String> + Send + Sync + 'static,
) -> (impl Upstream, Received) {
    let received = Received::default();
    let noted = Arc::clone(&received);
    let upstream = Scripted::new(revision("2025-11-25"), move |message: &JsonObject| {
        noted.lock().expect("a lock").push(message.clone());
        let written = script(message);
        if !written.is_empty() {
            return written;
        }
        let result = match &*text_of(message, "method") {
            "initialize" => {
                r#"{"protocolVersion":"2025-11-25","capabilities":{"tools":{},"prompts":{},"completions":{},"logging":{},"resources":{"subscribe":true}},"serverInfo":{"name":"recording","version":"1"}}"#
            }
            "tools/call" if called_tool(message).as_deref() != Some("slow") => {
                r#"{"content":[{"type":"text","text":"done"}]}"#
            }
            "resources/read" => r#"{"contents":[{"uri":"file:///x","text":"x"}]}"#,
            "resources/subscribe" | "logging/setLevel" => "{}",
            "completion/complete" => r#"{"completion":{"values":[]}}"#,
            "prompts/get" => r#"{"messages":[]}"#,
            "prompts/list" => r#"{"prompts":[]}"#,
            _ => return Vec::new(),
        };
        vec![response(
            &text_of(message, "id"),
            &format!(r#""result":{result}"#),
        )]
    });
    (upstream, received)
}

/// Returns the params with which a method has reached the server.
pub fn params_of(received: &Received, method: &str) -> Vec<String> {
    let received = received.lock().expect("a lock");
    let of_method = received
        .iter()
        .filter(|message| text_of(message, "method") == method);
    of_method
        .map(|message| text_of(message, "params"))
        .collect()
}

/// Returns options with one access rule.
pub fn with_rule(allow: &[&str], deny: &[&str]) -> Options {
    let strings = |all: &[&str]| all.iter().map(|text| (*text).to_owned()).collect();
    let mut rule = AccessRule::default();
    rule.allow = strings(allow);
    rule.deny = strings(deny);
    let mut options = Options::default();
    options.rules.access = vec![rule];
    options
}

pub async fn bridge_of(upstream: impl Upstream, options: Options, is_many: bool) -> Bridge {
    let bridge = if is_many {
        let named: Arc<dyn Upstream> = Arc::new(upstream);
        Bridge::many([("a".to_owned(), named)], patient(options)).await
    } else {
        Bridge::new(upstream, options).await
    };
    bridge.expect("a bridge")
}

/// Handshake of a client of 2025-11-25.
const HANDSHAKE: [&str; 2] = [
    r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"raw","version":"1"}}}"#,
    r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
];

/// Members of `_meta` of a client of 2026-07-28 with elicitation and all logs.
const META: &str = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"elicitation":{}},"io.modelcontextprotocol/logLevel":"debug"}"#;

/// Members of `_meta` of a client of 2026-07-28 without capabilities.
const PLAIN_META: &str = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/logLevel":"debug"}"#;

/// Returns the messages of a request with these params, of a client with a session or without one.
pub fn messages(has_session: bool, method: &str, params: &str) -> Vec<String> {
    let call = |params: &str| {
        format!(r#"{{"jsonrpc":"2.0","id":9,"method":"{method}","params":{{{params}}}}}"#)
    };
    if !has_session {
        return vec![call(&format!("{PLAIN_META},{params}"))];
    }
    let handshake = HANDSHAKE.map(str::to_owned);
    handshake.into_iter().chain([call(params)]).collect()
}

/// What a rule hides cannot be reached: by a second member of the same name, by a member that the method does not name, or
/// by another spelling of a URI (RFC 3986, section 6.2).
#[tokio::test(start_paused = true)]
async fn hidden_items_are_not_reached() {
    let deny: (&[&str], &[&str]) = (&[], &["file:///secret", "hidden", "note://Private/*"]);
    let allow: (&[&str], &[&str]) = (&["file:///ok/*", "note://Ada/*"], &[]);
    let reference = |uri: &str| {
        format!(
            r#""argument":{{"name":"a","value":""}},"ref":{{"type":"ref/resource","uri":"{uri}"}}"#
        )
    };
    let read = "resources/read";
    let mut rows: Vec<(_, &str, String)> = [
        (deny, read, r#""uri":"file:///secret","uri":"file:///ok""#),
        (
            deny,
            read,
            r#""uri":"file:///ok","\u0075ri":"file:///secret""#,
        ),
        (deny, read, r#""uri":"file:///secret","name":"x""#),
        (
            deny,
            "resources/subscribe",
            r#""uri":"file:///secret","uri":"file:///ok""#,
        ),
        (deny, "resources/subscribe", r#""uri":"FILE:///secret""#),
        (deny, "tools/call", r#""name":"hidden","name":"x""#),
        (deny, "tools/call", r#""name":"hidden","uri":"file:///ok""#),
        (deny, "prompts/get", r#""name":"hidden""#),
    ]
    .map(|(rule, method, params)| (rule, method, params.to_owned()))
    .to_vec();
    for uri in [
        "file:///secret",
        "FILE:///secret",
        "file:///secre%74",
        "file://localhost/secret",
        "file:/secret",
        "file:///x/../secret",
        "file:///x/%2e%2e/secret",
        "file:////secret",
        "file:///secret?",
        "file:///secret#x",
        "file:///x%2f..%2fsecret",
        "note://private/x",
        "no uri",
    ] {
        rows.push((deny, read, format!(r#""uri":"{uri}""#)));
        rows.push((deny, "completion/complete", reference(uri)));
        let decoy = format!(r#""uri":"file:///ok",{}"#, reference(uri));
        rows.push((deny, "completion/complete", decoy));
    }
    for uri in [
        "file:///ok/../secret",
        "file:///ok/%2e%2e/secret",
        "file:///ok/..%2fsecret",
        "file:///ok/..%5csecret",
        "note://ada/x",
    ] {
        rows.push((allow, read, format!(r#""uri":"{uri}""#)));
        rows.push((allow, "completion/complete", reference(uri)));
    }
    for is_many in [false, true] {
        for ((allow, deny), method, params) in &rows {
            for has_session in [true, false] {
                if !has_session && *method == "resources/subscribe" {
                    continue;
                }
                let (upstream, received) = recording(|_| Vec::new());
                let bridge = bridge_of(upstream, with_rule(allow, deny), is_many).await;
                let own = r#""name":"hidden""#;
                let of_many = r#""name":"a__hidden""#;
                let params = params.replace(own, if is_many { of_many } else { own });
                let what = format!("{method} {params}, session {has_session}, many {is_many}");
                let answer = answer_to(&bridge, &messages(has_session, method, &params), "9").await;
                assert!(answer.get("error").is_some(), "{what}: {answer}");
                assert_eq!(params_of(&received, method), [""; 0], "{what}");
            }
        }
    }
}

/// The server gets the normal form of a URI that the rules have seen; without rules it gets what the client has written.
#[tokio::test(start_paused = true)]
async fn server_gets_what_rules_saw() {
    let asked = |params: &str| {
        let params = object(params);
        let uri = text_of(&params, "uri");
        let reference = params
            .get("ref")
            .map(|value| JsonObject::try_from(value).expect("a ref"));
        reference.map_or(uri, |reference| text_of(&reference, "uri"))
    };
    let reference =
        r#""argument":{"name":"a","value":""},"ref":{"type":"ref/resource","uri":"FILE:/ok/{+x}"}"#;
    let rows = [
        (
            "resources/read",
            r#""uri":"FILE:///ok/y/../%78""#,
            "FILE:///ok/y/../%78",
            "file:///ok/x",
        ),
        (
            "resources/read",
            r#""name":"x","uri":"note://Ada/x""#,
            "note://Ada/x",
            "note://Ada/x",
        ),
        (
            "completion/complete",
            reference,
            "FILE:/ok/{+x}",
            "file:///ok/{+x}",
        ),
    ];
    for (method, params, spelt, normal) in rows {
        for has_session in [true, false] {
            for (options, expected) in [
                (Options::default(), spelt),
                (with_rule(&["file:///ok/*", "note://Ada/*"], &[]), normal),
            ] {
                let (upstream, received) = recording(|_| Vec::new());
                let bridge = bridge_of(upstream, options, false).await;
                let answer = answer_to(&bridge, &messages(has_session, method, params), "9").await;
                assert!(answer.get("result").is_some(), "{params}: {answer}");
                let sent = params_of(&received, method);
                assert_eq!(
                    sent.iter().map(|params| asked(params)).collect::<Vec<_>>(),
                    [expected]
                );
            }
        }
    }
}

/// Hook that records the subject of each request, and sends calls of the tool `open` to the tool `hidden`.
struct Redirect(Arc<Mutex<Vec<Option<String>>>>);

impl Hook for Redirect {
    fn before<'a>(&'a self, call: &'a Call) -> HookFuture<'a, Decision> {
        self.0.lock().expect("a lock").push(call.subject());
        let decision = match call.subject().as_deref() {
            Some("open") => Decision::RelayWith(object(r#"{"name":"hidden"}"#)),
            _ => Decision::Relay,
        };
        Box::pin(ready(decision))
    }
}

/// Hooks see the member that the method names; what they change is admitted again; and what is refused is in the audit log.
#[tokio::test(start_paused = true)]
async fn hooks_and_audit_see_the_subject() {
    let (subjects, lines) = (Arc::default(), Arc::new(Mutex::new(Vec::new())));
    let (upstream, received) = recording(|_| Vec::new());
    let mut options = with_rule(&[], &["hidden", "file:///secret"]);
    options.hooks = Hooks::default().with(Redirect(Arc::clone(&subjects)));
    let noted = Arc::clone(&lines);
    options.on_call = Some(CallObserver::new(move |report| {
        let call = report.call;
        let subject = call.subject().unwrap_or_default();
        let line = format!(
            "{} {} {subject} {}",
            call.server,
            call.method,
            report.outcome.name()
        );
        noted.lock().expect("a lock").push(line);
    }));
    let mut limits = PrincipalLimits::default();
    limits.per_second = Some(0.001);
    limits.burst = 6;
    options.rules.limits = Some(limits);
    let bridge = bridge_of(upstream, options, true).await;
    let decoy = r#""uri":"file:///ok","name":"friendly""#;
    for (method, params, is_result) in [
        ("resources/read", decoy, true),
        ("tools/call", r#""name":"a__x""#, true),
        ("tools/call", r#""name":"a__open""#, false),
        ("tools/call", r#""name":"a__hidden""#, false),
        ("resources/read", r#""uri":"FILE:/secret""#, false),
        ("x/unknown", r#""name":"x""#, false),
        ("tools/call", r#""name":"a__x""#, false),
    ] {
        let answer = answer_to(&bridge, &messages(false, method, params), "9").await;
        assert_eq!(
            answer.get("result").is_some(),
            is_result,
            "{method} {params}: {answer}"
        );
    }
    assert_eq!(params_of(&received, "tools/call").len(), 1);
    let some = |text: &str| Some(text.to_owned());
    let expected = [some("file:///ok"), some("x"), some("open")];
    assert_eq!(*subjects.lock().expect("a lock"), expected);
    assert_eq!(
        *lines.lock().expect("a lock"),
        [
            "a resources/read file:///ok result",
            "a tools/call x result",
            "a tools/call open error",
            " tools/call a__hidden error",
            " resources/read FILE:/secret error",
            " x/unknown  error",
            " tools/call a__x error",
        ]
    );
}

/// A call that waits for the answer of its client goes on for a retry of the same request alone, whatever JSON its params
/// hold: numbers beyond every type, and nesting that only one reader takes.
#[tokio::test(start_paused = true)]
async fn waiting_call_continues_for_its_retry_only() {
    let deep = format!("{}{}", "[".repeat(140), "]".repeat(140));
    for odd in ["1e400", "-1e999999", &deep] {
        let (upstream, received) = recording(|message| {
            let id = text_of(message, "id");
            if called_tool(message).is_some() {
                return vec![request(&format!("q{id}"), "elicitation/create", ELICIT)];
            }
            match id.strip_prefix('q') {
                Some(call) => vec![tool_response(call, "done", false)],
                None => Vec::new(),
            }
        });
        let bridge = bridge_of(upstream, Options::default(), false).await;
        let call = |name: &str, arguments: &str, more: &str| {
            [format!(
                r#"{{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{{{META},"name":"{name}","arguments":{arguments}{more}}}}}"#
            )]
        };
        let own = format!(r#"{{"x":{odd},"y":1}}"#);
        let asked = answer_to(&bridge, &call("danger", &own, ""), "9").await;
        let asked: JsonObject = asked
            .get("result")
            .expect("a question")
            .try_into()
            .expect("a result");
        let state = text_of(&asked, "requestState");
        let retry = format!(
            r#","requestState":"{state}","inputResponses":{{"question-1":{{"action":"decline"}}}}"#
        );
        for (name, arguments) in [
            ("harmless", own.clone()),
            ("danger", format!(r#"{{"x":{odd},"y":2}}"#)),
            ("danger", r#"{"x":1e401,"y":1}"#.to_owned()),
        ] {
            let stolen = answer_to(&bridge, &call(name, &arguments, &retry), "9").await;
            assert!(
                stolen.get("error").is_some(),
                "{name} {arguments}: {stolen}"
            );
        }
        let spelt = format!(r#"{{"y":1.0, "x":{odd}}}"#);
        let done = answer_to(&bridge, &call("danger", &spelt, &retry), "9").await;
        assert!(done.get("result").is_some(), "{done}");
        assert_eq!(params_of(&received, "tools/call").len(), 1);
    }
}

/// Messages that name no request reach no call while an earlier call of the connection, which its client has left, may still
/// run ("These notifications MUST relate to the originating client request", 2026-07-28, `basic/transports/streamable-http`).
#[tokio::test(start_paused = true)]
async fn abandoned_calls_reach_nobody() {
    let (upstream, received) = recording(|message| {
        let log = r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"a secret"}}"#;
        let ask = request("q", "elicitation/create", ELICIT);
        let id = text_of(message, "id");
        match called_tool(message).as_deref() {
            Some("before") => vec![
                log.replace("a secret", "own"),
                tool_response(&id, "", false),
            ],
            Some("after") => vec![log.to_owned(), ask, tool_response(&id, "failed", true)],
            _ => Vec::new(),
        }
    });
    let bridge = bridge_of(upstream, Options::default(), false).await;
    let call = |name: &str| messages(false, "tools/call", &format!(r#""name":"{name}""#));
    let lines_of = async |name: &str| {
        let lines = Mutex::new(Vec::new());
        let is_last = |line: &str| {
            lines.lock().expect("a lock").push(line.to_owned());
            line.contains(r#""id":9"#)
        };
        line_after(&bridge, &call(name), is_last).await;
        lines.into_inner().expect("a lock").concat()
    };
    let before = lines_of("before").await;
    assert!(before.contains("own"), "{before}");
    {
        let left = call("slow");
        let leaving = answer_to(&bridge, &left, "9");
        let arrived = || {
            params_of(&received, "tools/call")
                .iter()
                .any(|params| params.contains("slow"))
        };
        tokio::select! {
            answer = leaving => panic!("{answer}"),
            () = wait_on_paused_clock(arrived, "the call arrives") => {}
        }
    }
    wait_on_paused_clock(|| bridge.usage().requests == 0, "the client has left").await;
    let after = lines_of("after").await;
    assert!(!after.contains("secret"), "{after}");
    assert!(
        after.contains("failed") && !after.contains("-32021"),
        "{after}"
    );
}

/// A message that names no request reaches nobody once calls of two clients have used its connection: work of a call that was
/// answered may go on.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn answered_calls_of_others_reach_nobody() {
    let (upstream, _) = recording(|message| {
        let log = r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"a secret"}}"#;
        let answer = tool_response(&text_of(message, "id"), "", false);
        let is_call = called_tool(message).is_some();
        if is_call {
            vec![log.to_owned(), answer]
        } else {
            Vec::new()
        }
    });
    let bridge = bridge_of(upstream, Options::default(), false).await;
    let listening = listen(&bridge).await;
    let server = listening
        .url
        .trim_start_matches("http://")
        .trim_end_matches("/mcp");
    let server = server.parse().expect("an address");
    let headers = "mcp-protocol-version: 2026-07-28\r\nmcp-method: tools/call\r\nmcp-name: x\r\n";
    let body = messages(false, "tools/call", r#""name":"x""#).concat();
    for (address, is_told) in [(2, true), (2, true), (3, false), (2, false)] {
        let caller = Caller { server, address };
        let answer = caller.send(headers, &body).await;
        assert!(answer.text.contains(r#""id":9"#), "{address}: {answer:?}");
        assert_eq!(
            answer.text.contains("secret"),
            is_told,
            "{address}: {answer:?}"
        );
    }
}
