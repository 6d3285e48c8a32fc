//! Compares the methods of `Number` and `Integer` with decimal arithmetic on strings of digits, for numbers in random
//! spellings.
//!
//! The tests use no floating point.

use std::cmp::Ordering;

use mcp_exact_tests_support::{Cases, Rng};
use mcp_exact_wire::{Integer, Number};

/// Seed of the random numbers.
const SEED: u64 = 0x0754;
/// Number of random numbers.
const NUMBER_COUNT: Cases = Cases {
    short: 20_000,
    long: 150_000,
};
/// Maximum exponent whose number is expanded to digits; of numbers with larger exponents, only the sign is compared.
const MAX_EXPONENT: i64 = 400;

/// Number as digits before and after the decimal point, without exponent and without leading and trailing zeros.
#[derive(Debug, PartialEq, Eq)]
struct ExpandedNumber {
    /// True if the number is negative.
    negative: bool,
    /// Digits before the decimal point.
    integer_digits: String,
    /// Digits after the decimal point.
    fraction_digits: String,
}

impl ExpandedNumber {
    /// Expands the JSON text of a number.
    fn of(text: &str) -> Self {
        let negative = text.starts_with('-');
        let text = text.trim_start_matches('-');
        let at = text.find(['e', 'E']).unwrap_or(text.len());
        let exponent = limited_exponent(text.get(at + 1..).unwrap_or("0"));
        let (whole, fraction) = text[..at].split_once('.').unwrap_or((&text[..at], ""));
        let mut digits = format!("{whole}{fraction}");
        let mut point = whole.len() as i64 + exponent;
        if point < 0 {
            digits.insert_str(0, &"0".repeat(point.unsigned_abs() as usize));
            point = 0;
        }
        let point = point as usize;
        while digits.len() < point {
            digits.push('0');
        }
        let whole = digits[..point].trim_start_matches('0').to_owned();
        let fraction = digits[point..].trim_end_matches('0').to_owned();
        let zero = whole.is_empty() && fraction.is_empty();
        Self {
            negative: negative && !zero,
            integer_digits: whole,
            fraction_digits: fraction,
        }
    }

    /// Returns true if the number is an integer.
    fn is_integer(&self) -> bool {
        self.fraction_digits.is_empty()
    }

    /// Returns the value of an integer of at most 30 digits.
    fn to_i128(&self) -> Option<i128> {
        if !self.is_integer() || self.integer_digits.len() > 30 {
            return None;
        }
        let value: i128 = format!("0{}", self.integer_digits).parse().ok()?;
        Some(if self.negative { -value } else { value })
    }

    /// Compares two numbers exactly: first the signs, then the number of integer digits, then the digits.
    fn compare(&self, with: &Self) -> Ordering {
        let size = |plain: &Self| {
            (
                plain.integer_digits.len(),
                plain.integer_digits.clone(),
                plain.fraction_digits.clone(),
            )
        };
        match (self.negative, with.negative) {
            (false, true) => Ordering::Greater,
            (true, false) => Ordering::Less,
            (false, false) => size(self).cmp(&size(with)),
            (true, true) => size(with).cmp(&size(self)),
        }
    }
}

/// Parses an exponent; a larger exponent is replaced by a limit above the number of digits of every tested number.
fn limited_exponent(exponent: &str) -> i64 {
    let negative = exponent.starts_with('-');
    let digits = exponent
        .trim_start_matches(['+', '-'])
        .trim_start_matches('0');
    let value = match digits.len() {
        0 => 0,
        1..=3 => digits
            .parse::<i64>()
            .expect("digits are a number")
            .min(MAX_EXPONENT),
        _ => MAX_EXPONENT,
    };
    if negative { -value } else { value }
}

/// Checks every method of the number `text`, and its comparison with the integers `others`.
fn check(text: &str, others: &[i64]) {
    let number: Number = text.parse().expect("it is a number");
    let plain = ExpandedNumber::of(text);
    let value = plain.to_i128();
    let as_i64 = value.and_then(|value| i64::try_from(value).ok());
    let as_u64 = value.and_then(|value| u64::try_from(value).ok());
    assert_eq!(number.to_string(), text);
    assert_eq!(number.is_integer(), plain.is_integer(), "{text}");
    assert_eq!(number.as_i64(), as_i64, "{text}");
    assert_eq!(number.as_u64(), as_u64, "{text}");
    for &other in others.iter().chain(&as_i64) {
        let expected = plain.compare(&ExpandedNumber::of(&other.to_string()));
        assert_eq!(number.compare(other), expected, "{text} and {other}");
    }
    match text.parse::<Integer>() {
        Ok(integer) => {
            assert!(plain.is_integer(), "{text}");
            assert_eq!((integer.as_i64(), integer.as_u64()), (as_i64, as_u64));
        }
        Err(error) => {
            assert!(!plain.is_integer(), "{text}");
            assert_eq!(error.kind().name(), "type");
        }
    }
}

/// Integers that every number is compared with.
const OTHER_INTEGERS: [i64; 12] = [
    0,
    1,
    -1,
    2,
    10,
    15,
    100,
    -100,
    i64::MAX,
    i64::MIN,
    i64::MAX - 1,
    9_007_199_254_740_993,
];

/// Numbers in unusual spellings are converted and compared exactly.
#[test]
fn chosen_spellings_compare_exactly() {
    for text in [
        "0",
        "-0",
        "0.0",
        "-0.0",
        "0e99999999999",
        "-0e-99999999999",
        "0.000e5",
        "1e2",
        "10.0",
        "1.5e1",
        "1e-0",
        "1E+0",
        "1e00",
        "1e+002",
        "100e-2",
        "100e-3",
        "0.1e1",
        "0.01e1",
        "-0.5",
        "-1.5",
        "0.99999999999999999999999999999999999999999",
        "9223372036854775807",
        "9223372036854775808",
        "9223372036854775807.5",
        "-9223372036854775808",
        "-9223372036854775809",
        "-9223372036854775808.1",
        "922337203685477580.7e1",
        "18446744073709551615",
        "18446744073709551616",
        "18446744073709551615.0",
        "170141183460469231731687303715884105727",
        "170141183460469231731687303715884105728",
        "-170141183460469231731687303715884105728",
        "1000000000000000000000000000000000000000000000000000000000000e-60",
        "1e399",
        "-1e399",
        "1e-399",
        "99999999999999999999999999999999999999999999e-43",
    ] {
        check(text, &OTHER_INTEGERS);
    }
}

/// Numbers with exponents of up to 500 digits are converted and compared exactly.
#[test]
fn huge_exponents_compare_exactly() {
    for digits in [
        "9",
        "99",
        "999999999999999999",
        "9223372036854775808",
        &"9".repeat(500),
    ] {
        for (text, ordering, whole) in [
            (format!("1e{digits}"), Ordering::Greater, true),
            (format!("-1e{digits}"), Ordering::Less, true),
            (format!("1e-{digits}"), Ordering::Greater, false),
            (format!("-1e-{digits}"), Ordering::Less, false),
            (format!("0e{digits}"), Ordering::Equal, true),
            (format!("-0.0e-{digits}"), Ordering::Equal, true),
        ] {
            let number: Number = text.parse().expect("it is a number");
            assert_eq!(number.compare(0), ordering, "{text}");
            assert_eq!(number.is_integer(), whole, "{text}");
        }
    }
}

/// Random numbers in random spellings are converted and compared exactly.
#[test]
fn random_spellings_compare_exactly() {
    let mut rng = Rng::new(SEED);
    let mut integers = 0;
    for _ in 0..NUMBER_COUNT.number() {
        let text = random_spelling(&mut rng);
        let near = rng.next_u64() as i64 >> rng.below(64);
        check(&text, &[near, *rng.pick(&OTHER_INTEGERS)]);
        integers += usize::from(ExpandedNumber::of(&text).is_integer());
    }
    println!(
        "{} spellings, {integers} of them integers",
        NUMBER_COUNT.number()
    );
    assert!(integers > NUMBER_COUNT.number() / 5 && integers < NUMBER_COUNT.number() * 4 / 5);
}

/// Returns a random number in a random spelling.
fn random_spelling(rng: &mut Rng) -> String {
    let mut text = String::new();
    if rng.chance(40) {
        text.push('-');
    }
    let digits = random_integer(rng);
    text.push_str(&digits);
    let mut exponent = 0;
    if rng.chance(60) {
        text.push('.');
        let longest = *rng.pick(&[1, 3, 25, 60]);
        for _ in 0..=rng.below(longest) {
            text.push(random_digit(rng));
            exponent += 1;
        }
    }
    if rng.chance(70) {
        // Exponents that move the decimal point to the edge of the digits.
        let to = exponent + rng.below(9) as i64 - 4 - (rng.below(digits.len() + 1) as i64);
        let to = if rng.chance(20) {
            rng.below(90) as i64 - 45
        } else {
            to
        };
        let sign = if to < 0 { "-" } else { *rng.pick(&["", "+"]) };
        let zeros = "0".repeat(rng.below(3));
        text += &format!("{}{sign}{zeros}{}", rng.pick(&["e", "E"]), to.abs());
    }
    text
}

/// Returns the digits of a random integer.
fn random_integer(rng: &mut Rng) -> String {
    match rng.below(4) {
        0 => "0".to_owned(),
        1 => (rng.next_u64() >> rng.below(64)).to_string(),
        2 => format!("{}{}", 1 + rng.below(9), "0".repeat(rng.below(45))),
        _ => {
            let mut text = (1 + rng.below(9)).to_string();
            for _ in 0..rng.below(45) {
                text.push(random_digit(rng));
            }
            text
        }
    }
}

/// Returns a random digit, which is a zero with probability one half.
fn random_digit(rng: &mut Rng) -> char {
    if rng.chance(50) {
        '0'
    } else {
        char::from(b'0' + rng.below(10) as u8)
    }
}
