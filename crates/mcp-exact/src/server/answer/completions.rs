//! `completion/complete`.

use super::outcome::ResultForm;
use super::{ActiveRequest, Answer};
use crate::cx::Arguments;
use crate::protocol::PeerError;
use crate::reply::Completions;
use crate::server::Server;
use crate::server::complete::CompletionRequest;
use crate::server::scopes::check_scope;

impl Server {
    /// Begins to answer `completion/complete`.
    pub(super) fn begin_completion(&self, active: ActiveRequest) -> Result<Answer, PeerError> {
        let wanted = CompletionRequest::read_params(active.request.params())?;
        let (reference, argument) = (&wanted.reference, &*wanted.argument);
        let all = &active.catalogue;
        let sees = |listed| self.0.visibility.is_visible(&active.request, listed);
        let entry = all.referenced_entry(reference);
        let entry = entry.filter(|entry| sees(*entry) && all.has_argument(reference, argument));
        let unknown = || {
            PeerError::invalid_params(format!(
                "{} {:?} has no argument {argument:?}",
                reference.kind(),
                reference.name(),
            ))
        };
        check_scope(&active.request, entry.ok_or_else(unknown)?)?;
        let Some(entry) = all.completion(reference, argument) else {
            return Ok(Answer::result(Completions::default().object()));
        };
        let handler = entry.handler.clone();
        let arguments = Arguments::Own(wanted.partial);
        self.begin_handler(active, &handler, arguments, None, ResultForm::Newest)
    }
}
