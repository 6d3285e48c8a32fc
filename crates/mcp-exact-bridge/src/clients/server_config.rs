//! Settings of the endpoints that serve the bridge's clients: identity, capabilities and instructions of one server or
//! of many servers.

use std::fmt;
use std::sync::Arc;

use mcp_exact_session::http::{MirroredParam, ToolHeaders};
use mcp_exact_session::{
    ExtensionPolicy, Identity, InputMode, JsonObject, ServerConfig, SessionInfo,
};
use serde_json::{Map, Value};

use crate::around::apps;
use crate::around::live::LiveRules;
use crate::around::names::{Kind, Names};
use crate::around::options::{BridgeError, Options};
use crate::around::search;
use crate::around::skills;
use crate::route::backends::Backends;
use crate::route::server::Server;
use crate::route::translate::{Translation, newest};
use crate::servers::backend::ServerProfile;
use crate::servers::client_side::identity;
use crate::servers::tasks;
use crate::servers::tools::KnownTools;

/// Returns the settings of the endpoints for clients of one server, whose identity and capabilities the bridge
/// presents.
pub(crate) fn config(
    options: &Options,
    server: &SessionInfo,
    is_shared: bool,
    live: &LiveRules,
) -> Result<ServerConfig, BridgeError> {
    let identity = server.implementation.as_ref().and_then(identity);
    let identity = identity.unwrap_or_else(|| options.identity.clone());
    let mut config = config_with(options, identity);
    config.capabilities = capabilities(server, is_shared, live)?;
    add_extensions(&mut config);
    config.instructions = server.instructions.clone();
    Ok(config)
}

/// Returns the settings of the endpoint of one server with credentials per user. What the server is to one user is not shown to
/// others, so the endpoint has the name from the configuration, and any capability.
pub(crate) fn config_of_users(options: &Options, name: &str) -> ServerConfig {
    let mut identity = options.identity.clone();
    identity.title = Some(name.to_owned());
    let mut config = config_with(options, identity);
    config.capabilities = ALL_CAPABILITIES.parse().unwrap_or_default();
    add_extensions(&mut config);
    config
}

/// Returns the settings of the endpoints for clients of many servers.
pub(crate) fn config_of_many(
    options: &Options,
    backends: &[Arc<Server>],
    live: &LiveRules,
) -> Result<ServerConfig, BridgeError> {
    let mut config = config_with(options, options.identity.clone());
    let mut all = Vec::new();
    if options.servers_may_change {
        all.extend(ALL_CAPABILITIES.parse::<JsonObject>());
    }
    let mut instructions = Vec::new();
    for backend in backends {
        let Some(ServerProfile { info, .. }) = backend.cached_profile() else {
            // A server that was not reached yet may have any capability.
            all.extend(ALL_CAPABILITIES.parse::<JsonObject>());
            continue;
        };
        all.push(capabilities(&info, backend.is_shared(), live)?);
        if let Some(text) = info.instructions {
            instructions.push(format!("# {}\n\n{text}", backend.name));
        }
    }
    let skills = skills::joined_settings(all.iter());
    config.capabilities = joined(all.into_iter());
    if let Some(settings) = skills {
        let extensions = config
            .capabilities
            .get("extensions")
            .map(JsonObject::try_from);
        let mut extensions = extensions.and_then(Result::ok).unwrap_or_default();
        extensions.insert(skills::EXTENSION, settings);
        config.capabilities.insert("extensions", extensions);
    }
    if options.rules.extension_methods.is_empty() {
        keep_relayed_extensions(&mut config.capabilities);
    }
    for list in ["tools", "prompts", "resources"] {
        // The bridge announces itself when a server is back whose entries were missing.
        let declared = config.capabilities.view().find(list);
        let declared = declared.and_then(|declared| Some(declared.object()?.to_object()));
        if let Some(mut declared) = declared {
            declared.insert("listChanged", true);
            config.capabilities.insert(list, declared);
        }
    }
    add_extensions(&mut config);
    config.instructions = (!instructions.is_empty()).then(|| instructions.join("\n\n"));
    Ok(config)
}

/// All capabilities that a server can have. The declaration of tasks is harmless for servers without tasks, since each
/// tool states whether its calls may become tasks.
const ALL_CAPABILITIES: &str = r#"{"tools":{"listChanged":true},"prompts":{"listChanged":true},
    "resources":{"listChanged":true,"subscribe":true},"completions":{},"logging":{},
    "tasks":{"list":{},"cancel":{},"requests":{"tools":{"call":{}}}},
    "extensions":{"io.modelcontextprotocol/tasks":{},"io.modelcontextprotocol/skills":{}}}"#;

/// Extensions whose messages are relayed in front of many servers without a rule: tasks by their ids, MCP Apps, whose
/// messages are those of tools and resources, and skills, whose lists are joined.
const RELAYED_EXTENSIONS: [&str; 3] = [tasks::EXTENSION, apps::EXTENSION, skills::EXTENSION];

/// Removes the extensions whose methods are not relayed in front of many servers, so that clients do not call them in vain.
fn keep_relayed_extensions(capabilities: &mut JsonObject) {
    let declared = capabilities.view().find("extensions");
    let Some(declared) = declared.and_then(|declared| declared.object()) else {
        return;
    };
    let all = declared.iter();
    let kept: JsonObject = all
        .filter(|(id, _)| RELAYED_EXTENSIONS.contains(&&**id))
        .map(|(id, settings)| (id, settings.to_json()))
        .collect();
    if kept.is_empty() {
        let others = capabilities.view().iter();
        let others = others.filter(|(name, _)| name != "extensions");
        *capabilities = others
            .map(|(name, value)| (name, value.to_json()))
            .collect();
    } else {
        capabilities.insert("extensions", kept);
    }
}

/// Adds the methods of the extensions that the capabilities declare.
fn add_extensions(config: &mut ServerConfig) {
    if tasks::declares_extension(&config.capabilities) {
        config.extensions.negotiated.push(tasks::extension());
    }
}

/// Returns the capabilities of a server that the bridge declares to its clients, in the form of the newest revision.
/// The member `tasks` of 2025-11-25 is kept, and is declared only to clients of 2025-11-25. Capabilities that the
/// newest revision cannot express are reported as losses.
fn capabilities(
    server: &SessionInfo,
    is_shared: bool,
    live: &LiveRules,
) -> Result<JsonObject, BridgeError> {
    let up = Translation::new(server.revision, newest(), live.losses());
    let capabilities = up.definition("ServerCapabilities", &server.capabilities);
    let mut capabilities =
        capabilities.map_err(|error| BridgeError::Settings(error.message().to_owned()))?;
    let spec = mcp_exact_revisions::find(server.revision.as_str());
    if spec.is_some_and(|spec| !spec.has_completions_capability()) {
        // 2024-11-05 has no capability for completion, so only a request shows whether the server supports it.
        capabilities.insert("completions", JsonObject::new());
    }
    if tasks::has_tasks(server.revision)
        && !is_shared
        && let Some(declared) = server.capabilities.get("tasks")
    {
        capabilities.insert("tasks", declared);
    }
    Ok(capabilities)
}

/// Returns the settings that do not depend on the servers.
fn config_with(options: &Options, identity: Identity) -> ServerConfig {
    let mut config = ServerConfig::new(identity);
    config.offer = options.downstream_offer.clone();
    config.extensions.policy = ExtensionPolicy::AllowAll;
    config.input = InputMode::PassThrough;
    config.keeps_cache_scope = true;
    config.keeps_error_codes = true;
    config.application_acknowledges = true;
    config.tolerance = options.tolerance;
    config.limits = options.limits.clone();
    config.request_timeout = options.request_timeout;
    config
}

/// Header-mirrored parameters of the tools of one server, by the name that clients use for a tool.
pub(crate) struct ServerToolHeaders {
    /// Name of the server in the configuration.
    pub(crate) server: String,
    /// Parameters of its tools.
    pub(crate) tools: Arc<KnownTools>,
    /// Current rules.
    pub(crate) live: Arc<LiveRules>,
}

impl fmt::Debug for ServerToolHeaders {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ServerToolHeaders")
    }
}

impl ToolHeaders for ServerToolHeaders {
    fn params_of(&self, name: &str) -> Option<Arc<[MirroredParam]>> {
        if is_of_search(&self.live, name) {
            return None;
        }
        params_of(&self.live, &self.server, &self.tools, name)
    }
}

/// Returns true if a name is that of a tool of the search, which mirrors no parameters, whatever tool of a server has it, too.
fn is_of_search(live: &LiveRules, name: &str) -> bool {
    search::is_own(name) && live.rules().search.is_some()
}

/// Returns the mirrored parameters of a tool of a server by the name that the catalogue gives to it. What has a fixed value is no
/// parameter for clients.
fn params_of(
    live: &LiveRules,
    server: &str,
    tools: &KnownTools,
    listed: &str,
) -> Option<Arc<[MirroredParam]>> {
    let rules = live.rules();
    let Some(catalogue) = rules.catalogue.server(server) else {
        return tools.params_of(listed);
    };
    let own = catalogue.own_name(listed)?;
    let params = tools.params_of(own)?;
    let is_fixed = |param: &MirroredParam| {
        let argument = param.path.first();
        argument.is_some_and(|argument| catalogue.is_fixed(own, argument))
    };
    if !params.iter().any(is_fixed) {
        return Some(params);
    }
    Some(
        params
            .iter()
            .filter(|param| !is_fixed(param))
            .cloned()
            .collect(),
    )
}

/// Header-mirrored parameters of the tools of many servers, by the name that clients use for a tool.
pub(crate) struct MultiServerToolHeaders {
    /// Names of the tools for clients, with the server of each tool.
    pub(crate) names: Arc<Names>,
    /// Servers, each with the parameters of its tools.
    pub(crate) backends: Arc<Backends>,
    /// Current rules.
    pub(crate) live: Arc<LiveRules>,
}

impl fmt::Debug for MultiServerToolHeaders {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("MultiServerToolHeaders")
    }
}

impl ToolHeaders for MultiServerToolHeaders {
    fn params_of(&self, name: &str) -> Option<Arc<[MirroredParam]>> {
        if is_of_search(&self.live, name) {
            return None;
        }
        let (server, listed) = self.names.find(Kind::Tool, name)?;
        let server = self.backends.get(server);
        params_of(&self.live, &server.name, &server.tools, &listed)
    }
}

/// Returns the union of the capabilities of all servers.
fn joined(all: impl Iterator<Item = JsonObject>) -> JsonObject {
    let mut joined = Map::new();
    for capabilities in all {
        if let Ok(Value::Object(capabilities)) = serde_json::from_str(capabilities.text()) {
            join(&mut joined, capabilities);
        }
    }
    let text = Value::Object(joined).to_string();
    text.parse().unwrap_or_default()
}

/// Adds capabilities to `into`; a flag becomes true if it is true in `into` or in `more`.
fn join(into: &mut Map<String, Value>, more: Map<String, Value>) {
    for (name, value) in more {
        match (into.get_mut(&name), value) {
            (Some(Value::Object(known)), Value::Object(more)) => join(known, more),
            (Some(Value::Bool(known)), Value::Bool(more)) => *known |= more,
            (Some(_), _) => {}
            (None, value) => drop(into.insert(name, value)),
        }
    }
}
