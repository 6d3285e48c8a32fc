//! Random numbers, strings and member names, random strings that are valid for a format, and strings that violate a
//! format.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use crate::rng::Rng;

/// Numbers that `serde_json` represents exactly without `arbitrary_precision`.
pub(crate) const NUMBERS: [&str; 24] = [
    "0",
    "1",
    "-1",
    "7",
    "7.0",
    "42",
    "-0",
    "0.0",
    "-0.0",
    "1.0",
    "0.5",
    "-2.75",
    "1e3",
    "1E+2",
    "2.5e-3",
    "0.25",
    "1e-1",
    "100",
    "9007199254740993",
    "9223372036854775807",
    "-9223372036854775808",
    "18446744073709551615",
    "1.50",
    "3e0",
];

/// Numbers that `serde_json` rounds or refuses without `arbitrary_precision`.
pub(crate) const EXOTIC_NUMBERS: [&str; 7] = [
    "1e400",
    "-1e400",
    "1e-400",
    "123456789012345678901234567890",
    "-123456789012345678901234567890",
    "0.1000000000000000055511151231257827",
    "18446744073709551616",
];

/// Strings with characters that need escapes or that have several bytes in UTF-8.
const STRINGS: [&str; 22] = [
    "",
    " ",
    "a",
    "hello world",
    "null",
    "1",
    "true",
    "{}",
    "2025-06-18",
    "tools/call",
    "\"quoted\" and \\back\\ /slashed/",
    "line\nbreak\r\n\ttab",
    "\u{0}\u{1}\u{8}\u{c}\u{1f}\u{7f}",
    "naïve café",
    "日本語",
    "😀👩‍👩‍👧",
    "\u{2028}\u{2029}\u{85}",
    "\u{feff}bom",
    "\u{fffd}",
    "\u{10ffff}",
    "e\u{301}",
    "</script>",
];

/// Member names that the specification does not define.
const MEMBER_NAMES: [&str; 17] = [
    "",
    "x-unknown",
    "ünï",
    "a/b~c",
    "a b",
    "0",
    "-1",
    "$ref",
    "__proto__",
    "null",
    "\"",
    "\\",
    "\u{0}",
    "\n",
    "😀",
    "io.example/key",
    "Method",
];

/// Member names for [`unknown_name`] that no specification will ever define.
const UNKNOWN_NAMES: [&str; 8] = [
    "x-unknown",
    "ünï",
    "a/b~c",
    "x y",
    "\"x\"",
    "\\x\u{1}",
    "😀",
    "com.example.nowhere/x",
];

/// Schemes of valid URIs.
const SCHEMES: [&str; 9] = [
    "https", "http", "file", "ui", "urn", "custom", "a", "x-y+z.1", "HTTP",
];

/// Parts of valid URIs after the scheme and its colon.
const URI_TAILS: [&str; 22] = [
    "//example.com",
    "//example.com/",
    "//user:pw@example.com:8080/a/b;c=1?q=%20&r=/?#frag/?",
    "//[::1]:80/x",
    "//[2001:db8::7]/c=GB?objectClass?one",
    "//127.0.0.1/",
    "///home/me/file.txt",
    "//host:/",
    "//ex%41mple.com/%e2%82%ac",
    "isbn:0451450523",
    "",
    "path",
    "/",
    "/a//b/./../c",
    "?",
    "#",
    "a@b.example",
    "//",
    "//_dmarc.example/!$&'()*+,;=:@",
    "text/plain,hi%20there",
    "//example.com/~user/-._~",
    "//widget/1?x=()",
];

/// Texts that are not URIs.
const BAD_URIS: [&str; 32] = [
    "a:?x[]",
    "a:[]",
    "",
    " ",
    "no-scheme",
    "/relative/path",
    "//example.com/",
    "example.com:80x y",
    "http://exa mple.com/",
    "http://a/b c",
    "http://a/%",
    "http://a/%2",
    "http://a/%zz",
    "http://[::1",
    "http://[::1]x/",
    "http://[12345::]/",
    "http://a:port/",
    "1http://a/",
    "ht!tp://a/",
    ":a",
    "http://a/ü",
    "http://ü/",
    "a:b^c",
    "a:{b}",
    "a:<b>",
    "a:\"",
    "a:\\b",
    "a:`",
    "http://a/\n",
    "a:#b#c",
    "http://u@v@w/",
    "a:|",
];

/// Valid URI templates.
const TEMPLATES: [&str; 23] = [
    "",
    "file:///{path}",
    "https://example.com/{a}/{b}",
    "{scheme}://x",
    "x{?q,lang}",
    "x{&a*}",
    "{+path:3}/here",
    "{#frag}",
    "{.ext}",
    "{/seg*}",
    "{;p:9999}",
    "{a.b.c}",
    "{%41b}",
    "{_1}",
    "%20",
    "plain",
    "é/{x}",
    "a:b?c#d[e]@!$&'()*+,;=",
    "{x}{y}{z}",
    "{a,b:1,c*}",
    "{,reserved}",
    "{=reserved}",
    "{|reserved}",
];

/// Invalid URI templates.
const BAD_TEMPLATES: [&str; 25] = [
    "{",
    "}",
    "{}",
    "{a",
    "a}",
    "{a}}",
    "{{a}}",
    "{a b}",
    "{a,}",
    "{a:0}",
    "{a:}",
    "{a:10000}",
    "{a*:3}",
    "{a:3*}",
    "{%4}",
    "{a..b}",
    "{.}",
    "{+}",
    "%",
    "%zz",
    "a b",
    "<x>",
    "\"",
    "x\\y",
    "{a-b}",
];

/// Invalid base64 texts.
const BAD_BASE64: [&str; 22] = [
    "a", "ab", "abc", "YQ", "YQ=", "YQ===", "====", "=", "YR==", "YWJ=", "YWJjZA", "YQ==\n",
    " YQ==", "Y Q==", "ab-_", "YQ==YQ==", "Y=Q=", "YWJj=", "YWJj====", "é===", "\u{0}AAA", "!!!!",
];

/// Returns a random string.
pub(crate) fn string(rng: &mut Rng) -> String {
    match rng.below(10) {
        0..=5 => (*rng.pick(&STRINGS)).to_owned(),
        6..=8 => (0..1 + rng.below(12))
            .map(|_| char::from(b'a' + rng.below(26) as u8))
            .collect(),
        _ => (0..rng.below(8)).map(|_| character(rng)).collect(),
    }
}

/// Returns a random character.
fn character(rng: &mut Rng) -> char {
    let end = *rng.pick(&[0x80, 0x800, 0x1_0000, 0x11_0000]);
    char::from_u32(rng.below(end) as u32).unwrap_or('\u{fffd}')
}

/// Returns a random member name; some of the names are from `known`.
pub(crate) fn name(known: &[&str], rng: &mut Rng) -> String {
    match rng.below(10) {
        0..=3 if !known.is_empty() => (*rng.pick(known)).to_owned(),
        0..=6 => (*rng.pick(&MEMBER_NAMES)).to_owned(),
        _ => string(rng),
    }
}

/// Returns a member name that no specification defines and that is not among the names `taken`.
pub(crate) fn unknown_name<'n>(
    taken: impl Iterator<Item = &'n str> + Clone,
    rng: &mut Rng,
) -> String {
    let mut name = (*rng.pick(&UNKNOWN_NAMES)).to_owned();
    while taken.clone().any(|other| other == name) {
        name.push(char::from(b'0' + rng.below(10) as u8));
    }
    name
}

/// Returns the text of a random number of any size and spelling; `exotic` allows numbers that `serde_json` rounds or
/// refuses.
pub(crate) fn number(exotic: bool, rng: &mut Rng) -> String {
    if exotic && rng.chance(25) {
        return (*rng.pick(&EXOTIC_NUMBERS)).to_owned();
    }
    match rng.below(10) {
        0..=6 => (*rng.pick(&NUMBERS)).to_owned(),
        7 => (rng.next_u64() as i64 >> rng.below(64)).to_string(),
        8 => rng.next_u64().to_string(),
        _ => format!("{}.{}", rng.below(1000), rng.below(1000)),
    }
}

/// Returns a random string that is valid for a format.
///
/// # Panics
///
/// If the official schemas do not use the format.
pub(crate) fn string_of_format(format: &str, rng: &mut Rng) -> String {
    match format {
        "uri" => format!("{}:{}", rng.pick(&SCHEMES), rng.pick(&URI_TAILS)),
        "uri-template" => (*rng.pick(&TEMPLATES)).to_owned(),
        "byte" => {
            let bytes: Vec<u8> = (0..rng.below(13)).map(|_| rng.below(256) as u8).collect();
            STANDARD.encode(bytes)
        }
        "date" => date(rng),
        "date-time" => {
            let zone = rng.pick(&["Z", "+00:00", "-23:59", "z"]);
            let fraction = rng.pick(&["", ".5", ".123456789"]);
            format!("{}T{:02}:59:07{fraction}{zone}", date(rng), rng.below(24))
        }
        "email" => (*rng.pick(&["me@example.com", "a.b+c@x.example"])).to_owned(),
        other => panic!("unknown format {other:?}: teach it to values.rs"),
    }
}

/// Returns a random date.
fn date(rng: &mut Rng) -> String {
    format!(
        "{:04}-{:02}-{:02}",
        rng.below(10_000),
        1 + rng.below(12),
        1 + rng.below(28)
    )
}

/// Returns strings that violate the format in different ways.
pub(crate) fn strings_violating_format(format: &str) -> &'static [&'static str] {
    match format {
        "uri" => &BAD_URIS,
        "uri-template" => &BAD_TEMPLATES,
        "byte" => &BAD_BASE64,
        "date" => &["", "2025-13-01", "2025-02-30", "2025-1-1", "20250101"],
        "date-time" => &[
            "",
            "2025-01-01",
            "2025-01-01T00:00:00",
            "2025-01-01 00:00:00Z",
            "2025-01-01T24:00:00Z",
        ],
        "email" => &["", "me", "@example.com", "me@", "a b@example.com"],
        _ => &[],
    }
}

#[cfg(all(test, feature = "oracle"))]
mod tests {
    use serde_json::json;

    use super::{string_of_format, strings_violating_format};
    use crate::oracle::Oracle;
    use crate::rng::Rng;

    /// The validator accepts the generated strings of each format, and refuses the strings that violate it.
    #[test]
    fn validator_agrees_with_formatted_strings() {
        let mut rng = Rng::new(6);
        for format in ["uri", "uri-template", "byte", "date", "date-time", "email"] {
            let document = json!({"$defs": {"F": {"type": "string", "format": format}}});
            let oracle = Oracle::new(&document);
            for _ in 0..500 {
                let good = string_of_format(format, &mut rng);
                assert!(
                    oracle.is_valid("F", &good.as_str().into()),
                    "{format} {good:?}"
                );
            }
            let accepted: Vec<&str> = strings_violating_format(format)
                .iter()
                .copied()
                .filter(|bad| oracle.is_valid("F", &(*bad).into()))
                .collect();
            assert!(accepted.is_empty(), "{format} {accepted:?}");
        }
    }
}
