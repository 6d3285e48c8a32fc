//! Checks of the doctor in one revision. The [`Conversation`](crate::conversation::Conversation) of the session checks
//! each message and reports most violations; this module sends the requests, and checks rules that compare a response
//! with its request.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use mcp_exact_revisions::method;
use mcp_exact_tool_schema::{MAX_NAME_LENGTH, deviations, is_accepted_in_names};
use mcp_exact_wire::JsonObject;
use serde_json::{Value, json};

use super::session::{Answer, Session, client_info};
use crate::names::truncate_name;
use crate::rules::{self, Rule};

/// Identifier of a revision that no server supports.
pub const UNKNOWN_REVISION: &str = "1999-01-01";
/// Maximum number of pages that are fetched of a list.
const MAX_PAGES: usize = 20;
/// Maximum number of resources that are read, of prompts that are fetched, and of tools that are called without a
/// request of the user.
const MAX_SAMPLES: usize = 3;
/// First revision that says which characters names of tools have, and how many.
const FIRST_WITH_NAME_FORM: &str = "2025-11-25";
/// Maximum number of characters in the name of a tool, by the specification.
const MAX_FORM_LENGTH: usize = 128;
/// Duration for which the doctor waits for messages that no request has caused.
pub const UNSOLICITED_WAIT: Duration = Duration::from_millis(150);

/// JSON-RPC error code of an unknown method.
const METHOD_NOT_FOUND: i64 = -32601;
/// JSON-RPC error code of invalid params.
pub const INVALID_PARAMS: i64 = -32602;

/// Tool call that the doctor makes.
#[derive(Debug, Clone)]
pub struct ToolCall {
    /// The name of the tool.
    pub name: String,
    /// Arguments of the tool.
    pub arguments: Value,
}

/// Sends `initialize` with the revision `offer` and returns the response.
pub fn initialize(session: &mut Session<'_>, offer: &str) -> Answer {
    let params = json!({
        "protocolVersion": offer,
        "capabilities": {},
        "clientInfo": client_info(),
    });
    session.ask_unmodified(method::INITIALIZE, params)
}

/// Completes the handshake, and checks all rules of a revision with `initialize`; `result` is the result of
/// `initialize`.
pub fn check_session(session: &mut Session<'_>, result: &Value, calls: &[ToolCall]) {
    session.examine_messages();
    session.notify(method::NOTIFICATIONS_INITIALIZED, json!({}));
    check_initialized(session);
    check_ping(session);
    check_unknown_messages(session);
    let capabilities = result["capabilities"].clone();
    check_features(session, &capabilities, calls);
    if capabilities.get("logging").is_some() {
        check_log_levels(session);
    }
    let spec = mcp_exact_revisions::find(session.revision);
    if spec.is_some_and(mcp_exact_revisions::RevisionSpec::has_batches) {
        check_batch(session);
    }
}

/// Checks that `notifications/initialized` is not refused: over HTTP by a status, elsewhere by an error.
fn check_initialized(session: &mut Session<'_>) {
    if let Some(status) = session.channel.error_status() {
        let message = format!("notifications/initialized was refused with status {status}");
        session.report_breach(&rules::HTTP_202, message);
    }
    let until = Instant::now() + UNSOLICITED_WAIT;
    while let Ok(message) = session.receive_until(until) {
        if message.get("method").is_none() && message.get("error").is_some() {
            let code = &message["error"]["code"];
            let message = format!("notifications/initialized was answered with the error {code}");
            session.report_breach(&rules::NO_REPLY, message);
        }
    }
}

/// Checks that `ping` is answered with an empty result.
fn check_ping(session: &mut Session<'_>) {
    session.examine(&[&rules::PING]);
    match session.ask(method::PING, json!({})) {
        Answer::Result(result) => {
            let names = result
                .as_object()
                .into_iter()
                .flatten()
                .map(|(name, _)| name);
            let names: Vec<&String> = names.filter(|name| *name != "_meta").collect();
            if !names.is_empty() {
                session.report_breach(&rules::PING, format!("the response to ping has {names:?}"));
            }
        }
        answer => session.report_breach(
            &rules::PING,
            format!("ping was answered with {}", answer.to_line()),
        ),
    }
}

/// Checks the response to an unknown method, and that notifications that the server may ignore have no response.
pub fn check_unknown_messages(session: &mut Session<'_>) {
    session.examine(&[&rules::METHOD_CODE, &rules::UNKNOWN_METHOD]);
    match session.ask("mcp-exact/no-such-method", json!({})) {
        Answer::Error(METHOD_NOT_FOUND, _) | Answer::End | Answer::Status(_) => {}
        Answer::Error(code, _) => {
            let message = format!("an unknown method was answered with {code} instead of -32601");
            session.report_breach(&rules::METHOD_CODE, message);
        }
        answer => {
            let message = format!("an unknown method was answered with {}", answer.to_line());
            session.report_breach(&rules::UNKNOWN_METHOD, message);
        }
    }
    session.notify("notifications/mcp-exact/unknown", json!({}));
    check_no_reply(session, "notifications/mcp-exact/unknown");
    if session.channel.is_ordered() {
        session.notify(
            method::NOTIFICATIONS_CANCELLED,
            json!({"requestId": "no-such-request"}),
        );
        check_no_reply(session, method::NOTIFICATIONS_CANCELLED);
    }
}

/// Checks that a notification, which was just sent, has no response: the next response must belong to a further
/// request.
fn check_no_reply(session: &mut Session<'_>, method: &str) {
    if !session.channel.is_ordered() {
        return;
    }
    let before = session.unmatched_responses;
    let next = if session.is_stateless {
        method::SERVER_DISCOVER
    } else {
        method::PING
    };
    session.request(next, json!({}));
    if session.unmatched_responses > before {
        session.report_breach(&rules::NO_REPLY, format!("{method} was answered"));
    }
}

/// Lists of server features: capability, list method, member of the result, and the rule that the list requires the
/// capability.
const LISTS: [(&str, &str, &str, &Rule); 4] = [
    (
        "tools",
        method::TOOLS_LIST,
        "tools",
        &rules::CAPABILITY_TOOLS,
    ),
    (
        "resources",
        method::RESOURCES_LIST,
        "resources",
        &rules::CAPABILITY_RESOURCES,
    ),
    (
        "resources",
        method::RESOURCES_TEMPLATES_LIST,
        "resourceTemplates",
        &rules::CAPABILITY_RESOURCES,
    ),
    (
        "prompts",
        method::PROMPTS_LIST,
        "prompts",
        &rules::CAPABILITY_PROMPTS,
    ),
];

/// Fetches the lists of all server features, and checks the listed tools, resources and prompts.
pub fn check_features(session: &mut Session<'_>, capabilities: &Value, calls: &[ToolCall]) {
    for (capability, method, member, rule) in LISTS {
        let is_declared = capabilities.get(capability).is_some();
        session.examine(&[rule]);
        let Some(items) = fetch_list(session, method, member, is_declared) else {
            continue;
        };
        if !is_declared {
            if !items.is_empty() {
                let message = format!(
                    "{method} lists {}, and `{capability}` is not declared",
                    items.len()
                );
                session.report_breach(rule, message);
            }
            continue;
        }
        match member {
            "tools" => check_tools(session, &items, calls),
            "resources" => check_resources(session, &items),
            "prompts" => check_prompts(session, &items),
            _ => {}
        }
    }
}

/// Fetches all pages of a list; returns `None` if the server does not answer with a list. `member` is the member of the
/// result that contains the list.
fn fetch_list(
    session: &mut Session<'_>,
    method: &str,
    member: &str,
    is_declared: bool,
) -> Option<Vec<Value>> {
    let mut items = Vec::new();
    let (mut scopes, mut cursors) = (HashSet::new(), HashSet::new());
    let rule = match member {
        "tools" => Some(&rules::TOOLS_ANSWERED),
        "resources" => Some(&rules::RESOURCES_ANSWERED),
        "prompts" => Some(&rules::PROMPTS_ANSWERED),
        // A server may have resources and no templates.
        _ => None,
    };
    let rule = rule.filter(|_| session.is_stateless && is_declared);
    session.examine(&[&rules::CURSOR_ADVANCES]);
    session.examine(rule.as_slice());
    if session.is_stateless {
        session.examine(&[&rules::CACHE_SCOPE]);
    }
    let mut params = json!({});
    for page in 0..MAX_PAGES {
        let answer = session.ask(method, params.clone());
        let result = match answer {
            Answer::Result(result) => result,
            answer => {
                // An error is an answer, as that of a server whose backend is away, unless it says that there is no such method.
                let is_answered =
                    matches!(&answer, Answer::Error(code, _) if *code != METHOD_NOT_FOUND);
                if let Some(rule) = rule.filter(|_| page == 0 && !is_answered) {
                    let message = format!("{method} was answered with {}", answer.to_line());
                    session.report_breach(rule, message);
                } else if answer.is_silence() {
                    session.report_unanswered(method, &answer);
                }
                return (page > 0).then_some(items);
            }
        };
        let page = result[member].as_array().cloned().unwrap_or_default();
        let cursor = result["nextCursor"].as_str();
        let is_repeated = cursor.is_some_and(|cursor| !cursors.insert(cursor.to_owned()));
        // After a cursor that was given before, the page may be one that was read before.
        let is_new = |item: &&Value| !is_repeated || !items.contains(item);
        let new: Vec<Value> = page.iter().filter(is_new).cloned().collect();
        items.extend(new);
        scopes.extend(result["cacheScope"].as_str().map(str::to_owned));
        if scopes.len() > 1 {
            session.report_breach(
                &rules::CACHE_SCOPE,
                format!("pages of {method} differ in cacheScope"),
            );
        }
        let Some(cursor) = cursor else {
            break;
        };
        if is_repeated {
            let message = format!(
                "the nextCursor {cursor:?} of {method} was given before: the list does not end"
            );
            session.report_breach(&rules::CURSOR_ADVANCES, message);
            break;
        }
        params = json!({"cursor": cursor});
    }
    Some(items)
}

/// Checks the listed tools; calls the tools that the user has requested, and harmless tools.
fn check_tools(session: &mut Session<'_>, tools: &[Value], calls: &[ToolCall]) {
    session.add_tools(tools);
    session.examine(&[
        &rules::PORTABLE_SCHEMA,
        &rules::PORTABLE_NAME,
        &rules::TOOL_NAMES,
        &rules::CURSOR,
    ]);
    let spec = mcp_exact_revisions::find(session.revision);
    let has_name_form = spec >= mcp_exact_revisions::find(FIRST_WITH_NAME_FORM);
    if has_name_form {
        session.examine(&[&rules::TOOL_NAME_FORM]);
    }
    let mut names = HashSet::new();
    for tool in tools {
        // A tool without a name violates the schema.
        let Some(name) = tool["name"].as_str() else {
            continue;
        };
        let schema = JsonObject::try_from(tool["inputSchema"].clone());
        for deviation in schema.iter().flat_map(deviations) {
            let message = format!("/inputSchema{deviation}");
            session.report_entry(&rules::PORTABLE_SCHEMA, format!("tool `{name}`"), message);
        }
        if !names.insert(name) {
            session.report_breach(&rules::TOOL_NAMES, format!("two tools are called {name}"));
            continue;
        }
        let is_in_form = |letter: char| is_accepted_in_names(letter) || letter == '.';
        let in_form = describe_name(name, MAX_FORM_LENGTH, is_in_form).filter(|_| has_name_form);
        let portable = describe_name(name, MAX_NAME_LENGTH, is_accepted_in_names);
        if let Some(problem) = in_form {
            session.report_entry(&rules::TOOL_NAME_FORM, format!("tool `{name}`"), problem);
        } else if let Some(problem) = portable {
            session.report_entry(&rules::PORTABLE_NAME, format!("tool `{name}`"), problem);
        }
    }
    let cursor = json!({"cursor": "mcp-exact-no-such-cursor"});
    match session.request(method::TOOLS_LIST, cursor) {
        Answer::Error(INVALID_PARAMS, _) | Answer::End | Answer::Timeout | Answer::Status(_) => {}
        answer => {
            let message = format!(
                "tools/list with an invalid cursor gave {}",
                answer.to_line()
            );
            session.report_breach(&rules::CURSOR, message);
        }
    }
    // A call of a tool that no revision lists is refused at the end.
    let told = calls.iter().filter(|call| names.contains(&*call.name));
    let told = told.cloned();
    let harmless = tools
        .iter()
        .filter(|tool| is_harmless(tool))
        .take(MAX_SAMPLES);
    let harmless = harmless.map(|tool| ToolCall {
        name: tool["name"].as_str().unwrap_or_default().to_owned(),
        arguments: json!({}),
    });
    for call in told.chain(harmless).collect::<Vec<_>>() {
        let tool = tools.iter().find(|tool| tool["name"] == call.name.as_str());
        call_tool(session, tool, &call);
    }
}

/// Returns what is wrong with the name of a tool that may have `limit` of the characters for which `is_allowed` returns true.
fn describe_name(name: &str, limit: usize, is_allowed: impl Fn(char) -> bool) -> Option<String> {
    let shown = truncate_name(name);
    if name.is_empty() {
        return Some("the name of a tool is empty".to_owned());
    }
    if let Some(wrong) = name.chars().find(|letter| !is_allowed(*letter)) {
        return Some(format!("the name `{shown}` has {wrong:?}"));
    }
    let length = name.chars().count();
    (length > limit)
        .then(|| format!("the name `{shown}` has {length} characters, more than {limit}"))
}

/// Returns true if a tool declares that it is read-only and requires no arguments, so that the doctor may call it
/// without a request of the user.
fn is_harmless(tool: &Value) -> bool {
    let required = tool["inputSchema"]["required"].as_array();
    tool["annotations"]["readOnlyHint"] == true && required.is_none_or(Vec::is_empty)
}

/// Calls a tool, and checks that its result has structured content if the tool declares an output schema.
fn call_tool(session: &mut Session<'_>, tool: Option<&Value>, call: &ToolCall) {
    let params = json!({
        "name": call.name,
        "arguments": call.arguments,
        "_meta": {"progressToken": format!("doctor-{}", call.name)},
    });
    session.add_call(&call.name);
    session.examine(&[
        &rules::TOOL_OUTPUT,
        &rules::PROGRESS_TOKEN,
        &rules::PROGRESS_INCREASES,
        &rules::PROGRESS_STOPS,
    ]);
    let Some(result) = session.request(method::TOOLS_CALL, params).result() else {
        return;
    };
    let is_complete = result["isError"] != true && result["resultType"] != "input_required";
    let has_schema = tool.is_some_and(|tool| tool.get("outputSchema").is_some());
    if has_schema && is_complete && result.get("structuredContent").is_none() {
        let message = format!(
            "{} has an outputSchema, and its result no structuredContent",
            call.name
        );
        session.report_breach(&rules::TOOL_OUTPUT, message);
    }
}

/// Reads the first listed resources, and checks the response for a resource that does not exist.
fn check_resources(session: &mut Session<'_>, resources: &[Value]) {
    for resource in resources.iter().take(MAX_SAMPLES) {
        session.request(method::RESOURCES_READ, json!({"uri": resource["uri"]}));
    }
    if session.is_stateless {
        session.examine(&[&rules::RESOURCE_NOT_FOUND, &rules::RESOURCE_NOT_EMPTY]);
    } else {
        session.examine(&[&rules::RESOURCE_ERROR]);
    }
    let unknown = json!({"uri": "mcp-exact://no-such-resource"});
    let answer = session.request(method::RESOURCES_READ, unknown);
    let spec = mcp_exact_revisions::find(session.revision);
    let wanted = spec.map_or(
        -32002,
        mcp_exact_revisions::RevisionSpec::resource_not_found_code,
    );
    let message = format!("a resource that does not exist gave {}", answer.to_line());
    match (&answer, session.is_stateless) {
        (Answer::End | Answer::Timeout | Answer::Status(_), _) => {}
        (Answer::Error(code, _), _) if *code == wanted => {}
        (Answer::Result(result), true) if result["contents"] == json!([]) => {
            session.report_breach(
                &rules::RESOURCE_NOT_EMPTY,
                "a resource that does not exist gave empty contents",
            );
        }
        (_, true) => session.report_breach(&rules::RESOURCE_NOT_FOUND, message),
        (_, false) => session.report_breach(&rules::RESOURCE_ERROR, message),
    }
}

/// Gets the first listed prompts without required arguments, and checks the response for a prompt that does not exist.
fn check_prompts(session: &mut Session<'_>, prompts: &[Value]) {
    let needs_nothing = |prompt: &&Value| {
        let arguments = prompt["arguments"].as_array().into_iter().flatten();
        !arguments
            .into_iter()
            .any(|argument| argument["required"] == true)
    };
    for prompt in prompts.iter().filter(needs_nothing).take(MAX_SAMPLES) {
        session.request(method::PROMPTS_GET, json!({"name": prompt["name"]}));
    }
    session.examine(&[&rules::PROMPT_ERROR]);
    match session.request(
        method::PROMPTS_GET,
        json!({"name": "mcp-exact-no-such-prompt"}),
    ) {
        Answer::Error(INVALID_PARAMS, _) | Answer::End | Answer::Timeout | Answer::Status(_) => {}
        answer => {
            let message = format!("an unknown prompt gave {}", answer.to_line());
            session.report_breach(&rules::PROMPT_ERROR, message);
        }
    }
}

/// Checks the responses to `logging/setLevel` with a valid and an invalid level.
fn check_log_levels(session: &mut Session<'_>) {
    session.request(method::LOGGING_SET_LEVEL, json!({"level": "warning"}));
    session.examine(&[&rules::LOG_LEVEL]);
    match session.request(method::LOGGING_SET_LEVEL, json!({"level": "verbose"})) {
        Answer::Error(INVALID_PARAMS, _) | Answer::End | Answer::Timeout | Answer::Status(_) => {}
        answer => {
            let message = format!("the log level `verbose` gave {}", answer.to_line());
            session.report_breach(&rules::LOG_LEVEL, message);
        }
    }
}

/// Checks that every request in a batch is answered.
fn check_batch(session: &mut Session<'_>) {
    session.check();
    let ping = |id: &str| json!({"jsonrpc": "2.0", "id": id, "method": method::PING});
    session.examine(&[&rules::BATCH]);
    let mut waiting: HashSet<&str> = HashSet::from(["batch-1", "batch-2"]);
    session.send(&json!([ping("batch-1"), ping("batch-2")]));
    let until = Instant::now() + session.limit().min(Duration::from_secs(5));
    while !waiting.is_empty() {
        let message = match session.receive_until(until) {
            Ok(message) => message,
            Err(answer) => {
                if answer == Answer::End && session.channel.is_ordered() {
                    session.report_end("a batch of two pings");
                }
                break;
            }
        };
        let messages = match &message {
            Value::Array(items) => items.as_slice(),
            one => std::slice::from_ref(one),
        };
        let answered = messages
            .iter()
            .filter(|message| message.get("result").is_some());
        for id in answered.filter_map(|message| message["id"].as_str()) {
            waiting.remove(id);
        }
        // An error without an id refuses the complete batch.
        if messages
            .iter()
            .any(|message| message.get("error").is_some())
        {
            break;
        }
    }
    if !waiting.is_empty() {
        let message = format!(
            "{} of 2 requests in a batch were not answered",
            waiting.len()
        );
        session.report_breach(&rules::BATCH, message);
    }
}
