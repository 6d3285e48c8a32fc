//! `mcp-exact doctor`: sends requests to a server in every revision that it supports, and reports the violated rules,
//! each with the sentence of the specification that states the rule.

mod channel;
mod checks;
#[cfg(feature = "http")]
mod http;
mod report;
mod session;
#[cfg(feature = "http")]
mod sse;

use std::ffi::OsString;
use std::io::Write;
use std::time::Duration;

use anyhow::{Context, bail};
use clap::Args;
use mcp_exact_revisions::{Lifecycle, RevisionSpec};
use serde_json::{Value, json};

use crate::Outcome;
use crate::conversation::Breach;
use crate::interrupt;
use crate::output::{Painter, Style, without_control_characters};
use crate::registry::Registry;
use crate::rules::{self, Level};
use crate::server_address;
use crate::terminal::stdout;
use channel::Server;
use checks::{ToolCall, UNKNOWN_REVISION};
use report::Report;
use session::{Answer, Session, Settings};

/// The arguments of `mcp-exact doctor`.
#[derive(Args)]
#[command(after_help = "\
Each revision is tried with a process or session of its own. Tools are called only if they say that they just read \
(readOnlyHint) and need no arguments, or if --call names them. Resources are read and prompts are got, a few of each.

Exit code: 0 no MUST is violated (with --strict: and no SHOULD), 1 one is, 2 wrong usage, or the server cannot be reached.")]
pub struct Arguments {
    /// Try these revisions only.
    #[arg(long, short, value_name = "R")]
    revision: Vec<String>,
    /// Call a tool, with its arguments as JSON.
    #[arg(long, value_name = "TOOL=JSON")]
    call: Vec<String>,
    /// Take violations of SHOULD as seriously as those of MUST.
    #[arg(long)]
    strict: bool,
    /// Seconds to wait for an answer.
    #[arg(long, value_name = "SECONDS", default_value_t = 10)]
    timeout: u64,
    /// Add a header to each HTTP request, such as `Authorization: Bearer …`.
    #[arg(long, value_name = "NAME: VALUE")]
    header: Vec<String>,
    /// Print each message to standard error.
    #[arg(long)]
    trace: bool,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
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
    interrupt::end_processes_on_signals()?;
    let mut selected_revisions = Vec::new();
    for id in &arguments.revision {
        selected_revisions.push(Registry::new().revision(id)?.revision.spec);
    }
    let doctor = Doctor {
        server: parse_server(arguments)?,
        settings: Settings {
            limit: Duration::from_secs(arguments.timeout),
            is_tracing: arguments.trace,
            shows_stderr: arguments.trace,
        },
        calls: arguments
            .call
            .iter()
            .map(|text| parse_tool_call(text))
            .collect::<Result<_, _>>()?,
        selected_revisions,
    };
    let mut report = Report::default();
    let examined = doctor.examine(&mut report)?;
    if examined.revisions.is_empty() && report.count(Level::Must) == 0 {
        match &doctor.server {
            _ if examined.has_answered => bail!(
                "the server answers in no revision that this program knows; --trace shows what it says"
            ),
            Server::Command(_) => {
                bail!("the server ends or does not answer; --trace shows what it writes")
            }
            #[cfg(feature = "http")]
            Server::Url(_) | Server::Sse(_) => {
                bail!("the server cannot be reached, or does not answer")
            }
        }
    }
    print_report(arguments, &examined, &report)?;
    let is_well =
        report.count(Level::Must) == 0 && !(arguments.strict && report.count(Level::Should) > 0);
    Ok(if is_well {
        Outcome::Valid
    } else {
        Outcome::Invalid
    })
}

/// Returns the server that the command line specifies: a URL or a command.
fn parse_server(arguments: &Arguments) -> anyhow::Result<Server> {
    let Some(url) = server_address::parse_url(&arguments.server)? else {
        return Ok(Server::Command(arguments.server.clone()));
    };
    #[cfg(feature = "http")]
    {
        let target = std::sync::Arc::new(http::Target::new(url, &arguments.header)?);
        let is_sse = sse::is_sse_url(url);
        Ok(if is_sse {
            Server::Sse(target)
        } else {
            Server::Url(target)
        })
    }
    #[cfg(not(feature = "http"))]
    bail!(
        "cannot reach {url}: this program was built without HTTP; install it with `--features http`"
    );
}

/// Parses a tool call of the form `TOOL=JSON`, or `TOOL` without arguments.
fn parse_tool_call(text: &str) -> anyhow::Result<ToolCall> {
    let (name, json) = text.split_once('=').unwrap_or((text, "{}"));
    let arguments: Value = serde_json::from_str(json)
        .with_context(|| format!("the arguments of {name} are no JSON"))?;
    Ok(ToolCall {
        name: name.to_owned(),
        arguments,
    })
}

/// Identity and supported revisions of the examined server.
#[derive(Debug, Default)]
struct ExaminedServer {
    /// `Implementation` object of the server.
    info: Value,
    /// Revisions that the server supports.
    revisions: Vec<&'static str>,
    /// True if the first request of a session has a response.
    has_answered: bool,
}

impl ExaminedServer {
    /// Records whether the first request of a session has a response.
    fn record_answer(&mut self, answer: &Answer) {
        self.has_answered |= !matches!(answer, Answer::Timeout | Answer::End);
    }
}

/// Options of the examination of one server.
struct Doctor {
    /// Server to examine.
    server: Server,
    /// Settings of each session.
    settings: Settings,
    /// Tool calls that the user requests.
    calls: Vec<ToolCall>,
    /// Revisions in which the server is examined; empty for all revisions.
    selected_revisions: Vec<&'static RevisionSpec>,
}

impl Doctor {
    /// Examines the server in each selected revision, and adds the violations to `report`.
    fn examine(&self, report: &mut Report) -> anyhow::Result<ExaminedServer> {
        let mut examined = ExaminedServer::default();
        for spec in mcp_exact_revisions::released() {
            let is_wanted =
                self.selected_revisions.is_empty() || self.selected_revisions.contains(&spec);
            if !is_wanted {
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
                examined.revisions.push(spec.id());
                #[cfg(feature = "http")]
                if let Server::Url(target) = &self.server {
                    http::check(target, spec, self.settings.limit, report);
                }
            }
        }
        let newest = examined.revisions.iter().rev().find(|id| {
            let spec = mcp_exact_revisions::find(id);
            spec.is_some_and(|spec| spec.lifecycle() == Lifecycle::Initialize)
        });
        if let Some(newest) = newest {
            self.check_unknown_offer(newest, report)?;
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
        examined.record_answer(&answer);
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
        examined.info = result["serverInfo"].clone();
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
                    without_control_characters(again)
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
        // A server may also refuse: the specification shows an error for that.
        if let Answer::Result(result) = checks::initialize(&mut session, UNKNOWN_REVISION)
            && result["protocolVersion"] == UNKNOWN_REVISION
        {
            let message = format!("the server agreed to {UNKNOWN_REVISION}, which does not exist");
            session.report_breach(&rules::VERSION_ALTERNATIVE, message);
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
        let answer = session.request("server/discover", json!({}));
        examined.record_answer(&answer);
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
            if let Answer::Result(result) = session.request("server/discover", json!({})) {
                examined.info = result["_meta"]["io.modelcontextprotocol/serverInfo"].clone();
                checks::check_discover_server(&mut session, &result, &self.calls);
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
        let listed = session.request("tools/list", json!({}));
        session.end();
        // Old servers that respond before they were initialized do not know the required members of a result.
        let has_revision = listed
            .result()
            .is_some_and(|result| result.get("resultType").is_some());
        if has_revision {
            let message = format!("server/discover was answered with {}", answer.to_line());
            report.add(id, &Breach::new(&rules::DISCOVER, message));
        }
        Ok(has_revision)
    }
}

/// Prints the identity of the server and the findings, as text or JSON.
fn print_report(
    arguments: &Arguments,
    examined: &ExaminedServer,
    report: &Report,
) -> anyhow::Result<()> {
    let mut out = stdout().lock();
    let (must, should) = (report.count(Level::Must), report.count(Level::Should));
    if arguments.json {
        let object = json!({
            "server": examined.info,
            "revisions": examined.revisions,
            "checks": report.checks,
            "findings": report.to_lines(),
        });
        writeln!(out, "{}", serde_json::to_string_pretty(&object)?)?;
        return Ok(());
    }
    let painter = Painter::stdout();
    let word = |name: &str| without_control_characters(examined.info[name].as_str().unwrap_or("?"));
    let name = painter.paint(Style::Bold, &word("name"));
    writeln!(
        out,
        "{name} {}, revisions: {}",
        word("version"),
        examined.revisions.join(", ")
    )?;
    out.write_all(report.to_text(painter).as_bytes())?;
    let words = match (must, should) {
        (0, 0) => painter.paint(Style::Green, "nothing found"),
        (0, _) => painter.paint(Style::Yellow, &format!("{should} findings, none of a MUST")),
        _ => painter.paint(
            Style::Red,
            &format!("{must} findings of a MUST, {should} of a SHOULD"),
        ),
    };
    writeln!(out, "\n{words}; {} checks", report.checks)?;
    Ok(())
}
