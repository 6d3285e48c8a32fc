//! Named properties of a revision: accessor, documentation and source of each value, in one table.
//!
//! A property that the schema shows has a rule over the intermediate representation. All other properties are listed in
//! `schema/revisions.toml` by the names of their accessors. To add a property, add a row to this table and, for a
//! listed property, the key in `schema/revisions.toml`; everything else is generated.

use crate::ir::{Ir, Member, MemberValue, Shape, Type};

/// A named property of revisions, such as `has_batches`.
pub struct Property {
    /// Name of the accessor, and of the key in `schema/revisions.toml`.
    pub name: &'static str,
    /// First sentence of the accessor's documentation.
    pub summary: &'static str,
    /// Page and heading of the specification, such as `2025-06-18/server/tools#Structured Content`.
    pub section: &'static str,
    /// Source of the value.
    pub source: Source,
}

/// Source of the value of a property.
pub enum Source {
    /// A rule reads the value from the schema.
    Schema(fn(&Ir) -> bool),
    /// The value is listed in `schema/revisions.toml`. `schema add` assumes these values for the first revision of a
    /// lifecycle.
    Listed {
        /// Assumed value for the `initialize` lifecycle.
        initialize: Value,
        /// Assumed value for the `server/discover` lifecycle.
        discover: Value,
    },
}

/// The value of a property.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize)]
#[serde(untagged)]
pub enum Value {
    /// True if the revision has the property.
    Flag(bool),
    /// JSON-RPC error code.
    Code(i64),
}

impl std::fmt::Display for Value {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Flag(flag) => flag.fmt(f),
            Self::Code(code) => code.fmt(f),
        }
    }
}

/// Creates a row whose value a rule reads from the schema.
const fn schema_property(
    name: &'static str,
    summary: &'static str,
    section: &'static str,
    rule: fn(&Ir) -> bool,
) -> Property {
    Property {
        name,
        summary,
        section,
        source: Source::Schema(rule),
    }
}

/// Creates a row whose value is listed in `schema/revisions.toml`.
const fn listed_property(
    name: &'static str,
    summary: &'static str,
    section: &'static str,
    initialize: Value,
    discover: Value,
) -> Property {
    Property {
        name,
        summary,
        section,
        source: Source::Listed {
            initialize,
            discover,
        },
    }
}

/// Value of a property that a revision has.
const TRUE: Value = Value::Flag(true);
/// Value of a property that a revision does not have.
const FALSE: Value = Value::Flag(false);

/// All properties, in the order of the generated accessors.
#[rustfmt::skip]
pub const PROPERTIES: &[Property] = &[
    // Messages
    schema_property("has_batches", "Returns true if one JSON array may hold several messages.",
        "2025-03-26/basic#Batching", has_batches),
    schema_property("error_id_required", "Returns true if an error response must have an id, so that none answers an unreadable message.",
        "2025-11-25/basic#Error Responses", requires_error_id),
    schema_property("has_envelope_in_types", "Returns true if the schema's request types hold `jsonrpc` and `id` themselves.",
        "2025-11-25/basic#Requests", has_envelope_in_types),
    schema_property("has_server_requests", "Returns true if servers send requests as messages of their own.",
        "2026-07-28/basic#Message Patterns", |ir| ir.methods.iter().any(|m| m.request && m.from_server)),
    schema_property("has_result_type", "Returns true if every result states its `resultType`.",
        "2026-07-28/basic#ResultType", |ir| has_required_member(ir, "Result", "resultType")),
    schema_property("has_input_required", "Returns true if a result can ask the client for input (`InputRequiredResult`).",
        "2026-07-28/basic/patterns/mrtr#InputRequiredResult", |ir| ir.get("InputRequiredResult").is_some()),
    schema_property("has_subscriptions_listen", "Returns true if clients subscribe to notifications with `subscriptions/listen`.",
        "2026-07-28/basic/patterns/subscriptions#Opening a Stream", |ir| is_sent(ir, true, "subscriptions/listen")),
    schema_property("has_tasks", "Returns true if tasks are a part of the revision itself (`tasks/get` and its siblings), not of an extension.",
        "2025-11-25/basic/utilities/tasks#Protocol Messages", |ir| is_sent(ir, true, "tasks/get")),
    schema_property("has_extensions_capability", "Returns true if both capability objects have the member `extensions`.",
        "2026-07-28/basic/versioning#Extension Negotiation",
        |ir| ["ClientCapabilities", "ServerCapabilities"].iter().all(|name| has_member(ir, name, "extensions"))),
    schema_property("has_progress_message", "Returns true if a progress notification can have a `message`.",
        "2025-03-26/basic/utilities/progress#Progress Flow", |ir| has_member(ir, "ProgressNotificationParams", "message")),
    // Descriptions
    schema_property("has_titles", "Returns true if implementations, tools, prompts and resources can have a `title`.",
        "2025-06-18/schema#Implementation", |ir| has_member(ir, "Implementation", "title")),
    schema_property("has_implementation_details", "Returns true if `Implementation` has `description`, `icons` and `websiteUrl`.",
        "2025-11-25/schema#Implementation",
        |ir| ["description", "icons", "websiteUrl"].iter().all(|name| has_member(ir, "Implementation", name))),
    schema_property("has_icons", "Returns true if tools, prompts and resources can have `icons`.",
        "2025-11-25/basic#icons", |ir| has_member(ir, "Tool", "icons")),
    schema_property("has_last_modified", "Returns true if annotations can have `lastModified`.",
        "2025-06-18/server/resources#Annotations", |ir| has_member(ir, "Annotations", "lastModified")),
    // Server features
    schema_property("has_completions_capability", "Returns true if servers declare completion by the capability `completions`.",
        "2025-03-26/server/utilities/completion#Capabilities", |ir| has_member(ir, "ServerCapabilities", "completions")),
    schema_property("has_completion_context", "Returns true if a completion request can state arguments that are already resolved (`context`).",
        "2025-06-18/server/utilities/completion#Requesting Completions", |ir| has_member(ir, "CompleteRequestParams", "context")),
    schema_property("has_tool_annotations", "Returns true if tools can have `annotations`.",
        "2025-03-26/server/tools#Tool", |ir| has_member(ir, "Tool", "annotations")),
    schema_property("has_structured_output", "Returns true if tools can have an `outputSchema`, and their results `structuredContent`.",
        "2025-06-18/server/tools#Structured Content",
        |ir| has_member(ir, "Tool", "outputSchema") && has_member(ir, "CallToolResult", "structuredContent")),
    schema_property("has_any_structured_content", "Returns true if `structuredContent` can be any JSON value, and false if it must be an object or is not defined.",
        "2026-07-28/server/tools#Structured Content", has_any_structured_content),
    schema_property("has_resource_links", "Returns true if content can be a `resource_link`.",
        "2025-06-18/server/tools#Resource Links", |ir| ir.get("ResourceLink").is_some()),
    schema_property("has_audio", "Returns true if content can be `audio`.",
        "2025-03-26/server/tools#Audio Content", |ir| ir.get("AudioContent").is_some()),
    schema_property("has_cache_hints", "Returns true if lists and read resources state `ttlMs` and `cacheScope`.",
        "2026-07-28/server/utilities/caching#Cacheable Model",
        |ir| ["ttlMs", "cacheScope"].iter().all(|name| has_required_member(ir, "ListToolsResult", name))),
    // Client features
    schema_property("has_elicitation", "Returns true if servers can elicit input from the user.",
        "2025-06-18/client/elicitation#Capabilities", |ir| has_member(ir, "ClientCapabilities", "elicitation")),
    schema_property("has_elicitation_modes", "Returns true if clients declare the modes `form` and `url` of elicitation.",
        "2025-11-25/client/elicitation#Capabilities",
        |ir| ["form", "url"].iter().all(|mode| has_capability(ir, "elicitation", mode))),
    schema_property("has_elicitation_complete", "Returns true if servers send `notifications/elicitation/complete`.",
        "2025-11-25/client/elicitation#Completion Notifications for URL Mode Elicitation",
        |ir| is_sent(ir, false, "notifications/elicitation/complete")),
    schema_property("has_url_elicitation_error", "Returns true if error -32042 asks the client to open a URL first.",
        "2025-11-25/client/elicitation#URL Elicitation Required Error", |ir| has_error(ir, -32042)),
    schema_property("has_sampling_tools", "Returns true if sampling can use tools (`tools`, `toolChoice`), which clients declare.",
        "2025-11-25/client/sampling#Sampling with Tools", |ir| has_capability(ir, "sampling", "tools")),
    schema_property("has_sampling_content_lists", "Returns true if the content of a sampling message can be an array.",
        "2025-11-25/client/sampling#Sampling with Tools", has_sampling_content_lists),
    // Transports
    listed_property("has_http_sse", "Returns true if the revision defines the transport HTTP with SSE.",
        "2024-11-05/basic/transports#HTTP with SSE", TRUE, FALSE),
    listed_property("has_streamable_http", "Returns true if the revision defines the transport Streamable HTTP.",
        "2025-03-26/basic/transports#Streamable HTTP", FALSE, TRUE),
    listed_property("has_session_ids", "Returns true if a server over Streamable HTTP can assign a session id (`Mcp-Session-Id`), which DELETE ends.",
        "2025-03-26/basic/transports#Session Management", FALSE, FALSE),
    listed_property("has_http_get_stream", "Returns true if clients over Streamable HTTP can open a stream for messages of the server with GET.",
        "2025-03-26/basic/transports#Listening for Messages from the Server", FALSE, FALSE),
    listed_property("has_stream_resumption", "Returns true if clients over Streamable HTTP can resume a broken stream with `Last-Event-ID`.",
        "2025-03-26/basic/transports#Resumability and Redelivery", FALSE, FALSE),
    listed_property("has_sse_priming", "Returns true if servers over Streamable HTTP begin a stream with a priming event and can close it with `retry` to be polled.",
        "2025-11-25/basic/transports#Sending Messages to the Server", FALSE, FALSE),
    listed_property("has_protocol_version_header", "Returns true if clients over Streamable HTTP state the revision in `MCP-Protocol-Version`.",
        "2025-06-18/basic/transports#Protocol Version Header", FALSE, TRUE),
    listed_property("has_http_header_mirroring", "Returns true if clients over Streamable HTTP mirror members of a request in the headers `Mcp-Method`, `Mcp-Name` and `Mcp-Param-…`.",
        "2026-07-28/basic/transports/streamable-http#Request Metadata", FALSE, TRUE),
    listed_property("has_disconnect_cancellation", "Returns true if closing the response stream of a request over Streamable HTTP cancels the request.",
        "2026-07-28/basic/transports/streamable-http#Cancellation", FALSE, TRUE),
    // Errors
    listed_property("resource_not_found_code", "Returns the error code for a resource that does not exist.",
        "2026-07-28/server/resources#Error Handling", Value::Code(-32002), Value::Code(-32602)),
];

/// Returns true if one JSON array may contain several messages.
pub fn has_batches(ir: &Ir) -> bool {
    ir.get("JSONRPCBatchRequest").is_some()
}

/// Returns true if every error response must have the member `id`.
pub fn requires_error_id(ir: &Ir) -> bool {
    let names = ["JSONRPCError", "JSONRPCErrorResponse"];
    names.iter().any(|name| has_required_member(ir, name, "id"))
}

/// Returns true if the types of requests and notifications include `jsonrpc`.
pub fn has_envelope_in_types(ir: &Ir) -> bool {
    let mut sent = ir
        .methods
        .iter()
        .filter(|method| method.from_client || method.from_server);
    sent.any(|method| has_member(ir, &method.definition, "jsonrpc"))
}

/// Returns true if `structuredContent` may be any JSON value.
fn has_any_structured_content(ir: &Ir) -> bool {
    let content = member(ir, "CallToolResult", "structuredContent");
    let value = content.map(|member| resolve_value(ir, &member.value));
    matches!(value, Some(ResolvedType::Other(Type::Json)))
}

/// Returns true if a sampling message may contain several content blocks.
fn has_sampling_content_lists(ir: &Ir) -> bool {
    let content = member(ir, "SamplingMessage", "content");
    match content.map(|member| resolve_value(ir, &member.value)) {
        Some(ResolvedType::Shape(Shape::Union(union))) => {
            let arrays = |value: &Type| matches!(value, Type::Array { .. });
            union.iter().any(arrays)
        }
        Some(ResolvedType::Other(value)) => matches!(value, Type::Array { .. }),
        _ => false,
    }
}

/// Returns true if clients can declare `part` of a capability.
fn has_capability(ir: &Ir, capability: &str, part: &str) -> bool {
    let declared = member(ir, "ClientCapabilities", capability);
    match declared.map(|member| resolve_value(ir, &member.value)) {
        Some(ResolvedType::Shape(Shape::Struct(members))) => members.iter().any(|m| m.name == part),
        _ => false,
    }
}

/// Returns true if the schema defines an error with this code.
fn has_error(ir: &Ir, code: i64) -> bool {
    let is_code =
        |member: &Member| member.name == "code" && member.value == MemberValue::ConstInteger(code);
    ir.definitions
        .iter()
        .any(|definition| match &definition.shape {
            Shape::Struct(members) => members.iter().any(is_code),
            _ => false,
        })
}

/// Returns true if the client or the server sends a request (or a notification, if `request` is false) of this method.
fn is_sent(ir: &Ir, request: bool, method: &str) -> bool {
    let mut methods = ir.methods.iter();
    methods.any(|m| m.request == request && m.method == method && (m.from_client || m.from_server))
}

/// Returns true if the definition has the member.
fn has_member(ir: &Ir, definition: &str, name: &str) -> bool {
    member(ir, definition, name).is_some()
}

/// Returns true if the definition has the member and requires it.
fn has_required_member(ir: &Ir, definition: &str, name: &str) -> bool {
    member(ir, definition, name).is_some_and(|member| member.required)
}

/// Returns a member of a definition that is an object.
fn member<'i>(ir: &'i Ir, definition: &str, name: &str) -> Option<&'i Member> {
    match &ir.get(definition)?.shape {
        Shape::Struct(members) => members.iter().find(|member| member.name == name),
        _ => None,
    }
}

/// Type of a member, after references and aliases are resolved.
enum ResolvedType<'i> {
    /// Shape of the definition that the type refers to.
    Shape(&'i Shape),
    /// Any type that does not refer to a definition.
    Other(&'i Type),
    /// A constant.
    Constant,
}

/// Returns the type of a member's value without references and aliases.
fn resolve_value<'i>(ir: &'i Ir, value: &'i MemberValue) -> ResolvedType<'i> {
    let MemberValue::Type(value) = value else {
        return ResolvedType::Constant;
    };
    let mut value = value;
    // A chain of aliases cannot be longer than the list of definitions.
    for _ in 0..=ir.definitions.len() {
        let Type::Ref { name, .. } = value else {
            break;
        };
        match ir.get(name).map(|definition| &definition.shape) {
            Some(Shape::Alias(target)) => value = target,
            Some(shape) => return ResolvedType::Shape(shape),
            None => break,
        }
    }
    ResolvedType::Other(value)
}
