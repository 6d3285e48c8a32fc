//! Untidy servers at the command line: what the person reads, and the options that are named.

#[cfg(feature = "http")]
mod http {
    use std::path::Path;

    use mcp_exact_tests_support::http_peer::{HttpPeer, PeerReply, legacy_reply};

    use crate::program::{ProgramOutput, run};

    /// Calls the tool `echo` of a server with further options.
    fn call(peer: &HttpPeer, options: &[&str]) -> ProgramOutput {
        let mut arguments = vec!["call"];
        arguments.extend(options);
        arguments.extend(["echo", "--", &peer.url]);
        run(Path::new("."), &arguments, b"")
    }

    /// Starts a server that responds to `method` in its own way.
    fn peer(method: &'static str, reply: PeerReply) -> HttpPeer {
        HttpPeer::start(move |request| match request.method() {
            of if of == method => reply.clone(),
            _ => legacy_reply(request, "2025-06-18"),
        })
    }

    /// Failures of the probe, and of `notifications/initialized`, keep no server out.
    #[test]
    fn odd_handshakes_are_passed_over() {
        for (method, reply) in [
            ("server/discover", PeerReply::new(500, "", "")),
            (
                "server/discover",
                PeerReply::new(403, "text/html", "<title>No</title>"),
            ),
            ("server/discover", PeerReply::new(204, "", "")),
            ("server/discover", PeerReply::Cut),
            ("notifications/initialized", PeerReply::new(404, "", "")),
        ] {
            let ended = call(&peer(method, reply), &[]);
            assert_eq!(
                (ended.code, ended.out.trim()),
                (0, "echoed"),
                "{}",
                ended.err
            );
        }
    }

    /// The error gives the server's reason, and is worded as the client's where it is the client's.
    #[test]
    fn reasons_are_shown() {
        for (method, reply, expected) in [
            (
                "initialize",
                PeerReply::json(403, &serde_json::json!({ "detail": "no tenant" })),
                "error: the server refuses to start: the server answered with HTTP status 403: no tenant; --trace shows the \
                 messages, and `mcp-exact doctor` looks for the cause\n",
            ),
            (
                "tools/call",
                PeerReply::new(502, "text/html", "<title>502 Bad Gateway</title>"),
                "error: the server answered with HTTP status 502: the page \"502 Bad Gateway\"\n",
            ),
            (
                "tools/call",
                PeerReply::error(200, &serde_json::Value::Null, -32000, "no tenant"),
                "error: the server answered with an error: no tenant (-32000)\n",
            ),
            (
                "tools/call",
                PeerReply::new(302, "", "").with_header("Location", "/login"),
                "error: the server redirects to /login (HTTP status 302); connect to that URL instead\n",
            ),
        ] {
            let ended = call(&peer(method, reply), &[]);
            assert_eq!((ended.code, ended.err.as_str()), (2, expected));
        }
    }

    /// A message above the limit is refused with its size and the option that raises the limit.
    #[test]
    fn size_of_messages_has_an_option() {
        let content = serde_json::json!([{ "type": "text", "text": "x".repeat(6 << 20) }]);
        let peer = HttpPeer::start(move |request| match request.method() {
            "tools/call" => PeerReply::result(request, serde_json::json!({ "content": content })),
            _ => legacy_reply(request, "2025-06-18"),
        });
        let ended = call(&peer, &[]);
        assert_eq!(
            (ended.code, ended.out.len()),
            (0, (6 << 20) + 1),
            "{}",
            ended.err
        );
        let ended = call(&peer, &["--message-bytes", "100000"]);
        let size = ended
            .err
            .split_once(" has ")
            .and_then(|(_, rest)| rest.split_once(" bytes, "));
        let size: usize = size
            .and_then(|(size, _)| size.parse().ok())
            .expect(&ended.err);
        assert!(size > 6 << 20, "{}", ended.err);
        let end = "more than the 100000 bytes that this side allows a message; allow more by \
                   --message-bytes\n";
        assert!(
            ended
                .err
                .starts_with("error: the answer of the server has "),
            "{}",
            ended.err
        );
        assert!(ended.err.ends_with(end), "{}", ended.err);
    }

    /// Contents of a resource that are not printed are named: those that are not base64, and those beside binary ones.
    #[test]
    fn contents_are_not_lost() {
        let blob = |data: &str| serde_json::json!({ "uri": "x:y", "blob": data });
        let text = serde_json::json!({ "uri": "x:z", "text": "t", "blob": null });
        for (contents, code, out, err) in [
            (serde_json::json!([blob("YWJj")]), 0, "abc", ""),
            (serde_json::json!([text]), 0, "t", ""),
            (
                serde_json::json!([blob("YWJj\nZGVm")]),
                2,
                "",
                "error: the binary contents are not base64; --json prints what the server has sent\n",
            ),
            (
                serde_json::json!([text, blob("YWJj")]),
                0,
                "abc",
                "note: the contents have 1 item besides these bytes; --json prints all of them\n",
            ),
        ] {
            let is_binary = contents.to_string().contains("YWJj");
            let peer = HttpPeer::start(move |request| match request.method() {
                "resources/read" => {
                    PeerReply::result(request, serde_json::json!({ "contents": contents }))
                }
                _ => legacy_reply(request, "2025-06-18"),
            });
            let options = ["read", "-r", "2025-06-18", "--quiet"];
            let arguments = [&options[..], &["x:y", "--", peer.url.as_str()]].concat();
            let ended = run(Path::new("."), &arguments, b"");
            assert_eq!((ended.code, &*ended.out), (code, out), "{}", ended.err);
            assert!(ended.err.ends_with(err), "{}", ended.err);
            let ended = run(Path::new("."), &["session", &peer.url], b"read x:y\n");
            assert_eq!(ended.code, i32::from(is_binary), "{}", ended.err);
            let reason = "error in line 1: the contents are binary; `mcp-exact read` writes";
            assert_eq!(ended.err.contains(reason), is_binary, "{}", ended.err);
        }
    }

    /// The whole result goes where the contents do.
    #[test]
    fn results_are_written_to_files() {
        let peer = HttpPeer::start(|request| match request.method() {
            "resources/read" => {
                let contents = serde_json::json!([{ "uri": "x:y", "text": "t" }]);
                PeerReply::result(request, serde_json::json!({ "contents": contents }))
            }
            _ => legacy_reply(request, "2025-06-18"),
        });
        let folder = tempfile::tempdir().expect("a folder");
        let options = ["read", "--json", "--output", "result.json", "x:y", "--"];
        let arguments = [&options[..], &[peer.url.as_str()]].concat();
        let ended = run(folder.path(), &arguments, b"");
        assert_eq!((ended.code, &*ended.out), (0, ""), "{}", ended.err);
        let written = std::fs::read_to_string(folder.path().join("result.json"));
        let result: serde_json::Value =
            serde_json::from_str(&written.expect("a file")).expect("JSON");
        assert_eq!(result["contents"][0]["text"], "t");
    }

    /// A server that is silent on the probe costs the wait in the first run only, of commands and the gateway; `--probe` asks
    /// again, and so does a server that has changed.
    #[cfg(unix)]
    #[test]
    fn silence_is_remembered_between_runs() {
        use std::os::unix::fs::PermissionsExt as _;
        use std::sync::Arc;
        use std::sync::atomic::{AtomicBool, Ordering};

        let refuses = Arc::new(AtomicBool::new(false));
        let flag = Arc::clone(&refuses);
        let peer = HttpPeer::start(move |request| match request.method() {
            "server/discover" => PeerReply::Silence,
            "initialize" if flag.swap(false, Ordering::AcqRel) => {
                PeerReply::error(400, request.id(), -32600, "not now")
            }
            _ => legacy_reply(request, "2025-06-18"),
        });
        let data = tempfile::tempdir().expect("a folder");
        let run = |arguments: &[&str]| {
            let mut program = crate::program::program();
            program.env("XDG_DATA_HOME", data.path());
            let ended = program.args(arguments).output().expect("it runs");
            // `explain` ends with 1 if there are losses.
            assert!(ended.status.code() < Some(2), "{ended:?}");
            peer.count("server/discover")
        };
        let file = data.path().join("mcp-exact/silent-servers");
        let call = ["call", "--timeout", "4", "echo", "--", &peer.url];
        assert_eq!([run(&call), run(&call), run(&call)], [1, 1, 1]);
        let text = std::fs::read_to_string(&file).expect("a file");
        assert!(
            !text.contains("127.0.0.1") && text.contains(" 2025-06-18 "),
            "{text}"
        );
        let mode = std::fs::metadata(&file)
            .expect("a file")
            .permissions()
            .mode();
        assert_eq!(mode & 0o777, 0o600);
        // The gateway reads the same memory.
        #[cfg(feature = "bridge")]
        {
            let config = data.path().join("bridge.toml");
            let entry = format!("timeout = 4\n[servers.silent]\nurl = \"{}\"\n", peer.url);
            std::fs::write(&config, entry).expect("written");
            let config = config.to_str().expect("text");
            let explain = ["bridge", "explain", "--config", config];
            assert_eq!(run(&explain), 1);
            std::fs::remove_file(&file).expect("removed");
            assert_eq!([run(&explain), run(&explain), run(&call)], [2, 2, 2]);
            std::fs::remove_file(&file).expect("removed");
            run(&call);
        }
        let before = run(&call);
        assert_eq!(
            run(&["call", "--probe", "--timeout", "4", "echo", "--", &peer.url]),
            before + 1
        );
        refuses.store(true, Ordering::Release);
        assert_eq!(run(&call), before + 2, "an error is a reason to ask");
        assert_eq!(run(&call), before + 2);
        // A damaged file, and an entry of long ago, are no memory.
        let old = text
            .rsplit_once(' ')
            .map(|(head, _)| format!("{head} 1000\n"));
        for text in [old.expect("a line"), "\u{0}\u{0}no memory".to_owned()] {
            std::fs::write(&file, text).expect("written");
            let before = peer.count("server/discover");
            assert_eq!(run(&call), before + 1);
        }
    }

    /// `--timeout` holds for the handshake, over all its attempts.
    #[test]
    fn timeout_holds_for_the_handshake() {
        use std::time::{Duration, Instant};

        let silent = HttpPeer::start(|_| PeerReply::Silence);
        let ended = call(&silent, &["--timeout", "3"]);
        let expected = "error: the server did not respond in time; is it an MCP server? --trace shows the messages, and \
                        `mcp-exact doctor` looks for the cause\n";
        assert_eq!((ended.code, ended.err.as_str()), (2, expected));
        // The server may read what it was sent when the client has ended.
        let begun = Instant::now();
        while silent.methods().len() < 2 && begun.elapsed() < Duration::from_secs(60) {
            std::thread::sleep(Duration::from_millis(10));
        }
        assert_eq!(silent.methods(), ["server/discover", "initialize"]);
    }

    /// `--trace` shows bodies that are no messages, and where a redirect leads.
    #[test]
    fn trace_shows_bodies() {
        let html = PeerReply::new(500, "text/html", "<title>Oops</title>\nat line 3\u{1b}[2J");
        let ended = call(&peer("tools/call", html), &["--trace"]);
        assert!(
            ended.err.contains("body: <title>Oops</title> at line 3"),
            "{}",
            ended.err
        );
        assert!(!ended.err.contains('\u{1b}'), "{}", ended.err);
        let moved = PeerReply::new(301, "", "").with_header("Location", "/login");
        let ended = call(&peer("tools/call", moved), &["--trace"]);
        assert!(
            ended
                .err
                .contains("301 Moved Permanently, Location: /login"),
            "{}",
            ended.err
        );
    }

    /// An entry of the gateway's file pins the revision of its server.
    #[cfg(feature = "bridge")]
    #[test]
    fn entries_of_the_gateway_pin_revisions() {
        let peer = HttpPeer::start(|request| {
            let version = request.body["params"]["protocolVersion"].as_str();
            legacy_reply(request, version.unwrap_or("2025-06-18"))
        });
        let folder = tempfile::tempdir().expect("a folder");
        let explain = |entry: &str| {
            let text = format!(
                "message-budget = 1000000\n[servers.odd]\nurl = \"{}\"\n{entry}",
                peer.url
            );
            std::fs::write(folder.path().join("bridge.toml"), text).expect("written");
            run(
                folder.path(),
                &["bridge", "explain", "--config", "bridge.toml"],
                b"",
            )
        };
        let ended = explain("revision = \"2025-03-26\"\ntimeout = 5\nmessage-bytes = 100000\n");
        assert!(
            ended.out.contains("of revision 2025-03-26"),
            "{}{}",
            ended.out,
            ended.err
        );
        assert_eq!(peer.count("server/discover"), 0);
        let ended = explain("revision = \"2025-01-01\"\n");
        assert!(
            ended
                .err
                .contains("the revision \"2025-01-01\" is not known; use one of 2024-11-05"),
            "{}",
            ended.err
        );
    }
}

#[cfg(unix)]
mod stdio {
    use std::path::Path;

    use crate::program::run;

    /// What the server has written instead of a message is shown when it does not answer.
    #[test]
    fn text_that_is_no_message_is_shown() {
        let script = "echo 'Listening on port 3000'; cat > /dev/null";
        let arguments = ["call", "--timeout", "4", "echo", "--", "sh", "-c", script];
        let ended = run(Path::new("."), &arguments, b"");
        let expected = "error: the server did not respond in time, and sent what is not a message: Listening on port 3000; \
                        a server that is started by its command must write messages alone to standard output, and logs to \
                        standard error; --trace shows what it sends\n";
        assert_eq!((ended.code, ended.err.as_str()), (2, expected));
        // A URL in it is what to write instead.
        let script = "echo 'Listening at http://127.0.0.1:3000/mcp.'; cat > /dev/null";
        let arguments = ["inspect", "--timeout", "4", "sh", "-c", script];
        let ended = run(Path::new("."), &arguments, b"");
        let remedy = "; if the server listens there, write http://127.0.0.1:3000/mcp instead of the command; ";
        assert!(ended.err.contains(remedy), "{}", ended.err);
        // In a session, too.
        let script = r#"
while read -r line; do
  id=$(printf %s "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
  case "$line" in
    *'"initialize"'*) printf '{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}}\n' "$id" ;;
    *'"tools/list"'*) printf '{"jsonrpc":"2.0","id":%s,"result":{"tools":[{"name":"echo","inputSchema":{"type":"object"}}]}}\n' "$id" ;;
    *'"tools/call"'*) echo '{"value":NaN}' ;;
    *'"id"'*) printf '{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no"}}\n' "$id" ;;
  esac
done
"#;
        let arguments = ["call", "--timeout", "4", "echo", "--", "sh", "-c", script];
        let ended = run(Path::new("."), &arguments, b"");
        let expected = "error: the server did not answer in time, and sent what is not a message: {\"value\":NaN}; a server \
                        that is started by its command must write messages alone to standard output, and logs to standard \
                        error; --trace shows what it sends\n";
        assert_eq!((ended.code, ended.err.as_str()), (2, expected));
    }

    /// `--trace` prints every message of the connection before the command ends, the last one included.
    #[test]
    fn trace_is_whole() {
        let script = r#"
while read -r line; do
  id=$(printf %s "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
  case "$line" in
    *'"initialize"'*) printf '{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}}\n' "$id" ;;
    *'"tools/list"'*) printf '{"jsonrpc":"2.0","id":%s,"result":{"tools":[{"name":"echo","inputSchema":{"type":"object"}}]}}\n' "$id" ;;
    *'"tools/call"'*) printf '{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":"' "$id"; head -c 4000000 /dev/zero | tr '\0' x; printf '"}]}}\n' ;;
    *'"id"'*) printf '{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no"}}\n' "$id" ;;
  esac
done
"#;
        let arguments = ["call", "--trace", "echo", "--", "sh", "-c", script];
        let ended = run(Path::new("."), &arguments, b"");
        assert_eq!(ended.code, 0);
        let lines: Vec<&str> = ended.err.lines().collect();
        let heads = lines
            .iter()
            .map(|line| line.split("  ").next().unwrap_or_default());
        let newest = mcp_exact_revisions::released()
            .next_back()
            .expect("a revision")
            .id();
        let expected = [
            &*format!("→ {newest} request server/discover"),
            &*format!("← {newest} error of server/discover"),
            "→ 2025-11-25 request initialize",
            "← 2025-06-18 result of initialize",
            "→ 2025-06-18 notifications/initialized",
            "→ 2025-06-18 request tools/list",
            "← 2025-06-18 result of tools/list",
            "→ 2025-06-18 request tools/call",
            "← 2025-06-18 result of tools/call",
        ];
        assert_eq!(heads.collect::<Vec<_>>(), expected);
        assert!(lines[8].len() > 4_000_000 && lines[8].ends_with("\"}]}}"));
    }

    /// A server without handshake that answers its probe late is used: it starts only when `initialize` has been sent.
    #[test]
    fn slow_server_of_the_newest_revision_is_used() {
        let script = r#"
identify() { id=$(printf %s "$1" | sed -n 's/.*"id":\([0-9]*\).*/\1/p'); }
answer() { printf '{"jsonrpc":"2.0","id":%s,%s}\n' "$id" "$1"; }
read -r probe
read -r initialize
identify "$probe"
answer '"result":{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},"ttlMs":0,"cacheScope":"private"}'
identify "$initialize"
answer '"error":{"code":-32602,"message":"_meta is missing"}'
while read -r line; do
  identify "$line"
  case "$line" in
    *'"tools/list"'*) answer '"result":{"resultType":"complete","tools":[{"name":"echo","inputSchema":{"type":"object"}}],"ttlMs":0,"cacheScope":"private"}' ;;
    *) answer '"result":{"resultType":"complete","content":[{"type":"text","text":"started"}]}' ;;
  esac
done
"#;
        let arguments = ["call", "--timeout", "8", "echo", "--", "sh", "-c", script];
        let ended = run(Path::new("."), &arguments, b"");
        assert_eq!(
            (ended.code, ended.out.trim()),
            (0, "started"),
            "{}",
            ended.err
        );
    }
}
