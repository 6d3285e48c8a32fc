//! Sessions: who agrees on what, what the specification requires of both sides, and that nothing hostile does harm.

mod asking;
mod cancellation;
mod capabilities;
mod http;
mod ledger;
mod lifecycle;
mod limits;
mod matrix;
mod notifications;
mod per_request;
mod probing;
mod progress;
mod properties;
mod requirements_elicitation;
mod requirements_flow;
mod requirements_headers;
mod requirements_http;
mod requirements_lifecycle;
mod requirements_parameters;
mod requirements_per_request;
mod requirements_rounds;
mod requirements_rpc;
mod requirements_tasks;
mod requirements_versions;
mod rpc;
mod views;
