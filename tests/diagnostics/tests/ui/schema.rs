use mcp_exact::{serde, server};

#[derive(serde::Deserialize)]
struct Plain {}

struct Files;

#[server(name = "files", version = "1")]
impl Files {
    #[tool]
    async fn no_schema(&self, plain: Plain) {
        drop(plain);
    }
}

fn main() {}
