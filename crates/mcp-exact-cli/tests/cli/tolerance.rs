//! What `inspect` and `call` print in front of an untidy server.

#[cfg(feature = "http")]
use std::collections::BTreeSet;
use std::path::Path;

#[cfg(feature = "http")]
use mcp_exact_tests_tolerance::entrance::Entrance;
#[cfg(feature = "http")]
use mcp_exact_tests_tolerance::http;
#[cfg(feature = "http")]
use mcp_exact_tests_tolerance::zoo::{CASES, Case, Peer, TIDY};
#[cfg(feature = "http")]
use serde_json::Value;

#[cfg(feature = "http")]
use crate::program::ProgramOutput;
use crate::program::run;
#[cfg(feature = "bridge")]
use crate::program::run_until_answered;

/// A server of 2025-06-18 with an odd tool, and prompts that fail.
const SERVER: &str = r#"
while read -r line; do
  id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
  case $line in
    *'"server/discover"'*) body='"error":{"code":-32601,"message":"no such method"}' ;;
    *'"initialize"'*) body='"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{},"prompts":[]},"serverInfo":{"name":"odd"}}' ;;
    *'"tools/list"'*) body='"result":{"tools":[{"name":"a","title":null},{"name":5}],"nextCursor":null}' ;;
    *'"tools/call"'*) body='"result":{"content":[{"type":"text","text":"done","annotations":null}]},"error":null' ;;
    *'"prompts/list"'*) body='"error":{"code":-32603,"message":"no database"}' ;;
    *) continue ;;
  esac
  printf '{"jsonrpc":"2.0","id":%s,%s}\n' "$id" "$body"
done
"#;

#[test]
fn untidy_servers_are_used_and_reported() {
    let with = |command: &[&str]| {
        let server = ["-r", "2025-06-18", "--", "sh", "-c", SERVER];
        let arguments: Vec<&str> = command.iter().chain(&server).copied().collect();
        run(Path::new("."), &arguments, b"")
    };
    let ended = with(&["inspect"]);
    assert_eq!(ended.code, 0, "{}", ended.err);
    assert!(ended.out.contains("Tools (1)\n"), "{}", ended.out);
    for line in [
        "repaired: initialize: empty-array at \"/capabilities/prompts\"\n",
        "repaired: initialize: missing-member at \"/serverInfo/version\"\n",
        "repaired: tools/list: null-member at \"/tools/0/title\" (tool `a`)\n",
        "repaired: tools/list: neutral-schema at \"/tools/0/inputSchema\" (tool `a`)\n",
        "repaired: tools/list: left-out at \"/tools/1\": expected a string\n",
        "not shown: `prompts/list` failed: the server answered with an error: no database (-32603)\n",
    ] {
        assert!(ended.err.contains(line), "{line}{}", ended.err);
    }
    let ended = with(&["call", "a"]);
    assert_eq!((ended.code, &*ended.out), (0, "done\n"), "{}", ended.err);
    for line in [
        "repaired: null-in-envelope at \"/error\"\n",
        "repaired: tools/call: null-member at \"/content/0/annotations\"\n",
    ] {
        assert!(ended.err.contains(line), "{line}{}", ended.err);
    }
    let ended = with(&["inspect", "--strict"]);
    assert_eq!(ended.code, 2, "{}", ended.out);
}

/// Serves a case over HTTP, as long as the runtime lives; returns its URL.
#[cfg(feature = "http")]
fn serve(case: &Case) -> (tokio::runtime::Runtime, String) {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .expect("a runtime");
    let peer = Peer::new(*case, "2025-11-25");
    let url = runtime.block_on(http::serve(&peer)).expect("a port");
    (runtime, url)
}

/// Runs a command of the program in front of the server of a case over HTTP; checks that each repair is printed.
#[cfg(feature = "http")]
fn use_server(command: &[&str], case: &Case) -> ProgramOutput {
    let (_runtime, url) = serve(case);
    use_address(command, case, &[&*url])
}

/// Server of a case that the program starts as a process: a shell that connects the streams to two pipes.
#[cfg(all(unix, feature = "http"))]
const PIPES: &str = "cat to-client & exec cat > to-server";

/// Runs a command of the program in front of the server of a case over stdio; checks that each repair is printed.
#[cfg(all(unix, feature = "http"))]
fn use_process(command: &[&str], case: &Case) -> ProgramOutput {
    use std::io::{BufRead as _, BufReader, Write as _};
    let folder = tempfile::tempdir().expect("a folder");
    let pipes = ["to-server", "to-client"].map(|name| folder.path().join(name));
    let made = std::process::Command::new("mkfifo").args(&pipes).status();
    assert!(made.expect("mkfifo").success());
    let peer = Peer::new(*case, "2025-11-25");
    std::thread::spawn(move || {
        let [input, output] = pipes;
        let input = std::fs::File::open(input).expect("a pipe");
        let mut output = std::fs::File::create(output).expect("a pipe");
        for line in BufReader::new(input).lines() {
            for answer in peer.answers(&line.expect("a line")) {
                let line = [&answer[..], b"\n"].concat();
                // A client that goes away closes the pipe.
                let _ = output.write_all(&line);
            }
        }
    });
    let script = format!("cd {}; {PIPES}", folder.path().display());
    use_address(command, case, &["--", "sh", "-c", &script])
}

/// Runs a command of the program with the address of the server of a case; checks that each repair is printed.
#[cfg(feature = "http")]
fn use_address(command: &[&str], case: &Case, address: &[&str]) -> ProgramOutput {
    let (name, rest) = command.split_first().expect("a command");
    let arguments = [&[name, "--max-pages", "3"], rest, address].concat();
    let ended = run(Path::new("."), &arguments, b"");
    let printed = ended.err.lines();
    let printed = printed.filter(|line| line.starts_with("repaired: "));
    let printed: Vec<&str> = printed.collect();
    // A server that declares nothing is asked for its tools.
    let asks = *name == "inspect" && case.method == "initialize" && case.delivers == "{}";
    let undeclared = asks.then_some(&"undeclared-capability");
    let rules: Vec<_> = case.rules.iter().chain(undeclared).collect();
    assert_eq!(printed.len(), rules.len(), "{} {printed:?}", case.name);
    for (line, rule) in printed.iter().zip(rules) {
        assert!(line.contains(rule), "{} {line}", case.name);
    }
    ended
}

/// `inspect` shows what can be read of every list, and of what a server says about itself.
#[test]
#[cfg(feature = "http")]
fn inspect_shows_every_case() {
    inspect_shows(Entrance::Inspect, use_server);
}

#[test]
#[cfg(all(unix, feature = "http"))]
fn inspect_shows_every_case_over_stdio() {
    inspect_shows(Entrance::InspectOverStdio, use_process);
}

#[cfg(feature = "http")]
fn inspect_shows(entrance: Entrance, use_server: fn(&[&str], &Case) -> ProgramOutput) {
    for case in entrance.cases() {
        let ended = use_server(&["inspect", "--json"], case);
        assert_eq!(ended.code, 0, "{} {}", case.name, ended.err);
        let shown: Value = serde_json::from_str(&ended.out).expect("an object");
        let member = match case.method {
            "tools/list" => "tools",
            "prompts/list" => "prompts",
            "resources/list" => "resources",
            "resources/templates/list" => "resourceTemplates",
            _ => {
                let expected: Value = serde_json::from_str(case.delivers).expect("an object");
                assert_eq!(shown["capabilities"], expected, "{}", case.name);
                continue;
            }
        };
        let items = shown[member].as_array().expect("a list");
        let names: Vec<&str> = items
            .iter()
            .filter_map(|item| item["name"].as_str())
            .collect();
        assert_eq!(names.join(", "), case.delivers, "{}", case.name);
    }
}

/// `call` prints the text of every result that can be read, and the reason where none can.
#[test]
#[cfg(feature = "http")]
fn call_prints_every_case() {
    call_prints(Entrance::Call, |case| {
        use_server(&["call", "echo", "--"], case)
    });
}

#[test]
#[cfg(all(unix, feature = "http"))]
fn call_prints_every_case_over_stdio() {
    call_prints(Entrance::CallOverStdio, |case| {
        use_process(&["call", "echo"], case)
    });
}

#[cfg(feature = "http")]
fn call_prints(entrance: Entrance, call: fn(&Case) -> ProgramOutput) {
    for case in entrance.cases() {
        let ended = call(case);
        if let Some(reason) = case.delivers.strip_prefix("error: ") {
            assert_ne!(ended.code, 0, "{}", case.name);
            assert!(ended.err.contains(reason), "{} {}", case.name, ended.err);
            continue;
        }
        assert_eq!(ended.code, 0, "{} {}", case.name, ended.err);
        // What is structured is printed where there is no text.
        if !case.delivers.is_empty() {
            assert_eq!(ended.out.trim_end(), case.delivers, "{}", case.name);
        }
    }
}

/// Returns what `doctor` finds in the server of a case: level, rule and text of each finding.
#[cfg(feature = "http")]
fn findings(case: &Case) -> BTreeSet<String> {
    let (_runtime, url) = serve(case);
    let examine = |call: &[&str]| {
        let options = ["doctor", "--timeout", "60", "--json"];
        run(
            Path::new("."),
            &[&options[..], call, &[&*url]].concat(),
            b"",
        )
    };
    let mut ended = examine(&["--call", "echo={}"]);
    // Cases of lists have other tools.
    if ended.err.contains("the server has no tool `echo`") {
        ended = examine(&[]);
    }
    let report: Value = serde_json::from_str(&ended.out).expect(&ended.err);
    let findings = report["findings"].as_array().expect("findings");
    let texts = findings.iter().map(|finding| {
        let text = |name: &str| finding[name].as_str().unwrap_or_default();
        format!("{} {}: {}", text("level"), text("rule"), text("found"))
    });
    texts.collect()
}

/// `doctor` reports the fault of every case, and blames a tidy server for nothing of this kind.
#[test]
#[cfg(feature = "http")]
fn doctor_finds_every_case() {
    let tidy = findings(&TIDY);
    assert!(!tidy.iter().any(|text| text.contains("RPC.")), "{tidy:?}");
    let check = |case: &Case| {
        let all = findings(case);
        let is_list = ["repeated-cursor", "too-many-pages"].iter();
        let is_list = is_list.clone().any(|rule| case.rules.contains(rule));
        let is_fault = |text: &String| {
            // No MUST forbids a list without an end.
            let of_list = ["PAGE.cursor-advances", "TOOL.names-unique"];
            if is_list {
                of_list.iter().any(|rule| text.contains(rule))
            } else {
                text.starts_with("MUST RPC.")
            }
        };
        assert!(
            all.difference(&tidy).any(is_fault),
            "{}: {all:?}",
            case.name
        );
        // Pages that are read twice are not tools that are there twice.
        let is_blamed = all.iter().any(|text| text.contains("TOOL.names-unique"));
        assert!(
            !(is_blamed && case.rules.contains(&"repeated-cursor")),
            "{}: {all:?}",
            case.name
        );
    };
    // The doctor waits more than it works.
    std::thread::scope(|scope| {
        for cases in CASES.chunks(CASES.len().div_ceil(8)) {
            scope.spawn(move || cases.iter().for_each(check));
        }
    });
}

/// A list that is too long names the option, or the key of the gateway's file, that allows more pages.
#[test]
#[cfg(feature = "bridge")]
fn pages_of_a_list_are_settable() {
    let case = CASES.iter().find(|case| case.rules == ["too-many-pages"]);
    let (_runtime, url) = serve(case.expect("a case"));
    let here = Path::new(".");
    let ended = run(here, &["inspect", "--max-pages", "7", &url], b"");
    assert!(ended.out.contains("Tools (7)\n"), "{}", ended.out);
    let end = "too-many-pages at \"/nextCursor\": the list goes on after 7 pages";
    let line = format!("repaired: tools/list: {end}; allow more by --max-pages\n");
    assert!(ended.err.contains(&line), "{}", ended.err);
    let ended = run(
        here,
        &["inspect", "--strict", "--max-pages", "7", &url],
        b"",
    );
    let line = format!(
        "not shown: `tools/list` failed: the list of `tools/list` does not end ({end}); allow more by --max-pages\n"
    );
    assert!(ended.err.contains(&line), "{}", ended.err);

    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("bridge.toml");
    let path = path.to_str().expect("text");
    // The second server has a number of its own.
    for (options, of_long) in [(&[][..], 7), (&["--max-pages", "9"], 9)] {
        let config = format!(
            "max-pages = 7\n[servers.long]\nurl = \"{url}\"\n[servers.short]\nurl = \"{url}\"\nmax-pages = 2\n"
        );
        std::fs::write(path, config).expect("a file");
        let arguments = [&["bridge", "--config", path][..], options].concat();
        let ended = list_tools(folder.path(), &arguments);
        let count = |name: &str| ended.out.matches(name).count();
        // Every page has the same tool.
        let found = (count("long__a"), count("short__a"));
        assert_eq!(found, (1, 1), "{}", ended.err);
        let words = format!("the list goes on after {of_long} pages");
        let of_short = "the list goes on after 2 pages";
        for words in [&*words, of_short, "allow more by `max-pages`"] {
            assert!(ended.err.contains(words), "{words}\n{}", ended.err);
        }
    }
    // A strict gateway shows no part of a list, and names the server and the method.
    let config = format!(
        "strict = true\n[servers.long]\nurl = \"{url}\"\nmax-pages = 2\n[servers.sh]\ncommand = \"sh\"\nargs = [\"-c\", \"exit\"]\n"
    );
    std::fs::write(path, config).expect("a file");
    let ended = list_tools(folder.path(), &["bridge", "--config", path]);
    assert!(!ended.out.contains("long__a"), "{}", ended.out);
    for words in [
        "a server is left out of a list",
        "server=\"long\"",
        "method=\"tools/list\"",
        "the list of `tools/list` does not end",
        "the list goes on after 2 pages); allow more by `max-pages`",
    ] {
        assert!(ended.err.contains(words), "{words}\n{}", ended.err);
    }
}

/// The files of the gateway may begin with a byte order mark, and entries of `mcp.json` have the keys of the other file.
#[test]
#[cfg(feature = "bridge")]
fn entries_have_limits() {
    let case = CASES
        .iter()
        .find(|case| case.name == "null title of a tool");
    let (_runtime, url) = serve(case.expect("a case"));
    let folder = tempfile::tempdir().expect("a folder");
    let toml = |keys: &str| format!("[servers.odd]\nurl = \"{url}\"\n{keys}");
    let json = |keys: &str| format!("{{\"mcpServers\":{{\"odd\":{{\"url\":\"{url}\"{keys}}}}}}}");
    let start = |text: String| {
        std::fs::write(folder.path().join("servers"), format!("\u{feff}{text}")).expect("a file");
        let arguments = ["bridge", "--config", "servers"];
        list_tools(folder.path(), &arguments)
    };
    for text in [
        toml("timeout = 5\nmessage-bytes = 100000\nmax-pages = 5\nrevision = \"2025-11-25\"\n"),
        json(r#","timeout":5,"messageBytes":100000,"max-pages":5,"revision":"2025-11-25""#),
    ] {
        let ended = start(text);
        assert!(ended.out.contains("odd__a"), "{}{}", ended.out, ended.err);
    }
    let limit =
        "more than the 50 bytes that this side allows a message; allow more by `message-bytes`";
    let zero = "the `timeout` is 0; write a number of seconds";
    for (text, expected) in [
        (toml("message-bytes = 50\n"), limit),
        (json(r#","message-bytes":50"#), limit),
        (toml("timeout = 0\n"), zero),
        (json(r#","timeout":0"#), zero),
        (
            format!("timeout = 0\n{}", toml("")),
            "timeout: write a number of seconds above 0",
        ),
    ] {
        let ended = start(text);
        assert!(ended.err.contains(expected), "{expected}\n{}", ended.err);
    }
    // An answer that is too large is no refusal of the server, and the option is named.
    let arguments = ["inspect", "--message-bytes", "50", &url];
    let ended = run(folder.path(), &arguments, b"");
    assert!(
        ended
            .err
            .starts_with("error: the answer of the server has ")
            && ended.err.ends_with("; allow more by --message-bytes\n"),
        "{}",
        ended.err
    );
}

/// What a client sends that lists the tools.
#[cfg(feature = "bridge")]
const LISTING_CLIENT: &str = concat!(
    r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"raw","version":"1"}}}"#,
    "\n",
    r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
    "\n",
    r#"{"jsonrpc":"2.0","id":2,"method":"tools/list"}"#,
    "\n",
);

/// Runs a gateway for this client, which waits for the list.
#[cfg(feature = "bridge")]
fn list_tools(folder: &Path, arguments: &[&str]) -> ProgramOutput {
    run_until_answered(folder, arguments, LISTING_CLIENT.as_bytes(), 2)
}

/// A list that fails in one server of the gateway is named with its server and its method; the rest is shown.
#[test]
#[cfg(feature = "bridge")]
fn gateway_names_failed_lists() {
    let folder = tempfile::tempdir().expect("a folder");
    let (_runtime, url) = serve(&TIDY);
    let odd = SERVER.replace("*'\"tools/list\"'*)", "*'\"tools/nothing\"'*)");
    let odd = odd.replace("prompts/list", "tools/list");
    std::fs::write(folder.path().join("odd.sh"), odd).expect("a file");
    let config = format!(
        "[servers.odd]\ncommand = \"sh\"\nargs = [\"odd.sh\"]\nrevision = \"2025-06-18\"\n[servers.tidy]\nurl = \"{url}\"\n"
    );
    std::fs::write(folder.path().join("bridge.toml"), config).expect("a file");
    let arguments = ["bridge", "--config", "bridge.toml"];
    let ended = list_tools(folder.path(), &arguments);
    assert!(
        ended.out.contains("tidy__echo"),
        "{}{}",
        ended.out,
        ended.err
    );
    for words in [
        "a server is left out of a list",
        "server=\"odd\"",
        "method=\"tools/list\"",
        "no database",
    ] {
        assert!(ended.err.contains(words), "{words} {}", ended.err);
    }
}

/// The audit log of the gateway has a line for a kind of repair, of servers and of clients.
#[test]
#[cfg(feature = "bridge")]
fn gateway_logs_repairs() {
    let case = Entrance::Inspect.cases().next().expect("a case");
    let (_runtime, url) = serve(case);
    let folder = tempfile::tempdir().expect("a folder");
    let config = format!("audit = \"audit.jsonl\"\n\n[servers.odd]\nurl = \"{url}\"\n");
    std::fs::write(folder.path().join("bridge.toml"), config).expect("a file");
    let input = concat!(
        r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":null,"clientInfo":{"name":"raw","version":"1"}}}"#,
        "\n",
        r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
        "\n",
        r#"{"jsonrpc":"2.0","id":2,"method":"tools/list"}"#,
        "\n",
        r#"{"jsonrpc":"2.0","id":3,"method":"tools/list"}"#,
        "\n",
    );
    let arguments = ["bridge", "--config", "bridge.toml"];
    let ended = run_until_answered(folder.path(), &arguments, input.as_bytes(), 3);
    assert_eq!(ended.code, 0, "{}", ended.err);
    let audit = std::fs::read_to_string(folder.path().join("audit.jsonl")).expect("a log");
    let lines = audit
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
    let repairs = lines.filter(|line| line.get("repaired").is_some());
    // The gateway reads the list of the server while its client connects.
    let mut repairs: Vec<Value> = repairs
        .map(|line| {
            serde_json::json!([
                line["server"],
                line["method"],
                line["subject"],
                line["repaired"]
            ])
        })
        .collect();
    repairs.sort_by_key(|line| !line[0].is_null());
    let expected = [
        serde_json::json!([null, "initialize", null, "missing-member"]),
        serde_json::json!(["odd", "tools/list", "tool `a`", "null-member"]),
    ];
    assert_eq!(repairs, expected, "{audit}");
}
