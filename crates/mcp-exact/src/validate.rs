//! Validation of arguments and structured results against the advertised schemas. Without the feature `validation`, arguments are
//! checked by decoding only, and results are not checked.

use crate::call::Call;
use crate::error::{Error, Problem};
use crate::protocol::{Json, JsonObject};

/// Validators of one tool.
pub(crate) struct Checks {
    /// Validator of the arguments and their schema; `None` if the tool declares no input schema.
    input: Option<(jsonschema::Validator, serde_json::Value)>,
    /// Validator of the structured result; `None` if the tool declares no output schema.
    output: Option<jsonschema::Validator>,
}

impl Checks {
    /// Compiles the schemas of a tool.
    ///
    /// # Errors
    /// The problem of the first schema that cannot be compiled.
    pub(crate) fn new(
        tool: &str,
        input: Option<&JsonObject>,
        output: Option<&JsonObject>,
    ) -> Result<Self, Problem> {
        let validator = |schema: Option<&JsonObject>| -> Result<_, String> {
            let Some(schema) = schema else {
                return Ok(None);
            };
            let schema: serde_json::Value = schema.parse().map_err(|error| error.to_string())?;
            let validator = jsonschema::validator_for(&schema);
            let validator = validator.map_err(|error| error.to_string())?;
            Ok(Some((validator, schema)))
        };
        let name = || tool.to_owned();
        let input = validator(input).map_err(|reason| Problem::InputSchema {
            kind: "tool",
            name: name(),
            reason,
        })?;
        let output = validator(output).map_err(|reason| Problem::OutputSchema {
            name: name(),
            reason,
        })?;
        let output = output.map(|(validator, _)| validator);
        Ok(Self { input, output })
    }

    /// Validates the arguments of a call.
    ///
    /// # Errors
    /// [`Error::invalid_arguments`] for the first argument that violates the input schema.
    pub(crate) fn input(&self, call: &Call) -> Result<(), Error> {
        let Some((validator, schema)) = &self.input else {
            return Ok(());
        };
        let mut value: serde_json::Value = call.arguments().parse()?;
        let error = match validator.validate(&value) {
            Ok(()) => return Ok(()),
            Err(error) => {
                Error::invalid_arguments(error.instance_path().to_string(), error.to_string())
            }
        };
        // Schemas that are derived do not name the null that stands for absence.
        crate::schema::without_absent(&mut value, schema);
        if validator.is_valid(&value) {
            return Ok(());
        }
        Err(error)
    }

    /// Validates the structured content of a result ("Servers MUST provide structured results that conform",
    /// `server/tools`).
    ///
    /// # Errors
    /// An error with the JSON pointer of the value that violates the output schema.
    pub(crate) fn output(&self, structured: &Json) -> Result<(), Error> {
        let Some(validator) = &self.output else {
            return Ok(());
        };
        let value: serde_json::Value = structured.parse()?;
        validator.validate(&value).map_err(|error| {
            let place = error.instance_path().to_string();
            Error::msg(format!(
                "the result of the tool leaves its output schema at {place:?}: {error}"
            ))
        })
    }
}
