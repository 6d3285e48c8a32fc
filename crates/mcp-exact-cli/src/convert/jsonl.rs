//! `mcp-exact convert --jsonl`: one conversion per line of standard input, so that one process serves a complete test
//! run in any language.
//!
//! Every output line has the members `json`, `losses` and `error`, and a `note` if neither revision defines the method.
//! An invalid input line yields an error with its line number, and the next line is processed.

use std::borrow::Cow;

use mcp_exact_wire::{JsonObject, RequestId};
use serde::Deserialize;

use super::job::{Answer, InvalidOptions, JobOptions};
use crate::Outcome;
use crate::jsonl::{answer_lines, parse_input};
use crate::message::{Direction, Part};
use crate::subject::OptionNames;

/// Form of an input line, for error messages.
const EXPECTED_OBJECT: &str = r#"{"revision", "to", "type", "json"}"#;

/// Conversion that an input line requests.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct InputLine<'a> {
    /// Revision of the document.
    #[serde(borrow, alias = "from")]
    revision: Cow<'a, str>,
    /// Revision to which the document is converted.
    #[serde(borrow)]
    to: Cow<'a, str>,
    /// Name of the definition of which the document is a value.
    #[serde(borrow, rename = "type", default)]
    definition: Option<Cow<'a, str>>,
    /// Method of the document; for a result or an error, the method of the answered request.
    #[serde(borrow, default)]
    method: Option<Cow<'a, str>>,
    /// Sender of the message.
    #[serde(default)]
    direction: Option<Direction>,
    /// Part of a message that the document contains; `None` for a complete message.
    #[serde(default, alias = "kind")]
    part: Option<Part>,
    /// True if a conversion with losses yields an error instead of a document.
    #[serde(default)]
    strict: Option<bool>,
    /// True if members that only the newer revision defines are kept.
    #[serde(default)]
    keep_newer: Option<bool>,
    /// Id of the request, for definitions that include it.
    #[serde(default)]
    id: Option<RequestId>,
    /// Members of `_meta` that requests of 2026-07-28 require and that older requests lack.
    #[serde(default)]
    meta: Option<JsonObject>,
    /// URI of the `resources/read` request, for its responses.
    #[serde(borrow, default)]
    uri: Option<Cow<'a, str>>,
    /// Text of the document.
    #[serde(borrow)]
    json: Cow<'a, str>,
}

/// Converts the lines of standard input.
pub fn run() -> anyhow::Result<Outcome> {
    answer_lines(|number, line, out| {
        let answer = convert_text(line)
            .unwrap_or_else(|problem| Answer::failed(format!("line {number}: {problem}")));
        serde_json::to_writer(out, &answer)
    })
}

/// Converts the document of an input line; returns an error if the line is invalid.
fn convert_text(line: &[u8]) -> Result<Answer, String> {
    let question: InputLine = parse_input(line, EXPECTED_OBJECT)?;
    let wishes = JobOptions {
        from: &question.revision,
        to: &question.to,
        definition: question.definition.as_deref(),
        method: question.method.as_deref(),
        direction: question.direction,
        kind: question.part,
        strict: question.strict.unwrap_or_default(),
        keep_newer: question.keep_newer.unwrap_or_default(),
        id: question.id.as_ref(),
        meta: question.meta.as_ref(),
        uri: question.uri.as_deref(),
        names: OptionNames::Members,
    };
    let job = wishes.validate().map_err(|unfit| match unfit {
        InvalidOptions::Name(unknown) => unknown.problem,
        InvalidOptions::Contradiction(problem) => problem,
    })?;
    Ok(job.convert_text(&question.json))
}
