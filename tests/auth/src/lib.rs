//! Servers that tests of authorization talk to: an authorization server whose every answer can be made hostile, a resource that
//! trusts it, and tokens of any content.

pub mod authority;
pub mod site;
pub mod tokens;
