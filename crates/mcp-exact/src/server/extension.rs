//! Extensions of a server: the declaration with its settings, and the notifications that belong to it.

use super::builder::ServerBuilder;
use crate::protocol::{JsonObject, extension};

impl ServerBuilder {
    /// Declares an extension, such as `com.example/index`, with its settings, to clients of every revision. The client's
    /// settings are [`Cx::client_extension`](crate::Cx::client_extension).
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// use mcp_exact::{Client, Cx, JsonObject, Server};
    ///
    /// let server = Server::builder("notes", "1.0.0")
    ///     .extension("com.example/index", JsonObject::new())
    ///     .extension_method("com.example/index", "index/rebuild", |cx: Cx| async move {
    ///         cx.client_extension("com.example/index").unwrap_or_default()
    ///     })
    ///     .build()?;
    /// let client = Client::in_memory(&server)
    ///     .extension("com.example/index", JsonObject::from_iter([("depth", 2)]))
    ///     .extension_methods("com.example/index", ["index/rebuild"])
    ///     .await?;
    /// let result = client.request("index/rebuild", None).await?;
    /// assert!(result.text().contains(r#""depth":2"#));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn extension(mut self, id: impl AsRef<str>, settings: JsonObject) -> Self {
        extension::declared(&mut self.config.extensions, id.as_ref()).settings = settings;
        self
    }

    /// Declares an extension and its notifications, which handlers send ([`Cx::notify`](crate::Cx::notify)). From
    /// 2026-07-28 on they are sent only to clients that have declared the extension.
    pub fn extension_notifications(
        mut self,
        id: impl AsRef<str>,
        methods: impl IntoIterator<Item = impl Into<String>>,
    ) -> Self {
        let methods: Vec<String> = methods.into_iter().map(Into::into).collect();
        let declared = extension::declared(&mut self.config.extensions, id.as_ref());
        declared.notifications.extend(methods.iter().cloned());
        self.notifications(methods)
    }
}
