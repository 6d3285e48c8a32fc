//! `cargo xtask page`: tests the page of revisions in headless Chromium: search, filters, rows, keys, and a small
//! screen.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, bail};

use crate::diff;

/// Hint if Chromium is missing.
pub(crate) const CHROMIUM_HINT: &str = "cannot run chromium; install the Debian package `chromium`";
/// Script with the checks of the page.
const CHECKS_SCRIPT: &str = include_str!("page_checks.js");
/// Width and height of a large and of a small screen, in pixels.
pub(crate) const SCREENS: [(u32, u32); 2] = [(1280, 900), (390, 844)];

/// Arguments of `cargo xtask page`.
#[derive(clap::Args)]
pub struct Arguments {
    /// The page to test, as written by `mcp-exact diff --html`; without it, the page is generated.
    #[arg(long, value_name = "FILE")]
    page: Option<PathBuf>,
    /// Write a screenshot for each screen size to this folder.
    #[arg(long, value_name = "FOLDER")]
    pictures: Option<PathBuf>,
}

/// Runs the checks on each screen.
///
/// # Errors
/// Returns an error if there is no Chromium, or a check fails.
pub fn run(root: &Path, arguments: &Arguments) -> anyhow::Result<()> {
    let page = match &arguments.page {
        Some(file) => {
            fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?
        }
        None => diff::page(root)?,
    };
    let folder = tempfile::tempdir()?;
    let checked = folder.path().join("page.html");
    let with_checks = page.replace(
        "</body>",
        &format!("<script>\n{CHECKS_SCRIPT}</script>\n</body>"),
    );
    fs::write(&checked, with_checks)?;
    let plain = folder.path().join("plain.html");
    fs::write(&plain, page)?;
    let mut failed = 0;
    for (width, height) in SCREENS {
        let results = run_checks(&checked, width, height)?;
        println!("{width} × {height}");
        for line in results.lines() {
            println!("  {line}");
            failed += usize::from(!line.starts_with("ok"));
        }
        if let Some(pictures) = &arguments.pictures {
            fs::create_dir_all(pictures)?;
            let file = pictures.join(format!("{width}.png"));
            open_in_chromium(
                &plain,
                width,
                height,
                &[&format!("--screenshot={}", file.display())],
            )?;
        }
    }
    match failed {
        0 => Ok(()),
        _ => bail!("{failed} checks of the page failed"),
    }
}

/// Runs the checks on a screen of this size; returns one line for each check.
fn run_checks(page: &Path, width: u32, height: u32) -> anyhow::Result<String> {
    let document = open_in_chromium(page, width, height, &["--dump-dom"])?;
    let results = document.split("<pre id=\"results\">").nth(1);
    let results = results.and_then(|rest| rest.split("</pre>").next());
    results
        .map(str::to_owned)
        .context("the checks did not run to their end")
}

/// Opens a page in headless Chromium, in a frame of this size, because Chromium windows cannot be as narrow as a phone.
/// Returns the output of Chromium; messages that the page posts to its parent are the results of the checks.
fn open_in_chromium(
    page: &Path,
    width: u32,
    height: u32,
    arguments: &[&str],
) -> anyhow::Result<String> {
    let outer = page.with_extension("frame.html");
    let name = page.file_name().unwrap_or_default().to_string_lossy();
    let frame = format!(
        "<!doctype html><body style=\"margin:0\"><iframe src=\"{name}\" style=\"border:0;width:{width}px;height:{height}px\"></iframe>\
         <script>addEventListener('message', event => {{ const list = document.createElement('pre'); list.id = 'results'; \
         list.textContent = event.data; document.body.append(list) }})</script>"
    );
    fs::write(&outer, frame)?;
    let output = chromium_command(width, height)
        .args([
            "--virtual-time-budget=5000",
            "--allow-file-access-from-files",
        ])
        .args(arguments)
        .arg(format!("file://{}", outer.display()))
        .output()
        .context(CHROMIUM_HINT)?;
    if !output.status.success() {
        bail!(
            "chromium failed: {}",
            String::from_utf8_lossy(&output.stderr)
        );
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Returns the command that starts headless Chromium with a window that fits a frame of this size.
pub(crate) fn chromium_command(width: u32, height: u32) -> Command {
    let mut chromium = Command::new("chromium");
    chromium
        .args([
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--hide-scrollbars",
        ])
        .arg(format!("--window-size={},{}", width.max(500), height + 90));
    chromium
}
