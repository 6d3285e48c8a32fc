//! Validation of structured results against the output schemas of their tools ("Clients SHOULD validate structured
//! results against this schema", `server/tools`, "Output Schema").
//!
//! The schemas are those in the list of tools; the list is fetched again when it changes or when a result violates its
//! schema.

use std::collections::HashMap;
use std::sync::Arc;

use jsonschema::Validator;
use serde_json::Value;

use super::Client;
use super::error::ClientError;
use super::link::{OutputChecks, Validators};
use super::output::ToolOutput;
use crate::protocol::JsonObject;

impl Client {
    /// Validates the structured content of a tool's result, if the client was configured to do so. Results without
    /// structured content are not validated. If the server fails to list its tools, the result is accepted without
    /// validation, because the call has already been executed.
    ///
    /// If a result violates a cached schema, the schema is fetched again and the result is validated against it,
    /// because not every server announces changes.
    pub(super) async fn check_output(
        &self,
        tool: &str,
        output: &JsonObject,
    ) -> Result<(), ClientError> {
        let Some(checks) = self.link().output_checks() else {
            return Ok(());
        };
        let output = ToolOutput::new(output.clone());
        let Some(structured) = output.structured().filter(|_| !output.is_error()) else {
            return Ok(());
        };
        let value: Value = match structured.parse() {
            Ok(value) => value,
            Err(error) => return Err(invalid_output(output, format!(": {error}"))),
        };
        if let (Some(validators), _) = checks.known()
            && output_violation(&validators, tool, &value).is_none()
        {
            return Ok(());
        }
        match self.fetch_validators(checks).await {
            Ok(validators) => match output_violation(&validators, tool, &value) {
                Some(violation) => Err(invalid_output(output, violation)),
                None => Ok(()),
            },
            Err(error) => {
                tracing::warn!(tool, %error, "a result is not checked: the tools cannot be listed");
                Ok(())
            }
        }
    }

    /// Lists the tools and compiles their output schemas, which are kept unless the list changes meanwhile. A schema
    /// that cannot be compiled is logged with `tracing` and its tool is not validated.
    async fn fetch_validators(&self, checks: &OutputChecks) -> Result<Validators, ClientError> {
        let (_, changes) = checks.known();
        let mut validators: HashMap<String, Validator> = HashMap::new();
        for tool in self.tools().without_cache().all().await? {
            let Some(schema) = tool.output_schema() else {
                continue;
            };
            let schema = schema.parse::<Value>().unwrap_or_default();
            match jsonschema::validator_for(&schema) {
                Ok(validator) => {
                    validators.insert(tool.name(), validator);
                }
                Err(error) => {
                    tracing::warn!(tool = tool.name(), %error, "an output schema cannot be used")
                }
            }
        }
        let validators = Arc::new(validators);
        checks.keep(&validators, changes);
        Ok(validators)
    }
}

/// Returns the violation of a tool's output schema by a value, if there is one, as the end of a sentence.
fn output_violation(validators: &Validators, tool: &str, value: &Value) -> Option<String> {
    let error = validators.get(tool)?.validate(value).err()?;
    let place = error.instance_path().to_string();
    Some(format!(" at {place:?}: {error}"))
}

/// Returns the error of a result that violates the output schema of its tool.
fn invalid_output(output: ToolOutput, violation: String) -> ClientError {
    ClientError::InvalidOutput {
        output: Box::new(output),
        violation,
    }
}
