//! Hand-written texts for each format, with their expected verdicts.

pub(crate) mod byte;
pub(crate) mod date;
pub(crate) mod date_time;
pub(crate) mod uri;
pub(crate) mod uri_template;

use mcp_exact_wire::Format;

/// Cases for one format.
pub(crate) struct Cases {
    /// The format.
    pub(crate) format: Format,
    /// Characters that are typical of the format, for mutations.
    pub(crate) typical_characters: &'static [char],
    /// Valid texts.
    pub(crate) accepted: &'static [&'static str],
    /// Invalid texts.
    pub(crate) rejected: &'static [&'static str],
}

impl Cases {
    /// Returns the cases for all formats.
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
