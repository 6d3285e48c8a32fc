//! Current date in UTC, for the heading of a report.

use std::time::SystemTime;

/// Returns the current date in UTC, such as `2025-06-18`.
pub fn today() -> String {
    let now = humantime::format_rfc3339_seconds(SystemTime::now()).to_string();
    now[.."2025-06-18".len()].to_owned()
}
