//! Servers that tests of authorization talk to: an authorization server whose every answer can be made hostile, a resource that
//! trusts it, an issuer of signed tokens with a server of `mcp-exact`, and tokens of any content.

pub mod authority;
pub mod issuer;
pub mod site;
pub mod tokens;
