//! Server over stdio. `cargo run -p mcp-exact-transport --example echo_stdio`; with the feature `blocking` and the
//! argument `--blocking`, without a runtime.

mod echo;

use std::sync::Arc;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let settings = echo::settings()?;
    #[cfg(feature = "blocking")]
    if std::env::args().any(|argument| argument == "--blocking") {
        return Ok(mcp_exact_transport::serve_blocking(
            settings,
            Arc::new(echo::handle),
        )?);
    }
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(mcp_exact_transport::serve_stdio(
        settings,
        Arc::new(echo::handle),
    ))?;
    Ok(())
}
