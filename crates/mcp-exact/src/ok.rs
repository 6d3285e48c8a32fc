//! `Ok` with the error type of handlers.
//!
//! The function has a separate module because it shadows the `Ok` of the standard library.

use crate::error::Result;

/// Returns `Ok` with the error type [`Error`](crate::Error). In a closure or async block, the function fixes the error
/// type, so that `?` converts any error.
///
/// ```
/// use mcp_exact::{Cx, Server};
/// let server = Server::builder("demo", "1.0.0").tool("slow", |cx: Cx| async move {
///     cx.progress(1, 2)?;
///     mcp_exact::Ok("done")
/// });
/// ```
///
/// # Errors
/// None.
#[allow(non_snake_case, reason = "it stands in the place of the variant")]
pub fn Ok<T>(value: T) -> Result<T> {
    Result::Ok(value)
}
