//! Skills of a server: the list, files that are verified, and what is not what its entry describes.

use std::path::Path;

use crate::program::{ProgramOutput, run};

/// Server with the skills `notes` (twice), `live`, whose content is generated, and an entry without files.
const SERVER: &str = r#"
D=sha256:0000000000000000000000000000000000000000000000000000000000000000
entry() { printf '{"uri":"skill://%s/SKILL.md","frontmatter":{"name":"%s","description":"%s"},"resources":%s}' "$1" "$2" "$3" "$4"; }
file() { printf '{"uri":"skill://%s","digest":"%s","size":%s}' "$1" "$2" "$3"; }
while read -r line; do
  id=$(printf %s "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
  answer() { printf '{"jsonrpc":"2.0","id":%s,%s}\n' "$id" "$1"; }
  case "$line" in
    *'"initialize"'*) answer "\"result\":{\"protocolVersion\":\"2025-06-18\",\"capabilities\":{\"resources\":{},\"extensions\":{EXTENSIONS}},\"serverInfo\":{\"name\":\"s\",\"version\":\"1\"}}" ;;
    *'"skills/list"'*) answer "\"result\":{\"skills\":[$(entry notes notes 'Take \u001b[31mnotes' "[$(file notes/SKILL.md sha256:fa15cfd1f453daacf165ada1155527afc76e6508c9fa4212eec8a6169b0c72a7 52),$(file notes/a.md $D 4),$(file notes/b.md $D 9)]"),$(entry x/same same d "[$(file x/same/SKILL.md $D 1)]"),$(entry y/same same d "[$(file y/same/SKILL.md $D 1)]"),$(entry live live d '"dynamic"')MORE]}" ;;
    *'"skills/get"'*'live'*) answer "\"result\":{\"skill\":$(entry live live d '"dynamic"')}" ;;
    *'"resources/read"'*'live'*) answer '"result":{"contents":[{"uri":"skill://live/SKILL.md","text":"---\nname: live\ndescription: d\n---\n"}]}' ;;
    *'"resources/read"'*'notes/SKILL.md'*) answer '"result":{"contents":[{"uri":"skill://notes/SKILL.md","text":"---\nname: notes\ndescription: \"Take \\e[31mnotes\"\n---\n"}]}' ;;
    *'"resources/read"'*'notes/a.md'*) answer '"result":{"contents":[{"uri":"skill://notes/a.md","text":"evil"}]}' ;;
    *'"resources/read"'*'notes/b.md'*) answer '"result":{"contents":[{"uri":"skill://notes/b.md","text":"evil"}]}' ;;
    *'"id"'*) answer '"error":{"code":-32602,"message":"no such skill"}' ;;
  esac
done
"#;

/// Declaration of the extension in the capabilities of the server.
const DECLARED: &str = r#"\"io.modelcontextprotocol/skills\":{}"#;

/// Runs `mcp-exact skills` in front of the server, which has these further entries.
fn skills(arguments: &[&str], more: &str) -> ProgramOutput {
    let server = SERVER.replace("EXTENSIONS", DECLARED).replace("MORE", more);
    let command = ["-r", "2025-06-18", "--", "sh", "-c", &server];
    run(
        Path::new("."),
        &[&["skills"], arguments, &command].concat(),
        b"",
    )
}

/// The list has what the entries say, in escaped text; an entry that breaks the rules of the extension is named.
#[test]
fn skills_are_listed() {
    let ended = skills(&["list"], "");
    assert_eq!((ended.code, ended.err.as_str()), (0, ""));
    assert_eq!(
        ended.out,
        concat!(
            "name   uri                      files      bytes  description\n",
            "notes  skill://notes/SKILL.md   3          65     Take \\u{1b}[31mnotes\n",
            "same   skill://x/same/SKILL.md  1          1      d\n",
            "same   skill://y/same/SKILL.md  1          1      d\n",
            "live   skill://live/SKILL.md    generated         d\n",
        )
    );
    let ended = skills(
        &["list", "--json"],
        r#",{\"uri\":\"skill://bad/SKILL.md\"}"#,
    );
    let entries: Vec<serde_json::Value> = serde_json::from_str(&ended.out).expect("JSON");
    assert_eq!((ended.code, entries.len()), (1, 4));
    assert_eq!(entries[0]["resources"][1]["size"], 4);
    let expected = "error: the entry of the skill skill://bad/SKILL.md is not valid, which only its server can repair: \
                    `frontmatter` is not an object\n";
    assert_eq!(ended.err, expected);
    // Whoever asks for it learns the reason, too.
    let ended = skills(&["read", "bad"], r#",{\"uri\":\"skill://bad/SKILL.md\"}"#);
    assert_eq!((ended.code, ended.out.as_str()), (1, ""));
    assert_eq!(ended.err, expected);
    let many: String = (0..30)
        .map(|at| format!(r#",{{\"uri\":\"skill://b{at}/SKILL.md\"}}"#))
        .collect();
    let ended = skills(&["list"], &many);
    assert_eq!((ended.code, ended.err.lines().count()), (1, 21));
    assert!(ended.err.ends_with("\nand 10 more\n"), "{}", ended.err);
}

/// A file is printed as it is if size and digest are those of the entry, and otherwise nothing of it: the error names skill,
/// file, and what was expected and found.
#[test]
fn files_are_verified() {
    let ended = skills(&["read", "notes"], "");
    let text = "---\nname: notes\ndescription: \"Take \\e[31mnotes\"\n---\n";
    assert_eq!(
        (ended.code, ended.out.as_str(), ended.err.as_str()),
        (0, text, "")
    );
    let zeros = "0".repeat(64);
    let what = "of the skill skill://notes/SKILL.md is not what the entry describes:";
    for (file, reason) in [
        (
            "a.md",
            format!(
                "sha256:{zeros} was expected, and \
                 sha256:b5c1fb2efc6d6b4674c2fdcc48ce01b43a3b7c03763c0c3355de0099ee0f8c73 was found"
            ),
        ),
        ("b.md", "9 bytes were expected, and 4 were found".to_owned()),
    ] {
        let ended = skills(&["read", "notes", file], "");
        let expected =
            format!("error: the file skill://notes/{file} {what} {reason}; get the entry again\n");
        assert_eq!(
            (ended.code, ended.out, ended.err),
            (1, String::new(), expected)
        );
    }
}

/// What cannot be read says what to write instead.
#[test]
fn mistakes_are_explained() {
    for (arguments, expected) in [
        (
            &["read", "note"][..],
            "the server lists no skill `note`; if it is not in the list, give the URI of its SKILL.md; did you mean `notes`, \
             `live` or `same`?",
        ),
        (
            &["read", "same"],
            "several skills have the name `same`; give the URI of one: skill://x/same/SKILL.md, skill://y/same/SKILL.md",
        ),
        (
            &["read", "notes", "c.md"],
            "the skill `notes` has no file `c.md`; did you mean `a.md`, `b.md` or `SKILL.md`?",
        ),
        (
            &["read", "live"],
            "the server generates the skill skill://live/SKILL.md, so that its files cannot be verified; --unverified reads them \
             nevertheless",
        ),
        (
            &["read", "skill://none/SKILL.md"],
            "the server has no skill at skill://none/SKILL.md: no such skill",
        ),
    ] {
        let ended = skills(arguments, "");
        assert_eq!((ended.code, ended.err), (2, format!("error: {expected}\n")));
    }
    let ended = skills(&["read", "--unverified", "skill://live/SKILL.md"], "");
    assert_eq!(ended.out, "---\nname: live\ndescription: d\n---\n");
    assert_eq!(
        (ended.code, ended.err.as_str()),
        (
            0,
            "not verified: the server generates skill://live/SKILL.md\n"
        )
    );
    let server = SERVER.replace("EXTENSIONS", "");
    let command = [
        "skills",
        "list",
        "-r",
        "2025-06-18",
        "--",
        "sh",
        "-c",
        &server,
    ];
    let ended = run(Path::new("."), &command, b"");
    let expected = "error: the server has no skills: it does not declare the extension `io.modelcontextprotocol/skills`\n";
    assert_eq!((ended.code, ended.err.as_str()), (2, expected));
}
