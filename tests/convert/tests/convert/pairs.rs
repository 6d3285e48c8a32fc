//! Converts every convertible definition between all ordered pairs of revisions. Valid input must yield valid output or
//! a refusal with a reason, every difference must be reported, and a round trip must restore the value.

use std::collections::BTreeMap;

use mcp_exact_convert::{
    Context, ConvertError, KnownRevision, Loss, LossKind, NewerMembers, check_type, convert_type,
    counterpart,
};
use mcp_exact_tests_support::{Cases, Doc, Generator, Rng, Style};
use serde_json::Value;

use crate::checker::{find_differences, is_below, unreported_differences};
use crate::revisions::{Revision, revisions};

/// Seed of the random instances.
const SEED: u64 = 20_260_728;

/// Number of instances of each family that are converted for each pair of revisions.
const INSTANCES_PER_FAMILY: Cases = Cases {
    short: 150,
    long: 2_000,
};

/// Returns the family of a definition: a group of definitions with similar names, such as all requests.
fn family(name: &str) -> &'static str {
    let base = name.strip_suffix("Params").unwrap_or(name);
    if name.starts_with("JSONRPC") {
        "envelope"
    } else if base.ends_with("Request") {
        "requests"
    } else if base.ends_with("Notification") {
        "notifications"
    } else if base.ends_with("Result") {
        "results"
    } else if base.contains("Content") {
        "content"
    } else {
        "types"
    }
}

/// Numbers of conversions by outcome, and the failed checks.
#[derive(Default)]
struct Tally {
    /// Number of successful conversions.
    converted: usize,
    /// Number of refusals.
    refused: usize,
    /// Number of conversions without a loss.
    lossless: usize,
    /// Number of checked round trips.
    round_trips: usize,
    /// Descriptions of the checks that have failed.
    failures: Vec<String>,
}

/// Conversion of one generated instance from one revision to another.
struct Case<'c> {
    /// Source revision.
    from: &'c Revision,
    /// Target revision.
    to: &'c Revision,
    /// Name of the definition in the source revision.
    name: &'c str,
    /// Name of the definition in the target revision.
    target: &'c str,
    /// JSON value of the instance before the conversion.
    before: &'c Value,
    /// Text of the instance, with random white space, member order and escapes.
    text: &'c str,
    /// True if the instance was generated for the target revision, so that it may have members that only the target
    /// revision defines.
    is_of_other_revision: bool,
}

/// Creates a context with a request id.
fn context() -> Context {
    Context::new().request_id("an id")
}

impl Case<'_> {
    /// Returns the description of a failed check: the check `what`, the conversion, and details.
    fn failure_text(&self, what: &str, detail: &str) -> String {
        let Self {
            from,
            to,
            name,
            before,
            ..
        } = self;
        format!(
            "{} → {} {name}: {what}\n  {before}\n  {detail}",
            from.revision, to.revision
        )
    }

    /// Converts the instance and returns the output.
    fn run(&self, cx: &mut Context) -> Result<String, ConvertError> {
        let out = convert_type(
            self.name,
            self.text,
            self.from.revision,
            self.to.revision,
            cx,
        )?;
        Ok(out.into_owned())
    }

    /// Converts the instance, and checks the output or the refusal, the losses and the round trip.
    fn check(&self, tally: &mut Tally) {
        let mut cx = context();
        let out = match self.run(&mut cx) {
            Ok(out) => out,
            Err(refused) => return self.check_refusal(&refused, tally),
        };
        tally.converted += 1;
        let after: Value = match serde_json::from_str(&out) {
            Ok(after) => after,
            Err(error) => {
                return tally
                    .failures
                    .push(self.failure_text("no JSON", &error.to_string()));
            }
        };
        let errors = self.to.oracle.errors(self.target, &after);
        let is_kept = |loss: &Loss| loss.kind == LossKind::Kept;
        if !errors.is_empty() && !cx.losses().iter().any(is_kept) {
            let detail = format!("{out}\n  {errors:?}");
            tally
                .failures
                .push(self.failure_text("not valid in the other revision", &detail));
        }
        let silent = unreported_differences(self.before, &after, cx.losses());
        if !silent.is_empty() {
            let detail = format!("{out}\n  {silent:?}\n  {:?}", cx.losses());
            tally
                .failures
                .push(self.failure_text("unreported differences", &detail));
        }
        for loss in cx.losses() {
            if has_input_value(loss) && self.before.pointer(&loss.pointer).is_none() {
                let detail = format!("{out}\n  {loss}");
                tally
                    .failures
                    .push(self.failure_text("a loss of what is not there", &detail));
            }
        }
        if !cx.is_lossy() {
            tally.lossless += 1;
        }
        if self.from.revision != self.to.revision && is_up(self.from, self.to) {
            self.check_round_trip(&out, cx.losses(), tally);
        }
    }

    /// Checks that a refusal has a reason, and a pointer into the input.
    fn check_refusal(&self, refused: &ConvertError, tally: &mut Tally) {
        tally.refused += 1;
        let known = self.before.pointer(refused.pointer()).is_some()
            || refused
                .pointer()
                .rsplit_once('/')
                .is_some_and(|(parent, _)| self.before.pointer(parent).is_some());
        if refused.reason().is_empty() || !known {
            let detail = format!("{refused}");
            tally
                .failures
                .push(self.failure_text("a refusal without reason or place", &detail));
        }
    }

    /// Converts the output `up` back and compares it with the instance. If newer members are kept, both are equal;
    /// otherwise only values that the losses report differ.
    fn check_round_trip(&self, up: &str, upwards: &[Loss], tally: &mut Tally) {
        // Values that the conversion to the newer revision could not keep are absent after the conversion back.
        let dropped = upwards
            .iter()
            .filter(|loss| has_input_value(loss) || loss.reason == "it means the same as absence")
            .map(|loss| &*loss.pointer);
        let dropped: Vec<&str> = dropped.collect();
        for newer in [NewerMembers::Report, NewerMembers::KeepInExtra] {
            let mut cx = context().newer_members(newer);
            let down = convert_type(
                self.target,
                up,
                self.to.revision,
                self.from.revision,
                &mut cx,
            );
            let down = match down {
                Ok(down) => down,
                Err(_) if self.is_of_other_revision => continue,
                // The value is valid by the schema, and a rule of the types refuses it: it looks like two variants of a union,
                // which an erratum of one revision tells apart. The tests of agreement list these rules.
                Err(_) if check_type(self.target, up, self.to.revision).is_err() => continue,
                Err(refused) => {
                    tally
                        .failures
                        .push(self.failure_text("no way back", &format!("{up}\n  {refused}")));
                    continue;
                }
            };
            let down: Value = serde_json::from_str(&down).expect("JSON");
            let mut missing = find_differences(self.before, &down);
            missing.retain(|place| !is_explained(place, dropped.iter().copied()));
            // Up to 2025-11-25 an empty object of params or metadata has the same meaning as absence.
            missing.retain(|place| !means_absence(self.before, &down, place));
            if newer == NewerMembers::Report || self.is_of_other_revision {
                let reported = || cx.losses().iter().map(|loss| &*loss.pointer);
                missing.retain(|place| !is_explained(place, reported()));
            }
            // The envelope is part of the message, whether the type includes it or not: what a conversion has added to it stays
            // when the message goes back. The revision that `initialize` names is replaced in both directions.
            let envelope = |place: &String| {
                let is_envelope =
                    |l: &Loss| l.reason.contains("envelope") || l.reason.contains("initialize");
                let mut losses = cx.losses().iter().chain(upwards);
                losses.any(|l| *l.pointer == **place && is_envelope(l))
            };
            missing.retain(|place| !envelope(place));
            if self.is_of_other_revision {
                // Values (not members) that only the newer revision defines cannot be expressed in the older revision,
                // and are reported.
                let lossy = |place: &String| {
                    cx.losses()
                        .iter()
                        .any(|l| l.kind.is_lossy() && is_below(place, &l.pointer))
                };
                missing.retain(|place| !lossy(place));
            }
            if missing.is_empty() {
                tally.round_trips += 1;
            } else {
                let detail = format!("{up}\n  {down}\n  {missing:?} {newer:?} {:?}", cx.losses());
                tally
                    .failures
                    .push(self.failure_text("up and down is not where it was", &detail));
            }
        }
    }
}

/// Returns true if the loss has dropped or replaced a value of the input.
fn has_input_value(loss: &Loss) -> bool {
    matches!(loss.kind, LossKind::Dropped | LossKind::Replaced)
}

/// Returns true if one of the JSON pointers equals `place`, or is above or below it.
fn is_explained<'l>(place: &str, mut pointers: impl Iterator<Item = &'l str>) -> bool {
    pointers.any(|pointer| is_below(pointer, place) || is_below(place, pointer))
}

/// Returns true if `to` is a newer revision than `from`.
fn is_up(from: &Revision, to: &Revision) -> bool {
    let place = |known| KnownRevision::ALL.iter().position(|other| *other == known);
    place(from.revision) < place(to.revision)
}

/// Returns true if the JSON pointer `place` refers to `_meta` or params that are absent or empty before and after the
/// conversion.
fn means_absence(before: &Value, after: &Value, place: &str) -> bool {
    let empty = |value: Option<&Value>| {
        value.is_none_or(|value| {
            value.as_object().is_some_and(|o| {
                o.is_empty()
                    || (o.len() == 1
                        && o.get("_meta")
                            .is_some_and(|m| m.as_object().is_some_and(serde_json::Map::is_empty)))
            })
        })
    };
    let member = place.rsplit('/').next();
    matches!(member, Some("_meta" | "params"))
        && empty(before.pointer(place))
        && empty(after.pointer(place))
}

/// Returns `count` or more valid instances of a definition, each with false if it was generated for `from`, and true if
/// it was generated for `to` and may have members that only `to` defines.
fn instances(
    from: &Revision,
    to: &Revision,
    name: &str,
    target: &str,
    count: usize,
    rng: &mut Rng,
) -> Vec<(Doc, bool)> {
    let mut own = Generator::new(from.document, rng.fork());
    let mut other = Generator::new(to.document, rng.fork());
    let mut docs = Vec::with_capacity(count);
    while docs.len() < count {
        docs.push((own.instance(name), false));
        if docs.len() % 4 == 0 {
            let doc = other.instance(target);
            if from.oracle.verdict(name, &doc) == Some(true) {
                docs.push((doc, true));
            }
        }
    }
    docs
}

/// Checks conversions of all definitions from one revision to another; returns descriptions of the failures.
fn pair(from: &Revision, to: &Revision) -> Vec<String> {
    let mut names: BTreeMap<&str, Vec<(&str, &str)>> = BTreeMap::new();
    for name in from.revision.types() {
        if let Some(target) = counterpart(name, from.revision, to.revision)
            && to.revision.types().any(|official| official == target)
        {
            names.entry(family(name)).or_default().push((name, target));
        }
    }
    let mut failures = Vec::new();
    let mut rng = Rng::new(SEED);
    for (family, names) in names {
        let mut tally = Tally::default();
        let each = INSTANCES_PER_FAMILY.number().div_ceil(names.len());
        for (name, target) in names {
            for (doc, foreign) in instances(from, to, name, target, each, &mut rng) {
                let text = doc.write(Style::ALL_VARIATIONS, &mut rng);
                let Ok(before) = doc.to_value() else { continue };
                let case = Case {
                    from,
                    to,
                    name,
                    target,
                    before: &before,
                    text: &text,
                    is_of_other_revision: foreign,
                };
                case.check(&mut tally);
            }
        }
        let Tally {
            converted,
            refused,
            lossless,
            round_trips,
            ..
        } = tally;
        println!(
            "{} → {} {family}: {converted} converted, {lossless} of them without loss, {refused} refused, {round_trips} up and back",
            from.revision, to.revision
        );
        assert!(
            converted + refused >= INSTANCES_PER_FAMILY.number(),
            "{family}: too few instances"
        );
        let count = tally.failures.len();
        // The smallest instance says the most.
        tally.failures.sort_by_key(String::len);
        tally.failures.truncate(3);
        if count > 0 {
            failures.push(format!("{count} wrong\n{}", tally.failures.join("\n")));
        }
    }
    failures
}

/// Returns the ordered pairs to test: all pairs, or only those of the revision in `MCP_EXACT_REVISION` with the next
/// older and the next newer revision.
fn ordered_pairs() -> Vec<(&'static Revision, &'static Revision)> {
    let only = std::env::var("MCP_EXACT_REVISION").ok();
    let all = revisions();
    let places = (0..all.len()).flat_map(|from| (0..all.len()).map(move |to| (from, to)));
    let wanted = places.filter(|(from, to)| {
        let named = |at: usize| {
            only.as_deref()
                .is_none_or(|id| all[at].revision.as_str() == id)
        };
        let near = only.is_none() || from.abs_diff(*to) == 1;
        from != to && near && (named(*from) || named(*to))
    });
    wanted.map(|(from, to)| (&all[from], &all[to])).collect()
}

/// Every conversion of a valid instance has a valid output or a refusal with a reason, and a loss for every difference.
#[test]
fn every_difference_is_reported() {
    let pairs = ordered_pairs();
    let halves = pairs.split_at(pairs.len() / 2);
    let run = |pairs: &[(&Revision, &Revision)]| -> Vec<String> {
        pairs.iter().flat_map(|(from, to)| pair(from, to)).collect()
    };
    let failures = std::thread::scope(|scope| {
        let other = scope.spawn(|| run(halves.1));
        let mut failures = run(halves.0);
        failures.extend(other.join().expect("no panic"));
        failures
    });
    println!("{} ordered pairs", pairs.len());
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
}
