//! Formats tokens as the text of a generated file.

use proc_macro2::TokenStream;

use crate::error::{Error, Result};

/// Formats a file and adds its header.
///
/// # Errors
/// Returns an error if an emitter wrote invalid Rust, which is a defect of the generator.
pub fn format(revision: &str, header: &str, tokens: TokenStream) -> Result<String> {
    let file = syn::parse2(tokens).map_err(|error| {
        let problem = format!("an emitter wrote something that is not Rust: {error}");
        Error::new(
            revision,
            "",
            problem,
            "report this as a defect of the generator",
        )
    })?;
    let text = prettyplease::unparse(&file);
    Ok(format!("{header}\n{}", separate_items(&text)))
}

/// Adds a blank line between items, which prettyplease omits.
fn separate_items(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + text.len() / 20);
    let mut previous = "";
    for line in text.lines() {
        let starts = ["pub ", "impl", "#[", "///"]
            .iter()
            .any(|s| line.starts_with(s));
        let inside = ["#[", "///", "//!"].iter().any(|s| previous.starts_with(s));
        let imports = line.starts_with("pub use") || line.starts_with("pub mod");
        if starts && !inside && !previous.is_empty() && !imports {
            out.push('\n');
        }
        out.push_str(line);
        out.push('\n');
        previous = line;
    }
    out
}
