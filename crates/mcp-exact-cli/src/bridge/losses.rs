//! Policies for losses, by the names that the command line and the configuration file have for them.

use clap::ValueEnum;
use mcp_exact_bridge::LossPolicy;
use serde::Deserialize;

/// Policy for losses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Losses {
    /// Convert the message, and report the losses on standard error.
    Report,
    /// Answer with an error instead of the message.
    Refuse,
    /// Convert the message without reporting losses.
    Accept,
}

impl From<Losses> for LossPolicy {
    fn from(losses: Losses) -> Self {
        match losses {
            Losses::Report => Self::Report,
            Losses::Refuse => Self::Refuse,
            Losses::Accept => Self::Accept,
        }
    }
}
