//! Serves a service of rmcp over HTTP: takes a free port, and prints `listening on http://127.0.0.1:PORT`.

use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use rmcp::ServerHandler;
use rmcp::transport::streamable_http_server::StreamableHttpService;
use rmcp::transport::streamable_http_server::session::SessionManager;
use tokio::net::TcpListener;

/// Serves connections until the process is killed.
pub async fn serve<S: ServerHandler + Send + 'static, M: SessionManager>(
    service: StreamableHttpService<S, M>,
) -> Result<(), Box<dyn std::error::Error>> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    println!("listening on http://{}", listener.local_addr()?);
    loop {
        let (stream, _) = listener.accept().await?;
        let service = TowerToHyperService::new(service.clone());
        tokio::spawn(async move {
            let connection = hyper::server::conn::http1::Builder::new();
            // A connection that a client or a proxy cuts is no failure of the server.
            let _ = connection
                .serve_connection(TokioIo::new(stream), service)
                .await;
        });
    }
}
