//! The check of results against the schemas that a program promises.
//!
//! A trait that programs implement; the endpoint calls it before a result leaves.

use std::fmt;

use mcp_exact_wire::JsonObject;

/// Checks the results of a program before they leave. The endpoint runs no JSON Schema: a server whose tools have output
/// schemas brings a validator here ("Servers MUST provide structured results that conform", `server/tools`).
pub trait CheckResult: fmt::Debug + Send + Sync {
    /// Checks the result of a request.
    ///
    /// # Errors
    /// The deviation from the schema, in words. `reply` gives it to the program as
    /// [`SendError::Result`](crate::SendError::Result), and nothing leaves.
    fn check(
        &self,
        method: &str,
        params: Option<&JsonObject>,
        result: &JsonObject,
    ) -> Result<(), String>;
}
