//! Typed views of received messages: in the negotiated revision, and in a revision that the application chooses.

mod home;
mod negotiated;
