//! Definitions: the descriptions of tools, resources, resource templates and prompts that a server advertises.
//!
//! Each definition is built in the form of the home revision; [`AdvertisedDefinition`] caches its conversion to every other
//! revision.

mod advertised;
mod common;
mod icon;
mod prompt;
mod resource;
mod tool;

pub(crate) use advertised::AdvertisedDefinition;
pub use icon::Icon;
pub(crate) use icon::icons_to_json;
pub use prompt::{Prompt, PromptArgument};
pub use resource::{Resource, ResourceTemplate};
pub use tool::Tool;
