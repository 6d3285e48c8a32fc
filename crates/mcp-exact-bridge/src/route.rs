//! One relayed request from admission to answer, for clients with sessions and without.
//!
//! [`call`] converts, sends and answers; [`session`] and [`stateless`] decide whose connection it is.

pub(crate) mod backends;
pub(crate) mod cached;
pub(crate) mod call;
pub(crate) mod calls;
pub(crate) mod relay;
pub(crate) mod result_size;
pub(crate) mod retry;
pub(crate) mod server;
pub(crate) mod session;
pub(crate) mod stateless;
pub(crate) mod translate;
pub(crate) mod undeclared;
pub(crate) mod uris;
