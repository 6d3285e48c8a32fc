//! Current rules of a bridge, and what follows from them: each message is handled by the rules that apply when it arrives.

use std::sync::Arc;

use parking_lot::RwLock;

use crate::around::losses::{LossCounters, LossSettings, Losses};
use crate::around::options::Options;
use crate::around::repairs::RepairCounters;
use crate::around::rules::Rules;
use crate::around::schemas::ShapeCounters;

/// Current rules, with the settings and counters of losses that they are applied with.
#[derive(Debug)]
pub(crate) struct LiveRules(RwLock<Arc<LossSettings>>);

impl LiveRules {
    pub(crate) fn new(options: &Arc<Options>) -> Self {
        Self(RwLock::new(Arc::new(LossSettings {
            options: Arc::clone(options),
            rules: Arc::new(options.rules.clone()),
            losses: Arc::default(),
            repairs: Arc::new(RepairCounters::new(options.on_repair.clone())),
            shapes: Arc::new(ShapeCounters::new(options.on_unportable_schema.clone())),
        })))
    }

    /// Returns the current rules.
    pub(crate) fn rules(&self) -> Arc<Rules> {
        Arc::clone(&self.0.read().rules)
    }

    /// Returns the current handling of losses.
    pub(crate) fn losses(&self) -> Losses {
        Losses::new(Some(Arc::clone(&self.0.read())))
    }

    /// Returns the counters of losses.
    pub(crate) fn counters(&self) -> Arc<LossCounters> {
        Arc::clone(&self.0.read().losses)
    }

    /// Returns the counters of repairs.
    pub(crate) fn repairs(&self) -> Arc<RepairCounters> {
        Arc::clone(&self.0.read().repairs)
    }

    /// Returns the counters of shapes in the schemas of tools.
    pub(crate) fn shapes(&self) -> Arc<ShapeCounters> {
        Arc::clone(&self.0.read().shapes)
    }

    /// Replaces the rules.
    pub(crate) fn set(&self, rules: Rules) {
        let settings = &mut *self.0.write();
        Arc::make_mut(settings).rules = Arc::new(rules);
    }
}
