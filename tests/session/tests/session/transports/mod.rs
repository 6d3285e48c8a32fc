//! Transports (`basic/transports`; 2026-07-28: `basic/transports/stdio`, `basic/transports/streamable-http`): the
//! stream and status of each message, and the effect of the end of a stream or session.

mod abandoned;
mod backpressure;
mod batches;
mod header_mirroring;
mod hints;
mod http_sse;
mod method_header;
mod orphans;
mod oversized;
mod principals;
mod refused_notifications;
mod requirements_headers;
mod requirements_http;
mod requirements_parameters;
mod requirements_streams;
mod resumption;
mod session_ends;
mod session_loss;
mod snapshots;
mod standalone;
mod streamable_http;
mod withdrawn;
