//! Attribute macros of `mcp-exact` that turn impl blocks into servers.
//!
//! [`macro@server`] implements `mcp_exact::IntoServer` for the type of an impl block. The builder registers every
//! method with `#[tool]`, `#[resource]`, `#[list]`, `#[prompt]` or `#[complete]`; the expansion calls only the public builder.
//!
//! Use this crate through `mcp-exact`, which contains documentation and examples.

mod expand;
mod forms;
mod method;
mod options;

use proc_macro::TokenStream;
use quote::quote;

/// Turns an impl block into a server.
///
/// The options are `name` and `version` (by default those of the package), `title`, `instructions`, `skills = "folder"` for a folder
/// whose skills are served (any expression; feature `skills`), `parts(a, b)` for additional impl blocks with
/// `#[server(part = a)]`, and `crate = path` if `mcp-exact` has another name.
///
/// One of these attributes registers a method:
///
/// - `#[tool]` with `name`, `title`, `description`, `read_only`, `destructive`, `idempotent`, `open_world`, `scope`,
///   `version`, `cooperative`, `task`, `task_required`, `schema_references`, `ui`, `visibility`, `icon`, `with`, `blocking` and
///   `local`;
/// - `#[resource("uri or template")]` with `name`, `title`, `description`, `mime_type`, `scope`, `icon`, `with`, `blocking` and
///   `local`;
/// - `#[prompt]` with `name`, `title`, `description`, `scope`, `icon`, `with`, `blocking` and `local`;
/// - `#[list(template = "template")]`, which lists the resources of a template;
/// - `#[complete(prompt = "name", argument = "name")]` or `#[complete(template = "template", argument = "name")]`.
///
/// `ui` is the URI of the page that hosts show for the results of a tool, and `visibility` who may call it: `"model"`, `"app"`, or
/// `"model, app"`, which is the default.
///
/// `icon` is the URI of an image. `with` is a function that changes the definition, for settings without an option:
/// `with = |resource| resource.priority(0.5).meta("example.com/shelf", 3)`.
///
/// The default name is that of the method, and the default description is its documentation. Parameters of the types
/// `Cx`, `State<_>`, `Input<_>`, `Principal`, `Access`, `Headers`, `Meta`, `Uri`, `Revision`, `Call`, `Partial`,
/// `PageRequest`, `Server` and `JsonObject` are extractors, as are parameters with `#[extract]`; `Cx`, `Principal`
/// and `Access` can be references. All other parameters are arguments. A parameter whose type is an application type
/// with one of these names is an argument if it has the attribute `#[argument]`. An argument of the type `Option<T>` may be
/// absent; every other argument is required, unless it has `#[serde(default)]`. The documentation of an argument
/// becomes its description; `#[serde(…)]` and `#[schemars(…)]` apply to arguments.
///
/// Methods have the receiver `&self`, `self: Arc<Self>` or none, are `async` or not, and keep their `#[cfg]`.
/// `blocking` runs a method that is not `async` on the threads for blocking work. `local` runs an `async` method whose
/// future is not `Send` on a separate thread for such futures (feature `local` of `mcp-exact`).
#[proc_macro_attribute]
pub fn server(options: TokenStream, item: TokenStream) -> TokenStream {
    let expanded = expand::expand_server(options.into(), item.into());
    expanded
        .unwrap_or_else(|error| error.into_compile_error())
        .into()
}

/// Defines attribute macros that mark the methods of an impl block with [`macro@server`].
macro_rules! expand {
    ($($name:ident)*) => {
        $(
            /// Marks a method of an impl block with [`macro@server`]; anywhere else, the attribute is a compile error.
            #[proc_macro_attribute]
            pub fn $name(_: TokenStream, item: TokenStream) -> TokenStream {
                let message = concat!(
                    "`#[", stringify!($name), "]` belongs to a method of an impl block with `#[server]`; ",
                    "put `#[server]` on the impl block"
                );
                let item = proc_macro2::TokenStream::from(item);
                quote!(::core::compile_error!(#message); #item).into()
            }
        )*
    };
}

expand!(tool resource list prompt complete);
