//! Compares the verdicts (valid or invalid) of `mcp_exact_wire::Format` with the verdicts of the libraries `jsonschema`
//! and `base64`. Inputs are hand-written cases with expected verdicts, and seeded mutations of the valid cases.

mod cases;
mod mutate;
mod oracle;

use self::cases::Cases;
use self::mutate::Mutator;
use self::oracle::Oracle;
use mcp_exact_wire::Format;

/// Number of mutated texts that are tested for each format.
const MUTATION_COUNT: mcp_exact_tests_support::Cases = mcp_exact_tests_support::Cases {
    short: 25_000,
    long: 250_000,
};
/// Number of bytes in a mebibyte.
const MEBIBYTE: usize = 1 << 20;

/// The name of each format identifies the format, and other names are unknown.
#[test]
fn names_round_trip() {
    for format in Cases::all().map(|cases| cases.format) {
        assert_eq!(Format::from_name(format.name()), Some(format));
    }
    for unknown in [
        "",
        "URI",
        "uri ",
        "uri-reference",
        "email",
        "time",
        "base64",
    ] {
        assert_eq!(Format::from_name(unknown), None, "{unknown}");
    }
}

/// `Format` and the other library accept and reject the hand-written `uri` texts as expected.
#[test]
fn uri_cases_have_expected_verdicts() {
    check_cases(&cases::uri::CASES);
}

/// `Format` and the other library accept and reject the hand-written `uri-template` texts as expected.
#[test]
fn uri_template_cases_have_expected_verdicts() {
    check_cases(&cases::uri_template::CASES);
}

/// `Format` and the other library accept and reject the hand-written `byte` texts as expected.
#[test]
fn byte_cases_have_expected_verdicts() {
    check_cases(&cases::byte::CASES);
}

/// `Format` and the other library accept and reject the hand-written `date` texts as expected.
#[test]
fn date_cases_have_expected_verdicts() {
    check_cases(&cases::date::CASES);
}

/// `Format` and the other library accept and reject the hand-written `date-time` texts as expected.
#[test]
fn date_time_cases_have_expected_verdicts() {
    check_cases(&cases::date_time::CASES);
}

/// `Format` and the other library have the same verdict on each mutation of a valid `uri` text.
#[test]
fn uri_mutations_agree() {
    check_mutations(&cases::uri::CASES, 0x3986);
}

/// `Format` and the other library have the same verdict on each mutation of a valid `uri-template` text.
#[test]
fn uri_template_mutations_agree() {
    check_mutations(&cases::uri_template::CASES, 0x6570);
}

/// `Format` and the other library have the same verdict on each mutation of a valid `byte` text.
#[test]
fn byte_mutations_agree() {
    check_mutations(&cases::byte::CASES, 0x4648);
}

/// `Format` and the other library have the same verdict on each mutation of a valid `date` text.
#[test]
fn date_mutations_agree() {
    check_mutations(&cases::date::CASES, 0x3339);
}

/// `Format` and the other library have the same verdict on each mutation of a valid `date-time` text.
#[test]
fn date_time_mutations_agree() {
    check_mutations(&cases::date_time::CASES, 0x5321);
}

/// Long texts are checked in linear time; a check in quadratic time would make this test run for very long.
#[test]
fn long_texts_take_linear_time() {
    let parts = [
        "A", "=", "%", "%41", "{", "}", "{a}", "{a,", "a,", "a.", "/", ":", "@", "[", "]", "#",
        "?", "0", "-", "é", "\0",
    ];
    let heads = [
        "",
        "a:",
        "a://",
        "a://[",
        "a://[v1.",
        "a://@",
        "a:?",
        "a:#",
        "{",
        "2024-02-29T23:59:59.",
    ];
    let tails = ["", "}", "]", "Z", "="];
    for cases in Cases::all() {
        let oracle = Oracle::new(cases.format);
        for (head, part) in heads.iter().flat_map(|head| parts.map(|part| (head, part))) {
            for tail in tails {
                let text = format!("{head}{}{tail}", part.repeat(MEBIBYTE / 16 / part.len()));
                compare(cases.format, &oracle, &text);
            }
        }
    }
}

/// A single invalid character is found at every position, in each chunk of the vectorised check and in the remainder
/// after the last chunk.
#[test]
fn byte_finds_single_bad_symbols() {
    let oracle = Oracle::new(Format::Byte);
    let valid = "0aZ/".repeat(200);
    assert!(compare(Format::Byte, &oracle, &valid));
    for bad in [
        '=', '-', '_', ' ', '\n', '\0', '@', '[', '`', '{', ':', '.', '*', ',', '\x7f',
    ] {
        for at in 0..valid.len() {
            let mut text = valid.clone();
            text.replace_range(at..=at, bad.encode_utf8(&mut [0; 4]));
            compare(Format::Byte, &oracle, &text);
        }
    }
}

/// Unused bits of the last base64 symbol before the padding must be zero (RFC 4648, section 3.5): every symbol is
/// tested before every padding.
#[test]
fn byte_checks_unused_bits() {
    let oracle = Oracle::new(Format::Byte);
    for last in '\0'..='\u{ff}' {
        for text in [
            format!("QUJDA{last}=="),
            format!("QUJDAA{last}="),
            format!("QUJDAAA{last}"),
            format!("{last}==="),
        ] {
            compare(Format::Byte, &oracle, &text);
        }
    }
}

/// Every two-digit day is tested, in leap years and other years (RFC 3339, appendix C).
#[test]
fn date_follows_the_calendar() {
    let oracle = Oracle::new(Format::Date);
    for year in [
        "0000", "0001", "0004", "0100", "0400", "1900", "2000", "2023", "2024", "2100", "9999",
    ] {
        for (month, day) in (0..100).flat_map(|month| (0..100).map(move |day| (month, day))) {
            compare(
                Format::Date,
                &oracle,
                &format!("{year}-{month:02}-{day:02}"),
            );
        }
    }
}

/// Leap seconds are tested with every offset, around the minutes that could be 23:59 UTC (RFC 3339, section 5.7).
#[test]
fn leap_seconds_are_checked_in_utc() {
    let oracle = Oracle::new(Format::DateTime);
    let mut accepted = 0;
    for (hour, minute) in
        (0..25).flat_map(|hour| [0, 1, 29, 30, 58, 59, 60].map(|minute| (hour, minute)))
    {
        for (sign, offset_hour, offset_minute) in ['+', '-']
            .into_iter()
            .flat_map(|s| (0..25).flat_map(move |h| [0, 1, 29, 30, 58, 59, 60].map(|m| (s, h, m))))
        {
            let text = format!(
                "1990-12-31T{hour:02}:{minute:02}:60{sign}{offset_hour:02}:{offset_minute:02}"
            );
            accepted += usize::from(compare(Format::DateTime, &oracle, &text));
        }
    }
    assert!(accepted > 100, "{accepted} leap seconds were accepted");
}

/// Checks that `Format` and the other library agree with the expected verdict on each hand-written text.
fn check_cases(cases: &Cases) {
    let oracle = Oracle::new(cases.format);
    let verdicts = [(cases.accepted, true), (cases.rejected, false)];
    for (text, expected) in verdicts
        .into_iter()
        .flat_map(|(texts, verdict)| texts.iter().map(move |text| (text, verdict)))
    {
        let name = cases.format.name();
        assert_eq!(
            compare(cases.format, &oracle, text),
            expected,
            "{name}, stated for {text:?}"
        );
    }
    println!(
        "{}: {} accepted, {} rejected",
        cases.format.name(),
        cases.accepted.len(),
        cases.rejected.len()
    );
}

/// Checks that `Format` and the other library agree on mutated texts, of which at least a twentieth must be valid and a
/// twentieth invalid.
fn check_mutations(cases: &Cases, seed: u64) {
    let oracle = Oracle::new(cases.format);
    let mut mutator = Mutator::new(cases, seed);
    let accepted = (0..MUTATION_COUNT.number())
        .filter(|_| compare(cases.format, &oracle, &mutator.next_text()))
        .count();
    let rejected = MUTATION_COUNT.number() - accepted;
    println!(
        "{}: {accepted} accepted, {rejected} rejected of {} mutations",
        cases.format.name(),
        MUTATION_COUNT.number()
    );
    assert!(
        accepted.min(rejected) * 20 >= MUTATION_COUNT.number(),
        "one verdict is too rare to tell anything"
    );
}

/// Returns the verdict of `Format`; panics if the verdict of the other library differs.
fn compare(format: Format, oracle: &Oracle, text: &str) -> bool {
    let ours = format.accepts(text);
    let start: String = text.chars().take(200).collect();
    assert_eq!(
        ours,
        oracle.accepts(text),
        "{}: ours (left) against theirs for {start:?}",
        format.name()
    );
    ours
}
