//! Validation of structured results against the output schemas of their tools ("Clients SHOULD validate structured
//! results against this schema", `server/tools`, "Output Schema").
//!
//! The schemas are those in the list of tools; the list is fetched again when it changes or when a result violates its
//! schema.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};

use jsonschema::Validator;
use serde_json::Value;

use super::output::ToolOutput;
use super::{Client, ClientError};
use crate::sync::lock;

/// Validators by tool name.
type Validators = Arc<HashMap<String, Validator>>;

/// Output validators of a server's tools, compiled when the first result is validated.
#[derive(Debug, Default)]
pub(super) struct OutputChecks(Mutex<CheckState>);

/// Compiled validators, and the version of the tool list that they belong to.
#[derive(Debug, Default)]
struct CheckState {
    /// Validators of all tools; `None` if they must be compiled again.
    validators_by_tool: Option<Validators>,
    /// Number of changes of the tool list that the server has announced.
    change_count: u64,
}

impl OutputChecks {
    /// Locks the compiled validators.
    fn state(&self) -> MutexGuard<'_, CheckState> {
        lock(&self.0)
    }

    /// Discards the schemas, because the list of tools has changed.
    pub(super) fn discard_schemas(&self) {
        let mut state = self.state();
        state.change_count += 1;
        state.validators_by_tool = None;
    }

    /// Lists the tools and compiles their output schemas, which are kept unless the list changes meanwhile.
    async fn fetch_validators(&self, client: &Client) -> Result<Validators, ClientError> {
        let changes = self.state().change_count;
        let validators = Arc::new(compile_validators(client).await?);
        let mut state = self.state();
        if state.change_count == changes {
            state.validators_by_tool = Some(Arc::clone(&validators));
        }
        Ok(validators)
    }

    /// Validates the structured content of a tool's result. Results without structured content are not validated. If
    /// the server fails to list its tools, the result is accepted without validation, because the call has already been
    /// executed.
    ///
    /// If a result violates a cached schema, the schema is fetched again and the result is validated against it,
    /// because not every server announces changes.
    pub(super) async fn check(
        &self,
        client: &Client,
        tool: &str,
        output: &ToolOutput,
    ) -> Result<(), ClientError> {
        let Some(structured) = output.structured().filter(|_| !output.is_error()) else {
            return Ok(());
        };
        let value: Value = structured
            .parse()
            .map_err(|error| ClientError::Result(error.to_string()))?;
        let known = self.state().validators_by_tool.clone();
        if let Some(validators) = known
            && output_violation(&validators, tool, &value).is_none()
        {
            return Ok(());
        }
        match self.fetch_validators(client).await {
            Ok(validators) => output_violation(&validators, tool, &value).map_or(Ok(()), Err),
            Err(error) => {
                tracing::warn!(tool, %error, "a result is not checked: the tools cannot be listed");
                Ok(())
            }
        }
    }
}

/// Returns the violation of a tool's output schema by a value, if there is one.
fn output_violation(validators: &Validators, tool: &str, value: &Value) -> Option<ClientError> {
    let error = validators.get(tool)?.validate(value).err()?;
    let place = error.instance_path().to_string();
    Some(ClientError::Result(format!(
        "it leaves the output schema of the tool at {place:?}: {error}"
    )))
}

/// Returns the validators of all tools. A schema that cannot be compiled is logged with `tracing` and its tool is not
/// validated.
async fn compile_validators(client: &Client) -> Result<HashMap<String, Validator>, ClientError> {
    let mut validators = HashMap::new();
    for tool in client.tools().without_cache().all().await? {
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
