//! Tests of the rules by revision, sender and capability.

use super::*;

/// The rows are sorted by kind, sender and method, and no two rows have the same key.
#[test]
fn rows_are_sorted_and_unique() {
    let key = |rule: &Rule| (rule.kind, rule.sender == Side::Server, rule.method);
    assert!(RULES.is_sorted_by(|one, other| key(one) < key(other)));
}

/// What the schemas show of a request agrees with its row, whose facts were read from the specification.
#[test]
fn rows_agree_with_schemas() {
    for rule in rows().filter(|rule| rule.kind == MessageKind::Request) {
        let (id, name) = (rule.id, rule.method);
        let lists = id.list_member().is_some() && id.is_cached();
        assert_eq!(rule.cache_policy == CachePolicy::List, lists, "{name}");
        let is_cached = rule.cache_policy != CachePolicy::Never;
        assert_eq!(is_cached, id.is_cached(), "{name}");
        assert_eq!(rule.may_require_input, id.may_require_input(), "{name}");
        assert_eq!(
            rule.lists_tools,
            id.list_member() == Some("tools"),
            "{name}"
        );
        if let Some(param) = rule.name_param {
            assert_eq!(id.target_param(), Some(param), "{name}");
        }
    }
}

/// Parses a JSON object.
fn object(text: &str) -> JsonObject {
    text.parse().expect(text)
}

/// Capabilities and extensions that both peers have declared.
struct Peers {
    /// Capabilities that both peers declare.
    capabilities: JsonObject,
    /// Extensions of both configurations.
    extensions: Extensions,
}

impl Peers {
    fn new(capabilities: &str) -> Self {
        Self {
            capabilities: object(capabilities),
            extensions: Extensions::default(),
        }
    }

    /// Returns the rules of the peer with the role `local`.
    fn rules(&self, spec: &'static RevisionSpec, local: Side) -> Rules<'_> {
        Rules {
            spec,
            local_role: local,
            capabilities: (&self.capabilities).into(),
            peer_capabilities: (&self.capabilities).into(),
            extensions: &self.extensions,
        }
    }
}

/// `is_listen` is true only for `subscriptions/listen` in a revision that defines this method, `is_elicitation` only
/// for `elicitation/create`.
#[test]
fn rows_identify_listen_and_elicitation() {
    let newer = mcp_exact_revisions::V2026_07_28;
    assert!(is_listen("subscriptions/listen", newer));
    assert!(!is_listen("tools/call", newer));
    assert!(!is_listen("x", newer));
    assert!(!is_listen(
        "subscriptions/listen",
        mcp_exact_revisions::V2025_11_25
    ));
    let told = [
        "elicitation/create",
        "roots/list",
        "sampling/createMessage",
        "x",
    ];
    assert_eq!(told.map(is_elicitation), [true, false, false, false]);
}

/// "Extensions are negotiated": both peers must declare an extension before its methods are used (2026-07-28, `basic`,
/// "Extensions").
#[test]
fn requests_of_extensions_need_both_peers() {
    let mut extension = Extension::new("x/y");
    extension.requests = vec!["y/do".to_owned()];
    for (capabilities, declared) in [(r#"{"extensions":{"x/y":{}}}"#, true), ("{}", false)] {
        let mut peers = Peers::new(capabilities);
        peers.extensions.negotiated = vec![extension.clone()];
        for spec in mcp_exact_revisions::all() {
            let client = peers.rules(spec, Side::Client);
            let server = peers.rules(spec, Side::Server);
            let sent = client.check_sent_request("y/do", None);
            let taken = server.check_received_request("y/do", None);
            match (spec.lifecycle(), declared) {
                (Lifecycle::Discover, true) => {
                    assert_eq!((sent, taken), (Ok(()), Ok(Handler::Application)));
                }
                (Lifecycle::Discover, false) => {
                    assert!(
                        matches!(sent, Err(SendError::Capability { .. })),
                        "{sent:?}"
                    );
                    let refusal = Refusal::MissingExtension("x/y".to_owned());
                    assert_eq!(taken, Err(refusal));
                }
                (Lifecycle::Initialize, _) => {
                    assert!(matches!(sent, Err(SendError::Method { .. })), "{sent:?}");
                    assert_eq!(taken, Err(Refusal::UnknownMethod("y/do".to_owned())));
                }
            }
            // A server has no requests of extensions, whichever way.
            let sent = server.check_sent_request("y/do", None);
            assert!(matches!(sent, Err(SendError::Method { .. })), "{sent:?}");
            let taken = client.check_received_request("y/do", None);
            assert_eq!(taken, Err(Refusal::UnknownMethod("y/do".to_owned())));
        }
    }
}

/// Parameters of requests to a client are checked when sent and when received; the application must not set a progress token.
#[test]
fn client_request_params_are_checked() {
    let peers = Peers::new(r#"{"elicitation":{},"sampling":{},"tools":{}}"#);
    let (older, newer) = (
        mcp_exact_revisions::V2025_11_25,
        mcp_exact_revisions::V2026_07_28,
    );
    let form = r#"{"message":"m","requestedSchema":{"type":"object","properties":{}}}"#;
    let message = r#"{"role":"user","content":{"type":"text","text":"t"}}"#;
    let sample = format!(r#"{{"messages":[{message}],"maxTokens":1}}"#);
    for (method, params, fits) in [
        ("elicitation/create", form, true),
        ("elicitation/create", r#"{"message":"m"}"#, false),
        ("sampling/createMessage", &*sample, true),
        (
            "sampling/createMessage",
            r#"{"messages":["m"],"maxTokens":1}"#,
            false,
        ),
    ] {
        let params = object(params);
        for spec in [older, newer] {
            let sent = peers
                .rules(spec, Side::Server)
                .check_sent_input_request(method, Some(&params));
            assert_eq!(sent.is_ok(), fits, "{method} {spec}: {sent:?}");
            assert!(fits || matches!(sent, Err(SendError::Params { .. })));
        }
        let taken = peers
            .rules(newer, Side::Client)
            .check_received_input_request(method, Some(&params));
        assert_eq!(taken.is_ok(), fits, "{method}: {taken:?}");
        let taken = peers
            .rules(older, Side::Client)
            .check_received_request(method, Some(&params));
        assert_eq!(taken.is_ok(), fits, "{method}: {taken:?}");
        assert!(fits || matches!(taken, Err(Refusal::InvalidParams(_))));
    }
    let own_token = object(r#"{"_meta":{"progressToken":1}}"#);
    for spec in [older, newer] {
        let client = peers.rules(spec, Side::Client);
        let sent = client.check_sent_request("tools/list", Some(&own_token));
        assert!(matches!(sent, Err(SendError::Params { .. })), "{sent:?}");
    }
}

/// Methods of gateways and vendors are allowed, except methods that a revision defines for the opposite direction.
#[test]
fn vendor_methods_keep_their_direction() {
    let (older, newer) = (
        &mcp_exact_revisions::V2025_11_25,
        &mcp_exact_revisions::V2026_07_28,
    );
    let text = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    let client_sends = ["tools/list", "notifications/roots/list_changed"];
    let server_sends = ["roots/list", "notifications/message"];
    let all = [&client_sends[..], &server_sends[..], &["vendor/x"]].concat();
    let mut extension = Extension::new("x/y");
    extension.notifications = text(&["y/server"]);
    extension.client_notifications = text(&["y/client"]);
    let extensions = Extensions {
        requests: text(&all),
        notifications: text(&all),
        negotiated: vec![extension],
        ..Extensions::default()
    };
    let declared: JsonObject = r#"{"extensions":{"x/y":{}}}"#.parse().expect("an object");
    let rules = |spec, local| Rules {
        spec,
        local_role: local,
        capabilities: (&declared).into(),
        peer_capabilities: (&declared).into(),
        extensions: &extensions,
    };
    for spec in [older, newer] {
        let (client, server) = (rules(spec, Side::Client), rules(spec, Side::Server));
        assert_eq!(
            server.check_received_request("vendor/x", None),
            Ok(Handler::Application)
        );
        assert_eq!(
            server.check_received_notification("vendor/x"),
            Ok(Handler::Application)
        );
        assert!(client.check_sent_request("vendor/x", None).is_ok());
        assert!(
            client
                .check_sent_notification("vendor/x", None, NotificationTarget::Client)
                .is_ok()
        );
        assert_eq!(
            server.check_sent_request("vendor/x", None).is_ok(),
            spec.has_server_requests()
        );
        for method in server_sends {
            assert!(
                server.check_received_request(method, None).is_err(),
                "{method}"
            );
            assert!(
                server.check_received_notification(method).is_err(),
                "{method}"
            );
            assert!(client.check_sent_request(method, None).is_err(), "{method}");
            let sent = client.check_sent_notification(method, None, NotificationTarget::Client);
            assert!(sent.is_err(), "{method}");
        }
        // Roots do not change any more from 2026-07-28 on.
        let defines = |method: &&&str| spec == older || **method == "tools/list";
        for method in client_sends.iter().filter(defines) {
            assert!(
                client.check_received_notification(method).is_err(),
                "{method}"
            );
            let sent = server.check_sent_notification(method, None, NotificationTarget::Client);
            assert!(sent.is_err(), "{method}");
        }
        let negotiated = spec.lifecycle() == Lifecycle::Discover;
        let taken = server.check_received_notification("y/client");
        assert_eq!(taken.is_ok(), negotiated);
        assert_eq!(
            client.check_received_notification("y/server").is_ok(),
            negotiated
        );
        assert!(server.check_received_notification("y/server").is_err());
    }
}

/// The table has a row for every method of every revision, and no other rows.
#[test]
fn rows_cover_all_revisions() {
    for spec in mcp_exact_revisions::released() {
        for side in [Side::Client, Side::Server] {
            let methods = spec.methods(side);
            for method in methods.requests() {
                assert!(
                    find_row(MessageKind::Request, side, method, spec).is_some(),
                    "{method} of {} has no row in rules/table.rs",
                    spec.id()
                );
            }
            for method in methods.notifications() {
                let found = find_row(MessageKind::Notification, side, method, spec);
                assert!(
                    found.is_some(),
                    "{method} of {} has no row in rules/table.rs",
                    spec.id()
                );
            }
        }
    }
    for (number, rule) in RULES.iter().enumerate() {
        let mut all = mcp_exact_revisions::released();
        assert!(
            all.any(|spec| index::is_defined(number, spec)),
            "{}",
            rule.method
        );
    }
}

/// Endpoints offer and recognise no draft: there are no conversions from or to it.
#[test]
fn drafts_are_unknown_to_endpoints() {
    let of_table = mcp_exact_revisions::all().iter();
    let released: Vec<_> = mcp_exact_revisions::released().collect();
    for draft in of_table.filter(|spec| !released.contains(spec)) {
        println!("notice: the table has the draft {draft}");
        let offer = crate::Offer::new([draft.id()]);
        assert!(offer.is_err(), "{offer:?}");
        assert_eq!(crate::lifecycle(draft.id()), None);
        assert!(draft.id().parse::<crate::CachedNegotiation>().is_err());
    }
    let spoken: Vec<_> = crate::revisions().collect();
    let converted = mcp_exact_convert::KnownRevision::ALL.iter();
    let converted: Vec<_> = converted.map(|known| known.spec().revision()).collect();
    assert_eq!(spoken, converted);
}
