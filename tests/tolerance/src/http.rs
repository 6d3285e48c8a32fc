//! A peer behind Streamable HTTP: one JSON answer for each POST, by hand, so that nothing tidies it up.

use std::io;

use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};

use crate::zoo::Peer;

/// Serves a peer at a port of this machine; returns its URL.
pub async fn serve(peer: &Peer) -> io::Result<String> {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
    let url = format!("http://{}/mcp", listener.local_addr()?);
    let peer = peer.clone();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let peer = peer.clone();
            tokio::spawn(async move {
                // A client that goes away ends its connection.
                let _ = serve_connection(stream, &peer).await;
            });
        }
    });
    Ok(url)
}

async fn serve_connection(stream: TcpStream, peer: &Peer) -> io::Result<()> {
    let mut stream = BufReader::new(stream);
    loop {
        let (mut length, mut is_post, mut is_first) = (0, false, true);
        loop {
            let mut line = String::new();
            if stream.read_line(&mut line).await? == 0 {
                return Ok(());
            }
            if std::mem::take(&mut is_first) {
                is_post = line.starts_with("POST");
            }
            let line = line.trim().to_ascii_lowercase();
            if let Some(value) = line.strip_prefix("content-length:") {
                length = value.trim().parse().unwrap_or(0);
            }
            if line.is_empty() {
                break;
            }
        }
        let mut body = vec![0; length];
        stream.read_exact(&mut body).await?;
        let answers = peer.answers(&String::from_utf8_lossy(&body));
        let (status, body) = match answers.first() {
            _ if !is_post => ("405 Method Not Allowed", &[][..]),
            None => ("202 Accepted", &[][..]),
            Some(answer) => ("200 OK", &answer[..]),
        };
        let head = format!(
            "HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
            body.len()
        );
        stream.write_all(head.as_bytes()).await?;
        stream.write_all(body).await?;
        stream.flush().await?;
    }
}
