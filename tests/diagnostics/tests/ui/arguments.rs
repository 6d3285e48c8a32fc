use mcp_exact::{Cx, Input, server};

struct Files<S>(S);

#[server(name = "files", version = "1")]
impl<S: Send + Sync + 'static> Files<S> {
    #[tool]
    async fn reference(&self, path: &str, bytes: &[u8], list: &Vec<String>) {}

    #[tool]
    async fn generic(&self, value: Option<S>) {}

    #[tool]
    async fn pattern(&self, (a, b): (u8, u8)) {}

    #[tool]
    async fn both(&self, Input(input): Input<u8>, path: String) {}

    #[tool]
    async fn own(&self, value: Vec<Self>) {}

    #[tool]
    async fn opaque(&self, value: impl Into<String>) {}

    #[tool]
    async fn conditional(&self, #[cfg(unix)] value: u8) {}

    #[complete(prompt = "p", argument = "a")]
    async fn completion(&self, value: String) -> Vec<String> {
        Vec::new()
    }

    #[tool]
    async fn mutable(&self, cx: &mut Cx, name: &mut String) {}
}

fn main() {}
