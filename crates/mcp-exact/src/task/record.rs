//! Record of a task, which a store keeps from the creation of the task to the end of its lifetime.
//!
//! A record is serialisable, and contains the data to run the handler again in another process: the call and its
//! recorded answers.

use std::net::IpAddr;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use crate::link::Request;
use crate::protocol::{Json, JsonObject, PeerError, SessionInfo};
use crate::replay::ReplayRecord;

/// Memory of a record without params and result, in bytes.
const RECORD_BYTES: usize = 1 << 10;

/// Record of a task, as a [`TaskStore`](crate::TaskStore) keeps it. The serialised form is private to this crate;
/// stores keep it unchanged.
///
/// A record contains the arguments of the call, the answers of the user and the result, so stores must protect it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TaskRecord {
    /// Id of the task: 32 hexadecimal digits.
    id: String,
    /// Time of the creation, in milliseconds since the Unix epoch.
    #[serde(rename = "created")]
    created_at: u64,
    /// Time of the last change, in milliseconds since the Unix epoch.
    #[serde(rename = "updated")]
    updated_at: u64,
    /// Lifetime in milliseconds, measured from the creation; `None` if unlimited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    lifetime: Option<u64>,
    /// Status message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    message: Option<String>,
    /// Call that has created the task.
    origin: TaskOrigin,
    /// Input requests with their answers, and results of `once`.
    record: ReplayRecord,
    /// Pending input requests by key, for clients that ask another process.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    asked: Option<JsonObject>,
    /// End of the task; `None` while it is not finished.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    end: Option<TaskEnd>,
}

/// Call that has created a task.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct TaskOrigin {
    /// Name of the called tool.
    pub(crate) tool: String,
    /// OAuth scopes that the tool requires, separated by spaces.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) scope: Option<String>,
    /// Params of the call.
    pub(crate) params: JsonObject,
    /// Revision of the call.
    pub(crate) revision: String,
    /// Capabilities that the client has declared.
    pub(crate) capabilities: JsonObject,
    /// Client's description of itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) client: Option<JsonObject>,
    /// Authenticated principal of the call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) principal: Option<String>,
    /// Address of an anonymous client.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    address: Option<IpAddr>,
}

/// Client that tasks count for: a principal or, without authentication, an address.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum TaskClient {
    Principal(String),
    Address(IpAddr),
}

impl TaskOrigin {
    /// Returns the origin of a call of a tool that requires the OAuth scopes `scope`.
    pub(crate) fn new(tool: &str, scope: Option<&str>, request: &Request) -> Self {
        Self {
            tool: tool.to_owned(),
            scope: scope.map(str::to_owned),
            params: request.params().cloned().unwrap_or_default(),
            revision: request.revision().as_str().to_owned(),
            capabilities: request.client_capabilities().clone(),
            client: request.client_info().cloned(),
            principal: request.principal().map(|principal| principal.0.clone()),
            address: request.context().client_address(),
        }
    }

    /// Returns the client that the task counts for; `None` for the client of this process.
    pub(crate) fn task_client(&self) -> Option<TaskClient> {
        let principal = self.principal.clone().map(TaskClient::Principal);
        principal.or_else(|| self.address.map(TaskClient::Address))
    }

    /// Drops what only a run of the handler needs.
    fn drop_params(&mut self) {
        self.params = JsonObject::new();
        self.capabilities = JsonObject::new();
        self.client = None;
    }

    /// Returns the session information of the call; `None` if this build does not support its revision.
    pub(crate) fn session_info(&self) -> Option<SessionInfo> {
        Some(SessionInfo {
            revision: crate::protocol::revisions().find(|one| one.as_str() == self.revision)?,
            capabilities: self.capabilities.clone(),
            implementation: self.client.clone(),
            instructions: None,
        })
    }
}

/// End of a task.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum TaskEnd {
    /// The result of the call, also with `isError`.
    Completed(JsonObject),
    /// The error of the call.
    Failed(JsonObject),
    /// `tasks/cancel` has ended the task.
    Cancelled,
}

impl TaskEnd {
    /// Creates the end of a task that has failed with a JSON-RPC error.
    pub(crate) fn failed(error: &PeerError) -> Self {
        let object = Json::from_encode(error.object());
        Self::Failed(JsonObject::try_from(object).unwrap_or_default())
    }
}

impl TaskRecord {
    pub(crate) fn new(
        id: String,
        lifetime: Option<Duration>,
        origin: TaskOrigin,
        record: ReplayRecord,
    ) -> Self {
        let now = now_millis();
        Self {
            id,
            created_at: now,
            updated_at: now,
            lifetime: lifetime.map(duration_millis),
            message: None,
            origin,
            record,
            asked: None,
            end: None,
        }
    }

    /// Returns the id: 32 characters of `0-9a-f`, random.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Returns true if the task has ended, so that its record no longer changes.
    pub fn is_finished(&self) -> bool {
        self.end.is_some()
    }

    /// Returns the time at which the store may drop the record; `None` if the record does not expire.
    pub fn expires_at(&self) -> Option<SystemTime> {
        let end = self.created_at.checked_add(self.lifetime?)?;
        UNIX_EPOCH.checked_add(Duration::from_millis(end))
    }

    /// Returns true if the lifetime has expired.
    pub fn is_expired(&self) -> bool {
        self.expires_at()
            .is_some_and(|end| end <= SystemTime::now())
    }

    pub(crate) fn origin(&self) -> &TaskOrigin {
        &self.origin
    }

    /// Returns the input requests with their answers, and the results of `once`.
    pub(crate) fn record(&self) -> &ReplayRecord {
        &self.record
    }

    /// Sets the input requests with their answers, and the results of `once`.
    pub(crate) fn set_record(&mut self, record: ReplayRecord) {
        self.record = record;
        self.set_updated_now();
    }

    /// Sets the status message.
    pub(crate) fn set_message(&mut self, message: Option<String>) {
        self.message = message;
        self.set_updated_now();
    }

    /// Returns the pending input requests by key.
    pub(crate) fn asked(&self) -> Option<&JsonObject> {
        self.asked.as_ref()
    }

    /// Sets the pending input requests by key.
    pub(crate) fn set_asked(&mut self, asked: Option<JsonObject>) {
        self.asked = asked;
    }

    /// Returns true if a later record of the same task may say something else.
    pub(crate) fn differs_from(&self, other: &Self) -> bool {
        (self.updated_at, &self.asked, &self.end) != (other.updated_at, &other.asked, &other.end)
    }

    /// Returns the client that the task counts for, for stores that limit what one client may have: a text that is the same for
    /// all tasks of a principal, or of an address without authentication. `None` for the client of a process.
    pub fn client_key(&self) -> Option<String> {
        self.origin.task_client().map(|client| match client {
            TaskClient::Principal(principal) => format!("p:{principal}"),
            TaskClient::Address(address) => format!("a:{address}"),
        })
    }

    /// Returns the approximate memory of the record, in bytes.
    pub fn bytes(&self) -> usize {
        let origin = &self.origin;
        let end = match &self.end {
            Some(TaskEnd::Completed(content) | TaskEnd::Failed(content)) => content.text().len(),
            Some(TaskEnd::Cancelled) | None => 0,
        };
        RECORD_BYTES + origin.params.text().len() + origin.capabilities.text().len() + end
    }

    /// Records the end of the task, and drops the params of its call and the replay record of its handler.
    pub(crate) fn finish(&mut self, end: TaskEnd) {
        // The handler does not run again.
        self.record = ReplayRecord::default();
        self.asked = None;
        self.origin.drop_params();
        self.end = Some(end);
        self.set_updated_now();
    }

    /// Sets the time of the last change, which never goes backwards.
    fn set_updated_now(&mut self) {
        self.updated_at = now_millis().max(self.updated_at);
    }

    /// Returns the members of `Task`, including those that depend on the status. `input_requests` are the pending input
    /// requests.
    pub(crate) fn task_members(
        &self,
        poll_interval: Duration,
        input_requests: Option<JsonObject>,
    ) -> JsonObject {
        let status = match (&self.end, &input_requests) {
            (Some(TaskEnd::Completed(_)), _) => "completed",
            (Some(TaskEnd::Failed(_)), _) => "failed",
            (Some(TaskEnd::Cancelled), _) => "cancelled",
            (None, Some(_)) => "input_required",
            (None, None) => "working",
        };
        let mut task = JsonObject::from_iter([
            ("taskId", Json::string(&self.id)),
            ("status", Json::string(status)),
            (
                "createdAt",
                Json::string(&format_timestamp(self.created_at)),
            ),
            (
                "lastUpdatedAt",
                Json::string(&format_timestamp(self.updated_at)),
            ),
            ("ttlMs", self.lifetime.map_or(Json::null(), Json::from)),
            ("pollIntervalMs", duration_millis(poll_interval).into()),
        ]);
        let message = self.message.clone().or_else(|| self.end_error_message());
        if let Some(message) = message {
            task.insert("statusMessage", Json::string(&message));
        }
        task
    }

    /// Returns the content of `tasks/get` and `notifications/tasks`: the task with its result, its error or its input
    /// requests.
    pub(crate) fn detailed_content(
        &self,
        poll_interval: Duration,
        input_requests: Option<JsonObject>,
    ) -> JsonObject {
        let mut task = self.task_members(poll_interval, input_requests.clone());
        match (&self.end, input_requests) {
            (Some(TaskEnd::Completed(result)), _) => task.insert("result", result.clone()),
            (Some(TaskEnd::Failed(error)), _) => task.insert("error", error.clone()),
            (None, Some(input_requests)) => task.insert("inputRequests", input_requests),
            _ => {}
        }
        task
    }

    /// Returns the message of the error that has ended the task.
    fn end_error_message(&self) -> Option<String> {
        let Some(TaskEnd::Failed(error)) = &self.end else {
            return None;
        };
        error.get("message")?.decode_as().ok()
    }
}

/// Returns the current time in milliseconds since the Unix epoch, by the system clock, so that other processes can
/// compare the value with their own clocks.
fn now_millis() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    duration_millis(now.unwrap_or_default())
}

/// Returns a duration in milliseconds.
fn duration_millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// Formats milliseconds since the Unix epoch as a UTC time of RFC 3339. Times after the year 9999, which RFC 3339 cannot express,
/// become the end of that year.
fn format_timestamp(millis: u64) -> String {
    let time = UNIX_EPOCH + Duration::from_millis(millis.min(END_OF_9999));
    humantime::format_rfc3339_millis(time).to_string()
}

/// 9999-12-31T23:59:59.999Z in milliseconds since the Unix epoch.
const END_OF_9999: u64 = 253_402_300_799_999;

#[cfg(test)]
mod tests {
    use super::format_timestamp;

    /// Timestamps equal the output of `date --utc --iso-8601=ns`.
    #[test]
    fn task_timestamps_are_rfc_3339() {
        for (millis, expected) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (951_782_399_999, "2000-02-28T23:59:59.999Z"),
            (951_782_400_000, "2000-02-29T00:00:00.000Z"),
            (951_868_800_000, "2000-03-01T00:00:00.000Z"),
            (1_709_164_800_000, "2024-02-29T00:00:00.000Z"),
            (1_735_689_599_001, "2024-12-31T23:59:59.001Z"),
            (4_107_542_400_000, "2100-03-01T00:00:00.000Z"),
            (u64::MAX, "9999-12-31T23:59:59.999Z"),
        ] {
            assert_eq!(format_timestamp(millis), expected);
        }
    }
}
