//! Sessions: negotiation, the specification's requirements of both roles, and resistance to hostile input.

mod base;
mod client_features;
mod hostile_peers;
mod lifecycle;
mod limits;
mod multi_round_trip;
mod properties;
mod requirements;
mod simulated_network;
mod snapshots;
mod transports;
mod utilities;
mod views;
