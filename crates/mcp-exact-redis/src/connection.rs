//! One connection to Redis that all commands share, reopened when it breaks. With Sentinels, the connection follows the
//! current master.
//!
//! Waiting is bounded: after a failed attempt to connect, commands fail immediately for a short time.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::sentinel::{SentinelClient, SentinelClientBuilder, SentinelServerType};
use redis::{
    AsyncConnectionConfig, Client, Cmd, ConnectionAddr, ErrorKind, FromRedisValue,
    IntoConnectionInfo, Pipeline, ProtocolVersion, RedisError, RedisResult, ScriptInvocation,
    TlsMode,
};
use tokio::sync::Mutex;
use tokio::time::{Instant, timeout};

use crate::metrics::Counters;
use crate::options::RedisOptions;

/// Reason why a Redis command failed.
#[derive(Debug, Clone, thiserror::Error)]
pub enum CommandError {
    /// The connection failed, no reply was received within the time limit, or the server accepts no commands now.
    #[error("Redis is not available: {0}")]
    Unavailable(String),
    /// Redis has no memory left for the data to be written.
    #[error("Redis is full; raise `maxmemory` or shorten the lifetimes")]
    Full,
}

/// Client that opens connections: to the server of the URL, or to the master that Sentinels name.
enum Connector {
    /// Client of the server of the URL.
    Direct(Box<Client>),
    /// Client that queries Sentinels for the master.
    Sentinel(Box<Mutex<SentinelClient>>),
}

/// State of the shared connection.
enum State {
    /// There is no connection.
    Closed,
    /// Number of the connection, and the connection.
    Open(u64, MultiplexedConnection),
    /// Time before which the connection is not retried, and the error of the failed attempt.
    Failed(Instant, CommandError),
}

/// Connection to Redis that all commands of the process share.
pub(crate) struct SharedConnection {
    /// Client that opens the connection.
    connector: Connector,
    /// Time limit for opening a connection.
    connect_timeout: Duration,
    /// Time limit of a command.
    command_timeout: Duration,
    /// Time for which commands fail immediately after a failed attempt to connect.
    retry_pause: Duration,
    /// Current state of the connection.
    state: Mutex<State>,
    /// Number of the latest shared connection; each connection has a new number.
    number: AtomicU64,
    pub(crate) counters: Arc<Counters>,
}

impl SharedConnection {
    pub(crate) fn new(options: &RedisOptions) -> RedisResult<Self> {
        let connector = match &options.sentinel_master {
            None => Connector::Direct(Box::new(client(&options.url, options)?)),
            Some(master) => {
                let client = sentinel_client(options, master)?;
                Connector::Sentinel(Box::new(Mutex::new(client)))
            }
        };
        Ok(Self {
            connector,
            connect_timeout: options.connect_timeout,
            command_timeout: options.command_timeout,
            retry_pause: options.retry_pause,
            state: Mutex::new(State::Closed),
            number: AtomicU64::new(0),
            counters: Arc::default(),
        })
    }

    /// Returns the number of the current shared connection. Each connection that is opened has a new number.
    pub(crate) fn connection_number(&self) -> u64 {
        self.number.load(Ordering::Acquire)
    }

    /// Opens a separate connection for blocking commands, whose callers must set a time limit.
    pub(crate) async fn open_dedicated(&self) -> Result<MultiplexedConnection, CommandError> {
        self.open(None).await
    }

    /// Opens a connection; `response` is the time limit of each reply.
    async fn open(
        &self,
        response: Option<Duration>,
    ) -> Result<MultiplexedConnection, CommandError> {
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(self.connect_timeout))
            .set_response_timeout(response);
        let opening = async {
            let client = match &self.connector {
                Connector::Direct(client) => (**client).clone(),
                Connector::Sentinel(client) => client.lock().await.async_get_client().await?,
            };
            client
                .get_multiplexed_async_connection_with_config(&config)
                .await
        };
        // Querying the Sentinels needs connections, too.
        let opened = match timeout(self.connect_timeout * 2, opening).await {
            Ok(opened) => opened.map_err(|error| command_error(&error)),
            Err(_) => Err(CommandError::Unavailable(
                "no connection in time".to_owned(),
            )),
        };
        self.counters.count_connection(opened.is_ok());
        opened
    }

    /// Returns the shared connection and its number; opens the connection if it is closed.
    async fn connection(&self) -> Result<(u64, MultiplexedConnection), CommandError> {
        let mut state = self.state.lock().await;
        match &*state {
            State::Open(number, connection) => return Ok((*number, connection.clone())),
            State::Failed(until, failure) if Instant::now() < *until => return Err(failure.clone()),
            State::Closed | State::Failed(..) => {}
        }
        match self.open(Some(self.command_timeout)).await {
            Ok(connection) => {
                let number = self.number.fetch_add(1, Ordering::AcqRel) + 1;
                *state = State::Open(number, connection.clone());
                Ok((number, connection))
            }
            Err(failure) => {
                *state = State::Failed(Instant::now() + self.retry_pause, failure.clone());
                Err(failure)
            }
        }
    }

    /// Runs an idempotent command, which is repeated once if the connection has broken since its last use.
    pub(crate) async fn command<T: FromRedisValue>(
        &self,
        command: &Cmd,
    ) -> Result<T, CommandError> {
        self.run(Invocation::Command(command)).await
    }

    /// Runs an idempotent script, which is repeated once if the connection has broken since its last use.
    pub(crate) async fn script<T: FromRedisValue>(
        &self,
        script: &ScriptInvocation<'_>,
    ) -> Result<T, CommandError> {
        self.run(Invocation::Script(script)).await
    }

    /// Runs idempotent commands together, which are repeated once if the connection has broken since its last use.
    pub(crate) async fn pipeline<T: FromRedisValue>(
        &self,
        pipeline: &Pipeline,
    ) -> Result<T, CommandError> {
        self.run(Invocation::Pipeline(pipeline)).await
    }

    /// Runs an idempotent command, script or pipeline, which is repeated once if the connection has broken since its
    /// last use.
    async fn run<T: FromRedisValue>(&self, call: Invocation<'_>) -> Result<T, CommandError> {
        let mut is_repeated = false;
        loop {
            let (number, mut connection) = self.connection().await?;
            let begun = Instant::now();
            let reply = match call {
                Invocation::Command(command) => command.query_async(&mut connection).await,
                Invocation::Script(script) => script.invoke_async(&mut connection).await,
                Invocation::Pipeline(pipeline) => pipeline.query_async(&mut connection).await,
            };
            self.counters.count_command(begun.elapsed(), reply.is_err());
            let error = match reply {
                Ok(value) => return Ok(value),
                Err(error) => error,
            };
            let is_broken = is_unusable(&error);
            if is_broken {
                let mut state = self.state.lock().await;
                if matches!(&*state, State::Open(known, _) if *known == number) {
                    *state = State::Closed;
                }
            }
            if !is_broken || is_repeated || error.is_timeout() {
                return Err(command_error(&error));
            }
            is_repeated = true;
        }
    }
}

/// Creates a client for a URL, with the root certificates of the options.
fn client(url: &str, options: &RedisOptions) -> RedisResult<Client> {
    let info = url.into_connection_info()?;
    if info.redis_settings().protocol() != ProtocolVersion::RESP2 {
        let text = "replies are read in RESP2 alone; remove `protocol` from the URL";
        return Err((ErrorKind::InvalidClientConfig, text).into());
    }
    #[cfg(feature = "tls")]
    if let Some(certificates) = certificates(options) {
        return Client::build_with_tls(info, certificates);
    }
    let _ = options;
    Client::open(info)
}

/// Returns the root certificates of the options; `None` for those that the system trusts.
#[cfg(feature = "tls")]
fn certificates(options: &RedisOptions) -> Option<redis::TlsCertificates> {
    let root_cert = options.root_certificates.clone()?;
    Some(redis::TlsCertificates {
        client_tls: None,
        root_cert: Some(root_cert),
    })
}

/// Creates a client that queries Sentinels for the master. Credentials, database and encryption of the URL apply to the
/// connection to the master.
fn sentinel_client(options: &RedisOptions, master: &str) -> RedisResult<SentinelClient> {
    let all = std::iter::once(&options.url).chain(&options.sentinels);
    let all = all.map(|url| {
        let client = client(url, options)?;
        Ok(client.get_connection_info().addr().clone())
    });
    let all: Vec<ConnectionAddr> = all.collect::<RedisResult<_>>()?;
    let node = options.url.as_str().into_connection_info()?;
    let settings = node.redis_settings();
    let mut builder = SentinelClientBuilder::new(all, master, SentinelServerType::Master)?
        .set_client_to_redis_db(settings.db());
    if let Some(user) = settings.username() {
        builder = builder.set_client_to_redis_username(user);
    }
    if let Some(password) = settings.password() {
        builder = builder.set_client_to_redis_password(password);
    }
    if matches!(node.addr(), ConnectionAddr::TcpTls { .. }) {
        builder = builder.set_client_to_redis_tls_mode(TlsMode::Secure);
    }
    #[cfg(feature = "tls")]
    if let Some(certificates) = certificates(options) {
        builder = builder.set_client_to_redis_certificates(certificates);
    }
    builder.build()
}

/// Command, script or pipeline to run.
#[derive(Clone, Copy)]
enum Invocation<'a> {
    Command(&'a Cmd),
    Script(&'a ScriptInvocation<'a>),
    Pipeline(&'a Pipeline),
}

/// Returns true if the connection or its server is no longer usable, such as a former master that is read-only after a
/// failover.
fn is_unusable(error: &RedisError) -> bool {
    let is_wrong_server = has_code(error, &["READONLY", "LOADING", "MASTERDOWN"]);
    is_wrong_server || error.is_io_error() || error.is_timeout() || error.is_unrecoverable_error()
}

/// Returns true if a command failed with one of these error codes; in a transaction, any of its commands.
fn has_code(error: &RedisError, codes: &[&str]) -> bool {
    let errors = error.clone().into_server_errors();
    let mut errors = errors.iter().flat_map(|errors| errors.iter());
    errors.any(|(_, error)| codes.contains(&error.code()))
}

/// Returns the reason why a command failed.
fn command_error(error: &RedisError) -> CommandError {
    if has_code(error, &["OOM"]) {
        CommandError::Full
    } else {
        CommandError::Unavailable(error.to_string())
    }
}
