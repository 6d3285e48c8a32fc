//! `Ok` with the error type of handlers, in a module of its own: here alone it hides the one of the standard library.

use crate::error::Result;

/// Returns `Ok` of a handler that is a closure or an async block: fixes the error type to [`Error`](crate::Error), so that
/// `?` takes any error.
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
