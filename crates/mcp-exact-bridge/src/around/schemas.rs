//! Schemas of tools in the form that widely used hosts accept: they are rewritten in lists of tools, and what has no equivalent
//! is reported once for each tool and shape.

use std::collections::{BTreeMap, HashSet};
use std::fmt;
use std::sync::Arc;

use mcp_exact_session::http::mirrored_params;
use mcp_exact_session::{Json, JsonObject, RawResult};
use mcp_exact_tool_schema::{Deviation, SchemaOf, Shape, deviations, rewrite};
use parking_lot::Mutex;

/// Maximum number of tools and shapes that are remembered, so that each is reported once.
const MAX_REMEMBERED: usize = 1_000;
/// Maximum length of the name of a tool in a report, in characters.
const MAX_NAME: usize = 200;
/// Maximum length of a JSON pointer in a report, in characters.
const MAX_POINTER: usize = 300;
/// Maximum size of the definitions that replace references in one schema, in bytes.
const SCHEMA_ROOM: usize = 128 << 10;
/// Maximum size by which the schemas of one page of a list grow.
const PAGE_ROOM: usize = 4 << 20;

/// Number of tools by the name of their server and the shape that their schema has and that has no equivalent.
pub type ShapeCounts = BTreeMap<(Arc<str>, &'static str), u64>;

/// Shape in the schema of a tool that hosts may refuse, and that has no equivalent.
#[derive(Debug)]
#[non_exhaustive]
pub struct UnportableSchema<'a> {
    /// Name of the server in the configuration; empty if there is only one server.
    pub server: &'a str,
    /// Name of the tool, as the server has it.
    pub tool: &'a str,
    /// JSON pointer of the first place of the shape in the tool that clients receive, such as `/inputSchema/oneOf`.
    pub pointer: &'a str,
    /// Number of places of the shape in the schema.
    pub places: usize,
    /// The shape.
    pub shape: Shape,
}

impl fmt::Display for UnportableSchema<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.pointer, self.shape.remedy())?;
        match self.places {
            0 | 1 => Ok(()),
            places => write!(f, " (and {} more)", places - 1),
        }
    }
}

/// Function that the bridge calls for the first list that has a tool with a shape without an equivalent, as for an audit log. The
/// function must not block.
#[derive(Clone)]
pub struct SchemaObserver(Arc<dyn Fn(&UnportableSchema<'_>) + Send + Sync>);

impl SchemaObserver {
    /// Creates an observer from a function.
    pub fn new(observer: impl Fn(&UnportableSchema<'_>) + Send + Sync + 'static) -> Self {
        Self(Arc::new(observer))
    }
}

impl fmt::Debug for SchemaObserver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SchemaObserver")
    }
}

/// Counts of shapes, and what was reported.
#[derive(Debug)]
pub(crate) struct ShapeCounters {
    seen: Mutex<Seen>,
    observer: Option<SchemaObserver>,
}

#[derive(Debug, Default)]
struct Seen {
    counts: ShapeCounts,
    /// Servers, shapes and tools that were reported.
    reported: HashSet<(Arc<str>, Shape, String)>,
}

impl ShapeCounters {
    pub(crate) fn new(observer: Option<SchemaObserver>) -> Self {
        let seen = Mutex::default();
        Self { seen, observer }
    }

    /// Returns the number of tools by server and shape.
    pub(crate) fn counted(&self) -> ShapeCounts {
        self.seen.lock().counts.clone()
    }

    /// Reports the shapes in the input schema of a tool that were not reported before.
    fn report(&self, server: &str, tool: &str, remaining: &[Deviation]) {
        let tool: String = tool.chars().take(MAX_NAME).collect();
        for shape in Shape::ALL {
            let mut places = remaining.iter().filter(|left| left.shape == shape);
            let Some(first) = places.next() else { continue };
            if !self.is_new(server, &tool, shape) {
                continue;
            }
            let pointer = format!("/inputSchema{}", first.pointer);
            let pointer: String = pointer.chars().take(MAX_POINTER).collect();
            let report = UnportableSchema {
                server,
                tool: &tool,
                pointer: &pointer,
                places: 1 + places.count(),
                shape,
            };
            tracing::warn!(server, tool, schema = %report, "hosts may refuse the schema of a tool, and it has no equivalent");
            if let Some(SchemaObserver(observer)) = &self.observer {
                observer(&report);
            }
        }
    }

    /// Records and counts a shape of a tool; returns false if it was reported before.
    fn is_new(&self, server: &str, tool: &str, shape: Shape) -> bool {
        let mut seen = self.seen.lock();
        let server: Arc<str> = server.into();
        let key = (Arc::clone(&server), shape, tool.to_owned());
        let is_new = seen.reported.len() < MAX_REMEMBERED && seen.reported.insert(key);
        if is_new {
            *seen.counts.entry((server, shape.name())).or_default() += 1;
        }
        is_new
    }

    /// Rewrites the schemas of the tools in a result of `tools/list`, and reports what stays as hosts may refuse it.
    pub(crate) fn rewrite_list(&self, server: &str, result: RawResult) -> RawResult {
        let tools = result.object().view().find("tools");
        let tools = tools.and_then(|tools| tools.decode_as::<Vec<JsonObject>>().ok());
        let Some(mut tools) = tools else {
            return result;
        };
        let (mut room, mut is_changed) = (PAGE_ROOM, false);
        for tool in &mut tools {
            let members = ["name", "inputSchema", "outputSchema"];
            let [name, input, output] = tool.view().find_each(members);
            let name = name.and_then(|name| name.as_str()).unwrap_or_default();
            let name = name.into_owned();
            let [input, output] = [input, output]
                .map(|schema| Some(schema.and_then(|schema| schema.object())?.to_object()));
            let mut new_input = None;
            if let Some(schema) = &input {
                let (new, remaining) = portable_input(schema, room.min(SCHEMA_ROOM));
                self.report(server, &name, &remaining);
                new_input = new;
            }
            let new_output = output.as_ref().and_then(|schema| {
                rewrite(schema, SchemaOf::Results, room.min(SCHEMA_ROOM)).schema
            });
            for (member, old, new) in [
                ("inputSchema", input, new_input),
                ("outputSchema", output, new_output),
            ] {
                if let (Some(old), Some(new)) = (old, new) {
                    room = room.saturating_sub(new.text().len().saturating_sub(old.text().len()));
                    tool.insert(member, new);
                    is_changed = true;
                }
            }
        }
        if !is_changed {
            return result;
        }
        let mut list = result.into_object();
        list.insert("tools", Json::from_encode(&tools));
        list.into()
    }
}

/// Returns the equivalent of an input schema, and the shapes that are left. A schema whose equivalent would mirror other parameters
/// into headers stays as it is (2026-07-28, `basic/transports/streamable-http`, "Custom Headers from Tool Parameters").
fn portable_input(schema: &JsonObject, room: usize) -> (Option<JsonObject>, Vec<Deviation>) {
    let rewritten = rewrite(schema, SchemaOf::Arguments, room);
    let Some(new) = rewritten.schema else {
        return (None, rewritten.remaining);
    };
    match (mirrored_params(schema), mirrored_params(&new)) {
        (Ok(before), Ok(after)) if before == after => (Some(new), rewritten.remaining),
        _ => (None, deviations(schema)),
    }
}
