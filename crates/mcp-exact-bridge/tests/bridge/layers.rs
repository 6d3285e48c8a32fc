//! Layers around the calls of a server: circuit breaker, repetition of reads, and cache.

mod breaker;
mod cache;
mod gaps;
mod retry;
pub mod web;
