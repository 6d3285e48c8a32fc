//! Parses the reports of a client and compares them with the requirements.
//!
//! Clients of peers print one JSON object per step and the revision in the last line. The example client prints
//! lines for people that start with the name of the step, and the revision in the last line.

use serde::Deserialize;

use super::peers::{FIRST_WITHOUT_HANDSHAKE, Peers};
use super::process::ProcessResult;

/// Step that needs elicitation.
const ELICITATION: &str = "elicitation/create";
/// First revision that has elicitation.
const FIRST_WITH_ELICITATION: &str = "2025-06-18";

/// Required outcome of a run.
pub(super) enum RequiredOutcome {
    Session(Session),
    /// The two sides have no revision in common: the client reports that and exits with an error code. Exit code 101 (a
    /// panic) and signals count as failures.
    Refusal,
    /// A restarted server answers requests of the earlier session with this status, which does not indicate that the
    /// session has ended (`basic/transports`, "Session Management", requires 404): the example client reports the
    /// status.
    LostSession(u16),
}

/// A session with this revision in which every step succeeds.
pub(super) struct Session {
    revision: String,
    steps: Vec<String>,
    reports: Reports,
    /// True if a response to a cancelled request is a failure, because the specification says "not send a response".
    /// Old SDKs respond with an error, so that this applies only to our server.
    silent_after_cancel: bool,
    /// True if each of the 20 progress notifications of the slow tool must be reported, once and in order.
    whole_progress: bool,
    /// Steps that may fail: the server causes it.
    excused: Vec<String>,
}

/// Output of the example client for the complete progress of the slow tool.
const WHOLE_PROGRESS: &str = "progress: [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 11.0, 12.0, 13.0, 14.0, 15.0, 16.0, 17.0, 18.0, 19.0, 20.0]";

/// Format of a client's reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reports {
    Json,
    Text,
}

impl RequiredOutcome {
    /// Requirement for a peer's client with a peer's server.
    pub(super) fn among_peers(peers: &Peers, lacks: &[String], revision: String) -> Self {
        Self::Session(Session::json(peers, lacks, revision))
    }

    /// Requirement for a peer's client with a peer's server through the gateway, by the revision of each.
    pub(super) fn through_gateway(
        peers: &Peers,
        (lacks, breaks): (&[String], &[String]),
        client: String,
        server: &str,
    ) -> Self {
        let can_elicit = client.as_str().min(server) >= FIRST_WITH_ELICITATION;
        let mut session = Session::json(peers, lacks, client);
        session.excused = breaks.to_vec();
        let steps = peers.steps.gateway.iter();
        let steps = steps.filter(|step| *step != ELICITATION || can_elicit);
        session
            .steps
            .extend(steps.filter(|step| !lacks.contains(step)).cloned());
        Self::Session(session)
    }

    /// Requirement for a peer's client with our server.
    pub(super) fn with_our_server(peers: &Peers, lacks: &[String], revision: String) -> Self {
        Self::Session(Session {
            silent_after_cancel: true,
            ..Session::json(peers, lacks, revision)
        })
    }

    /// Requirement for our client with a peer's server. The revision and the exit code show that it connected and
    /// disconnected.
    pub(super) fn of_our_client(peers: &Peers, lacks: &[String], revision: String) -> Self {
        let mut session = Session::json(peers, lacks, revision);
        session
            .steps
            .retain(|step| !["connect", "shutdown"].contains(&step.as_str()));
        session.reports = Reports::Text;
        Self::Session(session)
    }

    /// Requirement for our client with a server that is restarted during a call: the call is lost, the list request is
    /// repeated, and another call succeeds.
    pub(super) fn after_restart(revision: String) -> Self {
        let steps = ["call", "restart", "tools/list"].map(str::to_owned);
        Self::Session(Session {
            revision,
            steps: steps.to_vec(),
            reports: Reports::Text,
            silent_after_cancel: false,
            whole_progress: false,
            excused: Vec::new(),
        })
    }

    /// Requires all progress notifications of our client although its connection was cut.
    pub(super) fn with_whole_progress(mut self) -> Self {
        if let Self::Session(session) = &mut self {
            session.whole_progress = session.reports == Reports::Text;
        }
        self
    }

    /// Requirement for peers without a common revision.
    pub(super) fn refusal() -> Self {
        Self::Refusal
    }

    /// Requirement for our client with a restarted server that does not report the end of the session.
    pub(super) fn lost_session(status: u16) -> Self {
        Self::LostSession(status)
    }

    /// Returns the verdict for a run that meets the requirement.
    pub(super) fn when_met(&self) -> &'static str {
        match self {
            Self::Session(_) => "ok",
            Self::Refusal => "ok, refused",
            Self::LostSession(_) => "ok, as expected: the server does not answer 404",
        }
    }
}

impl Session {
    fn json(peers: &Peers, lacks: &[String], revision: String) -> Self {
        let mut steps = peers.steps.always.clone();
        if revision.as_str() < FIRST_WITHOUT_HANDSHAKE {
            steps.extend_from_slice(&peers.steps.handshake);
        }
        steps.retain(|step| !lacks.contains(step));
        Self {
            revision,
            steps,
            reports: Reports::Json,
            silent_after_cancel: false,
            whole_progress: false,
            excused: Vec::new(),
        }
    }
}

/// Parsed output of a client.
pub(super) struct Outcome {
    /// Revision in the last line.
    pub(super) revision: Option<String>,
    steps: Vec<Step>,
    text: String,
    /// True if the exit code of the client is a failure.
    failed: bool,
    /// Reason why a session failed regardless of its output.
    end: Option<String>,
}

/// A line of a client that reports in JSON.
#[derive(Debug, Deserialize)]
struct Step {
    step: String,
    ok: bool,
    #[serde(default)]
    detail: serde_json::Value,
}

impl Outcome {
    pub(super) fn of(ended: &ProcessResult) -> Self {
        let end = match ended.status {
            None => Some("killed at the deadline".to_owned()),
            Some(status) if !status.success() => {
                let last = ended.stderr.lines().rfind(|line| !line.trim().is_empty());
                Some(match last {
                    Some(line) => format!("{status}: {}", line.trim()),
                    None => status.to_string(),
                })
            }
            Some(_) => None,
        };
        let last = ended.stdout.lines().rfind(|line| !line.trim().is_empty());
        Self {
            revision: last.and_then(date),
            steps: ended
                .stdout
                .lines()
                .filter_map(|line| serde_json::from_str(line).ok())
                .collect(),
            text: ended.stdout.clone(),
            failed: ended.status.and_then(|status| status.code()) == Some(1),
            end,
        }
    }

    /// Returns the deviations from the requirement, one line each.
    pub(super) fn failures(&self, demand: &RequiredOutcome) -> Vec<String> {
        match demand {
            RequiredOutcome::Session(session) => self.of_session(session),
            RequiredOutcome::Refusal if self.failed => Vec::new(),
            RequiredOutcome::Refusal => {
                let end = self.end.as_deref().unwrap_or("it ended with success");
                vec![format!("no revision is common, and still: {end}")]
            }
            RequiredOutcome::LostSession(status) => self.of_lost_session(*status),
        }
    }

    fn of_lost_session(&self, status: u16) -> Vec<String> {
        let words = [
            "call: Lost".to_owned(),
            format!("tools/list: the server answers with HTTP status {status}"),
        ];
        let has = |start: &String| self.text.lines().any(|line| line.starts_with(&**start));
        let mut failures: Vec<String> = words
            .iter()
            .filter(|start| !has(start))
            .map(|start| format!("expected `{start}`; correct `ended_session` in peers.toml"))
            .collect();
        if !failures.is_empty() {
            failures.extend(self.end.clone());
        }
        failures
    }

    fn of_session(&self, demand: &Session) -> Vec<String> {
        let mut failures = Vec::new();
        let failed = self.steps.iter().filter(|step| !step.ok);
        let (excused, failed): (Vec<_>, Vec<_>) =
            failed.partition(|step| demand.excused.contains(&step.step));
        for step in failed {
            failures.push(format!("{}: {}", step.step, on_one_line(&step.detail)));
        }
        for name in &demand.steps {
            let reported = match demand.reports {
                Reports::Json => self.steps.iter().any(|step| step.step == *name),
                Reports::Text => self.text.lines().any(|line| begins(line, name)),
            };
            if !reported {
                failures.push(format!("{name}: not reported"));
            }
        }
        let answered = |step: &&Step| step.step == "cancel" && step.detail["answered"] == true;
        if let Some(step) = self.steps.iter().find(answered)
            && demand.silent_after_cancel
        {
            let with = on_one_line(&step.detail["with"]);
            failures.push(format!(
                "cancel: the server answered a cancelled request: {with}"
            ));
        }
        if demand.whole_progress && !self.text.lines().any(|line| line == WHOLE_PROGRESS) {
            failures.push("progress: not all of it came".to_owned());
        }
        if self.revision.as_ref() != Some(&demand.revision) {
            failures.push(format!("the revision should be {}", demand.revision));
        }
        // A client whose step has failed ends with exit code 1.
        if excused.is_empty() || !self.failed {
            failures.extend(self.end.clone());
        }
        failures
    }
}

/// Returns true if a line starts with the complete name of a step.
fn begins(line: &str, step: &str) -> bool {
    let rest = line.strip_prefix(step);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with([':', ' ']))
}

/// Formats a detail as one line.
fn on_one_line(detail: &serde_json::Value) -> String {
    match detail {
        serde_json::Value::String(text) => text.split_whitespace().collect::<Vec<_>>().join(" "),
        other => other.to_string(),
    }
}

/// Returns the first word of a line that has the format of a revision.
fn date(line: &str) -> Option<String> {
    line.split(|character: char| !character.is_ascii_digit() && character != '-')
        .find(|word| {
            word.len() == 10
                && word
                    .bytes()
                    .enumerate()
                    .all(|(at, byte)| (byte == b'-') == (at == 4 || at == 7))
        })
        .map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use std::process::ExitStatus;

    use super::*;

    const GOOD: &str = concat!(
        "{\"step\":\"ping\",\"ok\":true,\"detail\":\"answered\"}\n",
        "{\"step\":\"cancel\",\"ok\":true,\"detail\":{\"answered\":false}}\n",
        "{\"revision\":\"2025-06-18\"}\n",
    );

    fn demand(reports: Reports) -> RequiredOutcome {
        RequiredOutcome::Session(Session {
            revision: "2025-06-18".into(),
            steps: vec!["ping".into(), "cancel".into()],
            reports,
            silent_after_cancel: true,
            whole_progress: false,
            excused: Vec::new(),
        })
    }

    fn check(stdout: &str, reports: Reports, failures: &[&str]) {
        let ended = ProcessResult {
            status: Some(ExitStatus::default()),
            stdout: stdout.into(),
            stderr: String::new(),
        };
        assert_eq!(Outcome::of(&ended).failures(&demand(reports)), failures);
    }

    #[test]
    fn what_was_demanded_has_no_failures() {
        check(GOOD, Reports::Json, &[]);
        check(
            "ping: ok\ncancel: ok\n\nrevision 2025-06-18\n",
            Reports::Text,
            &[],
        );
    }

    #[test]
    fn an_expected_deviation_fails_in_both_directions() {
        let run = |stdout: &str| {
            let ended = ProcessResult {
                status: Some(ExitStatus::default()),
                stdout: stdout.into(),
                stderr: String::new(),
            };
            Outcome::of(&ended).failures(&RequiredOutcome::lost_session(400))
        };
        let lost = "call: Lost\ntools/list: the server answers with HTTP status 400 (-32603)\n";
        assert_eq!(run(lost), [""; 0]);
        let works = "call: Lost\ntools/list: 3 of them\n\nrevision 2025-06-18\n";
        assert_eq!(run(works).len(), 1);
    }

    #[test]
    fn a_step_that_failed_is_named_with_its_detail() {
        let stdout = GOOD.replace(
            "true,\"detail\":\"answered\"",
            "false,\"detail\":\"no\\nanswer\"",
        );
        check(&stdout, Reports::Json, &["ping: no answer"]);
    }

    #[test]
    fn a_step_that_was_left_out_is_a_failure() {
        let stdout = "{\"step\":\"ping\",\"ok\":true}\n{\"revision\":\"2025-06-18\"}";
        check(stdout, Reports::Json, &["cancel: not reported"]);
        let text = "ping\nno cancel, cancelling\n2025-06-18";
        check(text, Reports::Text, &["cancel: not reported"]);
    }

    #[test]
    fn another_revision_or_none_is_a_failure() {
        let wanted = ["the revision should be 2025-06-18"];
        check(&GOOD.replace("06-18", "11-25"), Reports::Json, &wanted);
        check(
            &GOOD.replace("\"2025-06-18\"", "null"),
            Reports::Json,
            &wanted,
        );
    }

    #[test]
    fn a_cut_loses_no_progress() {
        let failures = |progress: &str| {
            let text = format!("ping\ncancel\n{progress}\n2025-06-18");
            let ended = ProcessResult {
                status: Some(ExitStatus::default()),
                stdout: text,
                stderr: String::new(),
            };
            let demand = demand(Reports::Text).with_whole_progress();
            Outcome::of(&ended).failures(&demand)
        };
        assert_eq!(failures(WHOLE_PROGRESS), [""; 0]);
        let part = WHOLE_PROGRESS.replace("7.0, ", "");
        assert_eq!(failures(&part), ["progress: not all of it came"]);
    }

    #[test]
    fn our_server_stays_silent_after_a_cancel() {
        let stdout = GOOD.replace(
            "{\"answered\":false}",
            "{\"answered\":true,\"with\":\"late\"}",
        );
        let wanted = ["cancel: the server answered a cancelled request: late"];
        check(&stdout, Reports::Json, &wanted);
    }

    #[test]
    fn deadlines_are_failures() {
        let ended = ProcessResult {
            status: None,
            stdout: GOOD.into(),
            stderr: String::new(),
        };
        let failures = Outcome::of(&ended).failures(&demand(Reports::Json));
        assert_eq!(failures, ["killed at the deadline"]);
    }

    #[test]
    #[cfg(unix)]
    fn a_refusal_is_an_exit_with_failure_and_no_crash() {
        use std::os::unix::process::ExitStatusExt;

        let ended = |status: Option<i32>| {
            let ended = ProcessResult {
                status: status.map(ExitStatus::from_raw),
                stdout: String::new(),
                stderr: "failed: update the older one".into(),
            };
            Outcome::of(&ended).failures(&RequiredOutcome::refusal())
        };
        assert_eq!(ended(Some(1 << 8)), [""; 0]);
        assert_eq!(
            ended(Some(0)),
            ["no revision is common, and still: it ended with success"]
        );
        let deadline = "no revision is common, and still: killed at the deadline";
        assert_eq!(ended(None), [deadline]);
        assert_eq!(ended(Some(101 << 8)).len(), 1);
        assert_eq!(ended(Some(9)).len(), 1);
    }
}
