//! Measures the duration of the authentication of a request: ES256 with cached keys, for a key set with one key and for
//! a key set of the maximum size.

use std::error::Error;
use std::io::Write as _;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use mcp_exact::transport::http::server::Authenticate as _;
use mcp_exact_auth::server::{Jwks, ResourceServer};
use mcp_exact_tests_auth::tokens::Signer;
use serde_json::json;

/// Issuer of the tokens.
const ISSUER: &str = "https://as.example";
/// Resource for which the tokens are valid.
const RESOURCE: &str = "https://mcp.example/mcp";
/// Number of verifications in one measurement.
const ROUNDS: u32 = 5000;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    for keys in [1, 64] {
        let signers: Vec<Signer> = (0..keys).map(|n| Signer::new(&format!("k{n}"))).collect();
        let jwks: Vec<_> = signers
            .iter()
            .map(|signer| signer.key_set()["keys"][0].clone())
            .collect();
        let set = json!({"keys": jwks}).to_string();
        let verifier = Jwks::new(ISSUER, RESOURCE).fixed_keys(&set)?;
        let server = ResourceServer::new(ISSUER, RESOURCE, verifier)?.scopes(["read"]);
        let now = SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs();
        let claims = json!({"iss": ISSUER, "aud": RESOURCE, "sub": "u", "client_id": "c", "scope": "read", "exp": now + 600});
        let signer = signers.last().ok_or("there is a key")?;
        let bearer = format!("Bearer {}", signer.sign(&signer.header(), &claims));
        let mut least = f64::INFINITY;
        for _ in 0..5 {
            let start = Instant::now();
            for _ in 0..ROUNDS {
                let request = http::Request::post(RESOURCE).header("authorization", &bearer);
                let (mut parts, ()) = request.body(())?.into_parts();
                let accepted = server.authenticate(&mut parts).await;
                accepted.map_err(|error| format!("{error:?}"))?;
            }
            least = least.min(start.elapsed().as_secs_f64() * 1e6 / f64::from(ROUNDS));
        }
        writeln!(std::io::stdout(), "{keys} keys: {least:.1} µs a request")?;
    }
    Ok(())
}
