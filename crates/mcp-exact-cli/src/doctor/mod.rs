//! `mcp-exact doctor`: sends requests to a server in every revision that it supports, and reports the violated rules,
//! each with the sentence of the specification that states the rule.

mod channel;
mod checks;
#[cfg(feature = "http")]
mod http;
mod output;
mod report;
mod session;
#[cfg(feature = "http")]
mod sse;

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, anyhow};
use clap::Args;
use mcp_exact_revisions::{Lifecycle, RevisionSpec};
use serde_json::{Value, json};

use crate::Outcome;
use crate::conversation::Breach;
use crate::interrupt;
use crate::last_words::LastWordsError;
use crate::registry::Registry;
use crate::rules::{self, Level};
use crate::server_address;
use crate::terminal::stderr;
use channel::Server;
use checks::{ToolCall, UNKNOWN_REVISION};
use report::{Evidence, Report};
use session::{Answer, Session, Settings};

/// The arguments of `mcp-exact doctor`.
#[derive(Args)]
#[command(after_help = "\
Each revision is tried with a process or session of its own. Tools are called only if they say that they just read \
(readOnlyHint) and need no arguments, or if --call names them. Resources are read and prompts are got, a few of each.

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
    /// Call a tool, with its arguments as JSON.
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
    /// Print each message to standard error.
    #[arg(long)]
    trace: bool,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
    /// Print annotations of GitHub Actions, besides the report.
    #[arg(long, conflicts_with = "json")]
    github: bool,
    /// Write a report in the format of JUnit to a file; `-` is standard output.
    #[arg(long, value_name = "FILE")]
    junit: Option<PathBuf>,
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
    interrupt::end_processes_on_signals()?;
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
            limit: Duration::from_secs(arguments.timeout.unwrap_or(10)),
            start_limit: Duration::from_secs(arguments.timeout.unwrap_or(60)),
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
    let _ = stderr().clear_line();
    if examined.revisions.is_empty() && report.count(Level::Must) == 0 {
        return Err(examined.explain_silence(&doctor.server));
    }
    output::print(arguments, &examined, &report)?;
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
    let named = crate::process::resolve(&arguments.server)?;
    let Some(url) = server_address::parse_url(&named.words)? else {
        #[cfg(feature = "oauth")]
        if let Some(option) = arguments.certificates.first_option() {
            anyhow::bail!("a command gets no HTTP requests; leave `{option}` out");
        }
        return Ok(Server::Command(named.words));
    };
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
    /// True if older revisions were not examined.
    has_more: bool,
    /// How the process of the server has ended, and what it wrote last.
    last_words: Option<(String, Vec<String>)>,
    /// HTTP status of the first request, if it has no message.
    status: Option<u16>,
}

impl ExaminedServer {
    /// Records whether the first request of a session has a response.
    fn record_answer(&mut self, answer: &Answer, session: &Session<'_>) {
        match answer {
            Answer::Timeout => {}
            Answer::End => self.last_words = session.last_words().or(self.last_words.take()),
            Answer::Status(status) => self.status = Some(*status),
            _ => self.has_answered = true,
        }
    }

    /// Records the `Implementation` object of the server, unless a newer revision has given one.
    fn name(&mut self, info: &Value) {
        if self.info.is_null() {
            self.info = info.clone();
        }
    }

    /// Returns the error for a server that was examined in no revision.
    fn explain_silence(&self, server: &Server) -> anyhow::Error {
        if self.has_answered {
            return anyhow!(
                "the server answers in no revision that this program knows; --trace shows what it says"
            );
        }
        match (server, &self.last_words, self.status) {
            (Server::Command(_), Some((status, words)), _) if words.is_empty() => {
                anyhow!(
                    "the server ends without an answer ({status}), and writes nothing to standard error"
                )
            }
            (Server::Command(_), Some((status, words)), _) => anyhow!(LastWordsError {
                problem: format!("the server ends without an answer ({status}); its last words"),
                words: words.join("\n"),
            }),
            (Server::Command(_), None, _) => {
                anyhow!("the server does not answer; --trace shows what it writes")
            }
            #[cfg(feature = "http")]
            (Server::Url(target) | Server::Sse(target), _, Some(401)) => anyhow!(
                "the server at {} demands authorization (HTTP status 401); if you have a token: --header 'Authorization: Bearer …'",
                target.url
            ),
            #[cfg(feature = "http")]
            (Server::Url(target) | Server::Sse(target), _, Some(status)) => anyhow!(
                "the server at {} answers with HTTP status {status}, and not in the protocol",
                target.url
            ),
            #[cfg(feature = "http")]
            (Server::Url(target) | Server::Sse(target), _, None) => match target.take_error() {
                Some(error) => anyhow!(error),
                None => anyhow!("the server cannot be reached, or does not answer"),
            },
        }
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
        examined.record_answer(&answer, &session);
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
                examined.name(&result["_meta"]["io.modelcontextprotocol/serverInfo"]);
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
            let breach = Breach::new(&rules::DISCOVER, message);
            report.add(id, &breach, Evidence::default());
        }
        Ok(has_revision)
    }
}
