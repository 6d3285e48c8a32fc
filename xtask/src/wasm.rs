//! `cargo xtask wasm`: builds and tests the WebAssembly targets: the crates that need no operating system, and the
//! program `mcp-exact` on the page "Try it" of the documentation site.
//!
//! Tests run with the WASI support of node; the page is opened in headless Chromium from a file server on 127.0.0.1.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use anyhow::{Context, bail};
use clap::ValueEnum;

use crate::{book, page};

/// Target without an operating system, as in browsers.
const BARE_TARGET: &str = "wasm32-unknown-unknown";
/// Compilation target of tests and of the executable on the page.
pub(crate) const WASI_TARGET: &str = "wasm32-wasip1";
/// Crates that must build for a target without an operating system.
const PORTABLE_CRATES: [&str; 5] = [
    "mcp-exact-wire",
    "mcp-exact-revisions",
    "mcp-exact-model",
    "mcp-exact-convert",
    "mcp-exact-session",
];
/// Packages whose tests run as WebAssembly; other test packages need threads or processes.
const TEST_PACKAGES: [&str; 1] = ["mcp-exact-tests-messages"];
/// Maximum size of the compressed program, in bytes.
const MAX_SIZE: usize = 900_000;
/// Script that runs a WASI executable under node.
const WASI_RUNNER: &str = "xtask/src/wasm/run.mjs";
/// Script with the checks of the page.
const CHECKS_SCRIPT: &str = include_str!("wasm/checks.js");
/// Time limit for the checks of the page.
const PAGE_TIMEOUT: Duration = Duration::from_secs(120);

/// Arguments of `cargo xtask wasm`.
#[derive(clap::Args)]
pub struct Arguments {
    /// Run only this step.
    #[arg(long, value_name = "STEP")]
    only: Option<Step>,
    /// Write a screenshot of the page for each screen size to this folder.
    #[arg(long, value_name = "FOLDER")]
    pictures: Option<PathBuf>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Step {
    /// Build the crates for a target without operating system.
    Build,
    /// Run the tests under node.
    Test,
    /// Build the site, and test its page in Chromium.
    Page,
}

/// Runs the steps.
///
/// # Errors
/// Returns an error if a step fails, or a required tool is missing.
pub fn run(root: &Path, arguments: &Arguments) -> anyhow::Result<()> {
    let is_wanted = |step| arguments.only.is_none_or(|only| only == step);
    if is_wanted(Step::Build) {
        let mut build = cargo(root, "build", BARE_TARGET);
        let types = released_revisions(root)?
            .into_iter()
            .map(|id| format!("mcp-{id}"));
        add_packages(
            &mut build,
            PORTABLE_CRATES.map(str::to_owned).into_iter().chain(types),
        );
        run_to_success(build)?;
    }
    if is_wanted(Step::Test) {
        let mut test = cargo(root, "test", WASI_TARGET);
        let runner = format!("node --no-warnings {}", root.join(WASI_RUNNER).display());
        test.env("CARGO_TARGET_WASM32_WASIP1_RUNNER", runner);
        // Doc tests have no runner.
        test.args(["--no-fail-fast", "--lib", "--tests"]);
        add_packages(
            &mut test,
            PORTABLE_CRATES
                .into_iter()
                .chain(TEST_PACKAGES)
                .map(str::to_owned),
        );
        run_to_success(test)?;
    }
    if is_wanted(Step::Page) {
        book::run(root)?;
        check_size(&build_program(root)?)?;
        test_page(root, arguments.pictures.as_deref())?;
    }
    Ok(())
}

/// Returns true if the standard library for the executable on the page is installed.
pub(crate) fn has_target() -> bool {
    let output = Command::new("rustc")
        .args(["--print", "target-libdir", "--target", WASI_TARGET])
        .output();
    output.is_ok_and(|output| {
        let folder = String::from_utf8_lossy(&output.stdout);
        output.status.success() && Path::new(folder.trim()).is_dir()
    })
}

/// Builds the executable for the page and returns its path.
///
/// # Errors
/// Returns an error if it does not build.
pub fn build_program(root: &Path) -> anyhow::Result<PathBuf> {
    let mut build = cargo(root, "build", WASI_TARGET);
    build.args(["--profile", "wasm", "--package", "mcp-exact-cli"]);
    build.args(["--no-default-features", "--features"]);
    build.arg(released_revisions(root)?.join(","));
    run_to_success(build)?;
    Ok(root
        .join("target")
        .join(WASI_TARGET)
        .join("wasm/mcp-exact.wasm"))
}

/// Checks the compressed size of the executable, as web servers send it.
fn check_size(program: &Path) -> anyhow::Result<()> {
    let script = "const bytes = require('fs').readFileSync(process.argv[1]); \
                  console.log(require('zlib').brotliCompressSync(bytes).length)";
    let output = Command::new("node")
        .args(["-e", script])
        .arg(program)
        .output()
        .context("cannot run node; install version 20 or later")?;
    let text = String::from_utf8(output.stdout)?;
    let size: usize = text.trim().parse().context("node does not compress")?;
    println!("{}: {size} bytes by brotli", program.display());
    if size > MAX_SIZE {
        bail!(
            "the compressed program may have {MAX_SIZE} bytes; a feature or a dependency is too large"
        );
    }
    Ok(())
}

/// Returns the released revisions.
fn released_revisions(root: &Path) -> anyhow::Result<Vec<String>> {
    let list = fs::read_to_string(root.join("schema/revisions.toml"))?;
    let revisions = codegen::revisions(&list)?.into_iter();
    let released = revisions.filter(|revision| !revision.is_draft());
    Ok(released.map(|revision| revision.id).collect())
}

/// Returns the command that runs cargo for a target.
fn cargo(root: &Path, command: &str, target: &str) -> Command {
    let mut cargo = Command::new(env!("CARGO"));
    cargo
        .args([command, "--locked", "--target", target])
        .current_dir(root);
    cargo
}

/// Adds packages to a command of cargo.
fn add_packages(command: &mut Command, packages: impl Iterator<Item = String>) {
    for package in packages {
        command.args(["--package", &package]);
    }
}

/// Runs cargo; returns an error with a hint if cargo fails.
fn run_to_success(mut command: Command) -> anyhow::Result<()> {
    let status = command.status().context("cannot start cargo")?;
    if status.success() {
        return Ok(());
    }
    bail!(
        "cargo failed ({status}); if the standard library is missing: rustup target add {BARE_TARGET} {WASI_TARGET}"
    )
}

/// Tests the page in Chromium, on a large and on a small screen.
fn test_page(root: &Path, pictures: Option<&Path>) -> anyhow::Result<()> {
    let server = Server::start(root.join(book::SITE_FOLDER))?;
    let mut failed = 0;
    for (width, height) in page::SCREENS {
        println!("{width} × {height}");
        for line in server.receive_results(width, height)?.lines() {
            println!("  {line}");
            failed += usize::from(!line.starts_with("ok"));
        }
        if let Some(pictures) = pictures {
            fs::create_dir_all(pictures)?;
            let file = pictures.join(format!("try-{width}.png"));
            server.take_screenshot(width, height, &file)?;
        }
    }
    match failed {
        0 => Ok(()),
        _ => bail!("{failed} checks of the page failed"),
    }
}

/// File server for the site, which adds the checks to the page and receives their results.
struct Server {
    /// Host and port of the server.
    address: String,
    /// Results that the checks have posted.
    results: mpsc::Receiver<String>,
}

impl Server {
    /// Starts the server for the files of a site.
    fn start(site: PathBuf) -> anyhow::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = listener.local_addr()?.to_string();
        let (sender, results) = mpsc::channel();
        thread::spawn(move || {
            for connection in listener.incoming().flatten() {
                let (site, sender) = (site.clone(), sender.clone());
                // A browser that closes a connection early has lost nothing.
                thread::spawn(move || serve(connection, &site, &sender).ok());
            }
        });
        Ok(Self { address, results })
    }

    /// Opens the page with the checks, and returns the results that the checks post.
    fn receive_results(&self, width: u32, height: u32) -> anyhow::Result<String> {
        let profile = tempfile::tempdir()?;
        let mut chromium = page::chromium_command(width, height);
        chromium
            .arg(format!("--user-data-dir={}", profile.path().display()))
            // Keeps Chromium open.
            .arg("--remote-debugging-port=0")
            .arg(self.url("checked", width, height))
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let _running = ChromiumProcess(chromium.spawn().context(page::CHROMIUM_HINT)?);
        let results = self.results.recv_timeout(PAGE_TIMEOUT);
        results.context("the checks of the page did not run to their end")
    }

    /// Writes a screenshot of the page on a screen of this size.
    fn take_screenshot(&self, width: u32, height: u32, file: &Path) -> anyhow::Result<()> {
        let status = page::chromium_command(width, height)
            .arg("--virtual-time-budget=20000")
            .arg(format!("--screenshot={}", file.display()))
            .arg(self.url("plain", width, height))
            .stderr(Stdio::null())
            .status()
            .context(page::CHROMIUM_HINT)?;
        if status.success() {
            Ok(())
        } else {
            bail!("chromium failed ({status})")
        }
    }

    /// Returns the URL of a document that contains the page `page` in a frame of this size, because Chromium windows
    /// cannot be as narrow as a phone.
    fn url(&self, page: &str, width: u32, height: u32) -> String {
        format!("http://{}/{page}/{width}/{height}", self.address)
    }
}

/// Process of Chromium, killed on drop.
struct ChromiumProcess(Child);

impl Drop for ChromiumProcess {
    fn drop(&mut self) {
        // If this fails, the process has already ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Answers one HTTP request: receives the results of the checks, or returns a file of the site.
fn serve(
    mut connection: TcpStream,
    site: &Path,
    results: &mpsc::Sender<String>,
) -> anyhow::Result<()> {
    let mut reader = BufReader::new(connection.try_clone()?);
    let mut head = Vec::new();
    let mut length = 0;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        let line = line.trim_end().to_owned();
        if line.is_empty() {
            break;
        }
        if let Some((name, value)) = line.split_once(':')
            && name.eq_ignore_ascii_case("content-length")
        {
            length = value.trim().parse()?;
        }
        head.push(line);
    }
    let request = head.first().context("there is no request")?;
    let path = request.split(' ').nth(1).context("there is no path")?;
    let (kind, body) = match path.split('/').collect::<Vec<_>>()[..] {
        ["", "results"] => {
            let mut body = vec![0; length];
            reader.read_exact(&mut body)?;
            results.send(String::from_utf8(body)?)?;
            ("text/plain", Vec::new())
        }
        ["", page @ ("checked" | "plain"), width, height] => (
            "text/html",
            format!(
                "<!doctype html><body style=\"margin:0\"><iframe src=\"/{page}.html\" \
                 style=\"border:0;width:{width}px;height:{height}px\"></iframe>"
            )
            .into_bytes(),
        ),
        ["", "checked.html"] => {
            let page = fs::read_to_string(site.join("try.html"))?;
            let checks = format!("<script>\n{CHECKS_SCRIPT}</script>\n</body>");
            ("text/html", page.replace("</body>", &checks).into_bytes())
        }
        ["", "plain.html"] => ("text/html", fs::read(site.join("try.html"))?),
        _ => {
            let file = site.join(
                path.trim_start_matches('/')
                    .split('?')
                    .next()
                    .unwrap_or_default(),
            );
            let mut body = Vec::new();
            File::open(&file)?.read_to_end(&mut body)?;
            (media_type(&file), body)
        }
    };
    let length = body.len();
    write!(
        connection,
        "HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n"
    )?;
    Ok(connection.write_all(&body)?)
}

/// Returns the media type of a file.
fn media_type(file: &Path) -> &'static str {
    match file.extension().and_then(|name| name.to_str()) {
        Some("css") => "text/css",
        Some("html") => "text/html",
        Some("js") => "text/javascript",
        Some("svg") => "image/svg+xml",
        Some("wasm") => "application/wasm",
        _ => "application/octet-stream",
    }
}
