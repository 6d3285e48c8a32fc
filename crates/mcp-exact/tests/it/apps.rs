//! MCP Apps: pages of tools, from the server to the host that shows them (specification 2026-01-26 of the extension
//! `io.modelcontextprotocol/ui`).

use mcp_exact::apps::{App, AppError, EXTENSION, MIME_TYPE, PageSettings, Permission, Visibility};
use mcp_exact::testing::every_revision;
use mcp_exact::{
    Client, ClientChange, Contents, Cx, Host, IntoServer, JsonObject, RawJson, Resource,
    ResourceTemplate, Server, ServerBuilder, Tool, revisions, server,
};

use crate::common::object;

const PAGE: &str = "ui://clock/page.html";
const HTML: &str = "<!doctype html><title>Clock</title>";

/// Returns a builder of a server with a page, a tool for everybody, one for pages and one for models.
fn clock() -> ServerBuilder {
    let page = App::new(HTML)
        .connect_domain("https://time.example.com")
        .resource_domain("https://*.cdn.example.com")
        .permission(Permission::ClipboardWrite)
        .prefers_border(false);
    Server::builder("clock", "1.0.0")
        .app(Resource::new(PAGE).title("Clock"), page)
        .tool(Tool::new("time").ui(PAGE), |cx: Cx| async move {
            if cx.client_supports_ui() {
                "shown"
            } else {
                "It is noon."
            }
        })
        .tool(
            Tool::new("adjust").ui(PAGE).visibility([Visibility::App]),
            || async { "adjusted" },
        )
        .tool(
            Tool::new("alarm").visibility([Visibility::Model]),
            || async { "set" },
        )
}

/// "Clients advertise MCP Apps support in the initialize request using the extension identifier" (Client Capabilities), and by the
/// same member of the capabilities in every revision.
#[tokio::test]
async fn servers_know_who_shows_pages() {
    let server = clock().build().expect("a server");
    for revision in revisions() {
        let client = || Client::in_memory(&server).revision(revision);
        let with = client().apps().await.expect("a client");
        assert!(with.server_extension(EXTENSION).is_some(), "{revision}");
        let without = client().await.expect("a client");
        // Without media types nothing is said of pages.
        let empty = client().extension(EXTENSION, JsonObject::new());
        let empty = empty.await.expect("a client");
        for (client, expected) in [
            (with, "shown"),
            (without, "It is noon."),
            (empty, "It is noon."),
        ] {
            let text = client
                .call_tool("time", &())
                .await
                .expect("a result")
                .text();
            assert_eq!(text, expected, "{revision}");
        }
    }
}

/// "Host MUST use `resources/read` to fetch the referenced resource URI" (Resource Discovery): the document, and what it may load
/// and use, in every revision.
#[tokio::test]
async fn pages_are_read_with_their_settings() {
    let server = clock().build().expect("a server");
    every_revision(
        || Client::in_memory(&server).apps(),
        |client| async move {
            let tools = client.tools().all().await.expect("the tools");
            let time = tools.iter().find(|tool| tool.name() == "time").expect("it");
            assert_eq!(time.ui().page_uri(), Some(PAGE));
            let page = client.read_app(time).await.expect("a page");
            assert_eq!((&*page.uri, &*page.html), (PAGE, HTML));
            assert_eq!(page.refused, []);
            if client.revision().as_str() < "2025-06-18" {
                // Resources have no `_meta` there, and the page gets nothing that it asks for.
                assert_eq!(page.settings, PageSettings::default());
                return;
            }
            assert_eq!(page.settings.allow_attribute(), "clipboard-write");
            assert_eq!(page.settings.prefers_border, Some(false));
            let policy = page.settings.policy();
            let connect = "connect-src 'self' https://time.example.com;";
            let images = "img-src 'self' data: https://*.cdn.example.com;";
            assert!(
                policy.contains(connect) && policy.contains(images),
                "{policy}"
            );
            let listed = client.resources().all().await.expect("the resources");
            let listed = listed[0].object();
            assert_eq!(listed.get("mimeType"), Some(RawJson::string(MIME_TYPE)));
            assert_eq!(listed.get("size"), Some(35.into()));
            let item = client.read(PAGE).await.expect("contents").items()[0].clone();
            assert_eq!(item.get("mimeType"), Some(RawJson::string(MIME_TYPE)));
            let meta = |of: &JsonObject| of.get("_meta").map(|meta| meta.text().to_owned());
            assert_eq!(meta(&item), meta(listed), "the list has the same settings");
            let error = client
                .read_app_within(time, 34)
                .await
                .expect_err("too large");
            assert!(
                error
                    .to_string()
                    .contains("has 35 bytes, and 34 are allowed"),
                "{error}"
            );
        },
    )
    .await;
}

/// "Resource MUST exist on the server", with a URI and a media type that hosts accept (Resource Discovery, Content Requirements).
#[test]
fn tools_need_their_pages() {
    let builder = Server::builder("test", "1.0.0")
        .tool(Tool::new("none").ui("ui://none"), || async { "" })
        .tool(Tool::new("web").ui("https://example.com/page"), || async {
            ""
        })
        .resource(
            Resource::new("ui://plain").mime_type("text/html"),
            || async { "" },
        )
        .tool(Tool::new("plain").ui("ui://plain"), || async { "" })
        .resource("ui://good", || async { HTML })
        .tool(Tool::new("good").ui("ui://good"), || async { "" })
        .template("ui://of/{name}", || async { HTML })
        .tool(Tool::new("of").ui("ui://of/a"), || async { "" })
        .template(
            ResourceTemplate::new("ui://text/{name}").mime_type("text/plain"),
            || async { HTML },
        )
        .tool(Tool::new("text").ui("ui://text/a"), || async { "" })
        .resource(
            Resource::new("ui://spaced").mime_type("text/html; profile=mcp-app"),
            || async { HTML },
        )
        .tool(Tool::new("spaced").ui("ui://spaced"), || async { "" })
        .tool(
            Tool::new("old").meta("ui/resourceUri", RawJson::string("ui://old")),
            || async { "" },
        )
        .app(
            "file:///page.html",
            App::new("page.html")
                .frame_domain("*")
                .frame_domain("data:")
                .domain("a\nb"),
        )
        .app(
            "ui://app",
            App::new(HTML).domain("https://my-app.example.com"),
        );
    let error = builder.build().expect_err("problems");
    let problems: Vec<String> = error.problems().iter().map(ToString::to_string).collect();
    assert_eq!(
        problems,
        [
            "resource \"file:///page.html\" cannot be advertised: the URI of a page begins with `ui://`; change it",
            "resource \"file:///page.html\" cannot be advertised: the page is not an HTML document; give its text, such as by `include_str!`",
            "resource \"file:///page.html\" cannot be advertised: \"*\" is not the origin of a host, such as https://api.example.com; \
             correct the argument of `frame_domain`",
            "resource \"file:///page.html\" cannot be advertised: \"data:\" is a scheme, and this list has hosts alone; correct the argument of \
             `frame_domain`",
            "resource \"file:///page.html\" cannot be advertised: \"a\\nb\" is not text of 1 to 255 bytes without control characters, as an \
             origin is; correct the argument of `domain`",
            "the page \"ui://none\" of tool \"none\" cannot be shown: the server has no resource with this URI; register it, such as by `app`",
            "the page \"https://example.com/page\" of tool \"web\" cannot be shown: its URI does not begin with `ui://`; change it here and in \
             the resource",
            "the page \"ui://plain\" of tool \"plain\" cannot be shown: the media type of the resource is \"text/html\", and hosts show \
             text/html;profile=mcp-app alone; leave `mime_type` out",
            "the page \"ui://text/a\" of tool \"text\" cannot be shown: the media type of the resource template is \"text/plain\", and hosts \
             show text/html;profile=mcp-app alone; leave `mime_type` out",
            "the page \"ui://spaced\" of tool \"spaced\" cannot be shown: the media type of the resource is \"text/html; profile=mcp-app\", \
             and hosts show text/html;profile=mcp-app alone; leave `mime_type` out",
            "the page \"ui://old\" of tool \"old\" cannot be shown: the server has no resource with this URI; register it, such as by `app`",
        ]
    );
}

/// Tools that are inserted while the server runs need their pages too.
#[test]
fn late_tools_need_their_pages() {
    let server = clock().build().expect("a server");
    let insert = |uri: &str| {
        server
            .tools()
            .insert(Tool::new("late").ui(uri), || async { "" })
    };
    insert(PAGE).expect("the page is there");
    let error = insert("ui://late").expect_err("the page is not there");
    assert!(
        error.to_string().contains("no resource with this URI"),
        "{error}"
    );
    let page = || async { App::new(HTML) };
    server
        .resources()
        .insert("ui://late", page)
        .expect("a resource");
    insert("ui://late").expect("the page is there");
}

/// A server whose resources are inserted while it runs is built without its pages, and shows them then.
#[tokio::test]
async fn late_pages_are_declared() {
    let late = || Server::builder("late", "1.0.0").tool(Tool::new("t").ui(PAGE), || async { "" });
    late().build().expect_err("no page");
    let server = late().declare_resources().build().expect("a server");
    let client = Client::in_memory(&server).apps().await.expect("a client");
    assert!(client.server_extension(EXTENSION).is_some());
    let page = || async { App::new(HTML) };
    server.resources().insert(PAGE, page).expect("a resource");
    let tools = client.tools().all().await.expect("the tools");
    let page = client.read_app(&tools[0]).await.expect("a page");
    assert_eq!(page.html, HTML);
}

/// "Host MUST NOT include tools in the agent's tool list when their visibility does not include "model"" (Visibility), in every
/// revision: a tool has no `_meta` before 2025-06-18, and its page and visibility are there all the same.
#[tokio::test]
async fn models_get_no_tools_of_pages_in_any_revision() {
    let server = clock().build().expect("a server");
    let mut builder = Host::builder();
    for revision in revisions() {
        let client = Client::in_memory(&server).revision(revision);
        builder = builder.server(revision.as_str(), client);
    }
    let host = builder.apps().start().await;
    let tools = host.tools().await;
    for revision in revisions() {
        let name = |tool: &str| format!("{revision}__{tool}");
        let of_revision = tools
            .for_model()
            .filter(|tool| tool.server == revision.as_str());
        let for_model: Vec<&str> = of_revision.map(|tool| tool.name()).collect();
        assert_eq!(for_model, [name("time"), name("alarm")]);
        tools.for_page(revision.as_str(), "adjust").expect("a tool");
        tools.for_model_call(&name("alarm")).expect("a tool");
        for tool in ["adjust", "no"] {
            let error = tools.for_model_call(&name(tool));
            assert_eq!(error, Err(AppError::NotForModel(name(tool))));
        }
    }
}

/// Clients that have not declared the extension do not know what a visibility is: they neither see nor may call tools of pages, with and
/// without a rule, and also when such a tool is inserted later.
#[tokio::test]
async fn clients_without_pages_get_no_tools_of_pages() {
    for has_rule in [false, true] {
        let builder = clock();
        let builder = if has_rule {
            builder.visible(|_, _| true)
        } else {
            builder
        };
        let server = builder.build().expect("a server");
        let later = Tool::new("later").visibility([Visibility::App]);
        let inserted = server.tools().insert(later, || async { "later" });
        inserted.expect("a tool");
        for revision in revisions() {
            let client = Client::in_memory(&server).revision(revision);
            let client = client.await.expect("a client");
            let tools = client.tools().all().await.expect("the tools");
            let names: Vec<String> = tools.iter().map(|tool| tool.name()).collect();
            assert_eq!(names, ["time", "alarm"], "{revision}");
            for tool in ["adjust", "later"] {
                let error = client.call_tool(tool, &()).await.expect_err(tool);
                let expected = format!("Unknown tool: {tool}");
                assert!(error.to_string().contains(&expected), "{revision}: {error}");
            }
            let host = Client::in_memory(&server).revision(revision).apps();
            let host = host.await.expect("a client");
            assert_eq!(host.tools().all().await.expect("the tools").len(), 4);
            let adjusted: String = host.call("adjust", &()).await.expect("a result");
            assert_eq!(adjusted, "adjusted", "{revision}");
        }
    }
}

/// "Resource MUST exist on the server" (Resource Discovery): when a page is removed, tools that name it are listed without it, and clients
/// hear of it; the same when it is back, also by a template.
#[tokio::test]
async fn removed_pages_are_not_named() {
    let (sender, mut changes) = tokio::sync::mpsc::unbounded_channel();
    let server = clock().build().expect("a server");
    let revision = revisions().find(|revision| revision.as_str() == "2025-11-25");
    let client = Client::in_memory(&server)
        .revision(revision.expect("known"))
        .apps()
        .on_change(move |change| drop(sender.send(change)));
    let client = client.await.expect("a client");
    let pages = async || {
        let tools = client.tools().all().await.expect("the tools");
        assert!(!tools[1].ui().is_for_model(), "the rest is kept");
        let pages = tools.iter().filter_map(|tool| tool.ui().resource_uri);
        pages.count()
    };
    // A change of resources is announced before that of tools.
    let mut tools_change = async || {
        while changes.recv().await.expect("a change") != ClientChange::Tools {}
    };
    let page = || async { App::new(HTML) };
    let template = "ui://clock/{name}";
    let resources = server.resources();
    assert_eq!(pages().await, 2);
    assert!(resources.remove(PAGE));
    tools_change().await;
    assert_eq!(pages().await, 0);
    resources
        .insert_template(template, page)
        .expect("a template");
    tools_change().await;
    assert_eq!(pages().await, 2);
    resources.insert(PAGE, page).expect("a resource");
    assert!(resources.remove(PAGE), "the template still has the page");
    assert_eq!(pages().await, 2);
    assert!(resources.remove_template(template));
    tools_change().await;
    assert_eq!(pages().await, 0);
}

/// "`"app"`: Tool callable by the app from the same server connection only" (Visibility).
#[tokio::test]
async fn hosts_keep_pages_and_models_apart() {
    let other = Server::builder("other", "1.0.0").tool("say", || async { "hello" });
    let host = Host::builder()
        .server(
            "clock",
            Client::in_memory(&clock().build().expect("a server")),
        )
        .server(
            "other",
            Client::in_memory(&other.build().expect("a server")),
        )
        .apps()
        .start()
        .await;
    let tools = host.tools().await;
    let for_model: Vec<&str> = tools.for_model().map(|tool| tool.name()).collect();
    assert_eq!(for_model, ["clock__time", "clock__alarm", "other__say"]);
    for (server, tool) in [
        ("clock", "alarm"),
        ("clock", "no"),
        ("other", "adjust"),
        ("no", "adjust"),
    ] {
        let expected = AppError::NotForPages {
            server: server.to_owned(),
            tool: tool.to_owned(),
        };
        assert_eq!(tools.for_page(server, tool), Err(expected));
    }
    let adjust = tools.for_page("clock", "adjust").expect("a tool for pages");
    let output = host.call(adjust.name(), &()).await.expect("a result");
    assert_eq!(output.text(), "adjusted");
    let time = tools.for_page("clock", "time").expect("a tool for both");
    let output = host.call(time.name(), &()).await.expect("a result");
    assert_eq!(
        output.text(),
        "shown",
        "the host has said that it shows pages"
    );
    assert_eq!(host.read_app(time).await.expect("a page").html, HTML);
    let say = tools.for_page("other", "say").expect("a tool for both");
    let error = host.read_app(say).await.expect_err("no page");
    let expected = r#"server "other": the tool "say" has no page; show its result as text"#;
    assert_eq!(error.to_string(), expected);
}

/// A server cannot make a host read anything but its pages, and what it gives has to be one.
#[tokio::test]
async fn hosts_refuse_what_is_no_page() {
    let server = Server::builder("hostile", "1.0.0")
        .tool(
            Tool::new("file").meta("ui", object(r#"{"resourceUri":"ui://x"}"#)),
            || async { "" },
        )
        .resource("ui://x", || async {
            Contents::text("<p>").mime_type("text/html")
        })
        .resource("file:///etc/passwd", || async { "root" })
        .build()
        .expect("a server");
    let client = Client::in_memory(&server).apps().await.expect("a client");
    let tools = client.tools().all().await.expect("the tools");
    let error = client.read_app(&tools[0]).await.expect_err("no page");
    let text = r#"the page "ui://x" cannot be shown: its media type is "text/html"; pages are text/html;profile=mcp-app"#;
    assert_eq!(error.to_string(), text);
    let raw = Server::builder("hostile", "1.0.0")
        .declare_tools()
        .method("tools/list", || async {
            object(
                r#"{"resultType":"complete","tools":[{"name":"t","inputSchema":{"type":"object"},"_meta":{"ui":{"resourceUri":"file:///etc/passwd"}}}]}"#,
            )
        })
        .build()
        .expect("a server");
    let client = Client::in_memory(&raw).apps().await.expect("a client");
    let tools = client.tools().all().await.expect("the tools");
    let error = client.read_app(&tools[0]).await.expect_err("no page");
    let expected = AppError::Scheme {
        tool: "t".to_owned(),
        uri: "file:///etc/passwd".to_owned(),
    };
    assert_eq!(error, expected);
}

/// Server whose page and tools are methods.
struct Attributes;

#[server(name = "attributes", version = "1.0.0")]
impl Attributes {
    /// Both.
    #[tool(ui = "ui://page")]
    fn both() -> &'static str {
        "both"
    }
    /// For pages.
    #[tool(ui = "ui://page", visibility = "app")]
    fn page_only() -> &'static str {
        "page"
    }
    /// For both, in so many words.
    #[tool(visibility = "app, model")]
    fn all() -> &'static str {
        "all"
    }
    /// The page.
    #[resource("ui://page")]
    fn page() -> App {
        App::new(HTML).connect_domain("https://time.example.com")
    }
}

/// The attributes set what the builder sets.
#[tokio::test]
async fn attributes_name_the_page() {
    let server = Attributes.into_server().expect("a server");
    let client = Client::in_memory(&server).apps().await.expect("a client");
    let tools = client.tools().all().await.expect("the tools");
    let ui = |at: usize| {
        tools[at]
            .object()
            .get("_meta")
            .map(|meta| meta.text().to_owned())
    };
    assert_eq!(
        ui(0).as_deref(),
        Some(r#"{"ui":{"resourceUri":"ui://page"}}"#)
    );
    let both = r#"{"ui":{"resourceUri":"ui://page","visibility":["app"]}}"#;
    assert_eq!(ui(1).as_deref(), Some(both));
    assert_eq!(
        ui(2).as_deref(),
        Some(r#"{"ui":{"visibility":["model","app"]}}"#)
    );
    let page = client.read_app(&tools[1]).await.expect("a page");
    assert_eq!(page.html, HTML);
    assert_eq!(page.settings.csp.connect.len(), 1);
}
