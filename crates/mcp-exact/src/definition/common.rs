//! Members that definitions of every kind share, and the methods that set them.

use super::icon::{Icon, icons_to_json};
use crate::protocol::{Json, JsonObject};

/// Members that definitions of every kind share.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct CommonMembers {
    pub(super) name: String,
    pub(super) title: Option<String>,
    pub(super) description: Option<String>,
    pub(super) icons: Vec<Icon>,
    /// Value of `_meta`; not advertised if empty.
    pub(super) meta: JsonObject,
    /// Required OAuth scopes, separated by spaces; not advertised.
    pub(super) scope: Option<String>,
}

impl CommonMembers {
    /// Creates members with a name only.
    pub(super) fn with_name(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            ..Self::default()
        }
    }

    /// Returns the advertised members as an object.
    pub(super) fn object(&self) -> JsonObject {
        let mut object = JsonObject::from_iter([("name", Json::string(&self.name))]);
        if let Some(title) = &self.title {
            object.insert("title", Json::string(title));
        }
        if let Some(description) = &self.description {
            object.insert("description", Json::string(description));
        }
        if !self.icons.is_empty() {
            object.insert("icons", icons_to_json(&self.icons));
        }
        if !self.meta.is_empty() {
            object.insert("_meta", self.meta.clone());
        }
        object
    }
}

/// Defines the methods that definitions of every kind share.
macro_rules! common_setters {
    ($($kind:ident)*) => {
        $(
            impl $kind {
                /// Sets the display name (from 2025-06-18 on).
                #[must_use]
                pub fn title(mut self, title: impl Into<String>) -> Self {
                    self.common.title = Some(title.into());
                    self
                }

                /// Sets the description, which models read.
                #[must_use]
                pub fn description(mut self, description: impl Into<String>) -> Self {
                    self.common.description = Some(description.into());
                    self
                }

                /// Adds an icon (from 2025-11-25 on).
                #[must_use]
                pub fn icon(mut self, icon: impl Into<crate::Icon>) -> Self {
                    let icon = icon.into();
                    self.common.icons.push(icon);
                    self
                }

                /// Sets an entry of `_meta` (from 2025-06-18 on).
                #[must_use]
                pub fn meta(mut self, key: &str, value: impl Into<crate::RawJson>) -> Self {
                    self.common.meta.insert(key, value.into());
                    self
                }

                /// Sets the OAuth scopes that callers need, separated by spaces. Scopes are checked over HTTP with
                /// authentication ([`Server::http`](crate::Server::http)); the predicate of
                /// [`visible`](crate::ServerBuilder::visible) can also use the scopes. Scopes are not advertised.
                #[must_use]
                pub fn scope(mut self, scope: impl Into<String>) -> Self {
                    self.common.scope = Some(scope.into());
                    self
                }

                /// Returns the name.
                pub fn name(&self) -> &str {
                    &self.common.name
                }

                /// Returns the OAuth scopes that [`scope`](Self::scope) has set.
                pub fn scope_label(&self) -> Option<&str> {
                    self.common.scope.as_deref()
                }
            }

            impl From<&str> for $kind {
                fn from(name: &str) -> Self {
                    Self::new(name)
                }
            }

            impl From<String> for $kind {
                fn from(name: String) -> Self {
                    Self::new(name)
                }
            }
        )*
    };
}

pub(super) use common_setters;
