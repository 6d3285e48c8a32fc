//! Options of the attributes: names, values and their errors.
//!
//! Parses the tokens of an attribute; reports an error at the first unknown option.

use proc_macro2::{Span, TokenStream};
use syn::meta::ParseNestedMeta;
use syn::parse::Parser as _;
use syn::{
    Attribute, Error, Expr, Ident, LitBool, LitStr, Meta, Path, Result, Token, parenthesized,
};

/// Options of `#[server]`.
#[derive(Default)]
pub(crate) struct ServerOptions {
    pub(crate) name: Option<LitStr>,
    pub(crate) version: Option<LitStr>,
    pub(crate) title: Option<LitStr>,
    pub(crate) instructions: Option<LitStr>,
    /// Folder whose skills the server serves.
    pub(crate) skills: Option<Expr>,
    /// Names of the parts whose impl blocks add registrations.
    pub(crate) parts: Vec<Ident>,
    /// Name of the part that this impl block defines.
    pub(crate) part_name: Option<Ident>,
    /// Path of the crate `mcp-exact`.
    pub(crate) krate: Option<Path>,
}

impl ServerOptions {
    /// Parses the tokens of the attribute.
    pub(crate) fn parse(tokens: TokenStream) -> Result<Self> {
        let mut options = Self::default();
        let parser = syn::meta::parser(|meta| {
            let Some(name) = meta.path.get_ident().map(ToString::to_string) else {
                return Err(meta.error("an option is one word"));
            };
            match name.as_str() {
                "name" => set_option(&mut options.name, &meta),
                "version" => set_option(&mut options.version, &meta),
                "title" => set_option(&mut options.title, &meta),
                "instructions" => set_option(&mut options.instructions, &meta),
                "skills" => {
                    if options.skills.is_some() {
                        return Err(given_twice(&meta));
                    }
                    options.skills = Some(meta.value()?.parse()?);
                    Ok(())
                }
                "part" => {
                    options.part_name = Some(meta.value()?.parse()?);
                    Ok(())
                }
                "parts" => {
                    let list;
                    parenthesized!(list in meta.input);
                    options.parts = list
                        .parse_terminated(<Ident as syn::parse::Parse>::parse, Token![,])?
                        .into_iter()
                        .collect();
                    Ok(())
                }
                "crate" => {
                    options.krate = Some(meta.value()?.parse()?);
                    Ok(())
                }
                _ => Err(unknown_option(
                    &meta,
                    &[
                        "name",
                        "version",
                        "title",
                        "instructions",
                        "skills",
                        "parts",
                        "part",
                        "crate",
                    ],
                )),
            }
        });
        parser.parse2(tokens)?;
        let named = options
            .name
            .as_ref()
            .or(options.version.as_ref())
            .or(options.title.as_ref());
        if let (Some(_), Some(named)) = (&options.part_name, named) {
            let message =
                "a part has no name or version of its own; put them on the main impl block";
            return Err(Error::new(named.span(), message));
        }
        if let (Some(_), Some(skills)) = (&options.part_name, &options.skills) {
            let message = "a part has no skills of its own; put them on the main impl block";
            return Err(Error::new(skills.span(), message));
        }
        Ok(options)
    }
}

use syn::ext::IdentExt as _;
use syn::spanned::Spanned as _;

/// Kind of the item that a method registers.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum MethodKind {
    Tool,
    Resource,
    List,
    Prompt,
    Complete,
}

impl MethodKind {
    /// Returns the kind that an attribute such as `#[tool]` names.
    pub(crate) fn from_path(attribute: &Attribute) -> Option<Self> {
        let last = attribute.path().segments.last()?;
        Some(match last.ident.to_string().as_str() {
            "tool" => Self::Tool,
            "resource" => Self::Resource,
            "list" => Self::List,
            "prompt" => Self::Prompt,
            "complete" => Self::Complete,
            _ => return None,
        })
    }

    /// Returns the names of the options that attributes of this kind accept.
    fn allowed_options(self) -> &'static [&'static str] {
        match self {
            Self::Tool => &[
                "name",
                "title",
                "description",
                "read_only",
                "destructive",
                "idempotent",
                "open_world",
                "scope",
                "version",
                "cooperative",
                "task",
                "task_required",
                "schema_references",
                "ui",
                "visibility",
                "icon",
                "with",
                "blocking",
                "local",
            ],
            Self::Resource => &[
                "name",
                "title",
                "description",
                "mime_type",
                "scope",
                "icon",
                "with",
                "blocking",
                "local",
            ],
            Self::Prompt => &[
                "name",
                "title",
                "description",
                "scope",
                "icon",
                "with",
                "blocking",
                "local",
            ],
            Self::List => &["template", "blocking", "local"],
            Self::Complete => &["prompt", "template", "argument", "blocking", "local"],
        }
    }
}

/// Options of the attribute of a method.
pub(crate) struct MethodOptions {
    pub(crate) kind: MethodKind,
    /// Source position of the attribute, for errors.
    pub(crate) span: Span,
    /// URI or template of a resource.
    pub(crate) uri: Option<LitStr>,
    /// Options with a string value, in order.
    pub(crate) texts: Vec<(Ident, LitStr)>,
    /// Options with a boolean value, in order.
    pub(crate) flags: Vec<(Ident, LitBool)>,
    /// Function that changes the definition.
    pub(crate) with: Option<Expr>,
}

impl MethodOptions {
    /// Parses an attribute.
    pub(crate) fn parse(kind: MethodKind, attribute: &Attribute) -> Result<Self> {
        let mut options = Self {
            kind,
            span: attribute
                .path()
                .segments
                .last()
                .map_or_else(Span::call_site, |last| last.ident.span()),
            uri: None,
            texts: Vec::new(),
            flags: Vec::new(),
            with: None,
        };
        match &attribute.meta {
            Meta::Path(_) => {}
            Meta::List(list) if kind == MethodKind::Resource => {
                options.parse_resource(list.tokens.clone())?;
            }
            Meta::List(list) => options.parse_list(list.tokens.clone())?,
            Meta::NameValue(pair) => {
                return Err(Error::new_spanned(pair, "options stand in parentheses"));
            }
        }
        options.check_options()?;
        Ok(options)
    }

    /// Parses the options of a resource, which start with the URI as a value without a name.
    fn parse_resource(&mut self, tokens: TokenStream) -> Result<()> {
        let parser = |input: syn::parse::ParseStream<'_>| {
            if input.peek(LitStr) {
                let uri = input.parse()?;
                if !input.is_empty() {
                    input.parse::<Token![,]>()?;
                }
                let rest: TokenStream = input.parse()?;
                return Ok((Some(uri), rest));
            }
            Ok((None, input.parse()?))
        };
        let (uri, rest) = parser.parse2(tokens)?;
        self.uri = uri;
        self.parse_list(rest)
    }

    /// Parses a list of options, separated by commas.
    fn parse_list(&mut self, tokens: TokenStream) -> Result<()> {
        let known = self.kind.allowed_options();
        let parser = syn::meta::parser(|meta| {
            let name = meta.path.get_ident().cloned();
            let name = name.filter(|name| known.iter().any(|known| name == known));
            let Some(name) = name else {
                return Err(unknown_option(&meta, known));
            };
            let mut there = self
                .texts
                .iter()
                .map(|(name, _)| name)
                .chain(self.flags.iter().map(|(name, _)| name));
            let is_there = there.any(|there| *there == name);
            if is_there || (name == "with" && self.with.is_some()) {
                return Err(meta.error(format!("`{name}` is given twice; remove one of the two")));
            }
            let is_flag = matches!(
                name.to_string().as_str(),
                "read_only"
                    | "destructive"
                    | "idempotent"
                    | "open_world"
                    | "cooperative"
                    | "task"
                    | "task_required"
                    | "schema_references"
                    | "blocking"
                    | "local"
            );
            if name == "with" {
                self.with = Some(meta.value()?.parse()?);
            } else if is_flag && meta.input.peek(Token![=]) {
                self.flags.push((name, meta.value()?.parse()?));
            } else if is_flag {
                let flag = LitBool::new(true, name.span());
                self.flags.push((name, flag));
            } else {
                let text = meta.value().and_then(|value| value.parse());
                let message = format!("`{name}` needs a string: `{name} = \"…\"`");
                let text = text.map_err(|_| meta.error(message))?;
                self.texts.push((name, text));
            }
            Ok(())
        });
        parser.parse2(tokens)
    }

    /// Checks that required options are set.
    fn check_options(&self) -> Result<()> {
        let message = match self.kind {
            MethodKind::Resource if self.uri.is_none() => {
                "a resource needs its URI or URI template: `#[resource(\"file://{+path}\")]`"
            }
            MethodKind::List if self.text("template").is_none() => {
                "a list needs the template whose resources it lists: `template = \"…\"`"
            }
            MethodKind::Complete if self.text("argument").is_none() => {
                "a completion needs the argument that it completes: `argument = \"…\"`"
            }
            MethodKind::Complete
                if self.text("prompt").is_some() == self.text("template").is_some() =>
            {
                "a completion belongs to a prompt or to a template: give `prompt = \"…\"` or `template = \"…\"`"
            }
            _ => return self.visibility().map(|_| ()),
        };
        Err(Error::new(self.span, message))
    }

    /// Returns the variants of `Visibility` that the option `visibility` names; `None` without the option.
    pub(crate) fn visibility(&self) -> Result<Option<Vec<Ident>>> {
        let Some(text) = self.text("visibility") else {
            return Ok(None);
        };
        let variant = |name: &str| match name.trim() {
            "model" => Ok(Ident::new("Model", text.span())),
            "app" => Ok(Ident::new("App", text.span())),
            _ => Err(Error::new(
                text.span(),
                "`visibility` is who may call the tool: \"model\", \"app\", or \"model, app\"",
            )),
        };
        let names = text.value();
        let variants: Result<_> = names.split(',').map(variant).collect();
        variants.map(Some)
    }

    /// Returns the value of a string option.
    pub(crate) fn text(&self, name: &str) -> Option<&LitStr> {
        let mut all = self.texts.iter();
        all.find(|(known, _)| known == name).map(|(_, text)| text)
    }

    /// Returns true if a boolean option is set to true.
    pub(crate) fn is_set(&self, name: &str) -> bool {
        let mut all = self.flags.iter();
        all.any(|(known, flag)| known == name && flag.value)
    }
}

/// Sets a string option of `#[server]`; a repeated option is an error.
fn set_option(place: &mut Option<LitStr>, meta: &ParseNestedMeta<'_>) -> Result<()> {
    if place.is_some() {
        return Err(given_twice(meta));
    }
    *place = Some(meta.value()?.parse()?);
    Ok(())
}

/// Returns the error for an option that was given before.
fn given_twice(meta: &ParseNestedMeta<'_>) -> Error {
    meta.error("this option is given twice; remove one of the two")
}

/// Returns the error for an unknown option, with the allowed ones.
fn unknown_option(meta: &ParseNestedMeta<'_>, known: &[&str]) -> Error {
    let name = meta
        .path
        .segments
        .iter()
        .map(|one| one.ident.unraw().to_string());
    let name = name.collect::<Vec<_>>().join("::");
    meta.error(format!(
        "unknown option `{name}`; the options are {}",
        known.join(", ")
    ))
}
