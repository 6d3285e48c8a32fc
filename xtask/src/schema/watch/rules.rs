//! What a draft changes for the rules of the session, by the schemas of all revisions.
//!
//! The table of rules has a row for each method of each released revision, as a test of the session proves; so the schemas tell
//! which methods have no row yet. Who needs which capability, and on which stream a notification belongs, no schema tells.

use std::collections::BTreeSet;

use codegen::ir::{Diff, Ir, MemberValue, Method, Shape, Status};

/// Folder of the files that the lines name.
pub const SESSION: &str = "crates/mcp-exact-session/src";

/// Definitions that the session reads or writes by itself, with the file in [`SESSION`] that does.
pub const READ_DEFINITIONS: &[(&str, &str)] = &[
    ("CacheableResult", "config/server.rs"),
    ("ClientCapabilities", "rules/capability.rs"),
    ("DiscoverResult", "server/discover.rs"),
    ("InputRequests", "input_request.rs"),
    ("InputRequiredResult", "rules/results.rs"),
    ("InputResponseRequestParams", "message.rs"),
    ("InputResponses", "input_request.rs"),
    ("NotificationMetaObject", "meta.rs"),
    ("RequestMetaObject", "meta.rs"),
    ("Result", "rules/results.rs"),
    ("ResultMetaObject", "meta.rs"),
    ("ResultType", "rules/results.rs"),
    ("ServerCapabilities", "rules/capability.rs"),
    ("SubscriptionFilter", "filter.rs"),
    ("SubscriptionsAcknowledgedNotificationParams", "filter.rs"),
    ("SubscriptionsListenRequestParams", "filter.rs"),
];

/// What changes for the session.
#[derive(Debug, Default)]
pub struct RuleChanges {
    /// Changes that a person makes, a line each.
    pub to_do: Vec<String>,
    /// Rows that apply to fewer or more revisions by the table of revisions, a line each.
    pub automatic: Vec<String>,
}

/// Kind, sender and method of a row of the table of rules.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Row {
    /// Function of the table that makes the row: `request`, `notification` or `input_request`.
    kind: &'static str,
    /// Sender: `Client` or `Server`; a server alone embeds requests.
    sender: &'static str,
    /// Name of the method.
    method: String,
}

impl Row {
    /// Returns the rows of a method: one for each sender.
    fn of_method(method: &Method) -> Vec<Self> {
        let row = |kind, sender| Self {
            kind,
            sender,
            method: method.method.clone(),
        };
        let kind = if method.request {
            "request"
        } else {
            "notification"
        };
        let mut rows = Vec::new();
        if method.from_client {
            rows.push(row(kind, "Client"));
        }
        if method.from_server {
            rows.push(row(kind, "Server"));
        }
        if rows.is_empty() && method.request {
            rows.push(row("input_request", "Server"));
        }
        rows
    }

    /// Returns the code of the row in the table.
    fn code(&self) -> String {
        let Self {
            kind,
            sender,
            method,
        } = self;
        if *kind == "input_request" {
            format!("{kind}({method:?})")
        } else {
            format!("{kind}({sender}, {method:?})")
        }
    }
}

/// Returns all rows of the methods of a revision.
fn rows(ir: &Ir) -> BTreeSet<Row> {
    ir.methods.iter().flat_map(Row::of_method).collect()
}

/// Compares the draft with the released revisions, oldest first; `diff` has the differences from the newest one.
pub fn compare(released: &[&Ir], draft: &Ir, diff: &Diff) -> RuleChanges {
    let mut changes = RuleChanges::default();
    let known: BTreeSet<Row> = released.iter().flat_map(|ir| rows(ir)).collect();
    let Some(newest) = released.last() else {
        return changes;
    };
    let (before, after) = (rows(newest), rows(draft));
    for row in after.difference(&before) {
        if known.contains(row) {
            let code = row.code();
            let line = format!("the row `{code}` applies again, by the table of revisions");
            changes.automatic.push(line);
        } else {
            changes.to_do.push(new_row(row, draft));
        }
    }
    for row in before.difference(&after) {
        let code = row.code();
        if row.kind == "input_request" {
            changes.to_do.push(format!(
                "the row `{code}` applies to every revision with `InputRequiredResult`, and the draft embeds the request no more: \
                 restrict it in `{SESSION}/rules/index.rs`"
            ));
        } else {
            let line = format!(
                "the row `{code}` stays for older revisions alone, by the table of revisions"
            );
            changes.automatic.push(line);
        }
    }
    for method in &draft.methods {
        let older = newest.methods.iter();
        let mut older = older.filter(|one| one.method == method.method);
        if let Some(older) = older.next() {
            let (had, has) = (requirements(older, newest), requirements(method, draft));
            changes
                .to_do
                .extend(changed_requirements(method, &had, &has));
        }
    }
    changes.to_do.extend(read_definitions(diff));
    changes
}

/// Describes a row that the table lacks.
fn new_row(row: &Row, draft: &Ir) -> String {
    let mut code = row.code();
    let mut methods = draft.methods.iter();
    let method = methods.find(|method| Row::of_method(method).contains(row));
    for requirement in method
        .map(|method| requirements(method, draft))
        .unwrap_or_default()
    {
        code.push_str(&format!(".{requirement}()"));
    }
    let open = match (row.kind, row.sender) {
        ("notification", "Server") => "the capability of the sender and the stream",
        ("notification", _) => "the capability of the sender",
        ("request", "Client") => {
            "the capability of the receiver, the parameter that `Mcp-Name` mirrors, and whether the request may be repeated"
        }
        _ => "the capability of the receiver",
    };
    format!(
        "no row for `{}`: add `{code}` to `{SESSION}/rules/table.rs`; no schema tells {open}",
        row.method
    )
}

/// Returns the functions of the table that a client's request needs by its results.
fn requirements(method: &Method, ir: &Ir) -> BTreeSet<&'static str> {
    let mut needed = BTreeSet::new();
    if !method.request || !method.from_client {
        return needed;
    }
    let results = method.outcomes.iter().chain(&method.result);
    for result in results {
        if result == "InputRequiredResult" {
            needed.insert("requiring_input");
        } else if has_members(ir, result, ["ttlMs", "cacheScope"]) {
            let is_list = has_members(ir, result, ["nextCursor"]);
            needed.insert(if is_list {
                "with_list_cache"
            } else {
                "with_cache"
            });
        }
    }
    needed
}

/// Returns true if a definition is an object with all of these members.
fn has_members<const N: usize>(ir: &Ir, definition: &str, names: [&str; N]) -> bool {
    let Some(Shape::Struct(members)) = ir.get(definition).map(|found| &found.shape) else {
        return false;
    };
    let has = |name| {
        let mut found = members.iter().filter(|member| member.name == name);
        found.any(|member| matches!(member.value, MemberValue::Type(_)))
    };
    names.into_iter().all(has)
}

/// Describes what a row of a known method has to say from the draft on, or no more.
fn changed_requirements(
    method: &Method,
    had: &BTreeSet<&'static str>,
    has: &BTreeSet<&'static str>,
) -> Vec<String> {
    let name = &method.method;
    let gained = has.difference(had).map(|function| {
        format!("the row of `{name}` needs `.{function}()`, and a property of revisions that tells from which one on")
    });
    let lost = had.difference(has).map(|function| {
        format!("the row of `{name}` has `.{function}()`, which the draft ends: add a property of revisions that tells so")
    });
    gained.chain(lost).collect()
}

/// Describes the differences of definitions that the session reads or writes by itself, and of errors.
fn read_definitions(diff: &Diff) -> Vec<String> {
    let mut lines = Vec::new();
    for definition in &diff.definitions {
        let name = definition.before.as_ref().unwrap_or(&definition.name);
        let known = READ_DEFINITIONS.iter().find(|(known, _)| known == name);
        let verb = match definition.status {
            Status::Added => "is new",
            Status::Removed => "is gone",
            Status::Changed => "differs",
            // Names of types are not sent.
            Status::Renamed | Status::Named | Status::Unnamed => continue,
        };
        if let Some((name, file)) = known {
            let paths = definition.changes.iter().map(|change| &*change.path);
            let paths: BTreeSet<&str> = paths.filter(|path| !path.is_empty()).collect();
            let paths: Vec<&str> = paths.into_iter().collect();
            let places = if paths.is_empty() {
                String::new()
            } else {
                format!(" at `{}`", paths.join("`, `"))
            };
            lines.push(format!(
                "`{name}` {verb}{places}: the session reads it in `{SESSION}/{file}`"
            ));
        } else if name.ends_with("Error") && definition.status != Status::Changed {
            lines.push(format!(
                "the error `{name}` {verb}: see `{SESSION}/refusal.rs` and `error.rs`"
            ));
        }
    }
    lines
}
