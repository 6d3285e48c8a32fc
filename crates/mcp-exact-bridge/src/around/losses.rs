//! Losses of conversions: their handling by rules, their counts, and their report to clients.

use std::collections::BTreeMap;
use std::sync::Arc;

use mcp_exact_convert::Loss;
use mcp_exact_session::{Json, JsonObject, LossPolicy, RawResult, Repair, Revision, Tolerance};
use mcp_exact_transport::RequestContext;
use parking_lot::Mutex;

use crate::around::access::matches;
use crate::around::loss_rules::{LossHook, LossReport, LossRule};
use crate::around::options::Options;
use crate::around::repairs::{RepairCounters, RepairReport};
use crate::around::rules::Rules;
use crate::around::schemas::ShapeCounters;

/// Member of a result's `_meta` that lists the losses of the request and its result.
pub(crate) const LOSSES_META: &str = "mcp-exact/losses";

/// Header of an HTTP response that lists the ids of the losses of a request and its result.
#[cfg(feature = "http-server")]
const LOSSES_HEADER: &str = "mcp-exact-losses";

/// Maximum length of the header `mcp-exact-losses`, in bytes.
#[cfg(any(test, feature = "http-server"))]
const MAX_HEADER_BYTES: usize = 1024;

/// Maximum number of losses that a result lists.
const MAX_LISTED_LOSSES: usize = 100;

/// Maximum number of kinds of losses that are counted separately, because clients and servers choose the names of some
/// members.
const MAX_COUNTED_KINDS: usize = 1000;

/// Id under which all kinds of losses above [`MAX_COUNTED_KINDS`] are counted, and which ends a truncated list in the
/// header.
const OTHER_KINDS: &str = "other";

/// Number of losses by id.
#[derive(Debug, Default)]
pub(crate) struct LossCounters(Mutex<BTreeMap<String, u64>>);

impl LossCounters {
    /// Counts a loss by its id.
    fn count(&self, id: &str) {
        let mut counted = self.0.lock();
        let is_known = counted.contains_key(id);
        let id = if is_known || counted.len() < MAX_COUNTED_KINDS {
            id
        } else {
            OTHER_KINDS
        };
        *counted.entry(id.to_owned()).or_default() += 1;
    }

    /// Returns the number of losses by id.
    pub(crate) fn counted(&self) -> BTreeMap<String, u64> {
        self.0.lock().clone()
    }
}

/// Settings of the bridge for the handling of losses, and what is counted.
#[derive(Debug, Clone)]
pub(crate) struct LossSettings {
    pub(crate) options: Arc<Options>,
    /// Current rules.
    pub(crate) rules: Arc<Rules>,
    pub(crate) losses: Arc<LossCounters>,
    pub(crate) repairs: Arc<RepairCounters>,
    pub(crate) shapes: Arc<ShapeCounters>,
}

impl LossSettings {
    /// Returns the policy for the loss with an id.
    fn policy_of(&self, id: &str) -> LossPolicy {
        let is_for = |rule: &&LossRule| rule.losses.iter().any(|pattern| matches(pattern, id));
        let rule = self.rules.loss_rules.iter().rev().find(is_for);
        rule.map_or(self.rules.losses, |rule| rule.policy)
    }
}

/// Handling of losses in the messages of one request, or in messages outside of requests.
#[derive(Debug, Clone)]
pub(crate) struct Losses {
    /// Settings; `None` for values that only the bridge reads, whose losses are accepted without a report.
    settings: Option<Arc<LossSettings>>,
    /// Where repairs in the server's results are reported; `None` if no result is converted.
    repairs: Option<RepairReport>,
    /// Losses to list in the result's `_meta`, from the request and its result; `None` if results do not list losses.
    listed: Option<Arc<Mutex<Vec<Json>>>>,
    /// Request over HTTP whose response lists the ids of the losses; `None` if responses do not list them.
    request: Option<RequestContext>,
}

impl Losses {
    pub(crate) fn new(settings: Option<Arc<LossSettings>>) -> Self {
        Self {
            settings,
            repairs: None,
            listed: None,
            request: None,
        }
    }

    fn is_set(&self, option: impl FnOnce(&Options) -> bool) -> bool {
        let settings = self.settings.as_ref();
        settings.is_some_and(|settings| option(&settings.options))
    }

    /// Returns the same handling for the results of a server.
    pub(crate) fn of_server(mut self, repairs: &RepairReport) -> Self {
        self.repairs = Some(repairs.clone());
        self
    }

    /// Returns the same handling for one request, whose result and response list its losses if the settings require it.
    pub(crate) fn of_request(&self, request: &RequestContext) -> Self {
        let is_listed = self.is_set(|options| options.losses_in_meta);
        Self {
            listed: is_listed.then(Arc::default),
            ..self.of_retry(request)
        }
    }

    /// Returns the handling for the retry of a call: later losses are listed in the header of the response to the
    /// retry.
    pub(crate) fn of_retry(&self, request: &RequestContext) -> Self {
        let is_listed = self.is_set(|options| options.losses_in_header);
        Self {
            request: is_listed.then(|| request.clone()),
            ..self.clone()
        }
    }

    /// Returns the policy for results that do not match their schema.
    pub(crate) fn tolerance(&self) -> Tolerance {
        let settings = self.settings.as_ref();
        settings.map_or(Tolerance::Strict, |settings| settings.options.tolerance)
    }

    /// Reports the repairs of a result.
    pub(crate) fn report_repairs(&self, method: &str, repairs: &[Repair]) {
        if let Some(report) = &self.repairs {
            report.report(method, repairs);
        }
    }

    /// Returns the first loss whose policy is to refuse the message.
    pub(crate) fn refused<'l>(
        &self,
        method: &str,
        (from, to): (Revision, Revision),
        losses: &'l [Loss],
    ) -> Option<&'l Loss> {
        let settings = self.settings.as_ref()?;
        let rules = &settings.rules;
        if rules.loss_rules.is_empty() && rules.losses != LossPolicy::Refuse {
            return None;
        }
        let mut lossy = losses.iter().filter(|loss| loss.kind.is_lossy());
        lossy.find(|loss| {
            let report = LossReport {
                method,
                from,
                to,
                loss,
            };
            settings.policy_of(&report.id()) == LossPolicy::Refuse
        })
    }

    /// Counts losses, and reports each loss unless its policy is to accept it.
    pub(crate) fn report(
        &self,
        method: &str,
        (from, to): (Revision, Revision),
        losses: &[Loss],
        is_result: bool,
    ) {
        let Some(settings) = &self.settings else {
            return;
        };
        for loss in losses.iter().filter(|loss| loss.kind.is_lossy()) {
            let report = LossReport {
                method,
                from,
                to,
                loss,
            };
            let id = report.id();
            settings.losses.count(&id);
            if settings.policy_of(&id) == LossPolicy::Accept {
                continue;
            }
            match &settings.options.on_loss {
                Some(LossHook(hook)) => {
                    tracing::debug!(method, %from, %to, %loss, id, "a conversion lost information");
                    hook(&report);
                }
                None => {
                    tracing::warn!(method, %from, %to, %loss, id, "a conversion lost information");
                }
            }
            if let Some(request) = &self.request {
                list_in_header(request, &id);
            }
            if let Some(listed) = &self.listed {
                let mut listed = listed.lock();
                if listed.len() < MAX_LISTED_LOSSES {
                    listed.push(entry(&report, is_result));
                }
            }
        }
    }

    /// Adds the recorded losses of a request to the `_meta` of its result; without losses, the result is unchanged.
    pub(crate) fn list_in_result(&self, result: RawResult) -> RawResult {
        match &self.listed {
            Some(listed) if !listed.lock().is_empty() => self.list_in(result.into_object()).into(),
            _ => result,
        }
    }

    /// Adds the losses of a request and its result to the `_meta` of the result, if the settings require it.
    pub(crate) fn list_in(&self, result: JsonObject) -> JsonObject {
        let Some(listed) = &self.listed else {
            return result;
        };
        let listed = std::mem::take(&mut *listed.lock());
        with_losses(result, &listed)
    }
}

/// Adds the id of a loss to the header of the response to a request, if the request came over HTTP.
#[cfg(feature = "http-server")]
fn list_in_header(request: &RequestContext, id: &str) {
    request.update_response_header(LOSSES_HEADER, |listed| with_id(listed, id));
}

/// Does nothing, because without the feature `http-server` no request comes over HTTP.
#[cfg(not(feature = "http-server"))]
fn list_in_header(_: &RequestContext, _: &str) {}

/// Adds an id to a list of ids. The list has at most [`MAX_HEADER_BYTES`] bytes; `other` replaces all further ids.
/// Characters that a header cannot contain are percent-encoded.
#[cfg(any(test, feature = "http-server"))]
fn with_id(listed: &str, id: &str) -> String {
    use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};

    const ENCODED: &AsciiSet = &CONTROLS.add(b' ').add(b',').add(b'%');
    let encoded = utf8_percent_encode(id, ENCODED).to_string();
    let ids = || listed.split(", ");
    let has_room =
        listed.len() + encoded.len() + 2 * ", ".len() + OTHER_KINDS.len() <= MAX_HEADER_BYTES;
    let more = if has_room { &*encoded } else { OTHER_KINDS };
    if ids().any(|known| known == more || known == OTHER_KINDS) {
        listed.to_owned()
    } else if listed.is_empty() {
        more.to_owned()
    } else {
        format!("{listed}, {more}")
    }
}

/// Adds losses to the `_meta` of a result; without losses, the result is unchanged.
pub(crate) fn with_losses(mut result: JsonObject, losses: &[Json]) -> JsonObject {
    if losses.is_empty() {
        return result;
    }
    let meta = result.view().find("_meta").and_then(|meta| meta.object());
    let mut meta = meta.map(|meta| meta.to_object()).unwrap_or_default();
    meta.insert(LOSSES_META, Json::from_encode(&losses.to_vec()));
    result.insert("_meta", meta);
    result
}

/// Returns the losses that a result lists.
pub(crate) fn listed_in(result: &JsonObject) -> Vec<Json> {
    let meta = result.view().find("_meta").and_then(|meta| meta.object());
    let listed = meta.and_then(|meta| meta.find(LOSSES_META));
    listed
        .and_then(|listed| listed.decode_as().ok())
        .unwrap_or_default()
}

/// Returns the JSON object that lists a loss in `_meta`.
fn entry(report: &LossReport<'_>, is_result: bool) -> Json {
    let loss = report.loss;
    let mut entry = JsonObject::from_iter([
        ("id", Json::string(&report.id())),
        (
            "in",
            Json::string(if is_result { "result" } else { "params" }),
        ),
        ("kind", Json::string(loss.kind.name())),
        ("pointer", Json::string(&loss.pointer)),
        ("reason", Json::string(&loss.reason)),
    ]);
    if let Some(subject) = &loss.subject {
        entry.insert("subject", Json::string(subject));
    }
    entry.into()
}

#[cfg(test)]
mod tests {
    use mcp_exact_convert::{KnownRevision, LossKind};

    use super::*;

    /// Creates a loss at a JSON pointer.
    fn loss(pointer: &str) -> Loss {
        Loss {
            pointer: pointer.into(),
            subject: None,
            kind: LossKind::Dropped,
            revision: KnownRevision::V2024_11_05,
            reason: "a reason".into(),
        }
    }

    /// Creates settings with rules, and with the default policy to report losses.
    fn settings(loss_rules: Vec<LossRule>) -> LossSettings {
        let rules = Rules {
            loss_rules,
            ..Rules::default()
        };
        LossSettings {
            options: Arc::new(Options {
                losses_in_meta: true,
                ..Options::default()
            }),
            rules: Arc::new(rules),
            losses: Arc::default(),
            repairs: Arc::new(RepairCounters::new(None)),
            shapes: Arc::new(ShapeCounters::new(None)),
        }
    }

    /// Revisions of the sender and the receiver.
    const REVISIONS: (Revision, Revision) = (
        KnownRevision::V2025_11_25.revision(),
        KnownRevision::V2024_11_05.revision(),
    );

    /// The header with the ids of losses has a maximum length.
    #[test]
    fn losses_header_has_maximum_length() {
        let mut listed = with_id("", "tools/list:dropped:/tools/*/ü,%");
        assert_eq!(listed, "tools/list:dropped:/tools/*/%C3%BC%2C%25");
        assert_eq!(with_id(&listed, "tools/list:dropped:/tools/*/ü,%"), listed);
        for number in 0..1000 {
            listed = with_id(&listed, &format!("tools/list:dropped:/{number}"));
            assert!(listed.len() <= MAX_HEADER_BYTES);
        }
        assert!(listed.ends_with(", other"), "{listed}");
        let long = with_id("", &"x".repeat(MAX_HEADER_BYTES));
        assert_eq!(long, OTHER_KINDS);
    }

    /// If several rules match a loss, the last one decides its policy.
    #[test]
    fn the_last_matching_rule_decides() {
        let rules = vec![
            LossRule::new(["tools/*"], LossPolicy::Refuse),
            LossRule::new(["tools/list:dropped:/tools/*/icons"], LossPolicy::Accept),
        ];
        let losses = Losses::new(Some(Arc::new(settings(rules))));
        let refused = |method, pointer| {
            losses
                .refused(method, REVISIONS, &[loss(pointer)])
                .is_some()
        };
        assert!(refused("tools/list", "/tools/0/title"));
        assert!(!refused("tools/list", "/tools/17/icons"));
        assert!(!refused("prompts/list", "/prompts/0/title"));
    }

    /// Losses with the policy to accept them are counted, and are not listed in results.
    #[test]
    fn accepted_losses_are_counted_and_not_listed() {
        let rules = vec![LossRule::new(["*/icons"], LossPolicy::Accept)];
        let settings = Arc::new(settings(rules));
        let losses =
            Losses::new(Some(Arc::clone(&settings))).of_request(&RequestContext::default());
        let both = [
            loss("/tools/0/icons"),
            loss("/tools/1/icons"),
            loss("/tools/1/title"),
        ];
        losses.report("tools/list", REVISIONS, &both, true);
        let counted = settings.losses.counted();
        let counted: Vec<_> = counted
            .iter()
            .map(|(id, count)| (id.as_str(), *count))
            .collect();
        assert_eq!(
            counted,
            [
                ("tools/list:dropped:/tools/*/icons", 2),
                ("tools/list:dropped:/tools/*/title", 1),
            ]
        );
        let result: JsonObject = r#"{"tools":[],"_meta":{"a":1}}"#.parse().expect("an object");
        let result = losses.list_in(result);
        assert_eq!(
            result.text(),
            r#"{"tools":[],"_meta":{"a":1,"mcp-exact/losses":[{"id":"tools/list:dropped:/tools/*/title","in":"result","kind":"dropped","pointer":"/tools/1/title","reason":"a reason"}]}}"#
        );
        assert_eq!(listed_in(&result).len(), 1);
    }

    /// The number of ids that are counted separately has a maximum.
    #[test]
    fn counted_loss_ids_are_limited() {
        let counters = LossCounters::default();
        for number in 0..MAX_COUNTED_KINDS + 10 {
            counters.count(&format!("tools/call:dropped:/arguments/name-{number}"));
        }
        let counted = counters.counted();
        assert_eq!(counted.len(), MAX_COUNTED_KINDS + 1);
        assert_eq!(counted[OTHER_KINDS], 10);
    }
}
