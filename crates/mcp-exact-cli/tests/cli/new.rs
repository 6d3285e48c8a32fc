//! `new` and `bundle`: the files of a new server, what is refused, and a bundle of a server that is a script. `cargo xtask
//! new-server` builds a new server and packs it.

use std::fs;
use std::path::Path;

use expect_test::expect;
use tempfile::TempDir;

use crate::program::run;

/// Server that answers `initialize`, and lists a tool and what it was started with.
#[cfg(target_os = "linux")]
const SERVER: &str = r#"#!/bin/sh
while read -r line; do
  id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
  answer() { printf '{"jsonrpc":"2.0","id":%s,%s}\n' "$id" "$1"; }
  case $line in
    *'"initialize"'*) answer '"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}' ;;
    *'"tools/list"'*) answer '"result":{"tools":[{"name":"'"$1-$KEY"'","description":"of '"${0##*/mcpb/}"'","inputSchema":{"type":"object"}}]}' ;;
    *'"id"'*) answer '"error":{"code":-32601,"message":"Method not found"}' ;;
  esac
done
"#;

/// Returns the files below a folder with a slash between their parts, sorted.
fn list(folder: &Path) -> Vec<String> {
    let mut files = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(next).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let path = path.strip_prefix(folder).expect("below it");
                files.push(path.to_string_lossy().replace('\\', "/"));
            }
        }
    }
    files.sort();
    files
}

/// Returns the files in an archive, in its order: name, permissions and text.
#[cfg(target_os = "linux")]
fn unpack(path: &Path) -> Vec<(String, u32, String)> {
    let file = fs::File::open(path).expect("the bundle");
    let mut archive = zip::ZipArchive::new(file).expect("an archive");
    let mut texts = Vec::new();
    for number in 0..archive.len() {
        let mut entry = archive.by_index(number).expect("an entry");
        let mut text = String::new();
        std::io::Read::read_to_string(&mut entry, &mut text).expect("text");
        let name = entry.name().expect("a name").into_owned();
        texts.push((name, entry.unix_mode().expect("a mode") & 0o777, text));
    }
    texts
}

/// The files are listed, and what has to be changed is said; a second time nothing is written over.
#[test]
fn new_server_is_written() {
    let folder = TempDir::new().expect("a folder");
    let written = run(folder.path(), &["new", "weather"], b"");
    expect![[r"
        exit 0
        out: weather: a server with two tools and a resource, in weather
        out:   Cargo.toml
        out:   src/main.rs
        out:   tests/server.rs
        out:   .github/workflows/ci.yml
        out:   manifest.json
        out:   server.json
        out:   README.md
        out:   .gitignore
        out: 
        out: next:
        out:   cd weather
        out:   cargo test
        out:   mcp-exact inspect target/debug/weather
        out:   mcp-exact bundle
        out: before you publish it: put your account on GitHub in the place of OWNER in server.json and manifest.json; README.md says more
    "]]
    .assert_eq(&written.transcript());
    let files = list(folder.path());
    assert_eq!(files.len(), 8, "{files:?}");
    assert!(files.iter().all(|file| file.starts_with("weather/")));
    let main = folder.path().join("weather/src/main.rs");
    fs::write(&main, "mine").expect("a file");
    let again = run(folder.path(), &["new", "weather"], b"");
    assert_eq!(again.code, 2, "{}", again.transcript());
    assert!(
        again.err.contains("weather has Cargo.toml, src/main.rs"),
        "{}",
        again.err
    );
    assert_eq!(fs::read_to_string(main).expect("a file"), "mine");
}

/// `--path` names the folder, which may have other files, and `--owner` the account.
#[test]
fn folder_and_owner_are_options() {
    let folder = TempDir::new().expect("a folder");
    fs::create_dir_all(folder.path().join("deep/here")).expect("a folder");
    fs::write(folder.path().join("deep/here/LICENSE"), "mine").expect("a file");
    let arguments = ["new", "weather", "--path", "deep/here", "--owner", "ada"];
    let written = run(folder.path(), &arguments, b"");
    assert_eq!(written.code, 0, "{}", written.transcript());
    assert!(!written.out.contains("OWNER"), "{}", written.out);
    let text = fs::read_to_string(folder.path().join("deep/here/server.json")).expect("a file");
    assert!(text.contains("\"io.github.ada/weather\""), "{text}");
    for (arguments, expected) in [
        (&["new", "../up"][..], "it has to begin with a letter"),
        (&["new", "a/b"], "a folder is named by --path"),
        (&["new", "crate"], "try `crate-server`"),
        (&["new", "x", "--owner", "a b"], "not an account on GitHub"),
        (&["new", "x", "--path", "deep/here/LICENSE"], "cannot write"),
    ] {
        let refused = run(folder.path(), arguments, b"");
        assert_eq!(refused.code, 2, "{}", refused.transcript());
        assert!(refused.err.contains(expected), "{}", refused.err);
    }
    assert_eq!(list(folder.path()).len(), 9);
}

/// Programs that are built are packed with a manifest that has the server's tools; server.json gets version and checksum.
#[cfg(target_os = "linux")]
#[test]
fn built_programs_are_packed() {
    use std::os::unix::fs::PermissionsExt;

    let folder = TempDir::new().expect("a folder");
    let place = |path: &str| folder.path().join(path);
    assert_eq!(run(folder.path(), &["new", "weather"], b"").code, 0);
    fs::write(place("server.sh"), SERVER).expect("a file");
    fs::write(place("server.exe"), "of Windows").expect("a file");
    fs::write(place("weather/icon.png"), "picture").expect("a file");
    let cargo = fs::read_to_string(place("weather/Cargo.toml")).expect("a file");
    fs::write(
        place("weather/Cargo.toml"),
        cargo.replace("0.1.0\"\nedition", "0.2.0\"\nedition"),
    )
    .expect("a file");
    let manifest = fs::read_to_string(place("weather/manifest.json")).expect("a file");
    let manifest = manifest
        .replace("\"args\": []", "\"args\": [\"as ${user_config.kind}\"]")
        .replace("\"env\": {}", "\"env\": {\"KEY\": \"k\"}")
        .replace("\"author\"", "\"icon\": \"icon.png\",\n  \"user_config\": {\"kind\": {\"type\": \"string\"}},\n  \"author\"");
    fs::write(place("weather/manifest.json"), manifest).expect("a file");
    let bundle = |more: &[&str]| {
        let common = ["bundle", "--path", "weather", "--output", "w.mcpb"];
        run(folder.path(), &[&common[..], more].concat(), b"")
    };
    let linux = ["--binary", "linux=server.sh"];
    let refused = bundle(&linux);
    assert!(
        refused
            .err
            .contains("give it a value by --config kind=VALUE"),
        "{}",
        refused.err
    );
    let refused = bundle(&["--binary", "win32=server.exe"]);
    assert!(
        refused.err.contains("a program for linux is required, too"),
        "{}",
        refused.err
    );
    let more = ["--binary", "win32=server.exe", "--config", "kind=it"];
    let packed = bundle(&[&linux[..], &more].concat());
    assert_eq!(packed.code, 0, "{}", packed.transcript());
    assert!(
        packed
            .out
            .starts_with("w.mcpb: weather 0.2.0 for linux and win32, tools: 1, "),
        "{}",
        packed.out
    );
    assert!(
        packed.err.contains("server.json names the account OWNER"),
        "{}",
        packed.err
    );

    let texts = unpack(&place("w.mcpb"));
    let names: Vec<_> = texts
        .iter()
        .map(|(name, mode, _)| (name.as_str(), *mode))
        .collect();
    assert_eq!(
        names,
        [
            ("manifest.json", 0o644),
            ("server/weather", 0o755),
            ("server/win32/weather.exe", 0o755),
            ("icon.png", 0o644),
        ]
    );
    let manifest: serde_json::Value = serde_json::from_str(&texts[0].2).expect("JSON");
    assert_eq!(manifest["version"], "0.2.0");
    assert_eq!(
        manifest["tools"],
        serde_json::json!([{"name": "as it-k", "description": "of weather/server/weather"}])
    );
    let server = fs::read_to_string(place("weather/server.json")).expect("a file");
    let sha256 = packed
        .out
        .lines()
        .find_map(|line| line.strip_prefix("sha256 "))
        .expect("a checksum");
    assert!(
        server.contains(&format!("\"fileSha256\": \"{sha256}\"")),
        "{server}"
    );
    assert!(server.contains("/download/v0.2.0/weather.mcpb"), "{server}");
    let mode = fs::metadata(place("w.mcpb"))
        .expect("a file")
        .permissions()
        .mode();
    assert_ne!(mode & 0o044, 0, "others may read it, {mode:o}");
    // The same programs give the same bundle.
    let again = bundle(&[&linux[..], &more].concat());
    assert!(again.out.contains(sha256), "{}", again.transcript());
}

/// What is no package with a manifest of a binary is refused.
#[test]
fn other_folders_are_refused() {
    let folder = TempDir::new().expect("a folder");
    let bundle = || run(folder.path(), &["bundle"], b"");
    let refused = bundle();
    assert_eq!(refused.code, 2, "{}", refused.transcript());
    assert!(
        refused.err.contains("`mcp-exact new` writes one"),
        "{}",
        refused.err
    );
    fs::write(
        folder.path().join("manifest.json"),
        "{\"manifest_version\": \"0.3\"}",
    )
    .expect("a file");
    assert!(
        bundle()
            .err
            .contains("manifest.json: `name` must be a string"),
        "{}",
        bundle().err
    );
    let text = r#"{"manifest_version": "0.3", "name": "n", "version": "1", "description": "d", "author": {"name": "a"}, "server": {"type": "binary"}}"#;
    fs::write(folder.path().join("manifest.json"), text).expect("a file");
    let refused = bundle();
    assert_eq!(refused.code, 2, "{}", refused.transcript());
    assert!(refused.err.contains("Cargo.toml"), "{}", refused.err);
}
