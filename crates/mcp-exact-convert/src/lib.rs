//! Conversions between revisions of the Model Context Protocol that never lose data silently.
//!
//! A conversion returns the JSON text in the target revision and the list of its changes, or refuses the message with a
//! JSON pointer and a reason. Rules between neighbouring revisions are tables, generated from the official schemas and
//! from `schema/conversions.toml`, which lists conversions that the schemas do not show. Conversions between other
//! revisions apply several rules in sequence. The crate does not depend on the type crates and does no IO.
//!
//! - [`convert`] converts the params, the result or the error of a message by its method, for gateways. Text whose type
//!   is the same in both revisions is returned unchanged and is not parsed.
//! - [`convert_type`] converts a definition by its name.
//! - [`convert_as`] converts a value of one type crate to the type of another one, and [`read_as`] reads text of any
//!   revision as a type.
//!
//! [`repair`] corrects text of a peer that violates its schema, if the meaning of the text is clear, and lists its
//! changes; [`repair_message`] does the same for the envelope of a message.
//!
//! [`check`] and [`check_type`] validate text that a conversion returns unchanged and does not parse.
//!
//! ```
//! use mcp_exact_convert::{Context, KnownRevision, LossKind, convert_type};
//!
//! let tool = r#"{"name":"echo","title":"Echo","inputSchema":{"type":"object"}}"#;
//! let mut cx = Context::new();
//! let (from, to) = (KnownRevision::V2025_06_18, KnownRevision::V2025_03_26);
//! let older = convert_type("Tool", tool, from, to, &mut cx)?;
//! // Tools have no `title` before 2025-06-18, so the title moves into the annotations.
//! assert!(older.contains(r#""annotations":{"title":"Echo"}"#));
//! assert_eq!(cx.losses()[0].kind, LossKind::Rewritten);
//! # Ok::<(), mcp_exact_convert::ConvertError>(())
//! ```
//!
//! `docs/conversions.md` of the repository lists every conversion; it is generated from the same tables.

mod check;
mod context;
mod conversion;
mod decode;
mod document;
mod dynamic;
mod error;
mod fit;
#[rustfmt::skip]
mod generated;
mod interpreter;
mod layout;
mod loss;
mod manual;
mod members;
mod node;
mod packed;
mod place;
mod read;
mod repair;
mod report;
mod revision;
mod rows;
mod rules;
mod typed;

pub use context::{Context, MAX_LOSSES, NewerMembers};
pub use document::may_contain;
#[doc(hidden)]
pub use dynamic::violations;
pub use dynamic::{
    ParamsChange, Payload, check, check_type, convert, convert_type, counterpart, decodes,
    params_change,
};
pub use error::convert_error;
pub use generated::KnownRevision;
pub use loss::{ConvertError, Loss, LossKind};
pub use mcp_exact_revisions::{Lifecycle, Side as Role};
pub use mcp_exact_wire::MessageKind;
#[doc(hidden)]
pub use repair::bytes_read_by_repair;
pub use repair::{
    MAX_REPAIRS, RULES, Repair, RepairRule, Repaired, RuleInfo, Tolerance, repair, repair_message,
    repair_type, replace_lone_surrogates,
};
pub use report::described_item;
pub use revision::{Home, MethodInfo, UnknownRevision};
pub use typed::{ConvertTo, convert_as, read_as};
