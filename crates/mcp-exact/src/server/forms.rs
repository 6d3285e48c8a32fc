//! Checks of the forms that handlers ask, when the server is built.

use schemars::JsonSchema;
use serde_json::Value;

use super::ServerBuilder;
use crate::error::Problem;
use crate::schema::{self, Subschemas};

impl ServerBuilder {
    /// Declares that handlers ask for a form of the type `T` ([`Cx::elicit`](crate::Cx::elicit)): a type that clients cannot
    /// display, such as a struct in a struct, is then a [`Problem`] of the server instead of an error of the first call.
    ///
    /// `#[server]` declares the forms that methods name as `elicit::<T>(…)`.
    ///
    /// ```
    /// # use mcp_exact::{Server, schemars, serde};
    /// #[derive(serde::Deserialize, schemars::JsonSchema)]
    /// struct Address {
    ///     street: String,
    /// }
    ///
    /// #[derive(serde::Deserialize, schemars::JsonSchema)]
    /// struct Order {
    ///     address: Address,
    /// }
    ///
    /// let error = Server::builder("shop", "1.0.0").form::<Order>().build().unwrap_err();
    /// assert!(error.to_string().contains(r#"field "address" cannot be in a form"#));
    /// ```
    pub fn form<T: JsonSchema>(self) -> Self {
        let schema = schema::input_schema_of::<T>(Subschemas::Inlined);
        self.check_form(std::any::type_name::<T>(), &schema)
    }

    /// Adds a problem if a type is no form.
    fn check_form(mut self, name: &'static str, schema: &Value) -> Self {
        if let Err(error) = crate::cx::form_of_object(schema) {
            self.problems.push(Problem::Form {
                name,
                reason: error.to_string(),
            });
        }
        self
    }
}
