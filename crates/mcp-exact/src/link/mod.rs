//! Connections of a server: the only module of the server that calls the session crate.

mod dispatcher;
mod listeners;
mod request;
mod sender;

pub(crate) use listeners::Listeners;
pub(crate) use request::Reply;
pub use request::Request;
pub(crate) use sender::RequestLink;
