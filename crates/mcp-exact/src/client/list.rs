//! Lists of a server, page by page (`server/utilities/pagination`).
//!
//! Takes a page when the one before is used up; ends when there is no cursor.

use std::collections::VecDeque;

use super::{Client, ClientError};
use crate::link::{Json, JsonObject};

/// Definition of a tool, resource, resource template or prompt, in the shape of revision 2026-07-28.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Definition(JsonObject);

impl Definition {
    /// Returns the name.
    pub fn name(&self) -> String {
        self.text("name").unwrap_or_default()
    }

    /// Returns the name for people.
    pub fn title(&self) -> Option<String> {
        self.text("title")
    }

    /// Returns the description.
    pub fn description(&self) -> Option<String> {
        self.text("description")
    }

    /// Returns the URI of a resource, or the URI template of a resource template.
    pub fn uri(&self) -> Option<String> {
        self.text("uri").or_else(|| self.text("uriTemplate"))
    }

    /// Returns the schema of a tool's arguments.
    pub fn input_schema(&self) -> Option<JsonObject> {
        self.object_at("inputSchema")
    }

    /// Returns the schema of a tool's structured result.
    pub fn output_schema(&self) -> Option<JsonObject> {
        self.object_at("outputSchema")
    }

    /// Returns the whole definition.
    pub fn object(&self) -> &JsonObject {
        &self.0
    }

    fn text(&self, name: &str) -> Option<String> {
        let value = self.0.view().find(name)?;
        value.as_str().map(std::borrow::Cow::into_owned)
    }

    fn object_at(&self, name: &str) -> Option<JsonObject> {
        let value = self.0.get(name)?;
        JsonObject::try_from(value).ok()
    }
}

/// List of a server's definitions. [`try_next`](Self::try_next) gives them one by one and fetches pages as they are needed.
#[derive(Debug)]
#[must_use = "`try_next` or `all` fetch the entries"]
pub struct List {
    client: Client,
    method: &'static str,
    member: &'static str,
    page: VecDeque<Definition>,
    cursor: Cursor,
    fresh: bool,
}

#[derive(Debug)]
enum Cursor {
    First,
    Next(Json),
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
            fresh: false,
        }
    }

    /// Returns the next entry; `None` after the last one.
    ///
    /// # Errors
    /// [`ClientError`]; the list continues with the same page when it is called again.
    pub async fn try_next(&mut self) -> Result<Option<Definition>, ClientError> {
        loop {
            if let Some(next) = self.page.pop_front() {
                return Ok(Some(next));
            }
            let params = match &self.cursor {
                Cursor::First => None,
                Cursor::Next(cursor) => Some(JsonObject::from_iter([("cursor", cursor.clone())])),
                Cursor::End => return Ok(None),
            };
            let page = self.fetch(params).await?;
            let entries = page
                .get(self.member)
                .map(|entries| entries.decode_as::<Vec<JsonObject>>());
            let Some(Ok(entries)) = entries else {
                return Err(ClientError::Result(format!(
                    "`{}` is no list of objects",
                    self.member
                )));
            };
            self.page = entries.into_iter().map(Definition).collect();
            // An empty string is a cursor too.
            self.cursor = match page
                .get("nextCursor")
                .filter(|cursor| cursor.text() != "null")
            {
                Some(cursor) => Cursor::Next(cursor),
                None => Cursor::End,
            };
        }
    }

    /// Asks the server for every page, also for those that are kept.
    pub fn fresh(mut self) -> Self {
        self.fresh = true;
        self
    }

    /// Returns a page that was kept, or the one that the server gives.
    async fn fetch(&self, params: Option<JsonObject>) -> Result<JsonObject, ClientError> {
        let key = params.as_ref().map_or("", JsonObject::text).to_owned();
        let cache = self.client.link().cache();
        let asked = match cache.get(self.method, &key) {
            Ok(page) if !self.fresh => return Ok(page),
            Ok(_) => None,
            Err(asked) => Some(asked),
        };
        let page = self.client.request(self.method, params).await?;
        if let Some(asked) = asked {
            cache.keep(self.method, &key, asked, &page);
        }
        Ok(page)
    }

    /// Returns all entries of all pages.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn all(mut self) -> Result<Vec<Definition>, ClientError> {
        let mut all = Vec::new();
        while let Some(next) = self.try_next().await? {
            all.push(next);
        }
        Ok(all)
    }
}
