//! Untidy peers at every entrance: what they send, what is delivered, what is reported. Each case fails with
//! `Tolerance::Strict`, unless its revision is the one of the application, whose results a client does not decode.

mod answers;
mod budget;
mod client;
mod docs;
mod endpoint;
mod gateway;
mod others;
mod server;
mod silence;
