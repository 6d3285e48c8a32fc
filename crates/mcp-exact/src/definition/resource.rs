//! Definitions of resources and resource templates.

use super::common::{CommonMembers, common_setters};
use crate::annotations::{Role, audience_to_json, priority_to_json};
use crate::apps::{MIME_TYPE, is_page_uri};
use crate::protocol::{Json, JsonObject};

common_setters!(Resource ResourceTemplate);

/// Defines the methods that resources and resource templates share. `$uri` is the field with the URI or URI template.
macro_rules! resource_methods {
    ($($kind:ident $uri:ident;)*) => {
        $(
            impl $kind {
                /// Sets the name.
                #[must_use]
                pub fn with_name(mut self, name: impl Into<String>) -> Self {
                    self.common.name = name.into();
                    self
                }

                /// Sets the media type of the resource, or of all resources of the template.
                #[must_use]
                pub fn mime_type(mut self, mime_type: impl Into<String>) -> Self {
                    self.mime_type = Some(mime_type.into());
                    self
                }

                /// Sets the audience (`annotations.audience`): whether users, models or both read the resource, or each
                /// resource of the template.
                #[must_use]
                pub fn audience(mut self, audience: impl IntoIterator<Item = Role>) -> Self {
                    self.annotations.insert("audience", audience_to_json(audience));
                    self
                }

                /// Sets the importance of the resource, or of the resources of the template, from 0 to 1. Values outside
                /// of this range are clamped.
                #[must_use]
                pub fn priority(mut self, priority: f64) -> Self {
                    self.annotations.insert("priority", priority_to_json(priority));
                    self
                }

                pub(crate) fn media_type(&self) -> Option<&str> {
                    self.mime_type.as_deref()
                }

                /// Returns the definition with the media type of pages, if its URIs are those of pages and it has no media
                /// type.
                pub(crate) fn with_page_type(mut self) -> Self {
                    if self.mime_type.is_none() && is_page_uri(&self.$uri) {
                        self.mime_type = Some(MIME_TYPE.to_owned());
                    }
                    self
                }
            }
        )*
    };
}

resource_methods! {
    Resource uri;
    ResourceTemplate template;
}

/// Definition of a resource with a fixed URI (section `server/resources`, "Resource").
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Resource {
    common: CommonMembers,
    uri: String,
    mime_type: Option<String>,
    /// Size in bytes.
    size: Option<u64>,
    /// Value of `annotations`.
    annotations: JsonObject,
}

impl Resource {
    /// Creates the definition of a resource from its URI. The default name is the last segment of the URI;
    /// [`with_name`](Self::with_name) changes the name.
    pub fn new(uri: impl Into<String>) -> Self {
        let uri = uri.into();
        Self {
            common: CommonMembers::with_name(last_segment(&uri)),
            uri,
            ..Self::default()
        }
    }

    /// Sets the size in bytes (from 2024-11-05 on).
    #[must_use]
    pub fn size(mut self, bytes: u64) -> Self {
        self.size = Some(bytes);
        self
    }

    /// Returns the URI.
    pub fn uri(&self) -> &str {
        &self.uri
    }

    /// Returns the resource with the size of a page, unless it has one, and with the settings of the page.
    pub(crate) fn with_page(mut self, size: u64, settings: JsonObject) -> Self {
        self.size = self.size.or(Some(size));
        if !settings.is_empty() {
            self.common.meta.insert("ui", settings);
        }
        self
    }

    /// Returns the resource with the media type and the scope of its template, where it has none of its own.
    pub(crate) fn with_defaults_of(mut self, template: &ResourceTemplate) -> Self {
        self.mime_type = self.mime_type.or_else(|| template.mime_type.clone());
        let scope = || template.common.scope.clone();
        self.common.scope = self.common.scope.or_else(scope);
        self
    }

    /// Returns the definition in the form of the home revision.
    pub(crate) fn definition(&self) -> JsonObject {
        let mut object = self.common.object();
        object.insert("uri", Json::string(&self.uri));
        if let Some(mime_type) = &self.mime_type {
            object.insert("mimeType", Json::string(mime_type));
        }
        if let Some(size) = self.size {
            object.insert("size", size);
        }
        if !self.annotations.is_empty() {
            object.insert("annotations", self.annotations.clone());
        }
        object
    }
}

/// Definition of a resource template: resources whose URIs have the same form (section `server/resources`, "Resource
/// Templates").
///
/// The template has the syntax of RFC 6570; [`UriTemplate`](crate::UriTemplate) lists the supported expressions.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ResourceTemplate {
    common: CommonMembers,
    template: String,
    mime_type: Option<String>,
    /// Value of `annotations`.
    annotations: JsonObject,
}

impl ResourceTemplate {
    /// Creates the definition of a resource template. The default name is the template;
    /// [`with_name`](Self::with_name) changes the name.
    pub fn new(template: impl Into<String>) -> Self {
        let template = template.into();
        Self {
            common: CommonMembers::with_name(template.clone()),
            template,
            ..Self::default()
        }
    }

    /// Returns the template.
    pub fn template(&self) -> &str {
        &self.template
    }

    /// Returns the definition in the form of the home revision.
    pub(crate) fn definition(&self) -> JsonObject {
        let mut object = self.common.object();
        object.insert("uriTemplate", Json::string(&self.template));
        if let Some(mime_type) = &self.mime_type {
            object.insert("mimeType", Json::string(mime_type));
        }
        if !self.annotations.is_empty() {
            object.insert("annotations", self.annotations.clone());
        }
        object
    }
}

/// Returns the last segment of a URI's path, or the complete URI if the path has no segments.
fn last_segment(uri: &str) -> &str {
    let trimmed = uri.trim_end_matches('/');
    match trimmed.rsplit('/').next() {
        Some(segment) if !segment.is_empty() && !segment.ends_with(':') => segment,
        _ => uri,
    }
}
