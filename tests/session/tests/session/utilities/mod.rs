//! Utilities: logging, progress, cancellation and subscriptions (`basic/utilities`, `server/utilities`; 2026-07-28:
//! `basic/patterns`).

mod cancellation;
mod extension_notifications;
mod injected_metadata;
mod listening;
mod notifications;
mod placement;
mod progress;
mod requirements;
mod requirements_tasks;
mod subscriptions;
