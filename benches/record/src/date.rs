//! Today's date in UTC, for the head of a report.

use std::time::{SystemTime, UNIX_EPOCH};

/// Today, as `2025-06-18`.
pub fn today() -> String {
    let seconds = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_secs());
    civil(seconds / 86_400)
}

/// The date that is `days` after 1970-01-01.
fn civil(mut days: u64) -> String {
    let leap = |year: u64| {
        (year.is_multiple_of(4) && !year.is_multiple_of(100)) || year.is_multiple_of(400)
    };
    let mut year = 1970;
    loop {
        let length = 365 + u64::from(leap(year));
        if days < length {
            break;
        }
        days -= length;
        year += 1;
    }
    let mut month = 1;
    for length in [
        31,
        28 + u64::from(leap(year)),
        31,
        30,
        31,
        30,
        31,
        31,
        30,
        31,
        30,
    ] {
        if days < length {
            break;
        }
        days -= length;
        month += 1;
    }
    format!("{year}-{month:02}-{:02}", days + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(days: u64, date: &str) {
        assert_eq!(civil(days), date);
    }

    #[test]
    fn days_become_dates() {
        check(0, "1970-01-01");
        check(11_016, "2000-02-29");
        check(20_257, "2025-06-18");
        check(20_453, "2025-12-31");
    }
}
