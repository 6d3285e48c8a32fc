//! Runs test programs, several at a time, with a line for each program. The output of a program is shown if it fails.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};

use super::Arguments;
use super::build::{Program, cargo};
use super::changed::Selection;

/// File in the target folder with the duration of each program in the last run, by which the slowest begin first.
const TIMES_FILE: &str = "target/test-times.txt";
/// Programs that run longest, the slowest first: they begin first in a folder where no run has left its durations.
const SLOW_PROGRAMS: [&str; 8] = [
    "mcp-exact-bridge bridge",
    "mcp-exact-tests-transport transport",
    "mcp-exact-cli cli",
    "mcp-exact-cli doctor",
    "mcp-exact-tests-agreement agreement",
    "xtask lib xtask",
    "codegen codegen",
    "mcp-exact it",
];
/// Folder of what the programs print.
const OUTPUT_FOLDER: &str = "target/test-output";
/// Time after which a program counts as hung: many times what the slowest one takes on a busy machine.
const PROGRAM_LIMIT: Duration = Duration::from_secs(1200);

/// One process of tests.
pub(super) struct Job {
    /// Name that the progress line shows.
    name: String,
    /// The process.
    command: Command,
}

/// Numbers of tests, by outcome.
#[derive(Debug, Default, Clone)]
pub(super) struct Summary {
    passed: usize,
    failed: usize,
    ignored: usize,
    programs: usize,
    /// Names of the programs that failed.
    failures: Vec<String>,
}

impl Summary {
    /// Adds the numbers of other programs.
    pub(super) fn add(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.ignored += other.ignored;
        self.programs += other.programs;
        self.failures.extend(other.failures);
    }

    /// Returns an error if a program failed, or no test ran.
    ///
    /// # Errors
    /// As described.
    pub(super) fn into_result(self) -> anyhow::Result<()> {
        if !self.failures.is_empty() {
            bail!("failed: {}", self.failures.join(", "));
        }
        if self.passed == 0 {
            bail!("no test ran");
        }
        Ok(())
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "tests: {} passed, {} failed, {} skipped",
            self.passed, self.failed, self.ignored
        )?;
        write!(f, "in {} programs", self.programs)
    }
}

/// Returns the jobs of a run: the doc tests first, because they take long, then the programs.
///
/// # Errors
/// Returns an error if cargo cannot be started.
pub(super) fn jobs(
    root: &Path,
    programs: &[Program],
    selection: &Selection,
    arguments: &Arguments,
) -> anyhow::Result<Vec<Job>> {
    let mut jobs = Vec::new();
    let mut command = cargo(root);
    command.args(["test", "--doc", "--no-fail-fast"]);
    command.args(selection.cargo_arguments());
    if matches!(selection, Selection::All) {
        command.args(["--features", "mcp-exact-cli/full"]);
    }
    command.args(&arguments.filter);
    jobs.push(Job {
        name: "doc tests".to_owned(),
        command,
    });
    jobs.extend(program_jobs(root, programs, arguments));
    Ok(jobs)
}

/// Returns the jobs of the programs, the slowest of the last run first; without durations of a last run, those that are known to
/// be slow, then the largest.
pub(super) fn program_jobs(root: &Path, programs: &[Program], arguments: &Arguments) -> Vec<Job> {
    let times = fs::read_to_string(root.join(TIMES_FILE)).unwrap_or_default();
    let times: HashMap<&str, u64> = times
        .lines()
        .filter_map(|line| {
            let (time, name) = line.split_once(' ')?;
            Some((name, time.parse().ok()?))
        })
        .collect();
    let mut jobs: Vec<(u64, u64, Job)> = programs
        .iter()
        .map(|program| {
            let name = format!("{} {}", program.package, program.target);
            let known = times.get(name.as_str()).copied();
            let known = known.unwrap_or_else(|| assumed_time(&name));
            let size = fs::metadata(&program.executable).map_or(0, |file| file.len());
            (known, size, job(program, name, arguments))
        })
        .collect();
    jobs.sort_by_key(|(time, size, _)| std::cmp::Reverse((*time, *size)));
    jobs.into_iter().map(|(_, _, job)| job).collect()
}

/// Returns a number by which the programs in [`SLOW_PROGRAMS`] precede others, in their order.
fn assumed_time(name: &str) -> u64 {
    let place = SLOW_PROGRAMS.iter().rev().position(|slow| *slow == name);
    place.map_or(0, |place| place as u64 + 1)
}

/// Returns the job of a program, with the environment that `cargo test` gives it.
fn job(program: &Program, name: String, arguments: &Arguments) -> Job {
    let mut command = Command::new(&program.executable);
    command
        .args(&arguments.filter)
        .current_dir(&program.folder)
        .env("CARGO_MANIFEST_DIR", &program.folder)
        .env("CARGO_PKG_NAME", &program.package);
    Job { name, command }
}

/// Runs the jobs, `at_once` at a time; prints a line for each, and the output of those that fail.
///
/// # Errors
/// Returns an error if a program cannot be started.
pub(super) fn run_all(
    root: &Path,
    jobs: Vec<Job>,
    at_once: Option<usize>,
) -> anyhow::Result<Summary> {
    let folder = root.join(OUTPUT_FOLDER);
    fs::create_dir_all(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
    let count = jobs.len();
    let at_once = at_once.unwrap_or_else(|| {
        // One more than processors: programs with sockets and processes wait for most of their time.
        std::thread::available_parallelism().map_or(2, std::num::NonZero::get) + 1
    });
    let queue: Mutex<VecDeque<(usize, Job)>> = Mutex::new(jobs.into_iter().enumerate().collect());
    let done = Mutex::new((Summary::default(), Vec::new()));
    let next = || queue.lock().ok()?.pop_front();
    std::thread::scope(|scope| -> anyhow::Result<()> {
        let worker = || -> anyhow::Result<()> {
            while let Some((number, job)) = next() {
                let output = folder.join(format!("{number}.txt"));
                let name = job.name.clone();
                let (summary, took) = run_job(job, &output, PROGRAM_LIMIT)?;
                let Ok(mut done) = done.lock() else {
                    bail!("a worker has panicked");
                };
                print_job(done.1.len() + 1, count, &name, &summary, took, &output)?;
                done.0.add(summary);
                done.1.push((took.as_millis(), name));
            }
            Ok(())
        };
        let workers: Vec<_> = (0..at_once.max(1)).map(|_| scope.spawn(worker)).collect();
        for worker in workers {
            match worker.join() {
                Ok(result) => result?,
                Err(_) => bail!("a worker has panicked"),
            }
        }
        Ok(())
    })?;
    let (summary, times) = done.into_inner().unwrap_or_default();
    let times: String = times
        .iter()
        .map(|(time, name)| format!("{time} {name}\n"))
        .collect();
    fs::write(root.join(TIMES_FILE), times)?;
    Ok(summary)
}

/// Runs a job and writes what it prints to the file `output`. A program that hangs is ended after the time `limit`: what
/// it has printed names the test.
fn run_job(mut job: Job, output: &PathBuf, limit: Duration) -> anyhow::Result<(Summary, Duration)> {
    let mut file =
        File::create(output).with_context(|| format!("cannot write {}", output.display()))?;
    let begun = Instant::now();
    let mut child = job
        .command
        .stdin(Stdio::null())
        .stdout(file.try_clone()?)
        .stderr(file.try_clone()?)
        .spawn()
        .with_context(|| format!("cannot start {}", job.name))?;
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break status;
        }
        if begun.elapsed() > limit {
            writeln!(file, "ended: it hung for {} s", limit.as_secs())?;
            // Without effect if it has ended just now.
            let _ = child.kill();
            break child.wait()?;
        }
        std::thread::sleep(Duration::from_millis(50));
    };
    let took = begun.elapsed();
    let text = fs::read(output)?;
    let mut summary = count(&String::from_utf8_lossy(&text));
    if !status.success() || summary.failed > 0 {
        summary.failures.push(job.name);
    }
    Ok((summary, took))
}

/// Sums the lines `test result: ok. 3 passed; 0 failed; 1 ignored; …` of an output.
fn count(output: &str) -> Summary {
    let mut summary = Summary::default();
    for line in output.lines() {
        let Some((_, counts)) = line
            .strip_prefix("test result: ")
            .and_then(|line| line.split_once(". "))
        else {
            continue;
        };
        summary.programs += 1;
        for part in counts.split("; ") {
            let Some((number, what)) = part.trim().split_once(' ') else {
                continue;
            };
            let Ok(number) = number.parse::<usize>() else {
                continue;
            };
            match what.trim_end_matches(';') {
                "passed" => summary.passed += number,
                "failed" => summary.failed += number,
                "ignored" => summary.ignored += number,
                _ => {}
            }
        }
    }
    summary
}

/// Prints the line of a job, and what it printed if it failed.
fn print_job(
    number: usize,
    count: usize,
    name: &str,
    summary: &Summary,
    took: Duration,
    output: &Path,
) -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    let outcome = if summary.failures.is_empty() {
        format!("{} passed", summary.passed)
    } else {
        format!(
            "FAILED: {} passed, {} failed",
            summary.passed, summary.failed
        )
    };
    writeln!(
        out,
        "[{number:>2}/{count}] {:>6.1} s  {name}: {outcome}",
        took.as_secs_f64()
    )?;
    if !summary.failures.is_empty() {
        out.write_all(&fs::read(output)?)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_of_all_programs_count() {
        let output = "running 3 tests\n\
            test result: ok. 2 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.01s\n\
            test result: FAILED. 4 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out\n";
        let summary = count(output);
        assert_eq!(
            (
                summary.passed,
                summary.failed,
                summary.ignored,
                summary.programs
            ),
            (6, 1, 1, 2)
        );
    }

    #[test]
    fn nothing_is_no_success() {
        assert!(Summary::default().into_result().is_err());
        let failed = Summary {
            passed: 1,
            failures: vec!["a program".to_owned()],
            ..Summary::default()
        };
        let error = failed.into_result().expect_err("a failure");
        assert_eq!(error.to_string(), "failed: a program");
    }

    /// A program that ends without a result, as by a signal, has failed; one that hangs is ended.
    #[test]
    fn programs_without_result_fail() {
        let job = |script: &str| Job {
            name: script.to_owned(),
            command: {
                let mut command = Command::new("sh");
                command.args(["-c", script]);
                command
            },
        };
        let folder = tempfile::tempdir().expect("a folder");
        let output = folder.path().join("output.txt");
        let run = |script: &str, limit: Duration| {
            run_job(job(script), &output, limit).expect("it starts").0
        };
        assert_eq!(run("kill -9 $$", PROGRAM_LIMIT).failures, ["kill -9 $$"]);
        assert!(run("exit 0", PROGRAM_LIMIT).failures.is_empty());
        // It prints nothing, which could come behind the note.
        let hangs = "exec sleep 1000";
        assert_eq!(run(hangs, Duration::ZERO).failures, [hangs]);
        let printed = fs::read_to_string(&output).expect("its output");
        assert!(printed.ends_with("ended: it hung for 0 s\n"), "{printed}");
    }
}
