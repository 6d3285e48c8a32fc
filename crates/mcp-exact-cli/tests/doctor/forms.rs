//! The forms of a report: what a person reads, what other programs read, and what is said about wrong usage.

use std::process::{Command, Output};

use libtest_mimic::Failed;

use super::run_doctor;

/// Checks that the end of a server is a finding with its last words, in each form, and that nothing after it is one.
pub fn check_end() -> Result<(), Failed> {
    let (code, found) = run_doctor("stdio", "exits-in-call", &["-r", "2025-11-25"]);
    let findings = found["findings"].as_array().cloned().unwrap_or_default();
    let words = serde_json::json!(["Traceback", "  KeyError: <b>"]);
    let text = findings[0]["found"].as_str().unwrap_or_default();
    let is_named = text
        .starts_with("the server exits (exit status: 3) instead of answering tools/call;")
        || cfg!(windows);
    if code != 1 || findings.len() != 1 || findings[0]["lastWords"] != words || !is_named {
        return Err(format!("exit code {code}, {found:#}").into());
    }
    let options = ["--github", "--call", "measure={}", "--junit", "-"];
    let output = examine("exits-in-call", &options)?;
    let (xml, report) = (text_of(&output.stdout), text_of(&output.stderr));
    let is_xml =
        xml.starts_with("<?xml") && xml.ends_with("</testsuite>\n") && !xml.contains("\\n");
    let lines = "its last words:\nTraceback\n  KeyError: &lt;b&gt;</failure>";
    let is_shown = report.contains("    its last words:\n      Traceback\n        KeyError: <b>\n");
    let annotation = "rpcrequest-answered%0Aits last words:%0ATraceback%0A  KeyError: <b>\n";
    if is_xml && xml.contains(lines) && is_shown && report.contains(annotation) {
        Ok(())
    } else {
        Err(format!("{xml}\n{report}").into())
    }
}

/// Checks that a server which the first question of 2026-07-28 ends is examined otherwise, and that there is a note about it.
pub fn check_probe() -> Result<(), Failed> {
    let (code, found) = run_doctor("stdio", "exits-on-probe", &[]);
    let note = &found["findings"][0];
    let is_right = note["rule"] == "HOST.probe-ends-server" && note["level"] == "NOTE";
    let examined = serde_json::json!(["2025-11-25"]);
    if code == 0 && is_right && found["revisions"] == examined {
        Ok(())
    } else {
        Err(format!("exit code {code}, {found:#}").into())
    }
}

/// Checks that a tool that was not called is named, and that a call of a tool that is not there, or that is written as for another
/// command, says what to write.
pub fn check_calls() -> Result<(), Failed> {
    let newest = ["-r", "2025-11-25"];
    let output = examine("none", &newest)?;
    let line = "\nnot called: measure (give --call 'measure')\n";
    if output.status.code() != Some(0) || !text_of(&output.stdout).ends_with(line) {
        return Err(text_of(&output.stdout).into());
    }
    let json = examine("none", &["-r", "2025-11-25", "--json"])?;
    if !text_of(&json.stdout).contains("\"notCalled\": [\n    \"measure\"\n  ]") {
        return Err(text_of(&json.stdout).into());
    }
    let output = examine("none", &["-r", "2025-11-25", "--call", "measures={}"])?;
    let error = "error: --call: the server has no tool `measures`; did you mean `measure`?\n";
    if output.status.code() != Some(2) || text_of(&output.stderr) != error {
        return Err(text_of(&output.stderr).into());
    }
    let output = doctor(&["--call", "add", "a=1", "b=x", "--", "node"])?;
    let error = "error: `a=1` is not a command; --call takes all arguments as JSON: --call 'add={\"a\":1,\"b\":\"x\"}'\n";
    if output.status.code() != Some(2) || text_of(&output.stderr) != error {
        return Err(text_of(&output.stderr).into());
    }
    Ok(())
}

/// Checks that a report for JUnit has a test case for the rule of each fault in its revision, with or without the fault: its history
/// is that of the rule.
pub fn check_junit(transport: &str, faults: &[(&str, &str, &str)]) -> Result<(), Failed> {
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("junit.xml");
    let file = file.to_str().unwrap_or_default();
    let (code, found) = run_doctor(transport, "none", &["--all-revisions", "--junit", file]);
    let junit = std::fs::read_to_string(file)?;
    let mut names: Vec<&str> = junit
        .lines()
        .filter(|line| line.contains("<testcase "))
        .collect();
    let count = names.len();
    let is_counted = junit.contains(&format!("tests=\"{count}\" failures=\"0\" errors=\"0\""));
    names.dedup();
    if code != 0 || count < 20 || !is_counted || names.len() != count {
        return Err(format!("exit code {code}, {found:#}\n{junit}").into());
    }
    for (fault, rule, revision) in faults {
        let case = format!("<testcase classname=\"doctor.{revision}\" name=\"{rule}\"/>");
        if !junit.contains(&case) {
            return Err(format!("{fault}: no {case} in\n{junit}").into());
        }
    }
    Ok(())
}

/// Checks that a server that cannot be examined is an error in a report for JUnit, and an annotation.
pub fn check_failure() -> Result<(), Failed> {
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("junit.xml");
    let file = file.to_str().unwrap_or_default();
    for (command, expected) in [
        (vec!["no-such-program", "x"], "cannot start no-such-program"),
        (
            vec!["SERVER", "--serve", "stdio", "exits-at-once"],
            "its last words:",
        ),
    ] {
        let this = std::env::current_exe()?;
        let this = this.to_str().unwrap_or_default();
        let command = command.into_iter();
        let command = command.map(|word| if word == "SERVER" { this } else { word });
        let options = ["--github", "--junit", file, "--"].into_iter();
        let output = doctor(&options.chain(command).collect::<Vec<_>>())?;
        let junit = std::fs::read_to_string(file)?;
        let out = text_of(&output.stdout);
        let is_case = junit.contains("tests=\"1\" failures=\"0\" errors=\"1\"")
            && junit.contains("name=\"the server answers\"><error message=\"");
        let annotation = format!("::error title=mcp-exact doctor::{expected}");
        let is_annotated = out.starts_with("::error title=mcp-exact doctor::")
            && out.contains(expected)
            && out.lines().count() == 1;
        if output.status.code() != Some(2) || !is_case || !junit.contains(expected) || !is_annotated
        {
            return Err(format!("{annotation}\n{out}\n{junit}").into());
        }
    }
    Ok(())
}

/// Checks that an option of the doctor after the command is noted, unless `--` says that it is the server's.
pub fn check_misplaced() -> Result<(), Failed> {
    let this = std::env::current_exe()?;
    let this = this.to_str().unwrap_or_default();
    let server = [this, "--serve", "stdio", "none", "--junit", "x.xml"];
    let newest = ["-r", "2025-11-25"];
    let output = doctor(&[&newest[..], &server].concat())?;
    let note = "note: `--junit` stands after the command, so that it is an option of the server;";
    if !text_of(&output.stderr).starts_with(note) {
        return Err(text_of(&output.stderr).into());
    }
    let output = doctor(&[&newest[..], &["--"], &server].concat())?;
    if !output.stderr.is_empty() {
        return Err(text_of(&output.stderr).into());
    }
    Ok(())
}

/// Runs the doctor with these arguments.
fn doctor(arguments: &[&str]) -> Result<Output, Failed> {
    let mut doctor = Command::new(env!("CARGO_BIN_EXE_mcp-exact"));
    Ok(doctor
        .args(["doctor", "--timeout", "60"])
        .args(arguments)
        .output()?)
}

/// Runs the doctor with these options against a server with a fault, over stdio.
fn examine(fault: &str, options: &[&str]) -> Result<Output, Failed> {
    let this = std::env::current_exe()?;
    let server = [
        "--",
        this.to_str().unwrap_or_default(),
        "--serve",
        "stdio",
        fault,
    ];
    doctor(&[options, &server].concat())
}

/// Returns output as text.
fn text_of(output: &[u8]) -> String {
    String::from_utf8_lossy(output).into_owned()
}
