//! Negotiation between all pairs of client and server revisions, and between peers with several revisions, generated
//! from the list of revisions.

use mcp_exact_tests_session::*;

/// Returns every range of consecutive revisions, newest first.
fn revision_sets() -> Vec<Vec<&'static str>> {
    let all = all_revisions();
    let mut sets = Vec::new();
    for from in 0..all.len() {
        for to in from..all.len() {
            let mut set = all[from..=to].to_vec();
            set.reverse();
            sets.push(set);
        }
    }
    sets
}

/// Returns the revision that the specification requires peers with these revisions to negotiate; `None` if the
/// negotiation must fail.
fn expected_revision(client: &[&str], server: &[&str]) -> Option<&'static str> {
    let of = |ids: &[&str], wanted: Lifecycle| -> Vec<&'static str> {
        let known = |id: &&str| all_revisions().into_iter().find(|known| known == id);
        ids.iter()
            .filter_map(known)
            .filter(|id| lifecycle(id) == Some(wanted))
            .collect()
    };
    // The client prefers what carries its revision with each request.
    let probes = of(client, Lifecycle::Discover);
    let modern = of(server, Lifecycle::Discover);
    if let Some(id) = probes.iter().find(|id| modern.contains(id)) {
        return Some(id);
    }
    let offers = of(client, Lifecycle::Initialize);
    let answers = of(server, Lifecycle::Initialize);
    // A server that was probed and speaks that lifecycle says what else it speaks.
    let mut offered = offers.iter();
    let offered = if !modern.is_empty() && !probes.is_empty() {
        offered.find(|id| answers.contains(id))
    } else {
        offered.next()
    }?;
    let answered = if answers.contains(offered) {
        offered
    } else {
        answers.first()?
    };
    offers.contains(answered).then_some(*answered)
}

/// Peers with any ranges of revisions negotiate the revision that the specification requires, or fail with an error
/// that contains a hint.
#[test]
fn every_revision_pair_negotiates_as_specified() {
    let (mut agreed, mut failed) = (0, 0);
    for client in revision_sets() {
        for server in revision_sets() {
            let mut pair = Pair::new(client_config(&client), server_config(&server));
            pair.run_until_idle();
            let negotiated = pair.negotiated_revision();
            let found = negotiated.as_ref().ok().map(|revision| revision.as_str());
            assert_eq!(
                found,
                expected_revision(&client, &server),
                "{client:?} {server:?} {negotiated:?}"
            );
            match negotiated {
                Ok(_) => agreed += 1,
                Err(error) => {
                    failed += 1;
                    assert_actionable(&error, &client);
                    assert!(
                        pair.client
                            .request("ping", None, CallOptions::default(), pair.now)
                            .is_err()
                    );
                }
            }
        }
    }
    assert_eq!(
        agreed + failed,
        revision_sets().len() * revision_sets().len()
    );
    assert!(agreed > 0 && failed > 0);
}

/// Checks that a negotiation error contains the offered revisions and a hint.
fn assert_actionable(error: &NegotiationError, offered: &[&str]) {
    let words = error.to_string();
    assert!(offered.iter().all(|id| words.contains(id)), "{words}");
    assert!(
        words.contains("update") || words.contains("offer"),
        "{words}"
    );
}

/// Two peers that support only one revision can use all of its features.
#[test]
fn all_features_work_in_every_revision() {
    for revision in all_revisions() {
        let mut pair = Pair::new(client_config(&[revision]), server_config(&[revision]));
        use_all_features(&mut pair, revision);
    }
}

/// A peer that supports all revisions can use all features of the only revision of its peer.
#[test]
fn multi_revision_peers_use_all_features() {
    let all = revisions_newest_first();
    for revision in &all {
        let mut pair = Pair::new(client_config(&all), server_config(&[revision]));
        use_all_features(&mut pair, revision);
        let mut pair = Pair::new(client_config(&[revision]), server_config(&all));
        use_all_features(&mut pair, revision);
    }
}

/// Uses every feature of the revision and checks the outcomes.
fn use_all_features(pair: &mut Pair, revision: &str) {
    pair.run_until_idle();
    assert_eq!(
        pair.negotiated_revision().map(Revision::as_str),
        Ok(revision)
    );
    let handshake = lifecycle(revision) == Some(Lifecycle::Initialize);
    let mut ok = |method: &str, params: Option<Value>| match pair.complete_request(method, params) {
        Outcome::Result(result) => to_value(result.object()),
        other => panic!("{method} on {revision}: {other:?}"),
    };
    ok("tools/list", None);
    let echo = json!({ "name": "echo", "arguments": { "text": "hello" } });
    assert_eq!(ok("tools/call", Some(echo))["content"][0]["text"], "hello");
    ok("tools/call", Some(json!({ "name": "slow" })));
    ok("resources/list", None);
    ok("resources/templates/list", None);
    ok("resources/read", Some(json!({ "uri": "a:b" })));
    ok("prompts/list", None);
    ok("prompts/get", Some(json!({ "name": "p" })));
    let argument = json!({ "name": "a", "value": "x" });
    let complete = json!({ "ref": { "type": "ref/prompt", "name": "p" }, "argument": argument });
    ok("completion/complete", Some(complete));
    if handshake {
        ok("ping", None);
        ok("logging/setLevel", Some(json!({ "level": "debug" })));
        ok("resources/subscribe", Some(json!({ "uri": "a:b" })));
        ok("resources/unsubscribe", Some(json!({ "uri": "a:b" })));
    } else {
        ok("server/discover", None);
    }
    let progress = pair
        .client_events
        .iter()
        .filter(|event| matches!(event, ClientEvent::Progress { .. }));
    assert_eq!(progress.count(), 3, "{revision}");
    let logs = pair
        .client_events
        .iter()
        .filter(|event| matches!(event, ClientEvent::Log { .. }));
    assert!(logs.count() >= 3, "{revision}");
    let violated = pair
        .client_events
        .iter()
        .any(|event| matches!(event, ClientEvent::Violation(_)));
    assert!(!violated, "{revision}: {:?}", pair.client_events);
    // An old server is asked whether it is new.
    let wrong = |event: &&ServerEvent<()>| match event {
        ServerEvent::Violation(Violation::BeforeInitialize(method)) => method != "server/discover",
        ServerEvent::Violation(_) => true,
        _ => false,
    };
    let violated = pair.server_events.iter().find(wrong);
    assert!(violated.is_none(), "{revision}: {violated:?}");
    assert!(pair.checked_messages > 25, "{revision}");
}

/// The same request handler gives the same result in every revision with elicitation.
#[test]
fn one_handler_serves_every_revision() {
    let mut results = Vec::new();
    for revision in all_revisions() {
        let mut pair = Pair::new(client_config(&[revision]), server_config(&[revision]));
        pair.run_until_idle();
        let outcome = pair.complete_request("tools/call", Some(json!({ "name": "ask" })));
        let Outcome::Result(result) = outcome else {
            panic!("{revision}: {outcome:?}");
        };
        let text = to_value(result.object())["content"][0]["text"].clone();
        let can_be_elicited = lifecycle(revision) == Some(Lifecycle::Discover)
            || pair
                .server
                .session_info()
                .is_some_and(|agreed| agreed.capabilities.get("elicitation").is_some());
        if can_be_elicited {
            results.push(text);
        }
    }
    let has_elicitation = |id: &&str| has_definition(id, "ElicitRequest");
    let able = all_revisions().into_iter().filter(has_elicitation).count();
    assert!(able > 0);
    assert_eq!(results.len(), able);
    assert!(
        results.iter().all(|result| *result == results[0]),
        "{results:#?}"
    );
    assert!(
        results[0]
            .as_str()
            .is_some_and(|text| text.matches("accept").count() == 2)
    );
}

/// The order of the client's offer decides which common revision is negotiated.
#[test]
fn preference_order_decides_the_revision() {
    for (offer, agreed) in [
        (["2025-03-26", "2025-11-25"], "2025-03-26"),
        (["2025-11-25", "2025-03-26"], "2025-11-25"),
    ] {
        let mut pair = Pair::new(client_config(&offer), server_config(&handshake_revisions()));
        pair.run_until_idle();
        assert_eq!(pair.negotiated_revision().map(Revision::as_str), Ok(agreed));
    }
    // The alternative of a server is what it prefers.
    let mut pair = Pair::new(
        client_config(&["2025-11-25", "2025-03-26", "2024-11-05"]),
        server_config(&["2024-11-05", "2025-03-26"]),
    );
    pair.run_until_idle();
    assert_eq!(
        pair.negotiated_revision().map(Revision::as_str),
        Ok("2024-11-05")
    );
}

/// A client refuses a revision that is older than the oldest revision of its offer.
#[test]
fn client_refuses_revisions_below_floor() {
    let all = revisions_newest_first();
    let mut config = client_config(&all);
    config.offer.oldest = Offer::new(["2025-06-18"]).expect("known").revisions.pop();
    let mut pair = Pair::new(config, server_config(&["2025-03-26"]));
    pair.run_until_idle();
    let error = pair.negotiated_revision().expect_err("below the floor");
    assert!(
        matches!(&error, NegotiationError::Revision { answered, .. } if answered == "2025-03-26")
    );
    assert!(!error.to_string().contains("2024-11-05"), "{error}");
}
