//! Lists of the resources of a template, such as rows of a database: the input and the result of their handlers.
//!
//! `server/answer/joined_resources.rs` joins the pages of all lists of a server.

use crate::call::{Call, FromCall};
use crate::decode;
use crate::definition::Resource;
use crate::error::Error;
use crate::params::string_member;
use crate::protocol::{Json, JsonObject};
use crate::reply::IntoReply;
use crate::template::{TemplateValue, UriTemplate};

/// Page that the handler of a list must return ([`ServerBuilder::list`](crate::ServerBuilder::list)).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PageRequest {
    /// Cursor of the handler's previous page ([`ResourcePage::next_cursor`]); `None` for the first page. Clients
    /// cannot create or change cursors, and can use only those of their own principal. A client can use the same
    /// cursor several times.
    pub cursor: Option<String>,
    /// Number of resources that fit on the page of the client, at least 1. A handler may return fewer or more.
    pub size: usize,
    /// Template of the list.
    template: UriTemplate,
}

impl PageRequest {
    /// Returns the arguments from which a handler's `PageRequest` is created.
    pub(crate) fn arguments(template: &str, cursor: Option<&str>, size: usize) -> JsonObject {
        let size = u64::try_from(size).unwrap_or(u64::MAX);
        let mut arguments =
            JsonObject::from_iter([("template", Json::string(template)), ("size", size.into())]);
        if let Some(cursor) = cursor {
            arguments.insert("cursor", Json::string(cursor));
        }
        arguments
    }

    /// Creates a resource of the template from the values of its variables, which are percent-encoded.
    ///
    /// The name of the resource is the last segment of its URI; [`Resource::with_name`] changes it. Its scope is that of the
    /// template; the resource must not set another one.
    pub fn resource<'n>(
        &self,
        values: impl IntoIterator<Item = (&'n str, impl Into<TemplateValue>)>,
    ) -> Resource {
        let values = values.into_iter();
        let values = values.map(|(name, value)| (name, value.into()));
        Resource::new(self.template.expand(values))
    }
}

impl FromCall for PageRequest {
    fn from_call(call: &Call) -> Result<Self, Error> {
        let not_here =
            || Error::msg("`PageRequest` belongs to handlers of lists; take it out of this one");
        let arguments = call.arguments();
        let text = string_member(arguments, "template").ok_or_else(not_here)?;
        let size = arguments
            .get("size")
            .and_then(|size| decode::decode(&size).ok());
        let size: u64 = size.ok_or_else(not_here)?;
        Ok(Self {
            cursor: string_member(arguments, "cursor"),
            size: usize::try_from(size).unwrap_or(usize::MAX),
            template: UriTemplate::parse(&text)?,
        })
    }
}

/// One page of the resources of a template.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ResourcePage {
    pub(crate) resources: Vec<Resource>,
    pub(crate) next_cursor: Option<String>,
}

impl ResourcePage {
    /// Creates the last page of a list.
    pub fn new(resources: impl IntoIterator<Item = Resource>) -> Self {
        Self {
            resources: resources.into_iter().collect(),
            next_cursor: None,
        }
    }

    /// Sets the cursor of the next page, such as the key of the last row of this page; `None` for the last page.
    /// Clients receive an encrypted cursor.
    #[must_use]
    pub fn next_cursor(mut self, cursor: Option<impl Into<String>>) -> Self {
        self.next_cursor = cursor.map(Into::into);
        self
    }
}

impl IntoReply<Self> for ResourcePage {
    fn into_reply(self) -> Result<Self, Error> {
        Ok(self)
    }
}

/// The whole list, on one page.
impl IntoReply<ResourcePage> for Vec<Resource> {
    fn into_reply(self) -> Result<ResourcePage, Error> {
        Ok(ResourcePage::new(self))
    }
}
