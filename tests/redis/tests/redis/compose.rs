//! Compares `examples/three-servers/compose.yaml` with the files that it names and the programs that it starts, because
//! the tests have no container engine.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use mcp_exact_tests_redis::daemon::{RedisServer, check_balancer, version};

/// Names of the services that are server processes.
const SERVERS: [&str; 3] = ["one", "two", "three"];

/// Returns the folder of the example.
fn example() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/three-servers")
}

/// Reads a file of the example.
fn read(name: &str) -> String {
    let path = example().join(name);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Values of compose.yaml by their paths, such as `services.redis.image`. The parser supports only block mappings whose
/// values are scalars or lists in one line.
struct Compose(BTreeMap<String, String>);

impl Compose {
    /// Parses compose.yaml.
    fn read() -> Self {
        let text = read("compose.yaml");
        let (mut values, mut parents) = (BTreeMap::new(), Vec::<(usize, String)>::new());
        for line in text.lines() {
            let entry = line.trim_start();
            if entry.is_empty() || entry.starts_with('#') {
                continue;
            }
            let indentation = line.len() - entry.len();
            parents.retain(|(depth, _)| *depth < indentation);
            let (name, value) = entry.split_once(':').expect("a mapping");
            let mut path: Vec<&str> = parents.iter().map(|(_, name)| &**name).collect();
            path.push(name);
            values.insert(path.join("."), value.trim().to_owned());
            parents.push((indentation, name.to_owned()));
        }
        Self(values)
    }

    /// Returns the value at a path.
    fn value(&self, path: &str) -> &str {
        let value = self.0.get(path);
        value.unwrap_or_else(|| panic!("compose.yaml has no `{path}`"))
    }

    /// Returns the entries of a list in one line.
    fn list(&self, path: &str) -> Vec<&str> {
        let list = self.value(path).strip_prefix('[');
        let list = list.and_then(|list| list.strip_suffix(']'));
        let list = list.unwrap_or_else(|| panic!("`{path}` is not a list in one line"));
        list.split(", ")
            .map(|entry| entry.trim_matches('"'))
            .collect()
    }

    /// Returns the names of the members below a path.
    fn names(&self, path: &str) -> BTreeSet<&str> {
        let below = format!("{path}.");
        let names = self.0.keys().filter_map(|key| key.strip_prefix(&below));
        names.filter(|name| !name.contains('.')).collect()
    }

    /// Returns the port of the address at a path.
    fn port(&self, path: &str) -> &str {
        self.value(path).rsplit(':').next().expect("a port")
    }
}

/// Every address and variable of the balancer refers to a server of compose.yaml.
#[test]
fn balancer_finds_every_server() {
    let compose = Compose::read();
    let services = compose.names("services");
    assert_eq!(
        services,
        ["balancer", "one", "redis", "three", "two"].into()
    );
    for copy in ["two", "three"] {
        assert_eq!(compose.value(&format!("services.{copy}")), "*server");
    }
    assert_eq!(compose.value("services.one"), "&server");
    let haproxy = read("haproxy.cfg");
    let used: BTreeSet<&str> = haproxy
        .split("${")
        .skip(1)
        .map(|rest| rest.split('}').next().expect("a name"))
        .collect();
    let environment = "services.balancer.environment";
    assert_eq!(used, compose.names(environment), "variables of haproxy.cfg");
    let port = compose.port("services.one.environment.LISTEN");
    for server in SERVERS {
        let variable = format!("SERVER_{}", server.to_uppercase());
        let address = compose.value(&format!("{environment}.{variable}"));
        assert_eq!(address, format!("{server}:{port}"));
        let line = format!("server {server} \"${{{variable}}}\"");
        assert!(haproxy.contains(&line), "haproxy.cfg has no `{line}`");
    }
    assert!(haproxy.contains("default-server check "), "health checks");
    let published = compose.list("services.balancer.ports");
    let inside = compose.port(&format!("{environment}.LISTEN"));
    assert_eq!(published, [format!("127.0.0.1:8080:{inside}")]);
    assert_eq!(compose.list("services.balancer.depends_on"), SERVERS);
    assert_eq!(compose.list("services.one.depends_on"), ["redis"]);
    let variables: Vec<(&str, &str)> = used
        .iter()
        .map(|name| (*name, compose.value(&format!("{environment}.{name}"))))
        .collect();
    check_balancer(&example().join("haproxy.cfg"), &variables);
}

/// The files and volumes that compose.yaml names exist, and the server program reads each variable that compose.yaml
/// sets.
#[test]
fn named_files_exist() {
    let compose = Compose::read();
    let [file] = &compose.list("services.balancer.volumes")[..] else {
        panic!("the balancer has one volume");
    };
    let path = file.split(':').next().expect("a path");
    assert!(example().join(path).is_file(), "{path}");
    let volumes = compose.list("services.redis.volumes");
    assert_eq!(volumes, ["data:/data"]);
    assert!(compose.names("volumes").contains("data"));

    let root = example().join(compose.value("services.one.build.context"));
    let dockerfile = root.join(compose.value("services.one.build.dockerfile"));
    let dockerfile = std::fs::read_to_string(dockerfile).expect("a Dockerfile");
    let manifest = read("Cargo.toml");
    assert!(dockerfile.contains("--path examples/three-servers"));
    assert!(manifest.contains("name = \"three-servers\""));
    assert!(dockerfile.contains("CMD [\"three-servers\"]"));
    assert!(root.join("examples/three-servers/Cargo.lock").is_file());

    let program = read("main.rs");
    for name in compose.names("services.one.environment") {
        let read = format!("\"{name}\"");
        assert!(program.contains(&read), "the program does not read {name}");
    }
    assert_eq!(
        compose.value("services.one.environment.REDIS_URL"),
        "redis://redis/"
    );
    assert_eq!(compose.value("services.one.stop_signal"), "SIGINT");
    assert!(program.contains("signal::ctrl_c()"), "the signal to stop");
}

/// The image of Redis has the tested major version, the image of HAProxy has at least the tested version, and the
/// toolchain of the Dockerfile can compile the workspace.
#[test]
fn images_have_tested_versions() {
    let compose = Compose::read();
    let redis = compose.value("services.redis.image");
    let tested = version("redis-server");
    let major = tested.split('.').next().expect("a version");
    assert_eq!(redis, format!("redis:{major}"), "tested: {tested}");
    let image = compose.value("services.balancer.image");
    let image = image.strip_prefix("haproxy:").expect("haproxy");
    let number = |version: &str| -> Vec<u32> {
        let parts = version.split('.').take(2);
        parts.map(|part| part.parse().expect("a number")).collect()
    };
    let tested = version("haproxy");
    assert!(
        number(image) >= number(&tested),
        "{image}; tested: {tested}"
    );
    let workspace = include_str!("../../../../Cargo.toml");
    let rust = workspace
        .lines()
        .find_map(|line| line.strip_prefix("rust-version = \""));
    let rust = rust.and_then(|line| line.split('"').next());
    let dockerfile = read("Dockerfile");
    let image = dockerfile.strip_prefix("FROM rust:");
    let image = image.and_then(|line| line.split(' ').next());
    let (image, rust) = (image.expect("an image"), rust.expect("a version"));
    assert!(number(image) >= number(rust), "{image}; needed: {rust}");
}

/// Redis accepts the settings of compose.yaml: confirmed writes survive its restart, and no key is evicted.
#[test]
fn redis_accepts_its_settings() {
    let compose = Compose::read();
    let command = compose.value("services.redis.command");
    let options = command.strip_prefix("redis-server ").expect("redis-server");
    let options: Vec<&str> = options.split(' ').collect();
    let mut server = RedisServer::start_with(&options);
    let policy = server.command(&["CONFIG", "GET", "maxmemory-policy"]);
    assert!(policy.ends_with("noeviction"), "{policy}");
    assert_eq!(server.command(&["SET", "kept", "1"]), "OK");
    // `everysec` may lose a second when the machine fails, and nothing when the process does.
    server.kill();
    server.start_again();
    let kept = || server.command(&["GET", "kept"]);
    while kept().starts_with("LOADING") {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    assert_eq!(kept(), "1");
}
