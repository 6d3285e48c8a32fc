//! Server over HTTP that shares its sessions with other processes: `shared_server DIRECTORY HUB`. Prints its address,
//! and announces a change for each line of its standard input.
#![allow(clippy::print_stdout)]

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use mcp_exact_session::Change;
use mcp_exact_tests_transport::echo;
use mcp_exact_tests_transport::file_store::FileSessionStore;
use mcp_exact_tests_transport::shared::HubBus;
use mcp_exact_transport::http::server::{HttpListener, HttpServerOptions, HttpService};
use tokio::io::{AsyncBufReadExt, BufReader};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let directory = PathBuf::from(arguments.next().ok_or("shared_server DIRECTORY HUB")?);
    let hub = arguments.next().ok_or("shared_server DIRECTORY HUB")?;
    let options = HttpServerOptions {
        session_store: Some(Arc::new(FileSessionStore::open(&directory)?)),
        change_bus: Some(Arc::new(HubBus::connect(hub.parse()?).await?)),
        stream_after: Duration::from_millis(10),
        ..HttpServerOptions::default()
    };
    let service = HttpService::new(echo::server_settings(), Arc::new(echo::handle), options);
    let listener = HttpListener::bind("127.0.0.1:0").await?;
    println!("{}", listener.local_addr()?);
    let publisher = service.clone();
    let input = async move {
        let mut lines = BufReader::new(tokio::io::stdin()).lines();
        while let Ok(Some(_)) = lines.next_line().await {
            publisher.publish(&Change::Tools);
        }
    };
    // The end of the input is the end of the test.
    listener.serve(service, input).await?;
    Ok(())
}
