//! Emits doc comments from the descriptions of the schema.
//!
//! JSDoc links become rustdoc links if the type exists; all other text is escaped so that Markdown does not
//! interpret it.

use proc_macro2::TokenStream;
use quote::quote;

use crate::ir::{Definition, Ir, Member, MemberValue, Type, field};

/// Returns the documentation of a type.
pub fn definition(ir: &Ir, definition: &Definition) -> TokenStream {
    let place = if definition.official {
        format!("Schema: `{}`.", definition.pointers[0])
    } else if definition.pointers.is_empty() {
        "The schema has no name for it.".to_owned()
    } else {
        let places: Vec<String> = definition
            .pointers
            .iter()
            .map(|p| format!("`{p}`"))
            .collect();
        format!("Anonymous in the schema, at {}.", places.join(", "))
    };
    let words = match &definition.description {
        Some(words) => markdown(ir, words),
        None => fallback_sentence(ir, definition),
    };
    attributes(&format!("{words}\n\n{place}"))
}

/// Returns a documentation sentence for a type without a description.
fn fallback_sentence(ir: &Ir, definition: &Definition) -> String {
    let name = &definition.name;
    match name.strip_suffix("Params") {
        Some(of) if ir.get(of).is_some() => format!("Parameters of [`{of}`]."),
        _ if definition.official => format!("`{name}` of the specification."),
        _ => match answered(ir, name) {
            Some(request) => format!("Any of the results that answer a [`{request}`]."),
            None => "A part of the specification that it leaves without a name.".to_owned(),
        },
    }
}

/// Returns the request whose possible results are the union with this name.
fn answered<'i>(ir: &'i Ir, name: &str) -> Option<&'i str> {
    let mut methods = ir.methods.iter().filter(|m| !m.outcomes.is_empty());
    let method = methods.find(|method| method.result.as_deref() == Some(name));
    method.map(|method| method.definition.as_str())
}

/// Returns the documentation of a field; empty if the schema has no description and the type has one.
pub fn member(ir: &Ir, member: &Member) -> TokenStream {
    if let Some(words) = &member.description {
        return lines(ir, words);
    }
    match &member.value {
        MemberValue::Type(value) => match referenced_definition(value) {
            Some(name) => attributes(&format!("See [`{name}`].")),
            None if field(member) == member.name => TokenStream::new(),
            None => attributes(&format!("`{}` in JSON.", member.name)),
        },
        _ => TokenStream::new(),
    }
}

/// Returns the definition that a type refers to.
fn referenced_definition(value: &Type) -> Option<&str> {
    match value {
        Type::Ref { name, .. } => Some(name),
        Type::Array { items, .. } => referenced_definition(items),
        Type::Map(inner) | Type::Nullable(inner) => referenced_definition(inner),
        _ => None,
    }
}

/// Returns documentation attributes for a description of the schema, one per line.
pub fn lines(ir: &Ir, words: &str) -> TokenStream {
    attributes(&markdown(ir, words))
}

/// Returns documentation attributes for text, one per line.
pub fn attributes(text: &str) -> TokenStream {
    let lines = text.lines().map(|line| match line.trim_end() {
        "" => String::new(),
        line => format!(" {line}"),
    });
    quote!(#(#[doc = #lines])*)
}

/// Base URL of links between pages of the specification.
const SITE: &str = "https://modelcontextprotocol.io";

fn markdown(ir: &Ir, words: &str) -> String {
    let mut out = String::new();
    let mut rest = words.trim();
    // The text before each link is handled in one piece, because a code span may contain several words.
    let mut pending = 0;
    let mut is_code = false;
    while let Some(found) = rest[pending..].find(['{', '[']) {
        let at = pending + found;
        let from = &rest[at..];
        is_code ^= rest[pending..at].matches('`').count() % 2 == 1;
        let (text, length) = if let Some(after) = from.strip_prefix("{@link ") {
            let inside = after.split_once('}').map_or(after, |(inside, _)| inside);
            let length = (from.len() - after.len() + inside.len() + 1).min(from.len());
            (link(ir, inside), length)
        } else if let Some((label, target, length)) = markdown_link(from).filter(|_| !is_code) {
            let site = if target.starts_with('/') { SITE } else { "" };
            (format!("[{label}]({site}{target})"), length)
        } else if let Some(page) = page(from).filter(|_| !is_code) {
            (format!("[{page}]({SITE}/{page})"), page.len() + 2)
        } else {
            pending = at + 1;
            continue;
        };
        out.push_str(&escaped(&rest[..at]));
        out.push_str(&text);
        rest = &rest[at + length..];
        (pending, is_code) = (0, false);
    }
    out.push_str(&escaped(rest));
    out
}

/// Converts a JSDoc link: a target, optionally followed by a bar or a space and a label.
fn link(ir: &Ir, inside: &str) -> String {
    let (target, label) = inside
        .split_once('|')
        .or_else(|| inside.split_once(' '))
        .unwrap_or((inside, inside));
    let (target, label) = (target.trim(), label.trim());
    if ir.get(target).is_some() {
        if label == target {
            return format!("[`{target}`]");
        }
        return format!("[{}]({target})", label.replace(['[', ']'], ""));
    }
    if target.starts_with("http") {
        return format!("[{}]({target})", label.replace(['[', ']'], ""));
    }
    format!("`{label}`")
}

/// Escapes text that is not a link; code spans are unchanged.
fn escaped(words: &str) -> String {
    let parts: Vec<&str> = words.split('`').collect();
    let mut out = String::new();
    for (index, part) in parts.iter().enumerate() {
        let alone = index % 2 == 1 && index + 1 == parts.len();
        if alone {
            out.push('\\');
        }
        if index > 0 {
            out.push('`');
        }
        if index % 2 == 1 && !alone {
            out.push_str(part);
        } else {
            out.push_str(&escape_plain_text(part));
        }
    }
    out
}

fn escape_plain_text(words: &str) -> String {
    let mut out = String::new();
    let mut rest = words;
    while let Some(at) = rest.find(['[', '<', 'h']) {
        out.push_str(&rest[..at]);
        let from = &rest[at..];
        let taken = if from.starts_with("http://") || from.starts_with("https://") {
            let end = from.find([' ', ')', '\n', '>', ',']).unwrap_or(from.len());
            let url = from[..end].trim_end_matches('.');
            out.push_str(&format!("<{url}>"));
            url.len()
        } else {
            let c = &from[..1];
            out.push_str(if c == "h" { "" } else { "\\" });
            out.push_str(c);
            1
        };
        rest = &from[taken..];
    }
    out.push_str(rest);
    out
}

/// Maximum length of a link, so that a text of many brackets is not searched to its end for each of them.
const MAX_LINK: usize = 1000;

fn start(text: &str, most: usize) -> &str {
    let end = (0..=most.min(text.len()))
        .rev()
        .find(|&end| text.is_char_boundary(end));
    &text[..end.unwrap_or_default()]
}

/// Returns label, target and length of a Markdown link at the start of the text; the target is an absolute URL or a
/// page of the specification.
fn markdown_link(text: &str) -> Option<(&str, &str, usize)> {
    let text = start(text, MAX_LINK);
    let close = text.strip_prefix('[')?.find("](")? + 1;
    let (label, rest) = (&text[1..close], &text[close + 2..]);
    let target = &rest[..rest.find(')')?];
    let is_page = ["http://", "https://", "/"]
        .iter()
        .any(|start| target.starts_with(start));
    let is_plain = !label.contains(['\n', '[']) && !target.contains(char::is_whitespace);
    (is_page && is_plain).then_some((label, target, close + 2 + target.len() + 1))
}

/// Returns the specification page that is named in brackets at the start of the text.
fn page(text: &str) -> Option<&str> {
    let inside = start(text, MAX_LINK).strip_prefix('[')?;
    let page = &inside[..inside.find(']')?];
    let is_page = page.starts_with("specification/") && !page.contains(char::is_whitespace);
    is_page.then_some(page)
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};
    use serde_json::json;

    use super::*;
    use crate::testing::built;

    /// Checks the Markdown of a description in a schema with the definition `Tool`.
    fn check(words: &str, expected: Expect) {
        let ir = built(json!({ "Tool": { "type": "string" } })).expect("a small schema");
        expected.assert_eq(&(markdown(&ir, words) + "\n"));
    }

    #[test]
    fn links_to_known_types() {
        check(
            "See {@link Tool}.",
            expect![[r#"
            See [`Tool`].
        "#]],
        );
        check(
            "See {@link Tool | the tool} and {@link Tool the tool}.",
            expect![[r#"
                See [the tool](Tool) and [the tool](Tool).
            "#]],
        );
        check(
            "See {@link Tool | [a] tool}.",
            expect![[r#"
            See [a tool](Tool).
        "#]],
        );
    }

    #[test]
    fn links_to_unknown_types() {
        check(
            "See {@link Gone}.",
            expect![[r#"
            See `Gone`.
        "#]],
        );
        check(
            "See {@link Gone | what is gone}.",
            expect![[r#"
            See `what is gone`.
        "#]],
        );
        check(
            "See {@link Tool.name}.",
            expect![[r#"
            See `Tool.name`.
        "#]],
        );
    }

    #[test]
    fn links_to_pages() {
        check(
            "See {@link https://example.com/a | the page}.",
            expect![[r#"
                See [the page](https://example.com/a).
            "#]],
        );
        check(
            "See [the page](https://example.com/a).",
            expect![[r#"
            See [the page](https://example.com/a).
        "#]],
        );
        check(
            "See [the file](../a.md).",
            expect![[r#"
            See \[the file](../a.md).
        "#]],
        );
        check(
            "See [specification/2000-01-01/basic#fields] for notes.",
            expect![[r#"
                See [specification/2000-01-01/basic#fields](https://modelcontextprotocol.io/specification/2000-01-01/basic#fields) for notes.
            "#]],
        );
        check(
            "See [specification/a page], `[specification/basic]`.",
            expect![[r#"
                See \[specification/a page], `[specification/basic]`.
            "#]],
        );
    }

    #[test]
    fn links_without_an_end() {
        check(
            "See {@link Tool",
            expect![[r#"
            See [`Tool`]
        "#]],
        );
        check(
            "See {@link",
            expect![[r#"
            See {@link
        "#]],
        );
    }

    #[test]
    fn addresses() {
        check(
            "See https://example.com/a?b=c. And (http://example.com), or https://example.com,",
            expect![[r#"
                See <https://example.com/a?b=c>. And (<http://example.com>), or <https://example.com>,
            "#]],
        );
        check(
            "An httpd is no address, and https:// alone is short.",
            expect![[r#"
                An httpd is no address, and <https://> alone is short.
            "#]],
        );
    }

    #[test]
    fn brackets() {
        check(
            "An array[i] of <T>, [fields] for notes.",
            expect![[r#"
                An array\[i] of \<T>, \[fields] for notes.
            "#]],
        );
    }

    #[test]
    fn code_spans() {
        check(
            "Use `a[i]` and `Vec<T>` with `https://example.com`, not [b].",
            expect![[r#"
                Use `a[i]` and `Vec<T>` with `https://example.com`, not \[b].
            "#]],
        );
        check(
            "One ` alone [a].",
            expect![[r#"
                One \` alone \[a].
            "#]],
        );
        check(
            "```json\n{\"a\": [1]}\n```\nand [b]",
            expect![[r#"
            ```json
            {"a": [1]}
            ```
            and \[b]
        "#]],
        );
    }
}
