//! Names: of types, variants and fields.
//!
//! The specification's names stay as they are; what it leaves anonymous is named after where it stands. Never invents
//! numbered names.

use heck::{ToSnakeCase, ToUpperCamelCase};

/// A word of a type name from a JSON name: `io.modelcontextprotocol/clientInfo` gives `ClientInfo`, `_meta` `Meta`.
pub fn type_word(json: &str) -> String {
    last_part(json).to_upper_camel_case()
}

/// A field name from a JSON name.
pub fn field(json: &str) -> String {
    let name = last_part(json).to_snake_case();
    match name.as_str() {
        "self" | "super" | "crate" | "extra" => format!("{name}_"),
        _ => name,
    }
}

/// A variant name from the value of a constant: `ref/prompt` gives `RefPrompt`.
pub fn variant(value: &str) -> String {
    value.to_upper_camel_case()
}

/// The part after the reverse-domain prefix that the specification gives to reserved `_meta` names.
fn last_part(json: &str) -> &str {
    json.rsplit('/').next().unwrap_or(json)
}

/// Whether a name can be a Rust type as it is.
pub fn is_type_name(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_uppercase())
        && name.chars().all(|c| c.is_ascii_alphanumeric())
        && name != "Self"
}

/// The names of the members of a union, short and unique: without the words that all of them begin or end with, or the
/// discriminant's value, or the whole names.
pub fn variants(names: &[&str], tags: Option<&[&str]>) -> Vec<String> {
    for suffix in [
        "ResourceContents",
        "EnumSchema",
        "Schema",
        "Reference",
        "Request",
        "Notification",
        "Result",
    ] {
        if names.iter().all(|name| name.ends_with(suffix)) && names.len() > 1 {
            return shortened(names, |name| name.strip_suffix(suffix).unwrap_or(name));
        }
    }
    if names.iter().all(|name| name.starts_with("JSONRPC")) {
        return shortened(names, |name| name.strip_prefix("JSONRPC").unwrap_or(name));
    }
    if let Some(tags) = tags {
        return unique(names, tags.iter().map(|tag| variant(tag)).collect());
    }
    names.iter().map(|&name| name.to_owned()).collect()
}

fn shortened<'n>(names: &[&'n str], shorten: impl Fn(&'n str) -> &'n str) -> Vec<String> {
    let short = names.iter().map(|&name| match shorten(name) {
        "" => name.to_owned(),
        short => short.to_owned(),
    });
    unique(names, short.collect())
}

fn unique(names: &[&str], short: Vec<String>) -> Vec<String> {
    let mut sorted: Vec<_> = short.iter().collect();
    sorted.sort();
    let clash = sorted.windows(2).any(|pair| pair[0] == pair[1]);
    if clash || short.iter().any(|name| !is_type_name(name)) {
        names.iter().map(|&name| name.to_owned()).collect()
    } else {
        short
    }
}
