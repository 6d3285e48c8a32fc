//! Utilities: logging, progress, cancellation and subscriptions (`basic/utilities`, `server/utilities`; 2026-07-28:
//! `basic/patterns`).

mod extension_notifications;
mod listening;
mod placement;
