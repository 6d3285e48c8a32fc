//! Current rules of a bridge, and what follows from them: each message is handled by the rules that apply when it arrives.

use std::sync::Arc;

use parking_lot::RwLock;

use crate::around::cache::AnswerStore;
use crate::around::losses::{LossCounters, LossSettings, Losses};
use crate::around::options::Options;
use crate::around::pin_states::PinStates;
use crate::around::repairs::RepairCounters;
use crate::around::rules::Rules;
use crate::around::schemas::ShapeCounters;

/// Current rules, with the settings and counters of losses that they are applied with.
#[derive(Debug)]
pub(crate) struct LiveRules {
    settings: RwLock<Arc<LossSettings>>,
    pins: Arc<PinStates>,
    answers: Arc<AnswerStore>,
}

impl LiveRules {
    pub(crate) fn new(options: &Arc<Options>) -> Self {
        let settings = LossSettings {
            options: Arc::clone(options),
            rules: Arc::new(options.rules.clone()),
            losses: Arc::default(),
            repairs: Arc::new(RepairCounters::new(options.on_repair.clone())),
            shapes: Arc::new(ShapeCounters::new(options.on_unportable_schema.clone())),
        };
        Self {
            settings: RwLock::new(Arc::new(settings)),
            pins: Arc::new(PinStates::new(options.on_unpinned_tool.clone())),
            answers: AnswerStore::new(options.cache.unwrap_or_default()),
        }
    }

    /// Returns the current rules.
    pub(crate) fn rules(&self) -> Arc<Rules> {
        Arc::clone(&self.settings.read().rules)
    }

    /// Returns the current handling of losses.
    pub(crate) fn losses(&self) -> Losses {
        Losses::new(Some(Arc::clone(&self.settings.read())))
    }

    /// Returns the counters of losses.
    pub(crate) fn counters(&self) -> Arc<LossCounters> {
        Arc::clone(&self.settings.read().losses)
    }

    /// Returns the counters of repairs.
    pub(crate) fn repairs(&self) -> Arc<RepairCounters> {
        Arc::clone(&self.settings.read().repairs)
    }

    /// Returns the counters of shapes in the schemas of tools.
    pub(crate) fn shapes(&self) -> Arc<ShapeCounters> {
        Arc::clone(&self.settings.read().shapes)
    }

    /// Returns the definitions of tools that servers have sent, in front of their pins.
    pub(crate) fn pins(&self) -> &Arc<PinStates> {
        &self.pins
    }

    /// Returns the answers of all servers that are kept.
    pub(crate) fn answers(&self) -> &Arc<AnswerStore> {
        &self.answers
    }

    /// Replaces the rules, and ends the answers that are kept.
    pub(crate) fn set(&self, rules: Rules) {
        {
            let settings = &mut *self.settings.write();
            Arc::make_mut(settings).rules = Arc::new(rules);
        }
        self.answers.clear();
    }
}
