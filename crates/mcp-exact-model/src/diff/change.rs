//! Differences as plain, sorted data for renderers and tools.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Differences between two revisions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Diff {
    /// Identifier of the revision that is compared with `to`, usually the older one.
    pub from: String,
    /// Identifier of the revision that `from` is compared with, usually the newer one.
    pub to: String,
    /// Methods that differ, sorted by method.
    pub methods: Vec<MethodDiff>,
    /// Definitions that differ, sorted by name.
    pub definitions: Vec<DefinitionDiff>,
    /// Changes that concern many definitions.
    pub notes: Vec<Note>,
    /// Number of descriptions that were reworded, added or removed.
    pub descriptions: usize,
    /// The changed descriptions; empty unless [`diff_with_descriptions`](crate::diff_with_descriptions) has listed
    /// them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rewordings: Vec<Rewording>,
}

/// How a method or a definition differs between two revisions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Status {
    /// The item exists only in the newer revision.
    Added,
    /// The item exists only in the older revision.
    Removed,
    /// The item has another name in the newer revision.
    Renamed,
    /// The definition is anonymous in the older revision and has a name in the newer one.
    Named,
    /// The definition has a name in the older revision and is anonymous in the newer one.
    Unnamed,
    /// The contents of the item differ.
    Changed,
}

/// Consequence of a change for applications.
///
/// One rule determines the consequence. The rule compares the values that are valid in the older revision with the
/// values that are valid in the newer one, ignoring members that neither revision defines.
///
/// - If an older value is invalid in the newer revision, or loses its meaning there, the change is *breaking to write*:
///   senders have to change their messages. A newer reader receives such values from older peers.
/// - If a newer value is invalid in the older revision, the change is *breaking to read*: readers with the older types,
///   especially closed ones, receive values that these types do not support.
///
/// | change | compatibility |
/// |---|---|
/// | optional member added | additive |
/// | required member added | breaking to write: senders have to add it, and older peers do not send it |
/// | optional member removed | breaking to write: receivers ignore the value |
/// | required member removed | breaking to read and to write: older readers require it |
/// | member made required | breaking to write |
/// | member made optional | breaking to read |
/// | type, bounds or format wider | breaking to read |
/// | type, bounds or format narrower | breaking to write |
/// | type, constant otherwise different | breaking to read and to write |
/// | value of an enum or variant of a union added | breaking to read, unless an older one already takes its values |
/// | value of an enum or variant of a union removed | breaking to write, unless a newer one takes its values |
/// | member of a JSON Schema document no longer described | breaking to read: the member may have any value |
/// | method, or a direction of it, added | additive: peers answer "method not found", and unknown notifications are ignored |
/// | method, or a direction of it, removed | breaking to write |
/// | member added to a union of requests, notifications or results by sender | additive, for the same reason |
/// | definition added | additive |
/// | definition removed | breaking to write; neutral when nothing refers to it |
/// | name added, removed or changed | neutral: names of types are not sent |
///
/// The meaning of a type or a member can change without a change of its schema; the comparison does not detect that.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Compatibility {
    /// The same values are valid in both revisions.
    Neutral,
    /// The newer revision allows more than the older one, without breaking a reader or writer.
    Additive,
    /// The change is breaking to read.
    BreaksReading,
    /// The change is breaking to write.
    BreaksWriting,
    /// The change is breaking to read and to write.
    BreaksBoth,
}

impl Compatibility {
    /// Returns true if the change is breaking to read.
    pub fn breaks_reading(self) -> bool {
        matches!(self, Self::BreaksReading | Self::BreaksBoth)
    }

    /// Returns true if the change is breaking to write.
    pub fn breaks_writing(self) -> bool {
        matches!(self, Self::BreaksWriting | Self::BreaksBoth)
    }

    /// Returns the combined compatibility of two changes.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        let reading = self.breaks_reading() || other.breaks_reading();
        let writing = self.breaks_writing() || other.breaks_writing();
        match (reading, writing) {
            (true, true) => Self::BreaksBoth,
            (true, false) => Self::BreaksReading,
            (false, true) => Self::BreaksWriting,
            (false, false) => self.max(other),
        }
    }

    /// Returns the compatibility as a phrase, such as "breaking to read".
    pub fn words(self) -> &'static str {
        match self {
            Self::Neutral => "neutral",
            Self::Additive => "additive",
            Self::BreaksReading => "breaking to read",
            Self::BreaksWriting => "breaking to write",
            Self::BreaksBoth => "breaking to read and write",
        }
    }
}

/// Direction in which a method is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Directions {
    /// Clients send the method to servers.
    ClientToServer,
    /// Servers send the method to clients.
    ServerToClient,
    /// Clients and servers send the method.
    BothWays,
    /// The method is embedded in another message and not sent as a separate message.
    Embedded,
}

impl Directions {
    /// Returns the direction as a phrase.
    pub fn words(self) -> &'static str {
        match self {
            Self::ClientToServer => "client → server",
            Self::ServerToClient => "server → client",
            Self::BothWays => "both ways",
            Self::Embedded => "inside other messages",
        }
    }
}

/// A method that differs between two revisions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MethodDiff {
    /// Name of the method.
    pub method: String,
    /// True for a request, false for a notification.
    pub request: bool,
    /// [`Status::Added`], [`Status::Removed`] or [`Status::Changed`].
    pub status: Status,
    /// Consequence of an added or removed method; for a changed method, the combined consequence of its changes and of
    /// the definitions in `through`.
    pub compatibility: Compatibility,
    /// Direction in the newer revision, or in the older one if the method was removed.
    pub directions: Directions,
    /// Changes of the method itself; empty if only its types have changed.
    pub changes: Vec<MethodChange>,
    /// Names of the changed definitions among its message, params and result, as listed in [`Diff::definitions`].
    pub through: Vec<String>,
}

/// One change of a method.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MethodChange {
    /// Kind of the change.
    #[serde(flatten)]
    pub kind: MethodChangeKind,
    /// Consequence of the change.
    pub compatibility: Compatibility,
}

/// Kind of a change to a method.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum MethodChangeKind {
    /// The direction differs.
    Directions {
        /// Direction in the older revision.
        before: Directions,
        /// Direction in the newer revision.
        after: Directions,
    },
    /// The method changed from a notification to a request, or from a request to a notification.
    Request {
        /// True if the newer revision defines a request.
        now: bool,
    },
    /// The params are required in the newer revision.
    ParamsRequired,
    /// The params are optional in the newer revision.
    ParamsOptional,
    /// The result has another type.
    Result {
        /// Result type in the older revision.
        before: Option<String>,
        /// Result type in the newer revision.
        after: Option<String>,
    },
}

/// A definition that differs between two revisions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DefinitionDiff {
    /// Name in the newer revision, or in the older one if the definition was removed.
    pub name: String,
    /// How the definition changed.
    pub status: Status,
    /// Old name of a renamed definition, former location of a definition that was anonymous, or new location of one
    /// that is anonymous now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<String>,
    /// Short description of the definition, if it was added or removed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outline: Option<String>,
    /// Consequence of an added or removed definition; for any other definition, the combined consequence of its
    /// changes.
    pub compatibility: Compatibility,
    /// Changes inside the definition, including its anonymous types, sorted by path.
    pub changes: Vec<Change>,
}

/// One change inside a definition.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Change {
    /// Path of the change: members joined by dots, `[]` for the items of an array, `{}` for the values of a map; empty
    /// for the definition itself.
    pub path: String,
    /// Kind of the change.
    #[serde(flatten)]
    pub kind: ChangeKind,
    /// Consequence of the change.
    pub compatibility: Compatibility,
    /// Other locations of the same anonymous type, each the name of a definition and a path.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub also: Vec<String>,
}

/// Kind of a change inside a definition.
///
/// Changes of `jsonrpc` and `id` in an object with `method` are reported as [`Note::Envelope`], and a change of whether
/// `params` is required as [`MethodChangeKind`].
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum ChangeKind {
    /// A member was added.
    MemberAdded {
        /// Type of the member.
        value: String,
        /// True if it is required.
        required: bool,
    },
    /// A member was removed.
    MemberRemoved {
        /// Type of the member.
        value: String,
        /// True if it was required.
        required: bool,
    },
    /// A member is required in the newer revision and optional in the older one.
    MemberRequired,
    /// A member is optional in the newer revision and required in the older one.
    MemberOptional,
    /// A value has another type. A type with another name and the same contents is not a change.
    Retyped {
        /// Type in the older revision.
        before: String,
        /// Type in the newer revision.
        after: String,
    },
    /// A constant has another value.
    Constant {
        /// Value in the older revision.
        before: String,
        /// Value in the newer revision.
        after: String,
    },
    /// A number or an array has other bounds.
    Bounds {
        /// Bounds in the older revision.
        before: String,
        /// Bounds in the newer revision.
        after: String,
    },
    /// A string has another format.
    Format {
        /// Format in the older revision.
        before: Option<String>,
        /// Format in the newer revision.
        after: Option<String>,
    },
    /// A variant was added to a union.
    VariantAdded {
        /// Type of the variant.
        variant: String,
    },
    /// A variant was removed from a union.
    VariantRemoved {
        /// Type of the variant.
        variant: String,
    },
    /// A value was added to an enum.
    ValueAdded {
        /// The added value.
        value: String,
    },
    /// A value was removed from an enum.
    ValueRemoved {
        /// The removed value.
        value: String,
    },
}

/// A change that concerns many definitions.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Note {
    /// Definitions of requests and notifications gained or lost members of the envelope. The messages are unchanged,
    /// because the envelope is part of every message, whether the schema repeats it or not.
    Envelope {
        /// True if the newer definitions have the members.
        gained: bool,
        /// Names of the members: `id`, `jsonrpc`.
        members: Vec<String>,
        /// Names of the definitions.
        definitions: Vec<String>,
    },
    /// A name has a new meaning, and its old meaning has another name.
    NameReused {
        /// The reused name.
        name: String,
        /// The new name of its old meaning.
        before: String,
    },
}

/// A description that differs between two revisions.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Rewording {
    /// Name of the definition, equal to [`DefinitionDiff::name`].
    pub definition: String,
    /// Path of the member, in the format of [`Change::path`].
    pub path: String,
    /// Description in the older revision.
    pub before: Option<String>,
    /// Description in the newer revision.
    pub after: Option<String>,
}

/// Counts of changes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Summary {
    /// Number of methods by status, without methods of which only the types changed.
    pub methods: BTreeMap<Status, usize>,
    /// Number of definitions by status.
    pub definitions: BTreeMap<Status, usize>,
    /// Number of changes of methods and definitions, by compatibility.
    pub compatibilities: BTreeMap<Compatibility, usize>,
}

impl Diff {
    /// Returns true if the revisions are equal, apart from descriptions.
    pub fn is_empty(&self) -> bool {
        self.methods.is_empty() && self.definitions.is_empty() && self.notes.is_empty()
    }

    /// Counts the changes.
    pub fn summary(&self) -> Summary {
        let mut summary = Summary::default();
        for method in &self.methods {
            if method.status == Status::Changed && method.changes.is_empty() {
                continue;
            }
            *summary.methods.entry(method.status).or_default() += 1;
            if method.status != Status::Changed {
                *summary
                    .compatibilities
                    .entry(method.compatibility)
                    .or_default() += 1;
            }
            for change in &method.changes {
                *summary
                    .compatibilities
                    .entry(change.compatibility)
                    .or_default() += 1;
            }
        }
        for definition in &self.definitions {
            *summary.definitions.entry(definition.status).or_default() += 1;
            match definition.status {
                Status::Changed => {}
                Status::Added | Status::Removed => {
                    *summary
                        .compatibilities
                        .entry(definition.compatibility)
                        .or_default() += 1;
                }
                Status::Renamed | Status::Named | Status::Unnamed => {
                    *summary
                        .compatibilities
                        .entry(Compatibility::Neutral)
                        .or_default() += 1;
                }
            }
            for change in &definition.changes {
                *summary
                    .compatibilities
                    .entry(change.compatibility)
                    .or_default() += 1;
            }
        }
        summary
    }
}
