//! Tests of the transports with real endpoints, sockets and processes.

mod client;
mod cuts;
mod ends;
#[cfg(target_os = "linux")]
mod faults;
mod floods;
mod hardening;
mod http;
mod http2;
mod ids;
mod lost_sessions;
mod memory;
mod peers;
mod pings;
mod proxies;
#[cfg(unix)]
mod renegotiation;
mod shared;
mod shares;
mod slow_log;
#[cfg(unix)]
mod stdio;
mod stores;
mod streams;
#[cfg(unix)]
mod unix;
mod unreliable;
mod versions;
mod wire;
mod writes;
