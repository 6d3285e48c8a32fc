//! What `inspect` and `call` print in front of an untidy server.

use std::path::Path;

use crate::program::run;

/// A server of 2025-06-18 with an odd tool, and prompts that fail.
const SERVER: &str = r#"
while read -r line; do
  id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
  case $line in
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
