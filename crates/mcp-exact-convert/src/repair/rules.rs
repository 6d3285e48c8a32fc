//! The rules of repairs: one table, with the public reports that justify each rule.
//!
//! `docs/tolerance.md` shows the table; a test compares the two.

/// Rule by which a text that breaks its schema was made valid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum RepairRule {
    /// `null` of an optional member counts as absence.
    NullMember,
    /// `null` of a required list counts as the empty list.
    NullList,
    /// `[]` counts as `{}` where an object has to be.
    EmptyArray,
    /// `true` or a list of a capability counts as `{}`, and `false` as absence.
    CapabilityFlag,
    /// A missing required member with an obvious value has that value.
    MissingMember,
    /// A tool without a usable input schema accepts any object.
    NeutralSchema,
    /// A schema as a string of JSON is the schema.
    SchemaAsText,
    /// An optional member of a result that has another type is dropped.
    WrongType,
    /// A value in the content of a tool's result that is not a content block becomes a text block.
    ToolContent,
    /// An item of a list in a result that cannot be repaired is left out.
    LeftOut,
    /// Half of a surrogate pair becomes U+FFFD.
    LoneSurrogate,
    /// `null` of a member of the JSON-RPC envelope counts as absence.
    NullInEnvelope,
    /// An error that is no error object becomes one, with the words of the peer.
    ErrorObject,
    /// `null` or `[]` as a whole result counts as the empty result.
    EmptyResult,
    /// `[]` as params counts as `{}`.
    EmptyParams,
    /// A byte order mark before a message is skipped.
    ByteOrderMark,
    /// An id that comes back as text or number of the same value is that id.
    IdSpelling,
    /// An array of one answer, in a revision without batches, is that answer.
    ArrayOfOne,
    /// A server that answers a request has its capability, although it has not declared it.
    UndeclaredCapability,
    /// A cursor that was given before ends its list.
    RepeatedCursor,
    /// A list with more pages than allowed ends with what was read.
    TooManyPages,
}

/// One row of the table of rules.
#[derive(Debug, Clone, Copy)]
pub struct RuleInfo {
    /// The rule.
    pub rule: RepairRule,
    /// Stable short name.
    pub name: &'static str,
    /// What the rule does, as a clause without a full stop.
    pub effect: &'static str,
    /// Public reports of peers that need the rule, as `owner/repository#number`.
    pub reports: &'static [&'static str],
}

/// Every rule, in the order of the documentation.
pub const RULES: &[RuleInfo] = &[
    RuleInfo {
        rule: RepairRule::NullMember,
        name: "null-member",
        effect: "`null` of an optional member counts as absence, except where the schema gives `null` a meaning",
        reports: &[
            "Azure/data-api-builder#3599",
            "r33drichards/mcp-js#117",
            "lizqwerscott/mcp.el#85",
        ],
    },
    RuleInfo {
        rule: RepairRule::NullList,
        name: "null-list",
        effect: "`null` of a required list counts as the empty list, as Go writes a nil slice",
        reports: &[
            "aldinokemal/go-whatsapp-web-multidevice#625",
            "googleapis/mcp-toolbox#3147",
        ],
    },
    RuleInfo {
        rule: RepairRule::EmptyArray,
        name: "empty-array",
        effect: "`[]` counts as `{}` where an object must be, as PHP writes an empty array",
        reports: &["php-mcp/schema#2", "use-novamira/novamira#82"],
    },
    RuleInfo {
        rule: RepairRule::CapabilityFlag,
        name: "capability-flag",
        effect: "`true` or a list of a capability counts as `{}`, and `false` as absence",
        reports: &["php-mcp/schema#2", "springfall2008/batpred#3501"],
    },
    RuleInfo {
        rule: RepairRule::MissingMember,
        name: "missing-member",
        effect: "a missing member with an obvious value has that value",
        reports: &[
            "asciimoo/hister#363",
            "awwaiid/mcp-server-taskwarrior#11",
            "modelcontextprotocol/python-sdk#1796",
        ],
    },
    RuleInfo {
        rule: RepairRule::NeutralSchema,
        name: "neutral-schema",
        effect: "a tool without a usable `inputSchema` accepts any object",
        reports: &["anthropics/claude-code#88049"],
    },
    RuleInfo {
        rule: RepairRule::SchemaAsText,
        name: "schema-as-text",
        effect: "a schema of a tool that is a string of JSON is that JSON",
        reports: &["webmachinelearning/webmcp#241"],
    },
    RuleInfo {
        rule: RepairRule::WrongType,
        name: "wrong-type",
        effect: "an optional member of a result that has another type is dropped, unless the result would mean something else without it",
        reports: &["NovasPlace/CSM#28", "Automattic/wordpress-mcp#58"],
    },
    RuleInfo {
        rule: RepairRule::ToolContent,
        name: "tool-content",
        effect: "in a tool's result, a `content` that is no list is its only item, and what is no content block is a text: the words of a string, or the JSON of another value, also of a whole result that has neither `content` nor `structuredContent`",
        reports: &[
            "alandtse/devbench#6",
            "mark3labs/mcp-go#819",
            "cloudflare/mcp-server-cloudflare#12",
        ],
    },
    RuleInfo {
        rule: RepairRule::LeftOut,
        name: "left-out",
        effect: "an item of a list in a result that cannot be repaired is left out, unless it is content of a tool's result",
        reports: &["modelcontextprotocol/go-sdk#1119"],
    },
    RuleInfo {
        rule: RepairRule::LoneSurrogate,
        name: "lone-surrogate",
        effect: "half of a surrogate pair becomes U+FFFD",
        reports: &["microsoft/playwright-mcp#1410"],
    },
    RuleInfo {
        rule: RepairRule::NullInEnvelope,
        name: "null-in-envelope",
        effect: "`null` of `error` beside a result, of `result` beside an error, of `params` and of `method` beside an answer counts as absence",
        reports: &["gensecaihq/Wazuh-MCP-Server#59"],
    },
    RuleInfo {
        rule: RepairRule::ErrorObject,
        name: "error-object",
        effect: "an error that is no error object, such as a text, becomes one: a code that is text becomes a number, or -32603 if it is none, the message is what the peer says, and what has no other place is in `data`",
        reports: &["leehack/mcp_dart#240", "homebot/bot#3"],
    },
    RuleInfo {
        rule: RepairRule::EmptyResult,
        name: "empty-result",
        effect: "`null` or `[]` as a whole result counts as `{}`",
        reports: &["lightpanda-io/browser#2683"],
    },
    RuleInfo {
        rule: RepairRule::EmptyParams,
        name: "empty-params",
        effect: "`[]` as params counts as `{}`",
        reports: &["laravel/mcp#136"],
    },
    RuleInfo {
        rule: RepairRule::ByteOrderMark,
        name: "byte-order-mark",
        effect: "a byte order mark before a message is skipped (RFC 8259, section 8.1)",
        reports: &["microsoft/vs-streamjsonrpc#695"],
    },
    RuleInfo {
        rule: RepairRule::IdSpelling,
        name: "id-spelling",
        effect: "the id of an answer that comes back as text or number of the same value is that id",
        reports: &["modelcontextprotocol/python-sdk#1720"],
    },
    RuleInfo {
        rule: RepairRule::ArrayOfOne,
        name: "array-of-one",
        effect: "an array of one answer is that answer, in revisions without batches",
        reports: &["gensecaihq/Wazuh-MCP-Server#59"],
    },
    RuleInfo {
        rule: RepairRule::UndeclaredCapability,
        name: "undeclared-capability",
        effect: "a server that answers requests of `tools`, `prompts`, `resources` or `completions` has this capability, although it has not declared it",
        reports: &["DeusData/codebase-memory-mcp#1185"],
    },
    RuleInfo {
        rule: RepairRule::RepeatedCursor,
        name: "repeated-cursor",
        effect: "a cursor that was given before ends its list with what was read; the empty cursor is a cursor (2026-07-28, `server/utilities/pagination`)",
        reports: &[
            "modelcontextprotocol/java-sdk#575",
            "modelcontextprotocol/java-sdk#628",
        ],
    },
    RuleInfo {
        rule: RepairRule::TooManyPages,
        name: "too-many-pages",
        effect: "a list with more pages than allowed, 100 by default, ends with what was read",
        reports: &["DeusData/codebase-memory-mcp#1247"],
    },
];

impl RepairRule {
    /// Returns the row of the rule.
    pub fn info(self) -> &'static RuleInfo {
        let row = RULES.iter().find(|row| row.rule == self);
        row.unwrap_or(&RULES[0])
    }

    /// Returns the stable short name of the rule, such as `null-member`.
    pub fn name(self) -> &'static str {
        self.info().name
    }
}

/// Schema of a tool that accepts any object.
pub(super) const NEUTRAL_SCHEMA: &str = r#"{"type":"object"}"#;

/// Required members with an obvious value: the definition (empty for any), the member, its JSON text and the rule.
pub(super) const DEFAULTS: &[(&str, &str, &str, RepairRule)] = &[
    (
        "Implementation",
        "version",
        r#""""#,
        RepairRule::MissingMember,
    ),
    (
        "Tool",
        "inputSchema",
        NEUTRAL_SCHEMA,
        RepairRule::NeutralSchema,
    ),
    ("CallToolResult", "content", "[]", RepairRule::MissingMember),
    (
        "InitializeResult",
        "capabilities",
        "{}",
        RepairRule::MissingMember,
    ),
    (
        "InitializeRequestParams",
        "capabilities",
        "{}",
        RepairRule::MissingMember,
    ),
    (
        "DiscoverResult",
        "capabilities",
        "{}",
        RepairRule::MissingMember,
    ),
    // "Clients MUST treat an absent field as `complete`" (2026-07-28, `basic`, "Result Types").
    ("", "resultType", r#""complete""#, RepairRule::MissingMember),
    ("", "ttlMs", "0", RepairRule::MissingMember),
    ("", "cacheScope", r#""private""#, RepairRule::MissingMember),
];

/// Optional members that are never dropped, because the message would mean something else without them.
pub(super) const MEANINGFUL: &[&str] = &[
    "isError",
    "requestState",
    "inputResponses",
    "task",
    "resultType",
];

/// Definitions whose members are capabilities.
pub(super) const CAPABILITIES: &[&str] = &["ServerCapabilities", "ClientCapabilities"];
