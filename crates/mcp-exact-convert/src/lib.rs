//! Conversions between revisions of the Model Context Protocol that never lose anything silently.
//!
//! A conversion gives the value in the types of the other revision and the list of what it changed, or refuses with pointer
//! and reason. Steps between neighbours are generated from the official schemas, with a small table of conversions that no
//! difference of schemas shows; longer ways are chains of steps. Nothing here does IO.
//!
//! Three ways in:
//!
//! - [`ConvertTo`]: typed, for every type between neighbours, and for the parameters, results and messages of every method
//!   between any two revisions.
//! - [`convert`]: raw text in, raw text out, for gateways. Where a type is the same all the way down, its text passes
//!   untouched and undecoded.
//! - [`convert_type`]: the same for any type by its name.
//!
//! Text that passes unseen can be checked before: [`check`] and [`check_type`].
//!
#![cfg_attr(
    feature = "2024-11-05",
    doc = r#"
```
use mcp_2025_06_18::{Tool, ToolInputSchema};
use mcp_exact_convert::{Context, ConvertTo, LossKind};

let tool = Tool {
    title: Some("Echo".into()),
    ..Tool::new(ToolInputSchema::new(), "echo")
};
let mut cx = Context::new();
let older: mcp_2025_03_26::Tool = tool.convert_to(&mut cx)?;
// Tools had no title of their own then; the one in the annotations was free.
assert_eq!(older.annotations.and_then(|a| a.title).as_deref(), Some("Echo"));
assert_eq!(cx.losses()[0].kind, LossKind::Rewritten);
# Ok::<(), mcp_exact_convert::Refused>(())
```
"#
)]
//! What is converted how is in `docs/conversions.md` of the repository, which is generated from the same tables.

// Some of what the steps and chosen conversions share has no use when only newer revisions are compiled in.
#![cfg_attr(
    not(feature = "2024-11-05"),
    allow(dead_code, unused_imports, unused_macros)
)]

mod context;
mod dynamic;
mod error;
#[rustfmt::skip]
mod generated;
mod loss;
mod overlay;
mod revision;
mod rows;
mod step;

pub use context::{Context, Newer};
pub use dynamic::{Role, Root, check, check_type, convert, convert_type, counterpart};
pub use error::convert_error;
pub use generated::KnownRevision;
pub use loss::{Loss, LossKind, Refused};
pub use mcp_exact_revisions::Lifecycle;
pub use mcp_exact_wire::MessageKind;
pub use revision::{Home, MethodInfo, UnknownRevision};

/// A type that can be converted to a type of another revision.
///
/// `From` is barred, because both types are foreign here, and would have no place for what is lost.
pub trait ConvertTo<T>: Sized {
    /// The value as the other revision says it. What that changes is in [`Context::losses`] afterwards.
    ///
    /// # Errors
    /// [`Refused`] when the other revision cannot say it; the context's losses mean nothing then.
    fn convert_to(self, cx: &mut Context) -> Result<T, Refused>;
}
