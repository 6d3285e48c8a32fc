//! Snapshots: the state from which another process resumes a session of the lifecycle with handshake.
//!
//! A snapshot is plain data, with a JSON text form and implementations of the serde traits. A snapshot contains no
//! messages: the transport keeps the event log.

use std::fmt;
use std::str::FromStr;

use mcp_exact_wire::{Integer, Json, JsonObject, JsonRef, ObjectRef, RequestId, from_str};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::error::ConfigError;
use crate::http_request::Principal;
use crate::log::Level;
use crate::session_info::SessionInfo;

/// State of a session at one time. A snapshot does not contain the changes that wait for a standalone stream, so the
/// application must publish every possible change again after the session is resumed.
///
/// A store must replace the snapshot of a session only if the stored version is lower (compare and set). A resumed endpoint uses
/// the next version, and its first snapshot is due immediately; if two processes resume the same session, one of them therefore
/// fails to write, and stops.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Snapshot {
    /// Version, which increases with each snapshot of a session.
    pub version: u64,
    /// Negotiated revision, and capabilities and identity of the client.
    pub info: SessionInfo,
    /// Principal to which the session belongs.
    pub principal: Option<Principal>,
    /// True if `notifications/initialized` was received.
    pub is_initialized: bool,
    /// Level that the client has chosen.
    pub log_level: Option<Level>,
    /// URIs of the resources that the client has subscribed to.
    pub subscriptions: Vec<String>,
    /// Ids of incomplete URL elicitations; `None` if the ids are unknown, so that every completion is accepted.
    pub elicitations: Option<Vec<String>>,
    /// Last wire id that the session may have used; new ids start after this id.
    pub last_id: u64,
    /// Last stream number that the session may have used.
    pub last_stream: u64,
    /// Requests of the client that were in flight.
    pub requests: Vec<SnapshotRequest>,
}

/// Request that was in flight when the snapshot was taken.
///
/// A resumed endpoint answers the request with an error, because its work is lost.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SnapshotRequest {
    /// Number of the request's stream.
    pub stream: u64,
    /// Id of the request, exactly as received.
    pub id: RequestId,
    /// Number of the next frame of the stream, larger than the number of every frame that may have been sent.
    pub sequence: u64,
}

/// Time by which a snapshot must be saved.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SnapshotDue {
    /// The latest snapshot is up to date.
    NotDue,
    /// The snapshot may be delayed: requests have started or ended, and a process that resumes from the latest snapshot
    /// would not report all lost requests.
    Soon,
    /// The snapshot is due before the next message: a process that resumes from the latest snapshot would reuse an id, or miss
    /// a change that the client has made.
    Now,
}

impl Snapshot {
    /// Constructs a snapshot of a session whose handshake is complete, from the last wire id that the session has used.
    pub fn new(info: SessionInfo, last_id: u64) -> Self {
        Self {
            version: 0,
            info,
            principal: None,
            is_initialized: true,
            log_level: None,
            subscriptions: Vec::new(),
            elicitations: None,
            last_id,
            last_stream: 0,
            requests: Vec::new(),
        }
    }

    /// Returns the JSON form of the snapshot.
    fn to_json(&self) -> JsonObject {
        let mut json = JsonObject::from_iter([
            ("version", Json::from(self.version)),
            ("info", self.info.to_json().into()),
            ("ready", Json::from(self.is_initialized)),
            ("lastId", Json::from(self.last_id)),
            ("lastStream", Json::from(self.last_stream)),
        ]);
        if let Some(Principal(principal)) = &self.principal {
            json.insert("principal", Json::string(principal));
        }
        if let Some(level) = self.log_level {
            json.insert("logLevel", Json::string(level.name()));
        }
        if !self.subscriptions.is_empty() {
            json.insert("subscriptions", Json::from_encode(&self.subscriptions));
        }
        if let Some(ids) = &self.elicitations {
            json.insert("elicitations", Json::from_encode(ids));
        }
        if !self.requests.is_empty() {
            let requests = self.requests.iter().map(SnapshotRequest::to_json);
            json.insert("requests", Json::from_encode(&requests.collect::<Vec<_>>()));
        }
        json
    }

    /// Parses the JSON form of a snapshot.
    fn from_json(json: ObjectRef<'_>) -> Result<Self, ConfigError> {
        let principal = json
            .find("principal")
            .map(|name| string_member(name, "principal"));
        let level = json
            .find("logLevel")
            .map(|level| string_member(level, "logLevel"));
        let level = level.transpose()?.map(|level| level.parse::<Level>());
        let requests: Vec<Json> = match json.find("requests") {
            None => Vec::new(),
            Some(requests) => requests
                .decode_as()
                .map_err(|_| invalid_snapshot("requests"))?,
        };
        let info = json.find("info").ok_or_else(|| invalid_snapshot("info"))?;
        Ok(Self {
            version: number_member(json, "version")?,
            info: info.text().parse()?,
            principal: principal.transpose()?.map(Principal),
            is_initialized: match json.find("ready") {
                Some(ready) => ready.decode_as().map_err(|_| invalid_snapshot("ready"))?,
                None => return Err(invalid_snapshot("ready")),
            },
            log_level: level
                .transpose()
                .map_err(|_| invalid_snapshot("logLevel"))?,
            subscriptions: strings_member(json, "subscriptions")?.unwrap_or_default(),
            elicitations: strings_member(json, "elicitations")?,
            last_id: number_member(json, "lastId")?,
            last_stream: number_member(json, "lastStream")?,
            requests: requests
                .iter()
                .map(|request| SnapshotRequest::from_json(request.view()))
                .collect::<Result<_, _>>()?,
        })
    }
}

impl SnapshotRequest {
    /// Returns the JSON form of the request.
    fn to_json(&self) -> JsonObject {
        JsonObject::from_iter([
            ("stream", Json::from(self.stream)),
            ("id", Json::from_encode(&self.id)),
            ("sequence", Json::from(self.sequence)),
        ])
    }

    /// Parses the JSON form of a request.
    fn from_json(json: JsonRef<'_>) -> Result<Self, ConfigError> {
        let json = json.object().ok_or_else(|| invalid_snapshot("requests"))?;
        let id = json.find("id").and_then(|id| id.decode_as().ok());
        Ok(Self {
            stream: number_member(json, "stream")?,
            id: id.ok_or_else(|| invalid_snapshot("id"))?,
            sequence: number_member(json, "sequence")?,
        })
    }
}

/// Returns the error for a member that is missing or invalid.
fn invalid_snapshot(member: &str) -> ConfigError {
    ConfigError::Snapshot(format!("`{member}` is missing or does not fit"))
}

/// Returns a required member that is an unsigned integer.
fn number_member(json: ObjectRef<'_>, member: &str) -> Result<u64, ConfigError> {
    let number = json.find(member).and_then(|value| {
        let number: Integer = value.decode_as().ok()?;
        number.as_u64()
    });
    number.ok_or_else(|| invalid_snapshot(member))
}

/// Returns a value that must be a string; the error names `member`.
fn string_member(value: JsonRef<'_>, member: &str) -> Result<String, ConfigError> {
    let text = value.as_str().ok_or_else(|| invalid_snapshot(member))?;
    Ok(text.into_owned())
}

/// Returns an optional member that is an array of strings.
fn strings_member(json: ObjectRef<'_>, member: &str) -> Result<Option<Vec<String>>, ConfigError> {
    let texts = json.find(member).map(JsonRef::decode_as);
    texts.transpose().map_err(|_| invalid_snapshot(member))
}

impl fmt::Display for Snapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.to_json().fmt(f)
    }
}

impl FromStr for Snapshot {
    type Err = ConfigError;

    fn from_str(text: &str) -> Result<Self, ConfigError> {
        let json: JsonObject =
            from_str(text).map_err(|error| ConfigError::Snapshot(error.to_string()))?;
        Self::from_json(json.view())
    }
}

impl Serialize for Snapshot {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.to_json().serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Snapshot {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let json = JsonObject::deserialize(deserializer)?;
        Self::from_json(json.view()).map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A snapshot that was written as text, or by serde, is parsed to an equal snapshot.
    #[test]
    fn snapshot_is_read_as_written() {
        let info = r#"{"revision":"2025-06-18","capabilities":{"roots":{}},"info":{"name":"x"}}"#;
        let snapshot = Snapshot {
            version: 7,
            principal: Some(Principal("someone \"else\"".into())),
            log_level: Some(Level::Warning),
            subscriptions: vec!["file:///a".into()],
            elicitations: Some(vec![]),
            last_stream: 9,
            requests: vec![SnapshotRequest {
                stream: 3,
                id: RequestId::from("a"),
                sequence: 5,
            }],
            ..Snapshot::new(info.parse().expect("an info"), 64)
        };
        assert_eq!(snapshot.to_string().parse(), Ok(snapshot.clone()));
        let text = serde_json::to_string(&snapshot).expect("serialisable");
        assert_eq!(serde_json::from_str::<Snapshot>(&text).ok(), Some(snapshot));
        assert!("{}".parse::<Snapshot>().is_err());
    }
}
