//! Check of results against the output schemas that an application declares.
//!
//! Applications implement [`CheckResult`]; the endpoint calls it before a result is sent.

use std::fmt;

use mcp_exact_wire::JsonObject;

/// Checks the results of an application before they are sent.
///
/// The endpoint has no JSON Schema validator: a server whose tools have output schemas provides a validator through
/// this trait ("Servers MUST provide structured results that conform", `server/tools`).
pub trait CheckResult: fmt::Debug + Send + Sync {
    /// Checks the result of a request.
    ///
    /// # Errors
    /// A description of the deviation from the schema. `reply` returns it to the application as
    /// [`SendError::Result`](crate::SendError::Result), and nothing is sent.
    fn check(
        &self,
        method: &str,
        params: Option<&JsonObject>,
        result: &JsonObject,
    ) -> Result<(), String>;
}
