//! Hand-written valid and invalid texts for each format.

pub(crate) mod byte;
pub(crate) mod date;
pub(crate) mod date_time;
pub(crate) mod uri;
pub(crate) mod uri_template;

use mcp_exact_wire::Format;

/// Valid and invalid texts for one format.
pub(crate) struct Cases {
    /// Format for which the texts are valid or invalid.
    pub(crate) format: Format,
    /// Characters that are typical of the format, which mutations insert more often than other characters.
    pub(crate) typical_characters: &'static [char],
    /// Valid texts.
    pub(crate) accepted: &'static [&'static str],
    /// Invalid texts.
    pub(crate) rejected: &'static [&'static str],
}

impl Cases {
    /// Returns the texts for all formats.
    pub(crate) fn all() -> impl Iterator<Item = &'static Self> {
        [
            &uri::CASES,
            &uri_template::CASES,
            &byte::CASES,
            &date::CASES,
            &date_time::CASES,
        ]
        .into_iter()
    }
}
