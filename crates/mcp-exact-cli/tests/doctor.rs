//! `mcp-exact doctor` finds planted faults: this program is also the faulty server, started with the name of its fault.
//!
//! Each fault is reported under the id of its rule, and the server without a fault has no findings, over stdio and
//! HTTP.

#[path = "doctor/forms.rs"]
mod forms;
#[path = "doctor/server.rs"]
mod server;

use std::process::{Command, Stdio};

use libtest_mimic::{Arguments, Failed, Trial};

/// Faults of servers over stdio: name of the fault, id of the rule that the doctor must report, revision in which the
/// server is examined.
const FAULTS: &[(&str, &str, &str)] = &[
    (
        "accepts-any-revision",
        "LIFE.version-alternative",
        "2025-11-25",
    ),
    ("forgets-its-revision", "LIFE.version-echo", "2025-11-25"),
    ("no-server-info", "RPC.base-protocol", "2025-11-25"),
    ("id-as-string", "RPC.response-id-matches", "2025-11-25"),
    ("answers-twice", "RPC.version-2.0", "2025-11-25"),
    (
        "answers-notifications",
        "RPC.no-reply-to-notification",
        "2025-11-25",
    ),
    ("prints-to-stdout", "STD.stdout-clean", "2025-11-25"),
    ("exits-in-call", "RPC.request-answered", "2025-11-25"),
    ("exits-in-call", "RPC.request-answered", "2026-07-28"),
    ("silent-in-call", "RPC.request-answered", "2025-11-25"),
    (
        "exits-on-unknown-offer",
        "RPC.request-answered",
        "2025-11-25",
    ),
    ("prints-in-call", "STD.stdout-clean", "2025-11-25"),
    ("pretty-prints", "STD.no-newline", "2025-11-25"),
    (
        "result-for-unknown-method",
        "RPC.method-not-found",
        "2025-11-25",
    ),
    (
        "silent-on-unknown-method",
        "RPC.method-not-found",
        "2025-11-25",
    ),
    ("tool-without-schema", "RPC.base-protocol", "2025-11-25"),
    ("undeclared-tools", "TOOL.capability-declared", "2025-11-25"),
    ("undeclared-logs", "LOG.capability-declared", "2025-11-25"),
    ("refuses-ping", "PING.empty-reply", "2025-11-25"),
    ("refuses-batches", "RPC.batch-received", "2025-03-26"),
    ("talks-in-batch", "RPC.batch-received", "2025-03-26"),
    ("floods-in-call", "RPC.request-answered", "2025-11-25"),
    ("progress-goes-back", "PROG.increasing", "2025-11-25"),
    ("progress-of-others", "PROG.active-only", "2025-11-25"),
    (
        "asks-undeclared",
        "LIFE.only-negotiated-capabilities",
        "2025-11-25",
    ),
    (
        "no-structured-content",
        "TOOL.output-matches-schema",
        "2025-11-25",
    ),
    ("cancels-others", "CANC.own-in-flight-only", "2025-11-25"),
    ("no-discover", "VER.discover", "2026-07-28"),
    (
        "any-revision-in-meta",
        "VER.unsupported-lists-supported",
        "2026-07-28",
    ),
    ("metadata-not-needed", "META.missing-is-32602", "2026-07-28"),
    ("old-error-code", "RPC.retired-codes", "2026-07-28"),
    ("own-error-code", "RPC.forbidden-codes", "2026-07-28"),
    ("sends-requests", "RPC.no-server-requests", "2026-07-28"),
    ("no-result-type", "RPC.base-protocol", "2026-07-28"),
    ("logs-unasked", "LOG.silent-without-level", "2026-07-28"),
    ("empty-contents", "RES.not-found-not-empty", "2026-07-28"),
    ("asks-in-lists", "MRTR.three-methods", "2026-07-28"),
    ("late-acknowledgement", "SUB.ack-first", "2026-07-28"),
    ("list-unknown", "PROMPT.list-answered", "2026-07-28"),
];

/// Names of tools that no MUST forbids: name of the fault, id and level of the rule, revision in which the server is examined. Only
/// 2025-11-25 and later say what names look like.
const NAME_FAULTS: &[(&str, &str, &str, &str)] = &[
    ("same-name", "TOOL.names-unique", "SHOULD", "2025-11-25"),
    ("spaced-name", "TOOL.name-form", "SHOULD", "2025-11-25"),
    ("spaced-name", "HOST.portable-name", "NOTE", "2025-06-18"),
    ("very-long-name", "TOOL.name-form", "SHOULD", "2026-07-28"),
    ("dotted-name", "HOST.portable-name", "NOTE", "2025-11-25"),
    ("long-name", "HOST.portable-name", "NOTE", "2026-07-28"),
];

/// Faults that only servers over HTTP can have: name of the fault, id of the rule, revision.
const HTTP_FAULTS: &[(&str, &str, &str)] = &[
    ("any-origin", "HTTP.origin", "2025-11-25"),
    ("notification-200", "HTTP.202", "2025-11-25"),
    (
        "wrong-content-type",
        "HTTP.response-content-type",
        "2025-11-25",
    ),
    ("get-404", "HTTP.405", "2025-11-25"),
    (
        "any-version-header",
        "HDR.version-unsupported-400",
        "2025-11-25",
    ),
    ("immortal-session", "SESS.404", "2025-11-25"),
    ("headers-not-compared", "HDR.version-mismatch", "2026-07-28"),
    (
        "unknown-method-200",
        "HTTP.status-unknown-method",
        "2026-07-28",
    ),
];

/// Deviations of servers over HTTP that violate no rule, because the revision has another transport or the rule is
/// ambiguous: name of the deviation, revision.
const ALLOWED_HTTP_FAULTS: &[(&str, &str)] = &[
    ("immortal-session", "2024-11-05"),
    ("notification-200", "2024-11-05"),
    ("get-404", "2024-11-05"),
    ("header-chooses-revision", "2026-07-28"),
];

/// Faults over stdio that are planted over HTTP+SSE, too: one of a response, one of an order, one of a silence.
const SSE_FAULTS: &[&str] = &[
    "answers-twice",
    "answers-notifications",
    "silent-on-unknown-method",
];

/// Number of examinations at a time.
const THREAD_COUNT: usize = 12;

/// Returns the seconds for which the doctor waits for an answer of a server with this fault: only silence takes as
/// long, whatever else the machine does.
fn limit(fault: &str) -> &'static str {
    match fault {
        // The doctor waits several times: it never recognizes an answer.
        "id-as-string" => "5",
        _ if fault.starts_with("talks-") || fault.starts_with("floods-") => "5",
        _ if fault.starts_with("silent-") => "20",
        _ => "60",
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    if let [_, flag, transport, fault, ..] = arguments.as_slice()
        && flag == "--serve"
    {
        return server::serve(transport, fault);
    }
    let mut trials = vec![
        Trial::test("stdio::nothing_is_found_without_a_fault", || {
            check_faultless_server("stdio")
        }),
        Trial::test("stdio::backend-away in 2026-07-28", || {
            check_allowed_fault("stdio", "backend-away", "2026-07-28")
        }),
        Trial::test("stdio::talks-in-listen in 2026-07-28", || {
            check_allowed_fault("stdio", "talks-in-listen", "2026-07-28")
        }),
        Trial::test("stdio::list-of-types is noted", check_note),
        Trial::test("stdio::newest revisions decide", check_newest_revisions),
        Trial::test("stdio::the end of a server is found", forms::check_end),
        Trial::test(
            "stdio::an end by the first question is noted",
            forms::check_probe,
        ),
        Trial::test("stdio::calls are named", forms::check_calls),
        Trial::test("stdio::junit has a test case for each rule", || {
            forms::check_junit("stdio", FAULTS)
        }),
        Trial::test(
            "stdio::junit and annotations of a failure",
            forms::check_failure,
        ),
        Trial::test(
            "stdio::options after the command are noted",
            forms::check_misplaced,
        ),
    ];
    trials.extend(FAULTS.iter().map(|(fault, rule, revision)| {
        Trial::test(format!("stdio::{fault} in {revision}"), move || {
            check_planted_fault("stdio", fault, rule, revision)
        })
    }));
    trials.extend(NAME_FAULTS.iter().map(|(fault, rule, level, revision)| {
        Trial::test(format!("stdio::{fault} in {revision}"), move || {
            check_name(fault, rule, level, revision)
        })
    }));
    if cfg!(feature = "http") {
        trials.push(Trial::test(
            "http::nothing_is_found_without_a_fault",
            || check_faultless_server("http"),
        ));
        trials.push(Trial::test("sse::nothing_is_found_without_a_fault", || {
            check_faultless_server("sse")
        }));
        trials.push(Trial::test(
            "http::junit has a test case for each rule",
            || forms::check_junit("http", HTTP_FAULTS),
        ));
        trials.extend(SSE_FAULTS.iter().map(|fault| {
            let planted = FAULTS.iter().find(|(name, ..)| name == fault);
            let (fault, rule, revision) = planted.expect("a fault over stdio");
            Trial::test(format!("sse::{fault}"), move || {
                check_planted_fault("sse", fault, rule, revision)
            })
        }));
        trials.extend(HTTP_FAULTS.iter().map(|(fault, rule, revision)| {
            Trial::test(format!("http::{fault}"), move || {
                check_planted_fault("http", fault, rule, revision)
            })
        }));
        trials.extend(ALLOWED_HTTP_FAULTS.iter().map(|(fault, revision)| {
            Trial::test(format!("http::{fault} in {revision}"), move || {
                check_allowed_fault("http", fault, revision)
            })
        }));
    }
    let mut arguments = Arguments::from_args();
    // The doctor waits for silent servers, without work for a processor.
    arguments.test_threads.get_or_insert(THREAD_COUNT);
    libtest_mimic::run(&arguments, trials).exit();
}

/// Checks that the doctor has no findings about a server without a fault, in every revision that it speaks.
fn check_faultless_server(transport: &str) -> Result<(), Failed> {
    let (code, found) = run_doctor(transport, "none", &["--all-revisions"]);
    let findings = &found["findings"];
    if code != 0 || findings != &serde_json::json!([]) {
        return Err(format!("exit code {code}, {findings:#}").into());
    }
    let revisions = found["revisions"].as_array().map_or(0, Vec::len);
    let spoken = match transport {
        "sse" => server::SSE_REVISION_COUNT,
        _ => server::REVISION_COUNT,
    };
    if revisions == spoken {
        Ok(())
    } else {
        Err(format!("the server was examined in {}", found["revisions"]).into())
    }
}

/// Checks that the doctor has no findings about a server with an allowed deviation in this revision.
fn check_allowed_fault(transport: &str, fault: &str, revision: &str) -> Result<(), Failed> {
    let (code, found) = run_doctor(transport, fault, &["--revision", revision]);
    if code == 0 && found["findings"] == serde_json::json!([]) {
        Ok(())
    } else {
        Err(format!("exit code {code}, {found:#}").into())
    }
}

/// Checks that a report in each form has a note about a tool whose schema hosts refuse, and that notes change no exit code.
fn check_note() -> Result<(), Failed> {
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("junit.xml");
    let file = file.to_str().unwrap_or_default();
    let (code, found) = run_doctor("stdio", "list-of-types", &["--junit", file]);
    let note = &found["findings"][0];
    let is_right = note["level"] == "NOTE" && note["subject"] == "tool `measure`";
    let junit = std::fs::read_to_string(file)?;
    let is_written = junit.contains("failures=\"0\"") && junit.contains("HOST.portable-schema");
    if code == 0 && is_right && is_written {
        Ok(())
    } else {
        Err(format!("exit code {code}, {found:#}\n{junit}").into())
    }
}

/// Checks that the name of a tool is the only finding, which changes no exit code.
fn check_name(fault: &str, rule: &str, level: &str, revision: &str) -> Result<(), Failed> {
    let (code, found) = run_doctor("stdio", fault, &["--revision", revision]);
    let findings = found["findings"].as_array().cloned().unwrap_or_default();
    match findings.as_slice() {
        [only] if code == 0 && only["rule"] == rule && only["level"] == level => Ok(()),
        _ => Err(format!("{rule} is not the only finding: exit code {code}, {found:#}").into()),
    }
}

/// Checks that the newest revision of each lifecycle decides: what is wrong in an older one is found with `--all-revisions`. A
/// finding has its message, and GitHub gets an annotation.
fn check_newest_revisions() -> Result<(), Failed> {
    let (code, found) = run_doctor("stdio", "refuses-batches", &[]);
    let examined = serde_json::json!(["2025-11-25", "2026-07-28"]);
    if code != 0 || found["revisions"] != examined {
        return Err(format!("exit code {code}, {found:#}").into());
    }
    let (code, found) = run_doctor("stdio", "refuses-batches", &["--all-revisions"]);
    if code != 1 || found["findings"][0]["rule"] != "RPC.batch-received" {
        return Err(format!("exit code {code}, {found:#}").into());
    }
    let this = std::env::current_exe()?;
    let output = Command::new(env!("CARGO_BIN_EXE_mcp-exact"))
        .args([
            "doctor",
            "--github",
            "--timeout",
            limit("tool-without-schema"),
            "-r",
            "2025-11-25",
            "--",
        ])
        .arg(this)
        .args(["--serve", "stdio", "tool-without-schema"])
        .output()?;
    let text = String::from_utf8_lossy(&output.stdout);
    let expected = "::error title=MUST RPC.base-protocol::/result/tools/0: missing member `inputSchema`, tool `measure`.";
    let message = "\n    {\"";
    if text.contains(expected) && text.contains(message) {
        Ok(())
    } else {
        Err(text.into_owned().into())
    }
}

/// Checks that the doctor reports the violation of `rule` by a server with this fault.
fn check_planted_fault(
    transport: &str,
    fault: &str,
    rule: &str,
    revision: &str,
) -> Result<(), Failed> {
    let (code, found) = run_doctor(transport, fault, &["--revision", revision]);
    let findings = found["findings"].as_array().cloned().unwrap_or_default();
    let hit = findings.iter().find(|finding| finding["rule"] == rule);
    match hit {
        Some(hit) if code == 1 && hit["level"] == "MUST" => Ok(()),
        _ => Err(format!("{rule} was not found: exit code {code}, {found:#}").into()),
    }
}

/// Runs the doctor with the arguments `further` against a server with this fault; returns the exit code and the JSON
/// output.
fn run_doctor(transport: &str, fault: &str, further: &[&str]) -> (i32, serde_json::Value) {
    let this = std::env::current_exe().expect("this program has a path");
    let mut doctor = Command::new(env!("CARGO_BIN_EXE_mcp-exact"));
    doctor.args(["doctor", "--json", "--timeout", limit(fault)]);
    doctor.args(["--call", "measure={}"]);
    doctor.args(further).arg("--");
    let mut listening = None;
    match transport {
        "http" | "sse" => {
            let mut server = Command::new(this)
                .args(["--serve", transport, fault])
                .stdout(Stdio::piped())
                .stdin(Stdio::piped())
                .spawn()
                .expect("the server starts");
            let url = server::first_line(server.stdout.take().expect("it has output"));
            doctor.arg(url);
            listening = Some(server);
        }
        _ => {
            doctor.arg(this).args(["--serve", "stdio", fault]);
        }
    }
    let output = doctor.output().expect("the doctor runs");
    if let Some(mut server) = listening {
        // It ends with its input.
        drop(server.stdin.take());
        let _ = server.wait();
    }
    let text = String::from_utf8_lossy(&output.stdout);
    let found = serde_json::from_str(&text).unwrap_or_else(
        |_| serde_json::json!({"printed": text, "error": String::from_utf8_lossy(&output.stderr)}),
    );
    (output.status.code().unwrap_or(-1), found)
}
