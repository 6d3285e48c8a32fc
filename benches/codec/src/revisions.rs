//! Speed of the crate of each revision, measured with the messages of the corpus that the crate can decode. Each
//! revision is compared with `serde_json::Value` on the messages that the revision can decode, and the number of these
//! messages is reported.

use std::fmt::Write as _;

use crate::contestant::{Contestant, Library, Role};
use crate::corpus;
use crate::entry::{Entry, Side};
use crate::libraries::value;
use crate::measure::{self, Effort};

/// Measurements of the crate of one revision.
#[derive(Debug, Clone, PartialEq)]
pub struct Figures {
    /// Identifier of the revision.
    pub revision: &'static str,
    /// Number of messages of the corpus that the crate can decode.
    pub messages: usize,
    /// Geometric mean of the decoding times relative to `serde_json::Value`.
    pub decode: f64,
    /// Geometric mean of the encoding times relative to `serde_json::Value`.
    pub encode: f64,
}

/// Measures the crates of all revisions.
pub fn figures(effort: Effort) -> Vec<Figures> {
    all()
        .into_iter()
        .map(|(revision, library)| {
            let pair = [
                crate::contestant::boxed_library::<value::Untyped>(),
                library,
            ];
            let ratios: Vec<[f64; 2]> = corpus::with_metadata()
                .into_iter()
                .filter_map(|entries| {
                    let mut known = entries.into_iter();
                    known.find(|entry| pair[1].prepare(entry).is_ok())
                })
                .filter_map(|entry| {
                    let row = measure::row(entry, &pair, effort);
                    let (value, ours) = (row.figures(0)?, row.figures(1)?);
                    Some([
                        ours.decode.min / value.decode.min,
                        ours.encode?.min / value.encode?.min,
                    ])
                })
                .collect();
            let mean = |at: usize| {
                let sum: f64 = ratios.iter().map(|ratio| ratio[at].ln()).sum();
                (sum / ratios.len() as f64).exp()
            };
            Figures {
                revision,
                messages: ratios.len(),
                decode: mean(0),
                encode: mean(1),
            }
        })
        .collect()
}

/// Returns the section of the report about the revisions.
pub fn text(figures: &[Figures]) -> String {
    let mut out =
        String::from("\nby revision, geometric mean of the ratios to serde_json::Value\n");
    for it in figures {
        // Writing to a `String` does not fail.
        let _ = writeln!(
            out,
            "  {:<12} {:>3} messages  decode {:.3}  encode {:.3}",
            it.revision, it.messages, it.decode, it.encode
        );
    }
    out
}

/// Defines a [`Library`] for the crate of each revision.
macro_rules! revisions {
    ($($id:literal $marker:ident $library:ident;)*) => {
        $(mod $library {
            use super::{Entry, Library, Role, Side};

            pub struct Typed;

            pub enum Decoded {
                Client(mcp_exact_tests_types::$library::ClientMessage),
                Server(mcp_exact_tests_types::$library::ServerMessage),
            }

            impl Library for Typed {
                const NAME: &'static str = $id;
                const ROLE: Role = Role::Ours;
                type Decoded<'e> = Decoded;

                fn decode(entry: &Entry) -> Result<Decoded, String> {
                    let answers = |_: &_| entry.answers;
                    match entry.side {
                        Side::Client => mcp_exact_tests_types::$library::decode_message(&entry.bytes, &answers).map(Decoded::Client),
                        Side::Server => mcp_exact_tests_types::$library::decode_message(&entry.bytes, &answers).map(Decoded::Server),
                    }
                    .map_err(|error| error.to_string())
                }

                fn encode(decoded: &Decoded, out: &mut Vec<u8>) {
                    match decoded {
                        Decoded::Client(message) => mcp_exact_tests_types::$library::encode_into(message, out),
                        Decoded::Server(message) => mcp_exact_tests_types::$library::encode_into(message, out),
                    }
                }
            }
        })*

        /// Returns the identifier of every revision, with the crate of the revision as a library.
        pub fn all() -> Vec<(&'static str, Box<dyn Contestant>)> {
            vec![$(($id, crate::contestant::boxed_library::<$library::Typed>())),*]
        }
    };
}

mcp_exact_tests_types::for_each_revision!(revisions);
