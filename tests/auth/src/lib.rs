//! Servers for tests of authorization: an authorization server whose responses can be malicious, a resource server that
//! accepts the tokens of this authorization server, an issuer of signed tokens with an `mcp-exact` server, and tokens
//! with arbitrary contents.

pub mod authority;
pub mod issuer;
pub mod provider;
pub mod script;
pub mod site;
pub mod tokens;
