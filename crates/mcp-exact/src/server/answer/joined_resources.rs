//! `resources/list` of a server with lists of resources ([`ServerBuilder::list`](crate::ServerBuilder::list)): fixed
//! resources first, then the lists in the order of registration, joined to pages.
//!
//! A cursor names the source of the next page, and what its handler needs to go on. It is sealed for the principal, so
//! that clients can neither read nor make one, nor use that of somebody else.

use std::collections::HashSet;
use std::sync::Arc;

use super::outcome::{convert_run_end, protocol_error_of};
use super::{ActiveRequest, Answer};
use crate::call::Call;
use crate::cx::Arguments;
use crate::definition::Resource;
use crate::link::{Reply, Request};
use crate::listing::{PageRequest, ResourcePage};
use crate::outgoing;
use crate::params::string_member;
use crate::protocol::{Json, JsonObject, Lifecycle, PeerError, Principal};
use crate::server::Server;
use crate::server::catalogue::{Catalogue, ResourceListEntry, TemplateEntry};
use crate::server::page::{CursorSeal, invalid_cursor, page_object};
use crate::server::runner::{RunEnd, RunningHandler, run_handler};
use crate::server::scopes::has_scope;
use crate::server::visibility::ListedDefinition;

/// Maximum number of pages of handlers that one request joins: handlers may return pages without a resource that the
/// client sees.
const MAX_HANDLER_PAGES: usize = 16;

/// Place in the joined list at which a page begins.
enum Position {
    /// After the fixed resource with this URI; `None` for the first one.
    Fixed { after: Option<String> },
    /// In the list of a template, at the handler's cursor; `None` for its first page.
    List {
        template: String,
        cursor: Option<String>,
    },
}

impl Position {
    /// Returns the place that a cursor names; `None` if it is no cursor of this server for this principal.
    fn open(seal: &CursorSeal, sealed: &str, principal: Option<&Principal>) -> Option<Self> {
        let text = seal.seal.open(sealed, &seal.context(principal))?;
        let object: JsonObject = text.parse().ok()?;
        if let Some(uri) = string_member(&object, "fixed") {
            return Some(Self::Fixed { after: Some(uri) });
        }
        let cursor = string_member(&object, "cursor");
        let template = string_member(&object, "template")?;
        Some(Self::List { template, cursor })
    }

    /// Returns the cursor of this place.
    fn seal(&self, seal: &CursorSeal, principal: Option<&Principal>) -> Result<String, PeerError> {
        let members = match self {
            Self::Fixed { after } => [("fixed", after.as_deref()), ("cursor", None)],
            Self::List { template, cursor } => [
                ("template", Some(&**template)),
                ("cursor", cursor.as_deref()),
            ],
        };
        let members = members.into_iter();
        let members = members.filter_map(|(name, text)| Some((name, Json::string(text?))));
        let object = JsonObject::from_iter(members);
        let sealed = seal.seal.seal(object.text(), &seal.context(principal));
        if sealed.is_empty() {
            return Err(PeerError::internal("the cursor cannot be protected"));
        }
        Ok(sealed)
    }
}

/// Page that is being filled.
struct JoinedPage {
    /// Definitions in the revision of the client.
    definitions: Vec<Arc<str>>,
    /// URIs of the entries.
    uris: HashSet<String>,
    /// Number of entries that fit.
    size: usize,
    /// Number of pages of handlers that are still joined.
    handler_pages: usize,
}

impl JoinedPage {
    fn is_full(&self) -> bool {
        self.definitions.len() >= self.size || self.handler_pages == 0
    }
}

/// What the sender of a request sees of the lists of resources.
struct View<'v> {
    server: &'v Server,
    request: &'v Request,
    catalogue: &'v Catalogue,
    /// Lists that the sender may read, with their templates.
    lists: Vec<(&'v ResourceListEntry, &'v TemplateEntry)>,
}

impl<'v> View<'v> {
    fn new(server: &'v Server, active: &'v ActiveRequest) -> Self {
        let mut view = Self {
            server,
            request: &active.request,
            catalogue: &active.catalogue,
            lists: Vec::new(),
        };
        for list in &view.catalogue.lists {
            if let Some(entry) = view.catalogue.template(&list.template)
                && view.sees(ListedDefinition::Template(&entry.template))
                // What a list contains are data, so it is hidden without `hide_without_scope` too.
                && has_scope(view.request, entry.template.scope_label())
            {
                view.lists.push((list, entry));
            }
        }
        view
    }

    /// Returns true if the sender sees a definition.
    fn sees(&self, listed: ListedDefinition<'_>) -> bool {
        self.server.0.visibility.is_visible(self.request, listed)
    }

    /// Returns true if a URI of a list is listed elsewhere: as a fixed resource, or by the list of a template that matches it
    /// and stands before this one. Whatever lists a URI reads it as well.
    fn is_listed_before(&self, uri: &str, template: &str) -> bool {
        let fixed = self.catalogue.resource(uri);
        if fixed.is_some_and(|entry| self.sees(ListedDefinition::Resource(&entry.resource))) {
            return true;
        }
        let before = self
            .catalogue
            .matching_templates(uri)
            .map(|(entry, _)| entry);
        let mut before = before.take_while(|entry| entry.template.template() != template);
        before.any(|before| {
            let mut lists = self.lists.iter();
            lists.any(|(_, entry)| std::ptr::eq(*entry, &**before))
        })
    }
}

impl Server {
    /// Begins to answer `resources/list` of a server with lists of resources.
    pub(super) fn begin_resource_list(&self, active: ActiveRequest) -> Answer {
        let server = self.clone();
        Answer::begin(Box::pin(async move {
            let page = server.list_resources(&active).await;
            page.map_or_else(Reply::Error, Reply::Result)
        }))
    }

    /// Answers `resources/list` with one page of the fixed resources and the lists, as the sender sees them.
    async fn list_resources(&self, active: &ActiveRequest) -> Result<JsonObject, PeerError> {
        let request = &*active.request;
        let (seal, principal) = (&self.0.cursors, request.principal());
        let cursor = request.params().and_then(|params| params.get("cursor"));
        let begin = match cursor {
            None => Position::Fixed { after: None },
            Some(cursor) => {
                let cursor: String = cursor.decode_as().map_err(|_| invalid_cursor())?;
                Position::open(seal, &cursor, principal).ok_or_else(invalid_cursor)?
            }
        };
        let mut page = JoinedPage {
            definitions: Vec::new(),
            uris: HashSet::new(),
            size: self.0.page_size,
            handler_pages: MAX_HANDLER_PAGES,
        };
        let next = self.fill_page(active, begin, &mut page).await?;
        let next = next.map(|next| next.seal(seal, principal)).transpose()?;
        let mut object = page_object("resources", &page.definitions, next.as_deref())?;
        if request.lifecycle() == Lifecycle::Discover {
            // Handlers list what belongs to the caller.
            object.insert("cacheScope", Json::string("private"));
        }
        Ok(object)
    }

    /// Fills a page from this place on; returns the place of the next page.
    async fn fill_page(
        &self,
        active: &ActiveRequest,
        begin: Position,
        page: &mut JoinedPage,
    ) -> Result<Option<Position>, PeerError> {
        let view = View::new(self, active);
        let lists = &view.lists;
        let (mut at, mut cursor) = match begin {
            Position::List { template, cursor } => {
                let at = lists.iter().position(|(list, _)| list.template == template);
                (at.ok_or_else(invalid_cursor)?, cursor)
            }
            Position::Fixed { after } => {
                if let Some(next) = add_fixed(&view, after.as_deref(), page)? {
                    return Ok(Some(next));
                }
                (0, None)
            }
        };
        while let Some((list, entry)) = lists.get(at) {
            if page.is_full() {
                let template = list.template.clone();
                return Ok(Some(Position::List { template, cursor }));
            }
            page.handler_pages -= 1;
            let wanted = page.size - page.definitions.len();
            let listed = self
                .call_list(active, list, cursor.as_deref(), wanted)
                .await?;
            for resource in listed.resources {
                add_listed(&view, entry, resource, page)?;
            }
            if listed.next_cursor.is_some() && listed.next_cursor == cursor {
                let message = format!(
                    "the list of {:?} has returned the cursor that it was called with",
                    list.template
                );
                return Err(PeerError::internal(message));
            }
            cursor = listed.next_cursor;
            if cursor.is_none() {
                at += 1;
            }
        }
        Ok(None)
    }

    /// Calls the handler of a list.
    async fn call_list(
        &self,
        active: &ActiveRequest,
        list: &ResourceListEntry,
        cursor: Option<&str>,
        size: usize,
    ) -> Result<ResourcePage, PeerError> {
        let arguments = PageRequest::arguments(&list.template, cursor, size);
        let cx = self.new_cx(active.clone(), "", Arguments::Own(arguments), None)?;
        let handler = list.handler.call(Call::new(&cx));
        let mut running = RunningHandler::new(handler, &cx, self.0.timeout);
        let end = run_handler(&mut running, &cx).await;
        if !matches!(end, RunEnd::Finished(_)) {
            cx.cancel();
        }
        cx.end_run();
        convert_run_end(end, &cx)?.map_err(|error| protocol_error_of(&error, &cx))
    }
}

/// Adds the fixed resources of a page; returns the place of the next page if some of them are left.
fn add_fixed(
    view: &View<'_>,
    after: Option<&str>,
    page: &mut JoinedPage,
) -> Result<Option<Position>, PeerError> {
    let revision = view.request.revision();
    let seen = view.catalogue.resources.iter().filter_map(|entry| {
        if !view.sees(ListedDefinition::Resource(&entry.resource)) {
            return None;
        }
        let text = entry.advertised_definition.text_for_revision(revision)?;
        Some((entry.resource.uri(), text))
    });
    let mut seen: Vec<(&str, Arc<str>)> = seen.collect();
    if let Some(after) = after {
        let at = seen.iter().position(|(uri, _)| *uri == after);
        seen.drain(..=at.ok_or_else(invalid_cursor)?);
    }
    let more = seen.len() > page.size;
    seen.truncate(page.size);
    let last = seen.last().map(|(uri, _)| (*uri).to_owned());
    for (uri, text) in seen {
        page.uris.insert(uri.to_owned());
        page.definitions.push(text);
    }
    Ok(last
        .filter(|_| more)
        .map(|last| Position::Fixed { after: Some(last) }))
}

/// Adds a resource that the handler of a list has returned, unless the sender does not see it or it is listed already.
///
/// # Errors
/// The error to reply with, if the template does not match the URI, the resource has another scope than the template, or the
/// definition breaks the schema.
fn add_listed(
    view: &View<'_>,
    entry: &TemplateEntry,
    resource: Resource,
    page: &mut JoinedPage,
) -> Result<(), PeerError> {
    let template = entry.template.template();
    let scope = entry.template.scope_label();
    let has_own_scope = resource.scope_label().is_some_and(|own| Some(own) != scope);
    let resource = resource.with_defaults_of(&entry.template);
    let wrong = |reason: String| {
        tracing::error!(template, uri = resource.uri(), %reason, "a list is not valid");
        PeerError::internal(format!("the list of {template:?} is not valid: {reason}"))
    };
    if entry.uri.match_uri(resource.uri()).is_none() {
        let uri = resource.uri();
        return Err(wrong(format!(
            "the template does not match {uri:?}; create resources by `PageRequest::resource`"
        )));
    }
    if has_own_scope {
        let uri = resource.uri();
        return Err(wrong(format!(
            "the own scope of {uri:?} is not checked when it is read; set the scope of the template instead"
        )));
    }
    let listed = ListedDefinition::Resource(&resource);
    let uri = resource.uri();
    if !view.sees(listed) || view.is_listed_before(uri, template) || page.uris.contains(uri) {
        return Ok(());
    }
    let definition = resource.definition();
    outgoing::check_definition("Resource", &definition).map_err(wrong)?;
    let revision = view.request.revision();
    match outgoing::convert_definition("Resource", &definition, revision) {
        Ok(form) => {
            page.uris.insert(uri.to_owned());
            page.definitions.push(form.text().into());
        }
        Err(reason) => tracing::warn!(uri, %revision, %reason, "left out of a list"),
    }
    Ok(())
}
