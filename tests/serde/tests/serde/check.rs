//! Serialises and deserialises instances of a type through every layer of serde, and checks that the instances are
//! unchanged.
//!
//! A layer is a derived serde type that contains the tested type, as users write such types.

use std::borrow::Cow;
use std::fmt::Debug;

use mcp_exact_tests_support::Doc;
use mcp_exact_wire::{Decode, Encode, JsonObject, from_str, to_string};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::preserved::Layer;

/// Numbers of checked instances.
#[derive(Debug, Default)]
pub(crate) struct CheckCounts {
    /// Number of instances.
    pub(crate) instances: usize,
    /// Number of instances that are objects; only objects can be flattened or internally tagged.
    objects: usize,
    /// Number of instances that are not checked, because errata or the number `1e-400` make them invalid.
    pub(crate) refused: usize,
}

/// Combination of the trait bounds that the checks require.
pub(crate) trait CheckedType:
    Decode + Encode + Serialize + DeserializeOwned + PartialEq + Clone + Debug
{
}

impl<T: Decode + Encode + Serialize + DeserializeOwned + PartialEq + Clone + Debug> CheckedType
    for T
{
}

/// Serialises and deserialises one instance through all layers; an instance that its type refuses is only counted.
pub(crate) fn check<T: CheckedType>(text: &str, checked: &mut CheckCounts) {
    let Ok(value) = from_str::<T>(text) else {
        checked.refused += 1;
        assert!(serde_json::from_str::<T>(text).is_err(), "{text}");
        return;
    };
    checked.instances += 1;
    let sample = Sample {
        exact: to_string(&value),
        doc: Doc::parse(&to_string(&value)).expect("it is JSON"),
        value,
    };
    sample.check_serde_json_deserialisers(text);
    sample.check_serde_json_serialisers();
    sample.check_field();
    sample.check_untagged();
    sample.check_adjacently_tagged();
    sample.check_value();
    if matches!(sample.doc, Doc::Object(_)) {
        checked.objects += 1;
        sample.check_flattened();
        sample.check_flattened_option();
        sample.check_internally_tagged();
    }
}

/// Tested instance, as a value, as text and as a document.
struct Sample<T> {
    /// The value.
    value: T,
    /// Text of the encoded value.
    exact: String,
    /// Value as a document whose members and numbers can be compared.
    doc: Doc,
}

/// Struct with ordinary fields of the tested type.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Field<T> {
    /// Field before the fields of the tested type.
    before: bool,
    /// Instance in an option.
    value: Option<T>,
    /// Absent instance.
    #[serde(skip_serializing_if = "Option::is_none")]
    none: Option<T>,
    /// List that contains the instance.
    list: Vec<T>,
    /// Instance in a box.
    boxed: Box<T>,
}

/// Struct with a flattened field of the tested type between other fields.
#[derive(Debug, Serialize, Deserialize)]
struct Flattened<T> {
    /// Field before the flattened field.
    #[serde(rename = "x-test-before")]
    before: bool,
    /// Flattened instance.
    #[serde(flatten)]
    value: T,
    /// Field after the flattened field.
    #[serde(rename = "x-test-after")]
    after: u8,
}

/// Variant that matches no value, so that serde deserialises the next variant from its buffer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct NeverMatching {
    /// Required member that no instance has.
    #[serde(rename = "x-test-nothing")]
    nothing: NeverMatchingValue,
}

/// Value that no instance contains. A boolean is not sufficient, because derived structs also accept an array of their
/// fields, and `[false]` is valid untyped JSON.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
enum NeverMatchingValue {
    /// The only value of the type.
    #[serde(rename = "x-test-nothing-value")]
    Value,
}

/// Untagged enum whose first variant never matches.
#[derive(Debug, Serialize, Deserialize)]
#[serde(untagged)]
enum Untagged<T> {
    /// Variant that never matches.
    NeverMatching(NeverMatching),
    /// Variant that contains the tested instance.
    Tested(T),
}

/// Adjacently tagged enum.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "kind", content = "c")]
enum Adjacent<T> {
    /// Variant that never matches.
    NeverMatching(NeverMatching),
    /// Variant that contains the tested instance.
    Tested(T),
}

/// Internally tagged enum.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "x-test-kind")]
enum Internal<T> {
    /// Variant that never matches.
    NeverMatching(NeverMatching),
    /// Variant that contains the tested instance.
    Tested(T),
}

impl<T: CheckedType> Sample<T> {
    /// Checks that the deserialised value `got` is equal to the instance and is encoded as the same text.
    fn check_exact(&self, got: &T) {
        assert_eq!(to_string(got), self.exact);
        assert_eq!(*got, self.value);
    }

    /// Returns the text of an object as a layer writes it that serialises each member separately: white space between
    /// members and the spelling of member names are not kept.
    fn rewritten_by_member(&self) -> String {
        let object: JsonObject = from_str(&self.exact).expect("an object");
        let member =
            |(name, value): (Cow<'_, str>, &str)| format!("{}:{value}", Value::from(&*name));
        let members: Vec<String> = object.iter().map(member).collect();
        format!("{{{}}}", members.join(","))
    }

    /// Checks that the deserialised value `got` contains everything that a buffering layer keeps.
    fn check_buffered(&self, got: &T, layer: Layer) {
        let got = to_string(got);
        let doc = Doc::parse(&got).expect("it is JSON");
        assert!(layer.preserves(&self.doc, &doc), "{}\n{got}", self.exact);
    }

    /// Checks every deserialiser of serde_json with the text `text`.
    fn check_serde_json_deserialisers(&self, text: &str) {
        self.check_exact(&serde_json::from_str(text).expect("from_str"));
        self.check_exact(&serde_json::from_slice(text.as_bytes()).expect("from_slice"));
        self.check_exact(&serde_json::from_reader(text.as_bytes()).expect("from_reader"));
        let twice = format!("{text}\n{text}");
        let stream = serde_json::Deserializer::from_str(&twice).into_iter::<T>();
        let all: Vec<T> = stream.collect::<Result<_, _>>().expect("a stream");
        assert_eq!(all.len(), 2);
        all.iter().for_each(|value| self.check_exact(value));
    }

    /// Checks every serialiser of serde_json.
    fn check_serde_json_serialisers(&self) {
        assert_eq!(
            serde_json::to_string(&self.value).expect("to_string"),
            self.exact
        );
        let bytes = serde_json::to_vec(&self.value).expect("to_vec");
        assert_eq!(bytes, self.exact.as_bytes());
        let mut written = Vec::new();
        serde_json::to_writer(&mut written, &self.value).expect("to_writer");
        assert_eq!(written, self.exact.as_bytes());
        let pretty = serde_json::to_string_pretty(&self.value).expect("to_string_pretty");
        let doc = Doc::parse(&pretty).expect("it is JSON");
        assert_eq!(doc, self.doc, "{pretty}");
    }

    /// Checks the instance in fields of structs, options, lists and boxes.
    fn check_field(&self) {
        let exact = &self.exact;
        let text = format!(
            r#"{{"before":true,"value":{exact},"list":[{exact},{exact}],"boxed":{exact}}}"#
        );
        let field: Field<T> = serde_json::from_str(&text).expect("fields");
        match &field.value {
            Some(value) => self.check_exact(value),
            // The null of a type that is untyped JSON is an absent value to serde.
            None => assert_eq!(*exact, "null"),
        }
        self.check_exact(&field.boxed);
        field.list.iter().for_each(|value| self.check_exact(value));
        assert_eq!(field.none, None);
        assert_eq!(serde_json::to_string(&field).expect("fields"), text);
        let null: Field<T> = serde_json::from_str(&format!(
            r#"{{"before":true,"value":null,"list":[],"boxed":{exact}}}"#
        ))
        .expect("null for an option");
        assert_eq!(null.value, None);
    }

    /// Checks the instance in an untagged enum.
    fn check_untagged(&self) {
        let got = serde_json::from_str(&self.exact).expect("untagged");
        let Untagged::Tested(got) = got else {
            panic!("not Nothing: {}", self.exact)
        };
        self.check_buffered(&got, Layer::Buffer);
        let sent = Untagged::Tested(self.value.clone());
        assert_eq!(serde_json::to_string(&sent).expect("untagged"), self.exact);
    }

    /// Checks the instance in an adjacently tagged enum, with the tag before and after the content.
    fn check_adjacently_tagged(&self) {
        let exact = &self.exact;
        let tag_first = format!(r#"{{"kind":"Tested","c":{exact}}}"#);
        let Adjacent::Tested(got) = serde_json::from_str(&tag_first).expect("the tag first") else {
            panic!("not Nothing")
        };
        self.check_exact(&got);
        let sent = serde_json::to_string(&Adjacent::Tested(got)).expect("adjacent");
        assert_eq!(sent, tag_first);
        let tag_last = format!(r#"{{"c":{exact},"kind":"Tested"}}"#);
        let Adjacent::Tested(got) = serde_json::from_str(&tag_last).expect("the tag last") else {
            panic!("not Nothing")
        };
        self.check_buffered(&got, Layer::Buffer);
    }

    /// Checks the instance in an internally tagged enum.
    fn check_internally_tagged(&self) {
        let text = with_member(r#""x-test-kind":"Tested""#, &self.exact, "");
        let Internal::Tested(got) = serde_json::from_str(&text).expect("internal") else {
            panic!("not Nothing")
        };
        self.check_buffered(&got, Layer::Buffer);
        let sent = Internal::Tested(self.value.clone());
        let text = with_member(r#""x-test-kind":"Tested""#, &self.rewritten_by_member(), "");
        assert_eq!(serde_json::to_string(&sent).expect("internal"), text);
    }

    /// Checks the instance in a flattened field.
    fn check_flattened(&self) {
        let text = with_member(
            r#""x-test-before":true"#,
            &self.exact,
            r#""x-test-after":7"#,
        );
        let got: Flattened<T> = serde_json::from_str(&text).expect("flattened");
        assert!(got.before && got.after == 7);
        self.check_buffered(&got.value, Layer::Buffer);
        let got: Flattened<T> = serde_json::from_reader(text.as_bytes()).expect("flattened");
        self.check_buffered(&got.value, Layer::Buffer);
        let sent = Flattened {
            before: true,
            value: self.value.clone(),
            after: 7,
        };
        let text = with_member(
            r#""x-test-before":true"#,
            &self.rewritten_by_member(),
            r#""x-test-after":7"#,
        );
        assert_eq!(serde_json::to_string(&sent).expect("flattened"), text);
        let value = serde_json::to_value(&sent).expect("flattened");
        match Flattened::<T>::deserialize(&value) {
            Ok(got) => self.check_buffered(&got.value, Layer::ValueThenBuffer),
            // Serde's buffer does not support integers beyond `u64`, which `Value` may provide.
            Err(_) => assert!(Flattened::<Value>::deserialize(&value).is_err(), "{value}"),
        }
    }

    /// Checks the instance in a flattened optional field.
    fn check_flattened_option(&self) {
        let text = with_member(
            r#""x-test-before":true"#,
            &self.exact,
            r#""x-test-after":7"#,
        );
        let got: Flattened<Option<T>> = serde_json::from_str(&text).expect("flattened");
        self.check_buffered(&got.value.expect("it is there"), Layer::Buffer);
        let sent = Flattened {
            before: true,
            value: Some(self.value.clone()),
            after: 7,
        };
        let text = with_member(
            r#""x-test-before":true"#,
            &self.rewritten_by_member(),
            r#""x-test-after":7"#,
        );
        assert_eq!(serde_json::to_string(&sent).expect("flattened"), text);
    }

    /// Checks the conversion of the instance to `serde_json::Value` and back.
    fn check_value(&self) {
        let value = serde_json::to_value(&self.value).expect("to_value");
        let parsed: Value = serde_json::from_str(&self.exact).expect("it is JSON");
        assert_eq!(value, parsed);
        self.check_buffered(
            &T::deserialize(&value).expect("from a reference"),
            Layer::Value,
        );
        self.check_buffered(
            &serde_json::from_value(value).expect("from_value"),
            Layer::Value,
        );
    }
}

/// Returns the text of an object with the members `first` at its start and `last` at its end.
fn with_member(first: &str, object: &str, last: &str) -> String {
    let inside = &object[1..object.len() - 1];
    let parts = [first, inside, last];
    let parts: Vec<&str> = parts
        .into_iter()
        .filter(|part| !part.trim().is_empty())
        .collect();
    format!("{{{}}}", parts.join(","))
}
