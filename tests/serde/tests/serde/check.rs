//! Serialises and deserialises instances of a type through every layer of serde, and checks that the instances are
//! unchanged.
//!
//! A layer is a derived serde type that contains the tested type, as users write such types. Generated types implement
//! serde by two functions of the wire crate, which see a text and no type. The layers are therefore compiled once, for
//! [`Erased`], which implements serde by the same macro; each generated type is checked directly, in a buffering layer
//! and against [`Erased`].

use std::borrow::Cow;
use std::cell::Cell;
use std::fmt::Debug;

use mcp_exact_tests_support::Doc;
use mcp_exact_wire::{
    Decode, Encode, JsonObject, ReadResult, Reader, Writer, from_str, serde_through_wire, to_string,
};
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

thread_local! {
    /// Decodes a value of the tested type and returns its text.
    static TESTED: Cell<fn(&mut Reader<'_>) -> ReadResult<String>> = const { Cell::new(decode_as::<JsonObject>) };
}

/// Decodes a value of the type `T` and returns its text.
fn decode_as<T: Decode + Encode>(reader: &mut Reader<'_>) -> ReadResult<String> {
    Ok(to_string(&T::decode(reader)?))
}

/// Value of the tested type, as its text. Decoding it is decoding the tested type.
#[derive(Debug, Clone, PartialEq)]
struct Erased(String);

impl Decode for Erased {
    fn decode(reader: &mut Reader<'_>) -> ReadResult<Self> {
        TESTED.get()(reader).map(Self)
    }
}

impl Encode for Erased {
    fn encode(&self, writer: &mut Writer<'_>) {
        writer.put(&self.0);
    }
}

serde_through_wire!(Erased);

/// Serialises and deserialises one instance through all layers; an instance that its type refuses is only counted.
pub(crate) fn check<T: CheckedType>(text: &str, checked: &mut CheckCounts) {
    let Ok(value) = from_str::<T>(text) else {
        checked.refused += 1;
        assert!(serde_json::from_str::<T>(text).is_err(), "{text}");
        return;
    };
    TESTED.set(decode_as::<T>);
    checked.instances += 1;
    let exact = to_string(&value);
    check_type(&value, &exact);
    let sample = Sample {
        doc: Doc::parse(&exact).expect("it is JSON"),
        value: Erased(exact.clone()),
        exact,
    };
    sample.check_layers(text, checked);
}

/// Checks the implementation of serde by the type `T` itself: directly, and with a value that a layer has buffered.
fn check_type<T: CheckedType>(value: &T, exact: &str) {
    let got: T = serde_json::from_str(exact).expect("from_str");
    assert_eq!(got, *value);
    assert_eq!(serde_json::to_string(value).expect("to_string"), exact);
    let buffered = serde_json::to_value(value).expect("to_value");
    let erased = Erased(exact.to_owned());
    assert_eq!(buffered, serde_json::to_value(&erased).expect("to_value"));
    let got = T::deserialize(&buffered).expect("from a reference");
    let erased = Erased::deserialize(&buffered).expect("from a reference");
    assert_eq!(to_string(&got), erased.0);
}

/// Tested instance, as a value, as text and as a document.
struct Sample {
    /// The value.
    value: Erased,
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

impl Sample {
    /// Serialises and deserialises the instance, which was decoded from `text`, through all layers.
    fn check_layers(&self, text: &str, checked: &mut CheckCounts) {
        self.check_serde_json_deserialisers(text);
        self.check_serde_json_serialisers();
        self.check_field();
        self.check_untagged();
        self.check_adjacently_tagged();
        self.check_value();
        if matches!(self.doc, Doc::Object(_)) {
            checked.objects += 1;
            self.check_flattened();
            self.check_flattened_option();
            self.check_internally_tagged();
        }
    }

    /// Checks that the deserialised value `got` is equal to the instance and is encoded as the same text.
    fn check_exact(&self, got: &Erased) {
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
    fn check_buffered(&self, got: &Erased, layer: Layer) {
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
        let stream = serde_json::Deserializer::from_str(&twice).into_iter::<Erased>();
        let all: Vec<Erased> = stream.collect::<Result<_, _>>().expect("a stream");
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
        let field: Field<Erased> = serde_json::from_str(&text).expect("fields");
        match &field.value {
            Some(value) => self.check_exact(value),
            // The null of a type that is untyped JSON is an absent value to serde.
            None => assert_eq!(*exact, "null"),
        }
        self.check_exact(&field.boxed);
        field.list.iter().for_each(|value| self.check_exact(value));
        assert_eq!(field.none, None);
        assert_eq!(serde_json::to_string(&field).expect("fields"), text);
        let null: Field<Erased> = serde_json::from_str(&format!(
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
        let got: Flattened<Erased> = serde_json::from_str(&text).expect("flattened");
        assert!(got.before && got.after == 7);
        self.check_buffered(&got.value, Layer::Buffer);
        let got: Flattened<Erased> = serde_json::from_reader(text.as_bytes()).expect("flattened");
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
        match Flattened::<Erased>::deserialize(&value) {
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
        let got: Flattened<Option<Erased>> = serde_json::from_str(&text).expect("flattened");
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
            &Erased::deserialize(&value).expect("from a reference"),
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
