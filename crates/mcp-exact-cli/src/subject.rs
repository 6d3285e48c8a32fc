//! What documents are: options that `check` and `convert` share, and the names of options in error messages.

use clap::Args;

use crate::message::{Direction, Part};

/// What the documents on the command line are.
#[derive(Debug, Clone, Args)]
pub struct SubjectOptions {
    /// The revision of the documents, such as 2025-06-18.
    #[arg(
        long,
        short,
        value_name = "R",
        alias = "from",
        help_heading = "What the documents are"
    )]
    pub revision: Option<String>,
    /// The definition that the documents are values of; without it they are JSON-RPC messages.
    #[arg(long = "type", short = 't', value_name = "T", conflicts_with_all = ["direction", "method", "part"], help_heading = "What the documents are")]
    pub definition: Option<String>,
    /// Sender of the messages.
    #[arg(
        long,
        short,
        value_enum,
        value_name = "D",
        help_heading = "What the documents are"
    )]
    pub direction: Option<Direction>,
    /// Method of the part with --part, or of the requests that responses answer.
    #[arg(long, short, value_name = "M", help_heading = "What the documents are")]
    pub method: Option<String>,
    /// Which part of a message the documents are.
    #[arg(
        long,
        value_enum,
        value_name = "P",
        requires = "method",
        alias = "kind",
        help_heading = "What the documents are"
    )]
    pub part: Option<Part>,
}

/// How error messages call an option.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum OptionNames {
    /// As an option of the command line.
    #[default]
    Options,
    /// As a member of a line of `--jsonl`.
    Members,
    /// As an option of the command line; what answers belong to is in a recording.
    Recording,
}

impl OptionNames {
    /// Returns the name of an option.
    pub fn name(self, option: &str) -> String {
        match self {
            Self::Options | Self::Recording => format!("--{}", option.replace('_', "-")),
            Self::Members => format!("`{option}`"),
        }
    }
}
