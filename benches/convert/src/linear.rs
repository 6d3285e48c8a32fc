//! Long inputs of many kinds: a conversion takes time in proportion to its input, whatever the input is.

use std::hint::black_box;

use bench_record::{Row, repeated, take_turns};
use mcp_exact_convert::{Context, KnownRevision, convert_type};

const A: KnownRevision = KnownRevision::V2024_11_05;
const B: KnownRevision = KnownRevision::V2025_03_26;
const C: KnownRevision = KnownRevision::V2025_06_18;
const D: KnownRevision = KnownRevision::V2025_11_25;
const E: KnownRevision = KnownRevision::V2026_07_28;

/// A kind of input: a beginning, parts with a number in the place of `#`, and an end.
struct Kind {
    what: &'static str,
    definition: &'static str,
    way: (KnownRevision, KnownRevision),
    parts: [&'static str; 3],
}

const KINDS: &[Kind] = &[
    Kind {
        what: "boolean property schemas",
        definition: "Tool",
        way: (E, A),
        parts: [
            r##"{"name":"a","inputSchema":{"type":"object","properties":{"##,
            r##""p#":true"##,
            "}}}",
        ],
    },
    Kind {
        what: "messages of two contents",
        definition: "CreateMessageRequestParams",
        way: (D, A),
        parts: [
            r##"{"maxTokens":1,"messages":["##,
            r##"{"role":"user","content":[{"type":"text","text":"#"},{"type":"text","text":"b","_meta":{}}]}"##,
            "]}",
        ],
    },
    Kind {
        what: "tools with titles",
        definition: "ListToolsResult",
        way: (C, A),
        parts: [
            r##"{"tools":["##,
            r##"{"name":"n#","title":"t","inputSchema":{"type":"object"},"_meta":{"a":1}}"##,
            "]}",
        ],
    },
    Kind {
        what: "tools that go up",
        definition: "ListToolsResult",
        way: (A, E),
        parts: [
            r##"{"tools":["##,
            r##"{"name":"n#","title":5,"inputSchema":{"type":"object"}}"##,
            "]}",
        ],
    },
    Kind {
        what: "audio",
        definition: "CallToolResult",
        way: (E, A),
        parts: [
            r##"{"resultType":"complete","content":["##,
            r##"{"type":"audio","data":"AAAA","mimeType":"#","resource":1}"##,
            "]}",
        ],
    },
    Kind {
        what: "resource links",
        definition: "CallToolResult",
        way: (D, A),
        parts: [
            r##"{"content":["##,
            r##"{"type":"resource_link","name":"n#","uri":"a:b","annotations":{"lastModified":"x"}}"##,
            "]}",
        ],
    },
    Kind {
        what: "metadata",
        definition: "CallToolRequestParams",
        way: (A, E),
        parts: [r#"{"name":"a","_meta":{"#, r#""m#":[1,2,{}]"#, "}}"],
    },
    Kind {
        what: "metadata that is there twice",
        definition: "CallToolRequestParams",
        way: (A, E),
        parts: [
            r##"{"name":"a","_meta":{"##,
            r##""m":"#","progressToken":1"##,
            "}}",
        ],
    },
    Kind {
        what: "unknown members",
        definition: "Tool",
        way: (A, E),
        parts: [
            r##"{"name":"a","inputSchema":{"type":"object"},"##,
            r##""u#":null"##,
            "}",
        ],
    },
    Kind {
        what: "titled enums",
        definition: "ElicitRequestFormParams",
        way: (D, C),
        parts: [
            r##"{"message":"a","requestedSchema":{"type":"object","properties":{"##,
            r##""p#":{"type":"string","oneOf":[{"const":"a","title":"A","x":1}]}"##,
            "}}}",
        ],
    },
    Kind {
        what: "completions",
        definition: "CompleteResult",
        way: (D, E),
        parts: [r#"{"completion":{"values":["#, r##""v#""##, "]}}"],
    },
    Kind {
        what: "schemas that are there twice",
        definition: "Tool",
        way: (C, E),
        parts: [
            r##"{"name":"a","inputSchema":{"type":"object","##,
            r##""$schema":#"##,
            "}}",
        ],
    },
    Kind {
        what: "plain text blocks",
        definition: "CallToolResult",
        way: (B, E),
        parts: [
            r##"{"content":["##,
            r##"{"type":"text","text":"line #"}"##,
            "]}",
        ],
    },
];

/// A row for each kind: one conversion of 10 MB next to ten of 1 MB.
pub fn rows(word: Option<&str>) -> Vec<Row> {
    let wanted = |kind: &&Kind| word.is_none_or(|word| kind.what.contains(word));
    KINDS.iter().filter(wanted).map(row).collect()
}

fn row(kind: &Kind) -> Row {
    let (short, long) = (text(kind, 1_000_000), text(kind, 10_000_000));
    let ten = || (0..10).for_each(|_| run(kind, &short));
    Row {
        what: format!("10 MB of {}", kind.what),
        base: "ten times 1 MB",
        demanded: Some(1.5),
        cost: take_turns(1, repeated(ten), repeated(|| run(kind, &long))),
    }
}

fn run(kind: &Kind, text: &str) {
    let (from, to) = kind.way;
    let mut cx = Context::new();
    let converted = convert_type(kind.definition, black_box(text), from, to, &mut cx);
    black_box(converted.is_ok());
    drop(black_box(cx));
}

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
