//! Entrances of clients: their events, the server of each request, joined lists and subscriptions, and updates.

pub(crate) mod bridge;
pub(crate) mod first_client;
pub(crate) mod many;
pub(crate) mod own_endpoints;
pub(crate) mod server_config;
pub(crate) mod shared_state;
pub(crate) mod subscriptions;
pub(crate) mod update;
