//! Icons of servers and definitions.

use crate::protocol::{Json, JsonObject};

/// Icon of a server, tool, resource or prompt (from 2025-11-25 on).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Icon {
    /// URI of the image, with the scheme `https:` or `data:` (`Icon` in the schema).
    pub src: String,
    /// Media type of the image.
    pub mime_type: Option<String>,
    /// Sizes such as `48x48`, or `any`.
    pub sizes: Vec<String>,
}

impl From<&str> for Icon {
    fn from(src: &str) -> Self {
        Self::new(src)
    }
}

impl Icon {
    /// Creates an icon from its URI.
    pub fn new(src: impl Into<String>) -> Self {
        Self {
            src: src.into(),
            mime_type: None,
            sizes: Vec::new(),
        }
    }

    /// Sets the media type of the image.
    #[must_use]
    pub fn mime_type(mut self, mime_type: impl Into<String>) -> Self {
        self.mime_type = Some(mime_type.into());
        self
    }

    /// Adds a size such as `48x48`.
    #[must_use]
    pub fn size(mut self, size: impl Into<String>) -> Self {
        self.sizes.push(size.into());
        self
    }

    /// Returns the icon as JSON.
    fn to_json(&self) -> Json {
        let mut icon = JsonObject::from_iter([("src", Json::string(&self.src))]);
        if let Some(mime_type) = &self.mime_type {
            icon.insert("mimeType", Json::string(mime_type));
        }
        if !self.sizes.is_empty() {
            icon.insert("sizes", Json::from_encode(&self.sizes));
        }
        icon.into()
    }
}

/// Returns icons as a JSON array.
pub(crate) fn icons_to_json(icons: &[Icon]) -> Json {
    let icons: Vec<Json> = icons.iter().map(Icon::to_json).collect();
    Json::from_encode(&icons)
}
