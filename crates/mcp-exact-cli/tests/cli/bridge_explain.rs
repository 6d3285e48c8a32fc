//! `mcp-exact bridge explain`: what changes and what is lost, by the revision of the client.

use std::path::Path;

use expect_test::expect;

use crate::bridge::SERVER_SCRIPT;
use crate::program::run;

/// `bridge explain` with a server prints the changes and losses for a client of each revision.
#[test]
fn explain_lists_losses_by_revision() {
    let ended = run(
        Path::new("."),
        &["bridge", "explain", "sh", "-c", SERVER_SCRIPT],
        b"",
    );
    assert_eq!(ended.code, 1, "{}", ended.err);
    expect![[r#"
        server of revision 2025-06-18

        client of 2024-11-05: 1 tool
          works: completion/complete, initialize, ping, tools/call, tools/list
          calls can lose: structured results: the text of a result carries their JSON
          calls can lose: links to resources: text has their name and URI
          calls can lose: audio: an embedded resource carries it
          calls can lose: messages of progress
          calls can lose: elicitation: the server is told that the client cannot ask its user
          lost: tools/list (tool `echo`): dropped /tools/*/outputSchema: a member of 2025-06-18 and later; for a peer of 2025-03-26: structured results are not checked
          lost: tools/list (tool `echo`): dropped /tools/*/title: a member of 2025-06-18 and later; for a peer of 2024-11-05: the name is shown instead

        client of 2025-03-26: 1 tool
          works: completion/complete, initialize, ping, tools/call, tools/list
          changes: batches are split, and their answers gathered where the client has sent a batch
          calls can lose: structured results: the text of a result carries their JSON
          calls can lose: links to resources: text has their name and URI
          calls can lose: elicitation: the server is told that the client cannot ask its user
          lost: tools/list (tool `echo`): dropped /tools/*/outputSchema: a member of 2025-06-18 and later; for a peer of 2025-03-26: structured results are not checked

        client of 2025-06-18: 1 tool
          works: completion/complete, initialize, ping, tools/call, tools/list
          nothing is lost in the lists

        client of 2025-11-25: 1 tool
          works: completion/complete, initialize, ping, tools/call, tools/list
          calls can lose: tasks: calls are answered when their work is done
          calls can lose: description, icons and web page of the client
          nothing is lost in the lists

        client of 2026-07-28: 1 tool
          works: completion/complete, tools/call, tools/list
          changes: server/discover is answered by the bridge, which has sessions with the server for each principal
          changes: a question of the server ends the call with input_required; the call waits in the bridge for the repeated one
          changes: subscriptions/listen becomes a session of its own
          changes: the level of logs of each request chooses from all logs
          changes: the code of the error for a missing resource
          calls can lose: description, icons and web page of the client
          lost: tools/list: defaulted /cacheScope: the older revision states no cache scope, so the result counts as private
          lost: tools/list: defaulted /ttlMs: the older revision states no lifetime, so the result counts as stale at once
    "#]]
    .assert_eq(&ended.out);
}

/// A server with resources need not have `resources/templates/list`.
#[test]
fn missing_templates_are_no_error() {
    let script = SERVER_SCRIPT
        .replace(r#"{"tools":{}}"#, r#"{"resources":{}}"#)
        .replace("*'\"tools/list\"'*", "*'\"resources/list\"'*")
        .replace(r#""tools":[{"name":"echo","title":"Echo","inputSchema":{"type":"object"},"outputSchema":{"type":"object"}}]"#, r#""resources":[{"name":"a","uri":"a:b"}]"#);
    let arguments = [
        "bridge",
        "explain",
        "--client",
        "2025-06-18",
        "sh",
        "-c",
        &script,
    ];
    let ended = run(Path::new("."), &arguments, b"");
    assert_eq!(ended.code, 0, "{}", ended.err);
    assert!(
        ended.out.contains("client of 2025-06-18: 1 resource\n"),
        "{}",
        ended.out
    );
}

/// Task methods work if client and server have the revision 2025-11-25; tasks are a loss if the server is older.
#[test]
fn explain_lists_relayed_tasks() {
    for (server, is_relayed) in [("2025-11-25", true), ("2025-06-18", false)] {
        let arguments = [
            "bridge",
            "explain",
            "--client",
            "2025-11-25",
            "--server",
            server,
        ];
        let ended = run(Path::new("."), &arguments, b"");
        let works = ended.out.lines().find(|line| line.contains("works: "));
        let works = works.expect("a list of methods");
        assert_eq!(works.contains("tasks/result"), is_relayed, "{}", ended.out);
        let is_lost = ended.out.contains("lost: tasks: ");
        assert_eq!(is_lost, !is_relayed, "{}", ended.out);
    }
}

/// `bridge explain --server REVISION` prints changes and losses without connecting to a server.
#[test]
fn explain_needs_no_server() {
    let ended = run(
        Path::new("."),
        &[
            "bridge",
            "explain",
            "--client",
            "2024-11-05",
            "--client",
            "2025-06-18",
            "--client",
            "2026-07-28",
            "--server",
            "2025-06-18",
        ],
        b"",
    );
    assert_eq!(ended.code, 1, "{}", ended.err);
    expect![[r#"
        server of 2025-06-18

        client of 2026-07-28
          works: completion/complete, prompts/get, prompts/list, resources/list, resources/read, resources/templates/list, tools/call, tools/list
          changes: server/discover is answered by the bridge, which has sessions with the server for each principal
          changes: a question of the server ends the call with input_required; the call waits in the bridge for the repeated one
          changes: subscriptions/listen becomes a session of its own
          changes: the level of logs of each request chooses from all logs
          changes: the code of the error for a missing resource
          lost: description, icons and web page of the client

        client of 2025-06-18
          works: completion/complete, initialize, logging/setLevel, ping, prompts/get, prompts/list, resources/list, resources/read, resources/subscribe, resources/templates/list, resources/unsubscribe, tools/call, tools/list
          messages pass as they came

        client of 2024-11-05
          works: completion/complete, initialize, logging/setLevel, ping, prompts/get, prompts/list, resources/list, resources/read, resources/subscribe, resources/templates/list, resources/unsubscribe, tools/call, tools/list
          lost: titles: names are shown instead
          lost: annotations of tools
          lost: structured results: the text of a result carries their JSON
          lost: links to resources: text has their name and URI
          lost: audio: an embedded resource carries it
          lost: times of last modification
          lost: messages of progress
          lost: elicitation: the server is told that the client cannot ask its user
    "#]].assert_eq(&ended.out);
    let explain = |arguments: &[&str]| {
        let arguments = [&["bridge", "explain"], arguments].concat();
        run(Path::new("."), &arguments, b"")
    };
    let same = ["--client", "2025-06-18", "--server", "2025-06-18"];
    assert_eq!(explain(&same).code, 0);
    for (wrong, reason) in [
        (&[][..], "<COMMAND|URL>"),
        (&["--server", "2025-06-19"], "2025-06-18"),
        (
            &["-r", "2025-06-18", "--server", "2025-06-18"],
            "--revision",
        ),
        (&["--server", "2025-06-18", "node"], "cannot be used with"),
    ] {
        let ended = explain(wrong);
        assert_eq!(ended.code, 2, "{wrong:?}");
        assert!(ended.err.contains(reason), "{wrong:?}: {}", ended.err);
    }
}

/// After `--`, `explain` is the command of a server and not the subcommand.
#[test]
fn commands_may_be_named_explain() {
    let started = run(Path::new("."), &["bridge", "--", "explain"], b"");
    assert_eq!(started.code, 2);
    let reason = "no program and no configured server `explain`";
    assert!(started.err.contains(reason), "{}", started.err);
    let argument = run(
        Path::new("."),
        &["bridge", "no-such-server-anywhere", "explain"],
        b"",
    );
    let reason = "cannot start `no-such-server-anywhere`";
    assert!(argument.err.contains(reason), "{}", argument.err);
}
