//! Tests of records: their JSON form, answers across retries, divergence, and results of `once`.

use super::*;

/// Creates an input request with a message.
fn input_request(message: &str) -> InputRequest {
    let params = JsonObject::from_iter([("message", Json::string(message))]);
    InputRequest::new("elicitation/create", Some(params))
}

/// Returns the result of an accepted elicitation.
fn accepted_answer() -> JsonObject {
    JsonObject::from_iter([("action", Json::string("accept"))])
}

/// Suspends the run and starts the next one with an answer to each input request.
fn next_run(run: &HandlerRun) -> HandlerRun {
    let suspension = run.suspend().expect("no divergence").expect("questions");
    let record = ReplayRecord::parse(&suspension.record.into_text()).expect("a record");
    HandlerRun::resume("1", record, |_| Some(accepted_answer())).expect("the same version")
}

/// Clients and task stores keep records of earlier versions, so their JSON form does not change.
#[test]
fn records_have_a_stable_form() {
    let text = r#"{"v":"1/","q":[{"n":"a","f":18446744073709551615,"d":7,"a":{"action":"accept"}},{"n":"b","f":1}],"o":{"key \"1\"":null}}"#;
    for text in [text, r#"{"v":"","q":[]}"#] {
        let record = ReplayRecord::parse(text).expect("a record");
        assert_eq!(serde_json::to_string(&record).expect("JSON"), text);
        let parsed: ReplayRecord = serde_json::from_str(text).expect("a record");
        assert_eq!(parsed, record);
        assert_eq!(record.into_text(), text);
    }
    for text in ["[]", r#"{"v":""}"#, r#"{"v":"","q":[{"n":"a","f":-1}]}"#] {
        assert_eq!(ReplayRecord::parse(text), None, "{text}");
    }
}

/// Keys that a handler sets may end with any number.
#[test]
fn input_request_numbers_do_not_overflow() {
    let mut run = HandlerRun::new("1");
    let first = run.record_input_request(input_request("a"));
    run.set_key(first, &format!("key-{}", usize::MAX));
    let second = run.record_input_request(input_request("b"));
    assert_eq!(
        (run.take_answer(first, 0), run.take_answer(second, 0)),
        (None, None)
    );
    let suspension = run.suspend().expect("no divergence").expect("questions");
    assert_eq!(suspension.input_requests[1].0, "elicitation-1");
}

/// A run reuses the answers of all earlier runs, in any order of the input requests.
#[test]
fn answers_persist_across_retries() {
    let mut run = HandlerRun::new("1");
    let first = run.record_input_request(input_request("a"));
    assert_eq!(run.take_answer(first, 0), None);
    let mut run = next_run(&run);
    assert!(run.is_replaying());
    let first = run.record_input_request(input_request("a"));
    assert_eq!(
        run.take_answer(first, 0),
        Some(InputOutcome::Result(accepted_answer()))
    );
    assert!(!run.is_replaying());
    let second = run.record_input_request(input_request("b"));
    assert_eq!(run.take_answer(second, 0), None);
    let names = run
        .suspend()
        .expect("no divergence")
        .expect("questions")
        .input_requests;
    assert_eq!(names.len(), 1);
    assert_eq!(names[0].0, "elicitation-2");
    let mut run = next_run(&run);
    for message in ["b", "a"] {
        let id = run.record_input_request(input_request(message));
        assert!(run.take_answer(id, 0).is_some(), "{message}");
    }
}

#[test]
fn identical_input_requests_are_distinguished() {
    let mut run = HandlerRun::new("1");
    for id in [
        run.record_input_request(input_request("a")),
        run.record_input_request(input_request("a")),
    ] {
        assert_eq!(run.take_answer(id, 0), None);
    }
    let mut run = next_run(&run);
    let (first, second) = (
        run.record_input_request(input_request("a")),
        run.record_input_request(input_request("a")),
    );
    assert_ne!(first, second);
    assert!(run.take_answer(first, 0).is_some() && run.take_answer(second, 0).is_some());
}

/// A new input request is an error if the handler has not repeated an earlier one, and the error contains both
/// keys.
#[test]
fn different_input_requests_are_divergence() {
    let mut run = HandlerRun::new("1");
    let id = run.record_input_request(input_request("at 10:00"));
    assert_eq!(run.take_answer(id, 0), None);
    let mut run = next_run(&run);
    let id = run.record_input_request(input_request("at 10:01"));
    assert_eq!(run.take_answer(id, 0), None);
    let error = run.suspend().expect_err("a divergence").to_string();
    assert!(
        error.contains("`elicitation-2`") && error.contains("`elicitation-1`"),
        "{error}"
    );
}

#[test]
fn unanswered_input_requests_are_resent() {
    let mut run = HandlerRun::new("1");
    let id = run.record_input_request(input_request("a"));
    assert_eq!(run.take_answer(id, 0), None);
    let record = run
        .suspend()
        .expect("no divergence")
        .expect("questions")
        .record;
    let mut run = HandlerRun::resume("1", record, |_| None).expect("the same version");
    let id = run.record_input_request(input_request("a"));
    assert_eq!(run.take_answer(id, 0), None);
    let input_requests = run
        .suspend()
        .expect("no divergence")
        .expect("questions")
        .input_requests;
    assert_eq!(input_requests[0].0, "elicitation-1");
}

/// "`inputRequests` […] keys are server-assigned identifiers" (2026-07-28, `basic/patterns/mrtr`): a fixed key lets
/// the client send the answer with its first request.
#[test]
fn keyed_answers_need_no_retry() {
    let mut run = HandlerRun::new("1");
    run.offer_answers([
        ("name".to_owned(), accepted_answer()),
        ("unknown".to_owned(), accepted_answer()),
    ]);
    let (first, second) = (
        run.record_input_request(input_request("a")),
        run.record_input_request(input_request("b")),
    );
    run.set_key(first, "name");
    run.set_key(second, "name");
    assert_eq!(
        run.take_answer(first, 0),
        Some(InputOutcome::Result(accepted_answer()))
    );
    assert_eq!(run.take_answer(second, 0), None);
    let input_requests = run
        .suspend()
        .expect("no divergence")
        .expect("questions")
        .input_requests;
    assert_eq!(
        (input_requests.len(), &*input_requests[0].0),
        (1, "elicitation-2")
    );
    let mut run = next_run(&run);
    for message in ["a", "b"] {
        let id = run.record_input_request(input_request(message));
        assert!(run.take_answer(id, 0).is_some(), "{message}");
    }
}

#[test]
fn input_request_keys_survive_retries() {
    let mut run = HandlerRun::new("1");
    let id = run.record_input_request(input_request("a"));
    run.set_key(id, "name");
    assert_eq!(run.take_answer(id, 0), None);
    let suspension = run.suspend().expect("no divergence").expect("questions");
    assert_eq!(suspension.input_requests[0].0, "name");
    let mut run = HandlerRun::resume("1", suspension.record, |key| {
        (key == "name").then(accepted_answer)
    })
    .expect("the same version");
    let id = run.record_input_request(input_request("a"));
    run.set_key(id, "other");
    assert_eq!(
        run.take_answer(id, 0),
        Some(InputOutcome::Result(accepted_answer()))
    );
}

/// An input request whose caller no longer waits for the answer is not sent.
#[test]
fn released_input_requests_are_not_sent() {
    let mut run = HandlerRun::new("1");
    let (first, second) = (
        run.record_input_request(input_request("a")),
        run.record_input_request(input_request("b")),
    );
    assert_eq!(
        (run.take_answer(first, 0), run.take_answer(second, 0)),
        (None, None)
    );
    run.release_input_request(first);
    let input_requests = run
        .suspend()
        .expect("no divergence")
        .expect("questions")
        .input_requests;
    assert_eq!(input_requests.len(), 1);
    assert_eq!(input_requests[0].1, input_request("b"));
}

/// An answer after the deadline is [`InputOutcome::TimedOut`] in every later run, whatever the time is then.
#[test]
fn late_answers_stay_late() {
    let mut run = HandlerRun::new("1");
    let id = run.record_input_request(input_request("a"));
    run.set_deadline(id, 10);
    assert_eq!(run.take_answer(id, 0), None);
    let mut run = next_run(&run);
    let id = run.record_input_request(input_request("a"));
    assert_eq!(run.take_answer(id, 11), Some(InputOutcome::TimedOut));
    let id = run.record_input_request(input_request("b"));
    assert_eq!(run.take_answer(id, 11), None);
    let mut run = next_run(&run);
    let id = run.record_input_request(input_request("a"));
    assert_eq!(run.take_answer(id, 5), Some(InputOutcome::TimedOut));
}

/// An answer before the deadline is used in every later run, even after the deadline.
#[test]
fn timely_answers_stay_timely() {
    let mut run = HandlerRun::new("1");
    let id = run.record_input_request(input_request("a"));
    run.set_deadline(id, 10);
    assert_eq!(run.take_answer(id, 0), None);
    let mut run = next_run(&run);
    let id = run.record_input_request(input_request("a"));
    assert!(matches!(
        run.take_answer(id, 9),
        Some(InputOutcome::Result(_))
    ));
    let id = run.record_input_request(input_request("b"));
    assert_eq!(run.take_answer(id, 9), None);
    let mut run = next_run(&run);
    let id = run.record_input_request(input_request("a"));
    assert!(matches!(
        run.take_answer(id, 100),
        Some(InputOutcome::Result(_))
    ));
}

/// Input requests do not end the client's request while an effect of `once` is running.
#[test]
fn running_effects_delay_suspension() {
    let mut run = HandlerRun::new("1");
    let id = run.record_input_request(input_request("a"));
    assert_eq!(run.take_answer(id, 0), None);
    run.start_once(ExecutionContext::current());
    assert_eq!(run.suspend(), Ok(None));
    run.end_once(
        ExecutionContext::current(),
        Some(("key", Json::from(7_u64))),
    );
    let run = next_run(&run);
    assert_eq!(run.once_result("key"), Some(&Json::from(7_u64)));
}

#[test]
fn records_of_other_versions_are_rejected() {
    let error =
        HandlerRun::resume("2", ReplayRecord::default(), |_| None).expect_err("another version");
    assert_eq!(error, ReplayError::VersionMismatch);
}

/// Replicas that run different builds must be able to open the same states. The expected number was computed by
/// another implementation of FNV-1a.
#[test]
fn input_request_fingerprints_are_stable() {
    assert_eq!(fingerprint(&input_request("a")), 0xc665_4b01_06e1_83cf);
}
