//! Input requests of handlers: the same code in both lifecycles.

mod replay;
#[cfg(feature = "http-server")]
mod states;
mod visits;

use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use mcp_exact::testing::{every_revision, revisions_from};
use mcp_exact::{
    Client, ClientError, Connect, Cx, Elicited, Error, Form, InputRequestError,
    InputRequestErrorKind, Lifecycle, PeerError, PromptResult, Result, Revision, Root, Sample,
    SampleReply, SampleRequest, Server, ServerBuilder, Tool, revisions, schemars, serde,
};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::common::{count_from, has_sessions, object, spec};

/// Form that asks for a confirmation.
#[derive(Debug, Deserialize, JsonSchema)]
struct Confirm {
    /// True if the run continues.
    yes: bool,
}

/// Form that asks for a name.
#[derive(Debug, Deserialize, JsonSchema)]
struct Name {
    name: String,
}

/// Counter whose clones share one count.
#[derive(Debug, Clone, Default)]
struct Counter(Arc<AtomicUsize>);

impl Counter {
    /// Increments the count.
    fn increment(&self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }

    /// Returns the count.
    fn get(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }
}

/// Returns the newest revision.
fn newest() -> Revision {
    revisions().next_back().expect("a revision")
}

fn builder() -> ServerBuilder {
    Server::builder("test", "1.0.0")
}

/// Configures a client that answers `Confirm` with yes, `Name` with a name and sampling with a text, and that has a
/// root.
fn connect(server: &Server) -> Connect {
    Client::in_memory(server)
        .on_elicit(|form: Form| async move {
            let schema = form
                .schema()
                .map(|schema| schema.to_string())
                .unwrap_or_default();
            if schema.contains("\"yes\"") {
                form.accept(&object(r#"{"yes":true}"#))
            } else {
                form.accept(&object(r#"{"name":"Ada"}"#))
            }
        })
        .on_sample(|request: SampleRequest| async move {
            SampleReply::message("model", format!("{}? Paris.", request.text()))
        })
        .roots([Root {
            uri: "file:///home".to_owned(),
            name: Some("Home".to_owned()),
        }])
}

/// One handler elicits a form in each revision that defines elicitation.
#[tokio::test]
async fn forms_work_in_every_elicitation_revision() {
    let runs = Counter::default();
    let counted = runs.clone();
    let server = builder()
        .tool("remove", move |cx: Cx| {
            let runs = counted.clone();
            async move {
                runs.increment();
                let answer = cx.elicit::<Confirm>("Delete it?").await?;
                Ok::<_, Error>(if answer.accepted_with(|form| form.yes) {
                    "removed"
                } else {
                    "kept"
                })
            }
        })
        .build()
        .expect("a server");
    revisions_from(
        "2025-06-18",
        || connect(&server),
        |client| async move {
            let text: String = client.call("remove", &()).await.expect("a text");
            assert_eq!(text, "removed");
        },
    )
    .await;
    // Once for each session, and twice where the handler runs again.
    let (once, twice) = count_from("2025-06-18");
    assert_eq!(runs.get(), once + 2 * twice);
}

/// Form that asks for a code of at most three capital letters.
#[derive(Debug, Deserialize, JsonSchema)]
struct Code {
    #[schemars(length(max = 3), regex(pattern = "^[A-Z]*$"))]
    code: String,
}

/// "Servers SHOULD validate received data matches the requested schema" (`client/elicitation`, "Security
/// Considerations"): answers of a client that does not validate are rejected.
#[tokio::test]
async fn answers_violating_the_form_are_rejected() {
    let server = builder()
        .tool("ask", |cx: Cx| async move {
            let answer = cx.elicit::<Code>("Which?").key("which").await?;
            let code = answer.accepted().map(|code| code.code);
            Ok::<_, Error>(code.unwrap_or_default())
        })
        .build()
        .expect("a server");
    // Answers of the first request are not checked by the client.
    let client = Client::in_memory(&server)
        .revision(newest())
        .on_elicit(|form: Form| async move { form.decline() })
        .await
        .expect("a client");
    for (code, fits) in [("ABC", true), ("ABCD", false), ("abc", false)] {
        let content = format!(r#"{{"action":"accept","content":{{"code":{code:?}}}}}"#);
        let params =
            format!(r#"{{"name":"ask","arguments":{{}},"inputResponses":{{"which":{content}}}}}"#);
        let result = client.request("tools/call", Some(object(&params))).await;
        let result = result.expect("a result").to_string();
        assert_eq!(!result.contains("does not fit its field"), fits, "{result}");
    }
}

#[tokio::test]
async fn declined_and_cancelled_forms_are_distinguished() {
    let server = builder()
        .tool("ask", |cx: Cx| async move {
            let answer = cx.elicit::<Confirm>("Sure?").await?;
            Ok::<_, Error>(match answer {
                Elicited::Accepted(_) => "accepted",
                Elicited::Declined => "declined",
                Elicited::Cancelled => "cancelled",
            })
        })
        .build()
        .expect("a server");
    for (declines, expected) in [(true, "declined"), (false, "cancelled")] {
        let connect = || {
            Client::in_memory(&server).on_elicit(move |form: Form| async move {
                if declines {
                    form.decline()
                } else {
                    form.cancel()
                }
            })
        };
        revisions_from("2025-06-18", connect, move |client| async move {
            let text: String = client.call("ask", &()).await.expect("a text");
            assert_eq!(text, expected);
        })
        .await;
    }
}

#[tokio::test]
async fn every_revision_supports_sampling_and_roots() {
    let server = builder()
        .tool("both", |cx: Cx| async move {
            let roots = cx.roots().await?;
            let sampled = cx
                .sample(&Sample::new("Capital of France", 10).system("Be brief."))
                .await?;
            Ok::<_, Error>(format!(
                "{} {} {:?}",
                roots[0].uri,
                sampled.text(),
                sampled.model()
            ))
        })
        .build()
        .expect("a server");
    every_revision(
        || connect(&server),
        |client| async move {
            let text: String = client.call("both", &()).await.expect("a text");
            assert_eq!(
                text,
                "file:///home Capital of France? Paris. Some(\"model\")"
            );
        },
    )
    .await;
}

/// An input request whose capability the client has not declared is an error: of the tool, or from 2026-07-28 on of the
/// request.
#[tokio::test]
async fn undeclared_input_requests_name_the_capability() {
    let server = builder()
        .tool("ask", |cx: Cx| async move {
            let error = cx
                .elicit::<Confirm>("Sure?")
                .await
                .expect_err("no capability");
            Ok::<_, Error>(format!(
                "{}",
                matches!(error.kind(), InputRequestErrorKind::Unsupported { .. })
            ))
        })
        .tool("fails", |cx: Cx| async move {
            cx.elicit::<Confirm>("Sure?").await?;
            Ok::<_, Error>(())
        })
        .build()
        .expect("a server");
    every_revision(
        || Client::in_memory(&server),
        |client| async move {
            let text: String = client.call("ask", &()).await.expect("a text");
            assert_eq!(text, "true");
            let result = client.call_tool("fails", &()).await;
            // 2026-07-28, `basic`, "Client Capabilities": MissingRequiredClientCapabilityError.
            if has_sessions(client.revision()) {
                let text = result.expect("a result").text();
                let revision = client.revision();
                assert!(text.contains(&format!("speaks {revision}")), "{text}");
                assert!(text.contains("`elicitation.form`"), "{text}");
            } else {
                let error = result.expect_err("an error");
                assert!(
                    matches!(error, ClientError::Server(error) if error.code() == Some(-32021))
                );
            }
        },
    )
    .await;
}

#[tokio::test]
async fn prompts_and_resources_can_request_input() {
    let server = builder()
        .prompt("greet", |cx: Cx| async move {
            let name = cx.elicit::<Name>("Who are you?").await?.accepted();
            Ok::<_, Error>(PromptResult::user(format!(
                "Hello, {}!",
                name.map(|form| form.name).unwrap_or_default()
            )))
        })
        .resource("secret://plan", |cx: Cx| async move {
            let sure = cx
                .elicit::<Confirm>("Really?")
                .await?
                .accepted_with(|form| form.yes);
            Ok::<_, Error>(format!("sure: {sure}"))
        })
        .build()
        .expect("a server");
    revisions_from(
        "2025-06-18",
        || connect(&server),
        |client| async move {
            assert_eq!(
                client.prompt("greet", []).await.expect("a prompt").text(),
                "Hello, Ada!"
            );
            assert_eq!(
                client.read("secret://plan").await.expect("contents").text(),
                "sure: true"
            );
        },
    )
    .await;
}

/// Input requests of a task that was spawned within `once` fail, because the effect may wait for the task. Before and
/// after effects, tasks can send input requests, and so can the handler concurrently.
#[tokio::test]
async fn tasks_of_effects_cannot_request_input() {
    let server = builder()
        .tool("ask", |cx: Cx| async move {
            let spawned = |cx: Cx| async move {
                let elicitation = tokio::spawn(async move { cx.elicit::<Confirm>("Sure?").await });
                elicitation.await.expect("no panic")
            };
            let within = cx.once("asks", async {
                let refused = spawned(cx.clone()).await.expect_err("an effect");
                Ok::<_, Error>(*refused.kind() == InputRequestErrorKind::InsideOnce)
            });
            let within = within.await?;
            let after = spawned(cx.clone()).await?.accepted_with(|form| form.yes);
            let effect = tokio::spawn({
                let cx = cx.clone();
                async move { cx.once("elsewhere", async { Ok::<_, Error>(1) }).await }
            });
            let beside = cx.elicit::<Confirm>("Really?").await?;
            let beside = beside.accepted_with(|form| form.yes);
            effect.await.expect("no panic")?;
            Ok::<_, Error>(format!("{within} {after} {beside}"))
        })
        .build()
        .expect("a server");
    revisions_from(
        "2025-06-18",
        || connect(&server),
        |client| async move {
            let text: String = client.call("ask", &()).await.expect("a text");
            assert_eq!(text, "true true true");
        },
    )
    .await;
}

/// An input request within `once` fails immediately, in every revision; a concurrent input request outside of the
/// effect is sent.
#[tokio::test]
async fn effects_cannot_request_input() {
    let server = builder()
        .tool("ask", |cx: Cx| async move {
            let effect = async {
                let answer = cx.elicit::<Confirm>("Sure?").await?;
                Ok::<_, Error>(answer.accepted_with(|form| form.yes))
            };
            let error = cx.once("asks", effect).await.expect_err("an effect");
            let error = error
                .downcast_ref::<InputRequestError>()
                .map(InputRequestError::kind);
            let fails = error == Some(&InputRequestErrorKind::InsideOnce);
            let effect = async {
                tokio::task::yield_now().await;
                Ok::<_, Error>(1)
            };
            let (effect, answer) =
                tokio::join!(cx.once("works", effect), cx.elicit::<Confirm>("Sure?"));
            let answer = answer?.accepted_with(|form| form.yes);
            Ok::<_, Error>(format!("{fails} {} {answer}", effect?))
        })
        .build()
        .expect("a server");
    revisions_from(
        "2025-06-18",
        || connect(&server),
        |client| async move {
            let text: String = client.call("ask", &()).await.expect("a text");
            assert_eq!(text, "true 1 true");
        },
    )
    .await;
}

/// When an input request ends a run, operations that the run has started are cancelled; a later run starts them again.
#[tokio::test]
async fn input_requests_cancel_spawned_work() {
    let cancelled = Arc::new(tokio::sync::Semaphore::new(0));
    let counted = Arc::clone(&cancelled);
    let server = builder()
        .tool("ask", move |cx: Cx| {
            let (told, cancelled) = (cx.clone(), Arc::clone(&counted));
            tokio::spawn(async move {
                told.cancelled().await;
                cancelled.add_permits(1);
            });
            async move {
                let answer = cx.elicit::<Confirm>("Sure?").await?;
                Ok::<_, Error>(answer.accepted_with(|form| form.yes).to_string())
            }
        })
        .build()
        .expect("a server");
    let client = connect(&server).revision(newest()).await.expect("a client");
    let text: String = client.call("ask", &()).await.expect("a text");
    assert_eq!(text, "true");
    drop(cancelled.acquire().await.expect("it is open"));
}

/// The timeout of an input request works in both lifecycles, and is distinguished from an error.
#[tokio::test]
async fn unanswered_input_requests_time_out() {
    let server = builder()
        .tool("ask", |cx: Cx| async move {
            let asked = cx
                .elicit::<Confirm>("Sure?")
                .timeout(Duration::from_millis(20))
                .await;
            let late = asked.is_err_and(|error| *error.kind() == InputRequestErrorKind::TimedOut);
            Ok::<_, Error>(late.to_string())
        })
        .build()
        .expect("a server");
    let connect = || {
        Client::in_memory(&server).on_elicit(|form: Form| async move {
            tokio::time::sleep(Duration::from_millis(80)).await;
            form.accept(&object(r#"{"yes":true}"#))
        })
    };
    revisions_from("2025-06-18", connect, |client| async move {
        let text: String = client.call("ask", &()).await.expect("a text");
        assert_eq!(text, "true", "{}", client.revision());
    })
    .await;
}

/// The time limit of a handler is paused while the user answers.
#[tokio::test(start_paused = true)]
async fn handler_timeout_pauses_during_input_requests() {
    let server = builder()
        .timeout(Duration::from_millis(400))
        .tool("ask", |cx: Cx| async move {
            cx.elicit::<Confirm>("Sure?").await?;
            Ok::<_, Error>("in time")
        })
        .tool("slow", || async {
            tokio::time::sleep(Duration::from_secs(10)).await;
            "too late"
        })
        .build()
        .expect("a server");
    let connect = || {
        Client::in_memory(&server).on_elicit(|form: Form| async move {
            tokio::time::sleep(Duration::from_millis(800)).await;
            form.accept(&object(r#"{"yes":true}"#))
        })
    };
    revisions_from("2025-06-18", connect, |client| async move {
        let text: String = client.call("ask", &()).await.expect("a text");
        assert_eq!(text, "in time");
        let output = client.call_tool("slow", &()).await.expect("a result");
        assert!(output.is_error());
        assert_eq!(output.text(), "the handler did not finish in time");
    })
    .await;
}

/// Waits until a counter has reached a value.
async fn wait_for_count(count: &Counter, times: usize) {
    let counted = async {
        while count.get() < times {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    let in_time = tokio::time::timeout(Duration::from_secs(60), counted).await;
    assert!(in_time.is_ok(), "{} of {times}", count.get());
}

/// Dropping a call on the client cancels the handler; a cooperative handler is notified and can clean up.
#[tokio::test]
async fn cancellation_reaches_handlers() {
    let (begun, dropped, cleaned) = (Counter::default(), Counter::default(), Counter::default());
    /// Increments the counter on drop.
    struct Guard(Counter);
    impl Drop for Guard {
        fn drop(&mut self) {
            self.0.increment();
        }
    }
    let counted = (dropped.clone(), cleaned.clone());
    let begins = (begun.clone(), begun.clone());
    let server = builder()
        .tool("dropped", move || {
            let guard = Guard(counted.0.clone());
            begins.0.increment();
            async move {
                std::future::pending::<()>().await;
                drop(guard);
            }
        })
        .tool(Tool::new("cooperative").cooperative(), move |cx: Cx| {
            let cleaned = counted.1.clone();
            begins.1.increment();
            async move {
                cx.cancelled().await;
                assert!(cx.progress(1, 1).is_err());
                cleaned.increment();
                "cleaned up"
            }
        })
        .build()
        .expect("a server");
    let mut calls = 0;
    for revision in revisions() {
        let client = connect(&server).revision(revision).await.expect("a client");
        for tool in ["dropped", "cooperative"] {
            calls += 1;
            tokio::select! {
                ended = client.call_tool(tool, &()) => panic!("{tool}: {ended:?}"),
                () = wait_for_count(&begun, calls) => {}
            }
        }
    }
    wait_for_count(&dropped, 5).await;
    wait_for_count(&cleaned, 5).await;
}

/// An input request whose future is dropped by the handler is cancelled (up to 2025-11-25).
#[tokio::test(start_paused = true)]
async fn dropped_input_requests_are_cancelled() {
    let withdrawn = Counter::default();
    /// Increments the counter on drop.
    struct Guard(Counter);
    impl Drop for Guard {
        fn drop(&mut self) {
            self.0.increment();
        }
    }
    let server = builder()
        .tool("ask", |cx: Cx| async move {
            if cx.lifecycle() == Lifecycle::Discover {
                return "not here".to_owned();
            }
            let asked =
                tokio::time::timeout(Duration::from_millis(500), cx.elicit::<Confirm>("Sure?"))
                    .await;
            asked.is_err().to_string()
        })
        .build()
        .expect("a server");
    let counted = withdrawn.clone();
    let connect = || {
        let withdrawn = counted.clone();
        Client::in_memory(&server).on_elicit(move |form: Form| {
            let guard = Guard(withdrawn.clone());
            async move {
                std::future::pending::<()>().await;
                drop(guard);
                form.decline()
            }
        })
    };
    for revision in
        revisions().filter(|revision| matches!(revision.as_str(), "2025-06-18" | "2025-11-25"))
    {
        let client = connect().revision(revision).await.expect("a client");
        let text: String = client.call("ask", &()).await.expect("a text");
        assert_eq!(text, "true");
    }
    wait_for_count(&withdrawn, 2).await;
}

/// The error of a client that refuses a sampling request is an error of the input request up to 2025-11-25, and ends
/// the call from 2026-07-28 on.
#[tokio::test]
async fn refused_sampling_is_an_error() {
    let server = builder()
        .tool("sample", |cx: Cx| async move {
            let error = cx
                .sample(&Sample::new("Hi", 1))
                .await
                .expect_err("a refusal");
            Ok::<_, Error>(error.to_string())
        })
        .build()
        .expect("a server");
    let connect = || {
        Client::in_memory(&server).on_sample(|_| async { SampleReply::refuse("the user said no") })
    };
    for revision in revisions().filter(|revision| spec(*revision).has_server_requests()) {
        let client = connect().revision(revision).await.expect("a client");
        let text: String = client.call("sample", &()).await.expect("a text");
        assert!(text.contains("the user said no"), "{text}");
    }
    // From 2026-07-28 on a client cannot answer a question with an error: its request ends.
    let client = connect().revision(newest()).await.expect("a client");
    assert!(client.call_tool("sample", &()).await.is_err());
}

/// A context that outlives its request sends no messages.
#[tokio::test]
async fn context_calls_after_end_fail() {
    let kept = Arc::new(Mutex::new(None::<Cx>));
    let keep = Arc::clone(&kept);
    let server = builder()
        .tool("leak", move |cx: Cx| {
            *keep.lock().expect("a lock") = Some(cx);
            async { "leaked" }
        })
        .build()
        .expect("a server");
    every_revision(
        || connect(&server),
        move |client| {
            let kept = Arc::clone(&kept);
            async move {
                let _: String = client.call("leak", &()).await.expect("a text");
                let cx = kept.lock().expect("a lock").take().expect("a context");
                assert!(cx.progress(1, 2).is_err());
                assert!(cx.info("late").is_err());
                let error = cx.elicit::<Confirm>("Sure?").await.expect_err("too late");
                let is_unsupported =
                    matches!(error.kind(), InputRequestErrorKind::Unsupported { .. });
                assert!(
                    *error.kind() == InputRequestErrorKind::Ended || is_unsupported,
                    "{error}"
                );
            }
        },
    )
    .await;
}

/// A `PeerError` of a tool's handler is the JSON-RPC error of the call.
#[tokio::test]
async fn protocol_errors_reach_the_client_unchanged() -> Result {
    let server = builder()
        .tool("refuse", |cx: Cx| async move {
            cx.elicit::<Confirm>("Sure?").await?;
            Err::<(), Error>(PeerError::new(-32000, "busy").into())
        })
        .build()?;
    revisions_from(
        "2025-06-18",
        || connect(&server),
        |client| async move {
            let error = client.call_tool("refuse", &()).await.expect_err("an error");
            assert!(matches!(error, ClientError::Server(error) if error.message() == "busy"));
        },
    )
    .await;
    Ok(())
}
