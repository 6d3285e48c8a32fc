//! Sends one call with the stored tokens of a folder and prints the HTTP status: `one_call ENDPOINT FOLDER`.

use std::error::Error;
use std::io::Write as _;
use std::sync::Arc;

use bytes::Bytes;
use mcp_exact::transport::http::client::{HttpClient as _, HyperClient};
use mcp_exact_auth::client::{FileStore, Headless, OAuth};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error + Send + Sync>> {
    let mut arguments = std::env::args().skip(1);
    let endpoint = arguments.next().ok_or("the endpoint is missing")?;
    let folder = arguments.next().ok_or("the folder is missing")?;
    let oauth = OAuth::new("test")
        .allow_other_ports()
        .store(FileStore::new(folder))
        .user_agent(Headless::new(|_| async {
            Err("nobody is here to sign in".to_owned())
        }));
    let client = oauth.client(&endpoint, Arc::new(HyperClient::default()))?;
    let request = http::Request::post(&endpoint).body(Bytes::from_static(b"{}"))?;
    let response = client.send(request).await?;
    writeln!(std::io::stdout(), "{}", response.status().as_u16())?;
    Ok(())
}
