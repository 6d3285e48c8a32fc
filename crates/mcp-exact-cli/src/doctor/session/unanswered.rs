//! Findings of a session, among them the end of the server and its silence.

use mcp_exact_revisions::Lifecycle;
use serde_json::Value;

use super::{Answer, Channel, Evidence, Session};
use crate::conversation::Breach;
use crate::rules::{self, Rule};

/// Number of requests in a row without an answer after which a server has fallen silent.
const MAX_SILENCES: usize = 3;

impl Session<'_> {
    /// Adds a violation to the report, unless the server has ended before: then its silence is none.
    pub fn report_breach(&mut self, rule: &'static Rule, message: impl Into<String>) {
        if !self.is_over {
            self.add_breach(rule, message, Evidence::default());
        }
    }

    /// Adds a violation by the pending request, or by what the evidence names.
    pub(super) fn add_breach(
        &mut self,
        rule: &'static Rule,
        message: impl Into<String>,
        evidence: Evidence,
    ) {
        let subject = evidence.subject.or_else(|| self.subject.clone());
        let evidence = Evidence {
            subject,
            ..evidence
        };
        self.report
            .add(self.revision, &Breach::new(rule, message), evidence);
    }

    /// Adds a violation by an entry of a list, which has a name.
    pub fn report_entry(&mut self, rule: &'static Rule, subject: String, message: String) {
        let evidence = Evidence {
            subject: Some(subject),
            ..Evidence::default()
        };
        self.add_breach(rule, message, evidence);
    }

    /// Records that the server is examined by rules.
    pub fn examine(&mut self, rules: &[&'static Rule]) {
        if !self.is_over {
            self.report.examine(self.revision, rules);
        }
    }

    /// Records that the server is examined by the rules of all messages.
    pub fn examine_messages(&mut self) {
        let lifecycle = if self.is_stateless {
            Lifecycle::Discover
        } else {
            Lifecycle::Initialize
        };
        let mut rules = rules::OF_ALL_MESSAGES.to_vec();
        if matches!(self.channel, Channel::Process(_)) {
            rules.extend([&rules::NO_NEWLINE, &rules::STDOUT_CLEAN]);
        }
        rules.retain(|rule| rule.is_of(lifecycle));
        self.examine(&rules);
    }

    /// Records the tools that the server lists.
    pub fn add_tools(&mut self, tools: &[Value]) {
        self.report.add_tools(tools);
    }

    /// Records that a tool was called.
    pub fn add_call(&mut self, name: &str) {
        self.report.add_call(name);
    }

    /// Reports a request that was not answered: the end of the server, its silence, or a status without a message.
    pub fn report_unanswered(&mut self, what: &str, answer: &Answer) {
        match answer {
            Answer::End => self.report_end(what),
            Answer::Timeout if self.is_streamable_http() => {
                self.report_breach(&rules::ANSWERED, format!("{what} got no response"));
            }
            Answer::Timeout => {
                let seconds = self.limit.as_secs();
                let message = format!("{what} was not answered within {seconds} s");
                self.report_breach(&rules::ANSWERED, message);
            }
            Answer::Status(status) => {
                let message = format!("{what} was answered with status {status} and no message");
                self.report_breach(&rules::ANSWERED, message);
            }
            Answer::Result(_) | Answer::Error(..) => {}
        }
    }

    /// Reports that the server has ended, with its last words, and ends the session.
    pub fn report_end(&mut self, what: &str) {
        if self.is_over {
            return;
        }
        self.is_over = true;
        let (how, last_words) = match self.last_words() {
            Some((status, words)) => (format!("the server exits ({status})"), words),
            None => ("the server closes its output".to_owned(), Vec::new()),
        };
        let message =
            format!("{how} instead of answering {what}; what comes after it was not examined");
        let evidence = Evidence {
            last_words,
            ..Evidence::default()
        };
        self.add_breach(&rules::ANSWERED, message, evidence);
    }

    /// Counts requests without an answer, and ends the session if there are several in a row.
    pub(super) fn count_silence(&mut self, method: &str, answer: &Answer) {
        if !answer.is_silence() {
            self.silences = 0;
            return;
        }
        self.silences += 1;
        if self.silences == MAX_SILENCES && !self.is_over {
            let message = format!(
                "{method} and the requests before it were not answered: the server has fallen silent, and what comes after was not examined"
            );
            self.add_breach(&rules::ANSWERED, message, Evidence::default());
            self.is_over = true;
        }
    }
}
