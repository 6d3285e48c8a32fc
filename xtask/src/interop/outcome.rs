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
    /// A session is established and every step succeeds.
    Session(Session),
    /// The two sides have no revision in common: the client reports that and exits with an error code. Exit code 101 (a
    /// panic) and signals count as failures.
    Refusal,
}

/// Session in which every required step succeeds.
pub(super) struct Session {
    /// Revision that must be negotiated.
    revision: String,
    /// Names of the steps that the client must report.
    steps: Vec<String>,
    /// Format of the client's reports.
    reports: Reports,
    /// True if a response to a cancelled request is a failure, because the specification requires it to "not send a
    /// response". Old SDKs respond with an error, so that this applies only to our server.
    silent_after_cancel: bool,
    /// Progress notifications of the slow tool that must be reported.
    progress: Progress,
    /// Steps that may fail because of a defect of the server.
    excused_steps: Vec<String>,
}

/// Number of progress notifications of the slow tool: 1, 2, and so on.
const PROGRESS_COUNT: usize = 20;

/// Progress notifications of the slow tool that a client must report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Progress {
    /// No particular ones.
    Any,
    /// Each of them, once and in order.
    Whole,
    /// All 20 in order, except that one run of consecutive notifications may be missing between the first and the last: the server may
    /// lose what it sends while it resumes the stream.
    WithGap,
}

impl Progress {
    /// Returns what is wrong with the progress in the output of the example client.
    fn failure(self, text: &str) -> Option<String> {
        if self == Self::Any {
            return None;
        }
        let line = text
            .lines()
            .find_map(|line| line.strip_prefix("progress: "));
        let values = line.and_then(|line| serde_json::from_str::<Vec<f64>>(line).ok());
        let Some(values) = values else {
            return Some("progress: not reported".to_owned());
        };
        let all: Vec<f64> = (1..=PROGRESS_COUNT).map(|value| value as f64).collect();
        let start = values.iter().zip(&all).take_while(|(a, b)| a == b).count();
        let rest = &values[start..];
        let complete = match self {
            Self::WithGap => {
                let is_end = all.ends_with(rest) && values.last() == all.last();
                start > 0 && start + rest.len() <= all.len() && is_end
            }
            Self::Any | Self::Whole => rest.is_empty() && start == all.len(),
        };
        (!complete).then(|| format!("progress: not all of it came: {values:?}"))
    }
}

/// Format of a client's reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reports {
    /// One JSON object for each step, as peers print.
    Json,
    /// Lines for people, as the example client prints.
    Text,
}

impl RequiredOutcome {
    /// Creates the required outcome of a peer's client with a peer's server; `lacks` are the steps that one of them
    /// does not support.
    pub(super) fn for_peers(peers: &Peers, lacks: &[String], revision: String) -> Self {
        Self::Session(Session::with_json_reports(peers, lacks, revision))
    }

    /// Creates the required outcome of a peer's client with a peer's server through the gateway: `client` and `server`
    /// are their newest revisions, `lacks` the steps that one of them does not support, and `breaks` the steps that may
    /// fail because of a defect of the server.
    pub(super) fn through_gateway(
        peers: &Peers,
        (lacks, breaks): (&[String], &[String]),
        client: String,
        server: &str,
    ) -> Self {
        let can_elicit = client.as_str().min(server) >= FIRST_WITH_ELICITATION;
        let mut session = Session::with_json_reports(peers, lacks, client);
        session.excused_steps = breaks.to_vec();
        let steps = peers.steps.gateway.iter();
        let steps = steps.filter(|step| *step != ELICITATION || can_elicit);
        session
            .steps
            .extend(steps.filter(|step| !lacks.contains(step)).cloned());
        Self::Session(session)
    }

    /// Creates the required outcome of a peer's client with our server.
    pub(super) fn for_our_server(peers: &Peers, lacks: &[String], revision: String) -> Self {
        Self::Session(Session {
            silent_after_cancel: true,
            ..Session::with_json_reports(peers, lacks, revision)
        })
    }

    /// Creates the required outcome of our client with a peer's server. The revision and the exit code show that our
    /// client connected and disconnected.
    pub(super) fn for_our_client(peers: &Peers, lacks: &[String], revision: String) -> Self {
        let mut session = Session::with_json_reports(peers, lacks, revision);
        session
            .steps
            .retain(|step| !["connect", "shutdown"].contains(&step.as_str()));
        session.reports = Reports::Text;
        Self::Session(session)
    }

    /// Creates the required outcome of our client with a server that is restarted during a call: the call is lost, the
    /// list request is repeated, and another call succeeds.
    pub(super) fn for_restarted_server(revision: String) -> Self {
        let steps = ["call", "restart", "tools/list"].map(str::to_owned);
        Self::Session(Session {
            revision,
            steps: steps.to_vec(),
            reports: Reports::Text,
            silent_after_cancel: false,
            progress: Progress::Any,
            excused_steps: Vec::new(),
        })
    }

    /// Requires the progress notifications of the slow tool, although the connection of our client was cut: all of them,
    /// or with one gap if the server may lose what it sends while it resumes the stream.
    pub(super) fn requiring_progress(mut self, with_gap: bool) -> Self {
        if let Self::Session(session) = &mut self
            && session.reports == Reports::Text
        {
            session.progress = if with_gap {
                Progress::WithGap
            } else {
                Progress::Whole
            };
        }
        self
    }

    /// Creates the required outcome of peers without a common revision.
    pub(super) fn for_refusal() -> Self {
        Self::Refusal
    }

    /// Returns the verdict for a run that has the required outcome.
    pub(super) fn success_verdict(&self) -> &'static str {
        match self {
            Self::Session(_) => "ok",
            Self::Refusal => "ok, refused",
        }
    }
}

impl Session {
    /// Creates the requirements for a client that reports in JSON; `lacks` are steps that the peer does not support.
    fn with_json_reports(peers: &Peers, lacks: &[String], revision: String) -> Self {
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
            progress: Progress::Any,
            excused_steps: Vec::new(),
        }
    }
}

/// Parsed output of a client.
pub(super) struct Outcome {
    /// Revision in the last line.
    pub(super) revision: Option<String>,
    /// Steps that the client has reported in JSON.
    steps: Vec<Step>,
    /// Complete standard output.
    text: String,
    /// True if the exit code of the client is a failure.
    failed: bool,
    /// Reason why a session failed regardless of its output.
    abort_reason: Option<String>,
}

/// Report of one step by a client that reports in JSON.
#[derive(Debug, Deserialize)]
struct Step {
    /// Name of the step.
    step: String,
    /// True if the step succeeded.
    ok: bool,
    /// Result or error of the step.
    #[serde(default)]
    detail: serde_json::Value,
}

impl Outcome {
    /// Parses the output of a client.
    pub(super) fn parse_output(ended: &ProcessResult) -> Self {
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
            revision: last.and_then(find_revision),
            steps: ended
                .stdout
                .lines()
                .filter_map(|line| serde_json::from_str(line).ok())
                .collect(),
            text: ended.stdout.clone(),
            failed: ended.status.and_then(|status| status.code()) == Some(1),
            abort_reason: end,
        }
    }

    /// Returns the deviations from the required outcome, one line each.
    pub(super) fn failures(&self, required_outcome: &RequiredOutcome) -> Vec<String> {
        match required_outcome {
            RequiredOutcome::Session(session) => self.session_failures(session),
            RequiredOutcome::Refusal if self.failed => Vec::new(),
            RequiredOutcome::Refusal => {
                let end = self
                    .abort_reason
                    .as_deref()
                    .unwrap_or("it ended with success");
                vec![format!("no revision is common, and still: {end}")]
            }
        }
    }

    /// Returns the deviations from a required session.
    fn session_failures(&self, required_outcome: &Session) -> Vec<String> {
        let mut failures = Vec::new();
        let failed = self.steps.iter().filter(|step| !step.ok);
        let (excused_steps, failed): (Vec<_>, Vec<_>) =
            failed.partition(|step| required_outcome.excused_steps.contains(&step.step));
        for step in failed {
            failures.push(format!("{}: {}", step.step, on_one_line(&step.detail)));
        }
        for name in &required_outcome.steps {
            let reported = match required_outcome.reports {
                Reports::Json => self.steps.iter().any(|step| step.step == *name),
                Reports::Text => self.text.lines().any(|line| starts_with_step(line, name)),
            };
            if !reported {
                failures.push(format!("{name}: not reported"));
            }
        }
        let answered = |step: &&Step| step.step == "cancel" && step.detail["answered"] == true;
        if let Some(step) = self.steps.iter().find(answered)
            && required_outcome.silent_after_cancel
        {
            let with = on_one_line(&step.detail["with"]);
            failures.push(format!(
                "cancel: the server answered a cancelled request: {with}"
            ));
        }
        failures.extend(required_outcome.progress.failure(&self.text));
        if self.revision.as_ref() != Some(&required_outcome.revision) {
            failures.push(format!(
                "the revision should be {}",
                required_outcome.revision
            ));
        }
        // A client whose step has failed ends with exit code 1.
        if excused_steps.is_empty() || !self.failed {
            failures.extend(self.abort_reason.clone());
        }
        failures
    }
}

/// Returns true if a line starts with the complete name of a step.
fn starts_with_step(line: &str, step: &str) -> bool {
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
fn find_revision(line: &str) -> Option<String> {
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

    /// Output of a client whose steps all succeed.
    const SUCCESSFUL_OUTPUT: &str = concat!(
        "{\"step\":\"ping\",\"ok\":true,\"detail\":\"answered\"}\n",
        "{\"step\":\"cancel\",\"ok\":true,\"detail\":{\"answered\":false}}\n",
        "{\"revision\":\"2025-06-18\"}\n",
    );

    /// Returns the requirements for the output in these tests.
    fn required_outcome(reports: Reports) -> RequiredOutcome {
        RequiredOutcome::Session(Session {
            revision: "2025-06-18".into(),
            steps: vec!["ping".into(), "cancel".into()],
            reports,
            silent_after_cancel: true,
            progress: Progress::Any,
            excused_steps: Vec::new(),
        })
    }

    /// Checks the deviations of an output from the requirements.
    fn check(stdout: &str, reports: Reports, failures: &[&str]) {
        let ended = ProcessResult {
            status: Some(ExitStatus::default()),
            stdout: stdout.into(),
            stderr: String::new(),
        };
        assert_eq!(
            Outcome::parse_output(&ended).failures(&required_outcome(reports)),
            failures
        );
    }

    /// A client that reports every required step and the negotiated revision has no failures, in both report formats.
    #[test]
    fn successful_session_has_no_failures() {
        check(SUCCESSFUL_OUTPUT, Reports::Json, &[]);
        check(
            "ping: ok\ncancel: ok\n\nrevision 2025-06-18\n",
            Reports::Text,
            &[],
        );
    }

    /// A failed step is reported as a failure with its name and the reason.
    #[test]
    fn failed_steps_are_named() {
        let stdout = SUCCESSFUL_OUTPUT.replace(
            "true,\"detail\":\"answered\"",
            "false,\"detail\":\"no\\nanswer\"",
        );
        check(&stdout, Reports::Json, &["ping: no answer"]);
    }

    /// A required step that the client does not report is a failure.
    #[test]
    fn missing_step_is_a_failure() {
        let stdout = "{\"step\":\"ping\",\"ok\":true}\n{\"revision\":\"2025-06-18\"}";
        check(stdout, Reports::Json, &["cancel: not reported"]);
        let text = "ping\nno cancel, cancelling\n2025-06-18";
        check(text, Reports::Text, &["cancel: not reported"]);
    }

    /// A session with another revision than the required one, or without a revision, is a failure.
    #[test]
    fn wrong_revision_is_a_failure() {
        let wanted = ["the revision should be 2025-06-18"];
        check(
            &SUCCESSFUL_OUTPUT.replace("06-18", "11-25"),
            Reports::Json,
            &wanted,
        );
        check(
            &SUCCESSFUL_OUTPUT.replace("\"2025-06-18\"", "null"),
            Reports::Json,
            &wanted,
        );
    }

    /// A missing progress notification is a failure if the complete progress is required. A server that may lose some
    /// while it resumes has at most one gap, and none before the cut or at the end.
    #[test]
    fn lost_progress_is_a_failure() {
        let succeeds = |values: &[usize], with_gap: bool| {
            let values: Vec<f64> = values.iter().map(|value| *value as f64).collect();
            let ended = ProcessResult {
                status: Some(ExitStatus::default()),
                stdout: format!("ping\ncancel\nprogress: {values:?}\n2025-06-18"),
                stderr: String::new(),
            };
            let required_outcome = required_outcome(Reports::Text).requiring_progress(with_gap);
            Outcome::parse_output(&ended)
                .failures(&required_outcome)
                .is_empty()
        };
        let all: Vec<usize> = (1..=PROGRESS_COUNT).collect();
        let without = |lost: &[usize]| -> Vec<usize> {
            all.iter()
                .copied()
                .filter(|value| !lost.contains(value))
                .collect()
        };
        let cases = [
            (all.clone(), true, true),
            (without(&[7]), false, true),
            (without(&[7, 8, 9]), false, true),
            (without(&[7, 9]), false, false),
            (without(&[1]), false, false),
            (without(&[20]), false, false),
            ([&all[..7], &all[6..]].concat(), false, false),
            (Vec::new(), false, false),
        ];
        for (values, whole, with_gap) in cases {
            assert_eq!(succeeds(&values, false), whole, "{values:?}");
            assert_eq!(succeeds(&values, true), with_gap, "{values:?}");
        }
    }

    /// A response to a cancelled request is a failure if our server must not send one.
    #[test]
    fn response_after_cancel_is_a_failure() {
        let stdout = SUCCESSFUL_OUTPUT.replace(
            "{\"answered\":false}",
            "{\"answered\":true,\"with\":\"late\"}",
        );
        let wanted = ["cancel: the server answered a cancelled request: late"];
        check(&stdout, Reports::Json, &wanted);
    }

    /// A client that was killed at the deadline has failed, whatever its output.
    #[test]
    fn timeouts_are_failures() {
        let ended = ProcessResult {
            status: None,
            stdout: SUCCESSFUL_OUTPUT.into(),
            stderr: String::new(),
        };
        let failures = Outcome::parse_output(&ended).failures(&required_outcome(Reports::Json));
        assert_eq!(failures, ["killed at the deadline"]);
    }

    /// Without a common revision, the client must exit with an error code; success, a panic, a signal and a timeout are
    /// failures.
    #[test]
    #[cfg(unix)]
    fn refusal_is_an_error_exit() {
        use std::os::unix::process::ExitStatusExt;

        let ended = |status: Option<i32>| {
            let ended = ProcessResult {
                status: status.map(ExitStatus::from_raw),
                stdout: String::new(),
                stderr: "failed: update the older one".into(),
            };
            Outcome::parse_output(&ended).failures(&RequiredOutcome::for_refusal())
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
