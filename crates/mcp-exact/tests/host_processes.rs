//! Hosts of server processes; this executable also runs as each of the servers, in a role that its arguments name.
//!
//! A server that never responds, a server that crashes during a call and a server whose calls never end do not affect
//! other servers.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::{Arc, Mutex};
use std::time::Duration;

#[path = "host_processes/endings.rs"]
mod endings;
#[cfg(unix)]
#[path = "host_processes/reconnect.rs"]
mod reconnect;

use libtest_mimic::{Arguments, Failed, Trial};
use mcp_exact::transport::http::server::{HttpListener, HttpServerOptions};
use mcp_exact::{ClientError, Headers, Host, HostBuilder, HostError, Input, Server, ServerEntry};
use mcp_exact::{schemars, serde};

/// Time limit for connecting to the silent server, which always takes this time.
const SILENCE_LIMIT: Duration = Duration::from_secs(1);

/// Arguments of the tool `echo`.
#[derive(serde::Deserialize, serde::Serialize, schemars::JsonSchema)]
struct Text {
    text: String,
}

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    if arguments.next().as_deref() == Some("serve") {
        let kind = arguments.next().unwrap_or_default();
        #[cfg(unix)]
        if let Some(address) = arguments.next() {
            return reconnect::serve_http(&address, arguments.next().as_deref());
        }
        return serve(&kind);
    }
    let mut trials = vec![
        Trial::test("configurations_start_servers", || {
            run(configurations_start_servers())
        }),
        Trial::test("faulty_servers_disturb_no_other", || {
            run(faulty_servers_do_not_affect_others())
        }),
        Trial::test("policies_decide_by_server", || {
            run(policies_decide_by_server())
        }),
    ];
    trials.extend(endings::trials());
    #[cfg(unix)]
    trials.extend(reconnect::trials());
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}

/// Runs a test on a multi-threaded runtime.
fn run(test: impl Future<Output = ()>) -> Result<(), Failed> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()?;
    runtime.block_on(test);
    Ok(())
}

/// Runs a server over stdio in a role: `steady`, `silent`, `crashing`, `hanging`, `locking` or `reborn`.
fn serve(kind: &str) -> ExitCode {
    if kind == "silent" {
        loop {
            std::thread::park();
        }
    }
    let builder =
        Server::builder(kind, "1").tool("echo", |Input(Text { text }): Input<Text>| async { text });
    let builder = match kind {
        "crashing" => builder.tool("work", || async { crash_process() }),
        "hanging" => builder.tool("work", std::future::pending::<()>),
        "locking" => endings::lock(builder),
        #[cfg(unix)]
        "reborn" => reconnect::builder(),
        _ => builder.tool("work", || async {
            let directory = std::env::current_dir().unwrap_or_default();
            let variable = std::env::var("GREETING").unwrap_or_default();
            format!("{variable} from {}", directory.display())
        }),
    };
    let served = run(async move {
        let server = builder.build().expect("a server");
        server.serve_stdio().await.expect("it ends with its input");
    });
    match served {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

/// Ends the process with an error code.
fn crash_process() {
    std::process::exit(3)
}

/// Returns the configuration entry of a server. All but the silent one have the time that a slow machine needs.
fn server_entry(kind: &str) -> String {
    let program = std::env::current_exe().expect("a path");
    let limit = if kind == "silent" {
        ""
    } else {
        r#","timeout":60"#
    };
    format!(r#""{kind}":{{"command":{program:?},"args":["serve","{kind}"]{limit}}}"#)
}

/// Creates a host of server processes with these roles.
fn host(kinds: &[&str]) -> HostBuilder {
    let entries: Vec<String> = kinds.iter().copied().map(server_entry).collect();
    let text = format!(r#"{{"mcpServers":{{{}}}}}"#, entries.join(","));
    let host = Host::builder().config(&text).expect("a configuration");
    host.timeout(SILENCE_LIMIT)
}

/// Calls the tool `echo` by its prefixed name.
async fn call_echo(host: &Host, name: &str) -> Result<String, HostError> {
    let text = Text {
        text: name.to_owned(),
    };
    host.call(name, &text).await.map(|output| output.text())
}

/// File that is removed on drop.
struct TemporaryFile(PathBuf);

impl Drop for TemporaryFile {
    fn drop(&mut self) {
        // A remaining file does no harm.
        let _ = std::fs::remove_file(&self.0);
    }
}

/// Every setting of an entry takes effect: arguments, environment, directory, variables, URL and headers.
async fn configurations_start_servers() {
    let server = Server::builder("remote", "1").tool("who", |headers: Headers| async move {
        headers.get("x-user").unwrap_or("nobody").to_owned()
    });
    let listener = HttpListener::bind("127.0.0.1:0").await.expect("a port");
    let url = format!("http://{}/mcp", listener.local_addr().expect("an address"));
    let service = server
        .build()
        .expect("a server")
        .http(HttpServerOptions::default());
    let serving = tokio::spawn(listener.serve(service, std::future::pending()));

    let program = std::env::current_exe().expect("a path");
    let text = format!(
        r#"{{"mcpServers":{{
            "local":{{"command":{program:?},"args":["serve","steady"],"cwd":"${{CARGO_MANIFEST_DIR}}",
                "env":{{"GREETING":"${{MCP_EXACT_UNSET:-hello}}"}}}},
            "remote":{{"type":"http","url":"{url}","headers":{{"x-user":"ada"}}}},
            "off":{{"command":"/does/not/exist","disabled":true}},
            "switched":{{"command":"/does/not/exist","enabled":false}},
            "few":{{"command":[{program:?},"serve","steady"],"timeout":60,"disabledTools":["work"]}},
            "unset":{{"command":"${{MCP_EXACT_UNSET}}"}}
        }}}}"#
    );
    let file = format!("mcp-exact-host-{}.json", std::process::id());
    let file = TemporaryFile(std::env::temp_dir().join(file));
    std::fs::write(&file.0, &text).expect("a file");
    let builder = Host::builder()
        .config_file(&file.0)
        .expect("a configuration");
    let mut host = builder.timeout(Duration::from_secs(60)).start().await;

    let failures: Vec<&str> = host.failures().map(|(server, _)| server).collect();
    assert_eq!(failures, ["unset"], "{host:?}");
    let work = host.call("local__work", &()).await.expect("a result");
    let directory = env!("CARGO_MANIFEST_DIR");
    assert_eq!(work.text(), format!("hello from {directory}"));
    let who = host.call("remote__who", &()).await.expect("a result");
    assert_eq!(who.text(), "ada");
    let tools = host.tools().await;
    let names: Vec<&str> = tools.tools.iter().map(|tool| tool.name()).collect();
    assert_eq!(
        names,
        ["few__echo", "local__echo", "local__work", "remote__who"]
    );
    let entries = ServerEntry::parse_all(&text).expect("a configuration");
    let few = entries["few"].as_ref().expect("an entry");
    let connect = few.connect().expect("a connection");
    host.add("added", connect).await.expect("connected");
    for name in ["few__work", "added__work"] {
        let refused = host.call(name, &()).await.expect_err(name).to_string();
        assert!(
            refused.contains("switched off by `disabledTools`"),
            "{refused}"
        );
    }
    serving.abort();
}

/// A server that cannot be connected is a failure of the host, and the tools of the other servers can be listed and
/// called.
async fn faulty_servers_do_not_affect_others() {
    let host = host(&["crashing", "hanging", "silent", "steady"])
        .start()
        .await;
    let host = Arc::new(host);
    let failures: Vec<_> = host.failures().collect();
    let late = ClientError::HostTimedOut {
        limit: SILENCE_LIMIT,
        is_own: false,
    };
    assert_eq!(failures, [("silent", late)]);

    let hanging = Arc::clone(&host);
    let hanging = tokio::spawn(async move { hanging.call("hanging__work", &()).await });
    let crashed = host.call("crashing__work", &()).await;
    let Err(HostError::Client { server, .. }) = crashed else {
        panic!("the call of a server that has crashed has a result: {crashed:?}");
    };
    assert_eq!(server, "crashing");

    for name in ["steady__echo", "hanging__echo"] {
        assert_eq!(call_echo(&host, name).await.as_deref(), Ok(name));
    }
    assert!(call_echo(&host, "crashing__echo").await.is_err());
    let tools = host.tools().await;
    let names: Vec<&str> = tools.tools.iter().map(|tool| tool.name()).collect();
    let expected = [
        "hanging__echo",
        "hanging__work",
        "steady__echo",
        "steady__work",
    ];
    assert_eq!(names, expected);
    let failures: Vec<&String> = tools.failures.keys().collect();
    assert_eq!(failures, ["crashing"]);
    assert!(!hanging.is_finished(), "it waits, and nobody else does");
    hanging.abort();
}

/// A call is made if the policies of the host and of its server allow it; every call is audited.
async fn policies_decide_by_server() {
    let calls = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&calls);
    let host = host(&["hanging", "steady"])
        .policy(|call| call.tool == "echo")
        .server_policy("hanging", |_| false)
        .audit(move |call, result| {
            let entry = (format!("{}/{}", call.server, call.tool), result.is_ok());
            seen.lock().expect("a lock").push(entry);
        })
        .start()
        .await;
    assert!(call_echo(&host, "steady__echo").await.is_ok());
    for name in ["steady__work", "hanging__echo"] {
        let refused = host.call(name, &()).await;
        assert!(matches!(refused, Err(HostError::Refused { .. })), "{name}");
    }
    let calls = calls.lock().expect("a lock").clone();
    let expected = [
        ("steady/echo", true),
        ("steady/work", false),
        ("hanging/echo", false),
    ];
    assert_eq!(calls, expected.map(|(call, made)| (call.to_owned(), made)));
}
