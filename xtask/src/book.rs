//! Builds the documentation site: the pages of `docs/book` by mdBook, the documentation of the crates by rustdoc, the page of
//! all revisions, and the WebAssembly module of the page "Try it".
//!
//! Installs mdBook into `target/tools` if it is missing, and leaves the page "Try it" out if Rust cannot compile to
//! WebAssembly. Writes only to `target`.

mod built;
mod markdown;
mod names;
pub mod pages;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, bail};

use crate::{diff, wasm};
use names::{API_FOLDER, CRATES, Names};

/// Version of mdBook that is installed.
const MDBOOK_VERSION: &str = "0.5.4";
/// Folder of the sources of the site.
const SOURCE_FOLDER: &str = "docs/book";
/// Folder of the sources that mdBook reads: the pages as the book shows them.
const EXPANDED_FOLDER: &str = "target/book-source";
/// Folder of the built site.
pub(crate) const SITE_FOLDER: &str = "target/book";
/// File name of the page of all revisions, which the chapter `revisions.md` links to.
const REVISIONS_PAGE: &str = "revisions-page.html";
/// Page that runs the program in the browser.
const TRY_PAGE: &str = "try.md";
/// WebAssembly module that the page `try.md` runs.
const WASM_FILE: &str = "try/mcp-exact.wasm";
/// Features of the documentation of the crates, in addition to the default ones.
const FEATURES: &str = "mcp-exact/local,mcp-exact/logs,mcp-exact/oauth-client,mcp-exact/oauth-server,mcp-exact/unix,\
    mcp-exact/validation,mcp-exact-redis/tls,mcp-exact-redis/opentelemetry,mcp-exact-transport/compression,\
    mcp-exact-transport/opentelemetry,mcp-exact-transport/reqwest";
/// What rustdoc writes for all crates together: folders, and files beside them.
const SHARED_FOLDERS: [&str; 4] = ["search.index", "static.files", "trait.impl", "type.impl"];

/// What the site is built with, found before anything is built.
struct Tools {
    /// Path of mdBook, unless it has to be installed.
    mdbook: Option<PathBuf>,
    /// True if Rust can compile the program of the page "Try it".
    has_wasm: bool,
}

/// Builds the site.
///
/// # Errors
/// Returns an error if mdBook cannot be installed or refuses the pages, a crate cannot be documented, the program for
/// browsers cannot be built, or a link leads nowhere.
pub fn run(root: &Path) -> anyhow::Result<()> {
    let begun = Instant::now();
    let tools = Tools::find(root);
    let step = |number: u8, what: &str| {
        println!("[{number}/6 {:>4} s] {what}", begun.elapsed().as_secs());
    };
    let mdbook = match tools.mdbook {
        Some(mdbook) => {
            step(1, &format!("mdBook is there: {}", mdbook.display()));
            mdbook
        }
        None => {
            step(
                1,
                &format!("installing mdBook {MDBOOK_VERSION}, which takes some minutes"),
            );
            install_mdbook(root)?
        }
    };
    step(2, "documentation of the crates by rustdoc");
    let documentation = document_crates(root)?;
    step(3, "pages, with their links");
    let source = expand(root, &documentation, tools.has_wasm)?;
    let site = root.join(SITE_FOLDER);
    build_pages(&mdbook, &source, &site)?;
    step(4, "page of all revisions");
    fs::write(site.join(REVISIONS_PAGE), diff::page(root)?)?;
    copy_documentation(&documentation, &site.join(API_FOLDER))?;
    if tools.has_wasm {
        step(5, "the program for the page \"Try it\"");
        fs::copy(wasm::build_program(root)?, site.join(WASM_FILE))?;
    } else {
        step(
            5,
            "no page \"Try it\": Rust cannot compile to WebAssembly here",
        );
    }
    step(6, "links");
    let dead = built::dead_links(&site)?;
    if !dead.is_empty() {
        let dead: Vec<String> = dead.into_iter().collect();
        bail!("links of the site lead nowhere:\n  {}", dead.join("\n  "));
    }
    println!("{}", site.join("index.html").display());
    Ok(())
}

impl Tools {
    /// Looks for the tools, and says what to install for those that are missing.
    fn find(root: &Path) -> Self {
        let installed = installed_mdbook(root);
        let mdbook = [installed, PathBuf::from("mdbook")]
            .into_iter()
            .find(|program| is_mdbook(program));
        let has_wasm = wasm::has_target();
        if mdbook.is_none() {
            println!(
                "mdBook {MDBOOK_VERSION} is missing: it is installed into target/tools, which needs the network"
            );
        }
        if !has_wasm {
            println!(
                "the target {target} is missing: the site gets no page \"Try it\"; for it: rustup target add {target}",
                target = wasm::WASI_TARGET
            );
        }
        Self { mdbook, has_wasm }
    }
}

/// Returns the path of mdBook in `target/tools`.
fn installed_mdbook(root: &Path) -> PathBuf {
    let name = format!("mdbook{}", std::env::consts::EXE_SUFFIX);
    root.join("target/tools/bin").join(name)
}

/// Returns true if a program is mdBook of the version that is installed.
fn is_mdbook(program: &Path) -> bool {
    let output = Command::new(program)
        .arg("--version")
        .stderr(Stdio::null())
        .output();
    output.is_ok_and(|output| {
        let version = String::from_utf8_lossy(&output.stdout);
        version.trim().ends_with(&format!("v{MDBOOK_VERSION}"))
    })
}

/// Installs mdBook into `target/tools` and returns its path.
fn install_mdbook(root: &Path) -> anyhow::Result<PathBuf> {
    let status = Command::new(env!("CARGO"))
        .args(["install", "--locked", "mdbook", "--version", MDBOOK_VERSION])
        .args(["--no-default-features", "--features", "search", "--root"])
        .arg(root.join("target/tools"))
        .status()
        .context("cannot start cargo")?;
    if status.success() {
        Ok(installed_mdbook(root))
    } else {
        bail!(
            "cannot install mdBook {MDBOOK_VERSION} ({status}); check the network, or put mdbook {MDBOOK_VERSION} on the PATH: \
             https://github.com/rust-lang/mdBook/releases/tag/v{MDBOOK_VERSION}"
        )
    }
}

/// Documents the crates of the workspace and returns the folder of the documentation.
fn document_crates(root: &Path) -> anyhow::Result<PathBuf> {
    let packages = CRATES.map(|library| library.replace('_', "-"));
    let packages = packages.iter().flat_map(|package| ["--package", package]);
    let status = Command::new(env!("CARGO"))
        .args(["doc", "--locked", "--no-deps", "--features", FEATURES])
        .args(packages)
        .current_dir(root)
        .status()
        .context("cannot start cargo")?;
    if !status.success() {
        bail!("rustdoc failed ({status}); the output above says why");
    }
    Ok(root.join("target/doc"))
}

/// Writes the sources that mdBook reads, and returns their folder: the pages with the files that they include, and names in
/// the guides as links. Without the program for browsers, its page is left out.
fn expand(root: &Path, documentation: &Path, has_wasm: bool) -> anyhow::Result<PathBuf> {
    let names = Names::read(documentation)?;
    let folder = root.join(EXPANDED_FOLDER);
    if folder.exists() {
        fs::remove_dir_all(&folder)?;
    }
    copy_folder(&root.join(SOURCE_FOLDER), &folder)?;
    for page in pages::read(root)? {
        // Included files use the same names for other things, such as types of the schema.
        let is_guide = page.files.len() == 1 && page.name.ends_with(".md");
        let mut text = page.text;
        if is_guide {
            text = names.link(&text);
        }
        if !has_wasm {
            let lines = text
                .lines()
                .filter(|line| !line.contains(&format!("({TRY_PAGE})")));
            text = lines.map(|line| format!("{line}\n")).collect();
        }
        fs::write(folder.join("src").join(&page.name), text)?;
    }
    Ok(folder)
}

/// Builds the pages into the folder of the site.
fn build_pages(mdbook: &Path, source: &Path, site: &Path) -> anyhow::Result<()> {
    let status = Command::new(mdbook)
        .arg("build")
        .arg(source)
        .arg("--dest-dir")
        .arg(site)
        .status()
        .context("cannot start mdbook")?;
    if status.success() {
        Ok(())
    } else {
        bail!("mdbook failed ({status}); the output above says why")
    }
}

/// Copies the documentation of the crates into the site, and nothing else that rustdoc has written into the folder before.
fn copy_documentation(from: &Path, to: &Path) -> anyhow::Result<()> {
    for folder in SHARED_FOLDERS.iter().chain(&CRATES) {
        copy_folder(&from.join(folder), &to.join(folder))?;
    }
    for library in CRATES {
        let folder = Path::new("src").join(library);
        copy_folder(&from.join(&folder), &to.join(&folder))?;
    }
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        if entry.file_type()?.is_file() {
            fs::copy(entry.path(), to.join(entry.file_name()))?;
        }
    }
    Ok(())
}

/// Copies a folder with everything in it.
fn copy_folder(from: &Path, to: &Path) -> anyhow::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from).with_context(|| format!("cannot list {}", from.display()))? {
        let entry = entry?;
        let to = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy_folder(&entry.path(), &to)?;
        } else {
            fs::copy(entry.path(), to)?;
        }
    }
    Ok(())
}
