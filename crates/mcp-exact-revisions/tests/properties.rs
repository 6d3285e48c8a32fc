//! Tests every property of every released revision, and the order, status, lifecycle and methods of the table.
//!
//! The expected values were taken from the official specification.

use std::fmt::Write;

use expect_test::expect;
use mcp_exact_revisions::{Lifecycle, RevisionSpec, Side, Status, all, find};

/// Identifiers of the released revisions, oldest first.
const RELEASED: [&str; 5] = [
    "2024-11-05",
    "2025-03-26",
    "2025-06-18",
    "2025-11-25",
    "2026-07-28",
];

/// Returns the released revisions, oldest first.
fn released() -> [&'static RevisionSpec; 5] {
    RELEASED.map(|id| find(id).expect("a released revision"))
}

/// Compares one line per property: whether each revision has the property.
#[test]
fn properties_are_those_specified() {
    let specs = released();
    let names = specs[0].flags().map(|(name, _)| name);
    let mut text = format!("{:<28} {}\n", "", RELEASED.join(" "));
    for (at, name) in names.enumerate() {
        let marks: String = specs
            .iter()
            .map(|spec| match spec.flags().nth(at) {
                Some((_, true)) => "        yes",
                _ => "          -",
            })
            .collect();
        writeln!(text, "{name:<28}{marks}").expect("a line");
    }
    let codes = specs.map(|spec| format!("{:>11}", spec.resource_not_found_code()));
    writeln!(text, "{:<28}{}", "resource_not_found_code", codes.concat()).expect("a line");
    expect![[r#"
                                     2024-11-05 2025-03-26 2025-06-18 2025-11-25 2026-07-28
        has_batches                           -        yes          -          -          -
        error_id_required                   yes        yes        yes          -          -
        has_envelope_in_types                 -          -          -        yes        yes
        has_server_requests                 yes        yes        yes        yes          -
        has_result_type                       -          -          -          -        yes
        has_input_required                    -          -          -          -        yes
        has_subscriptions_listen              -          -          -          -        yes
        has_tasks                             -          -          -        yes          -
        has_extensions_capability             -          -          -          -        yes
        has_progress_message                  -        yes        yes        yes        yes
        has_titles                            -          -        yes        yes        yes
        has_implementation_details            -          -          -        yes        yes
        has_icons                             -          -          -        yes        yes
        has_last_modified                     -          -        yes        yes        yes
        has_completions_capability            -        yes        yes        yes        yes
        has_completion_context                -          -        yes        yes        yes
        has_tool_annotations                  -        yes        yes        yes        yes
        has_structured_output                 -          -        yes        yes        yes
        has_any_structured_content            -          -          -          -        yes
        has_resource_links                    -          -        yes        yes        yes
        has_audio                             -        yes        yes        yes        yes
        has_cache_hints                       -          -          -          -        yes
        has_elicitation                       -          -        yes        yes        yes
        has_elicitation_modes                 -          -          -        yes        yes
        has_elicitation_complete              -          -          -        yes          -
        has_url_elicitation_error             -          -          -        yes          -
        has_sampling_tools                    -          -          -        yes        yes
        has_sampling_content_lists            -          -          -        yes        yes
        has_http_sse                        yes          -          -          -          -
        has_streamable_http                   -        yes        yes        yes        yes
        has_session_ids                       -        yes        yes        yes          -
        has_http_get_stream                   -        yes        yes        yes          -
        has_stream_resumption                 -        yes        yes        yes          -
        has_sse_priming                       -          -          -        yes          -
        has_protocol_version_header           -          -        yes        yes        yes
        has_http_header_mirroring             -          -          -          -        yes
        has_disconnect_cancellation           -          -          -          -        yes
        resource_not_found_code          -32002     -32002     -32002     -32002     -32602
    "#]]
    .assert_eq(&text);
}

#[test]
fn releases_precede_drafts_by_age() {
    let rank = |spec: &RevisionSpec| match spec.status() {
        Status::Release => (false, spec.id()),
        Status::Draft => (true, ""),
    };
    assert!(all().is_sorted_by_key(rank));
    for (index, spec) in all().iter().enumerate() {
        assert_eq!(spec.index(), index);
        assert_eq!(spec.revision().as_str(), spec.id());
        assert_eq!(find(spec.id()), Some(spec));
    }
}

/// An older revision is less than a newer one, and each revision equals only itself.
#[test]
fn revisions_compare_by_order() {
    let specs = released();
    assert!(specs.is_sorted());
    assert_eq!(specs[2], mcp_exact_revisions::V2025_06_18);
    assert_ne!(specs[2], specs[3]);
}

#[test]
fn unknown_identifiers_are_not_found() {
    for id in [
        "",
        "2025-06-19",
        "2025-06-1",
        "2025-06-18 ",
        "draft-x",
        "DRAFT",
    ] {
        assert_eq!(find(id), None, "{id:?}");
    }
}

#[test]
fn lifecycles_are_those_specified() {
    use Lifecycle::{Discover, Initialize};
    let lifecycles = released().map(RevisionSpec::lifecycle);
    let expected = [Initialize, Initialize, Initialize, Initialize, Discover];
    assert_eq!(lifecycles, expected);
}

#[test]
fn methods_are_sorted_and_unique() {
    for spec in all() {
        for side in [Side::Client, Side::Server] {
            let methods = spec.methods(side);
            for names in [methods.requests(), methods.notifications()] {
                assert!(
                    names.windows(2).all(|pair| pair[0] < pair[1]),
                    "{spec} {side:?}"
                );
            }
        }
    }
}

/// Both sides send `ping` up to 2025-11-25; a 2026-07-28 server sends no requests.
#[test]
fn senders_are_those_specified() {
    for spec in released() {
        let has_ping = spec.lifecycle() == Lifecycle::Initialize;
        for side in [Side::Client, Side::Server] {
            assert_eq!(spec.sends_request(side, "ping"), has_ping, "{spec}");
            assert!(!spec.sends_notification(side, "ping"), "{spec}");
        }
        assert!(spec.sends_request(Side::Client, "tools/call"), "{spec}");
        assert!(!spec.sends_request(Side::Server, "tools/call"), "{spec}");
        assert!(spec.sends_notification(Side::Server, "notifications/progress"));
        let by_server = spec.sends_request(Side::Server, "sampling/createMessage");
        assert_eq!(by_server, has_ping, "{spec}");
        assert_eq!(by_server, spec.has_server_requests(), "{spec}");
    }
}

/// The peer of the client is the server, and the peer of the server is the client.
#[test]
fn sides_are_peers() {
    assert_eq!(Side::Client.peer(), Side::Server);
    assert_eq!(Side::Server.peer(), Side::Client);
}

/// Debug output contains identifier, status and lifecycle only.
#[test]
fn debug_output_is_short() {
    let text = format!("{:?} {0}", released()[0]);
    assert_eq!(
        text,
        "RevisionSpec { id: \"2024-11-05\", status: Release, lifecycle: Initialize, .. } 2024-11-05"
    );
}
