//! `cargo xtask interop --starts`: how long the first list of tools takes in front of many real servers on standard streams,
//! beside the slowest of them alone, and that of a second client.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow, bail};

use super::bridge;
use super::install::InstalledPeer;
use super::peers::{Language, Peer, Transport};

/// Number of servers behind the gateway.
const SERVERS: usize = 10;

/// Number of runs, of which the median is printed.
const RUNS: usize = 5;

/// Messages of a client that lists the tools.
const MESSAGES: [&str; 3] = [
    r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"starts","version":"1"}}}"#,
    r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
    r#"{"jsonrpc":"2.0","id":2,"method":"tools/list"}"#,
];

/// Measures the starts of the peers' servers, alone and behind the gateway, and prints them.
pub(super) fn run(root: &Path, chosen: &[(&Peer, InstalledPeer)]) -> anyhow::Result<()> {
    let servers: Vec<(String, Vec<OsString>)> = chosen
        .iter()
        .filter(|(peer, _)| peer.language != Language::Rust)
        .filter_map(|(peer, installed)| {
            let mut modes = peer.server.iter();
            let mode = modes.find(|mode| mode.transports.contains(&Transport::Stdio))?;
            let name = peer.name.replace('.', "-");
            Some((name, installed.server(mode, Transport::Stdio)))
        })
        .take(SERVERS)
        .collect();
    if servers.len() < SERVERS {
        bail!(
            "{} servers are not enough; select no peers by --only",
            servers.len()
        );
    }
    let mut slowest = Duration::ZERO;
    for (name, command) in &servers {
        let alone = median(|| first_list(command, ""))?;
        println!("{name} alone: {} ms", alone.as_millis());
        slowest = slowest.max(alone);
    }
    // Servers that start at the same time share the processors.
    let together = median(|| all_at_once(&servers))?;
    println!(
        "all at once, without a gateway: {} ms",
        together.as_millis()
    );
    let gateway = bridge::build(root)?;
    let file = root.join("target").join("interop").join("starts.toml");
    fs::write(&file, settings(&servers)?)?;
    let command = [gateway.clone().into(), "bridge".into(), "--config".into()];
    let mut command: Vec<OsString> = command.into();
    command.push(file.into_os_string());
    // A list with all of them.
    let last = format!("{}__", servers[SERVERS - 1].0);
    let first = median(|| first_list(&command, &last))?;
    command.extend(["--listen".into(), "127.0.0.1:0".into()]);
    let second = second_client(&command, &gateway)?;
    println!(
        "{SERVERS} servers behind the gateway: first list {} ms, {:.2} times the slowest alone, {:.2} times all at once; second \
         client {} ms",
        first.as_millis(),
        first.as_secs_f64() / slowest.as_secs_f64(),
        first.as_secs_f64() / together.as_secs_f64(),
        second.as_millis()
    );
    Ok(())
}

/// Returns the time until each of the servers, started at the same time, has listed its tools.
fn all_at_once(servers: &[(String, Vec<OsString>)]) -> anyhow::Result<Duration> {
    let begun = Instant::now();
    std::thread::scope(|scope| {
        let listing: Vec<_> = servers
            .iter()
            .map(|(_, command)| scope.spawn(|| first_list(command, "").map(|_| begun.elapsed())))
            .collect();
        let mut last = Duration::ZERO;
        for listed in listing {
            let listed = listed.join();
            let listed = listed.map_err(|_| anyhow!("a measurement panicked"))?;
            last = last.max(listed?);
        }
        Ok(last)
    })
}

/// Returns the settings of a gateway in front of the servers.
fn settings(servers: &[(String, Vec<OsString>)]) -> anyhow::Result<String> {
    let mut text = "list-within = 60\n".to_owned();
    for (name, command) in servers {
        let words = command.iter().map(|word| word.to_str());
        let words: Option<Vec<&str>> = words.collect();
        let words = words.context("a path is not text")?;
        writeln!(
            text,
            "\n[servers.{name}]\ncommand = {:?}\nargs = {:?}",
            words[0],
            &words[1..]
        )?;
    }
    Ok(text)
}

/// Returns the median of some measurements.
fn median(measure: impl Fn() -> anyhow::Result<Duration>) -> anyhow::Result<Duration> {
    let all = (0..RUNS).map(|_| measure());
    let mut all = all.collect::<anyhow::Result<Vec<_>>>()?;
    all.sort();
    Ok(all[RUNS / 2])
}

/// Process that is ended when the value is dropped.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Returns the time from the start of a command to its list of tools, which contains `expected`.
fn first_list(command: &[OsString], expected: &str) -> anyhow::Result<Duration> {
    let begun = Instant::now();
    let process = Command::new(&command[0])
        .args(&command[1..])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn();
    let mut process = Running(process.with_context(|| format!("cannot start {command:?}"))?);
    let mut input = process.0.stdin.take().context("no standard input")?;
    let output = process.0.stdout.take().context("no standard output")?;
    let mut lines = BufReader::new(output).lines();
    writeln!(input, "{}", MESSAGES[0])?;
    for (id, next) in [("\"id\":1", &MESSAGES[1..]), ("\"id\":2", &[][..])] {
        let answer = lines.find(|line| {
            let line = line.as_deref().unwrap_or_default().replace(' ', "");
            line.contains(id)
        });
        let answer = answer.with_context(|| format!("{command:?} gave no answer"))??;
        if next.is_empty() && !(answer.contains("\"tools\"") && answer.contains(expected)) {
            bail!("{command:?} lists other tools: {answer}");
        }
        for message in next {
            writeln!(input, "{message}")?;
        }
    }
    Ok(begun.elapsed())
}

/// Returns the time that a second client needs, the start of its program included, once a first one has been served.
fn second_client(command: &[OsString], program: &Path) -> anyhow::Result<Duration> {
    let gateway = Command::new(&command[0])
        .args(&command[1..])
        .stderr(Stdio::piped())
        .spawn();
    let mut gateway = Running(gateway.context("cannot start the gateway")?);
    let errors = gateway.0.stderr.take().context("no standard error")?;
    let mut lines = BufReader::new(errors).lines();
    let line = lines.find(|line| {
        line.as_deref()
            .is_ok_and(|line| line.contains("listening at"))
    });
    let line = line.context("the gateway does not listen")??;
    let mut words = line.split_whitespace();
    let url = words.find(|word| word.starts_with("http://"));
    let url = url.context("no URL")?.trim_end_matches(',').to_owned();
    std::thread::spawn(move || lines.for_each(drop));
    let inspect = || {
        let begun = Instant::now();
        let inspected = Command::new(program)
            .args(["inspect", "-r", "2025-06-18", &url])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status();
        let status = inspected.context("cannot start the client")?;
        if !status.success() {
            bail!("the client failed");
        }
        Ok(begun.elapsed())
    };
    inspect()?;
    // The processes for the next client have started meanwhile.
    std::thread::sleep(Duration::from_secs(20));
    inspect()
}
