//! Rules of the specification that can be checked by observing messages, each with the sentence that states the rule.
//!
//! The ids of MUST rules are those of `docs/requirements.toml`, which contains SHOULD requirements of some pages only.
//! Sentences are quotations; `[…]` marks an omission.

use mcp_exact_revisions::{Lifecycle, RevisionSpec};

/// Requirement level of a rule (RFC 2119).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// MUST or MUST NOT.
    Must,
    /// SHOULD or SHOULD NOT.
    Should,
    /// No rule of the specification: what widely used hosts do not accept.
    Note,
}

/// Rule of the specification that messages can violate.
#[derive(Debug, PartialEq, Eq)]
pub struct Rule {
    /// Id of the requirement in `docs/requirements.toml`.
    pub id: &'static str,
    /// Requirement level: MUST or SHOULD.
    pub level: Level,
    /// Sentence of the specification that states the rule.
    pub sentence: &'static str,
    /// Page of the specification that contains the sentence, up to 2025-11-25; empty if those revisions do not have the
    /// rule.
    page: &'static str,
    /// Page of the specification that contains the sentence, from 2026-07-28 on; empty if those revisions do not have
    /// the rule.
    discover_page: &'static str,
}

impl Rule {
    /// Returns true if revisions of a lifecycle have the rule.
    pub fn is_of(&self, lifecycle: Lifecycle) -> bool {
        match lifecycle {
            Lifecycle::Initialize => !self.page.is_empty(),
            Lifecycle::Discover => !self.discover_page.is_empty(),
        }
    }

    /// Returns the URL of the page that states the rule, in the revision `spec`.
    pub fn url(&self, spec: &RevisionSpec) -> String {
        let page = match spec.lifecycle() {
            Lifecycle::Discover if !self.discover_page.is_empty() => self.discover_page,
            Lifecycle::Initialize if self.page.is_empty() => self.discover_page,
            _ => self.page,
        };
        format!(
            "https://modelcontextprotocol.io/specification/{}/{page}",
            spec.id()
        )
    }
}

/// Defines a static for each rule, and a list of all rules.
macro_rules! rules {
    ($($name:ident $id:literal $level:ident $page:literal $discover_page:literal $sentence:literal)*) => {
        $(
            #[doc = concat!("`", $id, "`.")]
            pub static $name: Rule = Rule {
                id: $id,
                level: Level::$level,
                sentence: $sentence,
                page: $page,
                discover_page: $discover_page,
            };
        )*
        /// All rules.
        #[cfg(test)]
        pub static ALL: &[&Rule] = &[$(&$name),*];
    };
}

rules! {
    SCHEMA "RPC.base-protocol" Must "basic" "basic"
        "The full specification of the protocol is defined as a TypeScript schema. This is the source of truth for all protocol messages and structures."
    VERSION "RPC.version-2.0" Must "basic" "basic"
        "All messages between MCP clients and servers MUST follow the JSON-RPC 2.0 specification."
    RESPONSE_ID "RPC.response-id-matches" Must "basic" "basic"
        "Result responses MUST include the same ID as the request they correspond to."
    ANSWERED "RPC.request-answered" Must "basic" "basic"
        "When a rpc call is made, the Server MUST reply with a Response, except for in the case of Notifications. (JSON-RPC 2.0, section 5)"
    NO_REPLY "RPC.no-reply-to-notification" Must "basic" "basic"
        "The receiver MUST NOT send a response."
    ID_UNIQUE "RPC.id-unique" Must "basic" ""
        "The request ID MUST NOT have been previously used by the requestor within the same session."
    ID_IN_FLIGHT "RPC.id-unique-in-flight" Must "" "basic"
        "The request ID MUST NOT match the ID of any other request the sender has issued and not yet received a response for."
    FORBIDDEN_CODES "RPC.forbidden-codes" Must "" "basic"
        "Implementations MUST NOT emit any code from this sub-range that is not defined by this specification"
    RETIRED_CODES "RPC.retired-codes" Must "" "basic"
        "Implementations of this protocol version MUST NOT emit these codes:"
    NO_SERVER_REQUESTS "RPC.no-server-requests" Must "" "basic/patterns"
        "Servers MUST NOT initiate JSON-RPC requests"
    BATCH "RPC.batch-received" Must "basic" ""
        "MCP implementations MAY support sending JSON-RPC batches, but MUST support receiving JSON-RPC batches."
    VERSION_ECHO "LIFE.version-echo" Must "basic/lifecycle" ""
        "If the server supports the requested protocol version, it MUST respond with the same version."
    VERSION_ALTERNATIVE "LIFE.version-alternative" Must "basic/lifecycle" ""
        "Otherwise, the server MUST respond with another protocol version it supports."
    NEGOTIATED "LIFE.only-negotiated-capabilities" Must "basic/lifecycle" ""
        "Only use capabilities that were successfully negotiated"
    SERVER_WAITS "LIFE.server-waits" Should "basic/lifecycle" ""
        "The server SHOULD NOT send requests other than pings and logging before receiving the initialized notification."
    PING "PING.empty-reply" Must "basic/utilities/ping" ""
        "The receiver MUST respond promptly with an empty response:"
    PROGRESS_TOKEN "PROG.active-only" Must "basic/utilities/progress" "basic/patterns/progress"
        "Progress notifications MUST only reference tokens that: Were provided in an active request"
    PROGRESS_INCREASES "PROG.increasing" Must "basic/utilities/progress" "basic/patterns/progress"
        "The progress value MUST increase with each notification, even if the total is unknown."
    PROGRESS_STOPS "PROG.stops" Must "basic/utilities/progress" "basic/patterns/progress"
        "Progress notifications MUST stop after completion"
    CANCEL_OWN "CANC.own-in-flight-only" Must "basic/utilities/cancellation" "basic/patterns/cancellation"
        "Cancellation notifications MUST only reference requests that:"
    CANCEL_LISTEN "CANC.server-listen-only" Must "" "basic/patterns/cancellation"
        "Server-sent cancellation notifications MUST reference a subscriptions/listen request, to terminate that subscription stream"
    LOG_CAPABILITY "LOG.capability-declared" Must "server/utilities/logging" "server/utilities/logging"
        "Servers that emit log message notifications MUST declare the logging capability:"
    LOG_SILENT "LOG.silent-without-level" Must "" "server/utilities/logging"
        "The server MUST NOT emit notifications/message for a request that does not include this field."
    LOG_LEVEL "LOG.invalid-level" Should "server/utilities/logging" ""
        "Servers SHOULD return standard JSON-RPC errors for common failure cases: Invalid log level: -32602 (Invalid params)"
    INPUT_METHODS "MRTR.three-methods" Must "" "basic/patterns/mrtr"
        "Servers MUST NOT send InputRequiredResult responses on any other client requests."
    INPUT_DECLARED "MRTR.declared-only" Must "" "basic/patterns/mrtr"
        "Servers MUST NOT send an inputRequests that the client has not declared support for in its capabilities."
    SUBSCRIPTION_ACK "SUB.ack-first" Must "" "basic/patterns/subscriptions"
        "The server MUST send notifications/subscriptions/acknowledged as the first message carrying the subscription's ID in _meta"
    NO_NEWLINE "STD.no-newline" Must "basic/transports" "basic/transports/stdio"
        "Messages are delimited by newlines, and MUST NOT contain embedded newlines."
    STDOUT_CLEAN "STD.stdout-clean" Must "basic/transports" "basic/transports/stdio"
        "The server MUST NOT write anything to its stdout that is not a valid MCP message."
    METHOD_CODE "RPC.method-not-found-code" Should "basic" "basic"
        "-32601 Method not found: The method does not exist / is not available. (JSON-RPC 2.0, section 5.1)"
    UNKNOWN_METHOD "RPC.method-not-found" Must "basic" "basic"
        "All messages between MCP clients and servers MUST follow the JSON-RPC 2.0 specification."
    CAPABILITY_TOOLS "TOOL.capability-declared" Must "server/tools" "server/tools"
        "Servers that support tools MUST declare the tools capability"
    CAPABILITY_RESOURCES "RES.capability-declared" Must "server/resources" "server/resources"
        "Servers that support resources MUST declare the resources capability"
    CAPABILITY_PROMPTS "PROMPT.capability-declared" Must "server/prompts" "server/prompts"
        "Servers that support prompts MUST declare the prompts capability"
    TOOLS_ANSWERED "TOOL.list-answered" Must "" "server/tools"
        "Servers that declare the tools capability MUST respond to tools/list requests"
    RESOURCES_ANSWERED "RES.list-answered" Must "" "server/resources"
        "Servers that declare the resources capability MUST respond to resources/list requests"
    PROMPTS_ANSWERED "PROMPT.list-answered" Must "" "server/prompts"
        "Servers that declare the prompts capability MUST respond to prompts/list requests"
    PORTABLE_SCHEMA "HOST.portable-schema" Note "server/tools" "server/tools"
        "Hosts give schemas of tools to models of several vendors, and widely used ones refuse some shapes, or a whole server because of them."
    PORTABLE_NAME "HOST.portable-name" Note "server/tools" "server/tools"
        "Providers of models accept 1 to 64 of the characters A-Z a-z 0-9 _ - as the name of a tool, and refuse every request that has another one."
    PROBE_ENDS "HOST.probe-ends-server" Note "basic/lifecycle" "basic/transports/stdio"
        "Clients of 2026-07-28 begin with server/discover. They have to start a server again that exits because of it, and older revisions do not demand that it is answered."
    TOOL_OUTPUT "TOOL.output-matches-schema" Must "server/tools" "server/tools"
        "Servers MUST provide structured results that conform to this schema."
    TOOL_NAMES "TOOL.names-unique" Should "server/tools" "server/tools"
        "Tool names SHOULD be unique within a server."
    TOOL_NAME_FORM "TOOL.name-form" Should "server/tools" "server/tools"
        "Tool names SHOULD be between 1 and 128 characters in length (inclusive). […] The following SHOULD be the only allowed characters: uppercase and lowercase ASCII letters (A-Z, a-z), digits (0-9), underscore (_), hyphen (-), and dot (.)"
    CURSOR_ADVANCES "PAGE.cursor-advances" Should "server/utilities/pagination" "server/utilities/pagination"
        "Pagination starts when the server sends a response that includes: […] An optional nextCursor field if more results exist"
    CURSOR "PAGE.invalid-cursor" Should "server/utilities/pagination" "server/utilities/pagination"
        "Invalid cursors SHOULD result in an error with code -32602 (Invalid params)."
    PROMPT_ERROR "PROMPT.invalid-name" Should "server/prompts" "server/prompts"
        "Servers SHOULD return standard JSON-RPC errors for common failure cases: Invalid prompt name: -32602 (Invalid params)"
    RESOURCE_ERROR "RES.not-found" Should "server/resources" ""
        "Servers SHOULD return standard JSON-RPC errors for common failure cases: Resource not found: -32002"
    RESOURCE_NOT_FOUND "RES.not-found-32602" Must "" "server/resources"
        "If the requested resource does not exist, servers MUST return a JSON-RPC error with code -32602 (Invalid Params)."
    RESOURCE_NOT_EMPTY "RES.not-found-not-empty" Must "" "server/resources"
        "Servers MUST NOT return an empty contents array for a non-existent resource."
    DISCOVER "VER.discover" Must "" "basic/versioning"
        "Servers MUST implement server/discover."
    UNSUPPORTED "VER.unsupported-lists-supported" Must "" "basic/versioning"
        "it MUST respond with an UnsupportedProtocolVersionError listing the versions it does support:"
    META_REQUIRED "META.missing-is-32602" Must "" "basic"
        "A request missing any required field is malformed; the server MUST reject it with JSON-RPC error code -32602 (Invalid params)."
    CACHE_SCOPE "CACHE.scope" Must "" "server/utilities/caching"
        "Servers MUST apply the same cacheScope to all response pages for a given list request"
    HTTP_ORIGIN "HTTP.origin" Must "basic/transports" "basic/transports/streamable-http"
        "Servers MUST validate the Origin header on all incoming connections to prevent DNS rebinding attacks"
    HTTP_202 "HTTP.202" Must "basic/transports" "basic/transports/streamable-http"
        "the server MUST return HTTP status code 202 Accepted with no body."
    HTTP_RESPONSE "HTTP.response-content-type" Must "" "basic/transports/streamable-http"
        "If the body is a JSON-RPC request, the server MUST return either Content-Type: application/json (a single JSON object) or Content-Type: text/event-stream (an SSE response stream)."
    HTTP_CONTENT_TYPE "HTTP.response-content-type" Must "basic/transports" ""
        "If the input is a JSON-RPC request, the server MUST either return Content-Type: text/event-stream, to initiate an SSE stream, or Content-Type: application/json, to return one JSON object."
    HTTP_GET "HTTP.405" Must "basic/transports" ""
        "The server MUST either return Content-Type: text/event-stream in response to this HTTP GET, or else return HTTP 405 Method Not Allowed"
    HTTP_VERSION "HDR.version-unsupported-400" Must "basic/transports" ""
        "If the server receives a request with an invalid or unsupported MCP-Protocol-Version, it MUST respond with 400 Bad Request."
    SESSION_CHARS "SESS.id-charset" Must "basic/transports" ""
        "The session ID MUST only contain visible ASCII characters (ranging from 0x21 to 0x7E)."
    SESSION_404 "SESS.404" Must "basic/transports" ""
        "The server MAY terminate the session at any time, after which it MUST respond to requests containing that session ID with HTTP 404 Not Found."
    HEADER_MISMATCH "HDR.version-mismatch" Must "" "basic/transports/streamable-http"
        "If the values do not match, the server MUST reject the request with 400 Bad Request and a HeaderMismatch JSON-RPC error"
    HEADER_METHOD "HDR.mismatch" Must "" "basic/transports/streamable-http"
        "Servers that process the request body MUST reject requests where the values specified in the headers do not match the corresponding values in the request body."
    HTTP_UNKNOWN_METHOD "HTTP.status-unknown-method" Must "" "basic/transports/streamable-http"
        "If the server does not implement the requested RPC method, it MUST respond with 404 Not Found and a JSON-RPC error with code -32601"
    HTTP_UNSUPPORTED "HTTP.status-unsupported-version" Must "" "basic/transports/streamable-http"
        "it MUST respond with 400 Bad Request and an UnsupportedProtocolVersionError listing its supported versions."
}

/// Rules that every message of a server is checked by, as far as the revision has them.
pub static OF_ALL_MESSAGES: [&Rule; 19] = [
    &SCHEMA,
    &VERSION,
    &RESPONSE_ID,
    &ANSWERED,
    &ID_UNIQUE,
    &ID_IN_FLIGHT,
    &FORBIDDEN_CODES,
    &RETIRED_CODES,
    &NO_SERVER_REQUESTS,
    &NEGOTIATED,
    &SERVER_WAITS,
    &CANCEL_OWN,
    &CANCEL_LISTEN,
    &LOG_CAPABILITY,
    &LOG_SILENT,
    &INPUT_METHODS,
    &INPUT_DECLARED,
    &NO_REPLY,
    &SUBSCRIPTION_ACK,
];

#[cfg(test)]
mod tests {
    use super::*;

    /// Ids of rules of JSON-RPC itself, which `docs/requirements.toml` does not contain.
    const RULES_OF_JSON_RPC: [&str; 2] = ["RPC.method-not-found", "RPC.request-answered"];

    /// The id of every MUST rule is the id of a requirement in `docs/requirements.toml`.
    #[test]
    fn rules_are_listed_requirements() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/requirements.toml");
        // `docs/requirements.toml` is part of the repository and not of the package.
        let Ok(text) = std::fs::read_to_string(path) else {
            return;
        };
        let ledger: toml::Table = text.parse().expect("the ledger is TOML");
        let rows = ledger["requirement"].as_array().expect("it has rows");
        for rule in ALL.iter().filter(|rule| rule.level == Level::Must) {
            let row = rows.iter().find(|row| row["id"].as_str() == Some(rule.id));
            assert!(
                row.is_some() || RULES_OF_JSON_RPC.contains(&rule.id),
                "{} is not a row of the ledger",
                rule.id
            );
        }
    }
}
