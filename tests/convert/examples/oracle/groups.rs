//! Documented groups of differences between the recorded conversions of an earlier implementation and the current
//! conversions. Each group is caused by a rule that was added later, and is recognised by the text of its refusals or
//! losses; `docs/conversions.md` describes the rules.

use serde_json::Value;

/// Kind of a difference between the recorded outcome and the current one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The outcomes differ only in the texts of the refusal or of the losses.
    Words,
    /// Both outcomes are refusals, with different JSON pointers.
    Refusal,
    /// The recorded outcome is a refusal, and the current outcome is a conversion.
    Converted,
    /// The recorded outcome is a conversion, and the current outcome is a refusal.
    Refused,
    /// Both outcomes are conversions, with different outputs.
    Output,
    /// Both outcomes are conversions, with equal outputs and different losses.
    Losses,
}

/// Difference between the recorded and the current outcome of one conversion.
pub struct Difference<'d> {
    /// Kind of the difference.
    pub kind: Kind,
    /// Outcome that the recording contains.
    pub recorded: &'d Value,
    /// Outcome of the current implementation.
    pub current: &'d Value,
    /// Name of the definition or the method.
    pub name: &'d str,
    /// Identifier of the target revision.
    pub target: &'d str,
}

/// Parts of texts of refusals that only the current implementation has, each with the group of the difference.
const REFUSED: &[(&str, &str)] = &[
    ("has no form before 2026-07-28", UNFINISHED_RESULTS),
    ("asks for input and is not finished", UNFINISHED_RESULTS),
    ("now it decides what the message means", UNFINISHED_RESULTS),
    ("has no form for what the user answered", INPUT_RESPONSES),
    ("has no retries", INPUT_RESPONSES),
    ("has no tasks, and a handle is not a result", TASKS),
];

/// Parts of texts of refusals that only the recorded implementation had, each with the group of the difference.
const NOT_REFUSED: &[(&str, &str)] = &[
    ("sampling has no tools up to 2025-06-18, and", ABSENCE),
    ("a result asks for input (`input_required`)", CODES),
    (
        "give it in the context",
        "requests whose text has an id keep it",
    ),
];

/// Parts of texts of losses that only the current implementation has, each with the group of the difference.
const LOSSES: &[(&str, &str)] = &[
    (
        "free before, reserved now",
        "reserved metadata of older requests have no meaning",
    ),
    ("has no tasks", TASKS),
    ("the handle of a task", TASKS),
    ("task execution", TASKS),
    ("any value in", GAINED),
    ("does not define this part", GAINED),
    ("a code of its sender's own", CODES),
    ("no elicitation by URL; the call fails", CODES),
    ("2026-07-28 reserves this code", CODES),
    ("this client takes elicitation by URL only", MODES),
    ("initialize names the revision", INITIALIZE),
    ("a text block carries the JSON", HINTS),
    ("values and titles become enum", HINTS),
    ("it means the same as absence", ABSENCE),
];

/// Group of differences that concern refusals of unfinished results.
const UNFINISHED_RESULTS: &str = "results that are not finished are refused";
/// Group of differences that concern refusals of input responses and request states.
const INPUT_RESPONSES: &str = "answers of the user and states of retries are refused";
/// Group of differences that concern refusals and losses of tasks.
const TASKS: &str = "tasks are refused or reported";
/// Group of differences that concern values with the same meaning as absence.
const ABSENCE: &str = "what says the same as absence is not a loss";
/// Group of differences that concern error codes.
const CODES: &str = "codes of errors keep their meaning";
/// Group of differences that concern elicitation modes.
const MODES: &str = "modes of elicitation are not taken for forms";
/// Group of differences that concern revision identifiers in `initialize` messages.
const INITIALIZE: &str = "initialize names the revision of the message";
/// Group of differences that concern members that the source revision does not define and the target would obey.
const GAINED: &str = "members without meaning in older revisions do not get one";
/// Group of differences that concern newer members that determine the meaning of a message.
const HINTS: &str = "newer members that decide the meaning do not stay";

/// Names of the definitions that contain an `initialize` message, and its method. The recorded implementation passed
/// their text between the first three revisions unchanged and unparsed.
const WITH_INITIALIZE: [&str; 7] = [
    "initialize",
    "ClientRequest",
    "InitializeRequest",
    "InitializeRequestParams",
    "InitializeResult",
    "JSONRPCMessage",
    "ServerResult",
];

impl Difference<'_> {
    /// Returns the documented group of the difference; `None` if the difference is not documented.
    pub fn group(&self) -> Option<&'static str> {
        let named = |table: &[(&'static str, &'static str)], text: &str| {
            let row = table.iter().find(|(words, _)| text.contains(words));
            row.map(|(_, group)| *group)
        };
        let (recorded, current) = (reason(self.recorded), reason(self.current));
        match self.kind {
            Kind::Words => Some("other words, which tell what a peer sees"),
            Kind::Refused => named(REFUSED, current).or_else(|| self.newly_parsed_group(current)),
            Kind::Refusal => named(REFUSED, current)
                .or_else(|| named(NOT_REFUSED, recorded))
                .or_else(|| self.text_order_group()),
            Kind::Converted => named(NOT_REFUSED, recorded).or_else(|| self.lenient_group()),
            Kind::Output | Kind::Losses => {
                let mut added = self.added_values().into_iter();
                let group = added.find_map(|loss| named(LOSSES, reason(loss)));
                let is_shorter = || self.kind == Kind::Losses && self.has_fewer_repetitions();
                group.or_else(|| is_shorter().then_some("a loss of several steps is reported once"))
            }
        }
    }

    /// Returns the group of a refusal of a value that the recorded implementation passed unparsed and that the current
    /// implementation parses; `current` is the reason of the refusal.
    fn newly_parsed_group(&self, current: &str) -> Option<&'static str> {
        let passed = self.recorded[0] == "same" && losses(self.recorded).is_empty();
        // The recorded implementation added absent params.
        let passed = passed || self.name == "initialize";
        if passed && current.starts_with("no error: ") {
            return Some(CODES);
        }
        if current.starts_with("no counterpart in") && self.name.starts_with("Elicit") {
            return Some(MODES);
        }
        let is_initialize = current.starts_with("no `") && WITH_INITIALIZE.contains(&self.name);
        (passed && is_initialize).then_some(INITIALIZE)
    }

    /// Returns the group of refusals that report another one of several errors. A union that becomes one definition is
    /// decoded again in the target revision; if the decoding fails, the current refusal reports the first error in the
    /// order of the text, and the recorded refusal the first error in the order of the schema.
    fn text_order_group(&self) -> Option<&'static str> {
        let is_one = self.name == "ClientNotification" && self.target == "2026-07-28";
        is_one.then_some("the first error in the order of the text is the reason")
    }

    /// Returns the group of conversions that the recorded implementation refused because a value, which the source
    /// revision does not define, violates a rule of the target revision.
    fn lenient_group(&self) -> Option<&'static str> {
        let is_reported = losses(self.current)
            .iter()
            .any(|loss| reason(loss).starts_with("free before"));
        is_reported.then_some("unknown values that break a rule stay or are left out")
    }

    /// Returns the losses that the current outcome has and the recorded outcome has not.
    fn added_values(&self) -> Vec<&Value> {
        let recorded = losses(self.recorded);
        let current = losses(self.current).iter();
        current.filter(|loss| !recorded.contains(loss)).collect()
    }

    /// Returns true if the current outcome has fewer losses than the recorded outcome, and only at JSON pointers of
    /// recorded losses.
    fn has_fewer_repetitions(&self) -> bool {
        let recorded = losses(self.recorded);
        let current = losses(self.current);
        let is_known = |loss: &Value| recorded.iter().any(|known| known[0] == loss[0]);
        current.len() < recorded.len() && current.iter().all(is_known)
    }
}

/// Returns the text that explains a refusal or a loss in its recorded form.
fn reason(of: &Value) -> &str {
    of[2].as_str().unwrap_or_default()
}

/// Returns the losses of a recorded or current outcome; empty for a refusal.
fn losses(outcome: &Value) -> &[Value] {
    let of = if outcome[0] == "same" {
        &outcome[1]
    } else {
        &outcome[2]
    };
    of.as_array().map_or(&[], Vec::as_slice)
}
