//! `mcp-exact bundle`: packs the program of a package of Cargo as an MCP bundle (MCPB), which desktop clients install.
//!
//! The bundle is first laid out in a folder, from which the server is started as a client does, and asked for its tools.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::io::{Cursor, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use clap::Args;
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, DateTime, ZipWriter};

use super::file::write_anew;
use super::manifest::{Manifest, Platform};
use super::package::Package;
use super::server_json::{self, Update};
use crate::Outcome;
use crate::client::{Settings, add_hint, run_with_server};
use crate::output::{Painter, Style};
use crate::terminal::{print_to_stderr, stdout};
use crate::text::{Untrusted, text};

/// Name of the manifest, in the package and in the bundle.
const MANIFEST: &str = "manifest.json";
/// Folder of the programs in the bundle.
const PROGRAMS: &str = "server";
/// Permissions of programs and of other files in the bundle.
const MODES: [u32; 2] = [0o755, 0o644];

/// The arguments of `mcp-exact bundle`.
#[derive(Args)]
#[command(after_help = "\
Example: mcp-exact bundle

In the folder of a package of Cargo with a manifest.json, as `mcp-exact new` writes it. Builds the release, starts the server from \
the bundle as a client does, and adds its tools, the version of Cargo.toml and the platforms to the manifest in the bundle. If \
there is a server.json, version and checksum are written into it. Icons and screenshots that the manifest names are packed.

Exit code: 0 the bundle is written, 2 wrong usage, or the package does not build, or the server does not start.")]
pub struct Arguments {
    /// Folder of the package.
    #[arg(
        long,
        value_name = "DIR",
        default_value = ".",
        hide_default_value = true
    )]
    path: PathBuf,
    /// Program of the package, if it has several.
    #[arg(long, value_name = "NAME")]
    bin: Option<String>,
    /// Pack a program that is built, for linux, darwin or win32, in place of the one of this machine; once for each platform.
    #[arg(long, value_name = "PLATFORM=FILE", value_parser = parse_binary)]
    binary: Vec<(Platform, PathBuf)>,
    /// Value of a setting (`user_config` of the manifest) with which the server is started here.
    #[arg(long, value_name = "NAME=VALUE", value_parser = parse_setting)]
    config: Vec<(String, String)>,
    /// File of the bundle; NAME.mcpb in the folder of the package without it.
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
}

fn parse_binary(text: &str) -> Result<(Platform, PathBuf), String> {
    let (platform, path) = text
        .split_once('=')
        .ok_or("write PLATFORM=FILE, such as linux=target/release/weather")?;
    let platform = Platform::parse(platform).map_err(|error| error.to_string())?;
    Ok((platform, PathBuf::from(path)))
}

fn parse_setting(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("write NAME=VALUE")?;
    Ok((name.to_owned(), value.to_owned()))
}

/// What a server offers, as a manifest says it.
struct Offers {
    tools: Vec<Value>,
    has_prompts: bool,
}

/// Builds and packs the program.
pub fn run(arguments: &Arguments) -> anyhow::Result<Outcome> {
    let folder = fs::canonicalize(&arguments.path)
        .with_context(|| format!("there is no folder {}", arguments.path.display()))?;
    let text = fs::read_to_string(folder.join(MANIFEST)).with_context(|| {
        format!("cannot read {MANIFEST}, which describes the bundle; `mcp-exact new` writes one")
    })?;
    let mut manifest = Manifest::parse(&text).context(MANIFEST)?;
    let files = manifest.files().context(MANIFEST)?;
    let machine = Platform::of_machine()?;
    let package = Package::read(&folder, arguments.bin.as_deref())?;
    let programs = arguments.programs(machine, &package)?;

    let layout = package.target.join("mcpb").join(&package.program);
    let programs = lay_out(&layout, &folder, &package.program, &programs, &files)?;
    manifest.set_programs(&package.version, &programs);
    let settings: BTreeMap<String, String> = arguments.config.iter().cloned().collect();
    let launch = manifest
        .launch(machine, &layout, &settings)
        .context(MANIFEST)?;
    let mut server = vec![layout.join(&programs[0].1).into_os_string()];
    server.extend(launch.arguments.into_iter().map(OsString::from));
    let env = launch
        .env
        .iter()
        .map(|(name, value)| format!("{name}={value}"));
    let offers = ask(&server, env.collect())?;
    let count = offers.tools.len();
    manifest.set_offers(offers.tools, offers.has_prompts);
    fs::write(layout.join(MANIFEST), manifest.to_text()?)?;

    let bundle = pack(&layout, &programs, &files)?;
    let file_name = format!("{}.mcpb", package.program);
    let output = arguments
        .output
        .clone()
        .unwrap_or_else(|| folder.join(&file_name));
    write_anew(&output, &bundle).with_context(|| format!("cannot write {}", output.display()))?;
    let platforms: Vec<_> = programs
        .iter()
        .map(|(platform, _)| platform.name().into())
        .collect();
    let shown = arguments
        .output
        .as_ref()
        .map(|path| path.display().to_string());
    let title =
        Painter::stdout().paint(Style::Bold, Untrusted(shown.as_ref().unwrap_or(&file_name)));
    stdout().line(&text!(
        "{}: {} {} for {}, tools: {}, {} KiB",
        title,
        Untrusted(&package.program),
        Untrusted(&package.version),
        crate::text::Text::join(platforms, " and "),
        count,
        bundle.len().div_ceil(1024)
    ))?;

    let digest = Sha256::digest(&bundle);
    let sha256: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    stdout().line(&text!("sha256 {}", Untrusted(&sha256)))?;
    let update = server_json::update(&folder, &package.version, &file_name, &sha256)?;
    print_update(&update, &package.version)?;
    Ok(Outcome::Valid)
}

/// Says what became of `server.json`.
fn print_update(update: &Update, version: &str) -> anyhow::Result<()> {
    let warning = Painter::stderr().paint(Style::Yellow, "note");
    match update {
        Update::Missing => return Ok(()),
        Update::NoPackage => print_to_stderr(&text!(
            "{}: server.json has no package of the type mcpb whose URL ends with the name of the bundle; add its checksum by hand",
            warning
        )),
        Update::Written { .. } => stdout().line(&text!(
            "server.json: version {} and the checksum are written",
            Untrusted(version)
        ))?,
    }
    if let Update::Written { name } = update
        && name.starts_with(&format!("io.github.{}/", super::NO_OWNER))
    {
        print_to_stderr(&text!(
            "{}: server.json names the account {}; put yours in its place before you publish it",
            warning,
            super::NO_OWNER
        ));
    }
    Ok(())
}

impl Arguments {
    /// Returns the programs to pack, that of this machine first; builds it if none is given.
    fn programs(
        &self,
        machine: Platform,
        package: &Package,
    ) -> anyhow::Result<Vec<(Platform, PathBuf)>> {
        let mut programs = self.binary.clone();
        if programs.is_empty() {
            return Ok(vec![(machine, package.build()?)]);
        }
        programs.sort_by_key(|(platform, _)| (*platform != machine, *platform));
        if programs[0].0 != machine {
            bail!(
                "--binary: a program for {} is required, too: it is started here and asked for its tools",
                machine.name()
            );
        }
        for pair in programs.windows(2) {
            if pair[0].0 == pair[1].0 {
                bail!("--binary: there are two programs for {}", pair[0].0.name());
            }
        }
        Ok(programs)
    }
}

/// Copies programs and files to where they are in the bundle; returns the paths of the programs in it.
fn lay_out(
    layout: &Path,
    folder: &Path,
    name: &str,
    programs: &[(Platform, PathBuf)],
    files: &[String],
) -> anyhow::Result<Vec<(Platform, String)>> {
    if layout.exists() {
        fs::remove_dir_all(layout)
            .with_context(|| format!("cannot remove {}", layout.display()))?;
    }
    let copy = |from: &Path, to: &str| -> anyhow::Result<()> {
        let to = layout.join(to);
        fs::create_dir_all(to.parent().context("a file is in a folder")?)?;
        fs::copy(from, to).with_context(|| format!("cannot copy {}", from.display()))?;
        Ok(())
    };
    let mut placed = Vec::new();
    for (number, (platform, from)) in programs.iter().enumerate() {
        let file = platform.file_name(name);
        let to = match number {
            0 => format!("{PROGRAMS}/{file}"),
            _ => format!("{PROGRAMS}/{}/{file}", platform.name()),
        };
        copy(from, &to)?;
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            fs::set_permissions(layout.join(&to), fs::Permissions::from_mode(MODES[0]))?;
        }
        placed.push((*platform, to));
    }
    for file in files {
        copy(&folder.join(file), file)?;
    }
    Ok(placed)
}

/// Starts the server as a client does, and asks for what it offers.
fn ask(server: &[OsString], env: Vec<String>) -> anyhow::Result<Offers> {
    let settings = Settings::for_process(env);
    run_with_server(&settings, async {
        let connect = settings.connect(server)?;
        let client = connect.await.map_err(add_hint)?;
        let capabilities = client.capabilities();
        let mut tools = Vec::new();
        if capabilities.get("tools").is_some() {
            for tool in client.tools().all().await.map_err(add_hint)? {
                let mut entry = Map::from_iter([("name".to_owned(), json!(tool.name()))]);
                if let Some(description) = tool.description() {
                    entry.insert("description".to_owned(), description.into());
                }
                tools.push(Value::Object(entry));
            }
        }
        let has_prompts = capabilities.get("prompts").is_some();
        client.close();
        Ok(Offers { tools, has_prompts })
    })
    .context("the server does not answer from the bundle")
}

/// Packs the files of a bundle, in an order and with times that do not change, so that equal programs give equal bundles.
fn pack(
    layout: &Path,
    programs: &[(Platform, String)],
    files: &[String],
) -> anyhow::Result<Vec<u8>> {
    let mut archive = ZipWriter::new(Cursor::new(Vec::new()));
    let programs = programs.iter().map(|(_, path)| (path.as_str(), MODES[0]));
    let files = files.iter().map(|path| (path.as_str(), MODES[1]));
    let all = [(MANIFEST, MODES[1])]
        .into_iter()
        .chain(programs)
        .chain(files);
    for (path, mode) in all {
        let options = SimpleFileOptions::default()
            .compression_method(CompressionMethod::Deflated)
            .last_modified_time(DateTime::default())
            .unix_permissions(mode);
        archive.start_file(path, options)?;
        archive.write_all(&fs::read(layout.join(path))?)?;
    }
    Ok(archive.finish()?.into_inner())
}
