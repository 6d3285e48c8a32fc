//! `mcp-exact show`: prints a type or a method of a revision with its documentation, and its later changes.

use std::fmt::Write as _;

use anyhow::anyhow;
use clap::Args;
use mcp_exact_model::{Definition, Ir, Method, Shape, diff, render};
use serde::Serialize;

use crate::Outcome;
use crate::names::{suggest, truncate_name};
use crate::output::{Painter, Style};
use crate::registry::{CompiledRevision, Registry, official_definitions};
use crate::revisions::COMPILED;
use crate::terminal::stdout;
use crate::text::{Text, Untrusted, text};

/// The arguments of `mcp-exact show`.
#[derive(Args)]
#[command(after_help = "\
Without a name, all methods and types of the revision are listed.

Exit code: 0 it is printed, 2 wrong usage or an unknown name.")]
pub struct Arguments {
    /// Name of a type or method, such as Tool or tools/call.
    #[arg(value_name = "TYPE|METHOD")]
    name: Option<String>,
    /// The revision; without it the newest one that has the name.
    #[arg(long, short, value_name = "R")]
    revision: Option<String>,
    /// Print JSON, for tools.
    #[arg(long)]
    json: bool,
}

/// JSON form of a shown type or method.
#[derive(Serialize)]
struct ShownItem<'a> {
    /// Revision that defines the item.
    revision: &'a str,
    /// The method, if the item is a method.
    #[serde(skip_serializing_if = "Option::is_none")]
    method: Option<&'a Method>,
    /// The definition of a type, or all definitions of a method.
    definitions: Vec<&'a Definition>,
}

/// JSON form of the list of all names of a revision.
#[derive(Serialize)]
struct Names<'a> {
    /// Identifier of the revision.
    revision: &'a str,
    /// Names of the methods.
    methods: Vec<&'a str>,
    /// Names of the definitions in the official schema.
    types: Vec<&'a str>,
}

/// Prints a type or a method; without a name, prints the names of all types and methods.
pub fn run(arguments: &Arguments) -> anyhow::Result<Outcome> {
    let wanted = match &arguments.revision {
        Some(id) => vec![Registry::new().revision(id)?.revision],
        None => COMPILED.iter().rev().collect(),
    };
    let Some(name) = &arguments.name else {
        return print_names(arguments, wanted.first().copied());
    };
    let models: Vec<Ir> = wanted
        .iter()
        .map(|revision| revision.ir())
        .collect::<Result<_, _>>()?;
    let Some(ir) = models.iter().find(|ir| is_defined(ir, name)) else {
        return Err(unknown_name_error(name, &models));
    };
    let method = ir.methods.iter().find(|method| method.method == *name);
    let definitions = match method {
        Some(method) => method_definitions(ir, method),
        None => ir.get(name).into_iter().collect(),
    };
    if arguments.json {
        let revision = &ir.revision;
        let shown = ShownItem {
            revision,
            method,
            definitions,
        };
        stdout().pretty_json(&shown)?;
        return Ok(Outcome::Valid);
    }
    let painter = Painter::stdout();
    let mut text = String::new();
    if let Some(method) = method {
        add_method(&mut text, ir, method, painter);
    }
    for definition in definitions {
        add_definition(&mut text, ir, definition, painter);
    }
    add_changes(&mut text, ir, name, painter)?;
    print_text(text)
}

/// Prints a text, which is of the schemas in this program, to standard output.
fn print_text(text: String) -> anyhow::Result<Outcome> {
    stdout().text(&Text::of_program(text))?;
    Ok(Outcome::Valid)
}

/// Returns true if a revision has a definition or a method with this name.
fn is_defined(ir: &Ir, name: &str) -> bool {
    ir.get(name).is_some() || ir.methods.iter().any(|method| method.method == name)
}

/// Creates the error for a name that no revision in `models` defines, with similar names.
fn unknown_name_error(name: &str, models: &[Ir]) -> anyhow::Error {
    let mut names: Vec<&str> = models
        .iter()
        .flat_map(|ir| {
            let methods = ir.methods.iter().map(|method| method.method.as_str());
            let types = ir
                .definitions
                .iter()
                .map(|definition| definition.name.as_str());
            methods.chain(types)
        })
        .collect();
    names.sort_unstable();
    names.dedup();
    let place = match models {
        [only] => format!("revision {}", only.revision),
        _ => "any revision".to_owned(),
    };
    let mut problem = format!("no type or method `{}` in {place}", truncate_name(name));
    suggest(&mut problem, name, names.into_iter());
    anyhow!(problem)
}

/// Prints the names of all methods and types of a revision.
fn print_names(
    arguments: &Arguments,
    revision: Option<&CompiledRevision>,
) -> anyhow::Result<Outcome> {
    let revision = revision.ok_or_else(|| anyhow!("this program was built without revisions"))?;
    let ir = &revision.model()?.ir;
    let names = Names {
        revision: &ir.revision,
        methods: ir
            .methods
            .iter()
            .map(|method| method.method.as_str())
            .collect(),
        types: official_definitions(ir)
            .map(|definition| definition.name.as_str())
            .collect(),
    };
    if arguments.json {
        stdout().pretty_json(&names)?;
        return Ok(Outcome::Valid);
    }
    let painter = Painter::stdout();
    let mut text = format!(
        "{}\n",
        painter.paint(Style::Bold, text!("Methods of {}", Untrusted(&ir.revision)))
    );
    for method in &ir.methods {
        _ = writeln!(
            text,
            "  {:<44}{}",
            method.method,
            describe_direction(method)
        );
    }
    _ = writeln!(
        text,
        "{}",
        painter.paint(Style::Bold, text!("Types of {}", Untrusted(&ir.revision)))
    );
    for name in names.types {
        _ = writeln!(text, "  {name}");
    }
    print_text(text)
}

/// Describes which sides send a method.
fn describe_direction(method: &Method) -> &'static str {
    match (method.from_client, method.from_server) {
        (true, true) => "both ways",
        (true, false) => "client → server",
        (false, true) => "server → client",
        (false, false) => "inside other messages",
    }
}

/// Returns the definitions of a method: its message, its params and its results.
fn method_definitions<'i>(ir: &'i Ir, method: &'i Method) -> Vec<&'i Definition> {
    let mut names = vec![method.definition.as_str()];
    if let Some(mcp_exact_model::Type::Ref { name, .. }) = &method.params {
        names.push(name);
    }
    names.extend(method.result.as_deref());
    names.extend(method.outcomes.iter().map(String::as_str));
    names.dedup();
    names.into_iter().filter_map(|name| ir.get(name)).collect()
}

/// Appends a summary of a method: kind, sender, params and result.
fn add_method(text: &mut String, ir: &Ir, method: &Method, painter: Painter) {
    let kind = if method.request {
        "request"
    } else {
        "notification"
    };
    let name = painter.paint(Style::Bold, Untrusted(&method.method));
    _ = writeln!(
        text,
        "{name} ({kind}, {}, revision {})",
        describe_direction(method),
        ir.revision
    );
    if let Some(params) = &method.params {
        let required = if method.params_required {
            ""
        } else {
            ", can be left out"
        };
        _ = writeln!(
            text,
            "  params: {}{required}",
            render::type_words(ir, params)
        );
    }
    if let Some(result) = &method.result {
        _ = writeln!(text, "  result: {result}");
    }
    text.push('\n');
}

/// Appends a definition with its description and its members.
fn add_definition(text: &mut String, ir: &Ir, definition: &Definition, painter: Painter) {
    let name = painter.paint(Style::Bold, Untrusted(&definition.name));
    _ = writeln!(text, "{name} (revision {})", ir.revision);
    add_description(text, definition.description.as_deref(), "  ");
    match &definition.shape {
        Shape::Struct(members) | Shape::Document(members) => {
            for member in members {
                let optional = if member.required { "" } else { "?" };
                let value = render::member_words(ir, &member.value);
                let name = painter.paint(Style::Green, Untrusted(&member.name));
                _ = writeln!(text, "  {name}{optional}: {value}");
                add_description(text, member.description.as_deref(), "      ");
            }
        }
        _ => _ = writeln!(text, "  {}", render::outline_words(ir, definition)),
    }
    text.push('\n');
}

/// Appends a description; each line is indented by `indent`.
fn add_description(text: &mut String, description: Option<&str>, indent: &str) {
    for line in description.unwrap_or_default().lines() {
        _ = writeln!(text, "{}", format!("{indent}{line}").trim_end());
    }
}

/// Appends the changes of a type or method in each later revision.
fn add_changes(text: &mut String, ir: &Ir, name: &str, painter: Painter) -> anyhow::Result<()> {
    let newer = COMPILED
        .iter()
        .skip_while(|revision| revision.id() != ir.revision);
    let newer: Vec<Ir> = newer.map(CompiledRevision::ir).collect::<Result<_, _>>()?;
    let heading = painter.paint(Style::Bold, "Changes since");
    if newer.len() < 2 {
        return Ok(());
    }
    _ = writeln!(text, "{heading}");
    for pair in newer.windows(2) {
        let lines = render::changes_of(&diff(&pair[0], &pair[1]), name);
        let id = &pair[1].revision;
        match lines.as_slice() {
            [] => _ = writeln!(text, "  {id}: none"),
            lines => {
                _ = writeln!(text, "  {id}:");
                for line in lines {
                    _ = writeln!(text, "    {line}");
                }
            }
        }
    }
    Ok(())
}
