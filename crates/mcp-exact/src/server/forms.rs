//! Checks of the forms that handlers ask, when the server is built.

use serde_json::Value;

use super::ServerBuilder;
use crate::error::Problem;

impl ServerBuilder {
    /// Adds a problem if a type is no form.
    pub(super) fn check_form(mut self, name: &'static str, schema: &Value) -> Self {
        if let Err(error) = crate::cx::form_of_object(schema) {
            self.problems.push(Problem::Form {
                name,
                reason: error.to_string(),
            });
        }
        self
    }
}
