//! States of a server, which handlers receive by their types.

use std::any::{Any, TypeId, type_name};
use std::collections::HashMap;
use std::sync::Arc;

/// States of a server, by type.
#[derive(Clone, Default)]
pub(crate) struct States(Arc<HashMap<TypeId, RegisteredState>>);

/// A state and the name of its type.
#[derive(Clone)]
struct RegisteredState {
    /// Name of the state's type.
    name: &'static str,
    state: Arc<dyn Any + Send + Sync>,
}

impl States {
    /// Adds a state; replaces an earlier one of the same type.
    pub(crate) fn insert<S: Clone + Send + Sync + 'static>(&mut self, state: S) {
        let kept = RegisteredState {
            name: type_name::<S>(),
            state: Arc::new(state),
        };
        Arc::make_mut(&mut self.0).insert(TypeId::of::<S>(), kept);
    }

    /// Returns a copy of the state of the type `S`.
    pub(crate) fn get<S: Clone + Send + Sync + 'static>(&self) -> Option<S> {
        let kept = self.0.get(&TypeId::of::<S>())?;
        kept.state.downcast_ref::<S>().cloned()
    }

    /// Returns true if there is a state of this type.
    pub(crate) fn contains(&self, state: TypeId) -> bool {
        self.0.contains_key(&state)
    }

    /// Adds the states of another builder; returns the names of the types that both builders have.
    pub(crate) fn merge(&mut self, other: &Self) -> Vec<&'static str> {
        let states = Arc::make_mut(&mut self.0);
        let mut twice = Vec::new();
        for (id, kept) in other.0.iter() {
            if states.insert(*id, kept.clone()).is_some() {
                twice.push(kept.name);
            }
        }
        twice.sort_unstable();
        twice
    }
}
