//! Sends requests and results of every pair of revisions through the bridge, between a client and a server that write
//! raw text.
//!
//! With equal revisions, everything that the bridge does not own arrives unchanged: unknown members, numbers, order,
//! spelling. With different revisions, the bridge's loss report explains every difference. The bridge owns ids,
//! progress tokens, and the members of `_meta` in which each side identifies itself.
#![allow(
    clippy::print_stdout,
    reason = "what a revision lacks is worth reading"
)]

#[path = "../../../convert/tests/convert/checker.rs"]
mod checker;
mod raw;
#[path = "../../../convert/tests/convert/revisions.rs"]
mod revisions;

use std::sync::{Arc, Mutex};

use mcp_exact_bridge::{Bridge, LossHook, Options};
use mcp_exact_convert::{Context, Lifecycle, Loss, LossKind, MessageKind, Payload, Role, convert};
use mcp_exact_tests_support::{Doc, Generator, Rng, Style, definition_names, with_unknown_members};
use mcp_exact_wire::JsonObject;
use serde_json::Value;

use self::checker::{find_differences, is_below};
use self::raw::{RawClient, RawServer};
use self::revisions::{Revision, revisions};

/// Seed of the random messages and spellings.
const SEED: u64 = 20_260_728;

/// Number of instances of each request and result for each pair.
const INSTANCE_COUNT: usize = 12;

/// Tested methods, each with the names of the definitions of its request and its result.
const METHODS: [(&str, &str, &str); 8] = [
    ("tools/list", "ListToolsRequest", "ListToolsResult"),
    ("tools/call", "CallToolRequest", "CallToolResult"),
    (
        "resources/list",
        "ListResourcesRequest",
        "ListResourcesResult",
    ),
    (
        "resources/templates/list",
        "ListResourceTemplatesRequest",
        "ListResourceTemplatesResult",
    ),
    (
        "resources/read",
        "ReadResourceRequest",
        "ReadResourceResult",
    ),
    ("prompts/list", "ListPromptsRequest", "ListPromptsResult"),
    ("prompts/get", "GetPromptRequest", "GetPromptResult"),
    ("completion/complete", "CompleteRequest", "CompleteResult"),
];

/// Iterates over the tested methods that all of these revisions define; prints a notice for each method that one does not.
fn common_methods(
    revisions: [&'static Revision; 2],
) -> impl Iterator<Item = (&'static str, &'static str, &'static str)> {
    METHODS
        .into_iter()
        .filter(move |(method, request, result)| {
            let lacking = revisions.into_iter().find(|revision| {
                let names = definition_names(revision.document);
                let is_sent = revision.revision.spec().sends_request(Role::Client, method);
                !is_sent || !names.contains(request) || !names.contains(result)
            });
            if let Some(revision) = lacking {
                let revision = revision.revision;
                println!("notice: {revision} lacks {method}, {request} or {result}; not sent");
            }
            lacking.is_none()
        })
}

/// Members of `_meta` that the bridge sets itself instead of forwarding them.
const OWN_META: [&str; 6] = [
    "progressToken",
    "io.modelcontextprotocol/protocolVersion",
    "io.modelcontextprotocol/clientInfo",
    "io.modelcontextprotocol/clientCapabilities",
    "io.modelcontextprotocol/logLevel",
    "io.modelcontextprotocol/serverInfo",
];

/// Returns the members of `_meta` with which a client of this revision, which has no handshake, identifies itself.
fn meta_of_client(revision: &Revision) -> Vec<(String, Doc)> {
    let version = format!("{:?}", revision.revision.as_str());
    let values = [
        (OWN_META[1], &*version),
        (OWN_META[2], r#"{"name":"raw","version":"1.0.0"}"#),
        (OWN_META[3], "{}"),
    ];
    let members = values.map(|(name, text)| (name.to_owned(), Doc::parse(text).expect("JSON")));
    members.to_vec()
}

/// Generates the params of a request that a client of this revision may send; `is_exotic` allows unusual spellings of
/// numbers.
fn params(revision: &Revision, definition: &str, rng: &mut Rng, is_exotic: bool) -> Doc {
    let mut generator = Generator::new(revision.document, rng.fork()).exotic_numbers(is_exotic);
    let request = generator.instance(definition);
    let mut members = match request.member("params") {
        Some(Doc::Object(members)) => members.clone(),
        _ => Vec::new(),
    };
    // A task is a separate exchange, and a retry belongs to a waiting call.
    members.retain(|(name, _)| !["task", "inputResponses", "requestState"].contains(&&**name));
    let is_stateless = revision.revision.lifecycle() == Lifecycle::Discover;
    let mut meta = match members.iter().position(|(name, _)| name == "_meta") {
        Some(at) => match members.remove(at).1 {
            Doc::Object(meta) => Some((at, meta)),
            _ => None,
        },
        None => is_stateless.then(|| (0, Vec::new())),
    };
    if let Some((_, meta)) = &mut meta {
        meta.retain(|(name, _)| !OWN_META.contains(&&**name));
        if is_stateless {
            meta.extend(meta_of_client(revision));
        }
    }
    if let Some((at, meta)) = meta {
        members.insert(at, ("_meta".to_owned(), Doc::Object(meta)));
    }
    Doc::Object(members)
}

/// Generates a result that a server of this revision may send; `is_exotic` allows unusual spellings of numbers.
fn result(revision: &Revision, definition: &str, rng: &mut Rng, is_exotic: bool) -> Doc {
    let mut generator = Generator::new(revision.document, rng.fork()).exotic_numbers(is_exotic);
    let mut result = generator.instance(definition);
    if let Doc::Object(members) = &mut result {
        for (name, value) in members {
            match &**name {
                "resultType" => *value = Doc::String("complete".to_owned()),
                // Endpoints parse this number, and refuse numbers outside of the range of the clock.
                "ttlMs" => *value = Doc::Number("7.50e1".to_owned()),
                _ => {}
            }
        }
    }
    result
}

/// Writes a document on one line, with random white space and escapes.
fn random_spelling(doc: &Doc, rng: &mut Rng) -> String {
    let text = doc.write(Style::ALL_VARIATIONS, rng);
    text.trim().replace(['\n', '\r'], " ")
}

/// Returns the names and the unchanged texts of the members that the bridge forwards; a member of `_meta` has the
/// prefix `_meta/`.
fn members_not_owned(text: &str) -> Vec<(String, String)> {
    let object: JsonObject = text.parse().expect(text);
    let mut members = Vec::new();
    for (name, value) in object.view().iter() {
        match value.object() {
            Some(meta) if name == "_meta" => {
                let rest = meta.iter().filter(|(name, _)| !OWN_META.contains(&&**name));
                let rest =
                    rest.map(|(name, value)| (format!("_meta/{name}"), value.text().to_owned()));
                members.extend(rest);
            }
            _ => members.push((name.into_owned(), value.text().to_owned())),
        }
    }
    members
}

/// Losses that the bridge has reported, each with the method of the message.
type ReportedLosses = Arc<Mutex<Vec<(String, Loss)>>>;

/// Client and server of two revisions that a bridge connects.
struct Pair {
    /// Server behind the bridge.
    upstream: RawServer,
    /// Client of the bridge.
    downstream: RawClient,
    /// Losses that the bridge has reported.
    reported: ReportedLosses,
    /// Generator of the random spellings.
    rng: Rng,
}

impl Pair {
    /// Connects a client of one revision and a server of another revision to a new bridge.
    async fn new(client: &'static Revision, server: &'static Revision) -> Self {
        let upstream = RawServer::new(server.revision.as_str());
        let reported = ReportedLosses::default();
        let seen = Arc::clone(&reported);
        let mut options = Options::default();
        options.on_loss = Some(LossHook::new(move |report| {
            let mut seen = seen.lock().expect("a lock");
            seen.push((report.method.to_owned(), report.loss.clone()));
        }));
        let bridge = Bridge::new(upstream.clone(), options).await;
        let bridge = bridge.expect("a bridge");
        let downstream = RawClient::connect(&bridge, client.revision.as_str()).await;
        Self {
            upstream,
            downstream,
            reported,
            rng: Rng::new(SEED),
        }
    }

    /// Removes and returns the reported losses.
    fn take_reported(&self) -> Vec<Loss> {
        let reported = std::mem::take(&mut *self.reported.lock().expect("a lock"));
        reported.into_iter().map(|(_, loss)| loss).collect()
    }

    /// Sends a request and responds to it; returns the params that the server received, if any, and the complete
    /// response that the client received.
    async fn exchange(
        &mut self,
        method: &str,
        params: &str,
        result: &str,
    ) -> (Option<String>, JsonObject) {
        self.upstream.set_result(result);
        let answer = self.downstream.request(method, params).await;
        (self.upstream.take_params(), answer)
    }
}

/// Converts a message part without the bridge; returns the output and the losses, or `None` if the conversion is
/// refused.
fn direct_conversion(
    kind: MessageKind,
    method: &str,
    text: &str,
    (from, to): (&Revision, &Revision),
    cx: Context,
) -> Option<(String, Vec<Loss>)> {
    let sender = match kind {
        MessageKind::Result => Role::Server,
        _ => Role::Client,
    };
    let root = Payload {
        kind,
        method,
        sender,
    };
    let mut cx = cx;
    let text = convert(root, Some(text), from.revision, to.revision, &mut cx).ok()?;
    let text = text.map_or_else(|| "{}".to_owned(), |text| text.into_owned());
    Some((text, cx.losses().to_vec()))
}

/// Returns the JSON pointers of differences that neither a reported loss nor a change without a loss explains. The
/// pointers of members that the bridge sets itself are omitted.
fn unexplained_differences(
    before: &str,
    after: &str,
    reported: &[Loss],
    all: &[Loss],
) -> Vec<String> {
    let value = |text: &str| -> Value { serde_json::from_str(text).expect(text) };
    let mut differences = find_differences(&value(before), &value(after));
    differences.retain(|place| {
        let accounts =
            |loss: &Loss| is_below(place, &loss.pointer) || is_below(&loss.pointer, place);
        let is_own = OWN_META.iter().any(|name| {
            let pointer = format!("/_meta/{}", name.replace('/', "~1"));
            is_below(place, &pointer)
        });
        let is_lossless = |loss: &&Loss| !loss.kind.is_lossy();
        let is_empty_meta = place == "/_meta"
            && !members_not_owned(before)
                .iter()
                .chain(&members_not_owned(after))
                .any(|(name, _)| name.starts_with("_meta/"));
        !(is_own
            || is_empty_meta
            || reported.iter().any(accounts)
            || all.iter().filter(is_lossless).any(accounts))
    });
    differences
}

/// Between a client and a server of the same revision, the bridge changes only the members that it sets itself.
#[tokio::test]
async fn equal_revisions_change_nothing() {
    let mut looked_at = 0;
    for revision in revisions() {
        let mut pair = Pair::new(revision, revision).await;
        let mut rng = pair.rng.fork();
        for (method, request, answer) in common_methods([revision, revision]) {
            for number in 0..INSTANCE_COUNT * 2 {
                let mut params = params(revision, request, &mut rng, true);
                let mut result = result(revision, answer, &mut rng, true);
                if number % 2 == 1 {
                    result = with_unknown_members(&result, &mut rng);
                    params = with_unknown_member(&params, &mut rng);
                }
                let (params, result) = (
                    random_spelling(&params, &mut rng),
                    random_spelling(&result, &mut rng),
                );
                // The generator takes this number for an integer, which it is not: the gateway repairs such a result.
                if result.contains("1e-400") || has_namesakes(&result) {
                    continue;
                }
                let (arrived, answer) = pair.exchange(method, &params, &result).await;
                let words = format!(
                    "{} {method}\n  {params}\n  {result}\n  {answer}",
                    revision.revision
                );
                let arrived = arrived.expect(&words);
                assert_eq!(
                    members_not_owned(&arrived),
                    members_not_owned(&params),
                    "{words}"
                );
                let answer = answer.get("result").expect(&words);
                assert_eq!(
                    members_not_owned(answer.text()),
                    members_not_owned(&result),
                    "{words}"
                );
                looked_at += 1;
            }
        }
        assert!(pair.take_reported().is_empty());
    }
    println!("{looked_at} requests and results between equal revisions");
}

/// Returns true if a list has two tools or prompts of one name, of which the gateway leaves out the second one.
fn has_namesakes(result: &str) -> bool {
    let Ok(result) = mcp_exact_wire::from_str::<JsonObject>(result) else {
        return false;
    };
    ["tools", "prompts"].iter().any(|list| {
        let entries = result.view().find(list);
        let entries = entries.and_then(|found| found.decode_as::<Vec<JsonObject>>().ok());
        let entries = entries.unwrap_or_default();
        let name_of = |entry: &JsonObject| Some(entry.view().find("name")?.as_str()?.into_owned());
        let names: Vec<String> = entries.iter().filter_map(name_of).collect();
        names
            .iter()
            .enumerate()
            .any(|(at, name)| names[..at].contains(name))
    })
}

/// Returns a copy of the params object with an unknown member at a random position.
fn with_unknown_member(params: &Doc, rng: &mut Rng) -> Doc {
    let Doc::Object(members) = params else {
        return params.clone();
    };
    let mut members = members.clone();
    let at = rng.below(members.len() + 1);
    let value = Doc::Number("1.50e+2".to_owned());
    members.insert(at, ("unknown-member".to_owned(), value));
    Doc::Object(members)
}

/// Between different revisions, a reported loss or a lossless change explains each difference between the sent and the
/// received message.
#[tokio::test]
async fn every_difference_is_reported() {
    let (mut looked_at, mut refused, mut losses) = (0, 0, 0);
    for client in revisions() {
        for server in revisions() {
            if client.revision == server.revision {
                continue;
            }
            let mut pair = Pair::new(client, server).await;
            let mut rng = pair.rng.fork();
            for (method, request, answer_type) in common_methods([client, server]) {
                for _ in 0..INSTANCE_COUNT {
                    let params = params(client, request, &mut rng, false).to_string();
                    let result = result(server, answer_type, &mut rng, false).to_string();
                    let (arrived, reply) = pair.exchange(method, &params, &result).await;
                    let reported = pair.take_reported();
                    losses += reported.len();
                    let words = format!(
                        "{} to {}, {method}\n  {params}\n  {arrived:?}\n  {result}\n  {reply}\n  {reported:#?}",
                        client.revision, server.revision
                    );
                    let cx = || {
                        Context::new()
                            .assume_input_read()
                            .request_meta(client_meta())
                    };
                    let there = direct_conversion(
                        MessageKind::Request,
                        method,
                        &params,
                        (client, server),
                        cx(),
                    );
                    let Some(arrived) = arrived else {
                        // Only a refused conversion may stop a request.
                        assert!(there.is_none() && reply.get("error").is_some(), "{words}");
                        refused += 1;
                        continue;
                    };
                    let (_, all) = there.expect(&words);
                    let left = unexplained_differences(&params, &arrived, &reported, &all);
                    assert!(left.is_empty(), "{left:?}\n{words}");
                    let object: JsonObject = params.parse().expect("an object");
                    let uri = object.view().find("uri");
                    let uri = uri.and_then(|uri| Some(uri.as_str()?.into_owned()));
                    let cx = uri.map_or_else(Context::new, |uri| Context::new().requested_uri(uri));
                    let back = direct_conversion(
                        MessageKind::Result,
                        method,
                        &result,
                        (server, client),
                        cx,
                    );
                    let Some(answer) = reply.get("result") else {
                        assert!(back.is_none(), "{words}");
                        refused += 1;
                        continue;
                    };
                    let (_, all) = back.expect(&words);
                    let after = serde_json::from_str(answer.text()).expect("JSON");
                    let errors = client.oracle.errors(answer_type, &after);
                    let is_kept = all.iter().any(|loss| loss.kind == LossKind::Kept);
                    assert!(errors.is_empty() || is_kept, "{errors:?}\n{words}");
                    let left = unexplained_differences(&result, answer.text(), &reported, &all);
                    assert!(left.is_empty(), "{left:?}\n{words}");
                    looked_at += 1;
                }
            }
        }
    }
    println!(
        "{looked_at} requests and results between different revisions, {refused} refused, {losses} losses reported"
    );
    assert!(looked_at > 1000 && losses > 1000);
}

/// Returns the metadata with which the client identifies itself, for the context of a direct conversion.
fn client_meta() -> JsonObject {
    r#"{"io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/clientInfo":{"name":"raw","version":"1.0.0"}}"#
        .parse()
        .expect("an object")
}
