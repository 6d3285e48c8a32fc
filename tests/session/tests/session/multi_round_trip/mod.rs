//! Results and multi round-trip requests (2026-07-28: `basic`, "ResultType", `basic/patterns/mrtr`).

mod escapes;
mod handler_input;
mod pass_through;
mod requirements;
mod results;
mod retries;
mod server_requests;
mod state_binding;
