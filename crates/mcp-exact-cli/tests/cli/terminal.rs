//! What reaches a terminal when a server, a file or a recording is full of control characters: colours, and nothing else.
//!
//! The terminal is a pseudo-terminal of `script` (util-linux, which every Linux has).

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};

use tempfile::TempDir;

use crate::program::run;

/// Text with a clipboard write, a cleared screen, C1 and delete characters, a changed line, reordered text, and a line that the
/// program seems to have written, as JSON escapes.
const HOSTILE: &str = r"\u001b]52;c;aGk=\u0007\u001b[2J\u009b31m\u007f\u0008\u001b[8mx\rerror: y\u202ez\u2066\u2028\nFORGED\u001b[35m";

/// Server that gives this text wherever it may: `$H` is the text.
const SERVER: &str = r#"
printf '\033]52;c;aGk=\007\033[2J\302\2331m\010\033]0;title\007 to standard error\n' >&2
write() { printf '%s\n' "{\"jsonrpc\":\"2.0\",$1}"; }
while read -r line; do
  id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
  case $line in
    *'"initialize"'*) body='"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{},"prompts":{},"resources":{},"logging":{},"completions":{},"extensions":{"io.modelcontextprotocol/skills":{"$H":1}},"$H":{"$H":1}},"serverInfo":{"name":"$H","version":"$H"},"instructions":"$H"}' ;;
    *'"tools/list"'*) body='"result":{"tools":[{"name":"a","title":"$H","description":"$H","inputSchema":{"type":"object","properties":{"$H":{"type":"$H","description":"$H"}},"$H":1}},{"name":"form","inputSchema":{"type":"object"}},{"name":"structured","inputSchema":{"type":"object"}},{"name":"$H","inputSchema":{"type":"object"}}]}' ;;
    *'"prompts/list"'*) body='"error":{"code":-32603,"message":"$H","data":"$H"}' ;;
    *'"resources/list"'*) body='"result":{"resources":[{"name":"$H","uri":"x://$H"}]}' ;;
    *'"skills/list"'*) body='"result":{"skills":[{"uri":"skill://$H/SKILL.md","frontmatter":{"name":"$H","description":"$H"},"resources":"dynamic"},{"uri":"$H","frontmatter":"$H"},{"uri":"skill://notes/SKILL.md","frontmatter":{"name":"notes","description":"$H"},"resources":"dynamic"}]}' ;;
    *'"name":"a"'*)
      write '"method":"notifications/message","params":{"level":"info","logger":"$H","data":"$H"}'
      write '"method":"notifications/resources/updated","params":{"uri":"$H"}'
      write '"method":"$H","params":{"$H":"$H"}'
      body='"result":{"content":[{"type":"text","text":"of the tool"},{"type":"$H","$H":"$H"},{"type":"image","mimeType":"$H","data":""},{"type":"resource_link","uri":"$H","name":"$H"}],"structuredContent":{"$H":"$H"}}' ;;
    *'"name":"structured"'*) body='"result":{"content":[],"structuredContent":{"$H":"$H"}}' ;;
    *'"name":"form"'*)
      call=$id
      write '"id":"q","method":"elicitation/create","params":{"message":"$H","requestedSchema":{"type":"object","properties":{"$H":{"type":"string","title":"$H","description":"$H","enum":["$H"]},"other":{"type":"$H","default":"$H"}},"required":["$H"]}}'
      continue ;;
    *'"action"'*) id=$call; body='"result":{"isError":true,"content":[]}' ;;
    *'"tools/call"'*) body='"error":{"code":-32602,"message":"$H"}' ;;
    *'"resources/read"'*) body='"result":{"contents":[{"uri":"x:","text":"of the resource"}]}' ;;
    *'"prompts/get"'*) body='"result":{"description":"$H","messages":[{"role":"user","content":{"type":"text","text":"$H"}},{"role":"$H","content":{"type":"$H","text":"$H"}}]}' ;;
    *'"logging/setLevel"'*) write '"method":"notifications/message","params":{"level":"info","logger":"$H","data":"$H"}'; body='"result":{}' ;;
    *) [ -n "$id" ] || continue; body='"error":{"code":-32601,"message":"$H"}' ;;
  esac
  write "\"id\":$id,$body"
done
"#;

/// Server that refuses every handshake, and ends with last words.
const REFUSING: &str = r#"read -r line; id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p'); printf '%s\n' "{\"jsonrpc\":\"2.0\",\"id\":$id,\"error\":{\"code\":-32602,\"message\":\"$H\"}}"; printf '\033]52;c;aGk=\007\033[2J last words\n' >&2; exit 3"#;

/// Server that ends at once, with last words, and one that prints no JSON.
const ENDING: &str = r"printf '\033]52;c;aGk=\007\033[2J last words\n' >&2; exit 3";
const PRINTING: &str = r"while read -r line; do printf '\033]52;c;aGk=\007\033[2J no JSON\n'; done";

/// Runs the program at a terminal, in a folder; returns what the terminal receives.
fn at_terminal(folder: &Path, arguments: &[&str]) -> String {
    let quoted = arguments
        .iter()
        .map(|argument| format!("'{}'", argument.replace('\'', r"'\''")));
    let program = env!("CARGO_BIN_EXE_mcp-exact");
    let mut command = format!("{program} {}", quoted.collect::<Vec<_>>().join(" "));
    if arguments[0] == "session" {
        // At a terminal, it is in a test of its own.
        command.push_str(" < lines.txt");
    }
    let output = Command::new("script")
        .args(["--quiet", "--return", "--command", &command, "/dev/null"])
        .current_dir(folder)
        .env("TERM", "xterm")
        .env("HOME", folder)
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
            || ('\u{2066}'..='\u{2069}').contains(&letter)
        {
            return Some((letter, rest.chars().take(40).collect()));
        }
        rest = &rest[letter.len_utf8()..];
    }
    None
}

/// Files that the commands read.
fn write_files(folder: &Path) {
    let message =
        format!(r#"{{"jsonrpc":"2.0","id":"{HOSTILE}","method":"{HOSTILE}","{HOSTILE}":1}}"#);
    let tool = format!(r#"{{"name":"{HOSTILE}","inputSchema":{{"type":5}},"{HOSTILE}":1}}"#);
    let titled =
        format!(r#"{{"name":"{HOSTILE}","title":"{HOSTILE}","inputSchema":{{"type":"object"}}}}"#);
    let call = format!(
        r#"{{"from":"client","message":{{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{{"name":"a"}}}}}}
{{"from":"server","message":{{"jsonrpc":"2.0","id":2,"result":{{"content":[{{"type":"text","text":"{HOSTILE}"}}],"{HOSTILE}":1}}}}}}"#
    );
    let lines = "a\ncall b x=1\nform\nstructured\nread x:\nread y:\nprompt p\ncomplete prompt p a\ntools\nresources\n\
                 prompts\n{\"method\":\"ping\"}\nx 'y\n"
        .to_owned();
    let config =
        format!(r#"{{"mcpServers":{{"s":{{"type":"{HOSTILE}","command":"{HOSTILE}"}}}}}}"#);
    fs::create_dir(folder.join(".cursor")).expect("a folder");
    let servers = format!(
        r#"{{"mcpServers":{{"{HOSTILE}":{{"command":"{HOSTILE}","type":"{HOSTILE}"}},"wrong":{{"command":"x","env":"{HOSTILE}"}}}}}}"#
    );
    for (name, text) in [
        (".cursor/mcp.json", &servers),
        ("log.jsonl", &message),
        ("message.json", &message),
        ("tool.json", &tool),
        ("titled.json", &titled),
        ("call.jsonl", &call),
        ("config.json", &config),
        ("lines.txt", &lines),
    ] {
        fs::write(folder.join(name), text).expect("a file");
    }
    write_package(folder);
}

/// Files of a package of which a bundle is made, with the server as its program.
fn write_package(folder: &Path) {
    let manifest = format!(
        r#"{{"manifest_version":"0.3","name":"{HOSTILE}","description":"{HOSTILE}","author":{{"name":"{HOSTILE}"}},"server":{{"type":"binary","mcp_config":{{"args":["${{user_config.{HOSTILE}}}"]}}}},"user_config":{{"{HOSTILE}":{{"default":"{HOSTILE}"}}}}}}"#
    );
    let registry = format!(r#"{{"name":"{HOSTILE}","packages":["{HOSTILE}"]}}"#);
    let program = format!("#!/bin/sh\n{}", SERVER.replace("$H", HOSTILE));
    let cargo = "[package]\nname = \"p\"\nversion = \"0.1.0\"\n[workspace]\n".to_owned();
    // What cargo says about it has the text.
    let broken = "[package]\nname = \"\u{1b}]52;c;aGk=\u{7}\u{1b}[2J\"\nFORGED = = 1\n".to_owned();
    fs::create_dir_all(folder.join("package/src")).expect("a folder");
    fs::create_dir(folder.join("broken")).expect("a folder");
    for (name, text) in [
        ("broken/Cargo.toml", &broken),
        ("broken/manifest.json", &manifest),
        ("package/Cargo.toml", &cargo),
        ("package/src/main.rs", &String::new()),
        ("package/manifest.json", &manifest),
        ("package/server.json", &registry),
        ("server.sh", &program),
    ] {
        fs::write(folder.join(name), text).expect("a file");
    }
}

/// Commands, by the kind of server that they are in front of.
const OF_SERVER: &[&[&str]] = &[
    &["inspect"],
    &["inspect", "--json"],
    &["inspect", "--trace"],
    &["inspect", "--strict"],
    &["call", "a"],
    &["call", "a", "--json"],
    &["call", "a", "--trace"],
    &["call", "b", "--arguments", "{}"],
    &["call", "misspelt"],
    &["call", "form", "--arguments", "{}"],
    &["call", "structured"],
    &["read", "x:"],
    &["read", "x:", "--json"],
    &["skills", "list"],
    &["skills", "list", "--json"],
    &["skills", "read", "misspelt"],
    &["skills", "read", "notes"],
    &["skills", "read", "notes", "--unverified"],
    &["skills", "read", "x://y/SKILL.md"],
    &["prompt", "p"],
    &["prompt", "p", "--json"],
    &["listen", "--for", "1", "--level", "info"],
    &["session"],
    &["session", "--json"],
];

/// Commands without options of a client.
const OTHERS: &[&[&str]] = &[
    &["doctor", "--timeout", "1", "$SERVER"],
    &["doctor", "--timeout", "1", "--json", "$SERVER"],
    &["doctor", "--timeout", "1", "--trace", "$SERVER"],
    &["doctor", "--timeout", "1", "$REFUSING"],
    &["doctor", "--timeout", "1", "$ENDING"],
    &["doctor", "--timeout", "1", "$PRINTING"],
    &["inspect", "$REFUSING"],
    &["inspect", "$ENDING"],
    &["inspect", "--timeout", "1", "$PRINTING"],
    &["replay", "call.jsonl", "$SERVER"],
    &["replay", "call.jsonl", "$ENDING"],
    &["proxy", "--trace", "--record", "-", "$SERVER"],
    &["proxy", "$ENDING"],
    #[cfg(feature = "bridge")]
    &["bridge", "explain", "$SERVER"],
    #[cfg(feature = "bridge")]
    &["bridge", "explain", "$REFUSING"],
    #[cfg(feature = "bridge")]
    &["bridge", "--log", "debug", "$SERVER"],
    #[cfg(feature = "bridge")]
    &["bridge", "--config", "config.json"],
    &["check", "-r", "2025-06-18", "--log", "log.jsonl"],
    &["check", "-r", "2025-06-18", "--log", "call.jsonl"],
    &[
        "check",
        "-r",
        "2025-06-18",
        "--direction",
        "client",
        "message.json",
    ],
    &[
        "check",
        "-r",
        "2025-06-18",
        "--type",
        "Tool",
        "--unknown",
        "--print",
        "tool.json",
    ],
    &[
        "check",
        "-r",
        "2025-06-18",
        "--type",
        "Tool",
        "--json",
        "tool.json",
    ],
    &["check", "-r", "2025-06-18", "\u{1b}[2J\nFORGED"],
    &[
        "convert",
        "--from",
        "2025-06-18",
        "--to",
        "2025-03-26",
        "--type",
        "Tool",
        "titled.json",
    ],
    &[
        "convert",
        "--from",
        "2025-06-18",
        "--to",
        "2025-03-26",
        "message.json",
    ],
    &["show", "\u{1b}[2J\nFORGED"],
    &["servers"],
    &["servers", "--json"],
    &["inspect", "wrong"],
    &[
        "add",
        "\u{1b}[2J\nFORGED",
        "--to",
        "cursor",
        "--yes",
        "--",
        "x",
    ],
    &["new", "\u{1b}[2J\nFORGED"],
    &["new", "x", "--path", "\u{1b}[2J\nFORGED"],
    &["bundle", "--path", "package", "--binary", "linux=server.sh"],
    &["bundle", "--path", "broken"],
    &["bundle", "--path", "\u{1b}[2J\nmissing"],
    &["diff", "\u{1b}[2J\nFORGED", "2025-06-18"],
    &["revisions"],
];

/// Number of commands that run at a time.
const WORKER_COUNT: usize = 16;

/// Commands of the program that get nothing of others, or that need a Redis.
const EXEMPT: [&str; 4] = ["completions", "man", "sessions", "help"];

/// What a server wrote to standard error before it exited is shown whole.
#[test]
fn last_words_are_shown() {
    let folder = TempDir::new().expect("a folder");
    write_files(folder.path());
    for command in [&["proxy"][..], &["replay", "call.jsonl"]] {
        let arguments = [command, &["--", "sh", "-c", "seq 2500 >&2"]].concat();
        let text = at_terminal(folder.path(), &arguments);
        let lines = text
            .lines()
            .filter(|line| line.trim().parse::<u32>().is_ok());
        assert_eq!(lines.count(), 2500, "{command:?}: {text}");
    }
}

/// No command passes control characters of others to a terminal, or lines that look like its own.
#[test]
fn commands_change_no_terminal() {
    let folder = TempDir::new().expect("a folder");
    write_files(folder.path());
    let server = SERVER.replace("$H", HOSTILE);
    let refusing = REFUSING.replace("$H", &HOSTILE.replace('\\', r"\\"));
    let of_server = ["-r", "2025-06-18", "--", "sh", "-c", &server];
    let mut commands: Vec<Vec<&str>> = OF_SERVER
        .iter()
        .map(|command| [command, &of_server[..]].concat())
        .collect();
    for command in OTHERS {
        let words = command.iter().flat_map(|word| match *word {
            "$SERVER" => vec!["--", "sh", "-c", &server],
            "$REFUSING" => vec!["--", "sh", "-c", &refusing],
            "$ENDING" => vec!["--", "sh", "-c", ENDING],
            "$PRINTING" => vec!["--", "sh", "-c", PRINTING],
            word => vec![word],
        });
        commands.push(words.collect());
    }
    let check = |arguments: &[&str]| {
        let text = at_terminal(folder.path(), arguments);
        assert!(!text.is_empty(), "{arguments:?}");
        let found = first_control(&text);
        assert_eq!(found, None, "{arguments:?}\n{text}");
        let forged = text.lines().find(|line| line.starts_with("FORGED"));
        assert_eq!(forged, None, "{arguments:?}\n{text}");
    };
    // They wait more than they work, most of all `doctor`, whose commands are next to each other.
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..WORKER_COUNT {
            scope.spawn(|| {
                while let Some(arguments) = commands.get(next.fetch_add(1, Ordering::Relaxed)) {
                    check(arguments);
                }
            });
        }
    });
}

/// Every command of the program is among those that are driven.
#[test]
fn every_command_is_driven() {
    let help = run(Path::new("."), &["--help"], b"").out;
    let commands = help.lines().filter_map(|line| {
        let name = line.strip_prefix("  ")?.split(' ').next()?;
        let is_name = !name.is_empty() && name.chars().all(|letter| letter.is_ascii_lowercase());
        is_name.then_some(name)
    });
    let mut count = 0;
    for name in commands.filter(|name| !EXEMPT.contains(name)) {
        count += 1;
        let driven = OF_SERVER.iter().chain(OTHERS);
        assert!(driven.into_iter().any(|words| words[0] == name), "{name}");
    }
    assert!(count > 10, "{count} commands in\n{help}");
}

/// JSON in pipes has escapes instead of control characters, and is the same JSON.
#[test]
fn json_in_pipes_is_escaped() {
    let folder = TempDir::new().expect("a folder");
    let server = SERVER.replace("$H", HOSTILE);
    let hostile: String = serde_json::from_str(&format!("\"{HOSTILE}\"")).expect("a JSON string");
    for command in [&["inspect", "--json"][..], &["call", "a", "--json"]] {
        let arguments = [
            command,
            &["--quiet", "-r", "2025-06-18", "--", "sh", "-c", &server],
        ]
        .concat();
        let ended = run(folder.path(), &arguments, b"");
        assert_eq!(first_control(&ended.out), None, "{arguments:?}");
        let value: serde_json::Value = serde_json::from_str(&ended.out).expect("JSON");
        assert!(has_string(&value, &hostile), "{value:#}");
    }
}

/// Returns true if a value has a string in it.
fn has_string(value: &serde_json::Value, wanted: &str) -> bool {
    match value {
        serde_json::Value::String(text) => text == wanted,
        serde_json::Value::Array(items) => items.iter().any(|item| has_string(item, wanted)),
        serde_json::Value::Object(members) => {
            members.values().any(|value| has_string(value, wanted))
        }
        _ => false,
    }
}
