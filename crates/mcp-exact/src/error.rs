//! Errors of handlers and of the builder.
//!
//! A handler can return any error; the dispatcher selects the answer to the client by the type of the error. The
//! builder collects all problems of a server and reports them together.

use std::error::Error as StdError;
use std::fmt;

use crate::protocol::PeerError;

/// Result of a handler. The error is [`Error`]; `?` converts every type that implements [`std::error::Error`] into it.
pub type Result<T = (), E = Error> = std::result::Result<T, E>;

/// Boxed error that handlers return to the dispatcher.
pub(crate) type BoxError = Box<dyn StdError + Send + Sync + 'static>;

/// Any error of a handler. `?` converts every type that implements [`std::error::Error`] into this type.
///
/// The type of the contained error determines the answer that the client receives:
///
/// | error | tool | prompt or resource |
/// |---|---|---|
/// | [`PeerError`] | this protocol error | this protocol error |
/// | [`InvalidArguments`] | result with `isError` (section `server/tools`, "Error Handling") | error -32602 |
/// | [`ResourceNotFound`] | result with `isError` | error -32002, from 2026-07-28 on -32602 |
/// | [`Unsupported`](crate::InputRequestErrorKind::Unsupported) input request, 2026-07-28 | error -32021 | error -32021 |
/// | any other error | result with `isError` and the text of the error | error -32603 with the text of the error |
///
/// An error of one of these types is also recognised among the [sources](std::error::Error::source) of the contained
/// error, so that an error of the application may wrap it: `#[error("no answer")] Ask(#[from] InputRequestError)`. A
/// variant with `#[error(transparent)]` hides the error that it wraps. An `anyhow::Error` does not implement
/// [`std::error::Error`]; extract the typed error with `anyhow::Error::downcast` before the conversion.
///
/// `Error` itself does not implement [`std::error::Error`], which makes the conversion from all errors possible.
/// `{:?}`, which `fn main() -> mcp_exact::Result` prints, shows the message and the messages of the sources; `{:#?}`
/// shows the structure.
pub struct Error(BoxError);

impl Error {
    /// Creates an error from a message.
    pub fn msg(message: impl Into<String>) -> Self {
        Self(message.into().into())
    }

    /// Creates the error for invalid arguments. `pointer` is the JSON pointer of the argument, or empty if the error
    /// concerns all arguments.
    pub fn invalid_arguments(pointer: impl Into<String>, reason: impl Into<String>) -> Self {
        Self::from(InvalidArguments {
            pointer: pointer.into(),
            reason: reason.into(),
        })
    }

    /// Creates the error for a resource that does not exist. The client gets the complete URI, not a part of it.
    pub fn resource_not_found(uri: impl Into<String>) -> Self {
        Self::from(ResourceNotFound { uri: uri.into() })
    }

    /// Returns the contained error if it has the type `T`.
    pub fn downcast_ref<T: std::error::Error + 'static>(&self) -> Option<&T> {
        self.0.downcast_ref()
    }

    /// Returns the message followed by the messages of all sources, separated by `: `.
    pub fn message_with_sources(&self) -> String {
        let mut text = self.0.to_string();
        let mut source = self.0.source();
        while let Some(error) = source {
            let message = error.to_string();
            // Many errors repeat the message of their source.
            if !text.ends_with(&message) {
                text.push_str(": ");
                text.push_str(&message);
            }
            source = error.source();
        }
        text
    }

    /// Returns the first error of the type `T` among the contained error and its sources.
    pub(crate) fn find_source<T: StdError + 'static>(&self) -> Option<&T> {
        let mut error: &(dyn StdError + 'static) = &*self.0;
        loop {
            match error.downcast_ref() {
                Some(found) => return Some(found),
                None => error = error.source()?,
            }
        }
    }

    /// Creates an [`Error`] from an error that may already be boxed.
    pub(crate) fn into_boxed(error: impl Into<BoxError>) -> Self {
        Self(error.into())
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if f.alternate() {
            return fmt::Debug::fmt(&self.0, f);
        }
        write_report(f, &*self.0)
    }
}

/// Writes the message of an error, and those of its sources below it, for the person who reads what `main` returned.
pub(crate) fn write_report(f: &mut fmt::Formatter<'_>, error: &dyn StdError) -> fmt::Result {
    let mut last = error.to_string();
    f.write_str(&last)?;
    let mut source = error.source();
    let mut is_first = true;
    while let Some(error) = source {
        let message = error.to_string();
        // Many errors repeat the message of their source.
        if !last.ends_with(&message) {
            f.write_str(if is_first { "\n\nCaused by:" } else { "" })?;
            write!(f, "\n    {}", message.replace('\n', "\n    "))?;
            (last, is_first) = (message, false);
        }
        source = error.source();
    }
    Ok(())
}

/// Writes the structure of an error: its name, and its fields, of which a single one without a name is that of a tuple.
#[cfg(feature = "client")]
pub(crate) fn write_structure(
    f: &mut fmt::Formatter<'_>,
    name: &str,
    fields: &[(&str, &dyn fmt::Debug)],
) -> fmt::Result {
    match fields {
        [] => f.write_str(name),
        [("", content)] => f.debug_tuple(name).field(*content).finish(),
        fields => {
            let mut structure = f.debug_struct(name);
            for (name, value) in fields {
                structure.field(name, *value);
            }
            structure.finish()
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

impl<E: std::error::Error + Send + Sync + 'static> From<E> for Error {
    fn from(error: E) -> Self {
        Self(Box::new(error))
    }
}

impl From<Error> for BoxError {
    fn from(error: Error) -> Self {
        error.0
    }
}

impl From<Error> for Box<dyn std::error::Error> {
    fn from(error: Error) -> Self {
        error.0
    }
}

/// Error for arguments that do not match the schema of a tool or prompt.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("invalid arguments{}: {reason}", location_suffix(pointer))]
pub struct InvalidArguments {
    /// JSON pointer of the argument; empty if the error concerns all arguments.
    pub pointer: String,
    /// Mismatch between the arguments and the expected type.
    pub reason: String,
}

/// Returns the text that ends an error message with the location of an argument; empty if the error concerns all
/// arguments.
fn location_suffix(pointer: &str) -> String {
    match pointer {
        "" => String::new(),
        pointer => format!(" at {pointer:?}"),
    }
}

/// Error for a resource that does not exist (section `server/resources`, "Error Handling").
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("resource not found: {uri}")]
pub struct ResourceNotFound {
    /// URI that the client has requested.
    pub uri: String,
}

/// Error of a request that has ended or was cancelled by its client; no further messages about the request can be sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the request has ended; nothing can be sent for it any more")]
pub struct RequestEnded;

/// Returns the JSON-RPC error to reply with for an error of a handler that is not reported as a tool result.
pub(crate) fn protocol_error(error: &Error) -> PeerError {
    if let Some(error) = error.find_source::<PeerError>() {
        return error.clone();
    }
    if let Some(error) = error.find_source::<ResourceNotFound>() {
        return crate::protocol::resource_not_found(&error.uri);
    }
    if error.find_source::<InvalidArguments>().is_some() {
        return PeerError::invalid_params(error.message_with_sources());
    }
    PeerError::internal(error.message_with_sources())
}

/// Error of a server that cannot be built; [`problems`](Self::problems) lists all problems. `{:?}` shows the message,
/// as `{}` does, and `{:#?}` shows the structure.
#[derive(Clone, PartialEq, Eq)]
pub struct BuildError {
    problems: Vec<Problem>,
}

impl BuildError {
    /// Returns `Ok` if `problems` is empty, otherwise the error with all problems.
    pub(crate) fn check(problems: Vec<Problem>) -> Result<(), Self> {
        if problems.is_empty() {
            Ok(())
        } else {
            Err(Self { problems })
        }
    }

    /// Returns every problem, in the order of registration.
    pub fn problems(&self) -> &[Problem] {
        &self.problems
    }
}

impl From<Problem> for BuildError {
    fn from(problem: Problem) -> Self {
        Self {
            problems: vec![problem],
        }
    }
}

impl fmt::Display for BuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the server cannot be built")?;
        self.problems
            .iter()
            .try_for_each(|problem| write!(f, "\n- {problem}"))
    }
}

impl fmt::Debug for BuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !f.alternate() {
            return write_report(f, self);
        }
        let mut structure = f.debug_struct("BuildError");
        structure.field("problems", &self.problems).finish()
    }
}

impl StdError for BuildError {}

/// One problem that prevents a server from being built or changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Problem {
    /// Two tools, resources, templates or prompts have the same name or URI.
    #[error("{kind} {name:?} is registered twice; rename or remove one of the two")]
    Duplicate {
        /// Kind of the definition: `tool`, `resource`, `resource template` or `prompt`.
        kind: &'static str,
        /// Name or URI of the definition.
        name: String,
    },
    /// The name of a tool violates the rules for names (section `server/tools`, "Tool Names").
    #[error(
        "tool name {0:?} is not accepted by all clients; use 1 to 128 of the characters A-Z a-z 0-9 _ - ."
    )]
    ToolName(String),
    /// An input schema does not describe an object.
    #[error("the input schema of {kind} {name:?} cannot be used: {reason}")]
    InputSchema {
        /// Kind of definition: `tool`, `resource template` or `prompt`.
        kind: &'static str,
        /// Name of the definition.
        name: String,
        /// Description of the problem, with a hint how to fix it.
        reason: String,
    },
    /// An output schema is invalid.
    #[error("the output schema of tool {name:?} cannot be used: {reason}")]
    OutputSchema {
        /// Name of the tool.
        name: String,
        /// Description of the problem, with a hint how to fix it.
        reason: String,
    },
    /// A definition does not conform to the protocol.
    #[error("{kind} {name:?} cannot be advertised: {reason}")]
    Definition {
        /// Kind of the definition: `tool`, `resource`, `resource template` or `prompt`.
        kind: &'static str,
        /// Name of the definition.
        name: String,
        /// Description of the problem.
        reason: String,
    },
    /// A handler has two extractors [`Input`](crate::Input).
    #[error(
        "the handler of {kind} {name:?} takes `Input` more than once; put all arguments into one struct"
    )]
    SecondInput {
        /// Kind of definition.
        kind: &'static str,
        /// Name of the definition.
        name: String,
    },
    /// A handler extracts a state that the server does not have.
    #[error(
        "the handler of {kind} {name:?} takes `State<{state}>`, which the server does not have; call `.state(…)` with a value of this type"
    )]
    MissingState {
        /// Kind of definition.
        kind: &'static str,
        /// Name of the definition.
        name: String,
        /// Name of the type of the missing state.
        state: &'static str,
    },
    /// A URI template cannot be used.
    #[error("resource template {template:?} cannot be used: {reason}")]
    Template {
        /// Text of the template.
        template: String,
        /// Description of the problem, with a hint how to fix it.
        reason: String,
    },
    /// A host cannot show the page of a tool ([`Tool::ui`](crate::Tool::ui)).
    #[error("the page {uri:?} of tool {tool:?} cannot be shown: {reason}")]
    Page {
        /// Name of the tool.
        tool: String,
        /// URI of the page.
        uri: String,
        /// Description of the problem, with a hint how to fix it.
        reason: String,
    },
    /// A completion refers to a prompt, template or argument that is not registered.
    #[error(
        "the completion of {argument:?} belongs to {kind} {name:?}, which has no such argument; register it or correct the name"
    )]
    Completion {
        /// Kind of reference: `prompt` or `resource template`.
        kind: &'static str,
        /// Name of the prompt, or URI template.
        name: String,
        /// Name of the argument.
        argument: String,
    },
    /// A list belongs to a template that is not registered.
    #[error(
        "the list of template {template:?} has no template; register a resource with this URI template or correct the text"
    )]
    List {
        /// Text of the template.
        template: String,
    },
    /// A definition was added at run time, but the server did not declare the required capability when it was built.
    #[error(
        "the server has not declared the capability `{capability}`; register one {capability} entry at the start or call `.declare_{capability}()`"
    )]
    NotDeclared {
        /// Name of the capability, such as `tools`.
        capability: &'static str,
    },
    /// Two merged builders have a state of the same type.
    #[error(
        "both builders have a state `{state}`; give it once, or wrap the one of the merged builder into a type of its own"
    )]
    SecondState {
        /// Name of the type of the state.
        state: &'static str,
    },
    /// A merged builder has a setting that cannot be transferred to the other builder.
    #[error(
        "`{setting}` of the merged builder cannot be taken over; call it on the builder that merges"
    )]
    Merge {
        /// Builder method that has changed the setting.
        setting: &'static str,
    },
    /// A tool that requires tasks was inserted into a server without tasks.
    #[error(
        "tool {name:?} runs as a task only, and the server keeps no tasks; call `ServerBuilder::tasks` when it is built"
    )]
    NoTasks {
        /// Name of the tool.
        name: String,
    },
    /// A handler asks for a type that clients cannot display as a form.
    #[error("the form `{name}` cannot be asked: {reason}")]
    Form {
        /// Name of the type.
        name: &'static str,
        /// Description of the problem, with a hint how to fix it.
        reason: String,
    },
    /// A folder of skills cannot be served.
    #[error("{path}: {reason}")]
    Skills {
        /// File or directory that is wrong.
        path: String,
        /// Description of the problem, with a hint how to fix it.
        reason: String,
    },
    /// The configuration of the session is invalid.
    #[error("{0}")]
    Config(String),
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An error with a source.
    #[derive(Debug, thiserror::Error)]
    #[error("the note cannot be saved")]
    struct NotSaved(#[source] std::io::Error);

    /// `{:?}` prints the message and its sources, and `{:#?}` the structure.
    #[test]
    fn debug_is_for_people() {
        let error = Error::from(NotSaved(std::io::Error::other("the disk is full")));
        let text = "the note cannot be saved\n\nCaused by:\n    the disk is full";
        assert_eq!(format!("{error:?}"), text);
        assert!(
            format!("{error:#?}").starts_with("NotSaved(\n"),
            "{error:#?}"
        );
        let error = BuildError::from(Problem::Duplicate {
            kind: "tool",
            name: "add".into(),
        });
        assert_eq!(format!("{error:?}"), error.to_string());
        assert!(
            format!("{error:#?}").starts_with("BuildError {\n"),
            "{error:#?}"
        );
        let error = crate::HostError::Client {
            server: "notes".into(),
            error: crate::ClientError::Server(PeerError::internal("no disk")),
        };
        assert_eq!(
            format!("{:?}", Error::from(error.clone())),
            r#"server "notes": the server answered with an error: no disk (-32603)"#
        );
        let structure = format!("{error:#?}");
        assert!(
            structure.starts_with("Client {\n    server: \"notes\",\n    error: Server(\n"),
            "{structure}"
        );
    }
}
