//! `manifest.json` of a bundle (MCPB 0.3): what the bundle's programs are, how a client starts one, and what it offers.

use std::collections::BTreeMap;
use std::path::{Component, MAIN_SEPARATOR_STR, Path};

use anyhow::{Context, bail};
use serde_json::{Map, Value, json};

/// System that a program is built for, as manifests name it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Platform {
    Linux,
    Darwin,
    Win32,
}

impl Platform {
    /// Returns the system of this machine.
    ///
    /// # Errors
    /// Returns an error if manifests have no name for it.
    pub fn of_machine() -> anyhow::Result<Self> {
        match std::env::consts::OS {
            "linux" => Ok(Self::Linux),
            "macos" => Ok(Self::Darwin),
            "windows" => Ok(Self::Win32),
            other => bail!("bundles are for Linux, macOS and Windows, and this is {other}"),
        }
    }

    pub fn parse(name: &str) -> anyhow::Result<Self> {
        let all = [Self::Linux, Self::Darwin, Self::Win32];
        let found = all.into_iter().find(|platform| platform.name() == name);
        found.with_context(|| format!("`{name}` is not a platform; write linux, darwin or win32"))
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::Linux => "linux",
            Self::Darwin => "darwin",
            Self::Win32 => "win32",
        }
    }

    /// Returns the file name of a program.
    pub fn file_name(self, program: &str) -> String {
        match self {
            Self::Win32 => format!("{program}.exe"),
            Self::Linux | Self::Darwin => program.to_owned(),
        }
    }
}

/// The first words and the environment with which a client starts a server.
#[derive(Debug, PartialEq, Eq)]
pub struct Launch {
    pub arguments: Vec<String>,
    pub env: BTreeMap<String, String>,
}

/// Manifest whose members that nothing here is about stay as they are.
#[derive(Debug)]
pub struct Manifest(Map<String, Value>);

impl Manifest {
    /// Parses a manifest, and checks what all else relies on.
    ///
    /// # Errors
    /// Returns an error if it is no JSON object, no manifest of this format, or that of a server which is no binary.
    pub fn parse(text: &str) -> anyhow::Result<Self> {
        let members: Map<String, Value> = serde_json::from_str(text)?;
        let version = members.get("manifest_version").and_then(Value::as_str);
        if !version.is_some_and(|version| ["0.1", "0.2", "0.3", "0.4"].contains(&version)) {
            bail!("`manifest_version` must be a version of MCPB, such as \"0.3\"");
        }
        let is_text = |value: Option<&Value>| value.is_some_and(Value::is_string);
        for member in ["name", "description"] {
            if !is_text(members.get(member)) {
                bail!("`{member}` must be a string");
            }
        }
        if !is_text(members.get("author").and_then(|author| author.get("name"))) {
            bail!("`author.name` must be a string");
        }
        let server = members.get("server").and_then(Value::as_object);
        let server = server.context("`server` must be an object")?;
        if server.get("type").and_then(Value::as_str) != Some("binary") {
            bail!("`server.type` must be \"binary\": the program of a package of Cargo is packed");
        }
        match server.get("mcp_config") {
            None | Some(Value::Object(_)) => {}
            Some(_) => bail!("`server.mcp_config` must be an object"),
        }
        if members.contains_key("localization") {
            bail!(
                "`localization` is not supported; leave it out, or pack the bundle by `mcpb pack`"
            );
        }
        Ok(Self(members))
    }

    /// Returns the files in the folder of the package that the manifest names: icons and pictures.
    ///
    /// # Errors
    /// Returns an error for a path that leads out of the folder.
    pub fn files(&self) -> anyhow::Result<Vec<String>> {
        let items = |name: &str| self.0.get(name).and_then(Value::as_array);
        let icons = items("icons").into_iter().flatten();
        let icons = icons.filter_map(|icon| icon.get("src"));
        let pictures = items("screenshots").into_iter().flatten();
        let named = self.0.get("icon").into_iter().chain(icons).chain(pictures);
        let mut files = Vec::new();
        for path in named.filter_map(Value::as_str) {
            if path.contains("://") || files.iter().any(|known| known == path) {
                continue;
            }
            let mut parts = Path::new(path).components();
            if path.is_empty() || !parts.all(|part| matches!(part, Component::Normal(_))) {
                bail!("`{path}` must be a file in the folder of the package");
            }
            // The bundle has these names for the manifest and the programs.
            if path == "manifest.json" || Path::new(path).starts_with("server") {
                bail!("`{path}` is a name that the bundle itself uses; rename the file");
            }
            files.push(path.to_owned());
        }
        Ok(files)
    }

    /// Sets the version, and the programs with their paths in the bundle; the first is that of this machine.
    pub fn set_programs(&mut self, version: &str, programs: &[(Platform, String)]) {
        self.0.insert("version".to_owned(), version.into());
        let mut platforms: Vec<Platform> = programs.iter().map(|(platform, _)| *platform).collect();
        platforms.sort();
        let platforms: Vec<&str> = platforms.into_iter().map(Platform::name).collect();
        object(&mut self.0, "compatibility").insert("platforms".to_owned(), json!(platforms));
        let Some(((_, first), others)) = programs.split_first() else {
            return;
        };
        let server = object(&mut self.0, "server");
        server.insert("entry_point".to_owned(), json!(first));
        let config = object(server, "mcp_config");
        config.insert("command".to_owned(), json!(in_bundle(first)));
        if others.is_empty() {
            return;
        }
        let overrides = object(config, "platform_overrides");
        for (platform, path) in others {
            object(overrides, platform.name()).insert("command".to_owned(), json!(in_bundle(path)));
        }
    }

    /// Sets what the server offers. Prompts have texts of their own in a manifest, which a server makes when they are asked for.
    pub fn set_offers(&mut self, tools: Vec<Value>, has_prompts: bool) {
        self.0.insert("tools".to_owned(), Value::Array(tools));
        if has_prompts {
            self.0.insert("prompts_generated".to_owned(), true.into());
        }
    }

    /// Returns how a client starts the server of a bundle that is unpacked in `folder`, with these settings of the user.
    ///
    /// # Errors
    /// Returns an error if an argument or a variable needs a setting that has no value.
    pub fn launch(
        &self,
        platform: Platform,
        folder: &Path,
        settings: &BTreeMap<String, String>,
    ) -> anyhow::Result<Launch> {
        let config = self
            .0
            .get("server")
            .and_then(|server| server.get("mcp_config"));
        let own = config
            .and_then(|config| config.get("platform_overrides"))
            .and_then(|overrides| overrides.get(platform.name()));
        let arguments = [own, config].into_iter().flatten();
        let arguments = arguments.filter_map(|config| config.get("args")?.as_array());
        let arguments = arguments.take(1).flatten().filter_map(Value::as_str);
        let replace = |text: &str| self.replace(text, folder, settings);
        let mut env = BTreeMap::new();
        for config in [config, own].into_iter().flatten() {
            let variables = config.get("env").and_then(Value::as_object);
            for (name, value) in variables.into_iter().flatten() {
                env.insert(name.clone(), replace(value.as_str().unwrap_or_default())?);
            }
        }
        Ok(Launch {
            arguments: arguments.map(replace).collect::<Result<_, _>>()?,
            env,
        })
    }

    /// Replaces `${…}` in a text as clients do; what is no name of theirs stays.
    fn replace(
        &self,
        text: &str,
        folder: &Path,
        settings: &BTreeMap<String, String>,
    ) -> anyhow::Result<String> {
        let mut replaced = String::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once("${") {
            replaced.push_str(before);
            let Some((name, after)) = after.split_once('}') else {
                replaced.push_str("${");
                rest = after;
                continue;
            };
            rest = after;
            match name.split_once('.') {
                Some(("user_config", setting)) => {
                    replaced.push_str(&self.setting(setting, settings)?);
                }
                _ => match name {
                    "__dirname" => replaced.push_str(&folder.to_string_lossy()),
                    "/" | "pathSeparator" => replaced.push_str(MAIN_SEPARATOR_STR),
                    "HOME" | "DESKTOP" | "DOCUMENTS" | "DOWNLOADS" => {
                        let home = std::env::home_dir().context("there is no home directory")?;
                        let folder = match name {
                            "DESKTOP" => home.join("Desktop"),
                            "DOCUMENTS" => home.join("Documents"),
                            "DOWNLOADS" => home.join("Downloads"),
                            _ => home,
                        };
                        replaced.push_str(&folder.to_string_lossy());
                    }
                    _ => replaced.push_str(&format!("${{{name}}}")),
                },
            }
        }
        Ok(replaced + rest)
    }

    /// Returns the value of a setting of the user: the given one, or its default.
    fn setting(&self, name: &str, settings: &BTreeMap<String, String>) -> anyhow::Result<String> {
        if let Some(value) = settings.get(name) {
            return Ok(value.clone());
        }
        let described = self.0.get("user_config").and_then(|all| all.get(name));
        let described =
            described.with_context(|| format!("`user_config` has no setting `{name}`"))?;
        match described.get("default") {
            Some(Value::String(value)) => Ok(value.clone()),
            Some(value @ (Value::Bool(_) | Value::Number(_))) => Ok(value.to_string()),
            _ => bail!(
                "the setting `{name}` has no default; give it a value by --config {name}=VALUE"
            ),
        }
    }

    /// Returns the text of the manifest.
    ///
    /// # Errors
    /// Returns an error if it cannot be written as JSON.
    pub fn to_text(&self) -> anyhow::Result<String> {
        Ok(serde_json::to_string_pretty(&self.0)? + "\n")
    }
}

/// Returns a path of the bundle as commands name it.
fn in_bundle(path: &str) -> String {
    format!("${{__dirname}}/{path}")
}

/// Returns the object that is a member, which is made where there is none.
fn object<'m>(members: &'m mut Map<String, Value>, name: &str) -> &'m mut Map<String, Value> {
    let value = members.entry(name).or_insert_with(|| json!({}));
    if !value.is_object() {
        *value = json!({});
    }
    match value {
        Value::Object(members) => members,
        _ => unreachable!("an object was put there"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a manifest with these members besides those that are required.
    fn manifest(members: &Value) -> anyhow::Result<Manifest> {
        let mut all = json!({
            "manifest_version": "0.3", "name": "n", "version": "0", "description": "d",
            "author": {"name": "a"}, "server": {"type": "binary"},
        });
        let (Some(all_members), Some(members)) = (all.as_object_mut(), members.as_object()) else {
            panic!("objects");
        };
        all_members.extend(members.clone());
        Manifest::parse(&all.to_string())
    }

    #[test]
    fn faulty_manifests_are_refused() {
        for (members, expected) in [
            (
                json!({"manifest_version": "9"}),
                "`manifest_version` must be",
            ),
            (json!({"name": 1}), "`name` must be a string"),
            (json!({"author": "me"}), "`author.name` must be a string"),
            (json!({"server": {"type": "node"}}), "must be \"binary\""),
            (
                json!({"server": {"type": "binary", "mcp_config": 1}}),
                "must be an object",
            ),
            (json!({"localization": {}}), "not supported"),
        ] {
            let error = manifest(&members).expect_err(expected);
            assert!(error.to_string().contains(expected), "{error}");
        }
        assert!(Manifest::parse("[]").is_err());
        for path in ["../icon.png", "/etc/passwd", "a/../../b", ""] {
            let error = manifest(&json!({"icon": path}))
                .expect("a manifest")
                .files();
            assert!(error.is_err(), "{path}");
        }
    }

    /// Files of the package are packed once; those at URLs are not.
    #[test]
    fn named_files_are_found() {
        let members = json!({
            "icon": "icon.png",
            "icons": [{"src": "icon.png"}, {"src": "icons/dark.png"}, {"src": "https://a/icon.png"}],
            "screenshots": ["one.png"],
        });
        let files = manifest(&members).expect("a manifest").files();
        assert_eq!(
            files.expect("paths"),
            ["icon.png", "icons/dark.png", "one.png"]
        );
    }

    /// Each platform has a command; arguments and variables of the manifest stay.
    #[test]
    fn programs_of_several_platforms_are_named() {
        let server = json!({"type": "binary", "mcp_config": {
            "args": ["--data", "${__dirname}${/}x"], "env": {"A": "1", "KEY": "${user_config.key}"},
            "platform_overrides": {"win32": {"args": [], "env": {"A": "2"}}},
        }});
        let config = json!({"key": {"type": "string"}, "size": {"type": "number", "default": 3}});
        let mut manifest =
            manifest(&json!({"server": server, "user_config": config})).expect("a manifest");
        let programs = [
            (Platform::Linux, "server/n".to_owned()),
            (Platform::Win32, "server/win32/n.exe".to_owned()),
        ];
        manifest.set_programs("1.2.3", &programs);
        manifest.set_offers(vec![json!({"name": "t"})], true);
        let value: Value = serde_json::from_str(&manifest.to_text().expect("JSON")).expect("JSON");
        assert_eq!(value["version"], "1.2.3");
        assert_eq!(value["server"]["entry_point"], "server/n");
        let config = &value["server"]["mcp_config"];
        assert_eq!(config["command"], "${__dirname}/server/n");
        let windows = &config["platform_overrides"]["win32"];
        assert_eq!(windows["command"], "${__dirname}/server/win32/n.exe");
        assert_eq!(
            value["compatibility"]["platforms"],
            json!(["linux", "win32"])
        );
        assert_eq!(value["prompts_generated"], true);

        let folder = Path::new("/b");
        let error = manifest.launch(Platform::Linux, folder, &BTreeMap::new());
        let error = error.expect_err("there is no key").to_string();
        assert!(error.contains("--config key=VALUE"), "{error}");
        let key = BTreeMap::from([("key".to_owned(), "k".to_owned())]);
        let launch = manifest.launch(Platform::Linux, folder, &key).expect("it");
        assert_eq!(
            launch.arguments,
            ["--data", &format!("/b{MAIN_SEPARATOR_STR}x")]
        );
        assert_eq!(launch.env["KEY"], "k");
        let launch = manifest.launch(Platform::Win32, folder, &key).expect("it");
        assert_eq!(launch.arguments, [""; 0]);
        assert_eq!(launch.env["A"], "2");
        let replace = |text| manifest.replace(text, folder, &key).expect("a text");
        assert_eq!(replace("a${user_config.size}${other}${"), "a3${other}${");
        assert!(replace("${DESKTOP}").ends_with("Desktop"));
    }
}
