//! Sessions: several lines in one connection, and the errors of single lines.

use std::path::Path;

use serde_json::Value;

use crate::program::{ProgramOutput, run};

/// Server with a tool, a resource and a prompt, which writes down what it reads.
const SERVER: &str = r#"
while read -r line; do
  printf '%s\n' "$line" >> log
  id=$(printf %s "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
  answer() { printf '{"jsonrpc":"2.0","id":%s,%s}\n' "$id" "$1"; }
  case "$line" in
    *'"initialize"'*) answer '"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{},"prompts":{},"resources":{},"completions":{}},"serverInfo":{"name":"s","version":"1"}}' ;;
    *'"tools/list"'*) answer '"result":{"tools":[{"name":"add","description":"Adds","inputSchema":{"type":"object","properties":{"numbers":{"type":"array","items":{"type":"integer"}}}}},{"name":"list","inputSchema":{"type":"object","properties":{"items":{"type":"array","items":{"type":"object"}}}}}]}' ;;
    *'"tools/call"'*'"list"'*) echo 'a line'; answer '"result":{"content":[{"type":"text","text":"listed"}]}' ;;
    *'"tools/call"'*'[9]'*) answer '"result":{"content":[{"type":"text","text":"no"}],"isError":true}' ;;
    *'"tools/call"'*) answer '"result":{"content":[{"type":"text","text":"added"}]}' ;;
    *'"resources/list"'*) answer '"result":{"resources":[{"uri":"file:///readme","name":"readme"}]}' ;;
    *'"resources/read"'*'///readme'*) answer '"result":{"contents":[{"uri":"file:///readme","text":"of the resource"}]}' ;;
    *'"prompts/list"'*) answer '"result":{"prompts":[{"name":"greet","arguments":[{"name":"person"}]}]}' ;;
    *'"prompts/get"'*'"greet"'*'"person"'*) answer '"result":{"messages":[{"role":"user","content":{"type":"text","text":"hello"}}]}' ;;
    *'"completion/complete"'*) answer '"result":{"completion":{"values":["Ada","Alan"]}}' ;;
    *'"id"'*) answer '"error":{"code":-32602,"message":"no such thing"}' ;;
  esac
done
"#;

/// Runs a command in front of the server, with lines on standard input; returns its result, and what the server has read.
fn run_with(arguments: &[&str], input: impl AsRef<[u8]>) -> (ProgramOutput, String) {
    let folder = tempfile::tempdir().expect("a folder");
    let server = ["--", "sh", "-c", SERVER];
    let arguments = [arguments, &["-r", "2025-06-18"], &server].concat();
    let ended = run(folder.path(), &arguments, input.as_ref());
    let log = std::fs::read_to_string(folder.path().join("log")).expect("a log");
    (ended, log)
}

/// A script calls, reads, gets prompts and completes in one connection, in the order of its lines.
#[test]
fn script_has_one_connection() {
    let script = r#"
# a comment
add numbers=1,2
{"tool": "add", "arguments": {"numbers": [3]}}
read file:///readme
prompt greet person='Ada L.'
complete prompt greet person A
{"method": "ping"}
tools
"#;
    let (ended, log) = run_with(&["session"], script);
    assert_eq!(
        (ended.code, ended.err.as_str()),
        (
            1,
            "error in line 8: the server answered with an error: no such thing (-32602)\n"
        )
    );
    let expected = "added\nadded\nof the resource\nuser: hello\nAda\nAlan\nname  description\nadd   Adds\nlist\n";
    assert_eq!(ended.out, expected);
    assert_eq!(log.matches("\"initialize\"").count(), 1, "{log}");
    assert!(
        log.contains(r#""numbers":[1,2]"#) && log.contains(r#""person":"Ada L.""#),
        "{log}"
    );
    let (ended, _) = run_with(&["session", "--json"], "add numbers=9\nquit\nadd\n");
    let line: Value = serde_json::from_str(&ended.out).expect("one line of JSON");
    assert_eq!(
        (ended.code, &line["line"], &line["result"]["isError"]),
        (1, &1.into(), &true.into())
    );
}

/// A list is written as JSON, with its quotes and spaces; a script ends at a line that fails if it is to. What the server prints
/// besides messages is noted once.
#[test]
fn lists_are_json_and_scripts_can_end() {
    let script = "list items=[{\"name\": \"Ada L.\", \"likes\": [\"engines\"]}]\nlist items=[{name:Ada}]\nlist items=[]\n";
    let (ended, log) = run_with(&["session", "--stop-on-error"], script);
    assert_eq!((ended.code, ended.out.as_str()), (1, "listed\n"));
    let sent = r#""items":[{"name":"Ada L.","likes":["engines"]}]"#;
    let other = r#""items":[{"likes":["engines"],"name":"Ada L."}]"#;
    assert!(log.contains(sent) || log.contains(other), "{log}");
    let lines: Vec<&str> = ended.err.lines().collect();
    let expected = "error in line 2: items: `[{name:Ada}]` is not a JSON list (";
    assert!(lines[0].starts_with(expected), "{}", ended.err);
    assert!(
        lines[0].ends_with("put JSON in single quotes: 'NAME={\"a\": 1}'"),
        "{}",
        ended.err
    );
    let note = "note: the server's standard output has 1 line besides its messages, where some clients end the connection: `a line`;";
    assert!(
        lines.len() == 2 && lines[1].starts_with(note),
        "{}",
        ended.err
    );
}

/// A line that is not text fails as others do, and the lines after it are run.
#[test]
fn lines_of_other_encodings_fail() {
    let script = b"add numbers=1\nread caf\xe9\nadd numbers=2\n";
    let (ended, log) = run_with(&["session"], script);
    assert_eq!(
        (ended.code, ended.err.as_str()),
        (1, "error in line 2: the line is not UTF-8 after byte 8\n")
    );
    assert_eq!(ended.out, "added\nadded\n");
    assert!(!log.contains("resources/read"), "{log}");
    let (ended, _) = run_with(&["session", "--stop-on-error"], script);
    assert_eq!((ended.code, ended.out.as_str()), (1, "added\n"));
}

/// Shells and editors of Windows write a byte order mark before what a command reads.
#[test]
fn byte_order_marks_are_passed_over() {
    let (ended, _) = run_with(&["session"], "\u{feff}add numbers=1\r\nadd numbers=2\r\n");
    assert_eq!(
        (ended.code, ended.out.as_str()),
        (0, "added\nadded\n"),
        "{}",
        ended.err
    );
    let arguments = ["call", "add", "--arguments", "-"];
    let (ended, log) = run_with(&arguments, "\u{feff}{\"numbers\": [1]}\r\n");
    assert_eq!(
        (ended.code, ended.out.as_str()),
        (0, "added\n"),
        "{}",
        ended.err
    );
    assert!(log.contains(r#""numbers":[1]"#), "{log}");
}

/// A line that cannot be run says what to write instead, and the next line is run.
#[test]
fn mistakes_get_suggestions() {
    let script = "ad numbers=1\nadd number=1\nread file:///readm\nprompt gret person=a\nprompt greet persn=a\nadd 'a\nadd numbers=x\nadd\n";
    let (ended, log) = run_with(&["session"], script);
    let lines: Vec<&str> = ended.err.lines().collect();
    for (line, expected) in lines.iter().zip([
        "error in line 1: the server has no tool `ad`, and no line begins so (`help` lists them); did you mean `add` or `list`?",
        "error in line 2: there is no argument `number`, and --any-argument is not given; did you mean `numbers`?",
        "error in line 3: the server answered with an error: no such thing (-32602); did you mean `file:///readme`?",
        "error in line 4: the server answered with an error: no such thing (-32602); did you mean `greet`?",
        "error in line 5: the server answered with an error: no such thing (-32602); the prompt has no argument `persn`; did you mean `person`?",
        "error in line 6: the line ends inside of quotes",
        "error in line 7: numbers: `x` is not a whole number",
    ]) {
        assert_eq!(*line, expected);
    }
    assert_eq!(
        (lines.len(), ended.out.as_str(), ended.code),
        (7, "added\n", 1)
    );
    assert_eq!(log.matches("\"tools/call\"").count(), 1, "{log}");
    let (ended, log) = run_with(&["call", "--any-argument", "add", "number=1"], "");
    assert_eq!(
        (ended.code, ended.out.as_str()),
        (0, "added\n"),
        "{}",
        ended.err
    );
    assert!(log.contains(r#""number":1"#), "{log}");
}

/// Writes lines at the terminal of a session in front of a server, each when what is expected before it is there; returns what
/// the terminal has shown.
#[cfg(target_os = "linux")]
fn write_at_terminal(folder: &Path, server: &str, lines: &[(&str, &str)]) -> String {
    use std::io::{Read as _, Write as _};
    use std::process::{Command, Stdio};

    let program = env!("CARGO_BIN_EXE_mcp-exact");
    std::fs::write(folder.join("server.sh"), server).expect("a file");
    let command = format!("{program} session -r 2025-06-18 sh server.sh");
    let mut child = Command::new("script")
        .args(["--quiet", "--return", "--command", &command, "/dev/null"])
        .current_dir(folder)
        .env("TERM", "xterm")
        .env("XDG_DATA_HOME", folder)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("`script` of util-linux");
    let mut input = child.stdin.take().expect("standard input");
    let mut output = child.stdout.take().expect("standard output");
    let (mut text, mut seen) = (String::new(), 0);
    for (line, expected) in lines {
        input.write_all(line.as_bytes()).expect("a line");
        let place = loop {
            if let Some(place) = text[seen..].find(expected) {
                break place;
            }
            let mut piece = [0; 1024];
            let count = output.read(&mut piece).expect("output");
            assert!(count > 0, "{text}");
            text.push_str(&String::from_utf8_lossy(&piece[..count]));
        };
        seen += place + expected.len();
    }
    input.write_all(b"quit\r").expect("a line");
    assert!(child.wait().expect("it ends").success(), "{text}");
    text
}

/// A person has the same lines, and those of earlier sessions.
#[cfg(target_os = "linux")]
#[test]
fn person_has_a_prompt() {
    let folder = tempfile::tempdir().expect("a folder");
    // Tab completes names, arguments, and values that the server knows.
    let lines = [
        ("", "> "),
        ("ad\tn\t1,2\r", "added"),
        ("", "> "),
        ("prompt greet person=Ala\t\r", "hello"),
        ("", "> "),
    ];
    let text = write_at_terminal(folder.path(), SERVER, &lines);
    let log = std::fs::read_to_string(folder.path().join("log")).expect("a log");
    assert!(
        log.contains(r#""numbers":[1,2]"#) && log.contains(r#""person":"Alan""#),
        "{log}\n{text}"
    );
    let history = Path::new("mcp-exact/session-history");
    let history = std::fs::read_to_string(folder.path().join(history)).expect("a history");
    assert!(history.contains("numbers=1,2"), "{history}");
}

/// A server that completes nothing in time delays a line for a moment only.
#[cfg(target_os = "linux")]
#[test]
fn silent_completions_are_given_up() {
    let answer = r#"answer '"result":{"completion":{"values":["Ada","Alan"]}}'"#;
    assert!(SERVER.contains(answer));
    let server = SERVER.replace(answer, ":");
    let folder = tempfile::tempdir().expect("a folder");
    let begun = std::time::Instant::now();
    let lines = [
        ("", "> "),
        ("prompt greet person=Ala\t\r", "hello"),
        ("", "> "),
    ];
    let text = write_at_terminal(folder.path(), &server, &lines);
    // Without a limit of its own, the question ends after a minute.
    let is_soon = begun.elapsed() < std::time::Duration::from_secs(30);
    assert!(is_soon, "{text}");
}
