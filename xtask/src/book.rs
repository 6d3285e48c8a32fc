//! Builds the documentation site: the pages of `docs/book` by mdBook, the page of all revisions, and the WebAssembly
//! module of the page "Try it".
//!
//! Installs mdBook into `target/tools` if it is missing. Writes only to `target/book`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, bail};

use crate::{diff, wasm};

/// Version of mdBook that is installed.
const MDBOOK_VERSION: &str = "0.5.4";
/// Folder of the sources of the site.
const SOURCE_FOLDER: &str = "docs/book";
/// Folder of the built site.
pub(crate) const SITE_FOLDER: &str = "target/book";
/// File name of the page of all revisions, which the chapter `revisions.md` links to.
const REVISIONS_PAGE: &str = "revisions-page.html";
/// WebAssembly module that the page `try.md` runs.
const WASM_FILE: &str = "try/mcp-exact.wasm";

/// Builds the site.
///
/// # Errors
/// Returns an error if mdBook cannot be installed or refuses the pages, or the program for browsers cannot be built.
pub fn run(root: &Path) -> anyhow::Result<()> {
    let site = root.join(SITE_FOLDER);
    let status = Command::new(install_mdbook(root)?)
        .arg("build")
        .arg(root.join(SOURCE_FOLDER))
        .arg("--dest-dir")
        .arg(&site)
        .status()
        .context("cannot start mdbook")?;
    if !status.success() {
        bail!("mdbook failed ({status}); the output above says why");
    }
    fs::write(site.join(REVISIONS_PAGE), diff::page(root)?)?;
    fs::copy(wasm::build_program(root)?, site.join(WASM_FILE))?;
    println!("{}", site.join("index.html").display());
    Ok(())
}

/// Returns the path of mdBook in `target/tools`, and installs mdBook if it is missing.
fn install_mdbook(root: &Path) -> anyhow::Result<PathBuf> {
    let place = root.join("target/tools");
    let name = format!("mdbook{}", std::env::consts::EXE_SUFFIX);
    let program = place.join("bin").join(name);
    if program.exists() {
        return Ok(program);
    }
    let status = Command::new(env!("CARGO"))
        .args(["install", "--locked", "mdbook", "--version", MDBOOK_VERSION])
        .args(["--no-default-features", "--features", "search", "--root"])
        .arg(&place)
        .status()
        .context("cannot start cargo")?;
    if status.success() {
        Ok(program)
    } else {
        bail!("cannot install mdbook {MDBOOK_VERSION} ({status}); check the network")
    }
}
