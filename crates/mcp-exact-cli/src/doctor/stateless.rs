//! Checks of the doctor that only revisions without the `initialize` handshake have.

use std::time::Instant;

use mcp_exact_revisions::method;
use serde_json::{Value, json};

use super::checks::{
    INVALID_PARAMS, ToolCall, UNKNOWN_REVISION, UNSOLICITED_WAIT, check_features,
    check_unknown_messages,
};
use super::session::{Answer, Session};
use crate::rules;

/// Checks all rules of a revision without a handshake; `result` is the result of `server/discover`.
pub fn check_discover_server(session: &mut Session<'_>, result: &Value, calls: &[ToolCall]) {
    session.examine_messages();
    check_unknown_messages(session);
    check_unsupported_revision(session);
    check_missing_metadata(session);
    check_features(session, &result["capabilities"].clone(), calls);
    check_subscriptions(session);
}

/// Checks that a request of an unknown revision is answered with the error -32022, which lists the supported revisions.
fn check_unsupported_revision(session: &mut Session<'_>) {
    session.examine(&[&rules::UNSUPPORTED]);
    let params = json!({"_meta": {"io.modelcontextprotocol/protocolVersion": UNKNOWN_REVISION}});
    let answer = session.ask(method::TOOLS_LIST, params);
    let lists = |error: &Value| {
        error["data"]["supported"]
            .as_array()
            .is_some_and(|list| !list.is_empty())
    };
    match &answer {
        Answer::Error(-32022, error) if lists(error) => {}
        Answer::Error(-32022, _) => {
            let message = "the error -32022 does not list the supported versions";
            session.report_breach(&rules::UNSUPPORTED, message);
        }
        Answer::End => {}
        answer => {
            let message = format!("a request of {UNKNOWN_REVISION} gave {}", answer.to_line());
            session.report_breach(&rules::UNSUPPORTED, message);
        }
    }
}

/// Checks that a request without the client capabilities in `_meta` is answered with the error -32602.
fn check_missing_metadata(session: &mut Session<'_>) {
    session.examine(&[&rules::META_REQUIRED]);
    let params = json!({"_meta": {"io.modelcontextprotocol/protocolVersion": session.revision}});
    match session.ask_unmodified(method::TOOLS_LIST, params) {
        Answer::Error(INVALID_PARAMS, _) | Answer::End => {}
        answer => {
            let message = format!(
                "a request without clientCapabilities gave {}",
                answer.to_line()
            );
            session.report_breach(&rules::META_REQUIRED, message);
        }
    }
}

/// Subscribes to all list changes, receives messages for a limited time, and cancels the subscription.
fn check_subscriptions(session: &mut Session<'_>) {
    if !session.channel.is_ordered() {
        return;
    }
    session.check();
    let filter = json!({"notifications": {"toolsListChanged": true, "promptsListChanged": true, "resourcesListChanged": true}});
    let params = session.params(filter);
    let message = json!({"jsonrpc": "2.0", "id": "doctor-listen", "method": method::SUBSCRIPTIONS_LISTEN, "params": params});
    if !session.send(&message) {
        return;
    }
    // The conversation reports messages before the acknowledgement.
    let mut until = Instant::now() + session.limit();
    loop {
        let message = match session.receive_until(until) {
            Ok(message) => message,
            Err(Answer::End) => return session.report_end(method::SUBSCRIPTIONS_LISTEN),
            Err(_) => break,
        };
        let method = message["method"].as_str();
        if method == Some(method::NOTIFICATIONS_SUBSCRIPTIONS_ACKNOWLEDGED)
            || message["id"] == "doctor-listen"
        {
            until = until.min(Instant::now() + UNSOLICITED_WAIT);
        }
    }
    session.notify(
        method::NOTIFICATIONS_CANCELLED,
        json!({"requestId": "doctor-listen"}),
    );
    session.listen(UNSOLICITED_WAIT);
}
