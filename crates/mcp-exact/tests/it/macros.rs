//! Servers by attribute macros: registrations, and names of the application that must not collide with the expansion.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use mcp_exact::testing::{every_revision, revisions_from};
use mcp_exact::{
    Client, Completions, Contents, Cx, Error, Form, IntoServer, Json, Partial, PromptResult,
    Result, Role, Server, State, schemars, serde, server,
};

use crate::common::{count_from, object};

/// Form that asks for a confirmation.
#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Confirm {
    yes: bool,
}

/// Structured result of the tool `count`.
#[derive(Debug, PartialEq, serde::Deserialize, serde::Serialize, schemars::JsonSchema)]
struct Count {
    n: u32,
}

/// Type without the traits of serde and schemars, like a type of another crate.
struct ForeignType(std::time::Duration);

/// Deserialises a number of milliseconds.
fn milliseconds<'de, D: serde::Deserializer<'de>>(from: D) -> Result<ForeignType, D::Error> {
    let milliseconds = <u64 as serde::Deserialize>::deserialize(from)?;
    Ok(ForeignType(std::time::Duration::from_millis(milliseconds)))
}

/// Server with a method of each kind.
struct Files {
    /// Contents of the files, by path.
    files: BTreeMap<String, String>,
    /// Number of calls of `remove`.
    calls: AtomicU64,
}

impl Files {
    fn new() -> Self {
        let files = [("a.txt".to_owned(), "A".to_owned())];
        Self {
            files: files.into(),
            calls: AtomicU64::new(0),
        }
    }
}

#[server(
    name = "files",
    version = "1.2.3",
    title = "Files",
    instructions = "Mind the files.",
    parts(more, elsewhere)
)]
impl Files {
    /// Deletes a file.
    ///
    /// Asks before.
    #[tool(destructive, title = "Delete", scope = "write")]
    async fn remove(&self, path: String, cx: &Cx) -> Result<String> {
        self.calls.fetch_add(1, Ordering::Relaxed);
        let answer = cx.elicit::<Confirm>(format!("Delete {path}?")).await?;
        Ok(if answer.accepted_with(|form| form.yes) {
            "removed"
        } else {
            "kept"
        }
        .into())
    }

    /// Counts.
    #[tool(read_only, idempotent = true)]
    async fn count(
        &self,
        /// Up to which number.
        to: u32,
        #[serde(default)]
        #[schemars(range(max = 5))]
        step: u32,
        cx: &Cx,
    ) -> Result<Json<Count>> {
        for n in 0..to {
            cx.progress(n, to)?;
        }
        Ok(Json(Count { n: to + step }))
    }

    #[tool(name = "list-files", description = "Lists.")]
    fn list(self: Arc<Self>) -> Vec<mcp_exact::Content> {
        self.files.keys().map(mcp_exact::Content::from).collect()
    }

    #[tool(blocking)]
    fn slow(&self, text: String) -> Result<String, std::fmt::Error> {
        std::thread::sleep(std::time::Duration::from_millis(1));
        Ok(text.to_uppercase())
    }

    /// A type without a schema of its own.
    #[tool]
    async fn wait(
        &self,
        #[serde(deserialize_with = "milliseconds")]
        #[schemars(with = "u64")]
        time: ForeignType,
    ) -> String {
        time.0.as_millis().to_string()
    }

    #[tool]
    fn stateful(State(state): State<u8>) -> u8 {
        state
    }

    /// A file.
    #[resource("file://{+path}", mime_type = "text/plain")]
    async fn read(&self, path: String) -> Result<Contents> {
        let file = self
            .files
            .get(&path)
            .ok_or_else(|| Error::resource_not_found(&path))?;
        Ok(Contents::text(file))
    }

    #[resource("files://all", name = "everything")]
    async fn all(&self) -> String {
        self.files.values().cloned().collect()
    }

    /// Reviews code.
    #[prompt]
    async fn review(&self, code: String, strict: Option<bool>) -> PromptResult {
        PromptResult::user(format!("Review {code}, {strict:?}"))
    }

    #[complete(template = "file://{+path}", argument = "path")]
    async fn paths(&self, partial: Partial) -> Completions {
        let known = self
            .files
            .keys()
            .filter(|path| path.starts_with(&partial.value));
        Completions::new(known.cloned())
    }

    #[cfg(any())]
    #[tool]
    async fn never(&self, gone: Missing) {}

    fn not_registered(&self) -> usize {
        self.files.len()
    }
}

#[server(part = more)]
impl Files {
    /// Returns the number of calls of `remove`.
    #[tool]
    async fn calls(&self) -> String {
        assert_eq!(self.not_registered(), 1);
        self.calls.load(Ordering::Relaxed).to_string()
    }
}

/// Holds an `impl` block of the server outside the module of the server type.
mod elsewhere {
    use super::{Files, server};

    #[server(part = elsewhere)]
    impl Files {
        /// Returns the name of the module.
        #[tool]
        async fn module_name(&self) -> &'static str {
            "elsewhere"
        }
    }
}

/// Builds the server [`Files`] with a state.
fn files() -> Server {
    Files::new()
        .into_builder()
        .state(7_u8)
        .build()
        .expect("a server")
}

/// Each method with an attribute is registered with its definition, and its handler can be called.
#[tokio::test]
async fn methods_are_registered() {
    let server = files();
    every_revision(
        || Client::in_memory(&server),
        |client| async move {
            let tools = client.tools().all().await.expect("tools");
            let names: Vec<String> = tools.iter().map(|tool| tool.name()).collect();
            assert_eq!(
                names,
                [
                    "remove",
                    "count",
                    "list-files",
                    "slow",
                    "wait",
                    "stateful",
                    "calls",
                    "module_name"
                ]
            );
            assert_eq!(
                tools[0].description().as_deref(),
                Some("Deletes a file.\n\nAsks before.")
            );
            let schema = tools[1].input_schema().expect("a schema").to_string();
            assert!(
                schema.contains(r#""description":"Up to which number.""#),
                "{schema}"
            );
            assert!(
                schema.contains(r#""required":["to"]"#) && schema.contains(r#""maximum":5"#),
                "{schema}"
            );
            let count: Count = client
                .call("count", &object(r#"{"to":3}"#))
                .await
                .expect("a count");
            assert_eq!(count, Count { n: 3 });
            let listed: String = client.call("list-files", &()).await.expect("files");
            assert_eq!(listed, "a.txt");
            let slow: String = client
                .call("slow", &object(r#"{"text":"x"}"#))
                .await
                .expect("a text");
            assert_eq!(slow, "X");
            let waited: u64 = client
                .call("wait", &object(r#"{"time":5}"#))
                .await
                .expect("a time");
            assert_eq!(waited, 5);
            let state: u8 = client.call("stateful", &()).await.expect("a state");
            assert_eq!(state, 7);
            assert_eq!(
                client.read("file://a.txt").await.expect("a file").text(),
                "A"
            );
            assert_eq!(
                client.read("files://all").await.expect("all files").text(),
                "A"
            );
            assert!(client.read("file://b.txt").await.is_err());
            let prompt = client
                .prompt("review", [("code", "x"), ("strict", "true")])
                .await
                .expect("a prompt");
            assert_eq!(prompt.text(), "Review x, Some(true)");
            let found = client
                .complete_template("file://{+path}", "path", "a")
                .await
                .expect("paths");
            assert_eq!(found.values, ["a.txt"]);
        },
    )
    .await;
}

#[tokio::test]
async fn registered_methods_can_request_input() {
    let server = files();
    let connect = || {
        Client::in_memory(&server)
            .on_elicit(|form: Form| async move { form.accept(&object(r#"{"yes":true}"#)) })
    };
    revisions_from("2025-06-18", connect, |client| async move {
        let text: String = client
            .call("remove", &object(r#"{"path":"a"}"#))
            .await
            .expect("a text");
        assert_eq!(text, "removed");
    })
    .await;
    let client = Client::in_memory(&server).await.expect("a client");
    let calls: u32 = client.call("calls", &()).await.expect("a number");
    // The handler ran twice for the revisions in which a question ends the request.
    let (once, twice) = count_from("2025-06-18");
    assert_eq!(calls as usize, once + 2 * twice);
}

/// Trait bound of a generic server.
trait Store: Send + Sync + 'static {
    fn get(&self) -> u32;
}

/// Store with one number.
struct Fixed(u32);

impl Store for Fixed {
    fn get(&self) -> u32 {
        self.0
    }
}

/// Server that is generic over its store.
struct Generic<S>(S);

#[server]
impl<S> Generic<S>
where
    S: Store,
{
    #[tool]
    async fn get(&self, more: u32) -> String {
        (self.0.get() + more).to_string()
    }
}

#[tokio::test]
async fn generic_types_are_servers() {
    let server = Generic(Fixed(3)).into_server().expect("a server");
    let client = Client::in_memory(&server).await.expect("a client");
    let info = client.server_info().expect("an identity");
    assert_eq!(info.get("name").expect("a name").text(), "\"mcp-exact\"");
    let sum: u32 = client
        .call("get", &object(r#"{"more":4}"#))
        .await
        .expect("a number");
    assert_eq!(sum, 7);
}

/// Application items with names that the expansion, the prelude or `mcp-exact` also use.
mod hygiene {
    #![deny(warnings)]
    #![allow(
        dead_code,
        non_camel_case_types,
        unused_macros,
        clippy::too_many_arguments,
        reason = "names that could disturb the expansion"
    )]

    use super::{Client, IntoServer, schemars};

    struct Arc;
    struct Input;
    struct Tool;
    struct Arguments;
    mod std {}
    mod core {}
    mod serde {}
    mod mcp_exact {}
    macro_rules! env {
        () => {};
    }
    macro_rules! format {
        () => {};
    }

    /// Defines types with the names of prelude types, which are arguments of tools.
    macro_rules! named {
        ($($name:ident)*) => {
            $(
                #[derive(::serde::Deserialize, schemars::JsonSchema)]
                struct $name {
                    n: u8,
                }
            )*
        };
    }

    named!(Result Option Vec String Box Some Ok Send Meta Call);

    /// Extension trait whose methods have the names of methods that the expansion calls.
    trait Everywhere: Sized {
        fn title(&self) {}
        fn description(&self) {}
        fn read_only(&self) {}
        fn clone(&self) {}
        fn tool(&self) {}
    }

    impl<T> Everywhere for T {}

    /// Server whose names collide with those of the expansion.
    struct Odd;

    #[::mcp_exact::server(name = "odd", version = "1")]
    impl Odd {
        #[::mcp_exact::tool]
        async fn r#move(
            &self,
            builder: u8,
            this: u8,
            arguments: u8,
            r#type: u8,
        ) -> ::std::string::String {
            (builder + this + arguments + r#type).to_string()
        }

        /// Adds numbers of application types.
        #[::mcp_exact::tool(read_only, title = "Sum")]
        async fn sum(
            self: ::std::sync::Arc<Self>,
            result: Result,
            option: Option,
            vec: Vec,
            string: String,
            r#box: Box,
            #[argument] meta: Meta,
            #[argument] call: Call,
        ) -> ::std::string::String {
            let all = [result.n, option.n, vec.n, string.n, r#box.n, meta.n, call.n];
            all.into_iter().sum::<u8>().to_string()
        }
    }

    /// Methods whose arguments have names or types that the expansion also uses can be called.
    #[tokio::test]
    async fn names_do_not_clash() {
        let server = Odd.into_server().expect("a server");
        let client = Client::in_memory(&server).await.expect("a client");
        let arguments = super::object(r#"{"builder":1,"this":2,"arguments":3,"type":4}"#);
        let sum: u8 = client.call("move", &arguments).await.expect("a number");
        assert_eq!(sum, 10);
        let one = r#"{"n":1}"#;
        let names = ["result", "option", "vec", "string", "box", "meta", "call"];
        let members = names.map(|name| ::std::format!(r#""{name}":{one}"#));
        let arguments = super::object(&::std::format!("{{{}}}", members.join(",")));
        let sum: u8 = client.call("sum", &arguments).await.expect("a number");
        assert_eq!(sum, 7);
    }
}

/// A second server with the same names of tools and arguments, which compiles because the expansion adds no names to
/// the module.
mod leaks {
    use super::{Client, IntoServer, server};

    struct First;
    struct Second<const N: u8>;

    #[server(name = "first", version = "1")]
    impl First {
        #[tool]
        async fn add(a: u8) -> String {
            a.to_string()
        }
    }

    #[server(name = "second", version = "1")]
    impl<const N: u8> Second<N> {
        #[tool]
        async fn add(a: u8) -> String {
            (a + N).to_string()
        }

        #[cfg(not(test))]
        #[tool]
        async fn only_outside_of_tests(gone: Missing) {}

        #[cfg_attr(test, doc = "Present in tests.")]
        #[cfg(test)]
        #[tool]
        async fn only_in_tests() {}
    }

    #[tokio::test]
    async fn two_servers_share_a_module() {
        let server = Second::<2>.into_server().expect("a server");
        let client = Client::in_memory(&server).await.expect("a client");
        let sum: u8 = client
            .call("add", &super::object(r#"{"a":1}"#))
            .await
            .expect("a number");
        assert_eq!(sum, 3);
        let tools = client.tools().all().await.expect("tools");
        let names: Vec<String> = tools.iter().map(|tool| tool.name()).collect();
        assert_eq!(names, ["add", "only_in_tests"]);
        First.into_server().expect("a server");
    }
}

/// Server whose tool has documentation that macros create.
struct Documented;

#[server(name = "documented", version = "1.0.0")]
impl Documented {
    /// Counts:
    #[doc = concat!("one, ", "two")]
    /// and so on.
    #[tool]
    async fn count() {}
}

/// The description of a method includes the documentation that macros create, such as that of a file by `include_str!`.
#[test]
fn documentation_includes_macros() {
    let server = Documented.into_server().expect("a server");
    let newest = mcp_exact::revisions().last().expect("a revision");
    let tool = server.advertised_tools(newest).remove(0);
    let description = tool.get("description").map(|text| text.to_string());
    assert_eq!(
        description.as_deref(),
        Some(r#""Counts:\none, two\nand so on.""#)
    );
}

/// Type that the arguments of a tool name twice.
#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Place {
    row: u8,
}

/// Server whose tools have the same arguments.
struct Board;

#[server(name = "board", version = "1")]
impl Board {
    #[tool]
    fn repeat(&self, from: Place, to: Place) -> String {
        format!("{} {}", from.row, to.row)
    }

    #[tool(schema_references)]
    fn refer(&self, from: Place, to: Place) -> String {
        format!("{} {}", from.row, to.row)
    }

    #[tool(schema_references = false)]
    fn repeat_too(&self, from: Place, to: Place) -> String {
        format!("{} {}", from.row, to.row)
    }
}

/// `schema_references` keeps named types in `$defs`, for the tool that says so.
#[test]
fn tools_may_refer_to_named_types() {
    let server = Board.into_server().expect("a server");
    let newest = mcp_exact::revisions().next_back().expect("a revision");
    let schema_of = |name: &str| -> serde_json::Value {
        let tools = server.advertised_tools(newest);
        let tool = tools.iter().find(|tool| {
            tool.get("name")
                .is_some_and(|known| known.text().trim_matches('"') == name)
        });
        let schema = tool.expect(name).get("inputSchema").expect("a schema");
        schema.text().parse().expect("JSON")
    };
    let schema = schema_of("refer");
    assert_eq!(
        schema["properties"]["to"]["$ref"], "#/$defs/Place",
        "{schema}"
    );
    assert_eq!(schema["$defs"]["Place"]["type"], "object", "{schema}");
    for name in ["repeat", "repeat_too"] {
        let schema = schema_of(name);
        assert_eq!(schema["properties"]["to"]["type"], "object", "{schema}");
        assert_eq!(schema.get("$defs"), None, "{schema}");
    }
}

/// Server whose definitions have icons and annotations, and whose tool changes the lists.
struct Shelf;

#[server]
impl Shelf {
    /// Adds a tool.
    #[tool(icon = "https://example.com/plus.png", with = |tool| tool.meta("example.com/shelf", 3))]
    async fn learn(server: Server) -> Result<String> {
        server.tools().insert("greet", || async { "hello" })?;
        mcp_exact::Ok("learnt".to_owned())
    }

    #[resource("note:///{name}", with = |note| note.priority(0.5).audience([Role::User]))]
    async fn note(name: String) -> String {
        name
    }
}

/// Options of attributes reach the definitions, and handlers reach their server.
#[tokio::test]
async fn handlers_reach_their_server() {
    let server = Shelf.into_server().expect("a server");
    let client = Client::in_memory(&server).await.expect("a client");
    let tools = client.tools().all().await.expect("tools");
    let learn = tools[0].object().to_string();
    let icon = r#""icons":[{"src":"https://example.com/plus.png"}]"#;
    let meta = r#""_meta":{"example.com/shelf":3}"#;
    assert!(learn.contains(icon) && learn.contains(meta), "{learn}");
    let templates = client.resource_templates().all().await;
    let note = templates.expect("templates")[0].object().to_string();
    let annotations = r#""annotations":{"priority":0.5,"audience":["user"]}"#;
    assert!(note.contains(annotations), "{note}");

    let _: String = client.call("learn", &()).await.expect("a text");
    let greeting: String = client.call("greet", &()).await.expect("a text");
    assert_eq!(greeting, "hello");
}

/// Form that no client can display, because a field is a struct.
#[derive(serde::Deserialize, schemars::JsonSchema)]
#[allow(dead_code, reason = "the form is never asked")]
struct Order {
    confirm: Confirm,
}

/// Server that asks for forms.
struct Shop;

#[server]
impl Shop {
    #[tool]
    async fn buy(cx: Cx) -> Result<bool> {
        if cx.elicit::<Confirm>("Sure?").await?.accepted().is_none() {
            return Ok(false);
        }
        Ok(cx.elicit::<Order>("What?").await?.accepted().is_some())
    }

    /// The type in the method has no name outside of it.
    #[tool]
    async fn local(cx: Cx) -> Result<bool> {
        #[derive(serde::Deserialize, schemars::JsonSchema)]
        #[allow(dead_code, reason = "the form is never filled in")]
        struct Color {
            name: String,
        }
        Ok(cx.elicit::<Color>("Which?").await?.accepted().is_some())
    }
}

/// A form that cannot be asked is a problem of the server, not of its first call.
#[test]
fn forms_are_checked_early() {
    let error = Shop.into_server().expect_err("no form");
    let [problem] = error.problems() else {
        panic!("{error}");
    };
    let problem = problem.to_string();
    assert!(
        problem.contains("Order") && problem.contains(r#"field "confirm" cannot be in a form"#),
        "{problem}"
    );
}
