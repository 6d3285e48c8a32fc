use mcp_exact::Server;
use std::rc::Rc;

fn main() {
    let _ = Server::builder("demo", "1").tool("local", || async {
        let rc = Rc::new(1);
        std::future::ready(()).await;
        rc.to_string()
    });
}
