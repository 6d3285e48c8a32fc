//! Errors of handlers, and panics: the response that the client receives.

use mcp_exact_revisions::{MethodId, Side};

use super::*;
use crate::common::spec;

/// Errors of a tool are results, so that models can correct themselves (`server/tools`, "Error Handling").
#[tokio::test]
async fn tool_errors_become_error_results() {
    let server = server();
    every_revision(
        || Client::in_memory(&server),
        |client| async move {
            let error = client
                .call::<_, String>("fails", &())
                .await
                .expect_err("a failure");
            assert_eq!(error.to_string(), "the tool failed: disk full");
            let output = client
                .call_tool("add", &object(r#"{"a":"x","b":1}"#))
                .await
                .expect("a result");
            assert!(output.is_error());
            // The error names the argument, so that a model can correct it.
            let reason = if cfg!(feature = "validation") {
                r#""x" is not of type "integer""#
            } else {
                r#"invalid type: string "x", expected an integer"#
            };
            let expected = format!(r#"invalid arguments at "/a": {reason}"#);
            assert_eq!(output.text(), expected);
        },
    )
    .await;
}

/// A [`PeerError`] of a handler, an unknown tool, and arguments other than an object are JSON-RPC errors.
#[tokio::test]
async fn protocol_errors_stay_protocol_errors() {
    let server = server();
    every_revision(
        || Client::in_memory(&server),
        |client| async move {
            let code = |error: ClientError| match error {
                ClientError::Server(error) => error.code(),
                other => panic!("{other}"),
            };
            let refused = client
                .call_tool("refuses", &())
                .await
                .expect_err("an error");
            assert_eq!(code(refused), Some(-32602));
            let unknown = client
                .call_tool("nothing", &())
                .await
                .expect_err("an error");
            assert_eq!(code(unknown), Some(-32602));
            let wrong = client.request(
                "tools/call",
                Some(object(r#"{"name":"add","arguments":[1]}"#)),
            );
            assert_eq!(code(wrong.await.expect_err("an error")), Some(-32602));
        },
    )
    .await;
}

/// A call whose handler panics ends with an internal error, and the server answers later calls.
#[tokio::test]
async fn handler_panic_ends_only_its_request() {
    let server = server();
    every_revision(
        || Client::in_memory(&server),
        |client| async move {
            let error = client.call_tool("panics", &()).await.expect_err("a panic");
            assert!(matches!(error, ClientError::Server(error) if error.code() == Some(-32603)));
            let _: Sum = client
                .call("add", &Add { a: 1, b: 2 })
                .await
                .expect("the server lives on");
        },
    )
    .await;
}

/// Application error whose source is an error of this crate.
#[derive(Debug)]
struct Wrapped(Box<dyn std::error::Error + Send + Sync>);

impl std::fmt::Display for Wrapped {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("it failed")
    }
}

impl std::error::Error for Wrapped {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&*self.0)
    }
}

/// An error of this crate determines the answer even if an application error wraps it.
#[tokio::test]
async fn wrapped_errors_keep_their_meaning() {
    let server = Server::builder("test", "1")
        .tool("refuses", || async {
            Err::<(), _>(Wrapped(PeerError::invalid_params("not you").into()))
        })
        .resource("x://gone", || async {
            let gone = mcp_exact::ResourceNotFound {
                uri: "x://gone".to_owned(),
            };
            Err::<String, _>(Wrapped(gone.into()))
        })
        .build()
        .expect("a server");
    every_revision(
        || Client::in_memory(&server),
        |client| async move {
            let code = |error| match error {
                ClientError::Server(error) => error.code(),
                error => panic!("{error}"),
            };
            let error = client.call_tool("refuses", &()).await;
            assert_eq!(code(error.expect_err("refused")), Some(-32602));
            let error = client.read("x://gone").await.expect_err("gone");
            let expected = spec(client.revision()).resource_not_found_code();
            assert_eq!(code(error), Some(expected));
        },
    )
    .await;
}

/// Extractor that panics.
struct Panics;

impl mcp_exact::FromCall for Panics {
    fn from_call(_: &mcp_exact::Call) -> Result<Self> {
        panic!("in the extractor")
    }
}

/// Payload of a panic whose destructor panics.
struct PanicsOnDrop;

impl Drop for PanicsOnDrop {
    fn drop(&mut self) {
        panic!("in the payload")
    }
}

/// If application code outside of a handler's future panics, only the request fails.
#[tokio::test]
async fn panics_outside_of_handlers_are_caught() {
    let server = Server::builder("test", "1")
        .tool("extractor", |_: Panics| async { "" })
        .tool("closure", || {
            if true {
                panic!("before the async block")
            }
            async { "" }
        })
        .tool("payload", || {
            if true {
                std::panic::panic_any(PanicsOnDrop)
            }
            async { "" }
        })
        .tool("fine", || async { "fine" })
        .build()
        .expect("a server");
    every_revision(
        || Client::in_memory(&server),
        |client| async move {
            for tool in ["extractor", "closure", "payload"] {
                let error = client.call_tool(tool, &()).await.expect_err("a panic");
                assert!(
                    matches!(error, ClientError::Server(error) if error.code() == Some(-32603))
                );
            }
            let fine: String = client.call("fine", &()).await.expect("the server lives on");
            assert_eq!(fine, "fine");
        },
    )
    .await;
}

/// Every request of a client that the session delivers is answered by a file of `server/answer/`: a method of a new revision, for
/// which the dispatch has no arm, is named here.
#[tokio::test]
async fn every_delivered_request_is_answered() {
    let server = server();
    every_revision(
        || Client::in_memory(&server),
        |client| async move {
            let requests = spec(client.revision()).methods(Side::Client).requests();
            for name in requests {
                // A subscription lasts.
                if MethodId::from_name(name) == MethodId::SubscriptionsListen {
                    continue;
                }
                // Requests that the client does not send need capabilities that the server has not declared.
                if let Err(ClientError::Server(error)) = client.request(name, None).await {
                    let revision = client.revision();
                    assert_ne!(error.code(), Some(-32601), "{name} of {revision}: {error}");
                }
            }
        },
    )
    .await;
}
