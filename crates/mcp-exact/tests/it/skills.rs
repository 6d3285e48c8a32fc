//! Skills (SEP-2640): a folder that is served, and a client that verifies what it reads. Quoted text is that of
//! `specification/stable/skills.mdx` of the extension.

use std::fs;
use std::path::Path;
use std::time::Duration;

use mcp_exact::testing::every_revision;
use mcp_exact::transport::http::server::{HttpListener, HttpServerOptions};
use mcp_exact::{
    BearerToken, Client, ClientChange, ClientError, Contents, IntoServer, JsonObject,
    ListedDefinition, Problem, Server, Skill, SkillError, SkillFolder, TokenGrant, server,
};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::sync::mpsc;

use crate::common::object;

const EXTENSION: &str = "io.modelcontextprotocol/skills";

/// Text of a `SKILL.md`.
fn skill_text(name: &str, description: &str) -> String {
    format!(
        "---\nname: {name}\ndescription: {description}\nmetadata:\n  version: 1.50\n---\n# {name}\n"
    )
}

/// Writes a file, and the directories above it.
fn write(folder: &Path, path: &str, content: impl AsRef<[u8]>) {
    let path = folder.join(path);
    fs::create_dir_all(path.parent().expect("a directory")).expect("directories");
    fs::write(path, content).expect("a file");
}

/// Returns a folder with the skills `shop/refunds` (with the nested skill `email`, and a `SKILL.md` that is none) and `review`.
fn folder() -> TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    for (path, content) in [
        (
            "review/SKILL.md",
            skill_text("review", "Review a change").as_str(),
        ),
        ("shop/refunds/SKILL.md", &skill_text("refunds", "Refund")),
        ("shop/refunds/references/POLICY (new).md", "Ask first.\n"),
        ("shop/refunds/references/deep/x.py", "print()\n"),
        ("shop/refunds/email/SKILL.md", &skill_text("email", "Write")),
        ("shop/refunds/assets/SKILL.md", "no frontmatter"),
        ("shop/refunds/.secret", "hidden"),
        ("shop/refunds/.git/config", "hidden"),
        ("README.md", "outside"),
    ] {
        write(folder.path(), path, content);
    }
    write(
        folder.path(),
        "shop/refunds/logo.png",
        [0_u8, 159, 146, 150],
    );
    fs::create_dir(folder.path().join("shop/refunds/empty")).expect("a directory");
    folder
}

/// Returns a server of the folder that looks at it with each request.
fn server_of(folder: &Path) -> Server {
    let skills = SkillFolder::new(folder).check_interval(Duration::ZERO);
    let builder = Server::builder("test", "1.0.0").skills(skills);
    builder.build().expect("a server")
}

/// Returns the URIs of the resources of a skill.
fn uris(skill: &Skill) -> Vec<&str> {
    let resources = skill.resources().expect("resources").iter();
    resources.map(|resource| resource.uri.as_str()).collect()
}

/// Returns the code of the error with which the server answers.
async fn code(client: &Client, method: &str, params: &str) -> Option<i64> {
    match client.request(method, Some(object(params))).await {
        Err(ClientError::Server(error)) => error.code(),
        other => panic!("{method} {params}: {other:?}"),
    }
}

/// "A server that declares this extension MUST implement `skills/list` and `skills/get`", and every file that an entry lists
/// is what it describes; in every revision.
#[tokio::test]
async fn skills_are_served_in_every_revision() {
    let folder = folder();
    let server = server_of(folder.path());
    every_revision(
        || Client::in_memory(&server).skills(),
        |client| async move {
            let declared = client.server_extension(EXTENSION).expect("declared");
            assert_eq!(declared.text(), r#"{"directoryRead":true}"#);
            assert!(client.capabilities().get("resources").is_some());
            let listing = client.skills().await.expect("skills");
            assert_eq!(listing.invalid, []);
            let listed: Vec<&str> = listing.skills.iter().map(Skill::uri).collect();
            let refunds = "skill://shop/refunds/SKILL.md";
            let nested = "skill://shop/refunds/email/SKILL.md";
            assert_eq!(
                listed,
                [refunds, nested, "skill://review/SKILL.md"]
                    .into_iter()
                    .collect::<std::collections::BTreeSet<_>>()
                    .into_iter()
                    .collect::<Vec<_>>()
            );
            let skill = client.skill(refunds).await.expect("an entry");
            assert!(
                listing.skills.contains(&skill),
                "an entry is the same in both"
            );
            assert_eq!(skill.frontmatter()["metadata"], json!({"version": 1.5}));
            assert_eq!(
                uris(&skill),
                [
                    "skill://shop/refunds/SKILL.md",
                    "skill://shop/refunds/assets/SKILL.md",
                    "skill://shop/refunds/email/SKILL.md",
                    "skill://shop/refunds/logo.png",
                    "skill://shop/refunds/references/POLICY%20%28new%29.md",
                    "skill://shop/refunds/references/deep/x.py",
                ]
            );
            for skill in &listing.skills {
                for uri in uris(skill) {
                    let path = skill.path_of(uri).expect("a path");
                    let file = client.read_skill(skill, path).await.expect(uri);
                    assert!(file.is_verified, "{uri}");
                }
            }
            let file = client
                .read_skill(&skill, "references/POLICY (new).md")
                .await;
            let file = file.expect("a file");
            assert_eq!(
                (file.text(), file.mime_type.as_deref()),
                (Some("Ask first.\n"), Some("text/markdown"))
            );
            let unlisted = client
                .read_skill(&skill, ".secret")
                .await
                .expect_err("hidden");
            assert!(
                matches!(unlisted, SkillError::Unlisted { .. }),
                "{unlisted}"
            );
            let resources = client.resources().all().await.expect("resources");
            let resource = resources
                .iter()
                .find(|found| found.uri().as_deref() == Some(refunds));
            let resource = resource.expect("the skill");
            assert_eq!(
                (resource.name().as_str(), resource.description().as_deref()),
                ("refunds", Some("Refund"))
            );
            // "If the URI does not identify a skill the server serves, the server MUST return error `-32602`".
            for uri in [
                "skill://shop/refunds",
                "skill://shop/refunds/assets/SKILL.md",
                "skill://shop/refunds/../refunds/SKILL.md",
                "skill://none/SKILL.md",
            ] {
                let params = format!(r#"{{"uri":"{uri}"}}"#);
                assert_eq!(
                    code(&client, "skills/get", &params).await,
                    Some(-32602),
                    "{uri}"
                );
            }
            for uri in [
                "skill://README.md",
                "skill://shop/refunds/.git/config",
                "skill://shop/refunds/%2e%2e/x",
            ] {
                assert!(client.read(uri).await.is_err(), "{uri}");
            }
        },
    )
    .await;
}

/// Results have the members of `CacheableResult`, and "`nextCursor` […] the client passes it back to retrieve the next page".
#[tokio::test]
async fn lists_have_pages() {
    let folder = folder();
    let builder = Server::builder("test", "1.0.0")
        .page_size(1)
        .skills(folder.path());
    let server = builder.build().expect("a server");
    every_revision(
        || Client::in_memory(&server).skills(),
        |client| async move {
            let page = client.request("skills/list", None).await.expect("a page");
            let page: Value = page.text().parse().expect("JSON");
            let members = ["ttlMs", "cacheScope", "resultType"].map(|name| page[name].clone());
            assert_eq!(members, [json!(0), json!("private"), json!("complete")]);
            assert_eq!(page["skills"].as_array().map(Vec::len), Some(1));
            assert!(page["nextCursor"].is_string());
            let skills = client.skills().await.expect("skills").skills;
            assert_eq!(skills.len(), 3);
            assert_eq!(
                code(&client, "skills/list", r#"{"cursor":"?"}"#).await,
                Some(-32602)
            );
            let resources = client.resources().all().await.expect("resources");
            assert_eq!(resources.len(), 3);
            let got = client.request(
                "skills/get",
                Some(object(r#"{"uri":"skill://review/SKILL.md"}"#)),
            );
            let got: Value = got.await.expect("an entry").text().parse().expect("JSON");
            let members = ["ttlMs", "cacheScope", "resultType"].map(|name| got[name].clone());
            assert_eq!(members, [json!(0), json!("private"), json!("complete")]);
            assert!(
                got["nextCursor"].is_null(),
                "The result carries no pagination cursor"
            );
        },
    )
    .await;
}

/// "The result contains every direct child of the directory", and "If the URI does not exist, or exists but is not a directory
/// resource, the server MUST return error `-32602`".
#[tokio::test]
async fn directories_list_their_children() {
    let folder = folder();
    let server = server_of(folder.path());
    let client = Client::in_memory(&server).skills().await.expect("a client");
    for (directory, children) in [
        ("skill://shop", json!([["refunds", "inode/directory"]])),
        (
            "skill://shop/refunds",
            json!([
                ["refunds", "text/markdown"],
                ["assets", "inode/directory"],
                ["email", "inode/directory"],
                ["empty", "inode/directory"],
                ["logo.png", "image/png"],
                ["references", "inode/directory"]
            ]),
        ),
        ("skill://shop/refunds/empty", json!([])),
        (
            "skill://shop/refunds/references",
            json!([
                ["POLICY (new).md", "text/markdown"],
                ["deep", "inode/directory"]
            ]),
        ),
    ] {
        let params = format!(r#"{{"uri":"{directory}"}}"#);
        let result = client
            .request("resources/directory/read", Some(object(&params)))
            .await;
        let result: Value = result.expect(directory).text().parse().expect("JSON");
        let listed = result["resources"].as_array().expect("resources").iter();
        let listed: Value = listed
            .map(|child| json!([child["name"], child["mimeType"]]))
            .collect();
        assert_eq!(listed, children, "{directory}");
    }
    for uri in [
        "skill://shop/refunds/SKILL.md",
        "skill://shop/refunds/",
        "skill://none",
        "skill://sho",
        "skill:/",
    ] {
        let params = format!(r#"{{"uri":"{uri}"}}"#);
        assert_eq!(
            code(&client, "resources/directory/read", &params).await,
            Some(-32602),
            "{uri}"
        );
    }
    assert_eq!(
        code(&client, "resources/directory/read", "{}").await,
        Some(-32602)
    );
}

/// "A mismatch means the content is not what the entry described. […] To recover from staleness, the host calls `skills/get`".
/// Subscribers are told, and a folder that is not valid stays as it was.
#[tokio::test]
async fn changes_are_noticed() {
    let folder = folder();
    let server = server_of(folder.path());
    let (sender, mut changes) = mpsc::unbounded_channel();
    let connect = Client::in_memory(&server).skills();
    let client = connect
        .on_change(move |change| drop(sender.send(change)))
        .await;
    let client = client.expect("a client");
    let uri = "skill://review/SKILL.md";
    let _subscription = client.subscribe([uri]).await.expect("a subscription");
    let held = client.skill(uri).await.expect("an entry");
    write(
        folder.path(),
        "review/SKILL.md",
        skill_text("review", "Review a change") + "More.\n",
    );
    let error = client
        .read_skill(&held, "SKILL.md")
        .await
        .expect_err("it is stale");
    assert!(matches!(error, SkillError::Size { .. }), "{error}");
    let change = changes.recv().await;
    assert_eq!(
        change,
        Some(ClientChange::Resources),
        "its size is in the list"
    );
    assert_eq!(
        changes.recv().await,
        Some(ClientChange::Resource(uri.to_owned()))
    );
    let current = client.skill(uri).await.expect("an entry");
    client
        .read_skill(&current, "SKILL.md")
        .await
        .expect("the new text");
    write(folder.path(), "review/SKILL.md", "---\nname: review\n");
    client
        .read_skill(&current, "SKILL.md")
        .await
        .expect("the last valid text");
    // A file that is added changes the entry of its skill.
    write(
        folder.path(),
        "review/SKILL.md",
        skill_text("review", "Review a change") + "More.\n",
    );
    client.skills().await.expect("skills");
    write(folder.path(), "review/new.md", "new");
    client.skills().await.expect("skills");
    assert_eq!(
        changes.recv().await,
        Some(ClientChange::Resource(uri.to_owned()))
    );
    fs::create_dir(folder.path().join("review/empty")).expect("a directory");
    let params = object(r#"{"uri":"skill://review/empty"}"#);
    let empty = client
        .request("resources/directory/read", Some(params))
        .await;
    empty.expect("the new directory");
    write(
        folder.path(),
        "review/SKILL.md",
        skill_text("review", "Review two"),
    );
    write(folder.path(), "new/SKILL.md", skill_text("new", "New"));
    fs::remove_dir_all(folder.path().join("shop")).expect("removed");
    let listed = client.skills().await.expect("skills").skills;
    let listed: Vec<_> = listed
        .iter()
        .map(|skill| (skill.name(), skill.description()))
        .collect();
    assert_eq!(listed, [("new", "New"), ("review", "Review two")]);
}

/// The folder is looked at once in an interval, however many requests there are.
#[tokio::test(start_paused = true)]
async fn folders_are_looked_at_in_intervals() {
    let folder = folder();
    let skills = SkillFolder::new(folder.path()).check_interval(Duration::from_secs(5));
    let server = Server::builder("test", "1.0.0")
        .skills(skills)
        .build()
        .expect("a server");
    let client = Client::in_memory(&server).skills().await.expect("a client");
    assert_eq!(client.skills().await.expect("skills").skills.len(), 3);
    fs::remove_dir_all(folder.path().join("shop")).expect("removed");
    assert_eq!(client.skills().await.expect("skills").skills.len(), 3);
    tokio::time::advance(Duration::from_secs(5)).await;
    assert_eq!(client.skills().await.expect("skills").skills.len(), 1);
}

/// A rule that hides a skill hides its files, directories and entry.
#[tokio::test]
async fn hidden_skills_do_not_exist() {
    let folder = folder();
    let builder = Server::builder("test", "1.0.0").skills(folder.path());
    let builder = builder.visible(|_, listed| match listed {
        ListedDefinition::Resource(resource) => resource.name() != "review",
        _ => true,
    });
    let server = builder.build().expect("a server");
    let client = Client::in_memory(&server).skills().await.expect("a client");
    let uri = "skill://review/SKILL.md";
    let listed = client.skills().await.expect("skills").skills;
    assert_eq!(listed.len(), 2);
    assert!(listed.iter().all(|skill| skill.uri() != uri));
    let error = client.skill(uri).await.expect_err("hidden");
    assert!(matches!(error, SkillError::Unknown { .. }), "{error}");
    assert!(client.read(uri).await.is_err());
    let params = r#"{"uri":"skill://review"}"#;
    assert_eq!(
        code(&client, "resources/directory/read", params).await,
        Some(-32602)
    );
    let resources = client.resources().all().await.expect("resources");
    assert!(
        resources
            .iter()
            .all(|resource| resource.uri().as_deref() != Some(uri))
    );
}

/// A skill inside of another one that is hidden is in no answer about the outer one: no file can be read, and entry and
/// directories do not have them.
#[tokio::test]
async fn hidden_skills_inside_of_others_do_not_exist() {
    let folder = folder();
    write(folder.path(), "shop/refunds/email/deep/secret.md", "secret");
    let server_without = |hidden: &'static str| {
        let builder = Server::builder("test", "1.0.0").skills(folder.path());
        let builder = builder.visible(move |_, listed| match listed {
            ListedDefinition::Resource(resource) => resource.name() != hidden,
            _ => true,
        });
        builder.build().expect("a server")
    };
    let server = server_without("email");
    every_revision(
        || Client::in_memory(&server).skills(),
        |client| async move {
            for skill in [
                client
                    .skill("skill://shop/refunds/SKILL.md")
                    .await
                    .expect("an entry"),
                client.skills().await.expect("skills").skills.remove(1),
            ] {
                assert_eq!(skill.name(), "refunds");
                let listed = uris(&skill);
                assert_eq!(listed.len(), 5, "{listed:?}");
                assert!(
                    listed.iter().all(|uri| !uri.contains("email")),
                    "{listed:?}"
                );
            }
            for uri in [
                "skill://shop/refunds/email/SKILL.md",
                "skill://shop/refunds/email/deep/secret.md",
            ] {
                assert!(client.read(uri).await.is_err(), "{uri}");
            }
            for directory in [
                "skill://shop/refunds/email",
                "skill://shop/refunds/email/deep",
            ] {
                let params = format!(r#"{{"uri":"{directory}"}}"#);
                let answered = code(&client, "resources/directory/read", &params).await;
                assert_eq!(answered, Some(-32602), "{directory}");
            }
            let params = object(r#"{"uri":"skill://shop/refunds"}"#);
            let listed = client
                .request("resources/directory/read", Some(params))
                .await;
            assert!(!listed.expect("children").text().contains("email"));
        },
    )
    .await;
    // Nobody is told of changes of what cannot be read, nor whether it exists.
    let revision = mcp_exact::revisions().find(|revision| revision.as_str() == "2025-11-25");
    let connect = Client::in_memory(&server).revision(revision.expect("compiled in"));
    let client = connect.skills().await.expect("a client");
    for (uri, is_seen) in [
        ("skill://shop/refunds/SKILL.md", true),
        ("skill://shop/refunds/logo.png", true),
        ("skill://shop/refunds/email/SKILL.md", false),
        ("skill://shop/refunds/email/deep/secret.md", false),
        ("skill://shop/refunds/email/deep/none.md", false),
    ] {
        let params = object(&format!(r#"{{"uri":"{uri}"}}"#));
        let subscribed = client.request("resources/subscribe", Some(params)).await;
        assert_eq!(subscribed.is_ok(), is_seen, "{uri}");
    }
    // The inner one can be seen without the outer one.
    let server = server_without("refunds");
    let client = Client::in_memory(&server).skills().await.expect("a client");
    let skill = client.skill("skill://shop/refunds/email/SKILL.md").await;
    client
        .read_skill(&skill.expect("an entry"), "deep/secret.md")
        .await
        .expect("a file");
    assert!(client.read("skill://shop/refunds/logo.png").await.is_err());
    let params = object(r#"{"uri":"skill://shop/refunds"}"#);
    let listed = client
        .request("resources/directory/read", Some(params))
        .await;
    let listed = listed.expect("children");
    assert!(
        listed.text().contains("email") && !listed.text().contains("logo"),
        "{listed}"
    );
}

/// Callers whose token does not grant the scope are shown no skill, and a use is refused as insufficient, not as unknown.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn skills_need_their_scope() {
    let folder = folder();
    let admin = TokenGrant::new("admin").scopes(["skills:read"]);
    let server = Server::builder("test", "1.0.0")
        .skills(SkillFolder::new(folder.path()).scope("skills:read"))
        .bearer_tokens(["c2VjcmV0"])
        .bearer_tokens([BearerToken::new("YWRtaW4", admin)])
        .build()
        .expect("a server");
    let listener = HttpListener::bind("127.0.0.1:0").await.expect("a port");
    let url = format!("http://{}/mcp", listener.local_addr().expect("an address"));
    let service = server.http(HttpServerOptions::default());
    tokio::spawn(listener.serve(service, std::future::pending()));
    let uri = "skill://review/SKILL.md";
    for revision in mcp_exact::revisions() {
        for (token, shown) in [("YWRtaW4", 3), ("c2VjcmV0", 0)] {
            let connect = Client::connect(&url).revision(revision).bearer(token);
            let client = connect.skills().await.expect("a client");
            let listed = client.skills().await.expect("a list").skills;
            assert_eq!(listed.len(), shown, "{revision} {token}");
            let params = || Some(object(&format!(r#"{{"uri":"{uri}"}}"#)));
            let directory = Some(object(r#"{"uri":"skill://review"}"#));
            for result in [
                client.request("skills/get", params()).await,
                client.request("resources/read", params()).await,
                client.request("resources/directory/read", directory).await,
            ] {
                match result {
                    Ok(_) => assert_ne!(shown, 0, "{revision}"),
                    Err(error) => {
                        let error = error.to_string();
                        assert!(shown == 0 && error.contains("not authorized"), "{error}");
                    }
                }
            }
        }
    }
}

/// What breaks the skill format, leads out of the folder or is too large is a problem of the builder that names the file.
#[test]
fn folders_are_checked() {
    let problem = |skills: SkillFolder| {
        let built = Server::builder("test", "1.0.0").skills(skills).build();
        match built.expect_err("a problem").problems() {
            [Problem::Skills { path, reason }] => (path.clone(), reason.clone()),
            other => panic!("{other:?}"),
        }
    };
    for (file, content, reason) in [
        (
            "a/SKILL.md",
            "# no frontmatter".to_owned(),
            "the first line must be `---`",
        ),
        (
            "a/SKILL.md",
            skill_text("b", "x"),
            "its name is `b`, and its directory `a`",
        ),
        ("A/SKILL.md", skill_text("A", "x"), "not a name of a skill"),
        (
            "a/SKILL.md",
            skill_text("a", "\"\""),
            "1 to 1024 characters",
        ),
        (
            "a/SKILL.md",
            "---\nname: a\n---\n".to_owned(),
            "no `description`",
        ),
        (
            "a/SKILL.md",
            "---\nname: a\nname: a\n---\n".to_owned(),
            "twice",
        ),
    ] {
        let folder = tempfile::tempdir().expect("a folder");
        write(folder.path(), file, content);
        let (path, found) = problem(folder.path().into());
        assert!(
            path.ends_with(file) && found.contains(reason),
            "{path}: {found}"
        );
    }
    let (path, reason) = problem("no/such/folder".into());
    assert!(
        path == "no/such/folder" && reason.contains("cannot be read"),
        "{reason}"
    );
    let folder = folder();
    let twice = Server::builder("test", "1.0.0").skills(folder.path());
    let twice = twice.skills(folder.path()).build();
    let error = twice.expect_err("two folders").to_string();
    assert!(error.contains("one folder of skills"), "{error}");
    let (_, reason) = problem(SkillFolder::new(folder.path()).max_bytes(100));
    assert!(reason.contains("SkillFolder::max_bytes"), "{reason}");
    for number in 0..513 {
        write(folder.path(), &format!("review/{number}"), "");
    }
    let (path, reason) = problem(folder.path().into());
    assert!(
        path.ends_with("review") && reason.contains("512"),
        "{path}: {reason}"
    );
}

/// No symbolic link is followed, neither of a file nor of a directory. The folder may be one, which may lead elsewhere later.
#[cfg(unix)]
#[tokio::test]
async fn symbolic_links_are_refused() {
    use std::os::unix::fs::symlink;
    let outside = folder();
    let place = tempfile::tempdir().expect("a folder");
    let mounted = place.path().join("skills");
    let other = tempfile::tempdir().expect("a folder");
    write(other.path(), "other/SKILL.md", skill_text("other", "x"));
    symlink(outside.path(), &mounted).expect("a link");
    let server = server_of(&mounted);
    let client = Client::in_memory(&server).skills().await.expect("a client");
    assert_eq!(client.skills().await.expect("skills").skills.len(), 3);
    fs::remove_file(&mounted).expect("removed");
    symlink(other.path(), &mounted).expect("a link");
    assert_eq!(client.skills().await.expect("skills").skills.len(), 1);
    for link in ["review/link", "link"] {
        let folder = folder();
        symlink(outside.path().join("shop"), folder.path().join(link)).expect("a link");
        let built = Server::builder("test", "1.0.0")
            .skills(folder.path())
            .build();
        let error = built.expect_err("a link").to_string();
        assert!(
            error.contains(link) && error.contains("symbolic link"),
            "{error}"
        );
    }
}

/// A folder with a `SKILL.md` of its own is one skill; the attribute takes any expression.
#[tokio::test]
async fn attributes_name_a_folder() {
    struct Reviews;

    #[server(skills = FOLDER.with(Clone::clone))]
    impl Reviews {}

    thread_local! {
        static FOLDER: std::path::PathBuf = {
            let folder = std::env::temp_dir().join(format!("mcp-exact-skill-{}", std::process::id())).join("one");
            write(&folder, "SKILL.md", skill_text("one", "The only one"));
            folder
        };
    }

    let server = Reviews.into_server().expect("a server");
    let client = Client::in_memory(&server).skills().await.expect("a client");
    let listed = client.skills().await.expect("skills").skills;
    assert_eq!(listed[0].uri(), "skill://one/SKILL.md");
    fs::remove_dir_all(
        FOLDER
            .with(|folder| folder.parent().map(Path::to_owned))
            .expect("above"),
    )
    .expect("removed");
}

/// Returns a server that answers with this entry and this text, whatever they are.
fn dishonest(entry: Value, text: &'static str) -> Server {
    let list = entry.clone();
    let result = |value: Value| async move { value.to_string().parse::<JsonObject>() };
    Server::builder("test", "1.0.0")
        .extension(EXTENSION, JsonObject::new())
        .method("skills/list", move || {
            result(json!({"skills": [list.clone()]}))
        })
        .method("skills/get", move || {
            result(json!({"skill": entry.clone()}))
        })
        .template(
            "skill://{+path}",
            move || async move { Contents::text(text) },
        )
        .build()
        .expect("a server")
}

/// "hosts MUST NOT use the unverified content": the error names the skill, the file, and what was expected and found.
#[tokio::test]
async fn other_content_is_refused() {
    const TEXT: &str = "---\nname: a\ndescription: b\n---\n";
    let digest = "sha256:7c5e9ec4a7e5b1f0d6aa28cf6a6b4a9cdb7a0ff0d07a4b83ac2a09a3f1d8e5aa";
    let entry = |change: fn(&mut Value)| {
        let mut entry = json!({
            "uri": "skill://a/SKILL.md",
            "frontmatter": {"name": "a", "description": "b"},
            "resources": [{"uri": "skill://a/SKILL.md", "digest": digest, "size": TEXT.len()}],
        });
        change(&mut entry);
        entry
    };
    let read = async |entry: Value, text: &'static str| {
        let client = Client::in_memory(&dishonest(entry, text)).skills().await;
        let client = client.expect("a client");
        let skill = client.skill("skill://a/SKILL.md").await?;
        client.read_skill(&skill, "SKILL.md").await.map(drop)
    };
    let error = read(entry(|_| ()), TEXT).await.expect_err("another digest");
    let SkillError::Digest {
        skill,
        file,
        expected,
        found,
    } = &error
    else {
        panic!("{error}");
    };
    assert_eq!(
        (skill.as_str(), file.as_str()),
        ("skill://a/SKILL.md", "skill://a/SKILL.md")
    );
    assert_eq!(expected, digest);
    assert!(
        error.to_string().contains(expected) && error.to_string().contains(found),
        "{error}"
    );
    let error = read(entry(|_| ()), "other")
        .await
        .expect_err("another size");
    assert!(
        matches!(error, SkillError::Size { found: 5, .. }),
        "{error}"
    );
    let dynamic = entry(|entry| entry["resources"] = json!("dynamic"));
    let error = read(dynamic.clone(), TEXT).await.expect_err("generated");
    assert!(matches!(error, SkillError::Dynamic { .. }), "{error}");
    // "Any discrepancy MUST be treated as a verification failure", of generated skills too.
    for (text, is_right) in [
        (TEXT, true),
        ("---\nname: a\ndescription: c\n---\n", false),
        ("none", false),
    ] {
        let client = Client::in_memory(&dishonest(dynamic.clone(), text))
            .skills()
            .await;
        let client = client.expect("a client");
        let skill = client.skill("skill://a/SKILL.md").await.expect("an entry");
        let read = client.read_dynamic_skill(&skill, "SKILL.md").await;
        match read {
            Ok(file) => assert!(is_right && !file.is_verified),
            Err(error) => assert!(
                !is_right && matches!(error, SkillError::Frontmatter { .. }),
                "{error}"
            ),
        }
    }
    let none = entry(|entry| {
        entry
            .as_object_mut()
            .expect("an object")
            .remove("resources");
    });
    let client = Client::in_memory(&dishonest(none, TEXT))
        .skills()
        .await
        .expect("a client");
    let listing = client.skills().await.expect("a list");
    assert!(listing.skills.is_empty());
    assert!(
        matches!(&listing.invalid[..], [SkillError::Entry { .. }]),
        "{:?}",
        listing.invalid
    );
    let plain = Server::builder("test", "1.0.0").build().expect("a server");
    let client = Client::in_memory(&plain).skills().await.expect("a client");
    assert_eq!(
        client.skills().await.map(drop),
        Err(SkillError::NotDeclared)
    );
}
