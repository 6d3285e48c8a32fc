//! `mcp-exact doctor`: sends requests to a server in every revision that it supports, and reports the violated rules,
//! each with the sentence of the specification that states the rule.

mod answer;
mod channel;
mod checks;
mod examined;
#[cfg(feature = "http")]
mod http;
#[cfg(feature = "http")]
mod http_checks;
mod junit;
mod output;
mod report;
mod session;
#[cfg(feature = "http")]
mod sse;
mod stateless;

use std::ffi::OsString;

use anyhow::{Context, bail};
use clap::Args;
use mcp_exact_revisions::{Lifecycle, RevisionSpec, method};
use serde_json::{Value, json};

use crate::Outcome;
use crate::conversation::Breach;
use crate::interrupt;
use crate::names::suggest;
use crate::output::is_standard_stream;
use crate::registry::Registry;
use crate::rules::{self, Level};
use crate::server_address::{self, Given};
use crate::terminal::stderr;
use crate::time_limit;
use channel::Server;
use checks::{ToolCall, UNKNOWN_REVISION};
use examined::ExaminedServer;
use output::Formats;
use report::{Evidence, Report};
use session::{Answer, Session, Settings};

/// The arguments of `mcp-exact doctor`.
#[derive(Args)]
#[command(after_help = "\
Examples:

  mcp-exact doctor node server.js
  mcp-exact doctor --call 'add={\"a\": 1, \"b\": 2}' -- node server.js
  mcp-exact doctor --strict --junit doctor.xml https://example.com/mcp

Each revision is tried with a process or session of its own. Tools are called only if they say that they just read \
(readOnlyHint) and need no arguments, or if --call names them; the report ends with those that were not called. Resources are read and prompts are got, a few of each.

The newest revision of each lifecycle that the server speaks decides: that with `initialize` and that with `server/discover`. \
Older ones are examined with --all-revisions.

Exit code: 0 no MUST is violated (with --strict: and no SHOULD), 1 one is, 2 wrong usage, or the server cannot be reached.")]
pub struct Arguments {
    /// Examine the server in these revisions only.
    #[arg(long, short, value_name = "R")]
    revision: Vec<String>,
    /// Examine the server in all revisions that it speaks, not just the newest of each lifecycle.
    #[arg(long, conflicts_with = "revision")]
    all_revisions: bool,
    /// Call a tool, with its arguments as JSON: --call 'add={"a": 1, "b": 2}'.
    #[arg(long, value_name = "TOOL=JSON")]
    call: Vec<String>,
    /// Take violations of SHOULD as seriously as those of MUST.
    #[arg(long)]
    strict: bool,
    /// Seconds to wait for an answer; without it 10, and 60 for the first one, because the command may install the server.
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..))]
    timeout: Option<u64>,
    /// Add a header to each HTTP request, such as `Authorization: Bearer …`.
    #[arg(long, value_name = "NAME: VALUE")]
    header: Vec<String>,
    /// Set a variable in the environment of the server's process.
    #[arg(long, value_name = "NAME=VALUE")]
    env: Vec<String>,
    /// Print each message to standard error.
    #[arg(long)]
    trace: bool,
    #[command(flatten)]
    formats: Formats,
    #[cfg(feature = "oauth")]
    #[command(flatten)]
    authorization: crate::client::authorization::Authorization,
    #[cfg(feature = "oauth")]
    #[command(flatten)]
    certificates: crate::client::certificates::Certificates,
    /// The URL of the server, or the command that starts it with its arguments. Options go before it.
    #[arg(
        value_name = "COMMAND|URL",
        required = true,
        trailing_var_arg = true,
        allow_hyphen_values = true
    )]
    server: Vec<OsString>,
}

/// Examines the server and prints the report.
pub fn run(arguments: &Arguments) -> anyhow::Result<Outcome> {
    let is_junit_printed = arguments
        .formats
        .junit
        .as_deref()
        .is_some_and(is_standard_stream);
    if arguments.formats.json && is_junit_printed {
        bail!("--json and `--junit -` would both write to standard output; give --junit a file");
    }
    interrupt::end_processes_on_signals()?;
    let examination = examine(arguments);
    let _ = stderr().clear_line();
    let (examined, report) = match examination {
        Ok(found) => found,
        Err(error) => {
            if !error.is::<interrupt::Interrupted>() {
                output::print_failure(&arguments.formats, &error)?;
            }
            return Err(error);
        }
    };
    output::print(&arguments.formats, arguments.strict, &examined, &report)?;
    let is_well =
        report.count(Level::Must) == 0 && !(arguments.strict && report.count(Level::Should) > 0);
    Ok(if is_well {
        Outcome::Valid
    } else {
        Outcome::Invalid
    })
}

/// Examines the server; returns what it is, and the findings.
fn examine(arguments: &Arguments) -> anyhow::Result<(ExaminedServer, Report)> {
    let mut selected_revisions = Vec::new();
    for id in &arguments.revision {
        selected_revisions.push(Registry::new().revision(id)?.revision.spec);
    }
    #[cfg_attr(
        not(feature = "http"),
        expect(unused_mut, reason = "URLs are tried twice")
    )]
    let mut doctor = Doctor {
        server: parse_server(arguments)?,
        settings: Settings {
            limit: time_limit::from_seconds(arguments.timeout.unwrap_or(10)),
            start_limit: time_limit::from_seconds(arguments.timeout.unwrap_or(60)),
            is_tracing: arguments.trace,
            shows_stderr: arguments.trace,
            shows_progress: !arguments.trace && stderr().is_terminal(),
        },
        examines_all: arguments.all_revisions,
        calls: arguments
            .call
            .iter()
            .map(|text| parse_tool_call(text))
            .collect::<Result<_, _>>()?,
        selected_revisions,
    };
    let mut report = Report::default();
    #[cfg_attr(
        not(feature = "http"),
        expect(unused_mut, reason = "URLs are tried twice")
    )]
    let mut examined = doctor.examine(&mut report)?;
    #[cfg(feature = "http")]
    if examined.revisions.is_empty()
        && let Some(sse) = doctor.server.as_sse()
    {
        // A URL of HTTP+SSE may have any path.
        doctor.server = sse;
        let mut other = Report::default();
        let found = doctor.examine(&mut other)?;
        if !found.revisions.is_empty() {
            (examined, report) = (found, other);
        }
    }
    if examined.revisions.is_empty() && report.count(Level::Must) == 0 {
        return Err(examined.explain_silence(&doctor.server));
    }
    refuse_unlisted_calls(&doctor.calls, &report)?;
    Ok((examined, report))
}

/// Returns an error if the server does not list a tool that is to be called. A server that has failed before it gave a list may
/// have the tool.
fn refuse_unlisted_calls(calls: &[ToolCall], report: &Report) -> anyhow::Result<()> {
    let is_listed = |call: &&ToolCall| report.tool_names().any(|name| name == call.name);
    let Some(unlisted) = calls.iter().find(|call| !is_listed(call)) else {
        return Ok(());
    };
    if !report.has_tools && report.count(Level::Must) > 0 {
        return Ok(());
    }
    let mut problem = format!("--call: the server has no tool `{}`", unlisted.name);
    suggest(&mut problem, &unlisted.name, report.tool_names());
    bail!(problem)
}

/// Returns the server that the command line specifies: a URL or a command.
fn parse_server(arguments: &Arguments) -> anyhow::Result<Server> {
    refuse_assignments(arguments)?;
    let given = Given {
        env: &arguments.env,
        headers: &arguments.header,
    };
    let named = crate::process::resolve(&arguments.server, given)?;
    let Some(url) = server_address::parse_url(&named.words)? else {
        #[cfg(feature = "oauth")]
        if let Some(option) = arguments.certificates.first_option() {
            anyhow::bail!("a command gets no HTTP requests; leave `{option}` out");
        }
        if !arguments.header.is_empty() {
            bail!(
                "a command gets no HTTP requests; leave `--header` out, or give it values by `--env`"
            );
        }
        return Ok(Server::Command(named.words));
    };
    if !arguments.env.is_empty() {
        bail!("a server at a URL has no process here; leave `--env` out");
    }
    #[cfg(feature = "http")]
    {
        crate::client::url::check_scheme(url, cfg!(feature = "oauth"))?;
        let headers = [named.headers.as_slice(), &arguments.header].concat();
        let options = mcp_exact::transport::http::client::HyperOptions::default();
        #[cfg(feature = "oauth")]
        let options = {
            arguments.certificates.check_url(url)?;
            arguments.certificates.read(options)?
        };
        let target = http::Target::new(url, &headers, options.clone())?;
        #[cfg(feature = "oauth")]
        let target = target.authorize(arguments.authorization.oauth()?.http_options(options))?;
        let target = std::sync::Arc::new(target);
        let is_sse = sse::is_sse_url(url);
        Ok(if is_sse {
            Server::Sse(target)
        } else {
            Server::Url(target)
        })
    }
    #[cfg(not(feature = "http"))]
    anyhow::bail!(
        "cannot reach {url}: this program was built without HTTP; install it with `--features http`"
    );
}

/// Returns an error if arguments of a tool stand where the command begins, as they may for `mcp-exact call`.
fn refuse_assignments(arguments: &Arguments) -> anyhow::Result<()> {
    let words = arguments.server.iter().map(|word| word.to_str());
    let words = words.map_while(|word| word.filter(|word| server_address::is_assignment(word)));
    let words: Vec<&str> = words.collect();
    let call = arguments.call.last().filter(|call| !call.contains('='));
    let (Some(first), Some(tool)) = (words.first(), call) else {
        return Ok(());
    };
    let pairs = words.iter().filter_map(|word| word.split_once('='));
    let pairs = pairs.map(|(name, text)| {
        let value = serde_json::from_str(text).unwrap_or_else(|_| Value::from(text));
        (name.to_owned(), value)
    });
    let object = Value::Object(pairs.collect());
    bail!(
        "`{first}` is not a command; --call takes all arguments as JSON: --call '{tool}={object}'"
    )
}

/// Parses a tool call of the form `TOOL=JSON`, or `TOOL` without arguments.
fn parse_tool_call(text: &str) -> anyhow::Result<ToolCall> {
    let (name, json) = text.split_once('=').unwrap_or((text, "{}"));
    let arguments: Value = serde_json::from_str(json).with_context(|| {
        format!("--call: the arguments of {name} are no JSON; write them as in --call 'add={{\"a\": 1}}'")
    })?;
    Ok(ToolCall {
        name: name.to_owned(),
        arguments,
    })
}

/// Options of the examination of one server.
struct Doctor {
    /// Server to examine.
    server: Server,
    /// Settings of each session.
    settings: Settings,
    /// Tool calls that the user requests.
    calls: Vec<ToolCall>,
    /// Revisions in which the server is examined, if the command line names any.
    selected_revisions: Vec<&'static RevisionSpec>,
    /// True if the server is examined in all revisions that it speaks.
    examines_all: bool,
}

impl Doctor {
    /// Examines the server in each selected revision, the newest first, and adds the violations to `report`. Without a selection,
    /// the newest revision of each lifecycle that the server speaks is examined.
    fn examine(&self, report: &mut Report) -> anyhow::Result<ExaminedServer> {
        let mut examined = ExaminedServer::default();
        let is_selecting = !self.selected_revisions.is_empty();
        let mut known = Vec::new();
        for spec in mcp_exact_revisions::released().rev() {
            if is_selecting && !self.selected_revisions.contains(&spec) {
                continue;
            }
            let is_newest = !known.contains(&spec.lifecycle());
            if !is_selecting && !self.examines_all && !is_newest {
                examined.has_more = true;
                continue;
            }
            let answers = match spec.lifecycle() {
                Lifecycle::Initialize => self.handshake(spec.id(), report, &mut examined)?,
                Lifecycle::Discover if self.server.has_discover() => {
                    self.discover(spec.id(), report, &mut examined)?
                }
                Lifecycle::Discover => false,
            };
            if answers {
                known.push(spec.lifecycle());
                examined.revisions.insert(0, spec.id());
                #[cfg(feature = "http")]
                if let Server::Url(target) = &self.server {
                    http_checks::check(target, spec, self.settings.limit, report);
                }
            }
        }
        let newest = examined.revisions.iter().rev().find(|id| {
            let spec = mcp_exact_revisions::find(id);
            spec.is_some_and(|spec| spec.lifecycle() == Lifecycle::Initialize)
        });
        if let Some(newest) = newest {
            self.check_unknown_offer(newest, report)?;
            if let Some(revision) = examined.ended_by_probe {
                let message = format!("`server/discover` of {revision} ends the server");
                let evidence = Evidence {
                    last_words: examined.last_words.take().unwrap_or_default().1,
                    ..Evidence::default()
                };
                let breach = Breach::new(&rules::PROBE_ENDS, message);
                report.add(newest, &breach, evidence);
            }
        }
        Ok(examined)
    }

    /// Examines the server in a revision with the `initialize` handshake; returns true if the server supports the
    /// revision.
    fn handshake(
        &self,
        id: &'static str,
        report: &mut Report,
        examined: &mut ExaminedServer,
    ) -> anyhow::Result<bool> {
        let mut session = Session::open(&self.server, id, self.settings, report)?;
        let answer = checks::initialize(&mut session, id);
        examined.record_answer(&answer, &session);
        let Answer::Result(result) = answer else {
            session.end();
            return Ok(false);
        };
        let named = result["protocolVersion"]
            .as_str()
            .unwrap_or_default()
            .to_owned();
        if named != id {
            session.end();
            self.check_alternative(id, &named, report)?;
            return Ok(false);
        }
        examined.name(&result["serverInfo"]);
        session.examine(&[&rules::VERSION_ECHO]);
        checks::check_session(&mut session, &result, &self.calls);
        session.end();
        Ok(true)
    }

    /// Checks that a server supports the revision `named`, with which it has responded to the offer of the revision
    /// `offered`.
    fn check_alternative(
        &self,
        offered: &'static str,
        named: &str,
        report: &mut Report,
    ) -> anyhow::Result<()> {
        let Some(spec) = mcp_exact_revisions::find(named) else {
            return Ok(());
        };
        let mut session = Session::open(&self.server, spec.id(), self.settings, report)?;
        let answer = checks::initialize(&mut session, named);
        if let Answer::Result(result) = &answer {
            let again = result["protocolVersion"].as_str().unwrap_or_default();
            if again != named {
                let message = format!(
                    "the server answered the offer of {offered} with {named}, and the offer of {named} with {}",
                    again
                );
                session.report_breach(&rules::VERSION_ECHO, message);
            }
        }
        session.end();
        Ok(())
    }

    /// Offers a revision that does not exist, and checks that the server does not accept it.
    fn check_unknown_offer(&self, newest: &'static str, report: &mut Report) -> anyhow::Result<()> {
        let mut session = Session::open(&self.server, newest, self.settings, report)?;
        session.examine(&[&rules::VERSION_ALTERNATIVE]);
        // A server may also refuse: the specification shows an error for that.
        match checks::initialize(&mut session, UNKNOWN_REVISION) {
            Answer::Result(result) if result["protocolVersion"] == UNKNOWN_REVISION => {
                let message =
                    format!("the server agreed to {UNKNOWN_REVISION}, which does not exist");
                session.report_breach(&rules::VERSION_ALTERNATIVE, message);
            }
            answer @ (Answer::End | Answer::Timeout) => {
                let what = format!("the offer of {UNKNOWN_REVISION}, which does not exist,");
                session.report_unanswered(&what, &answer);
            }
            _ => {}
        }
        session.end();
        Ok(())
    }

    /// Examines the server in a revision without the `initialize` handshake; returns true if the server supports the
    /// revision.
    fn discover(
        &self,
        id: &'static str,
        report: &mut Report,
        examined: &mut ExaminedServer,
    ) -> anyhow::Result<bool> {
        // It is not known yet whether the server supports the revision: findings are kept only if it does.
        let mut probe = Report::default();
        let mut session = Session::open(&self.server, id, self.settings, &mut probe)?;
        let answer = session.request(method::SERVER_DISCOVER, json!({}));
        examined.record_answer(&answer, &session);
        if answer == Answer::End && session.last_words().is_some() {
            examined.ended_by_probe = Some(id);
        }
        let has_revision = match &answer {
            Answer::Result(result) => {
                let versions = result["supportedVersions"].as_array();
                versions.is_none_or(|versions| versions.iter().any(|version| version == id))
            }
            _ => false,
        };
        session.end();
        if has_revision {
            let mut session = Session::open(&self.server, id, self.settings, report)?;
            session.examine(&[&rules::DISCOVER]);
            match session.request(method::SERVER_DISCOVER, json!({})) {
                Answer::Result(result) => {
                    examined.name(&result["_meta"]["io.modelcontextprotocol/serverInfo"]);
                    stateless::check_discover_server(&mut session, &result, &self.calls);
                }
                answer => session.report_unanswered(method::SERVER_DISCOVER, &answer),
            }
            session.end();
            return Ok(true);
        }
        self.check_missing_discover(id, &answer, report)
    }

    /// Returns true if the server supports a revision without the `initialize` handshake although it has answered
    /// `server/discover` with an error, and then reports the missing method.
    fn check_missing_discover(
        &self,
        id: &'static str,
        answer: &Answer,
        report: &mut Report,
    ) -> anyhow::Result<bool> {
        if !matches!(answer, Answer::Error(..)) {
            return Ok(false);
        }
        let mut probe = Report::default();
        let mut session = Session::open(&self.server, id, self.settings, &mut probe)?;
        let listed = session.request(method::TOOLS_LIST, json!({}));
        session.end();
        // Old servers that respond before they were initialized do not know the required members of a result.
        let has_revision = listed
            .result()
            .is_some_and(|result| result.get("resultType").is_some());
        if has_revision {
            let message = format!("server/discover was answered with {}", answer.to_line());
            let breach = Breach::new(&rules::DISCOVER, message);
            report.add(id, &breach, Evidence::default());
        }
        Ok(has_revision)
    }
}
