//! Reads a message of a client from standard input and prints its method: typed messages of the revision that the
//! first argument names. Uses every revision that there is.

use std::io::Read;

type Failure = Box<dyn std::error::Error>;

/// Decodes by the crate of a revision, and finds the method in the encoded message: the unions differ from revision to
/// revision.
macro_rules! revisions {
    ($($id:literal $library:ident)*) => {
        fn method(revision: &str, bytes: &[u8]) -> Result<String, Failure> {
            match revision {
                $($id => {
                    let message: $library::ClientMessage = $library::decode_message(bytes, &|_| None)?;
                    let text = $library::to_string(&message);
                    let method = $library::Look::at(&text)?.method;
                    Ok(method.map_or_else(|| "none".to_owned(), Into::into))
                })*
                _ => Err(format!("no revision is called {revision}").into()),
            }
        }
    };
}

// @generated revision crates: begin
revisions! {
    "2024-11-05" mcp_2024_11_05
    "2025-03-26" mcp_2025_03_26
    "2025-06-18" mcp_2025_06_18
    "2025-11-25" mcp_2025_11_25
    "2026-07-28" mcp_2026_07_28
}
// @generated revision crates: end

fn main() -> Result<(), Failure> {
    let mut bytes = Vec::new();
    std::io::stdin().read_to_end(&mut bytes)?;
    let revision = std::env::args()
        .nth(1)
        .unwrap_or_else(|| "2025-06-18".to_owned());
    println!("{}", method(&revision, &bytes)?);
    Ok(())
}
