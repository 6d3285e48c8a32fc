//! Changes that the server announces reach the clients that want to know, in every pair of revisions.

use std::time::Duration;

use mcp_exact::{ClientChange, revisions};

use crate::common::{InMemory, bridge, client_of, server};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn list_changes_reach_clients() {
    for of_server in revisions() {
        let server = server(of_server);
        let bridge = bridge(InMemory::new(&server)).await;
        for of_client in revisions() {
            let (changed, mut changes) = tokio::sync::mpsc::unbounded_channel();
            let client = client_of(&bridge, of_client)
                .on_change(move |change| drop(changed.send(change)))
                .await
                .expect("a client");
            let mut told = None;
            for _ in 0..100 {
                // The way to the server is opened beside the client's first steps.
                server
                    .tools()
                    .insert("new", || async { "" })
                    .expect("a tool");
                let wait = tokio::time::timeout(Duration::from_millis(100), changes.recv());
                if let Ok(change) = wait.await {
                    told = change;
                    break;
                }
            }
            let pair = format!("client {of_client}, server {of_server}");
            assert_eq!(told, Some(ClientChange::Tools), "{pair}");
            client.close();
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn changes_of_resources_reach_their_subscribers() {
    for of_server in revisions() {
        let server = server(of_server);
        let bridge = bridge(InMemory::new(&server)).await;
        for of_client in revisions() {
            let (changed, mut changes) = tokio::sync::mpsc::unbounded_channel();
            let client = client_of(&bridge, of_client)
                .on_change(move |change| drop(changed.send(change)))
                .await
                .expect("a client");
            let pair = format!("client {of_client}, server {of_server}");
            let subscription = client.subscribe(["docs://intro"]).await.expect(&pair);
            let wanted = ClientChange::Resource("docs://intro".to_owned());
            let mut told = None;
            for _ in 0..100 {
                server.resources().updated("docs://intro");
                let wait = tokio::time::timeout(Duration::from_millis(100), changes.recv());
                if let Ok(Some(change)) = wait.await
                    && change == wanted
                {
                    told = Some(change);
                    break;
                }
            }
            assert_eq!(told, Some(wanted), "{pair}");
            drop(subscription);
            client.close();
        }
    }
}
