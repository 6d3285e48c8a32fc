//! The parse tables of the conversions against the generated types.
//!
//! A package of its own, because `cargo xtask schema add` builds what uses it: nothing here knows sessions or transports.

use mcp_exact_convert::{KnownRevision, check_type, violations};
use mcp_exact_tests_types::definitions::Definition;

/// Checks that the parse tables of the conversions and the generated type agree on a text: acceptance, error text,
/// pointer and violations.
pub fn check_agreement(definition: &Definition, of: KnownRevision, text: &str) {
    let name = definition.name;
    let typed = definition.inspect(text.as_bytes());
    let checked = check_type(name, text, of);
    match (&typed, &checked) {
        (Ok(_), Ok(())) => {}
        (Err(error), Err(refused)) => {
            assert_eq!(error.pointer(), refused.pointer(), "{of} {name}: {text}");
            let reason = format!("no `{name}`: {}", error.detail());
            assert_eq!(reason, refused.reason(), "{of} {name}: {text}");
        }
        (typed, checked) => panic!("{of} {name}: {text}\n{typed:?}\n{checked:?}"),
    }
    let found = violations(name, text, of).ok();
    let expected = typed.ok().map(|typed| typed.violations);
    assert_eq!(found, expected, "{of} {name}: {text}");
}
