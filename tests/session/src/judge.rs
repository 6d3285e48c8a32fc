//! Every message of a connection held against the schema of the revision that it belongs to: what it says itself, what the
//! request that it answers was sent in, or what was agreed.
//!
//! Takes frames in the order of sending; panics when one is not valid, and counts what it has checked.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::{all, check_message};

/// The judge of one connection.
#[derive(Debug, Default)]
pub struct Judge {
    /// Requests by sender and id, with their revision.
    sent: BTreeMap<(bool, String), (String, Option<String>)>,
    /// How many messages of each revision were checked.
    pub checked: BTreeMap<String, usize>,
    /// How many belong to no revision yet, such as an error before anything is agreed.
    pub early: usize,
}

impl Judge {
    /// Checks one frame; `agreed` is the revision of what says nothing itself.
    ///
    /// # Panics
    /// When it is no JSON, has a line break, or is not valid.
    pub fn frame(&mut self, from_client: bool, frame: &[u8], agreed: Option<&str>) {
        assert!(!frame.iter().any(|byte| matches!(byte, b'\n' | b'\r')));
        let frame: Value = serde_json::from_slice(frame).expect("JSON");
        match frame.as_array() {
            Some(batch) => {
                assert!(!batch.is_empty(), "an empty batch");
                assert_eq!(agreed, Some("2025-03-26"), "a batch");
                for message in batch {
                    self.message(from_client, message, agreed);
                }
            }
            None => self.message(from_client, &frame, agreed),
        }
    }

    /// Notes a request that is not checked itself.
    pub fn asked(&mut self, from_client: bool, message: &Value, revision: &str) {
        let method = message["method"].as_str().unwrap_or_default().to_owned();
        let key = (from_client, message["id"].to_string());
        self.sent.insert(key, (method, Some(revision.to_owned())));
    }

    fn message(&mut self, from_client: bool, message: &Value, agreed: Option<&str>) {
        let known = |id: &Value| all().contains(&id.as_str().unwrap_or_default());
        let id = message["id"].to_string();
        let asked = self.sent.get(&(!from_client, id.clone())).cloned();
        let is_answer = message["method"].is_null();
        let meta = &message["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"];
        let said = [
            meta,
            &message["params"]["protocolVersion"],
            &message["result"]["protocolVersion"],
        ];
        let said = said.into_iter().find(|id| known(id));
        let said = said.and_then(Value::as_str).map(str::to_owned);
        let of_request = asked.as_ref().and_then(|(_, revision)| revision.clone());
        let revision = said.or(of_request.filter(|_| is_answer));
        let revision = revision.or_else(|| agreed.map(str::to_owned));
        if let Some(method) = message["method"].as_str().filter(|_| id != "null") {
            let request = (method.to_owned(), revision.clone());
            self.sent.insert((from_client, id), request);
        }
        let Some(revision) = revision else {
            self.early += 1;
            return;
        };
        let method = asked.filter(|_| is_answer).map(|(method, _)| method);
        check_message(&revision, from_client, method.as_deref(), message);
        *self.checked.entry(revision).or_default() += 1;
    }
}
