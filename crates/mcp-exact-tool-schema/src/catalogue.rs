//! Catalogue of the tools of servers: the names, texts, annotations and arguments under which clients know them.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use mcp_exact_wire::{Json, JsonObject, Kind};

use crate::arguments::{GivenArguments, schema_of_callers};
use crate::filter::ToolFilter;

/// Maximum length of a name that a catalogue gives to a tool (2025-11-25, `server/tools`, "Tool Names").
const MAX_NAME: usize = 128;

/// What clients see of one tool, where it differs from the definition of its server.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ToolEntry {
    /// Name for clients. Whoever calls the tool by its own name gets the error for an unknown tool.
    pub rename: Option<String>,
    /// Title for people.
    pub title: Option<String>,
    /// Description for models.
    pub description: Option<String>,
    /// True if clients neither see the tool nor can call it.
    pub is_hidden: bool,
    /// Annotations that replace those of the same names; the others stay.
    pub annotations: BTreeMap<String, Json>,
    /// Values of arguments that every call gets. They are no part of the schema for clients, and a call that has one of these
    /// arguments is refused.
    pub fixed: BTreeMap<String, Json>,
    /// Values of arguments for calls that have none. In the schema for clients they are optional.
    pub defaults: BTreeMap<String, Json>,
}

/// Catalogue of the tools of many servers, by the names that the servers themselves have. Tools without an entry are listed
/// unchanged.
///
/// ```
/// use mcp_exact_tool_schema::{Catalogue, ToolEntry};
///
/// let mut entry = ToolEntry::default();
/// entry.rename = Some("read".to_owned());
/// entry.fixed.insert("encoding".to_owned(), "\"utf-8\"".parse().expect("JSON"));
/// let mut catalogue = Catalogue::default();
/// catalogue.insert("files", "read_text_file", entry).expect("a free name");
///
/// let files = catalogue.server("files").expect("a server");
/// assert_eq!(files.own_name("read"), Some("read_text_file"));
/// assert_eq!(files.own_name("read_text_file"), None);
/// let arguments = r#"{"path":"a"}"#.parse().expect("JSON");
/// let arguments = files.arguments("read_text_file", Some(arguments)).expect("allowed");
/// assert_eq!(arguments.expect("arguments").text(), r#"{"path":"a","encoding":"utf-8"}"#);
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Catalogue(BTreeMap<String, ServerCatalogue>);

/// Catalogue of the tools of one server.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ServerCatalogue {
    /// Name of the server; empty if it has none.
    server: String,
    /// Tools that are switched on, by the server's own names.
    filter: ToolFilter,
    /// Entries by the server's own names.
    entries: BTreeMap<String, ToolEntry>,
    /// The server's own names by the names for clients, of the entries that are not hidden.
    listed: BTreeMap<String, String>,
}

/// Reason why a catalogue cannot be used. The text names the keys of a configuration file that has the catalogue as
/// `servers.NAME.tools.TOOL`.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum CatalogueError {
    /// Clients would see two tools of a server under the same name.
    SameName {
        /// Keys of both tools, the one that was added last first.
        keys: [String; 2],
        /// The name.
        name: String,
    },
    /// A name that clients may not accept.
    InvalidName {
        /// Key of the name.
        key: String,
        /// The name.
        name: String,
    },
    /// An annotation has a value of another type than the specification gives it (`ToolAnnotations`).
    InvalidAnnotation {
        /// Key of the value.
        key: String,
        /// What the value has to be.
        wanted: &'static str,
    },
    /// An argument has both a fixed value and a default.
    FixedDefault {
        /// Keys of both values.
        keys: [String; 2],
    },
}

impl fmt::Display for CatalogueError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::SameName {
                keys: [one, other],
                name,
            } => write!(
                f,
                "{one} and {other} would both be listed as {name:?}; give one of them another `rename`, or hide it"
            ),
            Self::InvalidName { key, name } => write!(
                f,
                "{key}: {name:?} cannot be the name of a tool: use 1 to {MAX_NAME} letters, digits, `_`, `-` and `.`"
            ),
            Self::InvalidAnnotation { key, wanted } => write!(f, "{key}: write {wanted}"),
            Self::FixedDefault {
                keys: [fixed, default],
            } => write!(
                f,
                "{fixed} and {default} exclude each other: an argument with a fixed value needs no default"
            ),
        }
    }
}

impl std::error::Error for CatalogueError {}

/// Argument of a call that the catalogue fixes.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ArgumentError {
    /// The caller sends an argument that has a fixed value.
    Fixed(String),
    /// The arguments are no object, so that nothing can be added to them.
    NoObject,
}

impl fmt::Display for ArgumentError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fixed(name) => write!(
                f,
                "the argument {name:?} has a fixed value here and cannot be sent; leave it out"
            ),
            Self::NoObject => f.write_str("`arguments` must be an object"),
        }
    }
}

impl std::error::Error for ArgumentError {}

/// What is wrong with a catalogue in front of the tools that a server has.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum CatalogueProblem {
    /// The server has no such tool.
    UnknownTool {
        /// Key of the entry.
        key: String,
    },
    /// The tool has no such argument.
    UnknownArgument {
        /// Key of the value.
        key: String,
    },
    /// The name that an entry gives is that of another tool, which clients neither see nor can call then.
    TakenName {
        /// Key of the name.
        key: String,
        /// Key of an entry by which the other tool can be renamed or hidden.
        other: String,
        /// The name.
        name: String,
    },
}

impl CatalogueProblem {
    /// Returns true if a tool that has no entry is not listed because of the problem.
    pub fn is_error(&self) -> bool {
        matches!(self, Self::TakenName { .. })
    }
}

impl fmt::Display for CatalogueProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownTool { key } => write!(
                f,
                "{key}: the server has no tool of this name; tools are named as the server itself names them"
            ),
            Self::UnknownArgument { key } => {
                write!(f, "{key}: the tool has no argument of this name")
            }
            Self::TakenName { key, other, name } => write!(
                f,
                "{key}: {name:?} is the name of another tool of the server, which is not listed; choose another name, or rename or hide that tool by {other}"
            ),
        }
    }
}

impl Catalogue {
    /// Adds the entry of a tool, or replaces it. `tool` is the name that the server itself has; `server` is empty for a server
    /// without a name.
    ///
    /// # Errors
    /// [`CatalogueError`] if the names of two tools of the server would be equal, or the entry contradicts itself. The catalogue is
    /// unchanged then.
    pub fn insert(
        &mut self,
        server: &str,
        tool: &str,
        entry: ToolEntry,
    ) -> Result<(), CatalogueError> {
        let mut new = ServerCatalogue {
            server: server.to_owned(),
            ..ServerCatalogue::default()
        };
        match self.0.get_mut(server) {
            Some(of_server) => of_server.insert(tool, entry)?,
            None => {
                new.insert(tool, entry)?;
                self.0.insert(server.to_owned(), new);
            }
        }
        Ok(())
    }

    /// Sets the tools of a server that are switched on; clients neither see the others nor can call them.
    pub fn set_filter(&mut self, server: &str, filter: ToolFilter) {
        if filter.is_empty() && !self.0.contains_key(server) {
            return;
        }
        let of_server = self.0.entry(server.to_owned());
        let of_server = of_server.or_insert_with(|| ServerCatalogue {
            server: server.to_owned(),
            ..ServerCatalogue::default()
        });
        of_server.filter = filter;
    }

    /// Returns true if there is no entry.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the catalogue of a server; `None` if none of its tools has an entry, and all are switched on.
    pub fn server(&self, name: &str) -> Option<&ServerCatalogue> {
        self.0.get(name)
    }

    /// Returns the catalogues of all servers that have entries, in the order of their names.
    pub fn servers(&self) -> impl Iterator<Item = (&str, &ServerCatalogue)> {
        self.0.iter().map(|(name, of_server)| (&**name, of_server))
    }
}

impl ServerCatalogue {
    fn insert(&mut self, tool: &str, entry: ToolEntry) -> Result<(), CatalogueError> {
        if let Some(name) = &entry.rename {
            let is_kept = |byte: u8| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte);
            if name.is_empty() || name.len() > MAX_NAME || !name.bytes().all(is_kept) {
                let (key, name) = (self.key(tool, "rename"), name.clone());
                return Err(CatalogueError::InvalidName { key, name });
            }
        }
        for (name, value) in &entry.annotations {
            let (wanted, is_right) = match name.as_str() {
                "title" => ("a text", value.kind() == Kind::String),
                "readOnlyHint" | "destructiveHint" | "idempotentHint" | "openWorldHint" => {
                    let is_flag = matches!(value.text(), "true" | "false");
                    ("true or false", is_flag)
                }
                _ => continue,
            };
            if !is_right {
                let key = self.argument_key(tool, "annotations", name);
                return Err(CatalogueError::InvalidAnnotation { key, wanted });
            }
        }
        if let Some(name) = entry
            .fixed
            .keys()
            .find(|name| entry.defaults.contains_key(*name))
        {
            let keys = ["fixed", "defaults"].map(|member| self.argument_key(tool, member, name));
            return Err(CatalogueError::FixedDefault { keys });
        }
        let name = entry.rename.as_deref().unwrap_or(tool);
        let other = self.listed.get(name).filter(|other| *other != tool);
        if let Some(other) = other.filter(|_| !entry.is_hidden) {
            let keys = [
                self.name_key(tool, &entry),
                self.name_key(other, &self.entries[other]),
            ];
            let name = name.to_owned();
            return Err(CatalogueError::SameName { keys, name });
        }
        let name = name.to_owned();
        if let Some(earlier) = self.entries.get(tool)
            && !earlier.is_hidden
        {
            self.listed
                .remove(earlier.rename.as_deref().unwrap_or(tool));
        }
        if !entry.is_hidden {
            self.listed.insert(name, tool.to_owned());
        }
        self.entries.insert(tool.to_owned(), entry);
        Ok(())
    }

    /// Returns the names of the tools with entries that clients see: the name for clients and the server's own one.
    pub fn listed_names(&self) -> impl Iterator<Item = (&str, &str)> {
        self.listed.iter().map(|(listed, own)| (&**listed, &**own))
    }

    /// Returns the tools that are switched on, by the server's own names.
    pub fn filter(&self) -> &ToolFilter {
        &self.filter
    }

    /// Returns the key of the list that switches a tool off, by the name of the tool for clients; `None` if the tool is switched on.
    pub fn key_against(&self, listed: &str) -> Option<&str> {
        let own = self.listed.get(listed).map_or(listed, String::as_str);
        self.filter.key_against(own)
    }

    /// Returns the name of a tool for clients; `None` if it is hidden or switched off, or if another tool has its name.
    pub fn listed_name<'a>(&'a self, own: &'a str) -> Option<&'a str> {
        if self.filter.key_against(own).is_some() {
            return None;
        }
        match self.entries.get(own) {
            Some(entry) if entry.is_hidden => None,
            Some(entry) => Some(entry.rename.as_deref().unwrap_or(own)),
            None => (!self.listed.contains_key(own)).then_some(own),
        }
    }

    /// Returns the server's own name of a tool by its name for clients; `None` if no tool that clients see has this name. A tool
    /// without an entry has the same name for both.
    pub fn own_name<'a>(&'a self, listed: &'a str) -> Option<&'a str> {
        let own = match self.listed.get(listed) {
            Some(own) => Some(own.as_str()),
            None => (!self.entries.contains_key(listed)).then_some(listed),
        };
        own.filter(|own| self.filter.key_against(own).is_none())
    }

    /// Returns the definition of a tool for clients; `None` if clients do not see it. `form` converts a definition of the newest
    /// revision, which has the members of the entry, to the revision of `tool`; members that the revision does not have are left
    /// out.
    pub fn definition(
        &self,
        mut tool: JsonObject,
        form: impl FnOnce(JsonObject) -> Option<JsonObject>,
    ) -> Option<JsonObject> {
        let own = tool.view().find("name")?.as_str()?.into_owned();
        let listed = self.listed_name(&own)?;
        let Some(entry) = self.entries.get(&own) else {
            return Some(tool);
        };
        if listed != own {
            tool.insert("name", Json::string(listed));
        }
        if let Some(described) = entry.described(&own)
            && let Some(described) = form(described)
        {
            for (name, value) in described.iter() {
                let value: Option<Json> = value.parse().ok();
                match (name.as_ref(), value) {
                    ("title" | "description", Some(value)) => tool.insert(&name, value),
                    ("annotations", Some(value)) => add_annotations(&mut tool, value),
                    _ => {}
                }
            }
        }
        let given = entry.given();
        let schema = tool
            .view()
            .find("inputSchema")
            .and_then(|schema| schema.object());
        if !(entry.fixed.is_empty() && entry.defaults.is_empty())
            && let Some(schema) = schema
            && let Some(schema) = schema_of_callers(&schema.to_object(), given)
        {
            tool.insert("inputSchema", schema);
        }
        Some(tool)
    }

    /// Returns the arguments of a call for the server, with fixed values and defaults. `own` is the server's own name of the tool.
    ///
    /// # Errors
    /// [`ArgumentError`] if the caller sends an argument that has a fixed value.
    pub fn arguments(
        &self,
        own: &str,
        arguments: Option<Json>,
    ) -> Result<Option<Json>, ArgumentError> {
        let Some(entry) = self.entries.get(own).filter(|entry| entry.has_arguments()) else {
            return Ok(arguments);
        };
        let mut arguments = match arguments {
            Some(arguments) => {
                JsonObject::try_from(arguments).map_err(|_| ArgumentError::NoObject)?
            }
            None => JsonObject::new(),
        };
        let sent = entry
            .fixed
            .keys()
            .find(|name| arguments.view().find(name).is_some());
        if let Some(name) = sent {
            return Err(ArgumentError::Fixed(name.clone()));
        }
        for (name, value) in &entry.fixed {
            arguments.insert(name, value.clone());
        }
        for (name, value) in &entry.defaults {
            if arguments.view().find(name).is_none() {
                arguments.insert(name, value.clone());
            }
        }
        Ok(Some(arguments.into()))
    }

    /// Returns true if calls of a tool get arguments from the catalogue.
    pub fn has_arguments(&self, own: &str) -> bool {
        self.entries.get(own).is_some_and(ToolEntry::has_arguments)
    }

    /// Returns true if an argument of a tool has a fixed value.
    pub fn is_fixed(&self, own: &str, argument: &str) -> bool {
        let entry = self.entries.get(own);
        entry.is_some_and(|entry| entry.fixed.contains_key(argument))
    }

    /// Returns the names of the arguments of a tool that have a fixed value.
    pub fn fixed_names<'a>(&'a self, own: &str) -> impl Iterator<Item = &'a str> + use<'a> {
        let fixed = self.entries.get(own).map(|entry| entry.fixed.keys());
        fixed.into_iter().flatten().map(String::as_str)
    }

    /// Compares the catalogue with all tools of the server: entries and arguments that it does not have, and names that are taken.
    pub fn problems(&self, tools: &[JsonObject]) -> Vec<CatalogueProblem> {
        let mut known = BTreeMap::new();
        for tool in tools {
            let [name, schema] = tool.view().find_each(["name", "inputSchema"]);
            if let Some(name) = name.and_then(|name| name.as_str()) {
                known.insert(name.into_owned(), schema.map(|schema| schema.to_json()));
            }
        }
        let mut problems = Vec::new();
        for (own, entry) in &self.entries {
            let Some(schema) = known.get(own) else {
                let key = self.tool_key(own);
                problems.push(CatalogueProblem::UnknownTool { key });
                continue;
            };
            let names = schema.as_ref().and_then(names_of_arguments);
            for (member, values) in [("fixed", &entry.fixed), ("defaults", &entry.defaults)] {
                let unknown = values
                    .keys()
                    .filter(|name| names.as_ref().is_some_and(|names| !names.contains(*name)));
                problems.extend(unknown.map(|name| CatalogueProblem::UnknownArgument {
                    key: self.argument_key(own, member, name),
                }));
            }
        }
        let unknown = self
            .filter
            .names_without_match(|tool| known.contains_key(tool));
        problems.extend(unknown.map(|(key, name)| {
            let key = format!("{key}: {name:?}");
            CatalogueProblem::UnknownTool { key }
        }));
        for (name, own) in &self.listed {
            if name != own && known.contains_key(name) && !self.entries.contains_key(name) {
                problems.push(CatalogueProblem::TakenName {
                    key: self.key(own, "rename"),
                    other: self.tool_key(name),
                    name: name.clone(),
                });
            }
        }
        problems
    }

    /// Returns the key of a tool's entry, as `servers.NAME.tools.TOOL`.
    pub fn tool_key(&self, own: &str) -> String {
        let server = &self.server;
        let tool = key_part(own);
        match server.as_str() {
            "" => format!("tools.{tool}"),
            server => format!("servers.{}.tools.{tool}", key_part(server)),
        }
    }

    /// Returns the key of a member of a tool's entry.
    pub fn key(&self, own: &str, member: &str) -> String {
        format!("{}.{member}", self.tool_key(own))
    }

    /// Returns the key that decides about the name of a tool.
    fn name_key(&self, own: &str, entry: &ToolEntry) -> String {
        match entry.rename {
            Some(_) => self.key(own, "rename"),
            None => self.tool_key(own),
        }
    }

    fn argument_key(&self, own: &str, member: &str, argument: &str) -> String {
        format!("{}.{}", self.key(own, member), key_part(argument))
    }
}

impl ToolEntry {
    fn has_arguments(&self) -> bool {
        !(self.fixed.is_empty() && self.defaults.is_empty())
    }

    fn given(&self) -> GivenArguments<'_> {
        GivenArguments {
            fixed: &self.fixed,
            defaults: &self.defaults,
        }
    }

    /// Returns a definition of the newest revision with the texts and annotations of the entry; `None` if it has none.
    fn described(&self, own: &str) -> Option<JsonObject> {
        if self.title.is_none() && self.description.is_none() && self.annotations.is_empty() {
            return None;
        }
        let schema = JsonObject::from_iter([("type", Json::string("object"))]);
        let mut described = JsonObject::from_iter([("name", Json::string(own))]);
        described.insert("inputSchema", schema);
        if let Some(title) = &self.title {
            described.insert("title", Json::string(title));
        }
        if let Some(description) = &self.description {
            described.insert("description", Json::string(description));
        }
        if !self.annotations.is_empty() {
            let annotations: JsonObject = self.annotations.clone().into_iter().collect();
            described.insert("annotations", annotations);
        }
        Some(described)
    }
}

/// Adds annotations to a tool; those of the same names are replaced.
fn add_annotations(tool: &mut JsonObject, added: Json) {
    let Ok(added) = JsonObject::try_from(added) else {
        return;
    };
    let known = tool
        .view()
        .find("annotations")
        .and_then(|known| known.object());
    let mut annotations = known.map(|known| known.to_object()).unwrap_or_default();
    for (name, value) in added.view().iter() {
        annotations.insert(&name, value.to_json());
    }
    tool.insert("annotations", annotations);
}

/// Returns the names of arguments that a schema has in `properties`; `None` if arguments of other names are described elsewhere.
fn names_of_arguments(schema: &Json) -> Option<BTreeSet<String>> {
    let schema = schema.view().object()?;
    let elsewhere = ["$ref", "allOf", "anyOf", "oneOf", "patternProperties", "if"];
    let is_elsewhere = |name: &str| elsewhere.contains(&name);
    if schema.iter().any(|(name, _)| is_elsewhere(&name)) {
        return None;
    }
    let properties = schema
        .find("properties")
        .and_then(|properties| properties.object());
    let names = properties.unwrap_or_default().iter();
    Some(names.map(|(name, _)| name.into_owned()).collect())
}

/// Returns a part of a key as it is written in TOML.
fn key_part(name: &str) -> String {
    let is_bare = |byte: u8| byte.is_ascii_alphanumeric() || b"_-".contains(&byte);
    if !name.is_empty() && name.bytes().all(is_bare) {
        name.to_owned()
    } else {
        format!("{name:?}")
    }
}
