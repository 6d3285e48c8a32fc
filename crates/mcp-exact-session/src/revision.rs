//! The revisions that are compiled in, and what the generated crates say of them: methods by direction, batches, era.
//!
//! The only place of this crate that lists revisions. Knows no rule of behaviour but which era a revision belongs to, and
//! takes that from its methods.

use mcp_exact_wire::{Direction, Never, Revision, RevisionTypes};

use crate::negotiated::View;

/// How the two sides of a revision come to speak it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Lifecycle {
    /// By `initialize`, for a session.
    Initialize,
    /// By what each request says of itself.
    Discover,
}

/// The methods that one side may send.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Methods {
    requests: &'static [&'static str],
    notifications: &'static [&'static str],
}

impl Methods {
    const fn of<D: Direction>() -> Self {
        Self {
            requests: D::REQUESTS,
            notifications: D::NOTIFICATIONS,
        }
    }

    pub(crate) fn request(&self, method: &str) -> bool {
        self.requests.binary_search(&method).is_ok()
    }

    pub(crate) fn notification(&self, method: &str) -> bool {
        self.notifications.binary_search(&method).is_ok()
    }
}

/// Whether a name is in a list.
const fn has(names: &[&str], wanted: &str) -> bool {
    let mut at = 0;
    while at < names.len() {
        let (name, wanted) = (names[at].as_bytes(), wanted.as_bytes());
        let mut same = 0;
        while same < name.len() && same < wanted.len() && name[same] == wanted[same] {
            same += 1;
        }
        if same == name.len() && same == wanted.len() {
            return true;
        }
        at += 1;
    }
    false
}

/// What the machines know of a revision.
#[derive(Debug)]
pub(crate) struct Rules {
    pub(crate) revision: Revision,
    /// What a client may send.
    pub(crate) client: Methods,
    /// What a server may send.
    pub(crate) server: Methods,
    /// Whether several messages may come in one array.
    pub(crate) batches: bool,
    /// Whether an error has to have an id.
    pub(crate) error_needs_id: bool,
    /// Whether requests can become tasks: in the revision whose clients ask for tasks, and no extension does.
    pub(crate) tasks: bool,
    lifecycle: Lifecycle,
}

impl Rules {
    const fn of<R: RevisionTypes>() -> Self {
        Self {
            revision: R::REVISION,
            client: Methods::of::<R::FromClient>(),
            server: Methods::of::<R::FromServer>(),
            batches: <R::FromClient as Direction>::BATCHES,
            error_needs_id: <R::FromServer as Direction>::ERROR_NEEDS_ID,
            tasks: has(R::FromClient::REQUESTS, "tasks/get"),
            lifecycle: match has(R::FromClient::REQUESTS, "initialize") {
                true => Lifecycle::Initialize,
                false => Lifecycle::Discover,
            },
        }
    }

    /// A revision that defines `initialize` has a handshake.
    pub(crate) fn lifecycle(&self) -> Lifecycle {
        self.lifecycle
    }

    pub(crate) fn is(&self, id: &str) -> bool {
        self.revision.as_str() == id
    }
}

impl PartialEq for Rules {
    fn eq(&self, other: &Self) -> bool {
        self.revision == other.revision
    }
}

/// What stands for the types of a revision whose feature is off: there are none.
#[doc(hidden)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(dead_code, reason = "with every feature on, nothing is off")]
pub struct DisabledRevision;

impl mcp_exact_wire::private::Generated for DisabledRevision {}

impl RevisionTypes for DisabledRevision {
    const REVISION: Revision = Revision::new("");
    type FromClient = Self;
    type FromServer = Self;
    type ClientRequest = Never;
    type ClientNotification = Never;
    type ClientResult = Never;
    type ServerRequest = Never;
    type ServerNotification = Never;
    type ServerResult = Never;
}

impl Direction for DisabledRevision {
    type Request = Never;
    type Notification = Never;
    type Result = Never;
    const REQUESTS: &'static [&'static str] = &[];
    const NOTIFICATIONS: &'static [&'static str] = &[];
    const BATCHES: bool = false;
    const ENVELOPE_INSIDE: bool = false;
    const ERROR_NEEDS_ID: bool = false;
}

macro_rules! revisions {
    ($($id:literal $marker:ident $krate:ident;)*) => {
        mod markers {
            $(
                #[cfg(feature = $id)]
                pub use $krate::$marker;
                #[cfg(not(feature = $id))]
                pub type $marker = super::DisabledRevision;
            )*
        }

        /// Every revision that is compiled in, oldest first.
        pub(crate) static COMPILED: &[Rules] = &[
            $(
                #[cfg(feature = $id)]
                Rules::of::<markers::$marker>(),
            )*
        ];

        /// A value of the revision that was negotiated, one variant a revision.
        ///
        /// `V` says what it is a value of: [`ClientRequests`](crate::ClientRequests) for what a client asks, and so on.
        #[derive(Debug, Clone, PartialEq)]
        pub enum Negotiated<V: View> {
            $(
                #[doc = concat!("Revision ", $id, ".")]
                $marker(V::Of<markers::$marker>),
            )*
        }

        impl<V: View> Negotiated<V> {
            pub(crate) fn decode(
                rules: &Rules,
                from: V::Source<'_>,
            ) -> Result<Self, crate::PeerError> {
                match rules.revision.as_str() {
                    $($id => V::decode::<markers::$marker>(from).map(Self::$marker),)*
                    _ => Err(crate::PeerError::internal("the revision is not compiled in")),
                }
            }
        }
    };
}

// @generated revision list: begin
revisions! {
    "2024-11-05" V2024_11_05 mcp_2024_11_05;
    "2025-03-26" V2025_03_26 mcp_2025_03_26;
    "2025-06-18" V2025_06_18 mcp_2025_06_18;
    "2025-11-25" V2025_11_25 mcp_2025_11_25;
    "2026-07-28" V2026_07_28 mcp_2026_07_28;
}
// @generated revision list: end

/// The rules of a revision, when it is compiled in.
pub(crate) fn find(id: &str) -> Option<&'static Rules> {
    COMPILED.iter().find(|rules| rules.is(id))
}

/// Whether a revision came out no earlier than another one. Revisions are named by dates; the names of drafts are words,
/// which come after them.
pub(crate) fn at_least(rules: &Rules, floor: &str) -> bool {
    rules.revision.as_str() >= floor
}

/// Every revision that is compiled in, oldest first.
pub fn revisions() -> impl DoubleEndedIterator<Item = Revision> {
    COMPILED.iter().map(|rules| rules.revision)
}

/// The era of a revision; `None` for one that is not compiled in.
pub fn lifecycle(revision: &str) -> Option<Lifecycle> {
    find(revision).map(Rules::lifecycle)
}
