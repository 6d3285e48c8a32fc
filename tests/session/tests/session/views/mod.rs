//! Typed views of what came in: by the negotiated revision, and by one that the program names.

mod home;
mod negotiated;
