//! The gateway in front of the zoo: of one server and of two, towards clients of the same and of another revision.

use std::sync::Arc;

use mcp_exact::{Client, Connect, Tolerance};
use mcp_exact_bridge::{Bridge, Options, RepairObserver, Upstream};
use mcp_exact_session::{CachedNegotiation, ClientSettings};
use mcp_exact_tests_tolerance::RawConnection;
use mcp_exact_tests_tolerance::clients::CLIENTS;
use mcp_exact_tests_tolerance::entrance::Entrance;
use mcp_exact_tests_tolerance::zoo::{CASES, Case, Peer, TIDY};
use mcp_exact_transport::{
    ClientHandle, ClientHandler, ConnectError, ConnectionOptions, connect, serve,
};
use tokio::task::JoinHandle;

use super::client::{FORGETFUL, MAX_PAGES, known, observe, observe_with, use_method};
use super::server::answer_to;

/// Connects a client to a bridge in memory.
pub fn client_of(bridge: &Bridge) -> Connect {
    let (local, remote) = mcp_exact_transport::memory_pair(1 << 20, 1 << 20);
    let (settings, handler) = bridge.endpoint();
    tokio::spawn(async move {
        let options = ConnectionOptions::default();
        let _ = serve(settings, handler, remote, options, std::future::pending()).await;
    });
    Client::over(local)
}

#[tokio::test]
async fn in_front_of_one_server() {
    for server in ["2025-06-18", "2025-11-25"] {
        for case in Entrance::Bridge.cases().filter(|case| case.is_of(server)) {
            let peer = Peer::new(*case, server);
            let bridge = Bridge::new(peer.clone(), options()).await.expect(case.name);
            // A client of the newest revision, which the server does not know.
            let (delivered, reported) = observe(client_of(&bridge), case.method).await;
            assert_eq!(delivered, case.delivers, "{server} {}", case.name);
            // What is relayed unchanged is repaired by the client.
            let counted: u64 = bridge.metrics().repairs.values().sum();
            let is_told = counted > 0 || !reported.is_empty();
            assert_eq!(is_told, !case.rules.is_empty(), "{}", case.name);
            // The gateway reads the tools itself, and its client reads the list.
            let asked = peer.asked();
            assert!(asked <= 2 * MAX_PAGES, "{} {asked}", case.name);
        }
    }
}

/// A client of the revision of the only server, which repairs nothing itself, gets what the gateway has repaired: all but the results
/// of `tools/call` and `resources/read`, which are relayed as they are, and the end of lists, which is that of the client.
#[tokio::test]
async fn in_front_of_one_server_of_the_same_revision() {
    for server in ["2025-06-18", "2025-11-25"] {
        let unread = |case: &&Case| {
            let is_large = ["tools/call", "resources/read"].contains(&case.method);
            let is_endless = ["repeated-cursor", "too-many-pages"];
            let is_endless = case.rules.iter().any(|rule| is_endless.contains(rule));
            case.is_of(server) && !is_large && !is_endless
        };
        for case in Entrance::Bridge.cases().filter(unread) {
            let bridge = Bridge::new(Peer::new(*case, server), options()).await;
            let bridge = bridge.expect(case.name);
            let client = client_of(&bridge).revision(known(server));
            let client = client.tolerance(Tolerance::Strict);
            let (delivered, _) = observe(client, case.method).await;
            assert_eq!(delivered, case.delivers, "{server} {}", case.name);
            let is_told = !bridge.metrics().repairs.is_empty();
            assert_eq!(is_told, !case.rules.is_empty(), "{}", case.name);
        }
    }
}

/// Returns the options of the gateway.
fn options() -> Options {
    let mut options = Options::default();
    options.max_pages = MAX_PAGES;
    options
}

/// Starts a bridge in front of the server of a case and a tidy one.
async fn bridge_of_two(case: &Case) -> Bridge {
    bridge_of_two_with(case, |_| {}).await
}

/// Does what [`bridge_of_two`] does, with other options.
async fn bridge_of_two_with(case: &Case, change: impl FnOnce(&mut Options)) -> Bridge {
    let mut options = options();
    change(&mut options);
    let odd: Arc<dyn Upstream> = Arc::new(Peer::new(*case, "2025-11-25"));
    let tidy: Arc<dyn Upstream> = Arc::new(Peer::new(TIDY, "2026-07-28"));
    let servers = [("odd".to_owned(), odd), ("tidy".to_owned(), tidy)];
    let bridge = Bridge::many(servers, options).await;
    bridge.expect(case.name)
}

#[tokio::test]
async fn in_front_of_two_servers() {
    for case in Entrance::BridgeOfTwo.cases() {
        let bridge = bridge_of_two(case).await;
        if case.method == "initialize" {
            // A server whose capabilities are odd costs neither the gateway nor its other servers.
            let client = client_of(&bridge).await.expect(case.name);
            let names = use_method(&client, "tools/list", "").await;
            assert!(names.contains("tidy__echo"), "{}: {names}", case.name);
            continue;
        }
        let (delivered, reported) = observe_with(client_of(&bridge), case.method, "odd__").await;
        // Names of tools and prompts begin with that of their server.
        let delivered = delivered.replace("odd__", "").replace("tidy__", "");
        let own = match case.method {
            "tools/list" => "echo",
            "prompts/list" => "greet",
            // A resource that the first server lists, too, is left out.
            "resources/list" if case.delivers != "a" => "a",
            _ => "",
        };
        let mut expected: Vec<&str> = case.delivers.split(", ").collect();
        if ["tools/list", "prompts/list"].contains(&case.method) {
            // Of tools and prompts with the same name, the first one counts.
            expected.dedup();
        }
        expected.push(own);
        expected.retain(|name| !name.is_empty());
        assert_eq!(delivered, expected.join(", "), "{}", case.name);
        let counted = bridge.metrics().repairs;
        let is_odd = |(server, _): &(Option<Arc<str>>, &str)| server.as_deref() == Some("odd");
        assert!(counted.keys().all(is_odd), "{}: {counted:?}", case.name);
        let counted: u64 = counted.values().sum();
        let is_told = counted > 0 || !reported.is_empty();
        assert_eq!(is_told, !case.rules.is_empty(), "{}", case.name);
    }
}

/// A lenient gateway offers the tools of a server that declares no capability, and a strict one does not. The repair is reported for the
/// server, even if it has no name, and not for a client.
#[tokio::test]
async fn undeclared_tools_are_listed() {
    let case = FORGETFUL[0];
    for revision in ["2025-11-25", "2026-07-28"] {
        let mut options = options();
        let (reported, observed) = std::sync::mpsc::channel();
        options.on_repair = Some(RepairObserver::new(move |repair| {
            let _ = reported.send(repair.server.map(str::to_owned));
        }));
        let bridge = Bridge::new(Peer::new(case, revision), options).await;
        let bridge = bridge.expect("a bridge");
        let client = client_of(&bridge).await.expect("a client");
        assert!(client.capabilities().get("tools").is_some(), "{revision}");
        assert_eq!(use_method(&client, "tools/list", "").await, "echo");
        assert_eq!(use_method(&client, "tools/call", "").await, "done");
        let counted = bridge.metrics().repairs;
        let is_counted = counted.keys().any(|(server, rule)| {
            server.as_deref() == Some("") && *rule == "undeclared-capability"
        });
        assert!(is_counted, "{counted:?}");
        assert_eq!(observed.try_recv(), Ok(Some(String::new())));
    }
    for (tolerance, listed) in [
        (Tolerance::Lenient, "odd__echo, tidy__echo"),
        (Tolerance::Strict, "tidy__echo"),
    ] {
        let bridge = bridge_of_two_with(&case, |options| options.tolerance = tolerance).await;
        let client = client_of(&bridge).await.expect("a client");
        assert_eq!(use_method(&client, "tools/list", "").await, listed);
        if tolerance == Tolerance::Lenient {
            assert_eq!(use_method(&client, "tools/call", "odd__").await, "done");
        }
    }
}

/// The untidy clients of a server are served by the gateway, too.
#[tokio::test]
async fn untidy_clients() {
    let bridge = Bridge::new(Peer::new(TIDY, "2026-07-28"), Options::default())
        .await
        .expect("a bridge");
    for case in CLIENTS {
        for revision in case.revisions() {
            let (settings, handler) = bridge.endpoint();
            let (remote, mut client) = RawConnection::pair();
            tokio::spawn(async move {
                let options = ConnectionOptions::default();
                let _ = serve(settings, handler, remote, options, std::future::pending()).await;
            });
            let answer = answer_to(&mut client, case, revision).await;
            assert!(
                answer.contains(case.answer),
                "{revision} {}: {answer}",
                case.name
            );
        }
    }
    let counted = bridge.metrics().repairs;
    for case in CLIENTS {
        let is_counted = counted
            .keys()
            .any(|(server, rule)| server.is_none() && *rule == case.rule);
        assert!(is_counted, "{}: {counted:?}", case.name);
    }
}

/// A list without an end, whose cursors are all different, ends after the pages that the options allow; what was read is
/// delivered, and the rule is counted.
#[tokio::test]
async fn lists_have_at_most_so_many_pages() {
    for (max_pages, expected) in [(None, 100), (Some(7), 7)] {
        let endless: Arc<dyn Upstream> = Arc::new(Endless);
        let tidy: Arc<dyn Upstream> = Arc::new(Peer::new(TIDY, "2026-07-28"));
        let servers = [("odd".to_owned(), endless), ("tidy".to_owned(), tidy)];
        let mut options = Options::default();
        if let Some(pages) = max_pages {
            options.max_pages = pages;
        }
        let bridge = Bridge::many(servers, options).await.expect("a bridge");
        let client = client_of(&bridge).await.expect("a client");
        let names = use_method(&client, "tools/list", "").await;
        let odd = names.split(", ").filter(|name| name.starts_with("odd__"));
        assert_eq!(odd.count(), expected, "{names}");
        assert!(names.contains("tidy__echo"), "{names}");
        let counted = bridge.metrics().repairs;
        let rules: Vec<&str> = counted.keys().map(|(_, rule)| *rule).collect();
        assert_eq!(rules, ["too-many-pages"]);
    }
}

/// A strict gateway repairs nothing: a list that does not end is an error, which names the server and the method, and the other
/// servers are shown.
#[tokio::test]
async fn strict_lists_are_refused() {
    for name in ["the same cursor for ever", "a new cursor on every page"] {
        let case = CASES.iter().find(|case| case.name == name).expect(name);
        let bridge =
            bridge_of_two_with(case, |options| options.tolerance = Tolerance::Strict).await;
        let client = client_of(&bridge).await.expect("a client");
        let own = if case.method == "tools/list" {
            "tidy__echo"
        } else {
            "tidy__greet"
        };
        assert_eq!(use_method(&client, case.method, "").await, own, "{name}");
        assert!(bridge.metrics().repairs.is_empty(), "{name}");
    }
}

/// Server whose list of tools has no end.
struct Endless;

impl Upstream for Endless {
    fn connect(
        &self,
        settings: Arc<ClientSettings>,
        prior: Option<&CachedNegotiation>,
        handler: Arc<dyn ClientHandler>,
    ) -> Result<(ClientHandle, JoinHandle<()>), ConnectError> {
        let (local, mut remote) = RawConnection::pair();
        tokio::spawn(async move {
            let (tidy, mut page) = (Peer::new(TIDY, "2025-11-25"), 0);
            while let Some(request) = remote.receive().await {
                for answer in tidy.answers(&request) {
                    let mut answer = String::from_utf8_lossy(&answer).into_owned();
                    if request.contains("\"tools/list\"") {
                        page += 1;
                        let next = format!("\"nextCursor\":\"{page}\",\"tools\":");
                        answer = answer.replace("\"tools\":", &next);
                        answer = answer.replace("\"echo\"", &format!("\"tool{page}\""));
                    }
                    remote.send(answer.as_bytes()).await;
                }
            }
        });
        let options = ConnectionOptions::default();
        Ok(connect(settings, prior, handler, local, options))
    }
}
