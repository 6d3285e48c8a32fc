//! The system browser: how its program gets the URL of the authorization server.

use std::io::Read as _;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;

use mcp_exact_auth::client::{Url, open_browser};

/// Environment variable with the URL that the child process opens.
const URL_VARIABLE: &str = "MCP_EXACT_TEST_OPENED_URL";

/// "MCP clients MUST avoid shell execution when opening URLs: MUST NOT use shell commands (e.g., `cmd.exe`, `sh`,
/// PowerShell) to open URLs" ("Security Best Practices", "OAuth Authorization URL Validation"): the program gets the URL
/// as one argument, whatever it contains. The test runs again in a child process that finds another `xdg-open`.
#[test]
fn urls_are_opened_without_a_shell() {
    if let Ok(url) = std::env::var(URL_VARIABLE) {
        open_browser(&Url::parse(&url).expect("a URL")).expect("it starts");
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name);
    let made = Command::new("mkfifo").arg(path("arguments")).status();
    assert!(made.expect("it starts").success());
    let script = "#!/bin/sh\nprintf '%s\\n' \"$#\" \"$@\" > \"${0%/*}/arguments\"\n";
    std::fs::write(path("xdg-open"), script).expect("written");
    let executable = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(path("xdg-open"), executable).expect("changed");
    let url =
        "https://as.example/a;touch${IFS}made?b=$(touch%20made)&c=`touch made`|touch made'\"\\";
    let search = format!("{}:/usr/bin:/bin", folder.path().display());
    let child = Command::new(std::env::current_exe().expect("a path"))
        .args(["--exact", "browser::urls_are_opened_without_a_shell"])
        .current_dir(folder.path())
        .env("PATH", search)
        .env(URL_VARIABLE, url)
        .output()
        .expect("it starts");
    assert!(child.status.success(), "{child:?}");
    let mut arguments = String::new();
    let read = std::fs::File::open(path("arguments")).expect("a pipe");
    { read }.read_to_string(&mut arguments).expect("read");
    let url = Url::parse(url).expect("a URL");
    assert!(url.as_str().contains("$("), "{url}");
    assert_eq!(arguments, format!("1\n{url}\n"));
    assert!(!path("made").exists());
}
