//! Revisions that a peer supports by descending preference, and the oldest acceptable revision.

use mcp_exact_revisions::{Lifecycle, RevisionSpec};
use mcp_exact_wire::Revision;

use crate::error::ConfigError;

/// Revisions that a peer supports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Offer {
    /// Revisions by descending preference.
    pub revisions: Vec<Revision>,
    /// Oldest acceptable revision; older revisions in `revisions` are ignored. If this revision is unknown, no revision
    /// is offered.
    pub oldest: Option<Revision>,
}

impl Default for Offer {
    /// Offers all known revisions, the newest first, without a limit for the oldest acceptable revision.
    fn default() -> Self {
        Self {
            revisions: crate::revisions().rev().collect(),
            oldest: None,
        }
    }
}

impl Offer {
    /// Offers these revisions, which are listed by descending preference.
    ///
    /// # Errors
    ///
    /// [`ConfigError::UnknownRevision`] if a revision is unknown.
    pub fn new<'r>(ids: impl IntoIterator<Item = &'r str>) -> Result<Self, ConfigError> {
        let known = |id: &str| {
            let spec = crate::find_revision(id);
            spec.map(RevisionSpec::revision)
                .ok_or_else(|| ConfigError::UnknownRevision(id.to_owned()))
        };
        Ok(Self {
            revisions: ids.into_iter().map(known).collect::<Result<_, _>>()?,
            oldest: None,
        })
    }

    /// Iterates over the properties of the offered revisions, in the order of the offer.
    pub(crate) fn offered_specs(&self) -> impl Iterator<Item = &'static RevisionSpec> {
        let known = |id: &Revision| crate::find_revision(id.as_str());
        // If `oldest` is unknown, no revision is offered.
        let floor = self
            .oldest
            .as_ref()
            .map(|floor| known(floor).map_or(usize::MAX, RevisionSpec::index));
        let allowed = move |spec: &&RevisionSpec| floor.is_none_or(|floor| spec.index() >= floor);
        self.revisions.iter().filter_map(known).filter(allowed)
    }

    /// Iterates over the offered revisions of a lifecycle, in the order of the offer.
    pub(crate) fn specs_of_lifecycle(
        &self,
        lifecycle: Lifecycle,
    ) -> impl Iterator<Item = &'static RevisionSpec> {
        self.offered_specs()
            .filter(move |spec| spec.lifecycle() == lifecycle)
    }

    /// Returns the most preferred offered revision of a lifecycle for which `fits` returns true.
    pub(crate) fn choose(
        &self,
        lifecycle: Lifecycle,
        fits: impl Fn(&'static RevisionSpec) -> bool,
    ) -> Option<&'static RevisionSpec> {
        self.specs_of_lifecycle(lifecycle).find(|spec| fits(spec))
    }

    /// Returns true if a revision of the lifecycle is offered.
    pub(crate) fn offers(&self, lifecycle: Lifecycle) -> bool {
        self.specs_of_lifecycle(lifecycle).next().is_some()
    }

    /// Returns true if a revision is offered.
    pub(crate) fn contains(&self, requested: &RevisionSpec) -> bool {
        self.offered_specs().any(|spec| spec == requested)
    }

    /// Returns the revision with this id, if the revision is offered.
    pub(crate) fn find(&self, id: &str) -> Option<&'static RevisionSpec> {
        crate::find_revision(id).filter(|spec| self.contains(spec))
    }

    /// Returns the offered revisions, in the order of the offer.
    pub(crate) fn offered_revisions(&self) -> Vec<Revision> {
        self.offered_specs().map(RevisionSpec::revision).collect()
    }

    /// Returns the ids of the offered revisions, in the order of the offer.
    pub(crate) fn ids(&self) -> Vec<String> {
        self.offered_specs()
            .map(|spec| spec.id().to_owned())
            .collect()
    }

    /// Checks that every revision is known and that at least one is offered.
    pub(crate) fn check(&self) -> Result<(), ConfigError> {
        let unknown = |id: &&Revision| crate::find_revision(id.as_str()).is_none();
        if let Some(id) = self.revisions.iter().chain(&self.oldest).find(unknown) {
            return Err(ConfigError::UnknownRevision(id.as_str().to_owned()));
        }
        match self.offered_specs().next() {
            Some(_) => Ok(()),
            None => Err(ConfigError::NoRevision),
        }
    }
}
