//! Server over HTTP with systemd socket activation, which starts the server at the first connection:
//!
//! ```sh
//! systemd-socket-activate -l 127.0.0.1:8080 target/debug/examples/socket_activation
//! ```
//!
//! With systemd units, `mcp.socket` has `ListenStream=127.0.0.1:8080`, and `mcp.service` has `ExecStart=` with the path
//! of the program.

#[cfg(unix)]
mod echo;

#[cfg(unix)]
#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    use std::sync::Arc;

    use mcp_exact_transport::http::server::{HttpListener, HttpServerOptions, HttpService};
    use tokio::signal::unix::{SignalKind, signal};

    let socket = listenfd::ListenFd::from_env().take_tcp_listener(0)?;
    let socket = socket.ok_or("no socket was passed; start this by systemd-socket-activate")?;
    socket.set_nonblocking(true)?;
    let listener = HttpListener::from_listener(tokio::net::TcpListener::from_std(socket)?);
    let options = HttpServerOptions::default();
    let service = HttpService::new(echo::settings()?, Arc::new(echo::handle), options);
    // What systemd sends to stop a service.
    let mut terminate = signal(SignalKind::terminate())?;
    let stopped = async move {
        terminate.recv().await;
    };
    listener.serve(service, stopped).await?;
    Ok(())
}

#[cfg(not(unix))]
fn main() -> Result<(), &'static str> {
    Err("systemd runs on Linux")
}
