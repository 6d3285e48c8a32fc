//! Parses `tests/interop/peers.toml`: the peers, their executables, and the revision that a pair should negotiate.

use std::fs;
use std::path::Path;

use anyhow::{Context, bail};
use serde::Deserialize;

/// First revision without the `initialize` handshake; sessions of this revision and of later ones have no handshake
/// steps.
pub(super) const FIRST_WITHOUT_HANDSHAKE: &str = "2026-07-28";

/// Last revision with the `initialize` handshake, which is the last one that HTTP+SSE supports.
pub(super) const LAST_WITH_HANDSHAKE: &str = "2025-11-25";

/// Contents of `peers.toml`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Peers {
    /// Our examples.
    pub(super) ours: Ours,
    /// Steps that clients report.
    pub(super) steps: Steps,
    /// All peers.
    #[serde(rename = "peer")]
    peers: Vec<Peer>,
}

/// Our two examples: their revisions, and the modes in which they are started.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Ours {
    /// Oldest revision of the examples.
    oldest: String,
    /// Newest revision of the examples.
    newest: String,
    /// Modes of the example clients.
    client: Vec<OurMode>,
    /// Modes of the example servers.
    server: Vec<OurMode>,
}

/// Mode in which an example is started.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct OurMode {
    /// Name of the mode in the table.
    pub(super) mode: String,
    /// Arguments that select the mode.
    pub(super) arguments: Vec<String>,
    /// Oldest revision of the mode; by default the oldest revision of the examples.
    oldest: Option<String>,
    /// Newest revision of the mode; by default the newest revision of the examples.
    newest: Option<String>,
}

/// Range of revisions that a side supports, from the oldest to the newest. Revisions are dates and sort as strings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Range {
    /// Oldest supported revision.
    pub(super) oldest: String,
    /// Newest supported revision.
    pub(super) newest: String,
}

/// Names of the steps that a client reports.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Steps {
    /// Steps of every session.
    pub(super) always: Vec<String>,
    /// Steps that only sessions with a handshake have.
    pub(super) handshake: Vec<String>,
    /// Additional steps of pairs that use the gateway.
    pub(super) gateway: Vec<String>,
}

/// One SDK in one version.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Peer {
    /// Name of the peer in the table.
    pub(super) name: String,
    /// Language of the SDK.
    pub(super) language: Language,
    /// Newest revision that the SDK supports.
    newest: String,
    /// Notes for readers of the file: deviations of this version.
    #[serde(default, rename = "notes")]
    _notes: Vec<String>,
    /// Server executables with their modes.
    pub(super) server: Vec<Mode>,
    /// Client executables with their modes.
    pub(super) client: Vec<Mode>,
    /// Client executable for untidy servers, if the peer is one of those that are compared with ours.
    pub(super) tolerance: Option<String>,
    /// Executable that serves and reads skills, if the peer has them.
    pub(super) skills: Option<String>,
}

/// Language of a peer, which decides how it is installed and started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Language {
    Python,
    Rust,
    Typescript,
}

impl Language {
    /// Returns the folder of the programs of all peers in the language.
    pub(super) fn program_folder(self) -> &'static str {
        match self {
            Self::Python => "python",
            Self::Rust => "rust",
            Self::Typescript => "node",
        }
    }
}

/// Transport from a client to a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Transport {
    Stdio,
    /// Streamable HTTP.
    Http,
    /// HTTP+SSE of 2024-11-05.
    Sse,
}

impl Transport {
    /// All transports, in the order of the table.
    pub(super) const ALL: [Self; 3] = [Self::Stdio, Self::Http, Self::Sse];

    /// Returns the name of the transport in the table and in `peers.toml`.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Stdio => "stdio",
            Self::Http => "http",
            Self::Sse => "sse",
        }
    }

    /// Returns the URL path of the endpoint, which all servers use; empty for stdio.
    pub(super) fn path(self) -> &'static str {
        match self {
            Self::Stdio => "",
            Self::Http => "/mcp",
            Self::Sse => "/sse",
        }
    }
}

/// Returns the default transports of a mode: stdio only.
fn only_stdio() -> Vec<Transport> {
    vec![Transport::Stdio]
}

/// An executable, and the mode in which it is started.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Mode {
    /// File name of the executable.
    pub(super) program: String,
    /// First argument of the executable.
    pub(super) mode: Option<String>,
    /// Oldest revision of the mode; by default the oldest revision of our examples.
    oldest: Option<String>,
    /// Newest revision of the mode; by default the newest revision of the peer.
    newest: Option<String>,
    /// Transports that the executable supports in this mode.
    #[serde(default = "only_stdio")]
    pub(super) transports: Vec<Transport>,
    /// Steps that the SDK does not support.
    #[serde(default)]
    pub(super) lacks: Vec<String>,
    /// True if the server may lose what it sends while it resumes a stream.
    #[serde(default)]
    pub(super) gap: bool,
    /// Steps that fail through the gateway because of a defect of the server.
    #[serde(default)]
    pub(super) breaks: Vec<String>,
    /// True if a server has its own tools instead of those in `README.md`.
    #[serde(default)]
    pub(super) own_tools: bool,
    /// True if a client resumes the stream of a call automatically after its connection was cut.
    #[serde(default)]
    pub(super) resumes: bool,
}

impl Peers {
    /// Reads the file in the folder of the peers.
    pub(super) fn read(folder: &Path) -> anyhow::Result<Self> {
        let file = folder.join("peers.toml");
        let text =
            fs::read_to_string(&file).with_context(|| format!("cannot read {}", file.display()))?;
        toml::from_str(&text).with_context(|| format!("cannot use {}", file.display()))
    }

    /// Returns the peers whose name contains one of the parts; without parts, all peers.
    pub(super) fn select_peers(&self, parts: &[String]) -> anyhow::Result<Vec<&Peer>> {
        let known = || {
            let names: Vec<&str> = self.peers.iter().map(|peer| peer.name.as_str()).collect();
            names.join(", ")
        };
        for part in parts {
            if !self.peers.iter().any(|peer| peer.name.contains(part)) {
                bail!("no peer has {part:?} in its name; choose from {}", known());
            }
        }
        let chosen = self.peers.iter().filter(|peer| {
            parts.is_empty() || parts.iter().any(|part| peer.name.contains(part.as_str()))
        });
        Ok(chosen.collect())
    }

    /// Returns the modes of our client that are tested with a peer; the first one is tested with every peer.
    pub(super) fn client_modes(&self, peer: &Peer) -> impl Iterator<Item = &OurMode> {
        peer.tested_modes(&self.ours.client)
    }

    /// Returns the modes of our server that are tested with a peer; the first one is tested with every peer.
    pub(super) fn server_modes(&self, peer: &Peer) -> impl Iterator<Item = &OurMode> {
        peer.tested_modes(&self.ours.server)
    }

    /// Returns the revisions that our examples support in a mode.
    pub(super) fn our_range(&self, mode: &OurMode) -> Range {
        Range {
            oldest: mode.oldest.as_ref().unwrap_or(&self.ours.oldest).clone(),
            newest: mode.newest.as_ref().unwrap_or(&self.ours.newest).clone(),
        }
    }

    /// Returns the revisions that a peer supports in a mode. By default, the oldest revision is the oldest revision of
    /// our examples.
    pub(super) fn range(&self, peer: &Peer, mode: &Mode) -> Range {
        Range {
            oldest: mode.oldest.as_ref().unwrap_or(&self.ours.oldest).clone(),
            newest: mode.newest.as_ref().unwrap_or(&peer.newest).clone(),
        }
    }
}

impl Peer {
    /// Returns the modes to test. A peer that supports only revisions with a handshake is tested only with the first
    /// mode, because this mode supports both lifecycles.
    fn tested_modes<'m>(
        &self,
        modes: &'m [OurMode],
    ) -> impl Iterator<Item = &'m OurMode> + use<'m> {
        let count = if self.newest.as_str() < FIRST_WITHOUT_HANDSHAKE {
            1
        } else {
            modes.len()
        };
        modes.iter().take(count)
    }
}

impl OurMode {
    /// Returns true if our examples support the transport in this mode: HTTP+SSE needs a handshake.
    pub(super) fn supports_transport(&self, transport: Transport) -> bool {
        let oldest = self.oldest.as_deref().unwrap_or_default();
        transport != Transport::Sse || oldest < FIRST_WITHOUT_HANDSHAKE
    }
}

impl Range {
    /// Restricts the range to the revisions of a transport: HTTP+SSE excludes revisions without a handshake.
    pub(super) fn restricted_to_transport(
        mut self,
        transport: Transport,
        newest_with_handshake: &str,
    ) -> Self {
        if transport == Transport::Sse && self.newest.as_str() >= FIRST_WITHOUT_HANDSHAKE {
            newest_with_handshake.clone_into(&mut self.newest);
        }
        self
    }

    /// Returns the newest common revision, which the two sides must negotiate.
    pub(super) fn newest_common(&self, other: &Self) -> Option<String> {
        let newest = (&self.newest).min(&other.newest);
        (newest >= (&self.oldest).max(&other.oldest)).then(|| newest.clone())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::PathBuf;

    use super::*;

    /// Returns the folder of `peers.toml` and of the executables of the peers.
    fn folder() -> PathBuf {
        crate::workspace_root().join("tests").join("interop")
    }

    /// Reads the file of the peers.
    fn peers() -> Peers {
        Peers::read(&folder()).expect("the file is right")
    }

    /// Creates a range.
    fn range(oldest: &str, newest: &str) -> Range {
        Range {
            oldest: oldest.into(),
            newest: newest.into(),
        }
    }

    /// Two sides must negotiate the newest revision that both support; without a common revision there is none.
    #[test]
    fn newest_common_revision_is_negotiated() {
        let old = range("2024-11-05", "2025-03-26");
        let both = range("2024-11-05", "2026-07-28");
        let strict = range("2026-07-28", "2026-07-28");
        assert_eq!(both.newest_common(&old).as_deref(), Some("2025-03-26"));
        assert_eq!(strict.newest_common(&both).as_deref(), Some("2026-07-28"));
        assert_eq!(strict.newest_common(&old), None);
    }

    /// For every released revision, a Python peer and a TypeScript peer support it as their newest revision.
    #[test]
    fn every_revision_has_two_peers() {
        let peers = peers();
        let found: BTreeSet<(&str, &str)> = peers
            .peers
            .iter()
            .map(|peer| (peer.newest.as_str(), peer.language.program_folder()))
            .collect();
        let revisions = fs::read_to_string(crate::workspace_root().join("schema/revisions.toml"))
            .expect("the list of revisions");
        let revisions = codegen::revisions(&revisions).expect("it is right");
        let newest_of_peers = found.iter().map(|(newest, _)| *newest).max();
        // No peer speaks a draft, nor a revision on its first day.
        let has_peers = |id: &str| newest_of_peers.is_some_and(|newest| id <= newest);
        for revision in revisions.iter().filter(|revision| !revision.is_draft()) {
            if !has_peers(&revision.id) {
                println!(
                    "left out: {}, which no peer of the table speaks yet",
                    revision.id
                );
                continue;
            }
            for language in [Language::Python, Language::Typescript] {
                assert!(
                    found.contains(&(revision.id.as_str(), language.program_folder())),
                    "{} {language:?}",
                    revision.id
                );
            }
        }
    }

    /// Peers that support revisions without a handshake are tested with every mode of our examples.
    #[test]
    fn discover_peers_test_every_mode() {
        let peers = peers();
        let met = |name: &str| {
            let chosen = peers.select_peers(&[name.into()]).expect("it is there");
            let modes = peers
                .client_modes(chosen[0])
                .chain(peers.server_modes(chosen[0]));
            modes.map(|mode| mode.mode.as_str()).collect::<Vec<_>>()
        };
        assert_eq!(met("python-1.30.0"), ["auto", "serve"]);
        assert_eq!(
            met("python-2.3.0"),
            ["auto", "2026-07-28", "legacy", "serve", "strict", "legacy"]
        );
    }

    /// The executables of all modes exist, and each step that a mode lacks is a known step.
    #[test]
    fn programs_exist_and_lack_known_steps() {
        let peers = peers();
        for peer in &peers.peers {
            let programs = folder().join(peer.language.program_folder());
            for program in peer.tolerance.iter().chain(&peer.skills) {
                assert!(programs.join(program).is_file(), "{} {program}", peer.name);
            }
            for mode in peer.server.iter().chain(&peer.client) {
                assert!(
                    programs.join(&mode.program).is_file(),
                    "{} {}",
                    peer.name,
                    mode.program
                );
                for step in &mode.lacks {
                    let steps = peers.steps.always.iter().chain(&peers.steps.handshake);
                    let steps = steps.chain(&peers.steps.gateway);
                    assert!(
                        steps.clone().any(|known| known == step),
                        "{} {step}",
                        peer.name
                    );
                }
            }
        }
    }

    #[test]
    fn unknown_name_error_lists_known_ones() {
        let peers = peers();
        let chosen = peers
            .select_peers(&["typescript-2".into()])
            .expect("it is there");
        assert_eq!(chosen.len(), 1);
        let error = peers
            .select_peers(&["perl".into()])
            .expect_err("there is none");
        assert!(
            error
                .to_string()
                .starts_with("no peer has \"perl\" in its name; choose from python-"),
            "{error}"
        );
    }
}
