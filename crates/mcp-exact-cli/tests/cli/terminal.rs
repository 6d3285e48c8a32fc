//! What reaches a terminal when a server, a file or a recording is full of control characters: colours, and nothing else.
//!
//! The terminal is a pseudo-terminal of `script` (util-linux, which every Linux has).

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use tempfile::TempDir;

/// Text with a clipboard write, a cleared screen, C1 and delete characters, a changed line and reordered text, as JSON escapes.
const HOSTILE: &str =
    r"\u001b]52;c;aGk=\u0007\u001b[2J\u009b31m\u007f\u0008\u001b[8mx\rerror: y\u202ez\u2066";

/// Server that gives this text wherever it may: `$H` is the text.
const SERVER: &str = r#"
printf '\033]52;c;aGk=\007\033[2J\302\2331m\010\033]0;title\007 to standard error\n' >&2
while read -r line; do
  id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
  case $line in
    *'"initialize"'*) body='"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{},"prompts":{},"resources":{}},"serverInfo":{"name":"$H","version":"$H"},"instructions":"$H"}' ;;
    *'"tools/list"'*) body='"result":{"tools":[{"name":"a","title":"$H","description":"$H","inputSchema":{"type":"object","$H":1}},{"name":"$H","inputSchema":{"type":"object"}}]}' ;;
    *'"prompts/list"'*) body='"error":{"code":-32603,"message":"$H","data":"$H"}' ;;
    *'"resources/list"'*) body='"result":{"resources":[{"name":"$H","uri":"x://$H"}]}' ;;
    *'"name":"a"'*) body='"result":{"content":[{"type":"text","text":"$H"},{"type":"$H","$H":"$H"},{"type":"resource_link","uri":"$H","name":"$H"}],"structuredContent":{"$H":"$H"}}' ;;
    *'"tools/call"'*) body='"error":{"code":-32602,"message":"$H"}' ;;
    *'"resources/read"'*) body='"result":{"contents":[{"uri":"x:","text":"$H"}]}' ;;
    *'"prompts/get"'*) body='"result":{"description":"$H","messages":[{"role":"user","content":{"type":"$H","text":"$H"}}]}' ;;
    *) [ -n "$id" ] || continue; body='"error":{"code":-32601,"message":"$H"}' ;;
  esac
  printf '%s\n' "{\"jsonrpc\":\"2.0\",\"id\":$id,$body}"
done
"#;

/// Server that refuses every handshake, or ends with last words.
const REFUSING: &str = r#"read -r line; id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p'); printf '%s\n' "{\"jsonrpc\":\"2.0\",\"id\":$id,\"error\":{\"code\":-32602,\"message\":\"$H\"}}"; printf '\033]52;c;aGk=\007\033[2J last words\n' >&2; exit 3"#;

/// Runs the program at a terminal, in a folder; returns what the terminal receives.
fn at_terminal(folder: &Path, arguments: &[&str]) -> String {
    let quoted = arguments
        .iter()
        .map(|argument| format!("'{}'", argument.replace('\'', r"'\''")));
    let program = env!("CARGO_BIN_EXE_mcp-exact");
    let command = format!("{program} {}", quoted.collect::<Vec<_>>().join(" "));
    let output = Command::new("script")
        .args(["--quiet", "--return", "--command", &command, "/dev/null"])
        .current_dir(folder)
        .env("TERM", "xterm")
        .env("XDG_DATA_HOME", crate::program::data_folder())
        .stdin(Stdio::null())
        .output()
        .expect("`script` of util-linux");
    String::from_utf8(output.stdout).expect("text")
}

/// Returns the first character in what a terminal has received that is no text, colour or line break of the program.
fn first_control(text: &str) -> Option<(char, String)> {
    let mut rest = text;
    while let Some(letter) = rest.chars().next() {
        let harmless = ["\u{1b}[2K", "\r", "\n", "\t"];
        let colours = ["0", "1", "2", "31", "32", "33"].map(|code| format!("\u{1b}[{code}m"));
        let mut known = harmless
            .into_iter()
            .chain(colours.iter().map(String::as_str));
        if let Some(known) = known.find(|known| rest.starts_with(known)) {
            // The carriage return is that of a line break, or of a line that is written anew.
            if known != "\r" || rest.starts_with("\r\n") || rest.starts_with("\r\u{1b}[2K") {
                rest = &rest[known.len()..];
                continue;
            }
        }
        if letter.is_control()
            || ('\u{2028}'..='\u{202e}').contains(&letter)
            || letter == '\u{2066}'
        {
            return Some((letter, rest.chars().take(40).collect()));
        }
        rest = &rest[letter.len_utf8()..];
    }
    None
}

/// No command passes control characters of others to a terminal.
#[test]
fn commands_change_no_terminal() {
    let folder = TempDir::new().expect("a folder");
    let server = SERVER.replace("$H", HOSTILE);
    let refusing = REFUSING.replace("$H", &HOSTILE.replace('\\', r"\\"));
    let message =
        format!(r#"{{"jsonrpc":"2.0","id":"{HOSTILE}","method":"{HOSTILE}","{HOSTILE}":1}}"#);
    let tool = format!(r#"{{"name":"{HOSTILE}","inputSchema":{{"type":5}},"{HOSTILE}":1}}"#);
    for (name, text) in [
        ("log.jsonl", &message),
        ("message.json", &message),
        ("tool.json", &tool),
    ] {
        fs::write(folder.path().join(name), text).expect("a file");
    }
    let of_server = ["-r", "2025-06-18", "--", "sh", "-c", &server];
    let of_refusing = ["-r", "2025-06-18", "--", "sh", "-c", &refusing];
    let check = ["check", "-r", "2025-06-18"];
    let mut commands: Vec<Vec<&str>> = Vec::new();
    for command in [
        &["inspect"][..],
        &["inspect", "--json"],
        &["inspect", "--trace"],
        &["call", "a"],
        &["call", "a", "--json"],
        &["call", "b", "--arguments", "{}"],
        &["read", "x:"],
        &["prompt", "p"],
    ] {
        commands.push([command, &of_server].concat());
    }
    commands.push([&["inspect"][..], &of_refusing].concat());
    commands.push(vec!["doctor", "--timeout", "2", "--", "sh", "-c", &server]);
    commands.push([&check[..], &["--log", "log.jsonl"]].concat());
    commands.push([&check[..], &["--direction", "client", "message.json"]].concat());
    commands.push(
        [
            &check[..],
            &["--type", "Tool", "--unknown", "--print", "tool.json"],
        ]
        .concat(),
    );
    commands.push(vec!["show", "\u{1b}[2J"]);
    for arguments in commands {
        let text = at_terminal(folder.path(), &arguments);
        assert!(!text.is_empty(), "{arguments:?}");
        let found = first_control(&text);
        assert_eq!(found, None, "{arguments:?}\n{text:?}");
    }
}
