//! Annotations of content blocks and resources: for whom they are, and how important they are.

use crate::protocol::Json;

/// Role of a message or of an audience.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Role {
    /// The user.
    User,
    /// The model.
    Assistant,
}

impl Role {
    /// Returns the name of the role in the specification.
    pub const fn name(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Assistant => "assistant",
        }
    }
}

/// Returns an audience as JSON.
pub(crate) fn audience_to_json(audience: impl IntoIterator<Item = Role>) -> Json {
    let names = audience.into_iter().map(|role| role.name().to_owned());
    Json::from_encode(&names.collect::<Vec<_>>())
}

/// Returns an importance from 0 to 1 as JSON. Values outside of this range are clamped.
pub(crate) fn priority_to_json(priority: f64) -> Json {
    to_json_number(priority.clamp(0.0, 1.0))
}

/// Returns a number as JSON; null if the number is not finite.
pub(crate) fn to_json_number(value: f64) -> Json {
    Json::from_serialize(&value).unwrap_or(Json::null())
}
