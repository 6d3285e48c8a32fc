//! Structured results against the output schemas of their tools ("Clients SHOULD validate structured results against this
//! schema", `server/tools`, "Output Schema").
//!
//! Takes the schemas from the list of tools, once until the list changes.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use jsonschema::Validator;
use serde_json::Value;

use super::output::ToolOutput;
use super::{Client, ClientError};

/// Validators by the name of the tool.
type Validators = Arc<HashMap<String, Validator>>;

#[derive(Debug, Default)]
pub(super) struct OutputChecks(Mutex<Option<Validators>>);

impl OutputChecks {
    fn known(&self) -> MutexGuard<'_, Option<Validators>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Forgets the schemas: the list of tools has changed.
    pub(super) fn forget(&self) {
        *self.known() = None;
    }

    /// Checks the result of a tool. Results without structured content are not checked.
    pub(super) async fn check(
        &self,
        client: &Client,
        tool: &str,
        output: &ToolOutput,
    ) -> Result<(), ClientError> {
        let Some(structured) = output.structured().filter(|_| !output.is_error()) else {
            return Ok(());
        };
        let known = self.known().clone();
        let validators = match known {
            Some(known) => known,
            None => {
                let validators = Arc::new(validators(client).await?);
                *self.known() = Some(Arc::clone(&validators));
                validators
            }
        };
        let Some(validator) = validators.get(tool) else {
            return Ok(());
        };
        let value: Value = structured
            .parse()
            .map_err(|error| ClientError::Result(error.to_string()))?;
        validator.validate(&value).map_err(|error| {
            let place = error.instance_path().to_string();
            ClientError::Result(format!(
                "it leaves the output schema of the tool at {place:?}: {error}"
            ))
        })
    }
}

/// Returns the validators of all tools; one whose schema cannot be used checks nothing, and is reported to `tracing`.
async fn validators(client: &Client) -> Result<HashMap<String, Validator>, ClientError> {
    let mut validators = HashMap::new();
    for tool in client.tools().all().await? {
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
    Ok(validators)
}
