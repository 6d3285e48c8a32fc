//! Tasks: tool calls that are answered immediately with a handle and whose result is fetched later (extension
//! `io.modelcontextprotocol/tasks` of 2026-07-28).
//!
//! [`Tasks`] is the configuration of a server, [`TaskStore`] stores data that must outlive the process, and the module
//! `live` contains tasks whose handlers run in this process. Handlers of tasks are run by `server/tasks/`, and the methods
//! of tasks answered by `server/answer/tasks.rs`.

mod call;
mod config;
mod directory;
mod error;
mod limited;
mod live;
mod record;
mod registry;
mod share;
mod store;

pub(crate) use call::{CallTask, TaskState};
pub use config::Tasks;
pub use directory::DirectoryTaskStore;
pub use error::{TaskError, TaskStoreError};
pub(crate) use live::{LiveTask, SAVE_RETRY_DELAY, UnclaimedRecord};
pub use record::TaskRecord;
pub(crate) use record::{TaskEnd, TaskOrigin};
pub(crate) use registry::TaskRegistry;
pub(crate) use store::MessageKind;
pub use store::{MemoryTaskStore, TaskExchange, TaskMessage, TaskStore};
