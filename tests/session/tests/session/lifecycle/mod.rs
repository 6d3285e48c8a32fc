//! Lifecycle and versioning: the handshake, requests that state their revision, capabilities, extensions (`basic/lifecycle`;
//! 2026-07-28: `basic/versioning`, `server/discover`).

mod capabilities;
mod discover;
mod extensions;
mod fallbacks;
mod handshake;
mod probing;
mod renegotiation;
mod requirements;
mod requirements_discover;
mod requirements_versions;
mod revision_pairs;
