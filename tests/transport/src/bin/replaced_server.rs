//! Server on standard streams that simulates its replacement by another version: after its first tool call, the server
//! supports another revision. The arguments are the revisions before and after this call.

use mcp_exact_tests_transport::replaced::ReplacedServer;

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let revisions: Vec<String> = std::env::args().skip(1).collect();
    let transport = mcp_exact_transport::stdio(4 << 20).expect("streams");
    let server = ReplacedServer::new(&revisions[0], &revisions[1]);
    server.serve(transport).await;
}
