//! Servers behind the bridge: how they are started and reached, their connections, and what is remembered of them.

pub(crate) mod backend;
pub(crate) mod client_side;
pub(crate) mod connection;
pub(crate) mod errors;
pub(crate) mod layers;
pub(crate) mod listening;
pub(crate) mod liveness;
pub(crate) mod processes;
pub(crate) mod tasks;
pub(crate) mod tools;
pub(crate) mod undeclared_tools;
pub(crate) mod upstream;
pub(crate) mod upstream_settings;
pub(crate) mod users;
