use mcp_exact::server;

struct Files;

#[server(name = "files", version = "1")]
impl Files {
    #[tool]
    async fn exclusive(&mut self) {}

    #[tool]
    async fn by_value(self) {}

    #[tool]
    async fn generic<T>(&self, value: T) {}

    #[tool(blocking)]
    async fn blocks(&self) {}
}

fn main() {}
