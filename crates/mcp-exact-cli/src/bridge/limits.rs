//! `mcp-exact bridge --limits`: the limits that hold with the settings, in total, for one client and for one object, and what the
//! gateway needs at most.

use mcp_exact::transport::event_log::MemoryEventLogLimits;
use mcp_exact::transport::http::server::{HttpServerOptions, ListenOptions};

use super::config::ConfiguredServer;
use super::setup::Setup;
use crate::output::{Painter, format_table};
use crate::terminal::stdout;
use crate::text::{Untrusted, text};

/// Copies of a message that exist at the same time: as received, as read, as converted, and as sent.
const COPIES: usize = 4;

/// Memory of an object besides what its client sends, in bytes.
const OBJECT_BYTES: usize = 16 << 10;

/// Number of the ids of one session that are remembered by each of its two endpoints.
const ID_SETS: usize = 2;

/// Line of the table.
struct Limit {
    name: &'static str,
    total: String,
    of_client: String,
    of_object: String,
    /// Largest memory, in bytes; `None` if the memory is part of another line.
    memory: Option<usize>,
    /// Key or option that sets the limit; empty if it is fixed.
    key: &'static str,
}

/// Limits of a gateway.
pub struct Limits {
    lines: Vec<Limit>,
    /// Largest number of processes of servers.
    processes: usize,
    /// Largest number of sockets, those of servers over HTTP included.
    sockets: usize,
    /// Largest queue of one event stream behind the answers that are not read, in bytes.
    queue: usize,
}

impl Limits {
    /// Returns the largest memory of the gateway, without what waits in event streams that clients do not read and without the
    /// processes of servers.
    pub fn memory(&self) -> usize {
        sum(self.lines.iter().filter_map(|limit| limit.memory))
    }

    /// Computes the limits of a gateway that serves clients with these options.
    pub fn new(setup: &Setup<'_>, http: &HttpServerOptions, listen: &ListenOptions) -> Self {
        let (servers, commands) = setup.count_servers();
        let mut limits = Self {
            lines: Vec::new(),
            processes: 0,
            sockets: 0,
            queue: http.stream_bytes,
        };
        if setup.listen.is_some() {
            limits.add_clients(setup, http, listen);
        }
        limits.add_messages(setup);
        limits.add_servers(setup, servers);
        let options = &setup.options;
        let connections = sum([options.connections, options.session_connections]);
        limits.processes = product([commands, sum([connections, options.spare_processes])]);
        let sockets = product([servers - commands, connections]);
        limits.sockets = sum([limits.sockets, sockets]);
        limits
    }

    fn add(
        &mut self,
        name: &'static str,
        [total, of_client, of_object]: [String; 3],
        memory: Option<usize>,
        key: &'static str,
    ) {
        self.lines.push(Limit {
            name,
            total,
            of_client,
            of_object,
            memory,
            key,
        });
    }

    /// Adds the limits of what clients over HTTP hold.
    fn add_clients(&mut self, setup: &Setup<'_>, http: &HttpServerOptions, listen: &ListenOptions) {
        let limits = &setup.options.limits;
        let connection = sum([product([2, listen.header_bytes]), OBJECT_BYTES]);
        self.sockets = sum([self.sockets, listen.connections]);
        self.add(
            "connections of clients",
            [
                listen.connections.to_string(),
                listen.connections_per_client.to_string(),
                format!("{} streams", listen.concurrent_streams),
            ],
            Some(product([listen.connections, connection])),
            "[limits] connections",
        );
        let ids = product([ID_SETS, limits.remembered_ids, limits.name_bytes]);
        let subscriptions = product([2, limits.subscription_bytes]);
        let session = sum([http.client_bytes, subscriptions, ids, OBJECT_BYTES]);
        self.add(
            "sessions",
            [
                http.sessions.to_string(),
                http.sessions_per_client.to_string(),
                bytes(session),
            ],
            Some(product([http.sessions, session])),
            "[limits] sessions",
        );
        let message = limits.message_bytes;
        let bodies = http.body_bytes.max(message);
        self.add(
            "messages not yet answered",
            [
                bytes(bodies),
                bytes((http.body_bytes / 4).max(message)),
                bytes(message),
            ],
            Some(product([COPIES, bodies])),
            "[limits] body-bytes",
        );
        self.add(
            "answers not yet read",
            [
                bytes(bodies),
                bytes((http.body_bytes / 4).max(message)),
                bytes(message),
            ],
            Some(bodies),
            "[limits] body-bytes",
        );
        let log = MemoryEventLogLimits::default();
        self.add(
            "events to resume from",
            [
                bytes(log.total_bytes),
                "-".to_owned(),
                bytes(log.stream_bytes),
            ],
            Some(log.total_bytes),
            "",
        );
    }

    /// Adds the limits of messages and requests.
    fn add_messages(&mut self, setup: &Setup<'_>) {
        let limits = &setup.options.limits;
        let arriving = limits.message_budget.bytes().max(limits.message_bytes);
        self.add(
            "messages of servers that arrive",
            [bytes(arriving), "-".to_owned(), bytes(limits.message_bytes)],
            Some(product([COPIES, arriving])),
            "message-budget",
        );
        let of_client = setup.options.rules.limits.unwrap_or_default();
        let number = |limit: Option<String>| limit.unwrap_or_else(|| "-".to_owned());
        let none = || "-".to_owned();
        let concurrent = of_client.concurrent.map(|limit| limit.to_string());
        self.add(
            "requests at the same time",
            [none(), number(concurrent), none()],
            None,
            "[limits] concurrent",
        );
        let per_second = of_client.per_second.map(|limit| limit.to_string());
        self.add(
            "requests and sessions per second",
            [none(), number(per_second), none()],
            None,
            "[limits] per-second",
        );
    }

    /// Adds the limits of what the gateway holds at servers.
    fn add_servers(&mut self, setup: &Setup<'_>, servers: usize) {
        let options = &setup.options;
        let limits = &options.limits;
        let ids = product([limits.remembered_ids, limits.name_bytes]);
        let object = sum([ids, limits.tool_bytes, OBJECT_BYTES]);
        let of_address = product([servers, options.connections - options.connections / 4]);
        for (name, count, of_address, key) in [
            (
                "connections to servers",
                options.connections,
                format!(", an address {of_address}"),
                "[limits] server-connections",
            ),
            (
                "connections to servers of sessions",
                options.session_connections,
                String::new(),
                "[limits] session-connections",
            ),
        ] {
            self.add(
                name,
                [
                    product([servers, count]).to_string(),
                    format!("{}{of_address}", product([servers, count.div_ceil(2)])),
                    format!("{count} a server"),
                ],
                Some(product([servers, count, object])),
                key,
            );
        }
        self.add(
            "calls that wait for their client",
            [
                product([servers, options.waiting_calls]).to_string(),
                product([
                    servers,
                    options.connections.div_ceil(2).min(options.waiting_calls),
                ])
                .to_string(),
                format!("{} a server", options.waiting_calls),
            ],
            None,
            "[limits] waiting-calls",
        );
        let has_cache = setup.servers.iter().any(ConfiguredServer::has_cache);
        if options.cache.is_some() || has_cache {
            let cache = options.cache.unwrap_or_default().bytes;
            let all = [bytes(cache), bytes(cache / 4), "-".to_owned()];
            self.add("answers that are kept", all, Some(cache), "cache");
        }
        let remembered = mcp_exact_bridge::remembered_bytes(servers);
        self.add(
            "names, URIs and tasks of servers",
            [bytes(remembered), "-".to_owned(), "-".to_owned()],
            Some(remembered),
            "",
        );
    }

    /// Prints the table and the totals.
    pub fn print(&self) -> std::io::Result<()> {
        let rows = self.lines.iter().map(|limit| {
            let memory = limit.memory.map_or_else(|| "-".to_owned(), bytes);
            vec![
                limit.name.to_owned(),
                limit.total.clone(),
                limit.of_client.clone(),
                limit.of_object.clone(),
                memory,
                limit.key.to_owned(),
            ]
        });
        let heading = ["limit", "total", "one client", "each", "memory", "set by"];
        let rows: Vec<Vec<String>> = rows.collect();
        let mut out = stdout();
        out.text(&format_table(&heading, &rows, Painter::stdout()))?;
        out.line(&text!(
            "\nat most: {} of memory, {} processes of servers, {} sockets",
            Untrusted(&bytes(self.memory())),
            self.processes,
            self.sockets
        ))?;
        out.line(&text!(
            "besides: what waits behind an unread answer of an event stream, up to {} for each, and the memory of the processes",
            Untrusted(&bytes(self.queue))
        ))
    }
}

/// Multiplies limits, which may be as large as a person writes them.
fn product(factors: impl IntoIterator<Item = usize>) -> usize {
    factors.into_iter().fold(1, usize::saturating_mul)
}

/// Adds limits.
fn sum(limits: impl IntoIterator<Item = usize>) -> usize {
    limits.into_iter().fold(0, usize::saturating_add)
}

/// Formats a size, rounded up to a tenth of its unit.
fn bytes(bytes: usize) -> String {
    for (size, unit) in [(1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")] {
        if bytes >= size {
            let tenths = (bytes as u128 * 10).div_ceil(size as u128);
            return match (tenths / 10, tenths % 10) {
                (whole, 0) => format!("{whole} {unit}"),
                (whole, tenth) => format!("{whole}.{tenth} {unit}"),
            };
        }
    }
    format!("{bytes} B")
}
