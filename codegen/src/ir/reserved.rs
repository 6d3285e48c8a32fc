//! Names that generated crates use themselves; no definition may have one of them.

/// Returns true if a generated crate uses a name for something other than a definition.
pub fn is_reserved(name: &str) -> bool {
    let reexported = |text: &&str| text.rsplit(' ').next() == Some(name);
    IMPORTED_NAMES.contains(&name)
        || GENERATED_NAMES.contains(&name)
        || REEXPORTED.iter().any(reexported)
}

/// Names that generated code defines itself or uses from Rust's prelude.
const GENERATED_NAMES: &[&str] = &[
    "Box",
    "ClientMessage",
    "Default",
    "From",
    "FromClient",
    "FromServer",
    "Into",
    "Option",
    "ServerMessage",
    "String",
    "Vec",
];

/// Names of `mcp_exact_wire::generated` that generated modules import, so that no definition may have one of these
/// names.
const IMPORTED_NAMES: &[&str] = &[
    "DispatchCase",
    "UnionDispatch",
    "Decode",
    "Document",
    "DocumentRule",
    "DocumentValue",
    "DocumentView",
    "Encode",
    "Extra",
    "DecodeFailed",
    "Format",
    "Integer",
    "Json",
    "JsonObject",
    "Kind",
    "Map",
    "Members",
    "Never",
    "Nullable",
    "Number",
    "ObjectReader",
    "Path",
    "Probe",
    "ReadResult",
    "Reader",
    "Revision",
    "RevisionTypes",
    "ObjectLayout",
    "Tag",
    "UnknownName",
    "UnknownVariant",
    "Validate",
    "Violations",
    "Writer",
];

/// Names that a generated crate re-exports from `mcp-exact-wire` at its root, so that no definition may have one of
/// these names.
pub const REEXPORTED: &[&str] = &[
    "Call",
    "decode_frame",
    "decode_message",
    "encode_into",
    "from_slice",
    "ErrorMessage",
    "ErrorObject",
    "Frame",
    "MessageHead",
    "HeadKind",
    "Message",
    "MessageError",
    "MessageErrorKind",
    "MessageKind",
    "ResultMessage",
    "WithId",
    "from_str",
    "to_line",
    "to_string",
    "to_vec",
    "to_writer",
    "Decode",
    "DecodeError",
    "DecodeErrorKind",
    "DecodeParams",
    "Direction",
    "Encode",
    "EncodeParams",
    "Extra",
    "Integer",
    "Json",
    "JsonObject",
    "KnownMember",
    "Map",
    "Never",
    "NotAnObject",
    "Notification as NotificationMethod",
    "Nullable",
    "Number",
    "Request as RequestMethod",
    "Revision",
    "RevisionTypes",
    "UnknownName",
    "UnknownVariant",
    "MAX_DEPTH",
    "Validate",
    "Violation",
    "ViolationKind",
    "Violations",
];
