//! Questions of handlers to their clients: one source, both lifecycles.

mod common;

use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use mcp_exact::testing::{every_revision, revisions_from};
use mcp_exact::transport::LineTransport;
use mcp_exact::{
    AskErrorKind, Client, ClientError, Connect, Cx, Elicited, Error, Form, KeyRing, Level,
    Lifecycle, PeerError, Progress, PromptResult, Result, Revision, Root, Sample, SampleReply,
    SampleRequest, Server, ServerBuilder, Tool, revisions, schemars, serde,
};
use schemars::JsonSchema;
use serde::Deserialize;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};

use common::object;

#[derive(Debug, Deserialize, JsonSchema)]
struct Confirm {
    /// Whether to go on.
    yes: bool,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct Name {
    name: String,
}

/// How often something happened.
#[derive(Debug, Clone, Default)]
struct Count(Arc<AtomicUsize>);

impl Count {
    fn up(&self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }

    fn get(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }
}

fn newest() -> Revision {
    revisions().next_back().expect("a revision")
}

fn builder() -> ServerBuilder {
    Server::builder("test", "1.0.0")
}

/// Connects a client that answers `Confirm` with yes, `Name` with a name, sampling with a text, and has a root.
fn connect(server: &Server) -> Connect {
    Client::in_memory(server)
        .on_elicit(|form: Form| async move {
            let schema = form
                .schema()
                .map(|schema| schema.to_string())
                .unwrap_or_default();
            match schema.contains("\"yes\"") {
                true => form.accept(&object(r#"{"yes":true}"#)),
                false => form.accept(&object(r#"{"name":"Ada"}"#)),
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

#[tokio::test]
async fn forms_reach_every_revision_with_elicitation() {
    let runs = Count::default();
    let counted = runs.clone();
    let server = builder()
        .tool("remove", move |cx: Cx| {
            let runs = counted.clone();
            async move {
                runs.up();
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
    assert_eq!(runs.get(), 4);
}

#[tokio::test]
async fn declined_and_cancelled_forms_are_told_apart() {
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
async fn sampling_and_roots_reach_every_revision() {
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

/// Questions that wait at the same time are asked together: from 2026-07-28 on in one round.
#[tokio::test]
async fn joined_questions_are_asked_together() {
    let runs = Count::default();
    let counted = runs.clone();
    let server = builder()
        .tool("both", move |cx: Cx| {
            let runs = counted.clone();
            async move {
                runs.up();
                let (sure, name) = tokio::join!(
                    cx.elicit::<Confirm>("Sure?"),
                    cx.elicit::<Name>("Who are you?")
                );
                let sure = sure?.accepted_with(|form| form.yes);
                Ok::<_, Error>(format!(
                    "{sure} {}",
                    name?.accepted().map(|form| form.name).unwrap_or_default()
                ))
            }
        })
        .build()
        .expect("a server");
    let client = connect(&server).revision(newest()).await.expect("a client");
    let text: String = client.call("both", &()).await.expect("a text");
    assert_eq!((text.as_str(), runs.get()), ("true Ada", 2));
    revisions_from(
        "2025-06-18",
        || connect(&server),
        |client| async move {
            let text: String = client.call("both", &()).await.expect("a text");
            assert_eq!(text, "true Ada");
        },
    )
    .await;
}

/// What `once` has done is not repeated along one chain of states, and its result is the same in every run.
#[tokio::test]
async fn once_is_not_repeated() {
    let (runs, effects) = (Count::default(), Count::default());
    let counted = (runs.clone(), effects.clone());
    let server = builder()
        .tool("steps", move |cx: Cx| {
            let (runs, effects) = counted.clone();
            async move {
                runs.up();
                let ticket = cx
                    .once("ticket", async {
                        effects.up();
                        Ok::<_, Error>(effects.get() + 41)
                    })
                    .await?;
                // The question depends on what happened once.
                cx.elicit::<Confirm>(format!("Use ticket {ticket}?"))
                    .await?;
                let name = cx.elicit::<Name>("Who are you?").await?;
                Ok::<_, Error>(format!("{ticket} {}", name.accepted().is_some()))
            }
        })
        .build()
        .expect("a server");
    let client = connect(&server).revision(newest()).await.expect("a client");
    let text: String = client.call("steps", &()).await.expect("a text");
    assert_eq!(
        (text.as_str(), runs.get(), effects.get()),
        ("42 true", 3, 1)
    );
}

#[tokio::test]
async fn failed_effects_are_tried_again() {
    let tries = Count::default();
    let counted = tries.clone();
    let server = builder()
        .tool("steps", move |cx: Cx| {
            let tries = counted.clone();
            async move {
                let first = cx
                    .once("flaky", async {
                        tries.up();
                        match tries.get() {
                            1 => Err(Error::msg("not yet")),
                            n => Ok(n),
                        }
                    })
                    .await;
                cx.elicit::<Confirm>("Go on?").await?;
                Ok::<_, Error>(format!("{:?}", first.map_err(|error| error.to_string())))
            }
        })
        .build()
        .expect("a server");
    let client = connect(&server).revision(newest()).await.expect("a client");
    let text: String = client.call("steps", &()).await.expect("a text");
    assert_eq!(text, "Ok(2)");
}

/// A question waits for an effect that runs beside it: the effect is not cut off.
#[tokio::test]
async fn effects_beside_questions_finish() {
    let (started, finished) = (Count::default(), Count::default());
    let counted = (started.clone(), finished.clone());
    let server = builder()
        .tool("both", move |cx: Cx| {
            let (started, finished) = counted.clone();
            async move {
                let effect = cx.once("slow", async {
                    started.up();
                    tokio::time::sleep(Duration::from_millis(20)).await;
                    finished.up();
                    Ok::<_, Error>(())
                });
                let (answer, effect) = tokio::join!(cx.elicit::<Confirm>("Sure?"), effect);
                effect?;
                Ok::<_, Error>(answer?.accepted_with(|form| form.yes).to_string())
            }
        })
        .build()
        .expect("a server");
    revisions_from(
        "2025-06-18",
        || connect(&server),
        |client| async move {
            let text: String = client.call("both", &()).await.expect("a text");
            assert_eq!(text, "true");
        },
    )
    .await;
    assert_eq!((started.get(), finished.get()), (3, 3));
}

/// Progress and logs of earlier runs are not sent again.
#[tokio::test]
async fn progress_and_logs_are_not_repeated() {
    let server = builder()
        .tool("work", |cx: Cx| async move {
            cx.progress(1, 3)?;
            cx.info("before")?;
            cx.elicit::<Confirm>("Go on?").await?;
            cx.progress(2, 3)?;
            cx.info("after")?;
            Ok::<_, Error>("done")
        })
        .build()
        .expect("a server");
    for revision in revisions().filter(|revision| revision.as_str() >= "2025-06-18") {
        let logs = Arc::new(Mutex::new(Vec::new()));
        let log = Arc::clone(&logs);
        let client = connect(&server)
            .revision(revision)
            .on_log(move |message| log.lock().expect("a lock").push(message.data.to_string()))
            .await
            .expect("a client");
        let progress = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&progress);
        let text: String = client
            .call("work", &())
            .log_level(Level::Info)
            .on_progress(move |progress: Progress| seen.lock().expect("a lock").push(progress.done))
            .await
            .expect("a text");
        assert_eq!(text, "done");
        assert_eq!(*progress.lock().expect("a lock"), [1.0, 2.0], "{revision}");
        assert_eq!(
            *logs.lock().expect("a lock"),
            ["\"before\"", "\"after\""],
            "{revision}"
        );
    }
}

/// A handler that asks something else when it runs again is told so, by the names of both questions.
#[tokio::test]
async fn divergence_is_an_error() {
    let runs = Count::default();
    let counted = runs.clone();
    let server = builder()
        .tool("random", move |cx: Cx| {
            let runs = counted.clone();
            async move {
                runs.up();
                cx.elicit::<Confirm>(format!("Run {}?", runs.get())).await?;
                Ok::<_, Error>("done")
            }
        })
        .build()
        .expect("a server");
    let client = connect(&server).revision(newest()).await.expect("a client");
    let error = client
        .call_tool("random", &())
        .await
        .expect_err("a divergence")
        .to_string();
    assert!(
        error.contains("`elicitation-1` before") && error.contains("Cx::once"),
        "{error}"
    );
    assert_eq!(runs.get(), 2);
}

/// Returning early in a later run is no divergence: the world may have changed.
#[tokio::test]
async fn early_results_are_no_divergence() {
    let runs = Count::default();
    let counted = runs.clone();
    let server = builder()
        .tool("file", move |cx: Cx| {
            let runs = counted.clone();
            async move {
                runs.up();
                if runs.get() > 1 {
                    return Ok("the file is gone");
                }
                cx.elicit::<Confirm>("Delete it?").await?;
                Ok::<_, Error>("deleted")
            }
        })
        .build()
        .expect("a server");
    let client = connect(&server).revision(newest()).await.expect("a client");
    let text: String = client.call("file", &()).await.expect("a text");
    assert_eq!(text, "the file is gone");
}

#[tokio::test]
async fn undeclared_questions_say_what_is_missing() {
    let server = builder()
        .tool("ask", |cx: Cx| async move {
            let error = cx
                .elicit::<Confirm>("Sure?")
                .await
                .expect_err("no capability");
            Ok::<_, Error>(format!(
                "{}",
                matches!(error.kind(), AskErrorKind::Unsupported { .. })
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
            match client.revision().as_str() {
                "2026-07-28" => {
                    let error = result.expect_err("an error");
                    assert!(
                        matches!(error, ClientError::Server(error) if error.code() == Some(-32021))
                    );
                }
                revision => {
                    let text = result.expect("a result").text();
                    assert!(text.contains(&format!("speaks {revision}")), "{text}");
                    assert!(text.contains("`elicitation.form`"), "{text}");
                }
            }
        },
    )
    .await;
}

#[tokio::test]
async fn prompts_and_resources_can_ask() {
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

/// The limit of a question works in both lifecycles, and is told apart from an error.
#[tokio::test]
async fn questions_time_out() {
    let server = builder()
        .tool("ask", |cx: Cx| async move {
            let asked = cx
                .elicit::<Confirm>("Sure?")
                .timeout(Duration::from_millis(20))
                .await;
            let late = asked.is_err_and(|error| *error.kind() == AskErrorKind::TimedOut);
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

/// The limit of a handler does not run while a person answers.
#[tokio::test]
async fn handler_limits_pause_for_questions() {
    let server = builder()
        .timeout(Duration::from_millis(60))
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
            tokio::time::sleep(Duration::from_millis(150)).await;
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

/// A state is opened by every process that has the keys, and refused by one whose handler has another version.
#[tokio::test]
async fn states_move_between_processes() {
    let process = |version: &str, keys: KeyRing| {
        builder()
            .keys(keys)
            .tool(Tool::new("ask").version(version), |cx: Cx| async move {
                let sure = cx.elicit::<Confirm>("Sure?").await?;
                Ok::<_, Error>(sure.accepted_with(|form| form.yes).to_string())
            })
            .build()
            .expect("a server")
    };
    let first = process("1", KeyRing::new([1; 32], []));
    let params = asked_params(&first).await;
    let retry = |server: Server| {
        let params = params.clone();
        async move {
            let client = connect(&server).revision(newest()).await.expect("a client");
            let result = client.request("tools/call", Some(params)).await;
            result.map(|result| result.get("content").expect("content").to_string())
        }
    };
    let same = retry(process("1", KeyRing::new([2; 32], [[1; 32]]))).await;
    assert_eq!(
        same.expect("a result"),
        r#"[{"type":"text","text":"true"}]"#
    );
    let newer = retry(process("2", KeyRing::new([1; 32], [])))
        .await
        .expect_err("another version");
    assert!(
        newer
            .to_string()
            .contains("the handler has changed since it asked"),
        "{newer}"
    );
    let foreign = retry(process("1", KeyRing::new([3; 32], [])))
        .await
        .expect_err("another key");
    assert!(matches!(foreign, ClientError::Server(error) if error.code() == Some(-32602)));
}

/// Returns the params of a retry: those that a client would send after the first round.
async fn asked_params(server: &Server) -> mcp_exact::JsonObject {
    let (near, far) = tokio::io::duplex(64 << 10);
    let (reader, writer) = tokio::io::split(far);
    let serving = server.clone();
    tokio::spawn(async move {
        serving
            .serve(LineTransport::new(reader, writer, 64 << 10))
            .await
    });
    let (reader, mut writer) = tokio::io::split(near);
    let meta = r#"{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"elicitation":{"form":{}}}}"#;
    let newline = "\n";
    let request = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"ask","arguments":{{}},"_meta":{meta}}}}}{newline}"#
    );
    writer
        .write_all(request.as_bytes())
        .await
        .expect("the server reads");
    let mut lines = BufReader::new(reader).lines();
    let line = lines.next_line().await.expect("a line").expect("an answer");
    let answer = object(&line);
    let result = object(answer.get("result").expect("a result").text());
    assert_eq!(
        result.get("resultType").expect("a type").text(),
        "\"input_required\""
    );
    let asks = object(result.get("inputRequests").expect("questions").text());
    let (name, _) = asks.iter().next().expect("a question");
    let answers = format!(r#"{{"{name}":{{"action":"accept","content":{{"yes":true}}}}}}"#);
    let mut params = object(r#"{"name":"ask","arguments":{}}"#);
    params.insert("inputResponses", object(&answers));
    params.insert("requestState", result.get("requestState").expect("a state"));
    params
}

/// A state is bound to its request: with other arguments it is refused.
#[tokio::test]
async fn states_belong_to_their_request() {
    let server = builder()
        .tool("ask", |cx: Cx| async move {
            let sure = cx.elicit::<Confirm>("Sure?").await?;
            Ok::<_, Error>(sure.accepted_with(|form| form.yes).to_string())
        })
        .build()
        .expect("a server");
    let mut params = asked_params(&server).await;
    params.insert("arguments", object(r#"{"other":1}"#));
    let client = connect(&server).revision(newest()).await.expect("a client");
    let error = client
        .request("tools/call", Some(params))
        .await
        .expect_err("another request");
    assert!(matches!(error, ClientError::Server(error) if error.code() == Some(-32602)));
}

/// A client that drops its call cancels the handler; a cooperative one is told and cleans up.
#[tokio::test]
async fn cancellation_reaches_handlers() {
    let (dropped, cleaned) = (Count::default(), Count::default());
    struct Guard(Count);
    impl Drop for Guard {
        fn drop(&mut self) {
            self.0.up();
        }
    }
    let counted = (dropped.clone(), cleaned.clone());
    let server = builder()
        .tool("dropped", move || {
            let guard = Guard(counted.0.clone());
            async move {
                std::future::pending::<()>().await;
                drop(guard);
            }
        })
        .tool(Tool::new("cooperative").cooperative(), move |cx: Cx| {
            let cleaned = counted.1.clone();
            async move {
                cx.cancelled().await;
                assert!(cx.progress(1, 1).is_err());
                cleaned.up();
                "cleaned up"
            }
        })
        .build()
        .expect("a server");
    for revision in revisions() {
        let client = connect(&server).revision(revision).await.expect("a client");
        for tool in ["dropped", "cooperative"] {
            let call = client.call_tool(tool, &());
            assert!(
                tokio::time::timeout(Duration::from_millis(30), call)
                    .await
                    .is_err()
            );
        }
    }
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert_eq!((dropped.get(), cleaned.get()), (5, 5));
}

/// A question that the handler stops waiting for is withdrawn (up to 2025-11-25).
#[tokio::test]
async fn dropped_questions_are_withdrawn() {
    let withdrawn = Count::default();
    struct Guard(Count);
    impl Drop for Guard {
        fn drop(&mut self) {
            self.0.up();
        }
    }
    let server = builder()
        .tool("ask", |cx: Cx| async move {
            if cx.lifecycle() == Lifecycle::Discover {
                return "not here".to_owned();
            }
            let asked =
                tokio::time::timeout(Duration::from_millis(20), cx.elicit::<Confirm>("Sure?"))
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
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(withdrawn.get(), 2);
}

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
    for revision in revisions().filter(|revision| revision.as_str() < "2026-07-28") {
        let client = connect().revision(revision).await.expect("a client");
        let text: String = client.call("sample", &()).await.expect("a text");
        assert!(text.contains("the user said no"), "{text}");
    }
    // From 2026-07-28 on a client cannot answer a question with an error: its request ends.
    let client = connect().revision(newest()).await.expect("a client");
    assert!(client.call_tool("sample", &()).await.is_err());
}

#[tokio::test]
async fn calls_after_the_end_are_errors() {
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
                let is_unsupported = matches!(error.kind(), AskErrorKind::Unsupported { .. });
                assert!(
                    *error.kind() == AskErrorKind::Ended || is_unsupported,
                    "{error}"
                );
            }
        },
    )
    .await;
}

#[tokio::test]
async fn errors_of_the_protocol_pass_through() -> Result {
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
