//! Records seeded conversions as lines of JSON, and compares recordings with current conversions.
//!
//! `oracle record [SEED] > FILE` writes one line per conversion. Inputs are valid, valid in the other revision, invalid
//! by one rule, or malformed, for all ordered pairs of revisions, all definitions and all methods. `oracle check
//! FILE...` repeats each conversion. Recordings of an earlier implementation, which decoded messages into types, are
//! the reference (`cargo xtask nightly oracle`): each difference in output, losses or refusal must belong to a group of
//! `oracle.txt`, with the number of conversions in that file. `UPDATE_EXPECT=1` rewrites the file.

#![allow(clippy::print_stdout, clippy::print_stderr)]

mod groups;
#[allow(dead_code)]
#[path = "../../tests/convert/revisions.rs"]
mod revisions;

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader, BufWriter, Write};

use groups::Kind;
use mcp_exact_convert::{
    Context, KnownRevision, MessageKind, NewerMembers, Payload, Role, convert, convert_type,
    counterpart,
};
use mcp_exact_tests_support::{Generator, Mutator, Rng, Style};
use revisions::{Revision, revisions};
use serde_json::{Value, json};

/// Default seed of the recorded conversions.
const SEED: u64 = 20_261_122;

fn main() -> io::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.split_first() {
        Some((verb, [])) if verb == "record" => record_conversions(SEED),
        Some((verb, [seed])) if verb == "record" => {
            record_conversions(seed.parse().unwrap_or(SEED))
        }
        Some((verb, files)) if verb == "check" && !files.is_empty() => check_recordings(files),
        _ => {
            eprintln!("usage: oracle record [SEED] > FILE | oracle check FILE...");
            std::process::exit(2);
        }
    }
}

/// Conversion that one line of a recording describes.
struct Case<'c> {
    /// Kind of the converted text: `type`, `request`, `result`, `notification` or `error`.
    kind: &'c str,
    /// Name of the definition or the method.
    name: &'c str,
    /// Sender of the message: `client` or `server`.
    sender: &'c str,
    /// Source revision.
    from: KnownRevision,
    /// Target revision.
    to: KnownRevision,
    /// Three bits of the conversion context, lowest first: newer members are kept; the request id is known; the request
    /// metadata is known.
    context: u64,
    /// Text to convert; `None` for absent params.
    text: Option<&'c str>,
}

impl Case<'_> {
    /// Creates the context of the conversion.
    fn context(&self) -> Context {
        let mut cx = Context::new().requested_uri("file:///gone");
        if self.context & 1 != 0 {
            cx = cx.newer_members(NewerMembers::KeepInExtra);
        }
        if self.context & 2 != 0 {
            cx = cx.request_id("an id");
        }
        if self.context & 4 != 0 {
            let meta = r#"{"io.modelcontextprotocol/clientCapabilities":{"roots":{}},"io.modelcontextprotocol/clientInfo":{"name":"n","version":"1"}}"#;
            cx = cx.request_meta(mcp_exact_wire::from_str(meta).expect("an object"));
        }
        cx
    }

    /// Converts the text, and returns the outcome in its recorded form: the output and the losses, or the refusal.
    fn run(&self) -> Value {
        let mut cx = self.context();
        let out = match (self.kind, self.text) {
            ("type", Some(text)) => {
                convert_type(self.name, text, self.from, self.to, &mut cx).map(Some)
            }
            _ => convert(self.root(), self.text, self.from, self.to, &mut cx),
        };
        match out {
            Ok(out) => {
                let untouched = match (&out, self.text) {
                    (Some(out), Some(text)) => **out == *text,
                    (None, None) => true,
                    _ => false,
                };
                let losses = cx.losses().iter();
                let losses = losses.map(|l| json!([&*l.pointer, l.kind.name(), l.reason]));
                let losses: Vec<Value> = losses.collect();
                if untouched {
                    json!(["same", losses])
                } else {
                    json!(["out", out, losses])
                }
            }
            Err(refused) => json!(["refused", refused.pointer(), refused.reason()]),
        }
    }

    /// Describes the message part that the text contains: kind, method and sender.
    fn root(&self) -> Payload<'_> {
        Payload {
            kind: match self.kind {
                "request" => MessageKind::Request,
                "result" => MessageKind::Result,
                "notification" => MessageKind::Notification,
                _ => MessageKind::Error,
            },
            method: self.name,
            sender: match self.sender {
                "client" => Role::Client,
                _ => Role::Server,
            },
        }
    }

    /// Returns the line of the recording, which contains the conversion and its outcome.
    fn line(&self) -> Value {
        let (from, to) = (self.from.as_str(), self.to.as_str());
        json!([
            self.kind,
            self.name,
            self.sender,
            from,
            to,
            self.context,
            self.text,
            self.run()
        ])
    }
}

/// Writes the conversions between all ordered pairs of revisions to standard output; equal seeds produce equal
/// conversions.
fn record_conversions(seed: u64) -> io::Result<()> {
    let mut out = BufWriter::new(io::stdout().lock());
    let mut rng = Rng::new(seed);
    for from in revisions() {
        for to in revisions().iter().filter(|to| to.revision != from.revision) {
            record_definitions(from, to, &mut rng, &mut out)?;
            record_methods(from, to, &mut rng, &mut out)?;
            record_errors(from, to, &mut rng, &mut out)?;
        }
    }
    out.flush()
}

/// Writes conversions of texts of each definition that the source revision has.
fn record_definitions(
    from: &Revision,
    to: &Revision,
    rng: &mut Rng,
    out: &mut impl Write,
) -> io::Result<()> {
    for name in from.revision.types() {
        let target = counterpart(name, from.revision, to.revision);
        let target =
            target.filter(|target| to.revision.types().any(|official| official == *target));
        for text in inputs(from, to, name, target, 100, rng) {
            let case = Case {
                kind: "type",
                name,
                sender: "",
                from: from.revision,
                to: to.revision,
                context: rng.next_u64() % 8,
                text: Some(&text),
            };
            writeln!(out, "{}", case.line())?;
        }
    }
    Ok(())
}

/// Returns up to `count` texts for the definition `name`: valid, valid in the other revision, invalid by one rule, and
/// malformed; `target` is the matching definition of the other revision.
fn inputs(
    from: &Revision,
    to: &Revision,
    name: &str,
    target: Option<&str>,
    count: usize,
    rng: &mut Rng,
) -> Vec<String> {
    let mut own = Generator::new(from.document, rng.fork());
    let mut other = Generator::new(to.document, rng.fork());
    let mut mutator = Mutator::new(from.document, rng.fork());
    let mut texts = Vec::new();
    // A definition without a counterpart is refused for every text.
    let count = if target.is_some() { count } else { 4 };
    for _ in 0..count / 2 {
        texts.push(own.instance(name).write(Style::ALL_VARIATIONS, rng));
    }
    for _ in 0..count / 5 {
        if let Some(target) = target {
            texts.push(other.instance(target).write(Style::ALL_VARIATIONS, rng));
        }
    }
    let doc = own.instance(name);
    for mutant in mutator.sample(name, &doc, count / 5) {
        texts.push(mutant.doc.write(Style::ALL_VARIATIONS, rng));
    }
    for at in 0..count / 10 {
        let text = texts[at * 3 % texts.len()].clone();
        texts.push(malformed_text(&text, rng));
    }
    texts
}

/// Returns a variant of the text that is malformed or unusual: truncated, with a changed byte, with a repeated part,
/// with a deeply nested value, or with repeated or invalid members.
fn malformed_text(text: &str, rng: &mut Rng) -> String {
    let mut bytes = text.as_bytes().to_vec();
    let at = rng.below(bytes.len().max(1));
    match rng.below(6) {
        0 => bytes.truncate(at),
        1 => {
            let byte = *rng.pick(b"\"{}[],:0-.e\\ \n\rtfnu");
            if let Some(place) = bytes.get_mut(at) {
                *place = byte;
            }
        }
        2 => {
            let part: Vec<u8> = bytes[at..].iter().copied().take(12).collect();
            bytes.splice(at..at, part);
        }
        3 => {
            let deep = ["[".repeat(200), "]".repeat(200)].concat();
            bytes = text
                .replacen(':', &format!(":{deep},\"x\":"), 1)
                .into_bytes();
        }
        4 => bytes = text.replacen(':', r#":1,"\u0074ype":"#, 1).into_bytes(),
        _ => {
            bytes = text
                .replacen('{', r#"{"x":"\ud800","x":1,"#, 1)
                .into_bytes()
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Writes conversions of params and results of each method that any revision has.
fn record_methods(
    from: &Revision,
    to: &Revision,
    rng: &mut Rng,
    out: &mut impl Write,
) -> io::Result<()> {
    let methods: BTreeMap<(&str, bool), ()> = KnownRevision::ALL
        .iter()
        .flat_map(|known| known.methods())
        .map(|info| ((info.method, info.request), ()))
        .collect();
    for (method, request) in methods.into_keys() {
        let kinds: &[&str] = if request {
            &["request", "result"]
        } else {
            &["notification"]
        };
        for kind in kinds {
            for sender in ["client", "server"] {
                for text in message_texts(from, method, kind, rng) {
                    let case = Case {
                        kind,
                        name: method,
                        sender,
                        from: from.revision,
                        to: to.revision,
                        context: rng.next_u64() % 8,
                        text: text.as_deref(),
                    };
                    writeln!(out, "{}", case.line())?;
                }
            }
        }
    }
    Ok(())
}

/// Returns params or results for messages of a method, taken from instances of the definitions whose names match the
/// method.
fn message_texts(from: &Revision, method: &str, kind: &str, rng: &mut Rng) -> Vec<Option<String>> {
    let mut texts = vec![None, Some("{}".to_owned()), Some(" [] ".to_owned())];
    let camel: String = method
        .split(['/', '_'])
        .map(|part| part[..1].to_uppercase() + &part[1..])
        .collect();
    let word = |text: &str| text.to_lowercase();
    let stem = word(&camel.replace("Notifications", ""));
    let suffix = match kind {
        "request" => "request",
        "notification" => "notification",
        _ => "result",
    };
    let mut reversed: Vec<&str> = method.split('/').collect();
    reversed.reverse();
    let swapped = word(&reversed.concat());
    let names = from.revision.types().filter(|name| {
        let name = word(name);
        let Some(name) = name.strip_suffix(suffix) else {
            return false;
        };
        let name = name.replace('/', "");
        name == stem
            || name == swapped
            || name.trim_end_matches('s') == swapped.trim_end_matches('s')
    });
    for name in names.collect::<Vec<_>>() {
        let mut generator = Generator::new(from.document, rng.fork());
        for _ in 0..16 {
            let Ok(value) = generator.instance(name).to_value() else {
                continue;
            };
            let part = if kind == "result" {
                Some(&value)
            } else {
                value.get("params")
            };
            texts.push(part.map(Value::to_string));
            if let Some(part) = part {
                texts.push(Some(malformed_text(&part.to_string(), rng)));
            }
        }
    }
    texts
}

/// Writes conversions of error objects with different codes and data.
fn record_errors(
    from: &Revision,
    to: &Revision,
    rng: &mut Rng,
    out: &mut impl Write,
) -> io::Result<()> {
    let codes = [
        "-32002", "-32602", "-32042", "-32020", "-32022", "-32050", "-32603", "1e400", "5", "\"x\"",
    ];
    let data = ["", r#","data":{"uri":"file:///gone"}"#, r#","data":[1]"#];
    for method in ["resources/read", "tools/call", "vendor/x", "initialize"] {
        for code in codes {
            for data in data {
                let text = format!(r#"{{"code":{code},"message":"m"{data}}}"#);
                let case = Case {
                    kind: "error",
                    name: method,
                    sender: "server",
                    from: from.revision,
                    to: to.revision,
                    context: rng.next_u64() % 8,
                    text: Some(&text),
                };
                writeln!(out, "{}", case.line())?;
            }
        }
    }
    Ok(())
}

/// Result of comparing recorded with current conversions.
#[derive(Default)]
struct Tally {
    /// Number of conversions with equal outcomes.
    equal_count: usize,
    /// Number of conversions with a difference of each documented group.
    groups: BTreeMap<&'static str, usize>,
    /// Differences without a group, by description, with their number and the line of the first one.
    unexplained: BTreeMap<String, (usize, String)>,
}

impl Tally {
    /// Returns the text of `oracle.txt`: the number of conversions in each group.
    fn to_text(&self) -> String {
        let mut page = "Conversions that differ from the recorded ones by a documented change; \
                        `cargo xtask nightly oracle` compares them.\n\n"
            .to_owned();
        for (name, count) in &self.groups {
            page += &format!("{count:>7} {name}\n");
        }
        let differing: usize = self.groups.values().sum();
        page + &format!("{differing:>7} together, {} agree\n", self.equal_count)
    }
}

/// Compares all recorded conversions with current conversions, and the numbers in each group with `oracle.txt`; ends
/// the process with exit code 1 if they differ.
fn check_recordings(files: &[String]) -> io::Result<()> {
    let mut tally = Tally::default();
    for file in files {
        for line in BufReader::new(File::open(file)?).lines() {
            compare(&line?, &mut tally);
        }
    }
    for (what, (count, example)) in &tally.unexplained {
        println!("{count} × {what}\n{example}\n");
    }
    let page = tally.to_text();
    print!("{page}");
    let expected = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/oracle/oracle.txt");
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        std::fs::write(expected, &page)?;
    }
    if !tally.unexplained.is_empty() {
        eprintln!("the differences above belong to no documented group");
        std::process::exit(1);
    }
    if std::fs::read_to_string(expected)? != page {
        eprintln!("the counts differ from {expected}; UPDATE_EXPECT=1 writes it again");
        std::process::exit(1);
    }
    Ok(())
}

/// Repeats a recorded conversion, and counts it in `tally` as equal, as a documented difference or as an unexplained
/// difference.
fn compare(line: &str, tally: &mut Tally) {
    let case: Value = serde_json::from_str(line).expect("a recorded line is JSON");
    let text = |at: usize| case[at].as_str().unwrap_or_default();
    let known = |at: usize| KnownRevision::parse(text(at)).expect("a known revision");
    let now = Case {
        kind: text(0),
        name: text(1),
        sender: text(2),
        from: known(3),
        to: known(4),
        context: case[5].as_u64().unwrap_or_default(),
        text: case[6].as_str(),
    };
    let (recorded, current) = (&case[7], now.run());
    let Some(kind) = difference(recorded, &current, now.text) else {
        tally.equal_count += 1;
        return;
    };
    let difference = groups::Difference {
        kind,
        recorded,
        current: &current,
        name: now.name,
        target: now.to.as_str(),
    };
    if let Some(group) = difference.group() {
        *tally.groups.entry(group).or_default() += 1;
        return;
    }
    let what = format!(
        "{} {} {} → {}: {kind:?}",
        text(0),
        text(1),
        text(3),
        text(4)
    );
    let example = || (0, format!("  {line}\n  {current}"));
    tally.unexplained.entry(what).or_insert_with(example).0 += 1;
}

/// Returns the kind of difference between two outcomes, `None` if they are equal; outputs are compared as JSON, losses
/// in any order.
fn difference(recorded: &Value, current: &Value, input: Option<&str>) -> Option<Kind> {
    let refused = |outcome: &Value| outcome[0] == "refused";
    match (refused(recorded), refused(current)) {
        (true, true) if recorded == current => return None,
        (true, true) if recorded[1] == current[1] => return Some(Kind::Words),
        (true, true) => return Some(Kind::Refusal),
        (true, false) => return Some(Kind::Converted),
        (false, true) => return Some(Kind::Refused),
        _ => {}
    }
    let parts = |outcome: &Value| -> (Option<String>, Vec<Value>) {
        let (output, losses) = if outcome[0] == "same" {
            (input.map(str::to_owned), &outcome[1])
        } else {
            (outcome[1].as_str().map(str::to_owned), &outcome[2])
        };
        let mut losses = losses.as_array().cloned().unwrap_or_default();
        losses.sort_by_cached_key(Value::to_string);
        (output, losses)
    };
    let ((old, old_losses), (new, new_losses)) = (parts(recorded), parts(current));
    let same_json = match (&old, &new) {
        (Some(a), Some(b)) if a == b => true,
        (Some(a), Some(b)) => match (canonical(a), canonical(b)) {
            (Some(a), Some(b)) => a == b,
            _ => false,
        },
        (a, b) => a == b,
    };
    if !same_json {
        return Some(Kind::Output);
    }
    // Compares pointer and kind of each loss.
    let what = |losses: &[Value]| -> Vec<(String, String)> {
        let parts = |loss: &Value| (loss[0].to_string(), loss[1].to_string());
        losses.iter().map(parts).collect()
    };
    match (
        old_losses == new_losses,
        what(&old_losses) == what(&new_losses),
    ) {
        (true, _) => None,
        (false, true) => Some(Kind::Words),
        (false, false) => Some(Kind::Losses),
    }
}

/// Returns JSON without white space, with sorted members, unescaped strings, and unchanged numbers. Repeated members
/// are kept.
fn canonical(text: &str) -> Option<String> {
    let json: mcp_exact_wire::Json = mcp_exact_wire::from_str(text).ok()?;
    Some(sorted_json(json.view()))
}

/// Returns JSON with sorted members and without white space.
fn sorted_json(json: mcp_exact_wire::JsonRef<'_>) -> String {
    if let Some(object) = json.object() {
        let members = object.iter();
        let mut members: Vec<String> = members
            .map(|(name, value)| format!("{name:?}:{}", sorted_json(value)))
            .collect();
        members.sort_unstable();
        return format!("{{{}}}", members.join(","));
    }
    if json.kind() == mcp_exact_wire::Kind::Array {
        let items: Vec<mcp_exact_wire::Json> = json.decode_as().unwrap_or_default();
        let items: Vec<String> = items.iter().map(|item| sorted_json(item.view())).collect();
        return format!("[{}]", items.join(","));
    }
    match json.as_str() {
        Some(string) => format!("{string:?}"),
        None => json.text().to_owned(),
    }
}
