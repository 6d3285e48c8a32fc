//! Handlers that run again for each retry of the client (2026-07-28, `basic/patterns/mrtr`): steps that are repeated,
//! and steps that run only once.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use mcp_exact::testing::revisions_from;
use mcp_exact::{Cx, Error, Level, Progress, revisions};

use super::{Confirm, Counter, Name, builder, connect, newest};

use crate::common::{count_from, spec};

/// Concurrent input requests are sent together, from 2026-07-28 on in one result.
#[tokio::test]
async fn joined_input_requests_are_sent_together() {
    let runs = Counter::default();
    let counted = runs.clone();
    let server = builder()
        .tool("both", move |cx: Cx| {
            let runs = counted.clone();
            async move {
                runs.increment();
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

/// The effect of `once` is not repeated in later runs of a request, and every run obtains the same result.
#[tokio::test]
async fn once_effects_are_not_repeated() {
    let (runs, effects) = (Counter::default(), Counter::default());
    let counted = (runs.clone(), effects.clone());
    let server = builder()
        .tool("steps", move |cx: Cx| {
            let (runs, effects) = counted.clone();
            async move {
                runs.increment();
                let ticket = cx
                    .once("ticket", async {
                        effects.increment();
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

/// An effect of `once` that has failed runs again in the next run of the handler.
#[tokio::test]
async fn failed_effects_are_retried() {
    let tries = Counter::default();
    let counted = tries.clone();
    let server = builder()
        .tool("steps", move |cx: Cx| {
            let tries = counted.clone();
            async move {
                let first = cx
                    .once("flaky", async {
                        tries.increment();
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

/// An input request waits until a concurrent effect has finished, so that the effect is not interrupted.
#[tokio::test]
async fn effects_concurrent_with_input_requests_finish() {
    let (started, finished) = (Counter::default(), Counter::default());
    let counted = (started.clone(), finished.clone());
    let server = builder()
        .tool("both", move |cx: Cx| {
            let (started, finished) = counted.clone();
            async move {
                let effect = cx.once("slow", async {
                    started.increment();
                    tokio::time::sleep(Duration::from_millis(20)).await;
                    finished.increment();
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
    let (once, again) = count_from("2025-06-18");
    assert_eq!(
        (started.get(), finished.get()),
        (once + again, once + again)
    );
}

/// Progress and logs of earlier runs are not sent again.
#[tokio::test]
async fn replay_repeats_no_progress_or_logs() {
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
    for revision in revisions().filter(|revision| spec(*revision).has_elicitation()) {
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

/// If a handler sends a different input request when it runs again, the request ends with an error that contains the
/// key of the earlier input request.
#[tokio::test]
async fn divergent_replay_is_an_error() {
    let runs = Counter::default();
    let counted = runs.clone();
    let server = builder()
        .tool("random", move |cx: Cx| {
            let runs = counted.clone();
            async move {
                runs.increment();
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

/// A later run may return early without an error, because external state may have changed.
#[tokio::test]
async fn results_before_all_answers_are_accepted() {
    let runs = Counter::default();
    let counted = runs.clone();
    let server = builder()
        .tool("file", move |cx: Cx| {
            let runs = counted.clone();
            async move {
                runs.increment();
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
