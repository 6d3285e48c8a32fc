//! Log messages (`server/utilities/logging`) and their levels, with the names and the order of RFC 5424.
//!
//! The types are plain data.

use std::fmt;
use std::str::FromStr;

use mcp_exact_wire::Json;

/// Severity of a log message, in ascending order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Level {
    /// Detailed information for debugging.
    Debug,
    /// General information about the operation of the server.
    Info,
    /// A normal but significant condition.
    Notice,
    /// A warning condition, such as the use of a deprecated feature.
    Warning,
    /// An error condition, such as the failure of an operation.
    Error,
    /// A critical condition, such as the failure of a component.
    Critical,
    /// Action must be taken immediately.
    Alert,
    /// The system cannot be used.
    Emergency,
}

impl Level {
    /// All levels in ascending order.
    const ALL: [Self; 8] = [
        Self::Debug,
        Self::Info,
        Self::Notice,
        Self::Warning,
        Self::Error,
        Self::Critical,
        Self::Alert,
        Self::Emergency,
    ];

    /// Returns the name of the level in the specification.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Debug => "debug",
            Self::Info => "info",
            Self::Notice => "notice",
            Self::Warning => "warning",
            Self::Error => "error",
            Self::Critical => "critical",
            Self::Alert => "alert",
            Self::Emergency => "emergency",
        }
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Error for a name that is not the name of a level.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "no level of the specification; use one of debug, info, notice, warning, error, critical, alert, emergency"
)]
pub struct UnknownLevel;

impl FromStr for Level {
    type Err = UnknownLevel;

    fn from_str(name: &str) -> Result<Self, UnknownLevel> {
        let mut levels = Self::ALL.into_iter();
        levels
            .find(|level| level.name() == name)
            .ok_or(UnknownLevel)
    }
}

/// Log message of a server (`notifications/message`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogMessage {
    /// Severity of the message.
    pub level: Level,
    /// Name of the logger that has created the message.
    pub logger: Option<String>,
    /// Data to log: any JSON value.
    pub data: Json,
}
