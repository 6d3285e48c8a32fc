//! `mcp-exact replay --serve`: a server on standard streams that answers from a recording, so that clients, hosts and agents
//! are tested without the recorded server.
//!
//! A request is answered as the recorded one of the same method and params; `_meta` is not compared. What the server sent
//! meanwhile is sent again: progress with the token of the request at hand, requests with ids of their own, and the answer of the
//! client is awaited. Equal requests get their answers in the order of the recording, and the last one again after that.

use std::collections::{HashMap, VecDeque};
use std::io::{BufRead, Write};

use mcp_exact_revisions::method;
use mcp_exact_wire::{Json, JsonObject, from_str};

use super::differences::add_differences;
use crate::conversation::{Conversation, Options};
use crate::message::Direction;
use crate::names::truncate_name;
use crate::recording::Entry;
use crate::terminal::print_to_stderr;
use crate::text::{Untrusted, text};
use crate::value::Value;

/// Methods that are answered whatever their params are: clients introduce themselves.
const BEGINNINGS: [&str; 2] = [method::INITIALIZE, method::SERVER_DISCOVER];
/// Error codes of JSON-RPC 2.0, section 5.1.
const METHOD_NOT_FOUND: i32 = -32601;
const INVALID_PARAMS: i32 = -32602;
/// Member of `_meta` that names the subscription of a notification (2026-07-28, `basic/patterns/subscriptions`).
const SUBSCRIPTION: &str = "io.modelcontextprotocol/subscriptionId";
/// Number of recorded params that an error lists.
const MAX_LISTED: usize = 3;

/// A recorded request or notification of the client, and what the server sent because of it.
#[derive(Debug, Default)]
struct Exchange {
    /// Method of the message.
    method: String,
    /// Params; an empty object without any.
    params: JsonObject,
    /// Id, for a request.
    id: Option<Json>,
    /// Requests and notifications of the server until the response, or after the notification.
    during: Vec<JsonObject>,
    /// Response of the server, unless the recording ends before it.
    response: Option<JsonObject>,
    /// Requests and notifications of the server after the response, until the next message of the client.
    after: Vec<JsonObject>,
    /// True if a client has sent the message already.
    is_used: bool,
}

/// Reads a recording as exchanges.
pub fn read_exchanges(entries: &[Entry]) -> Vec<Exchanged> {
    let mut reading = Reading::default();
    let mut senders = Conversation::new(None, Options::default());
    for entry in entries {
        let from = senders.observe(entry.from, &entry.text).from;
        for message in messages_of(&entry.text) {
            reading.add(from, message);
        }
    }
    reading.exchanges.into_iter().map(Exchanged).collect()
}

/// An exchange of a recording, for [`serve`].
#[derive(Debug)]
pub struct Exchanged(Exchange);

/// Returns the messages of a line: one, or those of a batch.
fn messages_of(text: &str) -> Vec<JsonObject> {
    if let Ok(message) = from_str::<JsonObject>(text) {
        return vec![message];
    }
    from_str::<Vec<JsonObject>>(text).unwrap_or_default()
}

/// Returns the method of a message; `None` for a response.
fn method_of(message: &JsonObject) -> Option<String> {
    let method = message.view().find("method")?.as_str()?;
    Some(method.into_owned())
}

/// Returns a member of `_meta` of params.
fn meta_of(params: &JsonObject, name: &str) -> Option<Json> {
    let meta: JsonObject = params.view().find("_meta")?.decode_as().ok()?;
    meta.get(name)
}

/// Returns the params of a message; an empty object without any.
fn params_of(message: &JsonObject) -> JsonObject {
    let params = message.view().find("params");
    params
        .and_then(|params| params.decode_as().ok())
        .unwrap_or_default()
}

/// Returns an id or a token in a form that can be compared.
fn key(json: &Json) -> String {
    Value::of(json).key()
}

/// A recording that is read message by message.
#[derive(Default)]
struct Reading {
    /// The exchanges so far.
    exchanges: Vec<Exchange>,
    /// Indices of the requests of the client without a response, by id.
    open: HashMap<String, usize>,
    /// Indices of the requests of the client by progress token.
    tokens: HashMap<String, usize>,
    /// Index of the latest message of the client.
    latest: Option<usize>,
}

impl Reading {
    /// Adds the next message.
    fn add(&mut self, from: Direction, message: JsonObject) {
        match (from, method_of(&message)) {
            (Direction::Client, Some(method)) => self.add_exchange(method, &message),
            // The client at hand gives answers of its own.
            (Direction::Client, None) => {}
            (Direction::Server, Some(method)) => self.add_to_exchange(&method, message),
            (Direction::Server, None) => {
                let id = message.get("id");
                let index = id.and_then(|id| self.open.remove(&key(&id)));
                if let Some(index) = index {
                    self.exchanges[index].response = Some(message);
                }
            }
        }
    }

    /// Begins the exchange of a message of the client.
    fn add_exchange(&mut self, method: String, message: &JsonObject) {
        let index = self.exchanges.len();
        let (id, params) = (message.get("id"), params_of(message));
        if method == method::NOTIFICATIONS_CANCELLED
            && let Some(cancelled) = params.get("requestId")
        {
            self.open.remove(&key(&cancelled));
        }
        if let Some(id) = &id {
            self.open.insert(key(id), index);
        }
        if let Some(token) = meta_of(&params, "progressToken") {
            self.tokens.insert(key(&token), index);
        }
        self.latest = Some(index);
        self.exchanges.push(Exchange {
            method,
            params,
            id,
            ..Exchange::default()
        });
    }

    /// Adds a request or notification of the server to the exchange that it belongs to: the request that it names, else the oldest one
    /// without a response, else the latest message of the client.
    fn add_to_exchange(&mut self, method: &str, message: JsonObject) {
        let params = params_of(&message);
        let token = params
            .get("progressToken")
            .filter(|_| method == method::NOTIFICATIONS_PROGRESS);
        let subscription = meta_of(&params, SUBSCRIPTION);
        let by_token = token.and_then(|token| self.tokens.get(&key(&token)).copied());
        let by_id = subscription.and_then(|id| self.open.get(&key(&id)).copied());
        // A subscription stays open, and its messages name it.
        let is_listening =
            |index: &usize| self.exchanges[*index].method == method::SUBSCRIPTIONS_LISTEN;
        let waiting = self.open.values().copied();
        let oldest = waiting.filter(|index| !is_listening(index)).min();
        let Some(index) = by_token.or(by_id).or(oldest).or(self.latest) else {
            return;
        };
        let exchange = &mut self.exchanges[index];
        if exchange.response.is_some() {
            exchange.after.push(message);
        } else {
            exchange.during.push(message);
        }
    }
}

/// Answers the client on `input` and `output` until the input ends. JSON pointers into params, such as `/arguments/time`, in `ignored` are
/// not compared.
pub fn serve(
    exchanges: Vec<Exchanged>,
    ignored: &[String],
    input: &mut dyn BufRead,
    output: &mut dyn Write,
) -> anyhow::Result<()> {
    let mut ignored = ignored.to_vec();
    ignored.push("/_meta".to_owned());
    let mut server = RecordedServer {
        exchanges: exchanges.into_iter().map(|one| one.0).collect(),
        ignored,
        input,
        output,
        waiting: VecDeque::new(),
        next_id: 1,
    };
    while let Some(message) = server.next_message()? {
        server.handle(&message)?;
    }
    Ok(())
}

/// A server that answers from a recording.
struct RecordedServer<'a> {
    /// The recording.
    exchanges: Vec<Exchange>,
    /// JSON pointers into params that are not compared.
    ignored: Vec<String>,
    /// Messages of the client, a line each.
    input: &'a mut dyn BufRead,
    /// Messages of this server.
    output: &'a mut dyn Write,
    /// Messages of the client that came while an answer of the client was awaited.
    waiting: VecDeque<JsonObject>,
    /// Id of the next request of this server.
    next_id: u64,
}

impl RecordedServer<'_> {
    /// Returns the next message of the client; `None` at the end of the input.
    fn next_message(&mut self) -> anyhow::Result<Option<JsonObject>> {
        match self.waiting.pop_front() {
            Some(message) => Ok(Some(message)),
            None => self.read_message(),
        }
    }

    /// Reads a message of the client; `None` at the end of the input. What is not a message is reported and skipped.
    fn read_message(&mut self) -> anyhow::Result<Option<JsonObject>> {
        loop {
            let mut line = Vec::new();
            if self.input.read_until(b'\n', &mut line)? == 0 {
                return Ok(None);
            }
            let line = String::from_utf8_lossy(line.trim_ascii()).into_owned();
            let messages = messages_of(&line);
            if messages.is_empty() && !line.is_empty() {
                print_to_stderr(&text!(
                    "not a message: {}",
                    Untrusted(&truncate_name(&line))
                ));
            }
            self.waiting.extend(messages);
            if let Some(message) = self.waiting.pop_front() {
                return Ok(Some(message));
            }
        }
    }

    /// Handles a message of the client.
    fn handle(&mut self, message: &JsonObject) -> anyhow::Result<()> {
        let (Some(method), id) = (method_of(message), message.get("id")) else {
            return Ok(());
        };
        let params = params_of(message);
        let Some(index) = self.find(&method, &params, id.is_some()) else {
            return match id {
                Some(id) => self.refuse(&method, &id),
                None => Ok(()),
            };
        };
        let exchange = &mut self.exchanges[index];
        exchange.is_used = true;
        let recorded_id = exchange.id.clone();
        let (during, after) = (exchange.during.clone(), exchange.after.clone());
        let response = exchange.response.clone();
        let token = meta_of(&params, "progressToken");
        for sent in &during {
            let ids = (recorded_id.as_ref(), id.as_ref());
            if !self.send_recorded(sent, token.as_ref(), ids)? {
                return Ok(());
            }
        }
        if let (Some(mut response), Some(id)) = (response, &id) {
            response.insert("id", id.clone());
            self.send(&response)?;
        }
        for sent in &after {
            let ids = (recorded_id.as_ref(), id.as_ref());
            if !self.send_recorded(sent, token.as_ref(), ids)? {
                break;
            }
        }
        Ok(())
    }

    /// Returns the index of the recorded message that this one is taken for: the first one that no client has sent yet, else the last.
    fn find(&self, method: &str, params: &JsonObject, is_request: bool) -> Option<usize> {
        let params = Json::from(params.clone());
        let fits = |exchange: &Exchange| {
            let is_same = exchange.method == method && exchange.id.is_some() == is_request;
            is_same
                && (!is_request || BEGINNINGS.contains(&method) || {
                    let recorded = Json::from(exchange.params.clone());
                    let mut found = Vec::new();
                    let (recorded, params) = (Value::of(&recorded), Value::of(&params));
                    add_differences("", recorded, params, &self.ignored, &mut found);
                    found.is_empty()
                })
        };
        let mut fitting = self
            .exchanges
            .iter()
            .enumerate()
            .filter(|(_, one)| fits(one));
        let mut last = None;
        fitting
            .find(|(index, exchange)| {
                last = Some(*index);
                !exchange.is_used
            })
            .map(|(index, _)| index)
            .or(last)
    }

    /// Answers a request that the recording does not have; pings need no recording.
    fn refuse(&mut self, method: &str, id: &Json) -> anyhow::Result<()> {
        let mut answer = JsonObject::new();
        answer.insert("jsonrpc", Json::from(serde_json::Value::from("2.0")));
        answer.insert("id", id.clone());
        if method == method::PING {
            answer.insert("result", JsonObject::new());
            return self.send(&answer);
        }
        let same_method = self.exchanges.iter().filter(|one| one.method == method);
        let mut recorded: Vec<String> = same_method
            .map(|one| truncate_name(one.params.text()).to_string())
            .collect();
        recorded.dedup();
        let name = truncate_name(method);
        let (code, message) = if recorded.is_empty() {
            (
                METHOD_NOT_FOUND,
                format!("the recording has no request `{name}`"),
            )
        } else {
            let more = recorded.len().saturating_sub(MAX_LISTED);
            recorded.truncate(MAX_LISTED);
            let mut listed = recorded.join(", ");
            if more > 0 {
                listed.push_str(&format!(" and {more} more"));
            }
            let message = format!(
                "the recording has no `{name}` with these params; it has those with {listed}"
            );
            (INVALID_PARAMS, message)
        };
        print_to_stderr(&text!("{}", Untrusted(&message)));
        let error = serde_json::json!({ "code": code, "message": message });
        answer.insert("error", Json::from(error));
        self.send(&answer)
    }

    /// Sends a recorded request or notification: a request with an id of its own, after which the client's answer is awaited; progress
    /// with the token of the request at hand, and not at all without one. `ids` are the recorded id of the request and that at hand.
    /// Returns false if the client has cancelled the request at hand.
    fn send_recorded(
        &mut self,
        recorded: &JsonObject,
        token: Option<&Json>,
        ids: (Option<&Json>, Option<&Json>),
    ) -> anyhow::Result<bool> {
        let mut message = recorded.clone();
        let mut params = params_of(recorded);
        if params.get("progressToken").is_some() {
            let Some(token) = token else {
                return Ok(true);
            };
            params.insert("progressToken", token.clone());
            message.insert("params", params.clone());
        }
        if let (Some(subscription), (Some(before), Some(now))) =
            (meta_of(&params, SUBSCRIPTION), ids)
            && key(&subscription) == key(before)
            && let Some(mut meta) = params
                .get("_meta")
                .and_then(|meta| JsonObject::try_from(meta).ok())
        {
            meta.insert(SUBSCRIPTION, now.clone());
            params.insert("_meta", meta);
            message.insert("params", params);
        }
        if recorded.get("id").is_none() {
            self.send(&message)?;
            return Ok(true);
        }
        let id = Json::from(self.next_id);
        self.next_id += 1;
        message.insert("id", id.clone());
        self.send(&message)?;
        self.await_answer(&id, ids.1)
    }

    /// Waits for the client's answer to a request. Pings are answered meanwhile; other messages are handled later. Returns false if
    /// the client cancels its request `at_hand`, after which it may owe no answer.
    fn await_answer(&mut self, id: &Json, at_hand: Option<&Json>) -> anyhow::Result<bool> {
        let mut others = VecDeque::new();
        let mut is_cancelled = false;
        while let Some(message) = self.next_message()? {
            match (method_of(&message).as_deref(), message.get("id")) {
                (Some(method::PING), Some(ping)) => {
                    self.refuse(method::PING, &ping)?;
                    continue;
                }
                (Some(method::NOTIFICATIONS_CANCELLED), None) => {
                    let cancelled = params_of(&message).get("requestId");
                    is_cancelled = cancelled
                        .zip(at_hand)
                        .is_some_and(|(cancelled, at_hand)| key(&cancelled) == key(at_hand));
                    if is_cancelled {
                        break;
                    }
                }
                _ => {}
            }
            let is_answer = method_of(&message).is_none()
                && message
                    .get("id")
                    .is_some_and(|answered| key(&answered) == key(id));
            if is_answer {
                break;
            }
            others.push_back(message);
        }
        others.append(&mut self.waiting);
        self.waiting = others;
        Ok(!is_cancelled)
    }

    /// Writes a message as a line.
    fn send(&mut self, message: &JsonObject) -> anyhow::Result<()> {
        // Recorded text may contain line breaks between its members.
        let line: String = message
            .text()
            .chars()
            .map(|c| if matches!(c, '\n' | '\r') { ' ' } else { c })
            .collect();
        writeln!(self.output, "{line}")?;
        Ok(self.output.flush()?)
    }
}
