//! An in-memory pair of machines, and what tests of sessions share.
