//! Attribute macros of `mcp-exact`.
