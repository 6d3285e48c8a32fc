//! Reads a message of a client from standard input and prints its method; uses the typed messages of the revision that
//! the first argument names. The program uses every revision.

use std::io::Read;

/// Error of the program.
type Failure = Box<dyn std::error::Error>;

/// Defines the function that decodes a message with the crate of a revision. The function reads the method from the
/// encoded message, because the unions of the revisions differ.
macro_rules! revisions {
    ($($id:literal $marker:ident $library:ident;)*) => {
        /// Decodes a message by the types of the revision and returns its method, or `none` for a response.
        fn method(revision: &str, bytes: &[u8]) -> Result<String, Failure> {
            match revision {
                $($id => {
                    use mcp_exact_tests_types::$library as types;
                    let message: types::ClientMessage = types::decode_message(bytes, &|_| None)?;
                    let text = types::to_string(&message);
                    let method = types::MessageHead::parse(&text)?.method;
                    Ok(method.map_or_else(|| "none".to_owned(), Into::into))
                })*
                _ => Err(format!("no revision is called {revision}").into()),
            }
        }
    };
}

mcp_exact_tests_types::for_each_revision!(revisions);

fn main() -> Result<(), Failure> {
    let mut bytes = Vec::new();
    std::io::stdin().read_to_end(&mut bytes)?;
    let revision = std::env::args()
        .nth(1)
        .unwrap_or_else(|| "2025-06-18".to_owned());
    println!("{}", method(&revision, &bytes)?);
    Ok(())
}
