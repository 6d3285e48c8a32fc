//! Iteration over the lists of a server, page by page (`server/utilities/pagination`).
//!
//! The next page is fetched when the previous one is exhausted; the iteration ends at a page without a cursor, or with a
//! cursor that was given before.

use std::collections::hash_map::RandomState;
use std::collections::{HashSet, VecDeque};
use std::hash::BuildHasher as _;

use mcp_exact_wire::{Decode, Defined};

use super::Client;
use super::error::ClientError;
use super::output::object_list;
use crate::params::{object_member, string_member};
use crate::protocol::{INVALID_PARAMS, Json, JsonObject, ListCursors, RepairRule, Tolerance};

/// Maximum total size in bytes of the pages that [`List::all`] collects.
const MAX_BYTES: usize = 256 << 20;

/// Definition of a tool, resource, resource template or prompt, in the form of revision 2026-07-28.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Definition(JsonObject);

impl Definition {
    /// Creates a definition of an object in the form of revision 2026-07-28.
    #[cfg(all(feature = "process", feature = "http-client"))]
    pub(crate) fn from_object(object: JsonObject) -> Self {
        Self(object)
    }

    /// Returns the name.
    pub fn name(&self) -> String {
        string_member(&self.0, "name").unwrap_or_default()
    }

    /// Returns the display name.
    pub fn title(&self) -> Option<String> {
        string_member(&self.0, "title")
    }

    /// Returns the description.
    pub fn description(&self) -> Option<String> {
        string_member(&self.0, "description")
    }

    /// Returns the URI of a resource, or the URI template of a resource template.
    pub fn uri(&self) -> Option<String> {
        string_member(&self.0, "uri").or_else(|| string_member(&self.0, "uriTemplate"))
    }

    /// Returns the schema of a tool's arguments.
    pub fn input_schema(&self) -> Option<JsonObject> {
        object_member(&self.0, "inputSchema")
    }

    /// Returns the schema of a tool's structured result.
    pub fn output_schema(&self) -> Option<JsonObject> {
        object_member(&self.0, "outputSchema")
    }

    /// Returns the hints of a tool about its behaviour; `None` for other definitions, and if the hints are absent or
    /// violate the schema. Trust the hints only if you trust the server.
    #[cfg(feature = "types")]
    pub fn annotations(&self) -> Option<crate::types::ToolAnnotations> {
        let annotations = self.0.view().find("annotations")?;
        let is_tool = self.0.view().find("inputSchema").is_some();
        annotations.decode_as().ok().filter(|_| is_tool)
    }

    /// Returns the definition in the types of any revision, such as `mcp_exact::types::Tool` or `mcp_2025_06_18::Resource`.
    ///
    /// # Errors
    /// [`ClientError::Result`] if the definition breaks the schema, or the revision cannot express it.
    pub fn typed<T: Decode + Defined>(&self) -> Result<T, ClientError> {
        super::typed::definition_as(&self.0)
    }

    /// Returns the complete definition as JSON.
    pub fn object(&self) -> &JsonObject {
        &self.0
    }
}

/// List of a server's definitions. [`try_next`](Self::try_next) returns one definition at a time and fetches pages when
/// needed.
#[derive(Debug)]
#[must_use = "`try_next` or `all` fetch the entries"]
pub struct List {
    client: Client,
    /// Method of the list, such as `tools/list`.
    method: &'static str,
    /// Member of the result that contains the entries, such as `tools`.
    member: &'static str,
    /// Entries of the current page that were not returned yet.
    page: VecDeque<Definition>,
    /// Position of the next page.
    cursor: Cursor,
    /// True if every page is fetched from the server.
    ignores_cache: bool,
    /// Cursors that were received.
    cursors: ListCursors,
    /// Hashes of the names or URIs on the pages that were received.
    listed_hashes: HashSet<u64>,
    /// Hashes of the names or URIs that were returned already.
    returned_hashes: HashSet<u64>,
    /// Keys of the hash function.
    hasher: RandomState,
    /// True if the list was fetched again from its first page, which is done only once.
    has_restarted: bool,
}

/// One page of a list.
struct Page {
    /// Entries of the page.
    entries: VecDeque<Definition>,
    /// Size of the page in bytes.
    bytes: usize,
    /// True if the page was requested without a cursor.
    is_first: bool,
}

/// Position in a list.
#[derive(Debug)]
enum Cursor {
    /// Before the first page.
    First,
    /// After the page with this `nextCursor`.
    After(Json),
    /// After the last page.
    End,
}

impl List {
    pub(super) fn new(client: &Client, method: &'static str, member: &'static str) -> Self {
        Self {
            client: client.clone(),
            method,
            member,
            page: VecDeque::new(),
            cursor: Cursor::First,
            ignores_cache: false,
            cursors: client.link().list_cursors(),
            listed_hashes: HashSet::new(),
            returned_hashes: HashSet::new(),
            hasher: RandomState::new(),
            has_restarted: false,
        }
    }

    /// Returns the next entry; `None` after the last one.
    ///
    /// If the server rejects a cursor, the list is fetched again from the first page, once. Entries that were already
    /// returned are skipped.
    ///
    /// # Errors
    /// [`ClientError`] if a page cannot be fetched; the next call requests the same page again.
    pub async fn try_next(&mut self) -> Result<Option<Definition>, ClientError> {
        loop {
            if let Some(next) = self.page.pop_front() {
                if self.returned_hashes.insert(self.hash_entry(&next)) || !self.has_restarted {
                    return Ok(Some(next));
                }
                continue;
            }
            match self.next_page().await? {
                Some(page) => self.page = page.entries,
                None => return Ok(None),
            }
        }
    }

    /// Fetches every page from the server and ignores cached pages.
    pub fn without_cache(mut self) -> Self {
        self.ignores_cache = true;
        self
    }

    /// Returns the hash of a definition's name or URI.
    fn hash_entry(&self, definition: &Definition) -> u64 {
        let key = definition.uri().unwrap_or_else(|| definition.name());
        self.hasher.hash_one(key)
    }

    /// Returns the next page; `None` after the last one.
    async fn next_page(&mut self) -> Result<Option<Page>, ClientError> {
        // Cached pages are returned without waiting, so this loop yields to let other tasks and timeouts run.
        tokio::task::consume_budget().await;
        let params = match &self.cursor {
            Cursor::First => None,
            Cursor::After(cursor) => Some(JsonObject::from_iter([("cursor", cursor.clone())])),
            Cursor::End => return Ok(None),
        };
        let mut is_first = params.is_none();
        let page = match self.fetch(params).await {
            Err(ClientError::Server(error))
                if error.code() == Some(INVALID_PARAMS) && !is_first && !self.has_restarted =>
            {
                // "If a cursor becomes invalid [...], the client SHOULD discard all cached pages and re-fetch from the
                // beginning" (`server/utilities/caching`, "Interaction with Pagination").
                self.client.link().cache().remove_list_pages(self.method);
                self.cursors = self.client.link().list_cursors();
                self.listed_hashes.clear();
                self.cursor = Cursor::First;
                self.has_restarted = true;
                is_first = true;
                self.fetch(None).await?
            }
            page => page?,
        };
        let entries = object_list(&page, self.member)?;
        let mut entries: VecDeque<_> = entries.into_iter().map(Definition).collect();
        let (cursor, has_repeated) = self.next_cursor(&page)?;
        self.cursor = cursor;
        let keys: Vec<u64> = entries.iter().map(|entry| self.hash_entry(entry)).collect();
        if has_repeated {
            // The page may be one that was read before.
            let mut keys = keys.iter();
            let is_new = |key: &u64| !self.listed_hashes.contains(key);
            entries.retain(|_| keys.next().is_none_or(is_new));
        }
        self.listed_hashes.extend(keys);
        Ok(Some(Page {
            entries,
            bytes: page.text().len(),
            is_first,
        }))
    }

    /// Returns the position after a page, and true if the cursor was given before: the list cannot go on, and ends with what
    /// was read.
    ///
    /// # Errors
    /// [`ClientError::Pages`] with [`Tolerance::Strict`], instead of the end.
    fn next_cursor(&mut self, page: &JsonObject) -> Result<(Cursor, bool), ClientError> {
        let repair = match self.cursors.next_cursor(page) {
            Ok(Some(cursor)) => return Ok((Cursor::After(cursor), false)),
            Ok(None) => return Ok((Cursor::End, false)),
            Err(repair) => repair,
        };
        let (link, rule) = (self.client.link(), repair.rule);
        if link.tolerance() == Tolerance::Strict {
            self.cursor = Cursor::End;
            return Err(ClientError::Pages {
                method: self.method.to_owned(),
                repair,
            });
        }
        link.repairs().report(self.method, vec![repair]);
        Ok((Cursor::End, rule == RepairRule::RepeatedCursor))
    }

    /// Returns the cached page, or fetches the page from the server.
    async fn fetch(&self, params: Option<JsonObject>) -> Result<JsonObject, ClientError> {
        let key = params.as_ref().map_or("", JsonObject::text).to_owned();
        let link = self.client.link();
        let asked = link
            .cache()
            .current_generation(link.authorization().token_version());
        if !self.ignores_cache
            && let Some(page) = link.cache().unexpired_page(self.method, &key)
        {
            return Ok(page);
        }
        let page = self.client.request(self.method, params).await?;
        let token = link.authorization().token_version();
        link.cache()
            .insert_page(self.method, &key, asked, token, &page);
        Ok(page)
    }

    /// Returns all entries of all pages.
    ///
    /// # Errors
    /// [`ClientError`] for the reasons of [`try_next`](Self::try_next), and if all pages together are larger than 256
    /// MiB.
    pub async fn all(mut self) -> Result<Vec<Definition>, ClientError> {
        let mut all = Vec::from(std::mem::take(&mut self.page));
        let mut bytes = 0;
        while let Some(page) = self.next_page().await? {
            if page.is_first {
                (all, bytes) = (Vec::new(), 0);
            }
            bytes += page.bytes;
            if bytes > MAX_BYTES {
                return Err(ClientError::Result(format!(
                    "the list has more than {MAX_BYTES} bytes; take its entries one by one"
                )));
            }
            all.extend(page.entries);
        }
        Ok(all)
    }
}
