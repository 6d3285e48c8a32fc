//! Applies corrections of the official schemas, each with its evidence.
//!
//! The input is `schema/errata.toml` and a schema; the output is the corrected schema. An erratum that does not find
//! its expected text, or does not change the schema, is an error: the official file has changed, and a person must
//! review the erratum.

use serde::Deserialize;
use serde_json::{Map, Value};

use crate::error::{Error, Result, shorten_value};
use crate::input::schema::Schema;

/// One correction of a schema.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Erratum {
    /// Name of the erratum in error messages.
    pub id: String,
    /// Revisions that the erratum corrects.
    pub revisions: Vec<String>,
    /// JSON pointer of the corrected value.
    #[serde(default)]
    pub pointer: Option<String>,
    /// JSON pointers of the corrected values, if several get the same contents.
    #[serde(default)]
    pub pointers: Vec<String>,
    /// Expected value, as JSON text.
    #[serde(default)]
    pub expect: Option<String>,
    /// True if no value is expected at the pointer.
    #[serde(default)]
    pub absent: bool,
    /// JSON text of the value that replaces the value at the pointer, or that is added there.
    pub put: String,
    /// Reason for the correction.
    pub reason: String,
    /// URL of the upstream commit or page that proves the error.
    pub proof: String,
}

/// The file `schema/errata.toml`.
#[derive(Deserialize)]
struct ErrataFile {
    /// Entries of the file.
    #[serde(default)]
    erratum: Vec<Erratum>,
}

/// Parses the entries of `schema/errata.toml`.
///
/// # Errors
/// Returns an error if the text is not a list of errata.
pub fn errata(text: &str) -> Result<Vec<Erratum>> {
    let list: ErrataFile = toml::from_str(text).map_err(|error| {
        let remedy = "see the comment at the top of the file for its form";
        Error::new(
            "schema/errata.toml",
            "",
            error.to_string().trim_end(),
            remedy,
        )
    })?;
    for erratum in &list.erratum {
        let blank = |text: &str| text.trim().is_empty();
        if blank(&erratum.reason) || blank(&erratum.proof) {
            let problem = format!("erratum `{}` lacks its reason or its proof", erratum.id);
            let remedy = "say why it is needed and which upstream text proves it";
            return Err(Error::new("schema/errata.toml", "", problem, remedy));
        }
        if erratum.revisions.is_empty() || pointers(erratum).next().is_none() {
            let problem = format!("erratum `{}` names no revision or no place", erratum.id);
            let remedy = "give it `revisions`, and `pointer` or `pointers`";
            return Err(Error::new("schema/errata.toml", "", problem, remedy));
        }
    }
    Ok(list.erratum)
}

/// Applies the errata of the schema's revision.
///
/// # Errors
/// Returns an error if an erratum does not match the schema.
pub fn correct(schema: &mut Schema, errata: &[Erratum]) -> Result<()> {
    let revision = schema.revision.clone();
    let mut touched: Vec<String> = Vec::new();
    for erratum in errata.iter().filter(|e| e.revisions.contains(&revision)) {
        for pointer in pointers(erratum) {
            let touches = |other: &&String| is_below(pointer, other) || is_below(other, pointer);
            if let Some(other) = touched.iter().find(touches) {
                let problem = format!("an erratum has already changed {other}");
                let remedy = format!("put both changes into one; this is `{}`", erratum.id);
                return Err(schema.error(pointer, problem, remedy));
            }
            apply(schema, erratum, pointer)?;
            touched.push(pointer.clone());
        }
    }
    schema.root.sort_all_objects();
    Ok(())
}

/// Returns the ids of the errata of other revisions that fit a schema: at each pointer they find what they expect. The
/// definitions of the pointers are looked up under the keyword of the schema.
pub fn fitting(schema: &Schema, errata: &[Erratum]) -> Vec<String> {
    let fits_at = |erratum: &Erratum, pointer: &str| {
        let below = ["/definitions/", "/$defs/"];
        let rest = below.iter().find_map(|head| pointer.strip_prefix(head));
        let pointer = rest.map_or_else(
            || pointer.to_owned(),
            |rest| format!("/{}/{rest}", schema.definitions),
        );
        // References name the keyword too.
        let json = |text: &str| {
            let text = text.replace("#/definitions/", &format!("#/{}/", schema.definitions));
            let text = text.replace("#/$defs/", &format!("#/{}/", schema.definitions));
            serde_json::from_str::<Value>(&text).ok()
        };
        let found = schema.root.pointer(&pointer);
        match &erratum.expect {
            Some(expected) => found.is_some() && found == json(expected).as_ref(),
            None => {
                let parent = pointer.rsplit_once('/').map_or("", |(parent, _)| parent);
                found.is_none() && schema.root.pointer(parent).is_some_and(Value::is_object)
            }
        }
    };
    errata
        .iter()
        .filter(|erratum| !erratum.revisions.contains(&schema.revision))
        .filter(|erratum| pointers(erratum).all(|pointer| fits_at(erratum, pointer)))
        .map(|erratum| erratum.id.clone())
        .collect()
}

/// Returns all JSON pointers that an erratum corrects, from both of its fields.
fn pointers(erratum: &Erratum) -> impl Iterator<Item = &String> {
    erratum.pointer.iter().chain(&erratum.pointers)
}

/// Returns true if a JSON pointer equals `above` or refers to a value inside it.
fn is_below(pointer: &str, above: &str) -> bool {
    let rest = pointer.strip_prefix(above);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Applies an erratum at one of its JSON pointers.
fn apply(schema: &mut Schema, erratum: &Erratum, pointer: &str) -> Result<()> {
    let remedy = format!(
        "look at what upstream changed and amend erratum `{}`",
        erratum.id
    );
    let fail = |problem: String| Error::new(&schema.revision, pointer, problem, &*remedy);
    let json = |what: &str, text: &str| -> Result<Value> {
        serde_json::from_str(text).map_err(|error| fail(format!("`{what}` is not JSON: {error}")))
    };
    let put = json("put", &erratum.put)?;
    let expect = erratum
        .expect
        .as_deref()
        .map(|text| json("expect", text))
        .transpose()?;
    if expect.is_none() != erratum.absent {
        return Err(fail(
            "an erratum says either `expect` or `absent = true`".into(),
        ));
    }
    let found = schema.root.pointer(pointer);
    if found == Some(&put) {
        return Err(fail("the erratum changes nothing".into()));
    }
    if found != expect.as_ref() {
        let found = found.map_or("nothing".into(), shorten_value);
        let wanted = expect.as_ref().map_or("nothing".into(), shorten_value);
        return Err(fail(format!(
            "the erratum finds {found} where it expects {wanted}"
        )));
    }
    if let (Some(place), false) = (schema.root.pointer_mut(pointer), erratum.absent) {
        *place = put;
        return Ok(());
    }
    let Some((parent, name)) = split_pointer(&mut schema.root, pointer) else {
        let problem = "the erratum points at no member of an object that exists";
        return Err(Error::new(&schema.revision, pointer, problem, &*remedy));
    };
    parent.insert(name, put);
    Ok(())
}

/// Returns the object that contains the value at a JSON pointer, and the name of the member with the value.
fn split_pointer<'v>(
    root: &'v mut Value,
    pointer: &str,
) -> Option<(&'v mut Map<String, Value>, String)> {
    let (parent, name) = pointer.rsplit_once('/')?;
    let parent = root.pointer_mut(parent)?.as_object_mut()?;
    Some((parent, name.replace("~1", "/").replace("~0", "~")))
}
