//! Reason of a refused authorization in the header `WWW-Authenticate` (RFC 6750, section 3).

use http::HeaderMap;
use http::header::WWW_AUTHENTICATE;
use mcp_exact_session::http::describe_body;

/// What a response says about the authorization that it refuses.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Refusal {
    /// Reason, on one line of limited length; `None` if the header has none.
    pub(super) description: Option<String>,
    /// True if the token lacks a scope.
    pub(super) has_scope_error: bool,
}

/// Returns what the headers of a response say about the authorization that it refuses.
pub(super) fn refusal_in(headers: &HeaderMap) -> Refusal {
    let mut refusal = Refusal::default();
    for value in headers.get_all(WWW_AUTHENTICATE) {
        let Ok(value) = value.to_str() else { continue };
        let error = parameter(value, "error");
        refusal.has_scope_error |= error.as_deref() == Some("insufficient_scope");
        let reason = parameter(value, "error_description").or(error);
        // A body of one line is shortened in the same way.
        let reason = reason.and_then(|reason| describe_body(reason.as_bytes()));
        refusal.description = refusal.description.or(reason);
    }
    refusal
}

/// Returns the value of a parameter (RFC 9110, section 11.2), without the characters that quote it.
fn parameter(value: &str, name: &str) -> Option<String> {
    let mut letters = value.chars().peekable();
    let mut found = String::new();
    loop {
        let is_word = |letter: &char| !letter.is_whitespace() && !matches!(letter, ',' | '=' | '"');
        let mut word = String::new();
        while let Some(letter) = letters.next_if(is_word) {
            word.push(letter);
        }
        if letters.next_if_eq(&'=').is_none() {
            letters.next()?;
            continue;
        }
        found.clear();
        if letters.next_if_eq(&'"').is_some() {
            loop {
                match letters.next()? {
                    '"' => break,
                    '\\' => found.push(letters.next()?),
                    letter => found.push(letter),
                }
            }
        } else {
            while let Some(letter) = letters.next_if(is_word) {
                found.push(letter);
            }
        }
        if word.eq_ignore_ascii_case(name) {
            return Some(found);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The description is read in every form of a parameter, and only as a parameter.
    #[test]
    fn challenges_give_the_reason() {
        for (value, description, has_scope_error) in [
            ("Bearer", None, false),
            (
                r#"Bearer error="invalid_token", error_description="the token \"a\" is old, or = wrong""#,
                Some(r#"the token "a" is old, or = wrong"#),
                false,
            ),
            (
                "Bearer error=insufficient_scope",
                Some("insufficient_scope"),
                true,
            ),
            (
                r#"Basic realm="error_description=no", Bearer scope="a b", Error="insufficient_scope",error_description="more""#,
                Some("more"),
                true,
            ),
            (r#"Bearer error_description="cut"#, None, false),
            ("=, =\"", None, false),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(WWW_AUTHENTICATE, value.parse().expect("a value"));
            let refusal = Refusal {
                description: description.map(str::to_owned),
                has_scope_error,
            };
            assert_eq!(refusal_in(&headers), refusal, "{value}");
        }
    }
}
