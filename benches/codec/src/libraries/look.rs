//! The cheap look of this repository: kind, id, method and raw parts, borrowed. It decodes no parameters and encodes
//! nothing.

use mcp_2025_06_18 as mcp;

use crate::contestant::{Library, Role};
use crate::entry::Entry;

pub struct Look;

impl Library for Look {
    const NAME: &'static str = "mcp-exact look";
    const ROLE: Role = Role::Limit;
    const ENCODES: bool = false;
    type Decoded<'e> = mcp::Look<'e>;

    fn decode(entry: &Entry) -> Result<mcp::Look<'_>, String> {
        mcp::Look::at(entry.text()?).map_err(|error| error.to_string())
    }

    fn encode(_: &mcp::Look<'_>, _: &mut Vec<u8>) {}
}
