//! Emits doc comments from the descriptions of the schema.
//!
//! JSDoc links become rustdoc links if the type exists; all other text is escaped so that Markdown does not
//! interpret it.

use proc_macro2::TokenStream;
use quote::quote;

use crate::ir::{Definition, Ir, Member, MemberValue, Type, field};

/// Returns the documentation of a type.
pub fn definition_docs(ir: &Ir, definition: &Definition) -> TokenStream {
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
    let description = match &definition.description {
        Some(description) => to_markdown(ir, description),
        None => fallback_sentence(ir, definition),
    };
    doc_attributes(&format!("{description}\n\n{place}"))
}

/// Returns a documentation sentence for a type without a description.
fn fallback_sentence(ir: &Ir, definition: &Definition) -> String {
    let name = &definition.name;
    match name.strip_suffix("Params") {
        Some(of) if ir.get(of).is_some() => format!("Parameters of [`{of}`]."),
        _ if definition.official => format!("`{name}` of the specification."),
        _ => match answered_request(ir, name) {
            Some(request) => format!("Any of the results that answer a [`{request}`]."),
            None => "A part of the specification that it leaves without a name.".to_owned(),
        },
    }
}

/// Returns the request whose possible results are the union with this name.
fn answered_request<'i>(ir: &'i Ir, name: &str) -> Option<&'i str> {
    let mut methods = ir.methods.iter().filter(|m| !m.outcomes.is_empty());
    let method = methods.find(|method| method.result.as_deref() == Some(name));
    method.map(|method| method.definition.as_str())
}

/// Returns the documentation of a field: the description of the schema, or else a link to the type or the JSON name.
pub fn member_docs(ir: &Ir, member: &Member) -> TokenStream {
    if let Some(description) = &member.description {
        return description_docs(ir, description);
    }
    match &member.value {
        MemberValue::Type(value) => match referenced_definition(value) {
            Some(name) => doc_attributes(&format!("See [`{name}`].")),
            None if field(member) == member.name => TokenStream::new(),
            None => doc_attributes(&format!("`{}` in JSON.", member.name)),
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

/// Returns documentation attributes for a description of the schema, converted to Markdown.
pub fn description_docs(ir: &Ir, description: &str) -> TokenStream {
    doc_attributes(&to_markdown(ir, description))
}

/// Returns one `#[doc]` attribute per line of a text.
pub fn doc_attributes(text: &str) -> TokenStream {
    let lines = text.lines().map(|line| match line.trim_end() {
        "" => String::new(),
        line => format!(" {line}"),
    });
    quote!(#(#[doc = #lines])*)
}

/// Base URL that completes links of the specification that begin with `/`.
const SITE: &str = "https://modelcontextprotocol.io";

/// Converts a description of the schema to Markdown.
fn to_markdown(ir: &Ir, description: &str) -> String {
    let mut out = String::new();
    let mut rest = description.trim();
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
            (convert_link(ir, inside), length)
        } else if let Some((label, target, length)) = markdown_link(from).filter(|_| !is_code) {
            let site = if target.starts_with('/') { SITE } else { "" };
            (format!("[{label}]({site}{target})"), length)
        } else if let Some(page) = specification_page(from).filter(|_| !is_code) {
            (format!("[{page}]({SITE}/{page})"), page.len() + 2)
        } else {
            pending = at + 1;
            continue;
        };
        out.push_str(&escape_description(&rest[..at]));
        out.push_str(&text);
        rest = &rest[at + length..];
        (pending, is_code) = (0, false);
    }
    out.push_str(&escape_description(rest));
    without_rust_code(&out)
}

/// Returns Markdown whose code is not taken for Rust, which rustdoc would compile: a code block without a language is text, and
/// indented code is a paragraph.
fn without_rust_code(markdown: &str) -> String {
    let mut lines: Vec<String> = Vec::new();
    // Backticks or tildes that begin a block.
    let mut fence: Option<String> = None;
    let (mut after_blank, mut is_list) = (true, false);
    for line in markdown.lines() {
        let text = line.trim_start();
        let indent = line.len() - text.len();
        let marks = text.len() - text.trim_start_matches(['`', '~']).len();
        let is_fence = marks >= 3 && text[..marks].chars().all(|c| text.starts_with(c));
        match &fence {
            Some(open) => {
                if is_fence && marks == text.trim_end().len() && text.starts_with(open.as_str()) {
                    fence = None;
                }
                lines.push(line.to_owned());
            }
            None if is_fence => {
                fence = Some(text[..marks].to_owned());
                let is_rust = text[marks..].trim().is_empty();
                let language = if is_rust { "text" } else { "" };
                lines.push(format!("{}{language}", line.trim_end()));
            }
            None => {
                if indent == 0 && !text.is_empty() {
                    let mark = text.trim_start_matches(|c: char| c.is_ascii_digit());
                    let marks = ["- ", "* ", "+ ", ". ", ") "];
                    is_list = marks.iter().any(|list| mark.starts_with(list));
                }
                let is_code = after_blank && !is_list && (indent >= 4 || line.starts_with('\t'));
                lines.push(if is_code { text } else { line }.to_owned());
            }
        }
        // What follows indented code would be code after it as well.
        after_blank = text.is_empty() || (after_blank && indent > 0);
    }
    // The documentation that follows is no code.
    lines.extend(fence);
    lines.join("\n")
}

/// Converts a JSDoc link: a target, optionally followed by a bar or a space and a label.
fn convert_link(ir: &Ir, inside: &str) -> String {
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
    match type_and_method(ir, inside) {
        Some((name, method)) => format!("[`{method}`]({name})"),
        None => format!("`{label}`"),
    }
}

/// Splits a target that is the name of a type and, as its label, a method without a space between them.
fn type_and_method<'a>(ir: &Ir, inside: &'a str) -> Option<(&'a str, &'a str)> {
    let starts = inside
        .char_indices()
        .rev()
        .filter(|(_, letter)| letter.is_ascii_lowercase());
    let mut parts = starts.map(|(at, _)| inside.split_at(at));
    let is_method = |method: &str| method.chars().all(|c| c.is_ascii_alphabetic() || c == '/');
    parts.find(|(name, method)| ir.get(name).is_some() && is_method(method))
}

/// Escapes text that is not a link; code spans are unchanged.
fn escape_description(description: &str) -> String {
    let parts: Vec<&str> = description.split('`').collect();
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

/// Escapes text that is not a code span; URLs become links.
fn escape_plain_text(description: &str) -> String {
    let mut out = String::new();
    let mut rest = description;
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
const MAX_LINK_LENGTH: usize = 1000;

/// Returns the longest beginning of a text with at most `most` bytes that does not split a character.
fn truncate(text: &str, most: usize) -> &str {
    let end = (0..=most.min(text.len()))
        .rev()
        .find(|&end| text.is_char_boundary(end));
    &text[..end.unwrap_or_default()]
}

/// Returns label, target and length of a Markdown link at the start of the text; the target is an absolute URL or a
/// page of the specification.
fn markdown_link(text: &str) -> Option<(&str, &str, usize)> {
    let text = truncate(text, MAX_LINK_LENGTH);
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
fn specification_page(text: &str) -> Option<&str> {
    let inside = truncate(text, MAX_LINK_LENGTH).strip_prefix('[')?;
    let page = &inside[..inside.find(']')?];
    let is_page = page.starts_with("specification/") && !page.contains(char::is_whitespace);
    is_page.then_some(page)
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};
    use serde_json::json;

    use super::*;
    use crate::testing::build_ir;

    /// Checks the Markdown of a description in a schema with the definition `Tool`.
    fn check(description: &str, expected: Expect) {
        let ir = build_ir(json!({ "Tool": { "type": "string" } })).expect("a small schema");
        expected.assert_eq(&(to_markdown(&ir, description) + "\n"));
    }

    #[test]
    fn known_types_are_linked() {
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
    fn unknown_types_are_not_linked() {
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

    /// Some descriptions have no space between a type and the label of its link.
    #[test]
    fn methods_after_types_are_labels() {
        check(
            "A {@link Tooltools/call} request, {@link Toolping} and {@link Tool_x}.",
            expect![[r#"
                A [`tools/call`](Tool) request, [`ping`](Tool) and `Tool_x`.
            "#]],
        );
    }

    #[test]
    fn specification_pages_are_linked() {
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
    fn unterminated_links_are_escaped() {
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
    fn urls_are_linked() {
        check(
            "See https://example.com/a?b=c. And (http://example.com), or https://example.com,",
            expect![[r#"
                See <https://example.com/a?b=c>. And (<http://example.com>), or <https://example.com>,
            "#]],
        );
        check(
            "An httpd is not an address, and https:// alone is short.",
            expect![[r#"
                An httpd is not an address, and <https://> alone is short.
            "#]],
        );
    }

    #[test]
    fn brackets_are_escaped() {
        check(
            "An array[i] of <T>, [fields] for notes.",
            expect![[r#"
                An array\[i] of \<T>, \[fields] for notes.
            "#]],
        );
    }

    #[test]
    fn code_spans_are_unchanged() {
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

    /// rustdoc compiles code blocks without a language, and indented ones: the next schema may have some.
    #[test]
    fn code_is_not_compiled() {
        check(
            "For example:\n```\nlet x = [1];\n```\nor ~~~\n~~~\n1\n~~~~\nend",
            expect![[r#"
                For example:
                ```text
                let x = [1];
                ```
                or ~~~
                ~~~text
                1
                ~~~~
                end
            "#]],
        );
        check(
            "Some code:\n\n    {\n      1\n\tx\n\nend",
            expect![[r#"
                Some code:

                {
                1
                x

                end
            "#]],
        );
        check(
            "- an item\n\n    and its text",
            expect![[r#"
                - an item

                    and its text
            "#]],
        );
        check(
            "~~~json\n{}",
            expect![[r#"
                ~~~json
                {}
                ~~~
            "#]],
        );
    }
}
