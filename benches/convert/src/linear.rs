//! Measures conversions of long inputs of many kinds, whose time must be proportional to the size of the input.

use std::hint::black_box;
use std::io;
use std::time::Duration;

use bench_record::{Row, repeated};
use mcp_exact_convert::{Context, ConvertError, KnownRevision, MAX_LOSSES, convert_type};

/// Maximum time of a conversion of 4 MB of input.
const MAX_TIME: Duration = Duration::from_millis(100);

/// Revision 2024-11-05.
const A: KnownRevision = KnownRevision::V2024_11_05;
/// Revision 2025-03-26.
const B: KnownRevision = KnownRevision::V2025_03_26;
/// Revision 2025-06-18.
const C: KnownRevision = KnownRevision::V2025_06_18;
/// Revision 2025-11-25.
const D: KnownRevision = KnownRevision::V2025_11_25;
/// Revision 2026-07-28.
const E: KnownRevision = KnownRevision::V2026_07_28;

/// Kind of input text: a beginning, a repeated part in which `#` is replaced by the number of the repetition, and an
/// end.
struct Kind {
    /// Name of the kind in the report.
    what: &'static str,
    /// Definition that the input is converted as.
    definition: &'static str,
    /// Source revision and target revision of the conversion.
    revisions: (KnownRevision, KnownRevision),
    /// Beginning, repeated part, and end of the text.
    parts: [&'static str; 3],
}

/// Measured kinds of input.
const KINDS: &[Kind] = &[
    Kind {
        what: "boolean property schemas",
        definition: "Tool",
        revisions: (E, A),
        parts: [
            r##"{"name":"a","inputSchema":{"type":"object","properties":{"##,
            r##""p#":true"##,
            "}}}",
        ],
    },
    Kind {
        what: "messages of two contents",
        definition: "CreateMessageRequestParams",
        revisions: (D, A),
        parts: [
            r##"{"maxTokens":1,"messages":["##,
            r##"{"role":"user","content":[{"type":"text","text":"#"},{"type":"text","text":"b","_meta":{}}]}"##,
            "]}",
        ],
    },
    Kind {
        what: "tools with titles",
        definition: "ListToolsResult",
        revisions: (C, A),
        parts: [
            r##"{"tools":["##,
            r##"{"name":"n#","title":"t","inputSchema":{"type":"object"},"_meta":{"a":1}}"##,
            "]}",
        ],
    },
    Kind {
        what: "tools that go up",
        definition: "ListToolsResult",
        revisions: (A, E),
        parts: [
            r##"{"tools":["##,
            r##"{"name":"n#","title":5,"inputSchema":{"type":"object"}}"##,
            "]}",
        ],
    },
    Kind {
        what: "audio",
        definition: "CallToolResult",
        revisions: (E, A),
        parts: [
            r##"{"resultType":"complete","content":["##,
            r##"{"type":"audio","data":"AAAA","mimeType":"#","resource":1}"##,
            "]}",
        ],
    },
    Kind {
        what: "resource links",
        definition: "CallToolResult",
        revisions: (D, A),
        parts: [
            r##"{"content":["##,
            r##"{"type":"resource_link","name":"n#","uri":"a:b","annotations":{"lastModified":"x"}}"##,
            "]}",
        ],
    },
    Kind {
        what: "metadata",
        definition: "CallToolRequestParams",
        revisions: (A, E),
        parts: [r#"{"name":"a","_meta":{"#, r#""m#":[1,2,{}]"#, "}}"],
    },
    Kind {
        what: "metadata that is there twice",
        definition: "CallToolRequestParams",
        revisions: (A, E),
        parts: [
            r##"{"name":"a","_meta":{"##,
            r##""m":"#","progressToken":1"##,
            "}}",
        ],
    },
    Kind {
        what: "unknown members",
        definition: "Tool",
        revisions: (A, E),
        parts: [
            r##"{"name":"a","inputSchema":{"type":"object"},"##,
            r##""u#":null"##,
            "}",
        ],
    },
    Kind {
        what: "titled enums",
        definition: "ElicitRequestFormParams",
        revisions: (D, C),
        parts: [
            r##"{"message":"a","requestedSchema":{"type":"object","properties":{"##,
            r##""p#":{"type":"string","oneOf":[{"const":"a","title":"A","x":1}]}"##,
            "}}}",
        ],
    },
    Kind {
        what: "completions",
        definition: "CompleteResult",
        revisions: (D, E),
        parts: [r#"{"completion":{"values":["#, r##""v#""##, "]}}"],
    },
    Kind {
        what: "schemas that are there twice",
        definition: "Tool",
        revisions: (C, E),
        parts: [
            r##"{"name":"a","inputSchema":{"type":"object","##,
            r##""$schema":#"##,
            "}}",
        ],
    },
    Kind {
        what: "rules that are broken twice",
        definition: "Tool",
        revisions: (C, E),
        parts: [
            r##"{"name":"a","inputSchema":{"type":"object","##,
            r##""$schema":"x","$schema":#"##,
            "}}",
        ],
    },
    Kind {
        what: "names that are no text",
        definition: "CallToolRequestParams",
        revisions: (A, E),
        parts: [r#"{"name":"a","_meta":{"#, r#""\ud800#":1"#, "}}"],
    },
    Kind {
        what: "deep JSON",
        definition: "CallToolRequestParams",
        revisions: (E, A),
        parts: [
            r##"{"name":"a","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}},"arguments":{"a":[0,"##,
            "[[[[[[[[{\"#\":0}]]]]]]]]",
            "]}}",
        ],
    },
    Kind {
        what: "links that are not known",
        definition: "CallToolResult",
        revisions: (A, E),
        parts: [
            r##"{"content":["##,
            r##"{"name":"n#","uri":"a:b","size":"x","annotations":{"audience":["robot"]},"type":"resource_link"}"##,
            "]}",
        ],
    },
    Kind {
        what: "messages that are not split",
        definition: "CreateMessageRequestParams",
        revisions: (E, A),
        parts: [
            r##"{"maxTokens":1,"messages":["##,
            r##"{"role":"user","content":{"type":"text","text":"#","_meta":{}}}"##,
            "]}",
        ],
    },
    Kind {
        what: "plain text blocks",
        definition: "CallToolResult",
        revisions: (B, E),
        parts: [
            r##"{"content":["##,
            r##"{"type":"text","text":"line #"}"##,
            "]}",
        ],
    },
];

/// Environment variables that make glibc keep freed memory in the process, with their values.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const KEEP_FREED_MEMORY: [(&str, &str); 3] = [
    ("MALLOC_TRIM_THRESHOLD_", "8000000000"),
    ("MALLOC_MMAP_THRESHOLD_", "4000000000"),
    ("MALLOC_TOP_PAD_", "400000000"),
];

/// Restarts the program with an allocator that keeps freed memory, unless this is already the case.
///
/// By default, glibc returns the memory of a long text to the kernel after each run, so that the next run has page
/// faults. A run with a short text has no page faults, so the ratio of the times would measure the kernel instead of
/// the conversion.
pub fn keep_freed_memory() -> io::Result<()> {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    if std::env::var_os(KEEP_FREED_MEMORY[0].0).is_none() {
        use std::os::unix::process::CommandExt;
        let mut again = std::process::Command::new(std::env::current_exe()?);
        again.args(std::env::args_os().skip(1));
        return Err(again.envs(KEEP_FREED_MEMORY).exec());
    }
    Ok(())
}

/// Measures two rows for each kind whose name contains `word`: one conversion of 10 MB compared with ten of 1 MB, and
/// one of 4 MB compared with the time limit. An additional first row measures copies of 10 MB and of 1 MB, which shows
/// the effect of memory alone.
pub fn rows(word: Option<&str>) -> Vec<Row> {
    let wanted = |kind: &&Kind| word.is_none_or(|word| kind.what.contains(word));
    let kinds = KINDS.iter().filter(wanted).flat_map(kind_rows);
    std::iter::once(copies()).chain(kinds).collect()
}

/// Measures a copy of 10 MB compared with ten copies of 1 MB.
fn copies() -> Row {
    let text = "x".repeat(10_000_000);
    let copy = |bytes: usize, times: usize| {
        let mut all =
            repeated(|| (0..times).for_each(|_| drop(black_box(text[..bytes].to_owned()))));
        let runs = (0..4).map(|_| all(1));
        runs.min().unwrap_or_default()
    };
    Row {
        what: "10 MB that are copied".to_owned(),
        base: "ten times 1 MB",
        demanded: None,
        cost: (copy(1_000_000, 10), copy(10_000_000, 1)),
    }
}

/// Measures the rows of a kind: time per byte without a limit on the losses, and time at 4 MB with the default limit.
/// If the limit refuses the text, a row without a demand has the time at 4 MB without the limit.
fn kind_rows(kind: &Kind) -> Vec<Row> {
    let [short, middle, long] = [1, 4, 10].map(|size| text(kind, size * 1_000_000));
    let least = |text: &str, max_losses: usize, times: usize| {
        let convert = || drop(black_box(run(kind, text, max_losses)));
        let mut all = repeated(|| (0..times).for_each(|_| convert()));
        let runs = (0..4).map(|_| all(1));
        runs.min().unwrap_or_default()
    };
    let linear = Row {
        what: format!("10 MB of {}", kind.what),
        base: "ten times 1 MB",
        demanded: Some(1.5),
        cost: (least(&short, usize::MAX, 10), least(&long, usize::MAX, 1)),
    };
    let limited = |what: &str, demanded, max_losses| Row {
        what: format!("4 MB of {}{what}", kind.what),
        base: "the limit",
        demanded,
        cost: (MAX_TIME, least(&middle, max_losses, 1)),
    };
    if run(kind, &middle, MAX_LOSSES).is_ok() || run(kind, &middle, usize::MAX).is_err() {
        return vec![linear, limited("", Some(1.0), MAX_LOSSES)];
    }
    let refused = limited(", refused for its losses", Some(1.0), MAX_LOSSES);
    let unlimited = limited(", losses without a limit", None, usize::MAX);
    vec![linear, refused, unlimited]
}

/// Converts a text of this kind once.
fn run(kind: &Kind, text: &str, max_losses: usize) -> Result<(), ConvertError> {
    let (from, to) = kind.revisions;
    let mut cx = Context::new().max_losses(max_losses);
    let converted = convert_type(kind.definition, black_box(text), from, to, &mut cx);
    drop(black_box(cx));
    converted.map(|text| drop(black_box(text)))
}

/// Returns a text of this kind with about this number of bytes.
fn text(kind: &Kind, bytes: usize) -> String {
    let [begin, part, end] = kind.parts;
    let mut text = begin.to_owned();
    let mut number = 0;
    while text.len() < bytes {
        if number > 0 {
            text.push(',');
        }
        text.push_str(&part.replace('#', &number.to_string()));
        number += 1;
    }
    text + end
}
