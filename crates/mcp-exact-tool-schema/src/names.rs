//! Names of tools that providers of models accept. The specification allows longer ones, and dots.

/// Maximum number of characters in the name of a tool that providers of models accept.
pub const MAX_NAME_LENGTH: usize = 64;

/// Returns true if providers of models accept the name of a tool: `^[a-zA-Z0-9_-]{1,64}$`.
pub fn is_accepted_name(name: &str) -> bool {
    (1..=MAX_NAME_LENGTH).contains(&name.len()) && name.chars().all(is_accepted_in_names)
}

/// Returns true if providers of models accept a character in the name of a tool.
pub fn is_accepted_in_names(character: char) -> bool {
    character.is_ascii_alphanumeric() || matches!(character, '_' | '-')
}
