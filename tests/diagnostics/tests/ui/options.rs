use mcp_exact::server;

struct Files;

#[server(name = "files", version = "1")]
impl Files {
    #[tool(readonly)]
    async fn unknown(&self) {}

    #[tool(title)]
    async fn value(&self) {}

    #[tool(title = "a", title = "b")]
    async fn twice(&self) {}

    #[resource]
    async fn uri(&self) {}

    #[complete(argument = "a")]
    async fn reference(&self) {}

    #[tool]
    #[prompt]
    async fn two(&self) {}
}

#[server(nam = "files")]
impl Files {}

#[server(name = "files", version = "1")]
struct Other;

#[server(name = "files", version = "1")]
impl Clone for Files {
    fn clone(&self) -> Self {
        Files
    }
}

struct Alone;

impl Alone {
    #[mcp_exact::tool]
    async fn alone(&self) {}
}

struct Page;

#[server(name = "page", version = "1")]
impl Page {
    #[tool(visibility = "users")]
    async fn users(&self) {}
}

struct Divided;

#[server(part = skilled, skills = "skills")]
impl Divided {}

#[server(skills = "a", skills = "b")]
impl Divided {}

fn main() {}
