//! Options of `mcp-exact sessions` for the connection to the Redis that the servers share.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, bail};
use clap::Args;
use mcp_exact_redis::{RedisOptions, RedisSessions};

/// Environment variable with the URL of Redis; an argument would be visible to other users.
const URL_VARIABLE: &str = "MCP_EXACT_REDIS";

/// Options for the connection to the Redis that the servers share.
#[derive(Args)]
pub struct ConnectionArguments {
    /// URL of Redis, or of a Sentinel; without it, the variable MCP_EXACT_REDIS has the URL.
    #[arg(long, value_name = "URL")]
    redis: Option<String>,
    /// Key prefix of the servers.
    #[arg(long, value_name = "TEXT", default_value = "mcp")]
    prefix: String,
    /// Ask the Sentinel at the URL for the master of this name.
    #[arg(long, value_name = "NAME")]
    sentinel_master: Option<String>,
    /// Ask this Sentinel too; may be repeated.
    #[arg(long, value_name = "URL", requires = "sentinel_master")]
    sentinel: Vec<String>,
    /// Trust the authorities in this PEM file, instead of those of the system.
    #[arg(long, value_name = "FILE")]
    root_certificates: Option<PathBuf>,
}

impl ConnectionArguments {
    /// Opens access to the sessions on the Redis that the arguments specify.
    pub fn open(&self) -> anyhow::Result<RedisSessions> {
        Ok(RedisSessions::open(&self.options()?)?)
    }

    /// Returns the options of the Redis that the arguments specify.
    pub fn options(&self) -> anyhow::Result<RedisOptions> {
        let url = self
            .redis
            .clone()
            .or_else(|| std::env::var(URL_VARIABLE).ok());
        let Some(url) = url else {
            bail!("no Redis is named; give `--redis URL` or set the variable {URL_VARIABLE}");
        };
        let mut options = RedisOptions::new(url);
        options.prefix.clone_from(&self.prefix);
        options.sentinel_master.clone_from(&self.sentinel_master);
        options.sentinels.clone_from(&self.sentinel);
        // A person waits longer than a client.
        options.command_timeout = Duration::from_secs(10);
        if let Some(path) = &self.root_certificates {
            let read = std::fs::read(path);
            let read = read.with_context(|| format!("cannot read {}", path.display()))?;
            options.root_certificates = Some(read);
        }
        Ok(options)
    }
}
