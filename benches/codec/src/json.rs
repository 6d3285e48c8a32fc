//! JSON form of the results of a run, for evaluation by other programs.

use serde_json::{Value, json};

use crate::compare::{Operation, Run};
use crate::measure::{Figures as Measured, Row};
use crate::revisions::Figures;
use crate::threshold::Verdict;

/// Returns the results of a run, the thresholds and the results by revision as one JSON document.
pub fn document(run: &Run, verdicts: &[Verdict], revisions: &[Figures]) -> Value {
    let libraries: Vec<Value> = (0..run.libraries.len())
        .map(|index| library(run, index))
        .collect();
    let messages: Vec<Value> = run.rows.iter().map(|row| message(run, row)).collect();
    let must_show: Vec<Value> = verdicts
        .iter()
        .map(|verdict| {
            json!({
                "demand": verdict.demand,
                "measured": verdict.measured,
                "ok": verdict.ok,
                "note": verdict.note,
            })
        })
        .collect();
    json!({
        "date": run.date,
        "samples": run.effort.samples,
        "sampleMicroseconds": u64::try_from(run.effort.sample.as_micros()).unwrap_or(u64::MAX),
        "libraries": libraries,
        "messages": messages,
        "revisions": revisions.iter().map(revision).collect::<Vec<Value>>(),
        "mustShow": must_show,
    })
}

/// Returns the measurements of one revision as JSON.
fn revision(figures: &Figures) -> Value {
    json!({
        "revision": figures.revision,
        "messages": figures.messages,
        "decodeToValue": figures.decode,
        "encodeToValue": figures.encode,
    })
}

/// Returns the name of a library, and its geometric means relative to the baseline and to our library, as JSON.
fn library(run: &Run, index: usize) -> Value {
    let mean = |operation, base| run.mean(operation, index, base).map(|mean| mean.0);
    json!({
        "name": run.libraries[index].0,
        "decodeToValue": mean(Operation::Decode, run.baseline),
        "encodeToValue": mean(Operation::Encode, run.baseline),
        "decodeToOurs": mean(Operation::Decode, run.ours),
        "encodeToOurs": mean(Operation::Encode, run.ours),
    })
}

/// Returns the measurements of all libraries for one message as JSON.
fn message(run: &Run, row: &Row) -> Value {
    let results: serde_json::Map<String, Value> = run
        .libraries
        .iter()
        .zip(&row.cells)
        .map(|((name, _), cell)| {
            (
                (*name).to_owned(),
                cell.as_ref()
                    .map_or_else(|reason| json!({ "out": reason }), figures),
            )
        })
        .collect();
    json!({
        "name": row.entry.name,
        "revision": row.entry.revision(),
        "layout": row.entry.layout.name(),
        "bytes": row.entry.bytes.len(),
        "results": results,
    })
}

/// Returns the measurements of one library for one message as JSON.
fn figures(figures: &Measured) -> Value {
    json!({
        "decodeNs": figures.decode.min,
        "decodeMedianNs": figures.decode.median,
        "encodeNs": figures.encode.map(|time| time.min),
        "encodeMedianNs": figures.encode.map(|time| time.median),
        "allocations": figures.heap.count,
        "allocatedBytes": figures.heap.bytes,
        "peakBytes": figures.heap.peak,
        "equal": figures.equal,
    })
}
