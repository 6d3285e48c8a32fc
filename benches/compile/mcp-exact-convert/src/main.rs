//! Reads a request of a client from standard input and prints its method and its params, converted between the
//! revisions that the arguments name. The program shows the build cost of the conversions between all revisions.

use std::io::Read;

use mcp_exact_convert::{Context, KnownRevision, MessageKind, Payload, Role, convert};
use mcp_exact_wire::MessageHead;

/// Error of the program.
type Failure = Box<dyn std::error::Error>;

fn main() -> Result<(), Failure> {
    let mut text = String::new();
    std::io::stdin().read_to_string(&mut text)?;
    let mut arguments = std::env::args().skip(1);
    let mut revision = |default: &str| {
        let id = arguments.next().unwrap_or_else(|| default.to_owned());
        id.parse::<KnownRevision>()
    };
    let (from, to) = (revision("2024-11-05")?, revision("2026-07-28")?);
    let head = MessageHead::parse(&text)?;
    let root = Payload {
        kind: MessageKind::Request,
        method: head.method.as_deref().ok_or("no method")?,
        sender: Role::Client,
    };
    let params = convert(root, head.params, from, to, &mut Context::new())?;
    println!("{} {}", root.method, params.as_deref().unwrap_or_default());
    Ok(())
}
