use mcp_exact::{Cx, Server};

struct NotAnExtractor;
struct NotAResult;

fn main() {
    let _ = Server::builder("demo", "1").tool("argument", |_: NotAnExtractor| async { "" });
    let _ = Server::builder("demo", "1").tool("result", |_: Cx| async { NotAResult });
    let _ = Server::builder("demo", "1").tool("sync", |_: Cx| "");
}
