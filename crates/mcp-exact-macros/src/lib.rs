//! Attribute macros of `mcp-exact`: servers from impl blocks.
//!
//! [`macro@server`] on an impl block gives it `mcp_exact::IntoServer`, whose builder registers every method with `#[tool]`,
//! `#[resource]`, `#[prompt]` or `#[complete]`. The expansion calls the public builder and nothing else.
//!
//! This crate is used through `mcp-exact`, which has documentation and examples.

mod expand;
mod method;
mod options;

use proc_macro::TokenStream;
use quote::quote;

/// Makes a server of an impl block.
///
/// Options: `name`, `version` (those of the package without them), `title`, `instructions`, `parts(a, b)` for further impl
/// blocks with `#[server(part = a)]`, and `crate = path` where `mcp-exact` has another name.
///
/// A method is registered by one of these attributes:
///
/// - `#[tool]` with `name`, `title`, `description`, `read_only`, `destructive`, `idempotent`, `open_world`, `scope`,
///   `version`, `cooperative`, `task`, `task_required`, `blocking` and
///   `local`;
/// - `#[resource("uri or template")]` with `name`, `title`, `description`, `mime_type`, `scope`, `blocking` and `local`;
/// - `#[prompt]` with `name`, `title`, `description`, `scope`, `blocking` and `local`;
/// - `#[complete(prompt = "name", argument = "name")]` or `#[complete(template = "template", argument = "name")]`.
///
/// The name of the method is the default name, its documentation the default description. Parameters of the types `Cx`,
/// `State<_>`, `Input<_>`, `Principal`, `Access`, `Headers`, `Meta`, `Uri`, `Revision`, `Call`, `Partial` and `JsonObject` are
/// extractors, as are those with `#[extract]`; `Cx`, `Principal` and `Access` may be taken by reference. All others are the arguments,
/// as are types of the program with one of these names that are marked `#[argument]`: their documentation becomes the
/// description, `#[serde(…)]` and `#[schemars(…)]` apply to them.
///
/// Methods take `&self`, `self: Arc<Self>` or no receiver, are `async` or not, and keep their `#[cfg]`. `blocking` runs a
/// method that is not `async` on the threads for blocking work, `local` an `async` one whose future is not `Send` on a thread
/// of its own (feature `local` of `mcp-exact`).
#[proc_macro_attribute]
pub fn server(options: TokenStream, item: TokenStream) -> TokenStream {
    let expanded = expand::server(options.into(), item.into());
    expanded
        .unwrap_or_else(|error| error.into_compile_error())
        .into()
}

macro_rules! inner {
    ($($name:ident)*) => {
        $(
            /// Marks a method of an impl block with [`macro@server`]; an error anywhere else.
            #[proc_macro_attribute]
            pub fn $name(_: TokenStream, item: TokenStream) -> TokenStream {
                let words = concat!(
                    "`#[", stringify!($name), "]` belongs to a method of an impl block with `#[server]`; ",
                    "put `#[server]` on the impl block"
                );
                let item = proc_macro2::TokenStream::from(item);
                quote!(::core::compile_error!(#words); #item).into()
            }
        )*
    };
}

inner!(tool resource prompt complete);
