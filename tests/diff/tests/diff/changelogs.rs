//! Each change that an official changelog names and that is visible in the schemas must be among the computed
//! differences.
//!
//! The table paraphrases `docs/specification/<revision>/changelog.mdx` of the official repository; `facts.rs` describes
//! the format of the facts. A row whose revisions do not exist yet is skipped and counted.

use mcp_exact_model::diff;

use crate::facts::facts;
use crate::revisions;

/// Change that the official changelog of a revision names.
struct ChangelogRow {
    /// Identifier of the older revision.
    from: &'static str,
    /// Identifier of the newer revision.
    to: &'static str,
    /// Paraphrase of the changelog's entry.
    statement: &'static str,
    /// Facts that the computed difference between the two revisions must contain.
    facts: &'static [&'static str],
}

/// Creates a row of the table; `steps` contains the older and the newer revision.
const fn row(
    steps: (&'static str, &'static str),
    statement: &'static str,
    facts: &'static [&'static str],
) -> ChangelogRow {
    ChangelogRow {
        from: steps.0,
        to: steps.1,
        statement,
        facts,
    }
}

/// Step from the first to the second revision.
const TO_2025_03_26: (&str, &str) = ("2024-11-05", "2025-03-26");
/// Step from the second to the third revision.
const TO_2025_06_18: (&str, &str) = ("2025-03-26", "2025-06-18");
/// Step from the third to the fourth revision.
const TO_2025_11_25: (&str, &str) = ("2025-06-18", "2025-11-25");
/// Step from the fourth to the fifth revision.
const TO_2026_07_28: (&str, &str) = ("2025-11-25", "2026-07-28");

/// Changes that the changelogs name, with the facts that must be computed for each.
#[rustfmt::skip]
const ROWS: &[ChangelogRow] = &[
    row(TO_2025_03_26, "batches", &[
        "+ type JSONRPCBatchRequest", "+ type JSONRPCBatchResponse",
        "+ JSONRPCMessage or JSONRPCBatchRequest", "+ JSONRPCMessage or JSONRPCBatchResponse",
    ]),
    row(TO_2025_03_26, "annotations of tools", &["+ type ToolAnnotations", "+ Tool.annotations"]),
    row(TO_2025_03_26, "a message with progress", &["+ ProgressNotification.params.message"]),
    row(TO_2025_03_26, "audio beside text and images", &[
        "+ type AudioContent", "+ CallToolResult.content[] or AudioContent",
        "+ PromptMessage.content or AudioContent", "+ SamplingMessage.content or AudioContent",
        "+ CreateMessageResult.content or AudioContent",
    ]),
    row(TO_2025_03_26, "a capability for completions", &["+ ServerCapabilities.completions"]),

    row(TO_2025_06_18, "no batches any more", &[
        "- type JSONRPCBatchRequest", "- type JSONRPCBatchResponse",
        "- JSONRPCMessage or JSONRPCBatchRequest", "- JSONRPCMessage or JSONRPCBatchResponse",
    ]),
    row(TO_2025_06_18, "structured results of tools", &["+ CallToolResult.structuredContent", "+ Tool.outputSchema"]),
    row(TO_2025_06_18, "elicitation", &[
        "+ method elicitation/create", "+ type ElicitRequest", "+ type ElicitResult",
        "+ ClientCapabilities.elicitation", "+ type PrimitiveSchemaDefinition",
        "+ ServerRequest or ElicitRequest", "+ ClientResult or ElicitResult",
    ]),
    row(TO_2025_06_18, "links to resources in results of tools", &[
        "+ type ResourceLink", "~ type ContentBlock named", "+ ContentBlock or ResourceLink",
    ]),
    row(TO_2025_06_18, "_meta in more types", &[
        "+ Tool._meta", "+ Prompt._meta", "+ Resource._meta", "+ ResourceTemplate._meta", "+ Root._meta",
        "+ TextContent._meta", "+ ImageContent._meta", "+ AudioContent._meta", "+ EmbeddedResource._meta",
        "+ ResourceContents._meta", "+ TextResourceContents._meta", "+ BlobResourceContents._meta",
    ]),
    row(TO_2025_06_18, "earlier values as context of a completion", &["+ CompleteRequest.params.context"]),
    row(TO_2025_06_18, "a title for people beside the name", &[
        "+ type BaseMetadata", "+ Tool.title", "+ Prompt.title", "+ PromptArgument.title", "+ PromptReference.title",
        "+ Resource.title", "+ ResourceTemplate.title", "+ Implementation.title",
    ]),

    row(TO_2025_11_25, "icons", &[
        "+ type Icon", "+ type Icons", "+ Tool.icons", "+ Resource.icons", "+ ResourceTemplate.icons", "+ Prompt.icons",
    ]),
    row(TO_2025_11_25, "enums with titles and with several choices", &[
        "+ type UntitledSingleSelectEnumSchema", "+ type TitledSingleSelectEnumSchema",
        "+ type UntitledMultiSelectEnumSchema", "+ type TitledMultiSelectEnumSchema",
        "~ type LegacyTitledEnumSchema was EnumSchema", "+ type EnumSchema", "+ ElicitResult.content{} or string[]",
    ]),
    row(TO_2025_11_25, "elicitation by URL", &[
        "+ type ElicitRequestURLParams", "+ type ElicitRequestFormParams", "~ ElicitRequest.params retyped",
        "+ ClientCapabilities.elicitation.url", "+ ClientCapabilities.elicitation.form",
        "+ method notifications/elicitation/complete", "+ type URLElicitationRequiredError",
    ]),
    row(TO_2025_11_25, "tools in sampling", &[
        "+ CreateMessageRequestParams.tools", "+ CreateMessageRequestParams.toolChoice", "+ type ToolChoice",
        "+ ClientCapabilities.sampling.tools", "+ SamplingMessage.content or ToolUseContent",
        "+ SamplingMessage.content or ToolResultContent",
    ]),
    row(TO_2025_11_25, "tasks", &[
        "+ method tasks/get", "+ method tasks/result", "+ method tasks/list", "+ method tasks/cancel",
        "+ method notifications/tasks/status", "+ type Task", "+ type CreateTaskResult", "+ ClientCapabilities.tasks",
        "+ ServerCapabilities.tasks", "+ CallToolRequestParams.task", "+ CreateMessageRequestParams.task",
        "+ Tool.execution",
    ]),
    row(TO_2025_11_25, "a description of the implementation", &["+ Implementation.description"]),
    row(TO_2025_11_25, "defaults in elicitation", &[
        "+ StringSchema.default", "+ NumberSchema.default", "+ LegacyTitledEnumSchema.default",
    ]),
    row(TO_2025_11_25, "a dialect for JSON Schema documents", &["+ Tool.inputSchema.$schema", "+ Tool.outputSchema.$schema"]),
    row(TO_2025_11_25, "parameters as types of their own", &[
        "~ type CallToolRequestParams named", "~ type CompleteRequestParams named",
        "~ type CreateMessageRequestParams named", "~ type GetPromptRequestParams named",
        "~ type InitializeRequestParams named", "~ type PaginatedRequestParams named",
        "~ type ReadResourceRequestParams named", "~ type SetLevelRequestParams named",
        "~ type SubscribeRequestParams named", "~ type UnsubscribeRequestParams named",
        "+ type ElicitRequestParams",
    ]),

    row(TO_2026_07_28, "no handshake: each request says its revision and capabilities", &[
        "- method initialize", "- method notifications/initialized",
        "~ type RequestMetaObject named", "~ RequestParams._meta required",
        "+ RequestMetaObject[\"io.modelcontextprotocol/protocolVersion\"]",
        "+ RequestMetaObject[\"io.modelcontextprotocol/clientCapabilities\"]",
        "+ RequestMetaObject[\"io.modelcontextprotocol/clientInfo\"]",
        "+ type ResultMetaObject", "~ Result._meta retyped", "+ type UnsupportedProtocolVersionError",
    ]),
    row(TO_2026_07_28, "server/discover", &["+ method server/discover", "+ type DiscoverResult"]),
    row(TO_2026_07_28, "one stream of chosen notifications", &[
        "+ method subscriptions/listen", "+ method notifications/subscriptions/acknowledged",
        "- method resources/subscribe", "- method resources/unsubscribe", "+ type SubscriptionFilter",
        "+ type NotificationMetaObject", "~ NotificationParams._meta retyped",
    ]),
    row(TO_2026_07_28, "no ping, no level of logging for a session, no change of roots", &[
        "- method ping", "- method logging/setLevel", "- method notifications/roots/list_changed",
        "- ClientCapabilities.roots.listChanged", "+ RequestMetaObject[\"io.modelcontextprotocol/logLevel\"]",
    ]),
    row(TO_2026_07_28, "tasks go to an extension", &[
        "- method tasks/get", "- method tasks/result", "- method tasks/list", "- method tasks/cancel",
        "- method notifications/tasks/status", "- type Task", "- ClientCapabilities.tasks", "- ServerCapabilities.tasks",
        "- CallToolRequestParams.task", "- Tool.execution",
    ]),
    row(TO_2026_07_28, "servers ask inside a result", &[
        "~ method roots/list directions", "~ method sampling/createMessage directions",
        "~ method elicitation/create directions", "- type ServerRequest", "+ type InputRequiredResult",
        "+ ServerResult or InputRequiredResult", "+ CallToolRequestParams.inputResponses",
        "+ CallToolRequestParams.requestState", "+ GetPromptRequestParams.inputResponses",
        "+ ReadResourceRequestParams.inputResponses",
    ]),
    row(TO_2026_07_28, "each result says what it is", &[
        "+ Result.resultType", "+ CallToolResult.resultType", "+ ListToolsResult.resultType",
        "+ GetPromptResult.resultType", "+ CompleteResult.resultType",
    ]),
    row(TO_2026_07_28, "a capability for extensions", &["+ ClientCapabilities.extensions", "+ ServerCapabilities.extensions"]),
    row(TO_2026_07_28, "hints for caches", &[
        "+ type CacheableResult", "+ ListToolsResult.ttlMs", "+ ListToolsResult.cacheScope", "+ ListPromptsResult.ttlMs",
        "+ ListPromptsResult.cacheScope", "+ ListResourcesResult.ttlMs", "+ ListResourcesResult.cacheScope",
        "+ ListResourceTemplatesResult.ttlMs", "+ ListResourceTemplatesResult.cacheScope", "+ ReadResourceResult.ttlMs",
        "+ ReadResourceResult.cacheScope",
    ]),
    row(TO_2026_07_28, "looser schemas of tools, any structured content", &[
        "- Tool.inputSchema.properties", "- Tool.inputSchema.required", "- Tool.outputSchema.properties",
        "- Tool.outputSchema.required", "- Tool.outputSchema.type", "~ CallToolResult.structuredContent retyped",
    ]),
    row(TO_2026_07_28, "no completion of an elicitation by URL", &[
        "- method notifications/elicitation/complete", "- ElicitRequestURLParams.elicitationId",
    ]),
    row(TO_2026_07_28, "error codes of the specification", &[
        "+ type HeaderMismatchError", "+ type MissingRequiredClientCapabilityError",
        "+ type UnsupportedProtocolVersionError",
    ]),
];

/// Changes that the changelogs name but the schemas do not show, each with the reason.
#[rustfmt::skip]
const UNSHOWN_CHANGES: &[(&str, &str)] = &[
    ("2025-03-26: authorization, Streamable HTTP", "prose"),
    ("2025-06-18: resource servers, resource indicators, security, the version header, the lifecycle's wording", "prose"),
    ("2025-11-25: authorization, names of tools, stderr, Origin, polling, validation errors, governance", "prose"),
    ("2026-07-28: sessions, resumption, headers, trace context, order of tools, authorization, governance", "prose"),
    ("2026-07-28: resource not found is -32602", "the schema names the code in neither revision"),
    ("2026-07-28: roots, sampling, logging and values of includeContext deprecated", "descriptions only"),
    ("2026-07-28: bounds of NumberSchema are numbers", "a correction of the files, and an erratum of ours"),
];

/// The facts of every row are among the computed differences between its two revisions.
#[test]
fn changelog_entries_are_differences() {
    let (mut held, mut skipped, mut missing) = (0, 0, Vec::new());
    for row in ROWS {
        let (Some(from), Some(to)) = (revisions::get(row.from), revisions::get(row.to)) else {
            skipped += 1;
            continue;
        };
        held += 1;
        let facts = facts(&diff(from, to));
        for fact in row.facts.iter().filter(|fact| !facts.contains(**fact)) {
            missing.push(format!("{} ({}): {fact}", row.to, row.statement));
        }
    }
    for pair in revisions::all().windows(2) {
        let steps = (pair[0].revision.as_str(), pair[1].revision.as_str());
        if !ROWS.iter().any(|row| (row.from, row.to) == steps) {
            println!("no rows yet: read the changelog of {}", steps.1);
        }
    }
    println!(
        "{held} rows held, {skipped} skipped for want of their revisions, {} items without a row",
        UNSHOWN_CHANGES.len()
    );
    assert!(missing.is_empty(), "not found:\n{}", missing.join("\n"));
    assert!(held > 0, "no row was held against anything");
}
