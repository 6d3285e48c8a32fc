//! Problems that `build` reports, each with a hint.

use mcp_exact::{
    Input, Json, Partial, Prompt, ResourceTemplate, Server, ServerBuilder, State, Tool, schemars,
    serde,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[derive(Debug, Deserialize, Serialize, JsonSchema)]
struct Args {
    path: String,
}

/// Arguments with a list, which prompts do not support.
#[derive(Debug, Deserialize, JsonSchema)]
#[allow(dead_code, reason = "the schema is all that is used")]
struct Nested {
    list: Vec<String>,
}

/// State that a handler requires.
#[derive(Clone)]
struct Database;

/// Asserts that the server cannot be built and that the problems have these messages.
fn check_problems(builder: ServerBuilder, expected: &[&str]) {
    let error = builder.build().expect_err("a problem");
    let found: Vec<String> = error.problems().iter().map(ToString::to_string).collect();
    assert_eq!(found, expected);
}

fn builder() -> ServerBuilder {
    Server::builder("test", "1.0.0")
}

#[test]
fn duplicate_definitions_are_rejected() {
    let builder = builder()
        .tool("a", || async { "" })
        .tool("a", || async { "" })
        .resource("x://a", || async { "" })
        .resource("x://a", || async { "" })
        .template("x://{a}", || async { "" })
        .template("x://{a}", || async { "" })
        .prompt("p", || async { "" })
        .prompt("p", || async { "" });
    check_problems(
        builder,
        &[
            "tool \"a\" is registered twice; rename or remove one of the two",
            "resource \"x://a\" is registered twice; rename or remove one of the two",
            "resource template \"x://{a}\" is registered twice; rename or remove one of the two",
            "prompt \"p\" is registered twice; rename or remove one of the two",
        ],
    );
}

/// Tool names are checked (`server/tools`, "Tool Names").
#[test]
fn invalid_tool_names_are_rejected() {
    let long = "a".repeat(129);
    for name in ["", "a b", "ä", "a/b", long.as_str()] {
        check_problems(
            builder().tool(name, || async { "" }),
            &[&format!(
                "tool name {name:?} is not accepted by all clients; use 1 to 128 of the characters A-Z a-z 0-9 _ - ."
            )],
        );
    }
}

#[test]
fn invalid_schemas_are_rejected() {
    let builder = builder()
        .tool("list", |Input(_): Input<Vec<u8>>| async { "" })
        .tool(
            Tool::new("own").input_schema(mcp_exact::JsonObject::new()),
            || async { "" },
        )
        .prompt("nested", |Input(_): Input<Nested>| async { "" })
        .tool(
            "two",
            |Input(_): Input<Args>, Input(_): Input<Args>| async { "" },
        )
        .resource("x://a", |Input(_): Input<Args>| async { "" });
    check_problems(
        builder,
        &[
            "the input schema of tool \"list\" cannot be used: its root must be an object and is `\"array\"`; give `Input` a struct with named fields",
            "the input schema of tool \"own\" cannot be used: its root has to say `\"type\": \"object\"`",
            "the input schema of prompt \"nested\" cannot be used: argument \"list\" is not a string, number, boolean or enum; prompt arguments are strings on the wire",
            "the handler of tool \"two\" takes `Input` more than once; put all arguments into one struct",
            "the input schema of resource \"x://a\" cannot be used: a resource with a fixed URI takes no arguments; use a template, or leave `Input` out",
        ],
    );
}

/// A state may be registered after the handler that requires the state, but must not be missing.
#[test]
fn build_error_names_missing_states() {
    check_problems(
        builder().tool("a", |State(_): State<Database>| async { "" }),
        &[
            "the handler of tool \"a\" takes `State<it::build::Database>`, which the server does not have; call `.state(…)` with a value of this type",
        ],
    );
    let later = builder()
        .tool("a", |State(_): State<Database>| async { "" })
        .state(Database);
    assert!(later.build().is_ok());
}

/// States of the same type, and visibility rules and capabilities of a merged builder, are problems.
#[test]
fn contradicting_merged_builders_are_rejected() {
    let part = builder().state(Database).state(1_u8).visible(|_, _| false);
    let other = builder().capability(
        "experimental",
        mcp_exact::JsonObject::from_iter([("a", true)]),
    );
    check_problems(
        builder()
            .state(Database)
            .merge(None, part)
            .merge(None, other),
        &[
            "both builders have a state `it::build::Database`; give it once, or wrap the one of the merged builder into a type of its own",
            "`visible` of the merged builder cannot be taken over; call it on the builder that merges",
            "`capability` of the merged builder cannot be taken over; call it on the builder that merges",
        ],
    );
}

#[test]
fn invalid_uri_templates_are_rejected() {
    let builder = builder()
        .template("x://{a", || async { "" })
        .template("x://{a}{b}", || async { "" })
        .template(
            ResourceTemplate::new("x://{file}").with_name("files"),
            |Input(_): Input<Args>| async { "" },
        );
    check_problems(
        builder,
        &[
            "resource template \"x://{a\" cannot be used: the brace at byte 4 has no counterpart; braces enclose expressions",
            "resource template \"x://{a}{b}\" cannot be used: it cannot be told where the value before `b` ends; put literal text between the two",
            "resource template \"x://{file}\" cannot be used: the handler needs `path`, and the template has the variables [\"file\"]; use the same names",
        ],
    );
}

/// A completion of an unregistered argument or resource template is a problem.
#[test]
fn dangling_completions_are_reported() {
    let builder = builder()
        .prompt(Prompt::new("review"), |Input(_): Input<Args>| async { "" })
        .complete_prompt("review", "path", |_: Partial| async { vec![String::new()] })
        .complete_prompt("review", "code", |_: Partial| async { vec![String::new()] })
        .complete_template("x://{a}", "a", |_: Partial| async { vec![String::new()] });
    check_problems(
        builder,
        &[
            "the completion of \"code\" belongs to prompt \"review\", which has no such argument; register it or correct the name",
            "the completion of \"a\" belongs to resource template \"x://{a}\", which has no such argument; register it or correct the name",
        ],
    );
}

/// A server that supports no revision cannot be built.
#[test]
fn servers_need_a_revision() {
    check_problems(
        builder().revisions([]),
        &[
            "no revision is offered; offer at least one supported revision that is not older than the oldest one allowed",
        ],
    );
}

#[test]
fn build_error_lists_all_problems() {
    let error = builder()
        .tool("", || async { "" })
        .tool("a b", || async { Json(1) });
    let error = error.build().expect_err("two problems").to_string();
    assert_eq!(error.lines().count(), 3, "{error}");
}
