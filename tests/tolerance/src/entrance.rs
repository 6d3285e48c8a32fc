//! Entrances of the library and the program, with the cases that each of them is tested with.

use crate::zoo::{CASES, Case};

/// Part of the product that reads what a peer sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Entrance {
    /// A client in memory, in every revision.
    Client,
    /// A client over Streamable HTTP, in every revision from 2025-06-18 on.
    ClientOverHttp,
    /// A host with the server of the case and a tidy one.
    Host,
    /// The command `inspect` of the program, with a server over HTTP.
    Inspect,
    /// The command `inspect` of the program, with a server that it starts.
    InspectOverStdio,
    /// The command `call` of the program, with a server over HTTP.
    Call,
    /// The command `call` of the program, with a server that it starts.
    CallOverStdio,
    /// The gateway in front of the server of the case, for a client of another revision.
    Bridge,
    /// The gateway in front of the server of the case and a tidy one.
    BridgeOfTwo,
}

impl Entrance {
    /// Every entrance, in the order of the documentation.
    pub const ALL: [Self; 9] = [
        Self::Client,
        Self::ClientOverHttp,
        Self::Host,
        Self::Inspect,
        Self::InspectOverStdio,
        Self::Call,
        Self::CallOverStdio,
        Self::Bridge,
        Self::BridgeOfTwo,
    ];

    /// Returns the name in the documentation.
    pub fn name(self) -> &'static str {
        match self {
            Self::Client => "client in memory, every revision",
            Self::ClientOverHttp => "client over HTTP",
            Self::Host => "host with two servers",
            Self::Inspect => "`mcp-exact inspect` over HTTP",
            Self::InspectOverStdio => "`mcp-exact inspect` over stdio",
            Self::Call => "`mcp-exact call` over HTTP",
            Self::CallOverStdio => "`mcp-exact call` over stdio",
            Self::Bridge => "gateway with one server",
            Self::BridgeOfTwo => "gateway with two servers",
        }
    }

    /// Returns the cases that the entrance is tested with: those whose method it uses.
    pub fn cases(self) -> impl Iterator<Item = &'static Case> {
        CASES.iter().filter(move |case| self.uses(case.method))
    }

    fn uses(self, method: &str) -> bool {
        let is_list = method.ends_with("/list");
        match self {
            Self::Client | Self::ClientOverHttp => true,
            Self::Host => ["initialize", "tools/list", "tools/call"].contains(&method),
            Self::Inspect | Self::InspectOverStdio => is_list || method == "initialize",
            Self::Call | Self::CallOverStdio => method == "tools/call",
            // What a server says about itself does not pass through the gateway.
            Self::Bridge => method != "initialize",
            // A resource has no prefix that would name its server.
            Self::BridgeOfTwo => method != "resources/read",
        }
    }
}
