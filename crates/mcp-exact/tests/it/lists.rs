//! Lists of resources that handlers supply: pages, cursors, principals, visibility.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use mcp_exact::testing::every_revision;
use mcp_exact::transport::http::server::{HttpListener, HttpServerOptions};
use mcp_exact::{
    BearerToken, CacheHint, Client, ClientChange, ClientError, Input, IntoServer, JsonObject,
    KeyRing, ListedDefinition, PageRequest, PeerError, Principal, Problem, Resource, ResourcePage,
    ResourceTemplate, Result, Server, ServerBuilder, State, TokenGrant, schemars, serde, server,
};

use crate::common::{has_sessions, object};

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Named {
    name: String,
}

/// Reads a resource of a template.
async fn read(Input(named): Input<Named>) -> String {
    named.name
}

/// Returns one page of names: the names after the cursor.
fn page_of(page: &PageRequest, names: &[&str]) -> ResourcePage {
    let after = page.cursor.as_deref().unwrap_or_default();
    let names = names.iter().copied().filter(|name| *name > after);
    let mut names: Vec<&str> = names.collect();
    let more = names.len() > page.size;
    names.truncate(page.size);
    let resources = names.iter().map(|name| page.resource([("name", *name)]));
    ResourcePage::new(resources).next_cursor(names.last().copied().filter(|_| more))
}

/// Returns the URIs of all resources that a client lists.
async fn uris(client: &Client) -> Vec<String> {
    let listed = client.resources().without_cache().all().await;
    let listed = listed.expect("a list");
    listed
        .iter()
        .filter_map(mcp_exact::Definition::uri)
        .collect()
}

/// Requests one page.
async fn page(client: &Client, cursor: Option<&str>) -> Result<JsonObject, ClientError> {
    let params = cursor
        .map(|cursor| JsonObject::from_iter([("cursor", mcp_exact::RawJson::string(cursor))]));
    client.request("resources/list", params).await
}

/// Returns the cursor of the next page.
fn next(page: &JsonObject) -> Option<String> {
    page.get("nextCursor")?.decode_as().ok()
}

fn is_invalid(result: Result<JsonObject, ClientError>) -> bool {
    matches!(result, Err(ClientError::Server(error)) if error.code() == Some(-32602))
}

fn is_internal(result: Result<JsonObject, ClientError>, text: &str) -> bool {
    matches!(
        result,
        Err(ClientError::Server(error))
            if error.code() == Some(-32603) && error.to_string().contains(text)
    )
}

/// Notes and files of one server, by attribute.
struct Store {
    notes: Vec<&'static str>,
}

#[server(name = "store", version = "1.0.0")]
impl Store {
    /// Lists stand before their templates.
    #[list(template = "note:///{name}")]
    async fn notes(&self, page: PageRequest, State(mark): State<char>) -> Result<ResourcePage> {
        assert_eq!(mark, '!');
        Ok(page_of(&page, &self.notes))
    }

    #[resource("note:///{name}", mime_type = "text/plain")]
    async fn note(name: String) -> String {
        name
    }

    #[resource("note:///fixed")]
    async fn fixed() -> String {
        "fixed".into()
    }

    #[resource("index:///")]
    async fn index() -> String {
        "index".into()
    }

    #[resource("other:///a")]
    async fn other() -> String {
        "other".into()
    }

    #[resource("file:///{+name}")]
    async fn file(name: String) -> String {
        name
    }

    #[list(template = "file:///{+name}", blocking)]
    fn files(page: PageRequest) -> Vec<Resource> {
        let names = ["x/1", "x/2", "y"].into_iter();
        names
            .map(|name| page.resource([("name", name)]).mime_type("text/css"))
            .collect()
    }
}

/// Fixed resources and several lists are joined to pages of any size: each resource once, none lost, in every revision.
#[tokio::test]
async fn pages_join_all_lists() {
    for size in [1, 2, 3, 4, 5, 100] {
        let notes = vec!["a", "b", "c d", "fixed", "z/z"];
        let builder = Store { notes }.into_builder().state('!').page_size(size);
        let server = builder.build().expect("a server");
        every_revision(
            || Client::in_memory(&server),
            |client| async move {
                let listed = client.resources().all().await.expect("a list");
                let uris: Vec<_> = listed.iter().filter_map(|one| one.uri()).collect();
                let expected = [
                    "note:///fixed",
                    "index:///",
                    "other:///a",
                    "note:///a",
                    "note:///b",
                    "note:///c%20d",
                    "note:///z%2Fz",
                    "file:///x/1",
                    "file:///x/2",
                    "file:///y",
                ];
                assert_eq!(uris, expected, "{size}");
                let media_type = |at: usize| {
                    let media_type = listed[at].object().get("mimeType");
                    media_type.map(|text| text.to_string())
                };
                assert_eq!(media_type(3).as_deref(), Some("\"text/plain\""));
                assert_eq!(media_type(7).as_deref(), Some("\"text/css\""));
                for uri in uris {
                    client.read(&uri).await.expect("what is listed is read");
                }
            },
        )
        .await;
    }
}

/// A URI that two templates match is listed by the first of them alone, which reads it; a template without a list hides
/// nothing of another one.
#[tokio::test]
async fn overlapping_lists_give_a_resource_once() {
    let builder = |with_first: bool| {
        let builder = Server::builder("test", "1")
            .page_size(1)
            .template("n:{name}", read)
            .template("n:{+name}", read)
            .list("n:{+name}", |page: PageRequest| async move {
                page_of(&page, &["a", "b", "c/d"])
            });
        let builder = if with_first {
            builder.list("n:{name}", |page: PageRequest| async move {
                page_of(&page, &["a", "b"])
            })
        } else {
            builder
        };
        builder.build().expect("a server")
    };
    for (with_first, expected) in [
        (true, ["n:c/d", "n:a", "n:b"]),
        (false, ["n:a", "n:b", "n:c/d"]),
    ] {
        let server = builder(with_first);
        let client = Client::in_memory(&server).await.expect("a client");
        assert_eq!(uris(&client).await, expected);
    }
}

/// Serves a server over HTTP on a free port; returns its URL.
async fn serve(builder: ServerBuilder) -> String {
    let grant = |name: &str| TokenGrant::new(name).scopes([format!("{name}:read")]);
    let server = builder
        .bearer_tokens(["ada", "bob"].map(|name| BearerToken::new(name, grant(name))))
        .build()
        .expect("a server");
    let listener = HttpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    let service = server.http(HttpServerOptions::default());
    tokio::spawn(listener.serve(service, std::future::pending()));
    format!("http://{address}/mcp")
}

/// Handlers list by principal and scope. A cursor is of no use to another principal, and neither are forged ones.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lists_and_cursors_belong_to_principals() {
    let keys = || KeyRing::new([7; 32], []);
    let builder = |name: &str| {
        Server::builder(name, "1")
            .keys(keys())
            .page_size(1)
            .cache(CacheHint {
                ttl_ms: 1000,
                is_public: true,
            })
            .template("own:{name}", read)
            .list(
                "own:{name}",
                |page: PageRequest, Principal(who): Principal| async move {
                    let names = [format!("{who}-1"), format!("{who}-2")];
                    page_of(&page, &[&names[0], &names[1]])
                },
            )
            .template(ResourceTemplate::new("ada:{name}").scope("ada:read"), read)
            .list("ada:{name}", |page: PageRequest| async move {
                page_of(&page, &["1", "2"])
            })
            .template(ResourceTemplate::new("bob:{name}").scope("bob:read"), read)
            .list("bob:{name}", |page: PageRequest| async move {
                vec![page.resource([("name", "1")]).scope("bob:read")]
            })
    };
    let (url, other) = (serve(builder("test")).await, serve(builder("other")).await);
    for revision in mcp_exact::revisions() {
        let connect =
            |url: &str, token: &str| Client::connect(url).revision(revision).bearer(token);
        let ada = connect(&url, "ada").await.expect("a client");
        let bob = connect(&url, "bob").await.expect("a client");
        let elsewhere = connect(&other, "ada").await.expect("a client");
        let of_ada = ["own:ada-1", "own:ada-2", "ada:1", "ada:2"];
        assert_eq!(uris(&ada).await, of_ada);
        assert_eq!(uris(&bob).await, ["own:bob-1", "own:bob-2", "bob:1"]);

        let first = page(&ada, None).await.expect("a page");
        if !has_sessions(revision) {
            let scope = first.get("cacheScope").expect("a scope");
            assert_eq!(scope.text(), "\"private\"");
        }
        let cursor = next(&first).expect("a cursor");
        assert!(!cursor.contains("ada"));
        page(&ada, Some(&cursor)).await.expect("her cursor");
        page(&ada, Some(&cursor)).await.expect("her cursor, again");
        assert!(is_invalid(page(&bob, Some(&cursor)).await));
        assert!(is_invalid(page(&elsewhere, Some(&cursor)).await));
        for forged in ["", "?", "b3duOmFkYS0x", &cursor[1..], &format!("{cursor}A")] {
            assert!(is_invalid(page(&ada, Some(forged)).await), "{forged}");
        }
        let number = Some(object(r#"{"cursor":1}"#));
        let number = ada.request("resources/list", number).await;
        assert!(number.is_err(), "{number:?}");
    }
}

/// What a rule hides is not listed, its handler is not called, and a cursor into it is invalid.
#[tokio::test]
async fn hidden_resources_are_not_listed() {
    let calls = Arc::new(AtomicUsize::new(0));
    let hides = Arc::new(std::sync::atomic::AtomicBool::new(false));
    let (counted, hidden) = (Arc::clone(&calls), Arc::clone(&hides));
    let server = Server::builder("test", "1")
        .page_size(2)
        .visible(move |_, listed| match listed {
            ListedDefinition::Template(template) => {
                !hidden.load(Ordering::Relaxed) || template.template() != "a:{name}"
            }
            listed => !listed.name().starts_with("secret"),
        })
        .resource(Resource::new("b:2").with_name("secret"), || async {
            "hidden"
        })
        .resource(Resource::new("b:3").with_name("open"), || async { "fixed" })
        .template("a:{name}", read)
        .template("b:{name}", read)
        .list("a:{name}", move |page: PageRequest| {
            counted.fetch_add(1, Ordering::Relaxed);
            async move { page_of(&page, &["1", "2", "3"]) }
        })
        .list("b:{name}", |page: PageRequest| async move {
            let one = |name: &str| page.resource([("name", name)]);
            match page.cursor.as_deref() {
                None => ResourcePage::new(["1", "2", "3"].map(one)).next_cursor(Some("3")),
                _ => {
                    let secret = |n| one(&format!("s{n}")).with_name(format!("secret-{n}"));
                    ResourcePage::new((0..50).map(secret).chain([one("4")]))
                }
            }
        })
        .build()
        .expect("a server");
    every_revision(
        || Client::in_memory(&server),
        |client| {
            let (calls, hides) = (Arc::clone(&calls), Arc::clone(&hides));
            async move {
                hides.store(false, Ordering::Relaxed);
                // "b:2" is hidden as a fixed resource, and read by its template.
                let all = ["b:3", "a:1", "a:2", "a:3", "b:1", "b:2", "b:4"];
                assert_eq!(uris(&client).await, all);
                let first = page(&client, None).await.expect("a page");
                let cursor = next(&first).expect("a cursor");
                page(&client, Some(&cursor)).await.expect("a page");
                hides.store(true, Ordering::Relaxed);
                let before = calls.load(Ordering::Relaxed);
                assert!(is_invalid(page(&client, Some(&cursor)).await));
                assert_eq!(uris(&client).await, ["b:3", "b:1", "b:2", "b:4"]);
                assert_eq!(calls.load(Ordering::Relaxed), before);
            }
        },
    )
    .await;
}

/// Mistakes of a handler end the request with an error that names them, and its errors reach the client.
#[tokio::test(start_paused = true)]
async fn mistakes_of_handlers_are_errors() {
    let client = async |handler: fn(PageRequest) -> Result<ResourcePage, PeerError>| {
        let server = Server::builder("test", "1")
            .template("n:{name}", read)
            .list(
                "n:{name}",
                move |page: PageRequest| async move { handler(page) },
            )
            .build()
            .expect("a server");
        Client::in_memory(&server).await.expect("a client")
    };
    let foreign = client(|_| Ok(ResourcePage::new([Resource::new("m:1")]))).await;
    assert!(is_internal(
        page(&foreign, None).await,
        r#"the template does not match "m:1""#
    ));
    let scoped = client(|page| {
        let one = page.resource([("name", "1")]).scope("s");
        Ok(ResourcePage::new([one]))
    });
    let scoped = scoped.await;
    assert!(is_internal(
        page(&scoped, None).await,
        r#"the own scope of "n:1" is not checked"#
    ));
    let cyclic = client(|page| Ok(page_of(&page, &["1"]).next_cursor(Some("same")))).await;
    assert!(is_internal(
        page(&cyclic, None).await,
        "the cursor that it was called with"
    ));
    let gone = client(|_| Err(PeerError::invalid_params("gone"))).await;
    assert!(is_invalid(page(&gone, None).await));
    let panics = client(|_| panic!("at the disco")).await;
    assert!(is_internal(page(&panics, None).await, "see the log"));

    let server = Server::builder("test", "1")
        .timeout(Duration::from_secs(5))
        .template("n:{name}", read)
        .list("n:{name}", || async {
            std::future::pending::<()>().await;
            Vec::<Resource>::new()
        })
        .build()
        .expect("a server");
    let slow = Client::in_memory(&server).await.expect("a client");
    assert!(is_internal(
        page(&slow, None).await,
        "did not finish in time"
    ));
}

/// Pages of a handler without a visible resource are joined, up to a number for each request.
#[tokio::test]
async fn empty_pages_are_joined() {
    let calls = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&calls);
    let server = Server::builder("test", "1")
        .template("n:{name}", read)
        .list("n:{name}", move |page: PageRequest| {
            counted.fetch_add(1, Ordering::Relaxed);
            async move {
                let at: u32 = page
                    .cursor
                    .as_deref()
                    .map_or(0, |at| at.parse().unwrap_or(0));
                match at {
                    40 => ResourcePage::new([page.resource([("name", "end")])]),
                    at => ResourcePage::default().next_cursor(Some((at + 1).to_string())),
                }
            }
        })
        .build()
        .expect("a server");
    let client = Client::in_memory(&server).await.expect("a client");
    let first = page(&client, None).await.expect("a page");
    assert!(next(&first).is_some());
    assert_eq!(calls.load(Ordering::Relaxed), 16);
    assert_eq!(uris(&client).await, ["n:end"]);
}

/// A list needs its template, is registered once, and takes no arguments; merged builders keep theirs.
#[tokio::test]
async fn lists_are_checked_when_the_server_is_built() {
    let list = |page: PageRequest| async move { page_of(&page, &["1"]) };
    let error = Server::builder("test", "1").list("n:{name}", list).build();
    let error = error.expect_err("no template");
    let missing = Problem::List {
        template: "n:{name}".into(),
    };
    assert_eq!(error.problems(), [missing]);
    let builder = || Server::builder("test", "1").template("n:{name}", read);
    let twice = builder().list("n:{name}", list).list("n:{name}", list);
    let twice = twice.build().expect_err("twice").to_string();
    assert!(twice.contains("registered twice"), "{twice}");
    let input = builder().list("n:{name}", |_: Input<Named>| async {
        Vec::<Resource>::new()
    });
    let input = input.build().expect_err("an input").to_string();
    assert!(input.contains("take `PageRequest`"), "{input}");
    let state = builder().list("n:{name}", |_: State<u8>| async { Vec::<Resource>::new() });
    let state = state.build().expect_err("no state").to_string();
    assert!(state.contains("State<u8>"), "{state}");

    let outer = Server::builder("outer", "1").merge(Some("in"), builder().list("n:{name}", list));
    let server = outer.build().expect("a server");
    let client = Client::in_memory(&server).await.expect("a client");
    assert_eq!(uris(&client).await, ["n:1"]);
}

/// Lists come and go while the server runs, and their changes are announced.
#[tokio::test]
async fn lists_change_at_run_time() {
    let server = Server::builder("test", "1")
        .declare_resources()
        .build()
        .expect("a server");
    let (sender, mut changes) = tokio::sync::mpsc::unbounded_channel();
    let client = Client::in_memory(&server).on_change(move |change| drop(sender.send(change)));
    let client = client.await.expect("a client");
    let list = |page: PageRequest| async move { page_of(&page, &["1"]) };
    let resources = server.resources();
    let missing = resources.insert_list("n:{name}", list);
    assert!(matches!(missing, Err(Problem::List { .. })), "{missing:?}");
    resources
        .insert_template("n:{name}", read)
        .expect("a template");
    assert_eq!(changes.recv().await, Some(ClientChange::Resources));
    resources.insert_list("n:{name}", list).expect("a list");
    assert_eq!(changes.recv().await, Some(ClientChange::Resources));
    assert_eq!(uris(&client).await, ["n:1"]);
    let other = |page: PageRequest| async move { page_of(&page, &["2"]) };
    resources
        .insert_list("n:{name}", other)
        .expect("another list");
    assert_eq!(changes.recv().await, Some(ClientChange::Resources));
    assert_eq!(uris(&client).await, ["n:2"]);
    resources.list_changed();
    assert_eq!(changes.recv().await, Some(ClientChange::Resources));
    assert!(resources.remove_template("n:{name}"));
    assert_eq!(uris(&client).await, [""; 0]);
}
