//! A method of the impl block: its receiver and its parameters, which are arguments or extractors.
//!
//! Parsing removes the attributes of the macro from the method, and reports methods that cannot be registered.

use proc_macro2::{Span, TokenStream};
use quote::{ToTokens as _, quote};
use syn::{
    Attribute, Error, Expr, ExprLit, FnArg, GenericArgument, Ident, ImplItemFn, Lit, Meta, Pat,
    PathArguments, Receiver, Result, ReturnType, Type, TypePath,
};

use crate::forms::forms_of;
use crate::options::{MethodKind, MethodOptions};

/// A registered method.
pub(crate) struct Method {
    /// Options of the attribute.
    /// Types of the forms that the method asks for.
    pub(crate) forms: Vec<Type>,
    pub(crate) options: MethodOptions,
    /// Name of the method.
    pub(crate) ident: Ident,
    /// Receiver; `None` for an associated function.
    pub(crate) receiver: Option<SelfKind>,
    pub(crate) parameters: Vec<Parameter>,
    pub(crate) is_async: bool,
    /// Type of the result, if it is written explicitly and can be checked separately.
    pub(crate) output: Option<Type>,
    /// Expression of the method's documentation.
    pub(crate) description: Option<TokenStream>,
    /// `#[cfg]` attributes of the method, which the registration repeats.
    pub(crate) cfg_attributes: Vec<Attribute>,
}

/// Receiver of a method.
#[derive(Clone, Copy)]
pub(crate) enum SelfKind {
    /// `&self`.
    Reference,
    /// `self: Arc<Self>`.
    Arc,
}

/// Parameter of a method.
pub(crate) enum Parameter {
    /// Field of the arguments struct, with its attributes.
    Argument {
        ident: Ident,
        ty: Box<Type>,
        attrs: Vec<Attribute>,
    },
    /// Extractor; `ty` is the type of the parameter without the reference.
    Extractor { ty: Box<Type>, by_reference: bool },
}

/// Names of the types that are extractors.
const EXTRACTORS: [&str; 14] = [
    "Access",
    "Cx",
    "State",
    "Input",
    "Principal",
    "Headers",
    "Meta",
    "Uri",
    "Revision",
    "Call",
    "Partial",
    "PageRequest",
    "JsonObject",
    "Server",
];

impl Method {
    /// Removes the macro's attribute from a method and parses the method; returns `None` for a method without such an
    /// attribute.
    pub(crate) fn take_from(item: &mut ImplItemFn, generics: &[Ident]) -> Result<Option<Self>> {
        let mut found: Option<MethodOptions> = None;
        let mut kept = Vec::new();
        for attribute in std::mem::take(&mut item.attrs) {
            match MethodKind::from_path(&attribute) {
                Some(_) if found.is_some() => {
                    let message =
                        "a method is registered once; write a second method that calls this one";
                    return Err(Error::new_spanned(attribute, message));
                }
                Some(kind) => found = Some(MethodOptions::parse(kind, &attribute)?),
                None => kept.push(attribute),
            }
        }
        item.attrs = kept;
        let Some(options) = found else {
            return Ok(None);
        };
        check_signature(item, &options)?;
        let receiver = item.sig.receiver().map(parse_receiver).transpose()?;
        let mut parameters = Vec::new();
        let mut errors: Option<Error> = None;
        for input in &mut item.sig.inputs {
            if let FnArg::Typed(input) = input {
                match parse_parameter(input, generics) {
                    Ok(parameter) => parameters.push(parameter),
                    Err(error) => match &mut errors {
                        Some(errors) => errors.combine(error),
                        None => errors = Some(error),
                    },
                }
            }
        }
        if let Some(errors) = errors {
            return Err(errors);
        }
        let method = Self {
            ident: item.sig.ident.clone(),
            receiver,
            parameters,
            is_async: item.sig.asyncness.is_some(),
            output: checkable_type(&item.sig.output),
            description: documentation(&item.attrs),
            cfg_attributes: item
                .attrs
                .iter()
                .filter(|one| one.path().is_ident("cfg"))
                .cloned()
                .collect(),
            forms: forms_of(item.block.to_token_stream(), generics),
            options,
        };
        method.check_arguments()?;
        Ok(Some(method))
    }

    /// Returns true if at least one parameter is an argument.
    pub(crate) fn has_arguments(&self) -> bool {
        self.parameters
            .iter()
            .any(|one| matches!(one, Parameter::Argument { .. }))
    }

    /// Checks that the parameters can be combined: a method with `Input` must have no separate arguments, and a
    /// completion or a list must have none at all.
    fn check_arguments(&self) -> Result<()> {
        let input = self.parameters.iter().find_map(|one| match one {
            Parameter::Extractor { ty, .. }
                if last_ident(ty).is_some_and(|last| last == "Input") =>
            {
                Some(ty)
            }
            _ => None,
        });
        let argument = self.parameters.iter().find_map(|one| match one {
            Parameter::Argument { ident, .. } => Some(ident),
            Parameter::Extractor { .. } => None,
        });
        if let (Some(input), Some(argument)) = (input, argument) {
            let message = format!(
                "`Input` has all the arguments already; make `{argument}` a field of its type, or take every argument by itself"
            );
            return Err(Error::new_spanned(input, message));
        }
        match (self.options.kind, argument) {
            (MethodKind::Complete, Some(argument)) => {
                let message = format!(
                    "a completion has no argument `{argument}`; take `Partial`, which has the value and the other arguments"
                );
                Err(Error::new(argument.span(), message))
            }
            (MethodKind::List, Some(argument)) => {
                let message = format!(
                    "a list has no argument `{argument}`; take `PageRequest`, which has the cursor and the size of the page"
                );
                Err(Error::new(argument.span(), message))
            }
            _ => Ok(()),
        }
    }
}

/// Checks that a method has no type parameters, and that `local` is set only for `async` methods and `blocking` only
/// for other methods.
fn check_signature(item: &ImplItemFn, options: &MethodOptions) -> Result<()> {
    let signature = &item.sig;
    if options.is_set("local") && signature.asyncness.is_none() {
        let message =
            "`local` is for methods that are `async`; make it `async` or take `local` away";
        return Err(Error::new(options.span, message));
    }
    if options.is_set("blocking") && signature.asyncness.is_some() {
        let message = "`blocking` is for methods that are not `async`; remove one of the two";
        return Err(Error::new_spanned(signature.asyncness, message));
    }
    let generic = signature
        .generics
        .params
        .iter()
        .find(|one| !matches!(one, syn::GenericParam::Lifetime(_)));
    match generic {
        Some(generic) => {
            let message = "a method that is registered has no type parameters; write out the types";
            Err(Error::new_spanned(generic, message))
        }
        None => Ok(()),
    }
}

/// Parses the receiver of a method.
fn parse_receiver(receiver: &Receiver) -> Result<SelfKind> {
    let text = receiver.to_token_stream().to_string().replace(' ', "");
    let message = match text.as_str() {
        "&self" => return Ok(SelfKind::Reference),
        text if text.starts_with("self:") && text.ends_with("Arc<Self>") && !text.contains('&') => {
            return Ok(SelfKind::Arc);
        }
        "&mutself" => {
            "handlers run at the same time; take `&self`, and keep what changes in a `Mutex`"
        }
        _ => "take the server as `&self` or `self: Arc<Self>`",
    };
    Err(Error::new_spanned(receiver, message))
}

/// Parses a parameter as an extractor or an argument.
fn parse_parameter(input: &mut syn::PatType, generics: &[Ident]) -> Result<Parameter> {
    let mut attrs = std::mem::take(&mut input.attrs);
    let mut is_marked = |name: &str| {
        let before = attrs.len();
        attrs.retain(|one| !one.path().is_ident(name));
        attrs.len() < before
    };
    let (extract, argument) = (is_marked("extract"), is_marked("argument"));
    if let Some(conditional) = attrs
        .iter()
        .find(|one| one.path().is_ident("cfg") || one.path().is_ident("cfg_attr"))
    {
        let message = "an argument cannot be conditional; put the attribute on the method, and write one method for each case";
        return Err(Error::new_spanned(conditional, message));
    }
    let (ty, by_reference, is_mutable) = match &*input.ty {
        Type::Reference(reference) => {
            (reference.elem.clone(), true, reference.mutability.is_some())
        }
        _ => (input.ty.clone(), false, false),
    };
    let borrowable =
        last_ident(&ty).is_some_and(|last| last == "Cx" || last == "Principal" || last == "Access");
    let is_extractor = extract || (is_extractor(&ty) && !argument);
    if is_extractor && !is_mutable && (!by_reference || borrowable || extract) {
        return Ok(Parameter::Extractor { ty, by_reference });
    }
    let Pat::Ident(name) = &*input.pat else {
        let message = "an argument needs a name; take it as `name: Type`, or mark an extractor with `#[extract]`";
        return Err(Error::new_spanned(&input.pat, message));
    };
    let ident = &name.ident;
    if let Type::Reference(_) = &*input.ty {
        let owned = match type_source(&ty).as_str() {
            inner if is_extractor && borrowable => format!("&{inner}"),
            "str" => "String".to_owned(),
            "[u8]" => "Vec<u8>".to_owned(),
            inner => inner.to_owned(),
        };
        let kind = if is_mutable {
            "mutable reference"
        } else {
            "reference"
        };
        let message = format!("argument `{ident}` cannot be a {kind}; take `{ident}: {owned}`");
        return Err(Error::new_spanned(&input.ty, message));
    }
    if let Some(generic) = mentioned_ident(&ty, generics) {
        let message = format!(
            "argument `{ident}` depends on the parameter `{generic}` of the impl block; arguments have concrete types, because their schema is advertised"
        );
        return Err(Error::new_spanned(&input.ty, message));
    }
    if mentioned_ident(&ty, &[Ident::new("Self", Span::call_site())]).is_some() {
        let message = format!("argument `{ident}` has the type `Self`; write the type out");
        return Err(Error::new_spanned(&input.ty, message));
    }
    if let Type::ImplTrait(_) = &*input.ty {
        let message = format!("argument `{ident}` has no type of its own; write a concrete type");
        return Err(Error::new_spanned(&input.ty, message));
    }
    Ok(Parameter::Argument {
        ident: ident.clone(),
        ty,
        attrs,
    })
}

/// Returns the source text of a type with the usual spaces.
fn type_source(ty: &Type) -> String {
    let text = ty.to_token_stream().to_string().replace(' ', "");
    text.replace(',', ", ")
        .replace("dyn", "dyn ")
        .replace('+', " + ")
}

/// Returns true if a type is one of the extractors of `mcp-exact`, by its name.
fn is_extractor(ty: &Type) -> bool {
    let Some(last) = last_ident(ty) else {
        return false;
    };
    if last == "Option" {
        return inner_type(ty)
            .and_then(last_ident)
            .is_some_and(|inner| inner == "Principal" || inner == "Access");
    }
    EXTRACTORS.iter().any(|known| last == known)
}

/// Returns the identifier of the last segment of a type's path.
fn last_ident(ty: &Type) -> Option<&Ident> {
    match ty {
        Type::Path(TypePath {
            path, qself: None, ..
        }) => path.segments.last().map(|last| &last.ident),
        _ => None,
    }
}

/// Returns the first type argument of a type, such as `T` of `Option<T>`.
fn inner_type(ty: &Type) -> Option<&Type> {
    let Type::Path(path) = ty else {
        return None;
    };
    let PathArguments::AngleBracketed(arguments) = &path.path.segments.last()?.arguments else {
        return None;
    };
    match arguments.args.first()? {
        GenericArgument::Type(inner) => Some(inner),
        _ => None,
    }
}

/// Returns the result type if a check can name it, that is, if it contains no reference, lifetime or `impl`.
fn checkable_type(output: &ReturnType) -> Option<Type> {
    let ReturnType::Type(_, ty) = output else {
        return None;
    };
    let text = ty.to_token_stream().to_string();
    let opaque = text.contains('&') || text.contains('\'') || text.contains("impl ");
    (!opaque).then(|| (**ty).clone())
}

/// Returns the first of `idents` that occurs in a type.
fn mentioned_ident<'g>(ty: &Type, idents: &'g [Ident]) -> Option<&'g Ident> {
    /// Returns the first of `idents` that occurs in the tokens or in their groups.
    fn visit_tokens(tokens: TokenStream, idents: &[Ident]) -> Option<&Ident> {
        tokens.into_iter().find_map(|token| match token {
            proc_macro2::TokenTree::Ident(ident) => idents.iter().find(|known| **known == ident),
            proc_macro2::TokenTree::Group(group) => visit_tokens(group.stream(), idents),
            _ => None,
        })
    }
    visit_tokens(ty.to_token_stream(), idents)
}

/// Returns the documentation of an item as an expression: a string literal, or an expression that includes the macros
/// of attributes such as `#[doc = include_str!("add.md")]`.
fn documentation(attrs: &[Attribute]) -> Option<TokenStream> {
    let values = attrs.iter().filter_map(|attribute| match &attribute.meta {
        Meta::NameValue(pair) if pair.path.is_ident("doc") => Some(&pair.value),
        _ => None,
    });
    let mut text = String::new();
    let mut parts = Vec::new();
    for value in values {
        match value {
            Expr::Lit(ExprLit {
                lit: Lit::Str(line),
                ..
            }) => {
                let line = line.value();
                text.push_str(line.strip_prefix(' ').unwrap_or(&line));
            }
            value => {
                parts.push(std::mem::take(&mut text).into_token_stream());
                parts.push(value.to_token_stream());
            }
        }
        text.push('\n');
    }
    if parts.is_empty() {
        let text = text.trim();
        return (!text.is_empty()).then(|| text.to_token_stream());
    }
    parts.push(text.into_token_stream());
    Some(quote!(::core::primitive::str::trim(
        ::core::concat!(#(#parts),*)
    )))
}

/// Returns an identifier for the expansion that cannot collide with identifiers of the application.
pub(crate) fn macro_ident(name: &str) -> Ident {
    Ident::new(name, Span::mixed_site())
}
