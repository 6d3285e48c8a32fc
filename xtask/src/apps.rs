//! `cargo xtask apps`: shows pages of servers (MCP Apps) in a host with the official library, in headless Chromium.
//!
//! Installs the library and an example server of it from the pins in `tests/apps`. Our example server is met directly and through
//! the gateway, theirs through the gateway and by our host, in the last revision with a handshake and in that without.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use serde_json::{Value, json};

use crate::examples;
use crate::interop::install::run_quietly;
use crate::interop::process::{self, Announcement, ListeningServer};

/// Files in `tests/apps` that pin the versions of the npm packages.
const PINS: [&str; 2] = ["package.json", "package-lock.json"];
/// File with a copy of the installed pins; written after the installation.
const STAMP_FILE: &str = "installed.txt";
/// Time for all pages in Chromium.
const BROWSER_TIMEOUT: Duration = Duration::from_secs(90);
/// Time limit for the example `app_host`, which reads the pages.
const HOST_TIMEOUT: Duration = Duration::from_secs(60);
/// Revisions in which each server is met.
const REVISIONS: [&str; 2] = ["2025-11-25", "2026-07-28"];
/// Server of the official examples, below `node_modules`.
const THEIR_SERVER: &str = "@modelcontextprotocol/server-basic-vanillajs/dist/index.js";

/// Arguments of `cargo xtask apps`.
#[derive(Debug, Default, clap::Args)]
pub struct Arguments {
    /// Write a screenshot of all pages to this file.
    #[arg(long, value_name = "FILE")]
    picture: Option<PathBuf>,
}

/// Shows the pages, and uses them.
///
/// # Errors
/// Returns an error if npm, node or Chromium is missing, or a check fails.
pub fn run(root: &Path, arguments: &Arguments) -> anyhow::Result<()> {
    let source = root.join("tests").join("apps");
    let target = root.join("target").join("apps");
    fs::create_dir_all(&target).with_context(|| format!("cannot create {}", target.display()))?;
    install(&source, &target)?;
    let [server, host] = examples::build(root, "mcp-exact", ["app_server", "app_host"])?;
    let program = examples::build_program(root, "mcp-exact-cli", "mcp-exact")?;
    let theirs = target.join("node_modules").join(THEIR_SERVER);
    let gateway = start_gateway(&program, &server, &theirs, &target)?;
    let direct = ListeningServer::start_until_announced(
        Command::new(&server).args(["http", "127.0.0.1:0"]),
        &target.join("direct"),
        Announcement::EXAMPLE,
    )?;
    let servers = Servers {
        gateway: &gateway.origin,
        direct: &direct.origin,
    };
    let policies = read_pages(&host, &theirs, &servers, &target)?;
    show_pages(&source, &servers, &policies, &target)?;
    if let Some(picture) = &arguments.picture {
        fs::copy(target.join("pages.png"), picture)
            .with_context(|| format!("cannot write {}", picture.display()))?;
    }
    Ok(())
}

/// Where the servers are.
struct Servers<'s> {
    /// Origin of the gateway.
    gateway: &'s str,
    /// URL of our example server.
    direct: &'s str,
}

/// Installs the npm packages, unless the pins are unchanged.
fn install(source: &Path, target: &Path) -> anyhow::Result<()> {
    let mut stamp = String::new();
    for pin in PINS {
        let path = source.join(pin);
        stamp += &fs::read_to_string(&path)
            .with_context(|| format!("cannot read {}", path.display()))?;
    }
    if fs::read_to_string(target.join(STAMP_FILE)).unwrap_or_default() == stamp {
        return Ok(());
    }
    println!("installing the library of MCP Apps");
    for pin in PINS {
        fs::copy(source.join(pin), target.join(pin))?;
    }
    run_quietly(
        Command::new("npm")
            .current_dir(target)
            .args(["ci", "--ignore-scripts", "--no-audit", "--no-fund"])
            .args(["--loglevel", "error"]),
    )?;
    Ok(fs::write(target.join(STAMP_FILE), stamp)?)
}

/// Starts the gateway in front of both servers.
fn start_gateway(
    program: &Path,
    server: &Path,
    theirs: &Path,
    target: &Path,
) -> anyhow::Result<ListeningServer> {
    let servers = BTreeMap::from([
        ("poll", json!({ "command": server })),
        (
            "clock",
            json!({ "command": "node", "args": [theirs, "--stdio"] }),
        ),
    ]);
    let file = json!({ "listen": "127.0.0.1:0", "servers": servers });
    let path = target.join("bridge.toml");
    fs::write(&path, toml::to_string(&file)?)?;
    ListeningServer::start_until_announced(
        Command::new(program).args(["bridge", "--config"]).arg(path),
        &target.join("gateway"),
        Announcement::GATEWAY,
    )
}

/// Lets our host read the pages of all servers, and compares what it prints with what is expected. Returns the policy of each page
/// by the name of its server.
fn read_pages(
    host: &Path,
    theirs: &Path,
    servers: &Servers<'_>,
    target: &Path,
) -> anyhow::Result<BTreeMap<String, String>> {
    let their_command = json!({ "command": "node", "args": [theirs, "--stdio"] });
    let mut configured = serde_json::Map::new();
    configured.insert("theirs".to_owned(), their_command);
    for revision in REVISIONS {
        let mut add = |name: &str, url: String| {
            let entry = json!({ "url": url, "revision": revision });
            configured.insert(format!("{name}-{revision}"), entry);
        };
        add("clock", format!("{}/mcp/clock", servers.gateway));
        add("poll", format!("{}/mcp/poll", servers.gateway));
        add("joint", format!("{}/mcp", servers.gateway));
        add("direct", servers.direct.to_owned());
    }
    let file = target.join("mcp.json");
    fs::write(&file, json!({ "mcpServers": configured }).to_string())?;
    let result = process::run(
        Command::new(host).arg(&file),
        HOST_TIMEOUT,
        &target.join("host"),
    )?;
    let mut expected = vec![
        "for the model: theirs__get-time".to_owned(),
        "page ui://get-time/mcp-app.html of theirs: ".to_owned(),
    ];
    for revision in REVISIONS {
        expected.extend([
            format!("for the model: poll-{revision}__poll"),
            format!("for pages of poll-{revision}: vote"),
            format!("for pages of joint-{revision}: poll__vote"),
            format!("page ui://poll/page.html of direct-{revision}: "),
            format!("page ui://poll/page.html of poll-{revision}: "),
            format!("page ui://poll/poll/page.html of joint-{revision}: "),
            format!("page ui://get-time/mcp-app.html of clock-{revision}: "),
        ]);
    }
    let lines: Vec<&str> = result.stdout.lines().collect();
    let is_there = |wanted: &String| lines.iter().any(|line| line.starts_with(wanted.as_str()));
    let hidden = |line: &&&str| line.starts_with("for the model: ") && line.contains("vote");
    let missing: Vec<&String> = expected.iter().filter(|wanted| !is_there(wanted)).collect();
    ensure!(
        missing.is_empty() && lines.iter().find(hidden).is_none() && result.stderr.is_empty(),
        "our host does not print {missing:#?}, or gives `vote` to the model:\n{}{}",
        result.stdout,
        result.stderr
    );
    let pages = expected.iter().filter(|line| line.starts_with("page "));
    println!("ok our host reads {} pages", pages.count());
    Ok(policies(&lines))
}

/// Returns the policies in the output of our host, each in the line after its page, by the name of the server.
fn policies(lines: &[&str]) -> BTreeMap<String, String> {
    let policy = |pair: &[&str]| {
        let (_, server) = pair[0].strip_prefix("page ")?.split_once(" of ")?;
        let (server, _) = server.split_once(':')?;
        Some((server.to_owned(), pair[1].trim_start().to_owned()))
    };
    lines.windows(2).filter_map(policy).collect()
}

/// Returns what the browser uses of our server.
fn poll_case(name: &str, url: &str, revision: &str) -> Value {
    json!({
        "name": name, "url": url, "revision": revision,
        "tool": "poll", "arguments": { "question": "What shall we drink?" }, "hidden": ["vote"],
        "says": "The user sees the poll",
        "before": r"What shall we drink.[\s\S]*coffee[\s\S]*choose", "button": "[data-choice=tea]",
        "after": r"tea[\s\S]*[1-9][\s\S]*voted", "context": "The user voted for tea.",
    })
}

/// Returns what the browser uses of their server.
fn clock_case(name: &str, url: &str, revision: &str) -> Value {
    json!({
        "name": name, "url": url, "revision": revision,
        "tool": "get-time", "arguments": {}, "hidden": [],
        "before": r"Server Time:\s*\d{4}-\d\d-\d\dT", "button": "#get-time-btn",
        "after": r"Server Time:\s*\d{4}-\d\d-\d\dT",
    })
}

/// Shows the pages in Chromium, and prints what holds there.
fn show_pages(
    source: &Path,
    servers: &Servers<'_>,
    policies: &BTreeMap<String, String>,
    target: &Path,
) -> anyhow::Result<()> {
    let poll = format!("{}/mcp/poll", servers.gateway);
    let clock = format!("{}/mcp/clock", servers.gateway);
    let cases: Vec<Value> = REVISIONS
        .into_iter()
        .flat_map(|revision| {
            [
                ("direct", poll_case("our server", servers.direct, revision)),
                (
                    "poll",
                    poll_case("our server, through the gateway", &poll, revision),
                ),
                (
                    "clock",
                    clock_case("their server, through the gateway", &clock, revision),
                ),
            ]
            .map(|(server, mut case)| {
                case["policy"] = json!(policies.get(&format!("{server}-{revision}")));
                case
            })
        })
        .collect();
    let profile = target.join("profile");
    if profile.exists() {
        fs::remove_dir_all(&profile)?;
    }
    let result = process::run(
        Command::new("node")
            .arg(source.join("host.mjs"))
            .arg(target)
            .arg(target.join("pages.png"))
            .arg(Value::from(cases).to_string()),
        BROWSER_TIMEOUT,
        &target.join("browser"),
    )?;
    print!("{}", result.stdout);
    if result.status.is_some_and(|status| status.success()) {
        println!("the pages are in {}", target.join("pages.png").display());
        return Ok(());
    }
    bail!("the pages do not work in the browser:\n{}", result.stderr)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The policy of a page is in the line after it.
    #[test]
    fn policies_follow_their_pages() {
        let lines = [
            "for the model: a__b",
            "page ui://a of direct-2025-11-25: 5 bytes",
            "  default-src 'none'; form-action 'none'",
            "page ui://b of poll: the page has no policy",
        ];
        let found = policies(&lines);
        let expected = "default-src 'none'; form-action 'none'".to_owned();
        assert_eq!(found, [("direct-2025-11-25".to_owned(), expected)].into());
    }

    /// The pins contain no URLs, so that npm can use any registry.
    #[test]
    fn pins_name_no_registry() {
        let source = crate::workspace_root().join("tests").join("apps");
        for pin in PINS {
            let text = fs::read_to_string(source.join(pin)).expect("a pin");
            assert!(!text.contains("://"), "{pin}");
        }
    }
}
