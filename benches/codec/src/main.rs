//! Measures the decoding and encoding of MCP messages by several libraries in one run, and prints a report. Options:
//! `--quick`, `--only NAME`, `--json FILE`, `--svg FILE`.

mod compare;
mod contestant;
mod corpus;
mod entry;
mod heap;
mod instructions;
mod json;
mod libraries;
mod markdown;
mod measure;
mod report;
mod revisions;
mod svg;
#[cfg(test)]
mod tests;
mod threshold;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use bench_record::date;
use compare::Run;
use measure::Effort;

/// Global allocator, which counts the allocations of the measured libraries.
#[global_allocator]
static ALLOCATOR: heap::Counting = heap::Counting;

/// Text of `--help`.
const USAGE: &str = "\
usage: codec-bench [--quick] [--only NAME] [--json FILE] [--svg FILE] [--markdown FILE] [--instructions]

  --quick      few short samples: to see that it works, not to quote
  --only NAME  only messages whose name contains NAME; may be given again
  --json FILE  write everything that was measured to FILE
  --svg FILE   write a bar chart of the geometric means to FILE
  --markdown FILE
               write the report to FILE as a page of the documentation
  --instructions
               count instructions with valgrind instead, for eight messages or those of --only";

/// Number and duration of samples without `--quick`.
const FULL_EFFORT: Effort = Effort {
    samples: 15,
    sample: Duration::from_millis(3),
};

/// Number and duration of samples with `--quick`.
const QUICK_EFFORT: Effort = Effort {
    samples: 3,
    sample: Duration::from_millis(1),
};

/// Options of the command line.
struct Arguments {
    /// Number and duration of the samples.
    effort: Effort,
    /// Parts of the names of the messages to measure; empty to measure all messages.
    only: Vec<String>,
    /// Path of the JSON file to write.
    json: Option<PathBuf>,
    /// Path of the SVG chart to write.
    svg: Option<PathBuf>,
    /// Path of the Markdown page to write.
    markdown: Option<PathBuf>,
    /// True if instructions are counted and no times are measured.
    instructions: bool,
}

fn main() -> ExitCode {
    let mut given = std::env::args().skip(1);
    if std::env::args().any(|argument| argument == "--help" || argument == "-h") {
        println!("{USAGE}");
        return ExitCode::SUCCESS;
    }
    let all: Vec<String> = std::env::args().skip(1).collect();
    let done = match all
        .iter()
        .map(String::as_str)
        .collect::<Vec<_>>()
        .as_slice()
    {
        ["--repeat", name, who, work, times] => instructions::repeat(name, who, work, times),
        _ => parse(&mut given).and_then(|arguments| run(&arguments)),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Parses the options of the command line.
fn parse(given: &mut dyn Iterator<Item = String>) -> Result<Arguments, String> {
    let mut arguments = Arguments {
        effort: FULL_EFFORT,
        only: Vec::new(),
        json: None,
        svg: None,
        markdown: None,
        instructions: false,
    };
    while let Some(argument) = given.next() {
        let mut value = || {
            given
                .next()
                .ok_or(format!("{argument} needs a value\n\n{USAGE}"))
        };
        match argument.as_str() {
            "--instructions" => arguments.instructions = true,
            "--quick" => arguments.effort = QUICK_EFFORT,
            "--only" => arguments.only.push(value()?),
            "--json" => arguments.json = Some(value()?.into()),
            "--svg" => arguments.svg = Some(value()?.into()),
            "--markdown" => arguments.markdown = Some(value()?.into()),
            _ => return Err(format!("unknown argument {argument}\n\n{USAGE}")),
        }
    }
    Ok(arguments)
}

/// Runs the benchmark with these options, prints the report and writes the requested files.
fn run(arguments: &Arguments) -> Result<(), String> {
    if cfg!(debug_assertions) {
        eprintln!("warning: this is a debug build; its numbers mean nothing");
    }
    if arguments.instructions {
        let table = instructions::table(&arguments.only)?;
        print!("{table}");
        return match &arguments.markdown {
            Some(path) => write(path, &markdown::instructions(&date::today(), &table)),
            None => Ok(()),
        };
    }
    let libraries = contestant::all();
    let mut entries = corpus::corpus();
    if !arguments.only.is_empty() {
        entries.retain(|entry| arguments.only.iter().any(|name| entry.name.contains(name)));
    }
    let mut rows = Vec::with_capacity(entries.len());
    for entry in entries {
        rows.push(measure::row(entry, &libraries, arguments.effort));
    }
    let run = Run::new(date::today(), arguments.effort, &libraries, rows);
    let verdicts = threshold::verdicts(&run);
    let revisions = if arguments.only.is_empty() {
        revisions::figures(arguments.effort)
    } else {
        Vec::new()
    };
    let report = report::text(&run) + &revisions::text(&revisions);
    print!("{report}{}", threshold::text(&verdicts));
    if let Some(path) = &arguments.json {
        let document = json::document(&run, &verdicts, &revisions);
        write(path, &format!("{document:#}\n"))?;
    }
    if let Some(path) = &arguments.svg {
        write(path, &svg::chart(&run))?;
    }
    if let Some(path) = &arguments.markdown {
        write(path, &markdown::page(&run, &verdicts, &report))?;
    }
    Ok(())
}

/// Writes a file; the error names the path.
fn write(path: &PathBuf, text: &str) -> Result<(), String> {
    std::fs::write(path, text).map_err(|error| format!("cannot write {}: {error}", path.display()))
}
