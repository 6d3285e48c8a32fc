//! Compares JSON before and after a conversion, and finds differences that no loss explains. The checker is independent
//! of schemas, types and the generator.

use mcp_exact_convert::Loss;
use serde_json::Value;

/// Returns the JSON pointers of all differences between two values; the pointer of an added value refers to the value
/// after the conversion.
pub fn find_differences(before: &Value, after: &Value) -> Vec<String> {
    let mut found = Vec::new();
    compare(before, after, &mut String::new(), &mut found);
    found
}

/// Adds the differences between two values at the JSON pointer `place`.
fn compare(before: &Value, after: &Value, place: &mut String, found: &mut Vec<String>) {
    match (before, after) {
        (Value::Object(old), Value::Object(new)) => {
            for (name, value) in old {
                at_segment(place, name, |place| match new.get(name) {
                    Some(after) => compare(value, after, place, found),
                    None => found.push(place.clone()),
                });
            }
            for name in new.keys().filter(|name| !old.contains_key(*name)) {
                at_segment(place, name, |place| found.push(place.clone()));
            }
        }
        (Value::Array(old), Value::Array(new)) if old.len() == new.len() => {
            for (index, (before, after)) in old.iter().zip(new).enumerate() {
                at_segment(place, &index.to_string(), |place| {
                    compare(before, after, place, found)
                });
            }
        }
        (before, after) if before == after => {}
        _ => found.push(place.clone()),
    }
}

/// Calls `f` with the JSON pointer `place` extended by a segment.
fn at_segment(place: &mut String, segment: &str, f: impl FnOnce(&mut String)) {
    let length = place.len();
    place.push('/');
    place.push_str(&segment.replace('~', "~0").replace('/', "~1"));
    f(place);
    place.truncate(length);
}

/// Returns the JSON pointers of the differences that no loss explains. A loss explains the differences at its own
/// pointer, above it and below it.
pub fn unreported_differences(before: &Value, after: &Value, losses: &[Loss]) -> Vec<String> {
    let mut differences = find_differences(before, after);
    differences.retain(|place| {
        let accounts =
            |loss: &Loss| is_below(place, &loss.pointer) || is_below(&loss.pointer, place);
        !losses.iter().any(accounts)
    });
    differences
}

/// Returns true if a JSON pointer equals the pointer `place` or refers to a value within the value at `place`.
pub fn is_below(pointer: &str, place: &str) -> bool {
    let rest = pointer.strip_prefix(place);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

#[cfg(test)]
mod tests {
    use mcp_exact_convert::{KnownRevision, LossKind};
    use serde_json::json;

    use super::*;

    /// Creates a loss at a JSON pointer.
    fn loss(pointer: &str) -> Loss {
        Loss {
            pointer: pointer.into(),
            subject: None,
            revision: KnownRevision::V2024_11_05,
            kind: LossKind::Dropped,
            reason: "x".into(),
        }
    }

    /// Changed, removed and added values are found, as are arrays of different lengths.
    #[test]
    fn every_kind_of_difference_is_found() {
        let before = json!({"a": 1, "b": [1, {"c": 2}], "d": null, "e/f": 1});
        let after = json!({"a": 2, "b": [1, {"c": 3}], "g": null});
        let found = find_differences(&before, &after);
        assert_eq!(found, ["/a", "/b/1/c", "/d", "/e~1f", "/g"]);
        assert_eq!(find_differences(&json!([1, 2]), &json!([1])), [""]);
        assert_eq!(find_differences(&before, &before), [""; 0]);
    }

    /// A loss explains differences at its own pointer and below, but not at a pointer that only begins with the same
    /// characters.
    #[test]
    fn losses_explain_only_their_location() {
        let (before, after) = (json!({"a": {"b": 1}, "ab": 1}), json!({"a": {}}));
        assert_eq!(
            unreported_differences(&before, &after, &[loss("/a/b")]),
            ["/ab"]
        );
        assert_eq!(
            unreported_differences(&before, &after, &[loss("/a")]),
            ["/ab"]
        );
        assert_eq!(
            unreported_differences(&before, &after, &[loss("")]),
            [""; 0]
        );
    }
}
