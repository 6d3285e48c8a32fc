//! Compares the decoding and encoding of strings with serde_json: for every character that needs an escape, at every
//! offset, and for seeded random strings.

use mcp_exact_tests_support::{Cases, Rng};
use mcp_exact_wire::{Json, from_str, to_string};

/// Seed of the random strings.
const SEED: u64 = 0x7159;
/// Number of random strings.
const RANDOM_STRING_COUNT: Cases = Cases {
    short: 20_000,
    long: 200_000,
};
/// Length of the test strings, which exceeds the largest block of bytes that is processed at once.
const MAX_LENGTH: usize = 140;

/// Returns the characters that need an escape, and neighbouring characters that need none.
fn special_characters() -> Vec<char> {
    ('\0'..='#')
        .chain([
            '\\', '/', '[', ']', '\u{7f}', '\u{80}', '\u{85}', '\u{a2}', '\u{dc}', 'é',
        ])
        .chain([
            '\u{2028}',
            '\u{d7ff}',
            '\u{e000}',
            '\u{feff}',
            '\u{ffff}',
            '😀',
            '\u{10ffff}',
        ])
        .collect()
}

/// Checks that a string is decoded and encoded as by serde_json.
fn check(text: &str) {
    let written = to_string(text);
    let theirs = serde_json::to_string(text).expect("it is a string");
    assert_eq!(written, theirs);
    assert_eq!(Json::string(text).text(), theirs);
    assert_eq!(from_str::<String>(&written).as_deref(), Ok(text));
    assert_eq!(
        from_str::<Json>(&written).map(|json| json.text() == theirs),
        Ok(true)
    );
}

/// A special character at any offset of a string is decoded and encoded as by serde_json.
#[test]
fn special_characters_round_trip() {
    let mut strings = 0;
    for special in special_characters() {
        for length in (0..40).chain([63, 64, 65, 95, 96, 97, MAX_LENGTH]) {
            for offset in 0..=length {
                let mut text = "x".repeat(offset);
                text.push(special);
                text.extend(std::iter::repeat_n('y', length - offset));
                check(&text);
                strings += 1;
            }
        }
    }
    println!("{strings} strings");
}

/// Two special characters at any offsets of a string are decoded and encoded as by serde_json.
#[test]
fn pairs_of_special_characters_round_trip() {
    let mut strings = 0;
    for first in ['"', '\\', '\u{1f}', 'é', '\u{80}'] {
        for second in ['"', '\\', '\0', '\u{1f}', '😀'] {
            for offset in 0..34 {
                for distance in 0..34 {
                    let text = format!("{:offset$}{first}{:distance$}{second}", "", "");
                    check(&text);
                    strings += 1;
                }
            }
        }
    }
    println!("{strings} strings");
}

/// Random strings are decoded and encoded as by serde_json.
#[test]
fn random_strings_round_trip() {
    let mut rng = Rng::new(SEED);
    let specials = special_characters();
    let mut bytes = 0;
    for _ in 0..RANDOM_STRING_COUNT.number() {
        let length = *rng.pick(&[0, 1, 3, 7, 8, 9, 16, 31, 33, 64, 70, MAX_LENGTH]);
        let percent = *rng.pick(&[0, 2, 10, 50, 100]);
        let text: String = (0..rng.below(length + 1))
            .map(|_| {
                if rng.chance(percent) {
                    *rng.pick(&specials)
                } else {
                    char::from(b' ' + rng.below(95) as u8)
                }
            })
            .collect();
        bytes += text.len();
        check(&text);
    }
    println!("{} strings of {bytes} bytes", RANDOM_STRING_COUNT.number());
}

/// Every escape sequence, and every malformed one, has the same outcome as in serde_json.
#[test]
fn escapes_decode_like_serde_json() {
    let escapes = [
        r#"\""#,
        r"\\",
        r"\/",
        r"\b",
        r"\f",
        r"\n",
        r"\r",
        r"\t",
        r"\u0000",
        r"\u001F",
        r"\u00e9",
        r"\uFFFF",
        r"\ud83d\ude00",
        r"\uDBFF\uDFFF",
        r"\ud800",
        r"\udc00",
        r"\ud800\u0041",
        r"\u12",
        r"\x",
        r"\",
        "\u{1}",
        "é",
    ];
    let mut strings = 0;
    for escape in escapes {
        for offset in 0..70 {
            for after in [0, 1, 7, 8, 40] {
                let text = format!("\"{}{escape}{}\"", "a".repeat(offset), "b".repeat(after));
                let ours = from_str::<String>(&text).ok();
                assert_eq!(ours, serde_json::from_str(&text).ok(), "{text}");
                strings += 1;
            }
        }
    }
    println!("{strings} strings");
}

/// Texts that are inserted into long strings at every offset of a block that is processed at once.
const FRAGMENTS: &[&str] = &[
    "\n",
    "\"",
    "\\",
    "\\\\\"",
    "\u{1}",
    "\u{1f}\u{7f}",
    "é",
    "😀",
    "\t\t\t\t\"\"\\\\\n\n\r\u{8}\u{c}",
    "/",
];

/// Long strings with fragments at any offset are decoded and encoded as by serde_json.
#[test]
fn long_strings_decode_like_serde_json() {
    for piece in FRAGMENTS {
        for length in 0..300 {
            let text = format!(
                "{}{piece}{}{piece}{}",
                "a".repeat(length),
                "b".repeat(length % 67),
                "c".repeat(130)
            );
            let ours = to_string(&text);
            assert_eq!(Some(&ours), serde_json::to_string(&text).ok().as_ref());
            assert_eq!(from_str::<String>(&ours), Ok(text));
        }
    }
    let dense: String = FRAGMENTS.concat().repeat(900);
    let ours = to_string(&dense);
    assert_eq!(Some(&ours), serde_json::to_string(&dense).ok().as_ref());
    assert_eq!(from_str::<String>(&ours), Ok(dense));
}

/// Control characters and malformed escape sequences are refused at any offset of a long string.
#[test]
fn invalid_escapes_are_refused_anywhere() {
    let bad = [
        "\u{1}",
        "\\x",
        "\\u12g4",
        "\\ud800",
        "\\ud800\\n",
        "\\udc00",
        "\\\u{0}",
    ];
    let good = ["\\u0041", "\\ud83d\\ude00", "\\/", "\\\\\\u00e9\\\\"];
    for length in 0..300 {
        let around =
            |piece: &str| format!("\"\\n{}{piece}{}\"", "a".repeat(length), "\\tb".repeat(50));
        for piece in bad {
            let text = around(piece);
            assert!(from_str::<String>(&text).is_err(), "{text}");
            assert!(serde_json::from_str::<String>(&text).is_err(), "{text}");
        }
        for piece in good {
            let text = around(piece);
            assert_eq!(
                from_str::<String>(&text).ok(),
                serde_json::from_str(&text).ok(),
                "{text}"
            );
        }
    }
}
