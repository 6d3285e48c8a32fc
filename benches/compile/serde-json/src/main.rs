//! Reads a message of a client from standard input and prints its method; uses only serde and serde_json, without
//! derived types. The report states the costs of the other programs relative to this program.

use std::io::Read;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut bytes = Vec::new();
    std::io::stdin().read_to_end(&mut bytes)?;
    let message: serde_json::Value = serde_json::from_slice(&bytes)?;
    println!("{}", message["method"].as_str().unwrap_or("none"));
    Ok(())
}
