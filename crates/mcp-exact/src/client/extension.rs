//! Extensions of a client: the declaration with its settings, and the methods and notifications that belong to it.

use super::{Client, Connect};
use crate::protocol::{JsonObject, extension};

impl Connect {
    /// Declares an extension, such as `com.example/index`, with its settings, to servers of every revision. The server's
    /// settings are [`Client::server_extension`]; a [handler](Self::on_notification) receives its notifications.
    pub fn extension(mut self, id: impl AsRef<str>, settings: JsonObject) -> Self {
        extension::declared(&mut self.settings.extensions, id.as_ref()).settings = settings;
        self
    }

    /// Declares an extension and its methods, which the client sends with [`Client::request`]. From 2026-07-28 on they are
    /// sent only to servers that have declared the extension.
    pub fn extension_methods(
        mut self,
        id: impl AsRef<str>,
        methods: impl IntoIterator<Item = impl Into<String>>,
    ) -> Self {
        let methods: Vec<String> = methods.into_iter().map(Into::into).collect();
        let declared = extension::declared(&mut self.settings.extensions, id.as_ref());
        declared.requests.extend(methods.iter().cloned());
        self.methods(methods)
    }

    /// Declares an extension and its notifications, which the client sends ([`Client::notify`]). From 2026-07-28 on they are
    /// sent only to servers that have declared the extension.
    pub fn extension_notifications(
        mut self,
        id: impl AsRef<str>,
        methods: impl IntoIterator<Item = impl Into<String>>,
    ) -> Self {
        let methods: Vec<String> = methods.into_iter().map(Into::into).collect();
        let declared = extension::declared(&mut self.settings.extensions, id.as_ref());
        let known = &mut declared.client_notifications;
        known.extend(methods.iter().cloned());
        self.notifications(methods)
    }
}

impl Client {
    /// Returns the settings of an extension that the server has declared.
    pub fn server_extension(&self, id: &str) -> Option<JsonObject> {
        extension::settings_in(&self.capabilities(), id)
    }
}
