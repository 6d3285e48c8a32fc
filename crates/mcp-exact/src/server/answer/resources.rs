//! `resources/read`, and the subscriptions of sessions to resources.

use super::outcome::ResultForm;
use super::{ActiveRequest, Answer};
use crate::cx::Arguments;
use crate::handler::ErasedHandler;
use crate::link::Request;
use crate::params::required_string;
use crate::protocol::{JsonObject, PeerError, method, resource_not_found};
use crate::server::Server;
use crate::server::catalogue::parse_string_arguments;
use crate::server::scopes::check_scope;
use crate::server::visibility::ListedDefinition;

impl Server {
    /// Begins to answer `resources/read`.
    pub(super) fn begin_resource_read(&self, active: ActiveRequest) -> Result<Answer, PeerError> {
        let uri = required_string(active.request.params(), "uri")?;
        let (handler, arguments) = self.find_resource(&active, &uri)?;
        let arguments = Arguments::Own(arguments);
        self.begin_handler(active, &handler, arguments, Some(uri), ResultForm::Newest)
    }

    /// Returns the handler that reads a URI, and the variables that the URI contains. Fixed URIs have precedence over
    /// templates.
    fn find_resource(
        &self,
        active: &ActiveRequest,
        uri: &str,
    ) -> Result<(ErasedHandler<JsonObject>, JsonObject), PeerError> {
        let sees = |listed| self.0.visibility.is_visible(&active.request, listed);
        let fixed = active.catalogue.resource(uri);
        if let Some(entry) = fixed.filter(|entry| sees(ListedDefinition::Resource(&entry.resource)))
        {
            check_scope(&active.request, ListedDefinition::Resource(&entry.resource))?;
            return Ok((entry.handler.clone(), JsonObject::new()));
        }
        let mut matching = active.catalogue.matching_templates(uri);
        let (entry, values) = matching
            .find(|(entry, _)| sees(ListedDefinition::Template(&entry.template)))
            .ok_or_else(|| resource_not_found(uri))?;
        check_scope(&active.request, ListedDefinition::Template(&entry.template))?;
        let arguments = parse_string_arguments(entry.input.as_ref(), values);
        Ok((entry.handler.clone(), arguments))
    }

    /// Answers `resources/subscribe`.
    pub(super) fn answer_subscribe(&self, active: &ActiveRequest) -> Result<JsonObject, PeerError> {
        let uri = required_string(active.request.params(), "uri")?;
        if !self.may_subscribe(&active.request, &uri) {
            return Err(resource_not_found(&uri));
        }
        self.listeners()
            .record_subscription(&active.link, &active.request);
        Ok(JsonObject::new())
    }

    /// Returns true if the sender of a request may be notified of changes of a resource, that is, if the sender can
    /// read the resource.
    pub(crate) fn may_subscribe(&self, request: &Request, uri: &str) -> bool {
        let catalogue = self.catalogue();
        let sees = |listed| {
            self.0.visibility.is_visible(request, listed) && check_scope(request, listed).is_ok()
        };
        let fixed = catalogue.resource(uri);
        fixed.is_some_and(|entry| sees(ListedDefinition::Resource(&entry.resource)))
            || catalogue
                .matching_templates(uri)
                .any(|(entry, _)| {
                    let template = entry.template.template();
                    let checks = self.0.subscription_checks.iter();
                    let mut checks = checks.filter(|(checked, _)| *checked == template);
                    sees(ListedDefinition::Template(&entry.template))
                        && checks.all(|(_, check)| check(self, request, uri))
                })
            // Only the application knows which resources exist.
            || catalogue.registered_method(method::RESOURCES_READ, Some(uri)).is_some()
    }
}
