//! Runs the test server over HTTP until SIGTERM: `http_server [NAME=VALUE…]`. Prints `listening on http://ADDRESS`.
//!
//! `store=DIRECTORY` sets the directory for sessions, events and a journal. `drain`, `idle`, `stream_after`,
//! `header_timeout` and `retry` are durations in milliseconds, `stream_bytes` is a number of bytes, and `connections`
//! is the maximum number of connections.
#![allow(clippy::print_stdout)]

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use mcp_exact_tests_transport::echo;
use mcp_exact_tests_transport::file_store::{FileEventLog, FileSessionStore, Journal};
use mcp_exact_tests_transport::process::{raise_open_files, terminated};
use mcp_exact_transport::http::server::{
    HttpListener, HttpServerOptions, HttpService, ListenOptions,
};

#[tokio::main(worker_threads = 2)]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    raise_open_files();
    let mut options = HttpServerOptions::default();
    let mut listen = ListenOptions::default();
    for argument in std::env::args().skip(1) {
        let (name, value) = argument.split_once('=').ok_or("NAME=VALUE")?;
        if name == "store" {
            let directory = Path::new(value);
            options.session_store = Some(Arc::new(FileSessionStore::open(directory)?));
            options.event_log = Some(Arc::new(FileEventLog::open(directory)?));
            let journal = Journal::open(&directory.join("journal"))?;
            let _ = echo::JOURNAL.set(journal);
            continue;
        }
        let number: u64 = value.parse()?;
        let time = Duration::from_millis(number);
        match name {
            "drain" => listen.drain = time,
            "header_timeout" => listen.header_timeout = time,
            "connections" => listen.connections = usize::try_from(number)?,
            "idle" => options.idle = time,
            "stream_after" => options.stream_after = time,
            "retry" => options.retry = time,
            "stream_bytes" => options.stream_bytes = usize::try_from(number)?,
            _ => return Err(format!("there is no option {name}").into()),
        }
    }
    let service = HttpService::new(echo::server_settings(), Arc::new(echo::handle), options);
    let listener = HttpListener::bind("127.0.0.1:0").await?.options(listen);
    println!("listening on http://{}", listener.local_addr()?);
    listener.serve(service, terminated()).await?;
    Ok(())
}
