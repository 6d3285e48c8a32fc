//! Extensions of both peers: their declaration, and the methods and notifications that belong to them.
//!
//! A message of an extension is also listed as one of a vendor, because sessions with `initialize` know no messages of
//! extensions.

use mcp_exact_session::code::METHOD_NOT_FOUND;
use mcp_exact_session::{Extension, Extensions, JsonObject, Lifecycle, PeerError};

/// Method of the extension of skills that lists the skills of a server. The extension has no schema.
#[cfg(any(feature = "client", feature = "skills"))]
pub(crate) const SKILLS_LIST: &str = "skills/list";
/// Method of the extension of skills that returns the entry of one skill.
#[cfg(any(feature = "http-server", feature = "skills"))]
pub(crate) const SKILLS_GET: &str = "skills/get";
/// Method of the extension of skills that lists the direct children of a directory.
#[cfg(any(feature = "http-server", feature = "skills"))]
pub(crate) const READ_DIRECTORY: &str = "resources/directory/read";

/// Returns the declaration of the extension with this id, which is added if there is none.
pub(crate) fn declared<'e>(extensions: &'e mut Extensions, id: &str) -> &'e mut Extension {
    let all = &mut extensions.negotiated;
    let known = all.iter().position(|extension| extension.id == id);
    let index = known.unwrap_or_else(|| {
        all.push(Extension::new(id));
        all.len() - 1
    });
    &mut all[index]
}

/// Declares an extension, or adds what it has to the declaration of the same id, whose settings are kept unless they are
/// empty.
pub(crate) fn declare(extensions: &mut Extensions, added: Extension) {
    let known = declared(extensions, &added.id);
    if known.settings.is_empty() {
        known.settings = added.settings;
    }
    known.name_param = known.name_param.take().or(added.name_param);
    let lists = [
        (&mut known.requests, added.requests),
        (&mut known.notifications, added.notifications),
        (&mut known.client_notifications, added.client_notifications),
        (&mut known.result_types, added.result_types),
        (&mut known.filter_members, added.filter_members),
    ];
    for (list, names) in lists {
        for name in names {
            if !list.contains(&name) {
                list.push(name);
            }
        }
    }
}

/// Returns the settings of an extension that capabilities declare.
pub(crate) fn settings_in(capabilities: &JsonObject, id: &str) -> Option<JsonObject> {
    let extensions = capabilities.view().find("extensions")?.object()?;
    let settings = extensions.find(id)?.object()?;
    Some(settings.to_object())
}

/// Checks that the client has declared the extension to which a method belongs, if it belongs to one. Sessions without
/// `initialize` have checked that before.
///
/// # Errors
/// The error for the client, in the form of the lifecycle.
pub(crate) fn check_declared(
    extensions: &Extensions,
    method: &str,
    client: &JsonObject,
    lifecycle: Lifecycle,
) -> Result<(), PeerError> {
    let mut all = extensions.negotiated.iter();
    let owner = all.find(|extension| extension.requests.iter().any(|known| known == method));
    match owner {
        Some(owner) if settings_in(client, &owner.id).is_none() => {
            let id = &owner.id;
            let message =
                format!("{method} needs the extension `{id}`, which the client has not declared");
            Err(missing(id, lifecycle, message))
        }
        _ => Ok(()),
    }
}

/// Returns the error for a client that has not declared an extension; `message` is that of clients with `initialize`.
pub(crate) fn missing(id: &str, lifecycle: Lifecycle, message: String) -> PeerError {
    match lifecycle {
        Lifecycle::Discover => PeerError::missing_extension(id),
        Lifecycle::Initialize => PeerError::new(METHOD_NOT_FOUND, message),
    }
}
