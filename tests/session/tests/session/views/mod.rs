//! Typed views of what came in: by the negotiated revision, and by one that the application names.

mod home;
mod negotiated;
