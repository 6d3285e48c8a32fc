//! Checks every message of a connection against the schema of its revision: the revision that the message names, the
//! revision of the request that it answers, or the negotiated revision.
//!
//! Frames are passed in the order of sending; an invalid frame causes a panic.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::{all_revisions, check_message, discover_revisions, has_definition, message_errors};

/// Schema checker of one connection.
#[derive(Debug, Default)]
pub struct SchemaChecker {
    /// Method and revision of each request, by the role of its sender (true for the client) and its id.
    sent_requests: BTreeMap<(bool, String), (String, Option<String>)>,
    /// Revisions that requests have named.
    named_revisions: BTreeSet<String>,
    /// Number of checked messages of each revision.
    pub checked_counts: BTreeMap<String, usize>,
    /// Number of messages whose revision is not determined, such as an error before the negotiation.
    ///
    /// Such a message must be valid in some revision.
    pub unknown_revision_count: usize,
}

impl SchemaChecker {
    /// Checks the messages of a frame against the schema; `agreed` is the negotiated revision, for messages that name
    /// no revision.
    ///
    /// # Panics
    ///
    /// If the frame is not JSON, contains a line break, or violates the schema.
    #[track_caller]
    pub fn check_frame(&mut self, from_client: bool, frame: &[u8], agreed: Option<&str>) {
        assert!(!frame.iter().any(|byte| matches!(byte, b'\n' | b'\r')));
        let frame: Value = serde_json::from_slice(frame).expect("JSON");
        match frame.as_array() {
            Some(batch) => {
                assert!(!batch.is_empty(), "an empty batch");
                let has_batches = |revision| has_definition(revision, "JSONRPCBatchRequest");
                assert!(agreed.is_some_and(has_batches), "a batch: {frame}");
                for message in batch {
                    self.check_message_of(from_client, message, agreed);
                }
            }
            None => self.check_message_of(from_client, &frame, agreed),
        }
    }

    /// Records the method and the revision of a request without checking the request.
    pub fn record_request(&mut self, from_client: bool, message: &Value, revision: &str) {
        let method = message["method"].as_str().unwrap_or_default().to_owned();
        let key = (from_client, message["id"].to_string());
        self.sent_requests
            .insert(key, (method, Some(revision.to_owned())));
    }

    /// Records a message or batch that the test sends, without checking it, because tests may send invalid messages.
    pub fn record_message(&mut self, from_client: bool, message: &Value) {
        for message in message.as_array().into_iter().flatten() {
            self.record_message(from_client, message);
        }
        if let (Some(method), Some(id)) = (message["method"].as_str(), message.get("id")) {
            let revision = named_revision(message);
            self.named_revisions.extend(revision.clone());
            let request = (method.to_owned(), revision);
            self.sent_requests
                .insert((from_client, id.to_string()), request);
        }
    }

    /// Checks that a message is valid in its revision, or in any of its possible revisions if the revision is not
    /// determined.
    #[track_caller]
    fn check_message_of(&mut self, from_client: bool, message: &Value, agreed: Option<&str>) {
        let id = message["id"].to_string();
        let asked = self.sent_requests.get(&(!from_client, id.clone())).cloned();
        let asked = asked.filter(|_| message["method"].is_null());
        let of_request = asked.as_ref().and_then(|(_, revision)| revision.clone());
        let revision = named_revision(message).or(of_request);
        if let Some(method) = message["method"].as_str() {
            let notification = method.starts_with("notifications/");
            assert!(!notification || message.get("id").is_none(), "{message}");
            if id != "null" {
                let named = revision.clone().or(agreed.map(str::to_owned));
                self.sent_requests
                    .insert((from_client, id), (method.to_owned(), named));
            }
        }
        let is_known = revision.is_some() || agreed.is_some();
        let candidates = match revision {
            Some(revision) => vec![revision],
            None => self.possible_revisions(message, agreed),
        };
        let method = asked.as_ref().map(|(method, _)| method.as_str());
        match &candidates[..] {
            [revision] => check_message(revision, from_client, method, message),
            _ => {
                let errors = candidates
                    .iter()
                    .map(|revision| message_errors(revision, from_client, method, message));
                let errors: Vec<_> = errors.collect();
                assert!(
                    errors.iter().any(Vec::is_empty),
                    "{message} is valid in none of {candidates:?}: {errors:?}"
                );
            }
        }
        match candidates.into_iter().next() {
            Some(revision) if is_known => *self.checked_counts.entry(revision).or_default() += 1,
            _ => self.unknown_revision_count += 1,
        }
    }

    /// Returns the possible revisions of a message that names no revision: the negotiated revision, and for messages
    /// other than responses also the revisions that earlier requests have named, because one connection may use both
    /// lifecycles.
    fn possible_revisions(&self, message: &Value, agreed: Option<&str>) -> Vec<String> {
        let owned = |all: Vec<&str>| all.into_iter().map(str::to_owned).collect();
        let subscription = "io.modelcontextprotocol/subscriptionId";
        if message["params"]["_meta"].get(subscription).is_some() {
            return owned(discover_revisions());
        }
        let mut candidates: Vec<String> = owned(agreed.into_iter().collect());
        if agreed.is_none() || message["id"].is_null() {
            let more = self
                .named_revisions
                .iter()
                .filter(|id| Some(&***id) != agreed);
            candidates.extend(more.cloned());
        }
        if candidates.is_empty() {
            owned(all_revisions())
        } else {
            candidates
        }
    }
}

/// Returns the revision that a message names, in its metadata or in the params or result of `initialize`.
fn named_revision(message: &Value) -> Option<String> {
    let said = [
        &message["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"],
        &message["params"]["protocolVersion"],
        &message["result"]["protocolVersion"],
    ];
    let mut said = said.into_iter().filter_map(Value::as_str);
    said.find(|id| all_revisions().contains(id))
        .map(str::to_owned)
}
