//! Table of limits: for every field of `Limits` and each role, cases that exceed the limit, or the reason why there are
//! none.
//!
//! A new field without a row is a compile error.

use mcp_exact_tests_session::*;

use super::{client, queues, server};

/// Function that makes an endpoint exceed a limit; returns the names of the reported limits.
pub(super) type Case = fn() -> Vec<String>;

/// Expected effect when one role exceeds a limit.
enum Exceeded {
    /// The cases exceed the limit; the errors must name the limit.
    By(&'static [Case]),
    /// The functions exceed the limit; nothing is refused, because the endpoint removes its oldest entries.
    Forgotten(&'static [fn()]),
    /// The role cannot exceed the limit, for this reason.
    Never(&'static str),
}

use Exceeded::{By, Forgotten, Never};

/// Row of the table: a limit with its cases for both roles.
struct Row {
    /// Name of the field of `Limits`.
    field: &'static str,
    /// Expected effect when a server exceeds the limit.
    server: Exceeded,
    /// Expected effect when a client exceeds the limit.
    client: Exceeded,
}

/// Creates rows of the table; a field of `Limits` that has no row is a compile error.
macro_rules! rows {
    ($($field:ident: $server:expr, $client:expr;)*) => {{
        let Limits { $($field: _),* } = Limits::default();
        vec![$(Row { field: stringify!($field), server: $server, client: $client }),*]
    }};
}

/// Every case of every row reports the limit of its row, and no other limit.
#[test]
fn exceeded_limits_are_named_in_errors() {
    for row in rows() {
        for (role, exceeded) in [("server", row.server), ("client", row.client)] {
            let place = format!("{} of a {role}", row.field);
            match exceeded {
                By(cases) => {
                    assert!(!cases.is_empty(), "{place}");
                    for (at, case) in cases.iter().enumerate() {
                        let names = case();
                        let named = names.iter().all(|name| name == row.field);
                        assert!(!names.is_empty() && named, "{place}, case {at}: {names:?}");
                    }
                }
                Forgotten(cases) => {
                    assert!(!cases.is_empty(), "{place}");
                    cases.iter().for_each(|case| case());
                }
                Never(reason) => assert!(!reason.is_empty(), "{place}"),
            }
        }
    }
}

/// Returns a row for each limit.
fn rows() -> Vec<Row> {
    rows! {
        message_bytes: By(&[|| server::frame(|l| l.message_bytes = 400, &" ".repeat(401))]),
            By(&[|| client::frame(|l| l.message_bytes = 400, &" ".repeat(401)), client::body]);
        message_budget: By(&[server::skipped]), By(&[client::skipped]);
        depth: By(&[|| server::frame(|l| l.depth = 8, "[[[[[[[[[]]]]]]]]]")]),
            By(&[|| client::frame(|l| l.depth = 8, "[[[[[[[[[]]]]]]]]]")]);
        batch_items: By(&[|| server::frame(|l| l.batch_items = 1, "[1,2]")]),
            By(&[|| client::frame(|l| l.batch_items = 1, "[1,2]")]);
        name_bytes: By(server::NAMES), By(client::NAMES);
        in_flight: By(&[server::exceed_served_requests]), By(&[client::exceed_served_requests]);
        in_flight_bytes: By(&[server::served_bytes, server::answers_served]), By(&[client::served_bytes]);
        pending: By(&[server::asks_sent, server::requests_sent]),
            By(&[client::exceed_sent_requests, client::sent_between_rounds]);
        remembered_ids: Forgotten(&[server::cancelled_forgotten, server::elicitations_forgotten]),
            Forgotten(&[
                client::cancelled_forgotten,
                client::elicitations_forgotten,
                client::tasks_forgotten,
            ]);
        streams: By(&[server::streams]),
            Never("a client opens its streams itself; `sent` bounds the requests on them");
        queued: By(&[|| queues::of_server(|l| l.queued = 2)]),
            By(&[|| queues::of_client(|l| l.queued = 2)]);
        queued_bytes: By(&[|| queues::of_server(|l| l.queued_bytes = 150)]),
            By(&[|| queues::of_client(|l| l.queued_bytes = 150)]);
        stream_bytes: By(&[server::stream_bytes]),
            Never("each message of a client over HTTP is a stream of its own");
        reserved_bytes: By(&[server::reserved_bytes]), By(&[client::reserved_bytes]);
        requests_per_second: By(&[server::requests_per_second]),
            By(&[client::requests_per_second]);
        notifications_per_second: By(&[server::notifications_per_second]),
            By(&[client::notifications_per_second]);
        subscriptions: By(server::SUBSCRIPTIONS),
            Never("a server subscribes to nothing of a client");
        subscription_bytes: By(server::SUBSCRIPTION_BYTES),
            Never("a server subscribes to nothing of a client");
        input_requests: By(&[server::asks, server::answers_of_a_round]), By(&[client::asks]);
        retries: By(&[server::rounds]), By(&[client::rounds]);
        state_bytes: By(&[server::state_bytes]), By(&[client::state_bytes]);
        tool_bytes: Never("only a client mirrors parameters of tools into headers"),
            By(&[client::tool_bytes]);
    }
}
