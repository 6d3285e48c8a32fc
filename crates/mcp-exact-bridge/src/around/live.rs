//! Current rules of a bridge, and what follows from them: each message is handled by the rules that apply when it arrives.

use std::sync::{Arc, PoisonError, RwLock};

use crate::around::losses::{LossCounters, LossSettings, Losses};
use crate::around::options::Options;
use crate::around::repairs::RepairCounters;
use crate::around::rules::Rules;

/// Current rules, and the settings that are derived from them.
#[derive(Debug)]
pub(crate) struct LiveRules {
    /// Current rules, and the settings for losses that are derived from them.
    state: RwLock<(Arc<Rules>, Arc<LossSettings>)>,
    /// Number of losses by id, for metrics.
    counters: Arc<LossCounters>,
    /// Number of repairs, for metrics.
    repairs: Arc<RepairCounters>,
}

impl LiveRules {
    pub(crate) fn new(options: &Options) -> Self {
        let counters = Arc::default();
        let repairs = Arc::new(RepairCounters::new(options.on_repair.clone()));
        let settings = settings(options, &options.rules, &counters);
        Self {
            state: RwLock::new((Arc::new(options.rules.clone()), settings)),
            counters,
            repairs,
        }
    }

    /// Returns the current rules.
    pub(crate) fn rules(&self) -> Arc<Rules> {
        let state = self.state.read().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(&state.0)
    }

    /// Returns the current handling of losses.
    pub(crate) fn losses(&self) -> Losses {
        let state = self.state.read().unwrap_or_else(PoisonError::into_inner);
        Losses::new(Arc::clone(&state.1))
    }

    /// Returns the counters of losses.
    pub(crate) fn counters(&self) -> &LossCounters {
        &self.counters
    }

    /// Returns the counters of repairs.
    pub(crate) fn repairs(&self) -> &Arc<RepairCounters> {
        &self.repairs
    }

    /// Replaces the rules.
    pub(crate) fn set(&self, options: &Options, rules: Rules) {
        let settings = settings(options, &rules, &self.counters);
        let mut state = self.state.write().unwrap_or_else(PoisonError::into_inner);
        *state = (Arc::new(rules), settings);
    }
}

/// Returns the settings for losses that options and rules specify.
fn settings(options: &Options, rules: &Rules, counters: &Arc<LossCounters>) -> Arc<LossSettings> {
    Arc::new(LossSettings {
        policy: rules.losses,
        rules: rules.loss_rules.clone(),
        hook: options.on_loss.clone(),
        counters: Some(Arc::clone(counters)),
        tolerance: options.tolerance,
        in_meta: options.losses_in_meta,
        in_header: options.losses_in_header,
    })
}
