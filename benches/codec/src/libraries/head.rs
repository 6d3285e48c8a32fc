//! Reader of message heads of this repository: returns kind, id, method and the raw text of the other members, all
//! borrowed. Params are not decoded, and encoding is not supported.

use mcp_2025_06_18 as mcp;

use crate::contestant::{Library, Role};
use crate::entry::Entry;

/// Reader of message heads of this repository.
pub struct MessageHead;

impl Library for MessageHead {
    const NAME: &'static str = "mcp-exact head";
    const ROLE: Role = Role::Limit;
    const ENCODES: bool = false;
    type Decoded<'e> = mcp::MessageHead<'e>;

    fn decode(entry: &Entry) -> Result<mcp::MessageHead<'_>, String> {
        mcp::MessageHead::parse(entry.text()?).map_err(|error| error.to_string())
    }

    fn encode(_: &mcp::MessageHead<'_>, _: &mut Vec<u8>) {}
}
