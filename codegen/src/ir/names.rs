//! Rust names of types, variants, fields, crates and markers.
//!
//! Names of the specification are kept; anonymous types are named after their JSON pointers. The generator never adds
//! numbers to make names unique.

use heck::{ToSnakeCase, ToUpperCamelCase};

/// Returns a word of a type name for a JSON name: `io.modelcontextprotocol/clientInfo` becomes `ClientInfo`, `_meta`
/// becomes `Meta`.
pub fn type_word(json: &str) -> String {
    last_part(json).to_upper_camel_case()
}

/// Returns the name of the anonymous type of a member: the owner's name and the member's name. The result type in
/// `XResultResponse` is named `XOutcome`.
pub fn member_type(owner: &str, json: &str) -> String {
    match owner.strip_suffix("ResultResponse") {
        Some(stem) if json == "result" => format!("{stem}Outcome"),
        _ => format!("{owner}{}", type_word(json)),
    }
}

/// Returns the name of the Rust field for the JSON name of a member.
pub fn field(json: &str) -> String {
    let name = last_part(json).to_snake_case();
    match name.as_str() {
        "self" | "super" | "crate" | "extra" => format!("{name}_"),
        _ => name,
    }
}

/// Returns a word of a type name for the value of a constant: `ref/prompt` becomes `RefPrompt`, `2.0` becomes `V20`,
/// `+` becomes `Plus`.
pub fn value_variant(value: &str) -> String {
    let plain = value.to_upper_camel_case();
    let numbered = format!("V{plain}");
    if is_type_name(&plain) {
        plain
    } else if plain.starts_with(|c: char| c.is_ascii_digit()) && is_type_name(&numbered) {
        numbered
    } else {
        spell_out(value)
    }
}

/// Returns unique variant names for the values of an enum: the words of the value, with its symbols if two values
/// differ only in symbols, and with every character if they differ in nothing else, such as `a` and `A`.
pub fn value_variants<S: AsRef<str>>(values: &[S]) -> Vec<String> {
    let mut names: Vec<String> = values.iter().map(|v| value_variant(v.as_ref())).collect();
    for rename in [spell_out, unique_spelling] {
        let taken = names.clone();
        for (name, value) in names.iter_mut().zip(values) {
            let count = taken.iter().filter(|other| *other == name).count();
            if count > 1 || name == "Unrecognized" {
                *name = rename(value.as_ref());
            }
        }
    }
    names
}

/// Returns a type name for any text: the letters and digits of the text, and the names of its symbols.
fn spell_out(text: &str) -> String {
    let mut words = String::new();
    for c in text.chars() {
        match symbol_name(c) {
            _ if c.is_ascii_alphanumeric() => words.push(c),
            Some(name) => words += &format!("_{name}_"),
            None if c.is_whitespace() || c == '_' => words.push('_'),
            None => words += &format!("_u{:x}_", u32::from(c)),
        }
    }
    match words.to_upper_camel_case() {
        name if name.is_empty() => "Empty".to_owned(),
        name if name == "Self" => "SelfValue".to_owned(),
        name if name.starts_with(|c: char| c.is_ascii_digit()) => format!("V{name}"),
        name => name,
    }
}

/// Returns a name that is unique to the text: its words, then each of its characters, either unchanged or as its code
/// point.
fn unique_spelling(text: &str) -> String {
    let mut name = spell_out(text) + "_";
    for c in text.chars() {
        match c {
            '_' => name += "__",
            _ if c.is_ascii_alphanumeric() => name.push(c),
            _ => name += &format!("_u{:x}_", u32::from(c)),
        }
    }
    name
}

/// Returns the name of an ASCII symbol.
fn symbol_name(c: char) -> Option<&'static str> {
    /// ASCII symbols with their names.
    const SYMBOLS: &[(char, &str)] = &[
        ('!', "exclamation"),
        ('"', "quote"),
        ('#', "hash"),
        ('$', "dollar"),
        ('%', "percent"),
        ('&', "and"),
        ('\'', "apostrophe"),
        ('(', "open_parenthesis"),
        (')', "close_parenthesis"),
        ('*', "star"),
        ('+', "plus"),
        (',', "comma"),
        ('-', "minus"),
        ('.', "dot"),
        ('/', "slash"),
        (':', "colon"),
        (';', "semicolon"),
        ('<', "less"),
        ('=', "equal"),
        ('>', "greater"),
        ('?', "question"),
        ('@', "at"),
        ('[', "open_bracket"),
        ('\\', "backslash"),
        (']', "close_bracket"),
        ('^', "caret"),
        ('`', "backtick"),
        ('{', "open_brace"),
        ('|', "bar"),
        ('}', "close_brace"),
        ('~', "tilde"),
    ];
    let found = SYMBOLS.iter().find(|(symbol, _)| *symbol == c);
    found.map(|(_, name)| *name)
}

/// Returns the part after the reverse-domain prefix that the specification assigns to reserved `_meta` names.
fn last_part(json: &str) -> &str {
    json.rsplit('/').next().unwrap_or(json)
}

/// Returns true if a name is a valid Rust type name without a change.
pub fn is_type_name(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_uppercase())
        && name.chars().all(|c| c.is_ascii_alphanumeric())
        && name != "Self"
}

/// Returns short and unique names for the variants of a union: without the words that all names start or end with, or
/// the discriminant's values, or the complete names.
pub fn union_variants(names: &[&str], tags: Option<&[&str]>) -> Vec<String> {
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
            return shorten_unique(names, |name| name.strip_suffix(suffix).unwrap_or(name));
        }
    }
    if names.iter().all(|name| name.starts_with("JSONRPC")) {
        return shorten_unique(names, |name| name.strip_prefix("JSONRPC").unwrap_or(name));
    }
    if let Some(tags) = tags {
        return disambiguate(
            names,
            tags.iter().map(|tag| tag.to_upper_camel_case()).collect(),
        );
    }
    names.iter().map(|&name| name.to_owned()).collect()
}

/// Returns each name shortened by `shorten`, or unchanged names if the short ones are not unique or not valid.
fn shorten_unique<'n>(names: &[&'n str], shorten: impl Fn(&'n str) -> &'n str) -> Vec<String> {
    let short = names.iter().map(|&name| match shorten(name) {
        "" => name.to_owned(),
        short => short.to_owned(),
    });
    disambiguate(names, short.collect())
}

/// Returns the short names if they are unique and valid, and the complete names otherwise.
fn disambiguate(names: &[&str], short: Vec<String>) -> Vec<String> {
    let mut sorted: Vec<_> = short.iter().collect();
    sorted.sort();
    let clash = sorted.windows(2).any(|pair| pair[0] == pair[1]);
    if clash || short.iter().any(|name| !is_type_name(name)) {
        names.iter().map(|&name| name.to_owned()).collect()
    } else {
        short
    }
}

/// Returns the name of a revision's marker type: `2025-06-18` becomes `V2025_06_18`, `draft-x` becomes `VDraftX`.
pub fn marker_name(revision: &str) -> String {
    if !revision.starts_with(|c: char| c.is_ascii_digit()) {
        return format!("V{}", revision.to_upper_camel_case());
    }
    format!(
        "V{}",
        revision.replace(|c: char| !c.is_ascii_alphanumeric(), "_")
    )
}

/// Returns the name of the static for a revision: `V2025_06_18`, or `VDRAFT` for an identifier that is a word.
pub fn static_name(id: &str) -> String {
    let plain = id.replace(|c: char| !c.is_ascii_alphanumeric(), "_");
    format!("V{}", plain.to_ascii_uppercase())
}

/// Returns the library name of a crate, as used in paths.
pub fn library_name(id: &str) -> String {
    format!(
        "mcp_{}",
        id.replace(|c: char| !c.is_ascii_alphanumeric(), "_")
    )
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;

    /// Checks the names of several texts, one per line.
    fn check(name: impl Fn(&str) -> String, texts: &[&str], expected: Expect) {
        let line = |text: &&str| format!("{text} => {}\n", name(text));
        expected.assert_eq(&texts.iter().map(line).collect::<String>());
    }

    #[test]
    fn fields_are_snake_case() {
        check(
            field,
            &[
                "inputSchema",
                "_meta",
                "$schema",
                "io.modelcontextprotocol/clientInfo",
                "type",
                "gen",
                "self",
                "super",
                "crate",
                "extra",
                "URL",
                "x-y z",
            ],
            expect![[r#"
                inputSchema => input_schema
                _meta => meta
                $schema => schema
                io.modelcontextprotocol/clientInfo => client_info
                type => type
                gen => gen
                self => self_
                super => super_
                crate => crate_
                extra => extra_
                URL => url
                x-y z => x_y_z
            "#]],
        );
    }

    #[test]
    fn type_words_are_camel_case() {
        check(
            type_word,
            &[
                "inputSchema",
                "_meta",
                "$schema",
                "io.modelcontextprotocol/clientInfo",
            ],
            expect![[r#"
                inputSchema => InputSchema
                _meta => Meta
                $schema => Schema
                io.modelcontextprotocol/clientInfo => ClientInfo
            "#]],
        );
    }

    /// The value of a constant becomes a word of a type name in upper camel case.
    #[test]
    fn values_become_variants() {
        check(
            value_variant,
            &[
                "ref/prompt",
                "accept",
                "light-green",
                "_other",
                "tools/call",
                "self",
                "2.0",
                "ALL_CAPS",
            ],
            expect![[r#"
                ref/prompt => RefPrompt
                accept => Accept
                light-green => LightGreen
                _other => Other
                tools/call => ToolsCall
                self => SelfValue
                2.0 => V20
                ALL_CAPS => AllCaps
            "#]],
        );
    }

    /// Checks the variant names of an enum's values, one per line.
    fn check_values(values: &[&str], expected: Expect) {
        let lines = values.iter().zip(super::value_variants(values));
        let lines = lines.map(|(value, name)| format!("{value} => {name}\n"));
        expected.assert_eq(&lines.collect::<String>());
    }

    /// Every string value of an enum gets a valid variant name.
    #[test]
    fn any_text_has_a_name() {
        check_values(
            &[
                "2025-06-18",
                "+",
                "<=",
                "",
                "self",
                "type",
                "a b",
                "é",
                "Unrecognized",
                "unrecognized",
            ],
            expect![[r#"
                2025-06-18 => V20250618
                + => Plus
                <= => LessEqual
                 => Empty
                self => SelfValue
                type => Type
                a b => AB
                é => Ue9
                Unrecognized => Unrecognized_Unrecognized
                unrecognized => Unrecognized_unrecognized
            "#]],
        );
    }

    /// Values that differ only in symbols or in the case of letters get distinct variant names.
    #[test]
    fn similar_values_get_distinct_names() {
        check_values(
            &["a", "A", "foo-bar", "foo_bar", "fooBar", "c+", "c", "x"],
            expect![[r#"
                a => A_a
                A => A_A
                foo-bar => FooMinusBar
                foo_bar => FooBar_foo__bar
                fooBar => FooBar_fooBar
                c+ => CPlus
                c => C
                x => X
            "#]],
        );
    }

    /// A definition may have a name only if the name is an upper-camel-case Rust identifier.
    #[test]
    fn valid_type_names_are_recognised() {
        check(
            |name| is_type_name(name).to_string(),
            &[
                "JSONRPCError",
                "Self",
                "self",
                "Foo_Bar",
                "Ünicode",
                "A1",
                "1A",
                "",
            ],
            expect![[r#"
                JSONRPCError => true
                Self => false
                self => false
                Foo_Bar => false
                Ünicode => false
                A1 => true
                1A => false
                 => false
            "#]],
        );
    }

    /// Checks the variant names of a union, one per line.
    fn check_variants(names: &[&str], tags: Option<&[&str]>, expected: Expect) {
        expected.assert_eq(&(union_variants(names, tags).join("\n") + "\n"));
    }

    /// Variant names omit the words with which the names of all variants begin or end.
    #[test]
    fn common_words_are_removed() {
        check_variants(
            &["CallToolRequest", "PingRequest"],
            None,
            expect![[r#"
            CallTool
            Ping
        "#]],
        );
        check_variants(
            &["JSONRPCError", "JSONRPCRequest"],
            None,
            expect![[r#"
            Error
            Request
        "#]],
        );
        check_variants(
            &["EmptyResult", "Result"],
            None,
            expect![[r#"
            Empty
            Result
        "#]],
        );
    }

    /// Variants are named after the values of the discriminant, or after their types if the values are no unique names.
    #[test]
    fn tags_name_variants() {
        check_variants(
            &["TextContent", "ResourceLink"],
            Some(&["text", "resource_link"]),
            expect![[r#"
                Text
                ResourceLink
            "#]],
        );
        check_variants(
            &["A", "B"],
            Some(&["a-b", "a_b"]),
            expect![[r#"
            A
            B
        "#]],
        );
        check_variants(
            &["A", "B"],
            Some(&["1", "2"]),
            expect![[r#"
            A
            B
        "#]],
        );
    }

    /// Variants without a discriminant are named after their types, shortened where the names remain unique.
    #[test]
    fn types_name_variants() {
        check_variants(
            &["Request", "PingRequest"],
            None,
            expect![[r#"
            Request
            Ping
        "#]],
        );
        check_variants(
            &["Json", "Tool"],
            None,
            expect![[r#"
            Json
            Tool
        "#]],
        );
    }
}
