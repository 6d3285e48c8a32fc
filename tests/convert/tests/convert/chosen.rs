//! Hand-made cases.
