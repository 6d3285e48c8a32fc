//! Generated params: what rules and hooks have seen is what the server receives, or the request is refused. Two readers that are
//! not the gateway's compare them.

use std::future::ready;
use std::sync::{Arc, Mutex};

use mcp_exact_bridge::{Call, Decision, Hook, HookFuture, Hooks};
use mcp_exact_session::Json;
use mcp_exact_tests_support::{Cases, Rng};

use crate::attacks::{bridge_of, messages, params_of, recording, with_rule};
use crate::common::answer_to;

/// Number of generated requests for each bridge.
const REQUESTS: Cases = Cases {
    short: 330,
    long: 5_000,
};

/// The item that a request names, and its arguments.
type ItemAndArguments = (Option<String>, Option<String>);

/// Hook that records what it has seen.
struct Seen(Arc<Mutex<Vec<ItemAndArguments>>>);

impl Hook for Seen {
    fn before<'a>(&'a self, call: &'a Call) -> HookFuture<'a, Decision> {
        let seen = (call.subject(), call.arguments());
        self.0.lock().expect("a lock").push(seen);
        Box::pin(ready(Decision::Relay))
    }
}

/// Returns one of the spellings of a character in a JSON string.
fn spelt(random: &mut Rng, character: char) -> String {
    match random.below(6) {
        0 => format!("\\u{:04x}", character as u32),
        1 if character == '/' => "\\/".to_owned(),
        _ => character.to_string(),
    }
}

/// Returns a JSON string with escapes at random places.
fn string(random: &mut Rng, text: &str) -> String {
    let spelt: String = text.chars().map(|it| spelt(random, it)).collect();
    format!("\"{spelt}\"")
}

/// Returns one of the spellings of a URI.
fn uri(random: &mut Rng) -> String {
    let scheme = random.pick(&["file", "FILE", "File", "note", "http"]);
    let start = random.pick(&[
        "://",
        ":/",
        ":///",
        "://localhost/",
        "://LOCALHOST/",
        "://host:80/",
    ]);
    let segments = [
        "ok",
        "secret",
        "Secret",
        ".",
        "..",
        "",
        "%2e",
        "%2E%2e",
        "x%2fsecret",
        "é",
    ];
    let mut path = Vec::new();
    for _ in 0..=random.below(4) {
        let segment = *random.pick(&segments);
        path.push(match random.below(5) {
            0 => segment.replace('s', "%73"),
            1 => segment.replace('e', "%65"),
            _ => segment.to_owned(),
        });
    }
    let end = random.pick(&["", "", "", "?", "#", "?x=1", "#secret", "/"]);
    format!("{scheme}{start}{}{end}", path.join("/"))
}

/// Returns a JSON value that some readers do not take, or take otherwise.
fn value(random: &mut Rng) -> String {
    let depth = 1 + random.below(200);
    match random.below(8) {
        0 => "1e400".to_owned(),
        1 => "-0.000000000000000000000000000000001E-999".to_owned(),
        2 => "123456789012345678901234567890.10".to_owned(),
        3 => format!("{}{}", "[".repeat(depth), "]".repeat(depth)),
        4 => r#"{"a":1,"a":2,"\u0061":3}"#.to_owned(),
        5 => r#""\ud83d\ude00 \u0000 é é""#.to_owned(),
        6 => r#""\ud800""#.to_owned(),
        _ => "{ \"x\" : [ 1 , 2.0 ] }".to_owned(),
    }
}

/// Returns a method and its params.
fn request(random: &mut Rng) -> (&'static str, String) {
    let names = ["hidden", "shown", "Hidden", "hidden ", "hid\u{200b}den"];
    let name = *random.pick(&names);
    let mut name = string(random, name);
    let mut uri = {
        let uri = uri(random);
        string(random, &uri)
    };
    let second = |random: &mut Rng, member: &str, first: &mut String| {
        if random.chance(10) {
            let spelling = member.replace('i', "\\u0069").replace('a', "\\u0061");
            let member = if random.chance(50) { member } else { &spelling };
            let other = random.pick(&["\"shown\"", "\"file:///ok\"", "null", "{}"]);
            first.push_str(&format!(",\"{member}\":{other}"));
        }
    };
    second(random, "name", &mut name);
    second(random, "uri", &mut uri);
    let mut members = match random.below(4) {
        0 => (
            "tools/call",
            vec![
                format!("\"name\":{name}"),
                format!("\"arguments\":{{\"v\":{}}}", value(random)),
            ],
        ),
        1 => ("prompts/get", vec![format!("\"name\":{name}")]),
        2 => ("resources/read", vec![format!("\"uri\":{uri}")]),
        _ => (
            "completion/complete",
            vec![
                format!("\"ref\":{{\"type\":\"ref/resource\",\"uri\":{uri}}}"),
                r#""argument":{"name":"a","value":""}"#.to_owned(),
            ],
        ),
    };
    if random.chance(30) {
        let decoy = random.pick(&["\"uri\":\"file:///ok\"", "\"name\":\"shown\"", "\"x\":1"]);
        members.1.push((*decoy).to_owned());
    }
    random.shuffle(&mut members.1);
    (members.0, members.1.join(","))
}

/// Returns the item that received params name, as a reader that takes the first of equal members sees it, and as one that takes
/// the last.
fn items(method: &str, params: &str) -> [Option<String>; 2] {
    let read = |params: &Json, is_last: bool| -> Option<String> {
        let find = |object: &Json, name: &str| -> Option<Json> {
            let members = object.view().object()?;
            let mut found = members
                .iter()
                .filter(|(member, _)| member == name)
                .map(|(_, value)| value.to_json());
            if is_last { found.last() } else { found.next() }
        };
        let text = |json: Json| json.view().as_str().map(|text| text.into_owned());
        match method {
            "resources/read" => text(find(params, "uri")?),
            "completion/complete" => text(find(&find(params, "ref")?, "uri")?),
            _ => text(find(params, "name")?),
        }
    };
    let params: Json = params.parse().expect("JSON");
    [read(&params, false), read(&params, true)]
}

/// Returns true if some reader takes a URI for the hidden resource: escapes decoded, dot segments removed.
fn is_secret(uri: &str) -> bool {
    let uri = uri.split(['?', '#']).next().unwrap_or_default();
    let mut bytes = Vec::new();
    let mut rest = uri.bytes();
    while let Some(byte) = rest.next() {
        let decoded = (byte == b'%').then(|| {
            let digits: Vec<u8> = rest.clone().take(2).collect();
            let digits = String::from_utf8(digits).ok()?;
            u8::from_str_radix(&digits, 16).ok()
        });
        match decoded.flatten() {
            Some(decoded) => {
                bytes.push(decoded);
                rest.nth(1);
            }
            None => bytes.push(byte),
        }
    }
    let decoded = String::from_utf8_lossy(&bytes).into_owned();
    let Some((scheme, path)) = decoded.split_once(':') else {
        return false;
    };
    let (host, path) = match path.strip_prefix("//") {
        Some(rest) => rest.split_at(rest.find('/').unwrap_or(rest.len())),
        None => ("", path),
    };
    if !(host.is_empty() || host.eq_ignore_ascii_case("localhost")) {
        return false;
    }
    let mut segments = Vec::new();
    for segment in path.split('/').filter(|segment| !segment.is_empty()) {
        match segment {
            "." => {}
            ".." => drop(segments.pop()),
            segment => segments.push(segment),
        }
    }
    scheme.eq_ignore_ascii_case("file") && segments == ["secret"]
}

/// Whatever the params are, the server is asked for the item that rules and hooks have seen, with the arguments that they have
/// seen, and never for a hidden one.
#[tokio::test(start_paused = true)]
async fn servers_receive_what_rules_have_seen() {
    for is_many in [false, true] {
        for has_session in [false, true] {
            let seen = Arc::new(Mutex::new(Vec::new()));
            let (upstream, received) = recording(|_| Vec::new());
            let mut options = with_rule(&[], &["hidden", "file:///secret"]);
            options.hooks = Hooks::default().with(Seen(Arc::clone(&seen)));
            let bridge = bridge_of(upstream, options, is_many).await;
            let (mut relayed, mut refused) = (0, 0);
            for seed in 0..REQUESTS.number() as u64 {
                let mut random = Rng::new(seed);
                let (method, mut params) = request(&mut random);
                if is_many {
                    params = params.replacen("\"name\":\"", "\"name\":\"a__", 1);
                }
                let case = format!("seed {seed}: {method} {params}");
                received.lock().expect("a lock").clear();
                seen.lock().expect("a lock").clear();
                let answer = answer_to(&bridge, &messages(has_session, method, &params), "9").await;
                let of_server = params_of(&received, method);
                let Some(of_server) = of_server.first() else {
                    assert!(answer.get("error").is_some(), "{case}: {answer}");
                    refused += 1;
                    continue;
                };
                relayed += 1;
                let (item, arguments) = seen.lock().expect("a lock").last().cloned().expect(&case);
                let [first, last] = items(method, of_server);
                assert_eq!(first, last, "{case}: readers disagree about {of_server}");
                assert_eq!(first, item, "{case}: the hook has seen another item");
                let item = item.unwrap_or_default();
                assert!(
                    item != "hidden" && !is_secret(&item),
                    "{case}: {item} is hidden"
                );
                let parsed: Json = of_server.parse().expect("JSON");
                let sent = parsed
                    .view()
                    .object()
                    .and_then(|params| params.find("arguments"));
                let sent = sent.map(|arguments| arguments.text().to_owned());
                assert_eq!(sent, arguments, "{case}: the hook has seen other arguments");
            }
            assert!(
                relayed > 20 && refused > 20,
                "{relayed} relayed, {refused} refused"
            );
        }
    }
}
