//! Differences as plain, sorted data for renderers and tools.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Differences between two revisions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Diff {
    /// The revision from which the differences are counted.
    pub from: String,
    /// The revision to which they lead.
    pub to: String,
    /// Methods that differ, sorted by method.
    pub methods: Vec<MethodDiff>,
    /// Definitions that differ, sorted by name.
    pub definitions: Vec<DefinitionDiff>,
    /// Change that concerns many definitions.
    pub notes: Vec<Note>,
    /// Number of descriptions that were worded anew, added or removed.
    pub descriptions: usize,
    /// These descriptions, when they were asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rewordings: Vec<Rewording>,
}

/// Fate of a method or a definition: added, removed, renamed or changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Status {
    /// It is new.
    Added,
    /// It was removed.
    Removed,
    /// It has another name now.
    Renamed,
    /// It was anonymous before and has a name now.
    Named,
    /// It had a name before and is anonymous now.
    Unnamed,
    /// It says something else.
    Changed,
}

/// Consequence of a change for a program.
///
/// One rule decides: take all values that are right under the older revision and all that are right under the newer one,
/// members that neither knows left aside.
///
/// - An older value that is wrong under the newer revision, or loses its meaning there, makes a change *breaking to write*:
///   senders have to change their messages. The same values reach a newer reader from an older peer.
/// - A newer value that is wrong under the older revision makes it *breaking to read*: who reads with the older types,
///   closed ones above all, meets what these do not know.
///
/// | change | compatibility |
/// |---|---|
/// | optional member added | additive |
/// | required member added | breaking to write: senders have to add it, and older peers do not send it |
/// | optional member removed | breaking to write: what was said with it is no longer heard |
/// | required member removed | breaking to read and to write: older readers insist on it |
/// | member made required | breaking to write |
/// | member made optional | breaking to read |
/// | type, bounds or format wider | breaking to read |
/// | type, bounds or format narrower | breaking to write |
/// | type, constant otherwise different | breaking to read and to write |
/// | value of an enum or variant of a union added | breaking to read, unless an older one already takes its values |
/// | value of an enum or variant of a union removed | breaking to write, unless a newer one takes its values |
/// | member of a JSON Schema document no longer described | breaking to read: anything may stand there |
/// | method, or a direction of it, added | additive: peers answer "method not found", and unknown notifications are ignored |
/// | method, or a direction of it, removed | breaking to write |
/// | member added to a union of requests, notifications or results by sender | additive, for the same reason |
/// | definition added | additive |
/// | definition removed | breaking to write; neutral when nothing referred to it |
/// | name given, taken or changed | neutral: names of types are not sent |
///
/// The meaning of a type or a member can change without its shape; a schema does not show that.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Compatibility {
    /// The same values are right as before.
    Neutral,
    /// The newer revision allows more than the older one, and breaks no reader or writer.
    Additive,
    /// Breaking to read.
    BreaksReading,
    /// Breaking to write.
    BreaksWriting,
    /// Breaking to read and to write.
    BreaksBoth,
}

impl Compatibility {
    /// Returns true if it is breaking to read.
    pub fn breaks_reading(self) -> bool {
        matches!(self, Self::BreaksReading | Self::BreaksBoth)
    }

    /// Returns true if it is breaking to write.
    pub fn breaks_writing(self) -> bool {
        matches!(self, Self::BreaksWriting | Self::BreaksBoth)
    }

    /// Returns the compatibility of two changes together.
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

    /// Returns the compatibility in words, such as "breaking to read".
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

/// Sender of a method.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Directions {
    /// Clients send it to servers.
    ClientToServer,
    /// Servers send it to clients.
    ServerToClient,
    /// Both sides send it.
    BothWays,
    /// It is no message of its own: it is embedded in another one.
    Embedded,
}

impl Directions {
    /// The directions in words.
    pub fn words(self) -> &'static str {
        match self {
            Self::ClientToServer => "client → server",
            Self::ServerToClient => "server → client",
            Self::BothWays => "both ways",
            Self::Embedded => "inside other messages",
        }
    }
}

/// A method that differs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MethodDiff {
    /// The method.
    pub method: String,
    /// True if it is a request; otherwise it is a notification.
    pub request: bool,
    /// [`Status::Added`], [`Status::Removed`] or [`Status::Changed`].
    pub status: Status,
    /// Consequence of an added or removed method; of a changed one, all its changes and those of `through` together.
    pub compatibility: Compatibility,
    /// Sender of the method, in the newer revision if it is defined there.
    pub directions: Directions,
    /// Changes of the method itself. Empty if only its types have changed.
    pub changes: Vec<MethodChange>,
    /// The definitions of its message, parameters and result that changed: entries of [`Diff::definitions`].
    pub through: Vec<String>,
}

/// One change of a method.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MethodChange {
    /// The change.
    #[serde(flatten)]
    pub kind: MethodChangeKind,
    /// Its consequence.
    pub compatibility: Compatibility,
}

/// Change to a method.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum MethodChangeKind {
    /// Others send it now.
    Directions {
        /// Former sender.
        before: Directions,
        /// New sender.
        after: Directions,
    },
    /// It was a notification and is a request now, or the other way round.
    Request {
        /// True if it is a request now.
        now: bool,
    },
    /// Its parameters are required now.
    ParamsRequired,
    /// Its parameters can be left out now.
    ParamsOptional,
    /// Another type answers it.
    Result {
        /// The result before.
        before: Option<String>,
        /// The result now.
        after: Option<String>,
    },
}

/// A definition that differs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DefinitionDiff {
    /// Its name in the newer revision, or in the older one if it was removed.
    pub name: String,
    /// Fate of the definition.
    pub status: Status,
    /// The old name of a renamed definition; the old place of one that was anonymous; the new place of one that has become
    /// anonymous.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<String>,
    /// Short description of the definition, if it was added or removed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outline: Option<String>,
    /// Consequence of an added or removed definition; of any other one, all its changes together.
    pub compatibility: Compatibility,
    /// Changes inside the definition, anonymous types in it included, sorted by path.
    pub changes: Vec<Change>,
}

/// One change inside a definition.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Change {
    /// Path of the change: members joined by dots, `[]` for the items of an array, `{}` for the values of a map; empty for
    /// the definition itself.
    pub path: String,
    /// The change.
    #[serde(flatten)]
    pub kind: ChangeKind,
    /// Its consequence.
    pub compatibility: Compatibility,
    /// The other places of the same anonymous type, each the name of a definition and a path.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub also: Vec<String>,
}

/// Change inside a definition.
///
/// An object with `method` reports its changes of `jsonrpc` and `id` as [`Note::Envelope`], and whether `params` is required
/// as [`MethodChangeKind`].
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum ChangeKind {
    /// A member is new.
    MemberAdded {
        /// Its type.
        value: String,
        /// True if it is required.
        required: bool,
    },
    /// A member was removed.
    MemberRemoved {
        /// Its type.
        value: String,
        /// True if it was required.
        required: bool,
    },
    /// A member is required now.
    MemberRequired,
    /// A member can be left out now.
    MemberOptional,
    /// A value has another type. A type with another name and the same content is none.
    Retyped {
        /// The type before.
        before: String,
        /// The type now.
        after: String,
    },
    /// A constant has another value.
    Constant {
        /// The value before.
        before: String,
        /// The value now.
        after: String,
    },
    /// A number or an array has other bounds.
    Bounds {
        /// The bounds before.
        before: String,
        /// The bounds now.
        after: String,
    },
    /// A string has another format.
    Format {
        /// The format before.
        before: Option<String>,
        /// The format now.
        after: Option<String>,
    },
    /// A union has a new member.
    VariantAdded {
        /// Its type.
        variant: String,
    },
    /// A union has lost a member.
    VariantRemoved {
        /// Its type.
        variant: String,
    },
    /// An enum has a new value.
    ValueAdded {
        /// The value.
        value: String,
    },
    /// An enum has lost a value.
    ValueRemoved {
        /// The value.
        value: String,
    },
}

/// Change that concerns many definitions.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Note {
    /// Requests and notifications now contain these members of the envelope, or no longer do. Messages are as they were:
    /// the envelope belongs to each of them, whether the schema repeats it or not.
    Envelope {
        /// True if they contain them now.
        gained: bool,
        /// The members: `id`, `jsonrpc`.
        members: Vec<String>,
        /// The definitions.
        definitions: Vec<String>,
    },
    /// A name has a new meaning; its old meaning has another name.
    NameReused {
        /// The name.
        name: String,
        /// The new name of its old meaning.
        before: String,
    },
}

/// A description that was worded anew.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Rewording {
    /// The definition, as [`DefinitionDiff::name`].
    pub definition: String,
    /// The member in it, as [`Change::path`].
    pub path: String,
    /// The text before.
    pub before: Option<String>,
    /// The text now.
    pub after: Option<String>,
}

/// Counts of changes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Summary {
    /// Methods by what became of them. Methods of which only the types changed are not counted.
    pub methods: BTreeMap<Status, usize>,
    /// Definitions by what became of them.
    pub definitions: BTreeMap<Status, usize>,
    /// Number of changes of methods and definitions, by compatibility.
    pub compatibilities: BTreeMap<Compatibility, usize>,
}

impl Diff {
    /// Returns true if nothing but perhaps descriptions differs.
    pub fn is_empty(&self) -> bool {
        self.methods.is_empty() && self.definitions.is_empty() && self.notes.is_empty()
    }

    /// Counts what changed.
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
