//! Checks responses against the requests that they answer, and error codes and input requests against the rules of
//! 2026-07-28.

use mcp_exact_revisions::{Lifecycle, MethodId, RevisionSpec, method};

use super::{
    Breach, CheckedMessage, Conversation, MAX_STORED_REQUESTS, PendingRequest, RequestKey,
};
use crate::message::{Direction, MessageContext};
use crate::rules;
use crate::value::Value;

impl Conversation {
    /// Checks a response against the schema and against the request that it answers.
    pub(super) fn check_response(
        &mut self,
        from: Direction,
        response: Value<'_>,
    ) -> CheckedMessage {
        let text = response.text();
        let id = response.get("id");
        let key = (from.peer(), id.key());
        let (result, error) = (response.get("result"), response.get("error"));
        let Some(pending) = self.pending.remove(&key) else {
            let mut breaches =
                self.check_schema(self.negotiated(), MessageContext::default(), text);
            breaches.extend(self.check_unexpected_response(from, id, &key));
            let is_error = error.exists();
            if is_error && id.is_null() {
                // JSON-RPC 2.0, section 5.1: the id is null if the id of the request could not be detected. Schemas
                // before 2025-11-25 require an id, but MCP has its messages follow JSON-RPC.
                breaches.retain(|breach| breach.pointer != "/id");
            }
            let label = if is_error { "error" } else { "result" };
            return self.checked_message(
                from,
                &format!("{label} for the id {}", id.text()),
                breaches,
            );
        };
        if let Some(token) = &pending.token
            && let Some(token) = self.tokens.get_mut(&(from.peer(), token.clone()))
        {
            token.has_ended = true;
        }
        self.store_completed_request(key);
        let mut revision = self.pinned.or(pending.revision);
        let (result, error) = (result.existing(), error.existing());
        if pending.method == method::INITIALIZE
            && let Some(result) = result
        {
            let named = result.get("protocolVersion").as_str();
            self.negotiated = named
                .and_then(|named| mcp_exact_revisions::find(&named))
                .map(RevisionSpec::id);
            self.server_capabilities = result.get("capabilities").to_json();
            revision = self.pinned.or(self.negotiated);
        }
        let known = MessageContext {
            direction: Some(from),
            answered: Some(&pending.method),
            ..MessageContext::default()
        };
        let mut breaches = self.check_schema(revision, known, text);
        let spec = revision.and_then(mcp_exact_revisions::find);
        if spec.is_some_and(|spec| spec.lifecycle() == Lifecycle::Discover) {
            if pending.method == method::SERVER_DISCOVER
                && let Some(result) = result
            {
                self.server_capabilities = result.get("capabilities").to_json();
            }
            breaches.extend(error.and_then(check_error_code));
            breaches.extend(
                result
                    .map(|result| check_input_required(&pending, result))
                    .unwrap_or_default(),
            );
        }
        let label = match error {
            Some(_) => format!("error of {}", pending.method),
            None => format!("result of {}", pending.method),
        };
        CheckedMessage {
            from,
            revision,
            label,
            breaches,
            omitted: 0,
        }
    }

    /// Stores the key of an answered request. If too many keys are stored, all of them are removed first, so that long
    /// conversations do not use unlimited memory.
    fn store_completed_request(&mut self, key: RequestKey) {
        if self.answered.len() >= MAX_STORED_REQUESTS {
            self.answered.clear();
            self.tokens.retain(|_, token| !token.has_ended);
        }
        self.answered.insert(key);
    }

    /// Returns the violation by a response whose id belongs to no unanswered request.
    fn check_unexpected_response(
        &self,
        from: Direction,
        id: Value<'_>,
        key: &RequestKey,
    ) -> Option<Breach> {
        // An error without an id means that a message could not be parsed.
        if id.is_null() {
            return None;
        }
        if self.answered.contains(key) {
            let message = format!("the request with the id {} is answered already", id.text());
            return Some(Breach::new(&rules::VERSION, message));
        }
        let spelt = |(sender, other): &&RequestKey| {
            let bare = |text: &str| text.trim_matches('"').to_owned();
            *sender == from.peer() && bare(other) == bare(&key.1)
        };
        let other = self.pending.keys().chain(&self.answered).find(spelt);
        let id = id.text();
        let message = match other {
            Some((_, other)) => format!("the id is {id}; that of the request is {other}"),
            None => format!("no request has the id {id}"),
        };
        Some(Breach {
            rule: &rules::RESPONSE_ID,
            pointer: "/id".to_owned(),
            message,
        })
    }
}

/// Error codes that the specification defines in the range from -32099 to -32020.
const DEFINED_CODES: [i64; 3] = [-32020, -32021, -32022];

/// Checks that the code of an error is neither retired nor reserved by the specification.
fn check_error_code(error: Value<'_>) -> Option<Breach> {
    let code = error.get("code").as_number()?.as_i64()?;
    let (rule, message) = match code {
        -32002 | -32042 => (&rules::RETIRED_CODES, format!("the code {code} is retired")),
        -32099..=-32020 if !DEFINED_CODES.contains(&code) => {
            let message = format!("the specification does not define the code {code}");
            (&rules::FORBIDDEN_CODES, message)
        }
        _ => return None,
    };
    Some(Breach {
        rule,
        pointer: "/error/code".to_owned(),
        message,
    })
}

/// Checks that the request allows the input requests in its result: its method supports them, and it has declared their
/// capabilities.
fn check_input_required(pending: &PendingRequest, result: Value<'_>) -> Vec<Breach> {
    if result.get("resultType").as_str().as_deref() != Some("input_required") {
        return Vec::new();
    }
    let mut breaches = Vec::new();
    if !MethodId::from_name(&pending.method).may_require_input() {
        let message = format!("{} cannot ask for input", pending.method);
        breaches.push(Breach::new(&rules::INPUT_METHODS, message));
    }
    let declared = Value::of(&pending.capabilities);
    for (name, request) in result.get("inputRequests").members() {
        let method = request.get("method").as_str().unwrap_or_default();
        let capability = match MethodId::from_name(&method) {
            MethodId::ElicitationCreate => "elicitation",
            MethodId::SamplingCreateMessage => "sampling",
            MethodId::RootsList => "roots",
            _ => continue,
        };
        if !declared.get(capability).exists() {
            breaches.push(Breach {
                rule: &rules::INPUT_DECLARED,
                pointer: format!("/result/inputRequests/{name}"),
                message: format!(
                    "{method} needs `{capability}`, which the request did not declare"
                ),
            });
        }
    }
    breaches
}
