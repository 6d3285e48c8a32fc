//! What a question of a server has to say (`client/elicitation`, `client/sampling`): required members and their types.
//!
//! Takes the parameters of a question and the revision that it speaks; gives words about what is missing. Leaves everything
//! else to the program and to the types.

use mcp_exact_wire::{Json, JsonObject, Kind, from_str};

use crate::capability::has_modes;
use crate::revision::{Rules, at_least};

/// A question that is to leave.
pub(crate) fn check_sent(
    method: &str,
    params: Option<&JsonObject>,
    rules: &Rules,
) -> Result<(), String> {
    check(method, params, rules, true)
}

/// A question that has come: roles and modes that are not known yet are the program's to judge.
pub(crate) fn check_received(
    method: &str,
    params: Option<&JsonObject>,
    rules: &Rules,
) -> Result<(), String> {
    check(method, params, rules, false)
}

fn check(
    method: &str,
    params: Option<&JsonObject>,
    rules: &Rules,
    strict: bool,
) -> Result<(), String> {
    let nothing = JsonObject::new();
    let params = params.unwrap_or(&nothing);
    match method {
        "elicitation/create" => elicitation(params, rules, strict),
        "sampling/createMessage" => sampling(params, rules, strict),
        _ => Ok(()),
    }
}

fn elicitation(params: &JsonObject, rules: &Rules, strict: bool) -> Result<(), String> {
    require(params, "message", Kind::String)?;
    let mode: Option<String> = match params.get("mode").filter(|_| has_modes(rules)) {
        None => None,
        Some(mode) => Some(from_str(mode.text()).map_err(|_| wrong("mode"))?),
    };
    match mode.as_deref() {
        None | Some("form") => require(params, "requestedSchema", Kind::Object),
        Some("url") => {
            require(params, "url", Kind::String)?;
            // 2025-11-25 recognises a finished elicitation by its id; later there is no notification that names it.
            match rules
                .server
                .notification("notifications/elicitation/complete")
            {
                true => require(params, "elicitationId", Kind::String),
                false => Ok(()),
            }
        }
        Some(_) if strict => Err(wrong("mode")),
        Some(_) => Ok(()),
    }
}

fn sampling(params: &JsonObject, rules: &Rules, strict: bool) -> Result<(), String> {
    require(params, "maxTokens", Kind::Number)?;
    let messages = params.get("messages").ok_or_else(|| missing("messages"))?;
    let messages: Vec<Json> = from_str(messages.text()).map_err(|_| wrong("messages"))?;
    for message in messages {
        let message = JsonObject::try_from(message).map_err(|_| wrong("messages"))?;
        let role = message.get("role").ok_or_else(|| missing("role"))?;
        let role: String = from_str(role.text()).map_err(|_| wrong("role"))?;
        if strict && !matches!(&*role, "user" | "assistant") {
            return Err(wrong("role"));
        }
        let content = message.get("content").ok_or_else(|| missing("content"))?;
        let several = content.kind() == Kind::Array && at_least(rules, "2025-11-25");
        if content.kind() != Kind::Object && !several {
            return Err(wrong("content"));
        }
    }
    Ok(())
}

fn require(params: &JsonObject, name: &str, kind: Kind) -> Result<(), String> {
    match params.get(name) {
        Some(value) if value.kind() == kind => Ok(()),
        Some(_) => Err(wrong(name)),
        None => Err(missing(name)),
    }
}

fn missing(name: &str) -> String {
    format!("`{name}` is missing")
}

fn wrong(name: &str) -> String {
    format!("`{name}` is not what the specification has there")
}
