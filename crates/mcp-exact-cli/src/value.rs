//! JSON values as the decoders of the types read them: numbers of any size, untyped values of any depth, and every
//! member, also one that an object has twice.
//!
//! `serde_json::Value` rounds numbers, refuses deep values and forgets duplicates, so that a check on it would judge
//! another message than the one that was sent.

use std::borrow::Cow;

use mcp_exact_wire::{Json, JsonRef, Kind, Number};

/// A value, or nothing where an object has no member of a name.
#[derive(Debug, Clone, Copy, Default)]
pub struct Value<'a>(Option<JsonRef<'a>>);

impl<'a> Value<'a> {
    /// Creates the view of a value.
    pub fn of(json: &'a Json) -> Self {
        Self(Some(json.view()))
    }

    /// Returns true if there is a value, which may be null.
    pub fn exists(self) -> bool {
        self.0.is_some()
    }

    /// Returns the value unless there is none.
    pub fn existing(self) -> Option<Self> {
        self.exists().then_some(self)
    }

    /// Returns the kind of the value; that of null if there is none.
    pub fn kind(self) -> Kind {
        self.0.map_or(Kind::Null, JsonRef::kind)
    }

    /// Returns the text of the value; `null` if there is none.
    pub fn text(self) -> &'a str {
        self.0.map_or("null", JsonRef::text)
    }

    /// Returns an owned copy; null if there is no value.
    pub fn to_json(self) -> Json {
        self.0.map_or_else(Json::null, JsonRef::to_json)
    }

    /// Returns true if the value is null, or if there is none.
    pub fn is_null(self) -> bool {
        self.kind() == Kind::Null
    }

    /// Returns true if the value is an object.
    pub fn is_object(self) -> bool {
        self.kind() == Kind::Object
    }

    /// Returns the value as a string; `None` for another kind, and for a string with a lone surrogate.
    pub fn as_str(self) -> Option<Cow<'a, str>> {
        self.0?.as_str()
    }

    /// Returns the value as a number.
    pub fn as_number(self) -> Option<Number> {
        self.0?.decode_as().ok()
    }

    /// Returns the member of an object; nothing if the value is no object or lacks the member.
    pub fn get(self, name: &str) -> Self {
        Self(
            self.0
                .and_then(JsonRef::object)
                .and_then(|object| object.find(name)),
        )
    }

    /// Returns the members of an object, in order, with those that are there twice.
    pub fn members(self) -> impl Iterator<Item = (Cow<'a, str>, Self)> {
        let object = self.0.and_then(JsonRef::object);
        let members = object.into_iter().flat_map(|object| object.iter());
        members.map(|(name, value)| (name, Self(Some(value))))
    }

    /// Returns the items of an array, each as its own text.
    pub fn items(self) -> Vec<Json> {
        self.0
            .and_then(|value| value.decode_as().ok())
            .unwrap_or_default()
    }

    /// Returns a text that is the same for every spelling of an id or token.
    pub fn key(self) -> String {
        if let Some(text) = self.as_str() {
            return Json::string(&text).text().to_owned();
        }
        let whole = self.as_number().and_then(|number| number.as_i64());
        whole.map_or_else(|| self.text().to_owned(), |whole| whole.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers that `f64` rounds, deep values and duplicates are there as they were sent.
    #[test]
    fn values_are_read_exactly() {
        let deep = format!("{}{}", "[".repeat(1000), "]".repeat(1000));
        let text = format!(r#"{{"a":1e400,"b":{deep},"a":10000000000000000001,"id":2.0}}"#);
        let json: Json = text.parse().expect("it is JSON");
        let value = Value::of(&json);
        let texts: Vec<&str> = value.members().map(|(_, value)| value.text()).collect();
        assert_eq!(texts, ["1e400", &*deep, "10000000000000000001", "2.0"]);
        assert_eq!(value.get("id").key(), "2");
        assert!(!value.get("c").exists() && value.get("c").is_null());
    }
}
