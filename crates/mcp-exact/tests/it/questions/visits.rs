//! URL elicitation: only clients with a handler for visits receive it.

use mcp_exact::{Visit, VisitAnswer};

use super::*;

/// URL of the page to visit.
const PAGE_URL: &str = "https://example.com/pay/1";

/// Creates a server with two tools: one elicits by form, one by URL.
fn server_requesting_url_elicitation() -> Server {
    builder()
        .tool("form", |cx: Cx| async move {
            let answer = cx.elicit::<Confirm>("Sure?").await?;
            Ok::<_, Error>(answer.accepted_with(|form| form.yes))
        })
        .tool("page", |cx: Cx| async move {
            let answer = cx.elicit_url("Please pay", PAGE_URL).await?;
            Ok::<_, Error>(format!("{answer:?}"))
        })
        .build()
        .expect("a server")
}

/// The handler of `on_visit` receives a URL elicitation, and the tool receives the user's action.
#[tokio::test]
async fn url_elicitations_reach_their_handler() {
    let server = server_requesting_url_elicitation();
    for (answer, expected) in [
        (VisitAnswer::Accept, "Accepted(())"),
        (VisitAnswer::Decline, "Declined"),
        (VisitAnswer::Cancel, "Cancelled"),
    ] {
        let connect = || {
            let answered = move |visit: Visit| async move {
                assert_eq!((visit.message(), visit.url()), ("Please pay", PAGE_URL));
                answer
            };
            connect(&server).on_visit(answered)
        };
        revisions_from("2025-11-25", connect, move |client| async move {
            let text: String = client.call("page", &()).await.expect("a text");
            assert_eq!(text, expected);
            assert!(client.call::<_, bool>("form", &()).await.expect("a form"));
        })
        .await;
    }
}

/// "Servers MUST NOT send elicitation requests with modes that are not supported by the client" (`client/elicitation`,
/// "Capabilities"): a client declares only the modes for which it has handlers.
#[tokio::test]
async fn modes_without_handlers_are_not_declared() {
    let server = server_requesting_url_elicitation();
    let forms = || connect(&server);
    revisions_from("2025-11-25", forms, |client| async move {
        let refused = client.call::<_, String>("page", &()).await;
        let refused = refused.expect_err("not consented").to_string();
        assert!(refused.contains("`elicitation.url`"), "{refused}");
    })
    .await;
    let pages = || Client::in_memory(&server).on_visit(|_: Visit| async { VisitAnswer::Accept });
    revisions_from("2025-06-18", pages, |client| async move {
        let refused = client.call::<_, bool>("form", &()).await;
        let refused = refused.expect_err("no form").to_string();
        assert!(refused.contains("`elicitation.form`"), "{refused}");
    })
    .await;
}
