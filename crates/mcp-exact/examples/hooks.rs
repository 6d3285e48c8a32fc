//! Functions that run when a server starts and shuts down: `on_start` and `on_shutdown`.

use mcp_exact::{Result, Server};

#[tokio::main(flavor = "current_thread")]
#[allow(
    clippy::print_stderr,
    reason = "the lines are the output of the program"
)]
async fn main() -> Result {
    let server = Server::builder("hooks", "1.0.0")
        .on_start(|_| async {
            eprintln!("connected");
            Ok(())
        })
        .on_shutdown(|_| async {
            eprintln!("first out");
            Ok(())
        })
        .on_shutdown(|_| async {
            eprintln!("last out");
            Ok(())
        })
        .tool("hello", || async { "Hello!" })
        .build()?;
    server.serve_stdio().await
}
