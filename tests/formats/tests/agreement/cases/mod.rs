//! Hand-made texts for each format, with the verdict that they deserve. Returns tables, one case a line. Never computes a
//! verdict.

pub(crate) mod byte;
pub(crate) mod date;
pub(crate) mod date_time;
pub(crate) mod uri;
pub(crate) mod uri_template;

use mcp_exact_wire::Format;

pub(crate) struct Cases {
    pub(crate) format: Format,
    /// Characters that keep a mutation plausible.
    pub(crate) fond_of: &'static [char],
    pub(crate) accepted: &'static [&'static str],
    pub(crate) rejected: &'static [&'static str],
}

impl Cases {
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
