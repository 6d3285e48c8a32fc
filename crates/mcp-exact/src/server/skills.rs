//! Skills of a server (extension `io.modelcontextprotocol/skills`, SEP-2640): a folder whose files are resources, with
//! `skills/list`, `skills/get` and `resources/directory/read`.
//!
//! Rules of visibility decide about a skill by its resource `SKILL.md`: whoever does not see it sees none of its files.

mod file;
mod folder;
mod store;

use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::Value;

use super::Server;
use super::builder::ServerBuilder;
use super::page::{entry_name_of_cursor, invalid_cursor, page_object};
use super::scopes::has_scope;
use super::visibility::ListedDefinition;
use crate::cx::Cx;
use crate::definition::{Resource, ResourceTemplate};
use crate::error::{Error, Problem};
use crate::extract::Uri;
use crate::link::Request;
use crate::listing::{PageRequest, ResourcePage};
use crate::params::string_member;
use crate::protocol::{Json, JsonObject, PeerError};
use crate::reply::Contents;
use crate::skills::{DIRECTORY_READ, EXTENSION, GET, LIST, READ_DIRECTORY};
use file::FileContent;
use folder::Snapshot;
use store::SkillStore;

/// Template of the URIs of all files of skills.
const TEMPLATE: &str = "skill://{+path}";
/// Maximum size in bytes of the entries on a page, unless the first one is larger.
const MAX_PAGE_BYTES: usize = 1 << 20;

/// Folder whose skills a server serves; [`ServerBuilder::skills`] registers it. A path, such as `"skills"`, is such a folder
/// with the default settings.
///
/// A skill is a directory with a `SKILL.md`, at any depth: `skills/shop/refunds/SKILL.md` is `skill://shop/refunds/SKILL.md`.
/// If the folder itself has a `SKILL.md`, it is one skill, and its name is the first part of the URIs. What the Agent Skills
/// specification prescribes is checked: frontmatter with `name` and `description`, and a directory with the same name. Files
/// outside of skills are not served, nor files and directories whose names begin with a dot. A symbolic link in the folder is an
/// error; the path of the folder may be one, and is followed at each look.
#[derive(Debug, Clone)]
pub struct SkillFolder {
    path: PathBuf,
    max_bytes: u64,
    check_interval: Duration,
    scope: Option<String>,
}

impl SkillFolder {
    /// Creates the settings of a folder. A relative path begins at the working directory of the process.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self {
            path: path.into(),
            max_bytes: 64 << 20,
            check_interval: Duration::from_secs(1),
            scope: None,
        }
    }

    /// Sets the maximum size in bytes of all files together, which are kept in memory; the default is 64 MiB. One skill has
    /// at most 512 files and 16 MiB, because clients accept no more.
    #[must_use]
    pub fn max_bytes(mut self, bytes: u64) -> Self {
        self.max_bytes = bytes;
        self
    }

    /// Sets the minimum time between two looks at the folder; the default is one second. A request that comes later looks
    /// whether a file has changed.
    #[must_use]
    pub fn check_interval(mut self, interval: Duration) -> Self {
        self.check_interval = interval;
        self
    }

    /// Sets the OAuth scopes that a caller needs for the skills, separated by spaces. Without them nothing is listed, and a
    /// read is answered with `insufficient_scope`.
    #[must_use]
    pub fn scope(mut self, scope: impl Into<String>) -> Self {
        self.scope = Some(scope.into());
        self
    }
}

/// Implements the conversion of paths to folders with the default settings.
macro_rules! impl_from_paths {
    ($($path:ty)*) => {
        $(
            impl From<$path> for SkillFolder {
                fn from(path: $path) -> Self {
                    Self::new(path)
                }
            }
        )*
    };
}

impl_from_paths!(&str String &Path PathBuf);

impl ServerBuilder {
    /// Serves the skills of a folder, such as `"skills"`, to clients of every revision (SEP-2640): each file as a resource
    /// `skill://…`, `skills/list` and `skills/get` with the digests of all files, and `resources/directory/read`. A
    /// [`SkillFolder`] has settings. Clients read them by [`Client::skills`](crate::Client::skills).
    ///
    /// The folder is read when this function is called; a later request notices a change. Entries and contents are of one
    /// state of the folder, so that a client that knows an older entry gets contents that it refuses, and asks again. While
    /// the folder is not valid, its last valid state is served, and the reason is logged.
    ///
    /// `skills/list` has the skills that the caller sees by the [rules](Self::visible), which are asked about the resource
    /// `SKILL.md`. Its pages have at most [`page_size`](Self::page_size) entries. Clients need not declare the extension.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// use mcp_exact::{Client, Server};
    ///
    /// # let folder = std::env::temp_dir().join(format!("mcp-exact-skills-{}", std::process::id()));
    /// # std::fs::create_dir_all(folder.join("review"))?;
    /// # std::fs::write(
    /// #     folder.join("review/SKILL.md"),
    /// #     "---\nname: review\ndescription: Review a change\n---\nRead it twice.\n",
    /// # )?;
    /// let server = Server::builder("reviews", "1.0.0").skills(&*folder).build()?;
    /// let client = Client::in_memory(&server).skills().await?;
    /// let listed = client.skills().await?;
    /// let skill = &listed.skills[0];
    /// assert_eq!((skill.name(), skill.uri()), ("review", "skill://review/SKILL.md"));
    /// let file = client.read_skill(skill, "SKILL.md").await?;
    /// assert!(file.text().is_some_and(|text| text.ends_with("Read it twice.\n")));
    /// # std::fs::remove_dir_all(folder)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn skills(mut self, folder: impl Into<SkillFolder>) -> Self {
        let folder = folder.into();
        let mut checked = self.subscription_checks.iter();
        if checked.any(|(template, _)| *template == TEMPLATE) {
            self.problems.push(Problem::Skills {
                path: folder.path.display().to_string(),
                reason: "a server has one folder of skills; put the skills of all folders into one"
                    .to_owned(),
            });
            return self;
        }
        let opened = SkillStore::open(folder.path, folder.max_bytes, folder.check_interval);
        let store = match opened {
            Ok(store) => Arc::new(store),
            Err(error) => {
                self.problems.push(Problem::Skills {
                    path: error.path.display().to_string(),
                    reason: error.reason,
                });
                return self;
            }
        };
        let mut template = ResourceTemplate::new(TEMPLATE)
            .with_name("skills")
            .description("Files of the skills that this server serves");
        if let Some(scope) = folder.scope {
            template = template.scope(scope);
        }
        let served = Skills {
            store,
            template: Arc::new(template.clone()),
        };
        let subscribed = served.clone();
        self.subscription_checks.push((
            TEMPLATE,
            Arc::new(move |server, request, uri| subscribed.may_subscribe(server, request, uri)),
        ));
        let settings = JsonObject::from_iter([(DIRECTORY_READ, true)]);
        let [read, list, entries, get, directory] = [(); 5].map(|()| served.clone());
        self.extension(EXTENSION, settings)
            .template(template, move |Uri(uri): Uri, cx: Cx| {
                let skills = read.clone();
                async move { skills.read(&uri, &cx).await }
            })
            .list(TEMPLATE, move |page: PageRequest, cx: Cx| {
                let skills = list.clone();
                async move { skills.list_resources(&page, &cx).await }
            })
            .method(LIST, move |cx: Cx| {
                let skills = entries.clone();
                async move { skills.list(&cx).await }
            })
            .method(GET, move |cx: Cx| {
                let skills = get.clone();
                async move { skills.get(&cx).await }
            })
            .method(READ_DIRECTORY, move |cx: Cx| {
                let skills = directory.clone();
                async move { skills.read_directory(&cx).await }
            })
    }
}

/// Handlers of the skills of a server.
#[derive(Clone)]
struct Skills {
    store: Arc<SkillStore>,
    /// Template of all files, whose visibility and scope are those of all skills.
    template: Arc<ResourceTemplate>,
}

/// The skills in one state, and which of them the caller of a request sees. A file and a directory are seen if the innermost
/// skill that they are in is seen, so that a skill inside of another one is hidden together with its files.
struct Seen<'r> {
    snapshot: Arc<Snapshot>,
    server: Server,
    request: &'r Request,
    /// False if the caller sees no skill at all.
    sees_any: bool,
    /// Decisions about the skills, by their places.
    decisions: Vec<OnceCell<bool>>,
}

impl Seen<'_> {
    /// Returns true if the caller sees the skill at a place.
    fn sees(&self, place: usize) -> bool {
        let Some(skill) = self.snapshot.skills.get(place) else {
            return false;
        };
        let visibility = &self.server.0.visibility;
        let decide =
            || visibility.is_visible(self.request, ListedDefinition::Resource(&skill.resource));
        let decision = self.decisions.get(place);
        self.sees_any && decision.is_some_and(|decision| *decision.get_or_init(decide))
    }

    /// Returns the places of the skills that the caller sees, in the order of their URIs.
    fn places(&self) -> impl Iterator<Item = usize> {
        (0..self.snapshot.skills.len()).filter(|place| self.sees(*place))
    }

    /// Returns the entry of a skill as JSON text, without the files that the caller does not see.
    fn entry(&self, place: usize) -> Result<Arc<str>, Error> {
        let skill = &self.snapshot.skills[place];
        let nested = self.snapshot.nested(place);
        if nested.iter().all(|nested| self.sees(*nested)) {
            return Ok(Arc::clone(&skill.entry));
        }
        let unreadable = |error: serde_json::Error| Error::msg(error.to_string());
        let mut entry: Value = serde_json::from_str(&skill.entry).map_err(unreadable)?;
        if let Some(resources) = entry["resources"].as_array_mut() {
            resources.retain(|file| {
                let owner = file["uri"]
                    .as_str()
                    .and_then(|uri| self.snapshot.owner(uri));
                owner.is_some_and(|owner| self.sees(owner))
            });
        }
        Ok(entry.to_string().into())
    }

    /// Returns the direct children of a directory by their URIs, each with its definition as JSON text; `None` if the caller
    /// sees no such directory: one of a skill, or above one.
    fn children_of(&self, uri: &str) -> Option<BTreeMap<String, Arc<str>>> {
        // "Directory URIs are written without a trailing slash."
        uri.strip_prefix("skill://")
            .filter(|path| !path.is_empty() && !path.ends_with('/'))?;
        let mut children = BTreeMap::new();
        let mut is_directory = false;
        for place in self.places() {
            let skill = &self.snapshot.skills[place];
            let is_own = |uri: &str| self.snapshot.owner(uri) == Some(place);
            for directory in skill.directories.iter().filter(|uri| is_own(uri)) {
                is_directory |= directory == uri;
                if let Some(rest) = path_below(uri, directory) {
                    is_directory = true;
                    let name = rest.split('/').next().unwrap_or_default();
                    let child = Resource::new(format!("{uri}/{name}"));
                    let child = child.mime_type("inode/directory").with_name(decoded(name));
                    children.insert(child.uri().to_owned(), child.definition().text().into());
                }
            }
            for file in &skill.files {
                let rest = path_below(uri, &file.uri);
                if rest.is_some_and(|rest| !rest.contains('/')) && is_own(&file.uri) {
                    let definition = skill.definition_of(file);
                    children.insert(file.uri.clone(), definition.text().into());
                }
            }
        }
        is_directory.then_some(children)
    }
}

impl Skills {
    /// Returns the current state, with what the caller sees of it.
    async fn seen<'r>(&self, cx: &'r Cx) -> Seen<'r> {
        let server = cx.server();
        let snapshot = self.store.current(&server).await;
        self.seen_of(snapshot, &server, cx.request())
    }

    /// Returns what the sender of a request sees of a state.
    fn seen_of<'r>(
        &self,
        snapshot: Arc<Snapshot>,
        server: &Server,
        request: &'r Request,
    ) -> Seen<'r> {
        let template = ListedDefinition::Template(&self.template);
        let is_shown = server.0.visibility.is_visible(request, template);
        Seen {
            sees_any: is_shown && has_scope(request, self.template.scope_label()),
            decisions: vec![OnceCell::new(); snapshot.skills.len()],
            snapshot,
            server: server.clone(),
            request,
        }
    }

    /// Returns true if the sender of a request may subscribe to a file: one that it sees, or saw before its removal, which is
    /// being announced.
    fn may_subscribe(&self, server: &Server, request: &Request, uri: &str) -> bool {
        let (last, before) = self.store.last();
        let states = [Some(last), before].into_iter().flatten();
        let found = states.filter_map(|state| {
            let (owner, _) = state.file(uri)?;
            Some(self.seen_of(state, server, request).sees(owner))
        });
        found.into_iter().next().unwrap_or(false)
    }

    /// Answers `resources/read` of a file of a skill.
    async fn read(&self, uri: &str, cx: &Cx) -> Result<Contents, Error> {
        let seen = self.seen(cx).await;
        let found = seen.snapshot.file(uri);
        let found = found.filter(|(owner, _)| seen.sees(*owner));
        let (_, file) = found.ok_or_else(|| Error::resource_not_found(uri))?;
        let contents = match &file.content {
            FileContent::Text(text) => Contents::text(text),
            FileContent::Blob(bytes) => Contents::blob(&**bytes),
        };
        Ok(contents.mime_type(file.resource.media_type().unwrap_or_default()))
    }

    /// Answers `resources/list`: each `SKILL.md`.
    async fn list_resources(&self, page: &PageRequest, cx: &Cx) -> Result<ResourcePage, Error> {
        let seen = self.seen(cx).await;
        let after = page.cursor.as_deref().unwrap_or_default();
        let skills = seen.places().map(|place| &seen.snapshot.skills[place]);
        let mut skills = skills.filter(|skill| skill.uri.as_str() > after);
        let listed = skills.by_ref().take(page.size);
        let listed: Vec<Resource> = listed.map(|skill| skill.resource.clone()).collect();
        let last = listed.last().map(|last| last.uri().to_owned());
        let next = last.filter(|_| skills.next().is_some());
        Ok(ResourcePage::new(listed).next_cursor(next))
    }

    /// Answers `skills/list` ("Listing Skills").
    async fn list(&self, cx: &Cx) -> Result<JsonObject, Error> {
        let seen = self.seen(cx).await;
        let mut entries = Vec::new();
        for place in seen.places() {
            entries.push((&*seen.snapshot.skills[place].uri, seen.entry(place)?));
        }
        let mut result = page("skills", entries, cx)?;
        add_result_members(&mut result);
        Ok(result)
    }

    /// Answers `skills/get` ("Getting a Skill").
    async fn get(&self, cx: &Cx) -> Result<JsonObject, Error> {
        let uri = uri_param(cx)?;
        let seen = self.seen(cx).await;
        let place = seen.snapshot.skill(&uri);
        let place = place
            .filter(|place| seen.sees(*place))
            .ok_or_else(|| PeerError::invalid_params(format!("No skill is served at {uri}")))?;
        let mut result = JsonObject::new();
        let entry = seen.entry(place)?.parse::<Json>();
        result.insert(
            "skill",
            entry.map_err(|error| Error::msg(error.to_string()))?,
        );
        add_result_members(&mut result);
        Ok(result)
    }

    /// Answers `resources/directory/read` ("Reading Directories").
    async fn read_directory(&self, cx: &Cx) -> Result<JsonObject, Error> {
        let uri = uri_param(cx)?;
        let seen = self.seen(cx).await;
        let children = seen.children_of(&uri).ok_or_else(|| {
            PeerError::invalid_params(format!("{uri} is not a directory resource"))
        })?;
        let children = children
            .iter()
            .map(|(uri, text)| (uri.as_str(), Arc::clone(text)));
        let mut result = page("resources", children.collect(), cx)?;
        // `CacheableResult` is none of this result, and some clients expect it.
        add_result_members(&mut result);
        Ok(result)
    }
}

/// Returns the path of a URI below a directory.
fn path_below<'u>(directory: &str, uri: &'u str) -> Option<&'u str> {
    uri.strip_prefix(directory)?
        .strip_prefix('/')
        .filter(|rest| !rest.starts_with('/'))
}

/// Returns a name without percent-encoding.
fn decoded(name: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = name.bytes();
    while let Some(byte) = rest.next() {
        let code =
            (byte == b'%').then(|| rest.by_ref().take(2).map(char::from).collect::<String>());
        let code = code.and_then(|code| u8::from_str_radix(&code, 16).ok());
        bytes.push(code.unwrap_or(byte));
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Returns the member `uri` of the params.
fn uri_param(cx: &Cx) -> Result<String, PeerError> {
    let uri = cx
        .request()
        .params()
        .and_then(|params| string_member(params, "uri"));
    uri.ok_or_else(|| PeerError::invalid_params("`uri` must be a string"))
}

/// Returns one page of entries, each with its URI and its JSON text: as many as the server lists on a page, and no more than
/// [`MAX_PAGE_BYTES`]. The cursor names the last entry of the page before.
fn page(
    member: &str,
    mut entries: Vec<(&str, Arc<str>)>,
    cx: &Cx,
) -> Result<JsonObject, PeerError> {
    let cursor = cx
        .request()
        .params()
        .and_then(|params| params.get("cursor"));
    if let Some(cursor) = cursor {
        let last = cursor.decode_as::<String>().ok();
        let last = last
            .and_then(|cursor| entry_name_of_cursor(&cursor))
            .ok_or_else(invalid_cursor)?;
        entries.retain(|(uri, _)| *uri > &*last);
    }
    let count = entries.len();
    let (mut bytes, mut listed) = (0, Vec::new());
    let mut last = None;
    for (uri, text) in entries.into_iter().take(cx.server().0.page_size) {
        bytes += text.len();
        if bytes > MAX_PAGE_BYTES && !listed.is_empty() {
            break;
        }
        listed.push(text);
        last = Some(uri);
    }
    let next = last.filter(|_| listed.len() < count);
    let next = next.map(|uri| URL_SAFE_NO_PAD.encode(uri));
    page_object(member, &listed, next.as_deref())
}

/// Adds the members of `Result` and `CacheableResult`, which results of the extension have in every revision: the extension is
/// written against 2026-07-28. A list depends on the caller, and a folder may change at any time.
fn add_result_members(result: &mut JsonObject) {
    result.insert("resultType", Json::string("complete"));
    result.insert("ttlMs", 0_u64);
    result.insert("cacheScope", Json::string("private"));
}
