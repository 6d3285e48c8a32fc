//! Server with sessions on Redis. Run any number of processes of this server behind a load balancer: `LISTEN` is the
//! address of a process, `REDIS_URL` the URL of the shared Redis, `HOSTS` the host names of the balancer (default
//! `localhost,127.0.0.1`).

use mcp_exact::transport::http::server::{Allowed, HttpListener, HttpServerOptions};
use mcp_exact::{Cx, IntoServer, Result, server};
use mcp_exact_redis::{Redis, RedisOptions};

/// Server with one tool, which reports progress.
struct Steps;

#[server(name = "steps", version = "1.0.0")]
impl Steps {
    /// Reports a number of steps as progress, and returns the id of the process.
    #[tool(read_only)]
    async fn take(&self, steps: u32, cx: &Cx) -> Result<String> {
        for step in 1..=steps {
            cx.progress(step, steps)?;
        }
        Ok(format!("process {}", std::process::id()))
    }
}

/// Returns the value of an environment variable; `default` if the variable is not set.
fn variable(name: &str, default: &str) -> String {
    std::env::var(name).unwrap_or_else(|_| default.to_owned())
}

#[tokio::main]
async fn main() -> Result {
    let redis = Redis::start(&RedisOptions::new(variable(
        "REDIS_URL",
        "redis://127.0.0.1/",
    )))?;
    let hosts = variable("HOSTS", "localhost,127.0.0.1");
    let options = redis.share(HttpServerOptions {
        hosts: Allowed::Only(hosts.split(',').map(str::to_owned).collect()),
        ..HttpServerOptions::default()
    });
    let server = Steps.into_server()?;
    server.start().await?;
    let service = server.http(options);
    let listener = HttpListener::bind(variable("LISTEN", "127.0.0.1:8000").as_str()).await?;
    let asked_to_end = async {
        let _ = tokio::signal::ctrl_c().await;
    };
    listener.serve(service, asked_to_end).await?;
    server.shutdown().await;
    // The other processes go on at once with what clients resume.
    let _ = redis.end().await;
    Ok(())
}
