//! Expansion of `#[server]`: the impl block without the macro's attributes, and calls of the public builder.
//!
//! The generated code uses only public items, like hand-written code.

use proc_macro2::TokenStream;
use quote::{ToTokens, format_ident, quote, quote_spanned};
use syn::spanned::Spanned as _;
use syn::{Error, FnArg, GenericParam, Ident, ImplItem, ItemImpl, Path, Result, parse_quote};

use crate::method::{Method, Parameter, SelfKind, macro_ident};
use crate::options::{MethodKind, ServerOptions};

/// Expands `#[server]`: returns the impl block and the generated implementation.
pub(crate) fn expand_server(options: TokenStream, item: TokenStream) -> Result<TokenStream> {
    let options = ServerOptions::parse(options)?;
    let mut block: ItemImpl = syn::parse2(item).map_err(|error| {
        Error::new(
            error.span(),
            format!("`#[server]` belongs on an impl block of a type ({error})"),
        )
    })?;
    if let Some((path, _)) = &block.trait_ {
        let message = "`#[server]` belongs on an inherent impl block; take the trait away";
        return Err(Error::new_spanned(path, message));
    }
    let krate = options
        .krate
        .clone()
        .unwrap_or_else(|| parse_quote!(::mcp_exact));
    let methods = take_methods(&mut block);
    let registrations = methods.as_ref().ok().into_iter().flatten();
    let registrations: Vec<TokenStream> = registrations
        .map(|method| expand_registration(method, &krate))
        .collect();
    // The implementation exists all the same, so that the errors of the methods are the only ones.
    let errors = methods.err().map(Error::into_compile_error);
    if errors.is_some() {
        remove_attributes(&mut block);
    }
    let generated = match &options.part_name {
        Some(part) => expand_part(part, &block, &registrations, &krate),
        None => expand_builder_impl(&options, &block, &registrations, &krate),
    };
    Ok(quote!(#errors #block #generated))
}

/// Removes the attributes of methods and parameters that only the macro knows.
fn remove_attributes(block: &mut ItemImpl) {
    for item in &mut block.items {
        let ImplItem::Fn(function) = item else {
            continue;
        };
        function
            .attrs
            .retain(|attribute| MethodKind::from_path(attribute).is_none());
        for input in &mut function.sig.inputs {
            if let FnArg::Typed(input) = input {
                input
                    .attrs
                    .retain(|attribute| attribute.path().is_ident("cfg"));
            }
        }
    }
}

/// Removes the attributes of registered methods from the impl block and parses the methods; errors of all methods are
/// reported.
fn take_methods(block: &mut ItemImpl) -> Result<Vec<Method>> {
    let generics: Vec<Ident> = block
        .generics
        .params
        .iter()
        .filter_map(|param| match param {
            GenericParam::Type(param) => Some(param.ident.clone()),
            GenericParam::Const(param) => Some(param.ident.clone()),
            GenericParam::Lifetime(_) => None,
        })
        .collect();
    let mut methods = Vec::new();
    let mut errors: Option<Error> = None;
    for item in &mut block.items {
        let ImplItem::Fn(function) = item else {
            continue;
        };
        match Method::take_from(function, &generics) {
            Ok(method) => methods.extend(method),
            Err(error) => match &mut errors {
                Some(errors) => errors.combine(error),
                None => errors = Some(error),
            },
        }
    }
    errors.map_or(Ok(methods), Err)
}

/// Returns the implementation of `IntoServer`.
fn expand_builder_impl(
    options: &ServerOptions,
    block: &ItemImpl,
    registrations: &[TokenStream],
    krate: &Path,
) -> TokenStream {
    let (generics, _, clause) = block.generics.split_for_impl();
    let ty = &block.self_ty;
    let text = |text: &Option<syn::LitStr>, variable: &str| match text {
        Some(text) => text.to_token_stream(),
        None => quote!(::core::env!(#variable)),
    };
    let name = text(&options.name, "CARGO_PKG_NAME");
    let version = text(&options.version, "CARGO_PKG_VERSION");
    let title = options.title.iter().map(|title| quote!(.title(#title)));
    let instructions = options
        .instructions
        .iter()
        .map(|text| quote!(.instructions(#text)));
    let skills = options.skills.iter().map(|folder| quote!(.skills(#folder)));
    let (builder, this) = (macro_ident("builder"), macro_ident("this"));
    let parts = options.parts.iter().map(
        |part| quote!(let #builder = Self::#part(#builder, ::core::clone::Clone::clone(&#this));),
    );
    quote! {
        impl #generics #krate::IntoServer for #ty #clause {
            fn into_builder(self) -> #krate::ServerBuilder {
                let #this = ::std::sync::Arc::new(self);
                let #builder = #krate::Server::builder(#name, #version) #(#title)* #(#instructions)* #(#skills)*;
                #(#registrations)*
                #(#parts)*
                #builder
            }
        }
    }
}

/// Returns the method that registers the methods of one part of a server.
fn expand_part(
    part: &Ident,
    block: &ItemImpl,
    registrations: &[TokenStream],
    krate: &Path,
) -> TokenStream {
    let (generics, _, clause) = block.generics.split_for_impl();
    let ty = &block.self_ty;
    let (builder, this) = (macro_ident("builder"), macro_ident("this"));
    quote! {
        impl #generics #ty #clause {
            pub(crate) fn #part(
                #builder: #krate::ServerBuilder,
                #this: ::std::sync::Arc<Self>,
            ) -> #krate::ServerBuilder {
                #(#registrations)*
                #builder
            }
        }
    }
}

/// Returns the statement that registers a method.
fn expand_registration(method: &Method, krate: &Path) -> TokenStream {
    let builder = macro_ident("builder");
    let cfgs = &method.cfg_attributes;
    let arguments = expand_arguments(method, krate);
    let argument_checks = expand_argument_checks(method, krate);
    let handler = expand_handler(method, krate);
    let (register, what) = match method.options.kind {
        MethodKind::Complete => expand_completion(method),
        MethodKind::List => {
            let template = method.options.text("template").to_token_stream();
            (format_ident!("list"), template)
        }
        _ => expand_definition(method, krate),
    };
    let check = expand_result_check(method, krate);
    let forms = &method.forms;
    quote! {
        #(#cfgs)*
        let #builder = {
            #arguments
            #argument_checks
            #check
            #builder.#register(#what, #handler)#(.form::<#forms>())*
        };
    }
}

/// Returns a compile-time check of the result type, whose errors refer to the source position of the type.
fn expand_result_check(method: &Method, krate: &Path) -> Option<TokenStream> {
    let ty = method.output.as_ref()?;
    let kind = match method.options.kind {
        MethodKind::Tool => "ToolResult",
        MethodKind::Resource => "Contents",
        MethodKind::List => "ResourcePage",
        MethodKind::Prompt => "PromptResult",
        MethodKind::Complete => "Completions",
    };
    let kind = format_ident!("{kind}");
    Some(quote_spanned!(ty.span()=> #krate::check_reply::<#ty, #krate::#kind>();))
}

/// Returns compile-time checks of the argument types, whose errors refer to the source positions of the types.
/// Arguments with serde or schemars attributes are not checked, because their types may be decodable or have a schema
/// only with the attributes.
fn expand_argument_checks(method: &Method, krate: &Path) -> TokenStream {
    let is_plain = |attrs: &[syn::Attribute]| {
        let mut attrs = attrs.iter().map(syn::Attribute::path);
        !attrs.any(|path| path.is_ident("serde") || path.is_ident("schemars"))
    };
    let types = method
        .parameters
        .iter()
        .filter_map(|parameter| match parameter {
            Parameter::Argument { ty, attrs, .. } if is_plain(attrs) => Some(ty),
            _ => None,
        });
    types
        .map(|ty| quote_spanned!(ty.span()=> #krate::check_argument::<#ty>();))
        .collect()
}

/// Returns the struct of a method's arguments; nothing for a method without arguments.
fn expand_arguments(method: &Method, krate: &Path) -> TokenStream {
    if !method.has_arguments() {
        return TokenStream::new();
    }
    let serde = quote!(#krate::serde).to_string().replace(' ', "");
    let schemars = quote!(#krate::schemars).to_string().replace(' ', "");
    let fields = method
        .parameters
        .iter()
        .filter_map(|parameter| match parameter {
            Parameter::Argument { ident, ty, attrs } => Some(quote!(#(#attrs)* #ident: #ty,)),
            Parameter::Extractor { .. } => None,
        });
    quote! {
        #[derive(#krate::serde::Deserialize, #krate::schemars::JsonSchema)]
        #[serde(crate = #serde)]
        #[schemars(crate = #schemars)]
        struct __Arguments { #(#fields)* }
    }
}

/// Returns the closure that receives the extractors and calls the method.
fn expand_handler(method: &Method, krate: &Path) -> TokenStream {
    let (this, input) = (macro_ident("this"), macro_ident("arguments"));
    let mut parameters = Vec::new();
    if method.has_arguments() {
        parameters.push(quote!(#krate::Input(#input): #krate::Input<__Arguments>));
    }
    let mut passed = Vec::new();
    for (at, parameter) in method.parameters.iter().enumerate() {
        match parameter {
            Parameter::Argument { ident, .. } => passed.push(quote!(#input.#ident)),
            Parameter::Extractor { ty, by_reference } => {
                let name = macro_ident(&format!("extracted_{at}"));
                parameters.push(quote!(#name: #ty));
                passed.push(if *by_reference {
                    quote!(&#name)
                } else {
                    quote!(#name)
                });
            }
        }
    }
    let ident = &method.ident;
    let call = match method.receiver {
        None => quote!(Self::#ident(#(#passed),*)),
        Some(SelfKind::Reference) => quote!(Self::#ident(&#this, #(#passed),*)),
        Some(SelfKind::Arc) => quote!(Self::#ident(#this, #(#passed),*)),
    };
    // Errors of the handler are reported at the name of the method.
    let body = match (method.is_async, method.options.is_set("blocking")) {
        (true, _) if method.options.is_set("local") => {
            quote_spanned!(ident.span()=> #krate::local(move || async move { #call.await }))
        }
        (true, _) => quote_spanned!(ident.span()=> async move { #call.await }),
        (false, true) => quote_spanned!(ident.span()=> #krate::blocking(move || #call)),
        (false, false) => quote_spanned!(ident.span()=> async move { #call }),
    };
    match method.receiver {
        None => quote_spanned!(ident.span()=> move |#(#parameters),*| #body),
        Some(_) => quote_spanned! { ident.span()=>
            {
                let #this = ::core::clone::Clone::clone(&#this);
                move |#(#parameters),*| {
                    let #this = ::core::clone::Clone::clone(&#this);
                    #body
                }
            }
        },
    }
}

/// Returns the name of the builder method that registers a method, and the expression of the definition that is
/// registered.
fn expand_definition(method: &Method, krate: &Path) -> (Ident, TokenStream) {
    let options = &method.options;
    let (register, made) = match options.kind {
        MethodKind::Resource => expand_resource(method, krate),
        kind => {
            let (register, ty) = match kind {
                MethodKind::Tool => ("tool", "Tool"),
                _ => ("prompt", "Prompt"),
            };
            let (register, ty) = (format_ident!("{register}"), format_ident!("{ty}"));
            let name = match options.text("name") {
                Some(name) => name.to_token_stream(),
                None => method_name(&method.ident).to_token_stream(),
            };
            (register, quote!(#krate::#ty::new(#name)))
        }
    };
    let description = match options.text("description") {
        Some(_) => None,
        None => method
            .description
            .as_ref()
            .map(|text| quote!(.description(#text))),
    };
    let texts = options
        .texts
        .iter()
        .filter(|(name, _)| name != "name" && name != "visibility");
    let texts = texts.map(|(name, text)| quote!(.#name(#text)));
    let flags = options
        .flags
        .iter()
        .filter(|(name, _)| name != "blocking" && name != "local");
    let bare = |name: &Ident| {
        ["cooperative", "task", "task_required", "schema_references"]
            .iter()
            .any(|bare| name == bare)
    };
    let flags = flags.filter_map(|(name, flag)| match (bare(name), flag.value) {
        (true, true) => Some(quote!(.#name())),
        (true, false) => None,
        (false, _) => Some(quote!(.#name(#flag))),
    });
    // The option has been parsed with the others.
    let visibility = options
        .visibility()
        .ok()
        .flatten()
        .map(|variants| quote!(.visibility([#(#krate::apps::Visibility::#variants),*])));
    let definition = quote!(#made #description #(#texts)* #visibility #(#flags)*);
    let definition = match &options.with {
        Some(with) => quote!(#krate::change_definition(#definition, #with)),
        None => definition,
    };
    (register, definition)
}

/// Returns the name of the builder method and the expression of the definition for a resource, or for a resource
/// template if the URI contains an expression.
fn expand_resource(method: &Method, krate: &Path) -> (Ident, TokenStream) {
    let uri = method.options.uri.as_ref();
    let is_template = uri.is_some_and(|uri| uri.value().contains('{'));
    let name = match method.options.text("name") {
        Some(name) => name.to_token_stream(),
        None => method_name(&method.ident).to_token_stream(),
    };
    if is_template {
        (
            format_ident!("template"),
            quote!(#krate::ResourceTemplate::new(#uri).with_name(#name)),
        )
    } else {
        (
            format_ident!("resource"),
            quote!(#krate::Resource::new(#uri).with_name(#name)),
        )
    }
}

/// Returns the name of the builder method that registers a completion, and the arguments that precede the handler.
fn expand_completion(method: &Method) -> (Ident, TokenStream) {
    let options = &method.options;
    let argument = options.text("argument");
    match (options.text("prompt"), options.text("template")) {
        (Some(prompt), _) => (format_ident!("complete_prompt"), quote!(#prompt, #argument)),
        (None, template) => (
            format_ident!("complete_template"),
            quote!(#template, #argument),
        ),
    }
}

/// Returns the name of a method without the prefix `r#`.
fn method_name(ident: &Ident) -> syn::LitStr {
    use syn::ext::IdentExt as _;
    syn::LitStr::new(&ident.unraw().to_string(), ident.span())
}
