//! Suggests similar names for an unknown name.

use std::fmt::Write as _;

/// Maximum number of characters of a name in messages and comparisons; longer names are truncated.
const MAX_NAME_LENGTH: usize = 64;
/// Maximum number of suggested names.
const MAX_SUGGESTIONS: usize = 3;

/// Returns a name from outside, truncated so that messages stay short.
pub fn truncate_name(name: &str) -> String {
    match name.char_indices().nth(MAX_NAME_LENGTH) {
        Some((end, _)) => format!("{}…", &name[..end]),
        None => name.to_owned(),
    }
}

/// Appends the most similar known names to the error message `problem`, as a question.
pub fn suggest<'a>(problem: &mut String, name: &str, known: impl Iterator<Item = &'a str>) {
    let near = most_similar(name, known);
    let near: Vec<String> = near.iter().map(|name| format!("`{name}`")).collect();
    // Writing to a `String` does not fail.
    let _ = match near.split_last() {
        None => Ok(()),
        Some((only, [])) => write!(problem, "; did you mean {only}?"),
        Some((last, others)) => write!(problem, "; did you mean {} or {last}?", others.join(", ")),
    };
}

/// Appends the known names that differ in at most a third of the characters to the error message `problem`, as a
/// question.
pub fn suggest_similar<'a>(problem: &mut String, name: &str, known: impl Iterator<Item = &'a str>) {
    let limit = (name.chars().take(MAX_NAME_LENGTH).count() / 3).max(1);
    suggest_within(limit, problem, name, known);
}

/// Appends the known names that differ in at most `limit` characters to the error message `problem`, as a question.
pub fn suggest_within<'a>(
    limit: usize,
    problem: &mut String,
    name: &str,
    known: impl Iterator<Item = &'a str>,
) {
    let name = truncate_name(name);
    let length = name.chars().count();
    let is_similar = |known: &&str| {
        known.chars().count().abs_diff(length) <= limit
            && strsim::osa_distance(known, &name) <= limit
    };
    suggest(problem, &name, known.filter(is_similar));
}

/// Returns the three names most similar to `name`, even if they differ completely.
pub fn most_similar<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let wanted: String = name
        .chars()
        .take(MAX_NAME_LENGTH)
        .collect::<String>()
        .to_lowercase();
    let mut near: Vec<(usize, &str)> = known
        .map(|known| {
            let found = known.to_lowercase();
            // A name that contains the unknown name is more similar than its length suggests.
            let contains =
                !wanted.is_empty() && (found.contains(&wanted) || wanted.contains(&found));
            let distance = strsim::osa_distance(&wanted, &found);
            (if contains { distance / 3 } else { distance }, known)
        })
        .collect();
    near.sort_unstable();
    near.dedup();
    near.truncate(MAX_SUGGESTIONS);
    near.into_iter().map(|(_, name)| name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Known names for the tests.
    const KNOWN: [&str; 5] = ["Tool", "ToolAnnotations", "CallToolResult", "Task", "Role"];

    /// Asserts that `first` is the known name that is most similar to `name`.
    fn check(name: &str, first: &str) {
        assert_eq!(most_similar(name, KNOWN.into_iter())[0], first);
    }

    #[test]
    fn misspelt_names_get_suggestions() {
        check("Tol", "Tool");
        check("CallToolResults", "CallToolResult");
        check("calltoolresult", "CallToolResult");
    }

    /// Three names are suggested, even if none of them is similar.
    #[test]
    fn three_names_are_always_returned() {
        let near = most_similar("ToolResult", KNOWN.into_iter());
        assert_eq!(near, ["CallToolResult", "Tool", "Role"]);
        assert_eq!(most_similar("", KNOWN.into_iter()).len(), 3);
    }

    /// Suggested names are appended to the error message as a question.
    #[test]
    fn suggestions_form_a_question() {
        let mut problem = "unknown `Tolo`".to_owned();
        suggest(&mut problem, "Tolo", KNOWN[..2].iter().copied());
        let words = "unknown `Tolo`; did you mean `Tool` or `ToolAnnotations`?";
        assert_eq!(problem, words);
    }

    /// Only names above the maximum length are truncated, without splitting a multi-byte character.
    #[test]
    fn long_names_are_shortened_between_characters() {
        assert_eq!(truncate_name("Tool"), "Tool");
        let long = truncate_name(&"é".repeat(100));
        assert_eq!(long, format!("{}…", "é".repeat(MAX_NAME_LENGTH)));
    }
}
