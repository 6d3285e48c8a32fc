//! Skills (SEP-2640) of several servers through the gateway: one list, under the names of the servers and the access rules.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use mcp_exact::{Client, ClientError, JsonObject, Revision, Server, Skill, SkillError};
use mcp_exact_bridge::{AccessRule, Bridge, Options, Upstream};
use tempfile::TempDir;

use crate::common::{InMemory, client_of, object, patient};
use crate::own_uris::{REVISIONS, named, revision};

/// Returns a folder with these skills, each with two files.
fn folder(names: &[&str]) -> TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    for name in names {
        let skill = folder.path().join(name);
        fs::create_dir_all(skill.join("references")).expect("a directory");
        // A URI in the frontmatter is text of the author, which nothing changes.
        let text = format!("---\nname: {name}\ndescription: d\nuri: skill://x\n---\n# {name}\n");
        fs::write(skill.join("SKILL.md"), text).expect("a file");
        fs::write(skill.join("references/MORE.md"), "More.\n").expect("a file");
    }
    folder
}

/// Returns a server with the skills of a folder, in one revision.
fn server_of(folder: &Path, of_server: Revision) -> Server {
    let builder = Server::builder("skills", "1.0.0").revisions([of_server]);
    builder.skills(folder).build().expect("a server")
}

/// Creates a bridge in front of these servers.
async fn bridge_of(servers: &[(&str, &Server)], options: Options) -> Bridge {
    let all = servers.iter().map(|(name, server)| {
        let upstream: Arc<dyn Upstream> = Arc::new(InMemory::new(server));
        (*name, upstream)
    });
    Bridge::many(named(all.collect()), patient(options))
        .await
        .expect("a bridge")
}

/// Connects a client with the extension.
async fn client(bridge: &Bridge, of_client: Revision) -> Client {
    let connect = client_of(bridge, of_client).skills();
    connect.await.expect("a client")
}

/// Reads all files of all skills, and returns their URIs: each file is what its entry describes.
async fn read_all(client: &Client, skills: &[Skill]) -> Vec<String> {
    let mut uris = Vec::new();
    for skill in skills {
        assert_eq!(
            *skill,
            client.skill(skill.uri()).await.expect("the same entry")
        );
        assert_eq!(skill.frontmatter()["uri"], "skill://x");
        for file in skill.resources().expect("files") {
            let path = skill.path_of(&file.uri).expect("a path");
            client.read_skill(skill, path).await.expect(&file.uri);
            uris.push(file.uri.clone());
        }
    }
    uris
}

/// "list and read through the gateway with several servers give what the servers have", in all pairs of lifecycles: two servers
/// with the same skill keep both, and each entry is verified by what its server sends.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn skills_of_all_servers_are_one_list() {
    let [one, two] = [folder(&["refunds", "review"]), folder(&["refunds"])];
    for of_server in REVISIONS.map(revision) {
        let [one, two] = [&one, &two].map(|folder| server_of(folder.path(), of_server));
        let none = Server::builder("plain", "1.0.0")
            .revisions([of_server])
            .build()
            .expect("a server");
        let bridge = bridge_of(
            &[("a", &one), ("b", &two), ("c", &none)],
            Options::default(),
        )
        .await;
        for of_client in REVISIONS.map(revision) {
            let pair = format!("client {of_client}, server {of_server}");
            let client = client(&bridge, of_client).await;
            let declared = client.server_extension("io.modelcontextprotocol/skills");
            assert_eq!(declared.expect(&pair).text(), r#"{"directoryRead":true}"#);
            let listed = client.skills().await.expect(&pair);
            assert_eq!(listed.invalid, [], "{pair}");
            assert_eq!(
                read_all(&client, &listed.skills).await,
                [
                    "skill://a/refunds/SKILL.md",
                    "skill://a/refunds/references/MORE.md",
                    "skill://a/review/SKILL.md",
                    "skill://a/review/references/MORE.md",
                    "skill://b/refunds/SKILL.md",
                    "skill://b/refunds/references/MORE.md",
                ],
                "{pair}"
            );
            let params = object(r#"{"uri":"skill://b/refunds"}"#);
            let children = client
                .request("resources/directory/read", Some(params))
                .await;
            let children = children.expect(&pair);
            assert!(
                children
                    .text()
                    .contains(r#""skill://b/refunds/references""#),
                "{children}"
            );
            for uri in [
                "skill://b/review/SKILL.md",
                "skill://c/refunds/SKILL.md",
                "skill://d/refunds/SKILL.md",
                "skill://refunds/SKILL.md",
                "other://refunds/SKILL.md",
            ] {
                let error = client.skill(uri).await.expect_err(uri);
                assert!(
                    matches!(error, SkillError::Unknown { .. }),
                    "{pair} {uri}: {error}"
                );
            }
            client.close();
        }
    }
}

/// A hidden skill is not in the list, and a hidden file is in no entry and in no directory; neither can be got or read. At an
/// endpoint of one server the rules are the same.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rules_hide_skills_and_files() {
    let folder = folder(&["refunds", "review"]);
    for of_server in REVISIONS.map(revision) {
        let server = server_of(folder.path(), of_server);
        let mut rule = AccessRule::default();
        rule.deny = ["skill://review/**", "skill://refunds/references/MORE.md"]
            .map(str::to_owned)
            .into();
        let mut options = Options::default();
        options.rules.access = vec![rule];
        let joint = bridge_of(&[("a", &server)], options.clone()).await;
        let single = Bridge::new(InMemory::new(&server), options)
            .await
            .expect("a bridge");
        for (bridge, begin) in [(&joint, "skill://a/"), (&single, "skill://")] {
            for of_client in REVISIONS.map(revision) {
                let pair = format!("{begin}: client {of_client}, server {of_server}");
                let client = client(bridge, of_client).await;
                let skills = client.skills().await.expect(&pair).skills;
                let shown = [format!("{begin}refunds/SKILL.md")];
                assert_eq!(read_all(&client, &skills).await, shown, "{pair}");
                let error = client.skill(&format!("{begin}review/SKILL.md")).await;
                assert!(
                    matches!(error, Err(SkillError::Unknown { .. })),
                    "{pair}: {error:?}"
                );
                let read = client
                    .read(&format!("{begin}refunds/references/MORE.md"))
                    .await;
                assert!(
                    matches!(read, Err(ClientError::Server(_))),
                    "{pair}: {read:?}"
                );
                let directory = |path: &str| {
                    let params = object(&format!(r#"{{"uri":"{begin}{path}"}}"#));
                    client.request("resources/directory/read", Some(params))
                };
                let listed = directory("refunds/references").await.expect(&pair);
                assert!(!listed.text().contains("MORE.md"), "{pair}: {listed}");
                client.close();
            }
        }
    }
}

/// Without a server that has skills, the gateway does not declare the extension, and has no skill.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn gateways_without_skills_declare_none() {
    for of_server in REVISIONS.map(revision) {
        let plain = || {
            Server::builder("plain", "1.0.0")
                .revisions([of_server])
                .build()
                .expect("a server")
        };
        let bridge = bridge_of(&[("a", &plain()), ("b", &plain())], Options::default()).await;
        for of_client in REVISIONS.map(revision) {
            let client = client(&bridge, of_client).await;
            assert_eq!(
                client.skills().await.map(drop),
                Err(SkillError::NotDeclared)
            );
            client.close();
            let connect = client_of(&bridge, of_client).methods(["skills/list"]);
            let client = connect.await.expect("a client");
            let listed = client.request("skills/list", None).await.expect("a list");
            assert!(listed.text().contains(r#""skills":[]"#), "{listed}");
            client.close();
        }
    }
}

/// A gateway whose configuration may change declares the extension before a server has skills: its methods answer with what
/// the extension says about skills that are not there.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn declared_skills_can_be_asked_for() {
    for of_server in REVISIONS.map(revision) {
        let plain = Server::builder("plain", "1.0.0").revisions([of_server]);
        let plain = plain.build().expect("a server");
        let mut options = Options::default();
        options.servers_may_change = true;
        let bridge = bridge_of(&[("a", &plain), ("b", &plain)], options).await;
        for of_client in REVISIONS.map(revision) {
            let pair = format!("client {of_client}, server {of_server}");
            let client = client(&bridge, of_client).await;
            let listed = client.skills().await.expect(&pair);
            assert!(
                listed.skills.is_empty() && listed.invalid.is_empty(),
                "{pair}"
            );
            for uri in [
                "skill://a/x/SKILL.md",
                "skill://x/SKILL.md",
                "file:///x/SKILL.md",
            ] {
                let error = client.skill(uri).await.expect_err(uri);
                assert!(
                    matches!(error, SkillError::Unknown { .. }),
                    "{pair}: {error}"
                );
                let params = object(&format!(r#"{{"uri":"{uri}"}}"#));
                match client
                    .request("resources/directory/read", Some(params))
                    .await
                {
                    Err(ClientError::Server(error)) => assert_eq!(error.code(), Some(-32602)),
                    other => panic!("{pair}: {other:?}"),
                }
            }
            client.close();
        }
    }
}

/// A rule that denies a `SKILL.md` denies its skill with all files, at every place; natural patterns have the directories.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn denied_skills_are_denied_with_their_files() {
    let folder = folder(&["refunds", "review"]);
    let newest = revision(REVISIONS[1]);
    let server = server_of(folder.path(), newest);
    for (allow, deny) in [
        (&[][..], &["skill://review/SKILL.md"][..]),
        (&[], &["skill://review/**"]),
        (&["skill://refunds/**"], &[]),
    ] {
        let mut rule = AccessRule::default();
        rule.allow = allow.iter().map(ToString::to_string).collect();
        rule.deny = deny.iter().map(ToString::to_string).collect();
        let mut options = Options::default();
        options.rules.access = vec![rule];
        let joint = bridge_of(&[("a", &server)], options.clone()).await;
        let single = Bridge::new(InMemory::new(&server), options).await;
        let single = single.expect("a bridge");
        for (bridge, begin) in [(&joint, "skill://a/"), (&single, "skill://")] {
            let client = client(bridge, newest).await;
            let rules = format!("{begin}: {allow:?} {deny:?}");
            let skills = client.skills().await.expect(&rules).skills;
            assert_eq!(read_all(&client, &skills).await.len(), 2, "{rules}");
            for (directory, is_shown) in [
                ("refunds", true),
                ("refunds/references", true),
                ("review", false),
                ("review/references", false),
            ] {
                let params = object(&format!(r#"{{"uri":"{begin}{directory}"}}"#));
                let read = client.request("resources/directory/read", Some(params));
                match read.await {
                    Ok(listed) => {
                        assert!(is_shown, "{rules}: {directory}");
                        assert!(listed.text().contains("/references"), "{rules}: {listed}");
                        assert!(
                            listed.text().contains(r#""cacheScope":"private""#),
                            "{listed}"
                        );
                    }
                    Err(error) => assert!(!is_shown, "{rules}: {directory}: {error}"),
                }
            }
            for file in ["review/SKILL.md", "review/references/MORE.md"] {
                let read = client.read(&format!("{begin}{file}")).await;
                assert!(
                    matches!(read, Err(ClientError::Server(_))),
                    "{rules}: {read:?}"
                );
            }
            client.close();
        }
    }
}

/// A skill that two servers may have is in no list: a server would give the entry, and another one the files. Answers that
/// depend on rules are not shared between principals.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn skills_belong_to_one_server() {
    const ENTRIES: &str = r#"[{"uri":"docs://x/SKILL.md","frontmatter":{"name":"x","description":"d"},"resources":"dynamic"},
        {"uri":"skill://y/SKILL.md","frontmatter":{"name":"y","description":"d"},"resources":[{"uri":"docs://z"}]},
        {"uri":"skill://z/SKILL.md","frontmatter":{"name":"z","description":"d"},"resources":"dynamic"}]"#;
    let parse = |text: String| async move { text.parse::<JsonObject>() };
    let server = Server::builder("dishonest", "1.0.0")
        .extension("io.modelcontextprotocol/skills", JsonObject::new())
        .method("skills/list", move || parse(format!(r#"{{"skills":{ENTRIES}}}"#)))
        .method("skills/get", move || {
            parse(
                r#"{"skill":{"uri":"skill://z/SKILL.md","frontmatter":{"name":"z","description":"d"},"resources":"dynamic"},
                "ttlMs":1000,"cacheScope":"public"}"#
                    .to_owned(),
            )
        })
        .declare_resources()
        .build()
        .expect("a server");
    let newest = revision(REVISIONS[1]);
    for has_rule in [false, true] {
        let mut options = Options::default();
        if has_rule {
            let mut rule = AccessRule::default();
            rule.principals = vec!["somebody".to_owned()];
            rule.deny = vec!["x".to_owned()];
            options.rules.access = vec![rule];
        }
        let bridge = bridge_of(&[("a", &server)], options).await;
        let client = client(&bridge, newest).await;
        let listing = client.skills().await.expect("skills");
        let uris: Vec<&str> = listing.skills.iter().map(Skill::uri).collect();
        assert_eq!(
            (uris, listing.invalid),
            (vec!["skill://a/z/SKILL.md"], vec![])
        );
        let error = client
            .skill("docs://x/SKILL.md")
            .await
            .expect_err("no skill");
        assert!(matches!(error, SkillError::Unknown { .. }), "{error}");
        let params = object(r#"{"uri":"skill://a/z/SKILL.md"}"#);
        let got = client
            .request("skills/get", Some(params))
            .await
            .expect("an entry");
        let is_public = got.text().contains(r#""cacheScope":"public""#);
        assert_eq!(is_public, !has_rule, "{got}");
        client.close();
    }
}

/// Servers without directories, or with skills of which one is generated, are passed on as they are.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn other_servers_keep_their_settings() {
    let entry = r#"{"skills":[{"uri":"skill://daily/SKILL.md","frontmatter":{"name":"daily","description":"d"},"resources":"dynamic"}]}"#;
    let dynamic = Server::builder("dynamic", "1.0.0")
        .extension("io.modelcontextprotocol/skills", JsonObject::new())
        .method(
            "skills/list",
            move || async move { entry.parse::<JsonObject>() },
        )
        .declare_resources()
        .build()
        .expect("a server");
    let folder = folder(&["refunds"]);
    let newest = revision(REVISIONS[1]);
    let server = server_of(folder.path(), newest);
    let bridge = bridge_of(&[("a", &dynamic), ("b", &server)], Options::default()).await;
    let client = client(&bridge, newest).await;
    let declared = client.server_extension("io.modelcontextprotocol/skills");
    assert_eq!(
        declared.expect("declared").text(),
        "{}",
        "one server has no directories"
    );
    let skills = client.skills().await.expect("skills").skills;
    let uris: Vec<&str> = skills.iter().map(Skill::uri).collect();
    assert_eq!(
        uris,
        ["skill://a/daily/SKILL.md", "skill://b/refunds/SKILL.md"]
    );
    assert_eq!(skills[0].resources(), None);
}
