use mcp_exact::server;

struct NotAResult;

struct Files;

#[server(name = "files", version = "1")]
impl Files {
    #[tool]
    async fn tool(&self) -> NotAResult {
        NotAResult
    }

    #[prompt]
    async fn prompt(&self) -> Result<u8, std::io::Error> {
        Ok(1)
    }

    #[resource("files://all")]
    async fn resource(&self) -> Result<String, u8> {
        Err(1)
    }
}

fn main() {}
