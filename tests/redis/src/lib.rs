//! Redis servers, load balancers and server processes for the tests, each on a free port and killed on drop.
#![allow(missing_docs, clippy::missing_panics_doc)]

pub mod burst;
pub mod chaos;
pub mod daemon;
pub mod exchange;
pub mod network;
pub mod servers;
pub mod simulation;
