//! Rules for sent and received messages. Only this module compares methods and revisions.
//!
//! Every received or sent message, typed or raw, is checked by [`Rules`]. [`rule`] defines a row, [`table`] contains
//! the rows, [`index`] finds a row, [`capability`] checks capabilities, and [`results`] checks kinds of results. A
//! check returns the handler of the message, or the reason for its refusal.

pub(crate) mod capability;
mod index;
#[cfg(test)]
mod matrix;
pub(crate) mod results;
mod rule;
mod table;

use mcp_exact_revisions::{Lifecycle, MethodId, RevisionSpec, Side};
use mcp_exact_wire::{JsonObject, JsonRef};

use crate::builtin_notifications::has_progress_token;
use crate::call_method::MethodName;
use crate::capabilities::DeclaredCapabilities;
use crate::change::{Change, ChangeKind};
use crate::error::SendError;
use crate::extensions::{Extension, ExtensionPolicy, Extensions};
use crate::filter::Filter;
use crate::input_request;
use crate::message::READ_PARAMS;
use crate::refusal::Refusal;

pub(crate) use capability::{MissingCapability, RequiredCapability};
pub(crate) use rule::{
    CachePolicy, Handler, MessageKind, Placement, Rule, SendingParty, TaskEffect,
};
use table::RULES;

/// Returns the rule-table row of a method, whichever revision defines the method.
fn row_of_method(kind: MessageKind, sender: Side, method: MethodId) -> Option<&'static Rule> {
    let (_, rule) = index::find_row(kind, sender, method)?;
    is_present(rule).then_some(rule)
}

/// Iterates over all rows of the rule table.
fn rows() -> impl Iterator<Item = &'static Rule> {
    RULES.iter().filter(|rule| is_present(rule))
}

#[cfg(test)]
use matrix::is_present;

/// Returns true; unit tests remove one row at a time to prove that each row has an effect.
#[cfg(not(test))]
const fn is_present(_: &Rule) -> bool {
    true
}

/// Returns the rule-table row of a method, if the revision defines the method.
pub(crate) fn find_row(
    kind: MessageKind,
    sender: Side,
    method: &(impl MethodName + ?Sized),
    spec: &RevisionSpec,
) -> Option<&'static Rule> {
    let (number, rule) = index::find_row(kind, sender, method.id())?;
    (index::is_defined(number, spec) && is_present(rule)).then_some(rule)
}

/// Returns the rule-table row of a client request, if the revision defines the request.
pub(crate) fn client_request(
    method: &(impl MethodName + ?Sized),
    spec: &RevisionSpec,
) -> Option<&'static Rule> {
    find_row(MessageKind::Request, Side::Client, method, spec)
}

/// Returns the rule-table row of a message, if the message is allowed before a revision is negotiated.
pub(crate) fn row_before_negotiation(
    kind: MessageKind,
    sender: Side,
    method: &(impl MethodName + ?Sized),
) -> Option<&'static Rule> {
    row_of_method(kind, sender, method.id()).filter(|rule| rule.is_allowed_early)
}

/// Returns true if the client request starts a session.
pub(crate) fn is_initialize(method: &(impl MethodName + ?Sized)) -> bool {
    /// Row of the only request with this handler.
    static ROW: &Rule = {
        let mut at = 0;
        while !matches!(RULES[at].handler, Handler::Initialize) {
            at += 1;
        }
        &RULES[at]
    };
    method.id() == ROW.id && is_present(ROW)
}

/// Returns true if the client request starts a subscription.
pub(crate) fn is_listen(method: &(impl MethodName + ?Sized), spec: &RevisionSpec) -> bool {
    client_request(method, spec).is_some_and(|rule| rule.handler == Handler::Listen)
}

/// Target of a notification that a server sends: the client, or the stream of a request.
#[derive(Debug, Clone, Copy)]
pub(crate) enum NotificationTarget<'a> {
    /// The client, independent of any request.
    Client,
    /// The stream of a request, with the filter if the request is a subscription.
    Request(Option<&'a Filter>),
    /// The stream of a subscription that is not acknowledged yet: the server "MUST NOT send any notification on the subscription
    /// before it" (2026-07-28, `basic/patterns/subscriptions`).
    Unacknowledged,
}

/// Members of the params of an outgoing request.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct SentMembers<'a> {
    /// Value of the member `_meta`.
    meta: Option<JsonRef<'a>>,
    /// Value of the member `task`.
    pub(crate) task: Option<JsonRef<'a>>,
    /// True if none of [`READ_PARAMS`] is present.
    pub(crate) is_plain: bool,
}

impl<'a> SentMembers<'a> {
    /// Locates the members in the params.
    pub(crate) fn locate(params: &'a JsonObject) -> Self {
        let [name, responses, state] = READ_PARAMS;
        let [meta, responses, state, task] =
            params.view().find_rare([name, responses, state, "task"]);
        Self {
            meta,
            task,
            is_plain: meta.or(responses).or(state).is_none(),
        }
    }
}

/// Rules for the messages of the local peer and the remote peer in the negotiated revision.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rules<'a> {
    /// Properties of the negotiated revision.
    pub(crate) spec: &'static RevisionSpec,
    /// Role of the local peer: client or server.
    pub(crate) local_role: Side,
    /// Capabilities of the local peer.
    pub(crate) capabilities: DeclaredCapabilities<'a>,
    /// Capabilities of the remote peer.
    pub(crate) peer_capabilities: DeclaredCapabilities<'a>,
    /// Extensions and vendor-specific methods of the configuration.
    pub(crate) extensions: &'a Extensions,
}

impl<'a> Rules<'a> {
    /// Returns the role of the remote peer.
    fn remote_role(&self) -> Side {
        self.local_role.peer()
    }

    /// Returns true if the negotiated revision has no handshake.
    fn is_discover(&self) -> bool {
        self.spec.lifecycle() == Lifecycle::Discover
    }

    /// Returns true if the revision defines a message of any kind with this method that the role `side` sends,
    /// including requests within results.
    fn is_sent_by(&self, side: Side, method: &str) -> bool {
        self.spec.sends_request(side, method)
            || self.spec.sends_notification(side, method)
            || find_row(MessageKind::InputRequest, side, method, self.spec).is_some()
    }

    /// Returns the handler of a received request.
    ///
    /// # Errors
    /// The refusal with which the request is answered.
    pub(crate) fn check_received_request(
        &self,
        method: &(impl MethodName + ?Sized),
        params: Option<&JsonObject>,
    ) -> Result<Handler, Refusal> {
        if let Some(extension) = self.extension_of_request(method.name(), self.remote_role()) {
            return if extension.is_declared(self.peer_capabilities.object) {
                Ok(Handler::Application)
            } else {
                Err(Refusal::MissingExtension(extension.id.clone()))
            };
        }
        let Some(rule) = find_row(MessageKind::Request, self.remote_role(), method, self.spec)
        else {
            let method = method.name();
            let vendor = self.is_vendor_method(&self.extensions.requests, method);
            return if vendor && !self.is_sent_by(self.local_role, method) {
                Ok(Handler::Application)
            } else {
                Err(Refusal::UnknownMethod(method.to_owned()))
            };
        };
        if let Some(missing) =
            self.undeclared_capability(rule.receiver_capability, params, self.capabilities)
        {
            return Err(missing.refusal(self.local_role));
        }
        check_received_params(rule, params, self.spec).map_err(Refusal::InvalidParams)?;
        Ok(rule.handler)
    }

    /// Returns the handler of a received notification.
    ///
    /// # Errors
    /// The reason for which the notification is dropped.
    pub(crate) fn check_received_notification(
        &self,
        method: &(impl MethodName + ?Sized),
    ) -> Result<Handler, Refusal> {
        let Some(rule) = find_row(
            MessageKind::Notification,
            self.remote_role(),
            method,
            self.spec,
        ) else {
            let method = method.name();
            let vendor = self.is_vendor_method(&self.extensions.notifications, method);
            let known = vendor && !self.is_sent_by(self.local_role, method);
            let extension = self.extension_of_notification(method, self.remote_role());
            return if known
                || extension.is_some_and(|known| known.is_declared(self.peer_capabilities.object))
            {
                Ok(Handler::Application)
            } else {
                Err(Refusal::UnknownNotification(method.to_owned()))
            };
        };
        let needed = rule
            .sender_capability
            .filter(|_| !rule.is_accepted_undeclared);
        match self.undeclared_capability(needed, None, self.peer_capabilities) {
            Some(missing) => Err(Refusal::UndeclaredNotification {
                method: method.name().to_owned(),
                capability: missing.capability,
            }),
            None => Ok(rule.handler),
        }
    }

    /// Checks a request of the local application and its parameters.
    ///
    /// # Errors
    /// The reason for which the request cannot be sent.
    pub(crate) fn check_sent_request(
        &self,
        method: &str,
        params: Option<&JsonObject>,
    ) -> Result<(), SendError> {
        let members = params.map(SentMembers::locate).unwrap_or_default();
        self.check_sent_request_with(method, params, &members)
    }

    /// Checks a request of the local application whose params members were located before.
    ///
    /// # Errors
    ///
    /// The reason for which the request cannot be sent.
    pub(crate) fn check_sent_request_with(
        &self,
        method: &str,
        params: Option<&JsonObject>,
        &SentMembers { meta, task, .. }: &SentMembers<'_>,
    ) -> Result<(), SendError> {
        if let Some(extension) = self.extension_of_request(method, self.local_role) {
            return if extension.is_declared(self.peer_capabilities.object) {
                refuse_own_token(method, meta)
            } else {
                Err(extension.missing_error(method))
            };
        }
        let unknown = || SendError::Method {
            method: method.to_owned(),
            revision: self.spec.revision(),
        };
        let Some(rule) = find_row(MessageKind::Request, self.local_role, method, self.spec) else {
            let vendor = self.is_vendor_method(&self.extensions.requests, method);
            let sends = self.local_role == Side::Client || self.spec.has_server_requests();
            return if vendor && sends && !self.is_sent_by(self.remote_role(), method) {
                refuse_own_token(method, meta)
            } else {
                Err(unknown())
            };
        };
        if rule.sending_party == SendingParty::Endpoint {
            return Err(unknown());
        }
        refuse_own_token(method, meta)?;
        let missing =
            self.undeclared_capability(rule.receiver_capability, params, self.peer_capabilities);
        let task = || {
            let path = rule
                .task_capability
                .filter(|_| task.is_some() && self.spec.has_tasks())?;
            capability::missing_path(path, self.peer_capabilities)
        };
        if let Some(missing) = missing.or_else(task) {
            return Err(missing.send_error(method));
        }
        check_sent_params(rule, params, self.spec)
    }

    /// Checks a notification of the local application; returns the handler, so that a raw notification is checked like the
    /// typed function of its method.
    ///
    /// # Errors
    /// The reason for which the notification cannot be sent.
    pub(crate) fn check_sent_notification(
        &self,
        method: &str,
        params: Option<&JsonObject>,
        target: NotificationTarget<'_>,
    ) -> Result<Handler, SendError> {
        if let NotificationTarget::Unacknowledged = target {
            return Err(SendError::Placement {
                method: method.to_owned(),
            });
        }
        let Some(rule) = find_row(
            MessageKind::Notification,
            self.local_role,
            method,
            self.spec,
        ) else {
            return self.check_sent_addition(method, target);
        };
        if rule.sending_party == SendingParty::Endpoint {
            return Err(SendError::Reserved {
                method: method.to_owned(),
            });
        }
        if let Some(missing) =
            self.undeclared_capability(rule.sender_capability, params, self.capabilities)
        {
            return Err(missing.send_error(method));
        }
        if self.is_discover() && !has_allowed_placement(rule, params, target) {
            Err(SendError::Placement {
                method: method.to_owned(),
            })
        } else {
            Ok(rule.handler)
        }
    }

    /// Checks a notification that the negotiated revision does not define: an extension or a vendor does.
    ///
    /// "The server MUST NOT send notification types the client has not explicitly requested" (2026-07-28,
    /// `basic/patterns/subscriptions`): a subscription carries the notifications of an extension only if the filter has a member
    /// of that extension, and never those of vendors, which no filter can request.
    ///
    /// # Errors
    /// The reason for which the notification cannot be sent.
    fn check_sent_addition(
        &self,
        method: &str,
        target: NotificationTarget<'_>,
    ) -> Result<Handler, SendError> {
        let filter = match target {
            NotificationTarget::Request(filter) => filter,
            NotificationTarget::Client | NotificationTarget::Unacknowledged => None,
        };
        let is_requested =
            if let Some(extension) = self.extension_of_notification(method, self.local_role) {
                if !extension.is_declared(self.peer_capabilities.object) {
                    return Err(extension.missing_error(method));
                }
                filter.is_none_or(|filter| extension.is_requested_by(filter))
            } else {
                let vendor = self.is_vendor_method(&self.extensions.notifications, method);
                if !vendor || self.is_sent_by(self.remote_role(), method) {
                    return Err(SendError::Method {
                        method: method.to_owned(),
                        revision: self.spec.revision(),
                    });
                }
                filter.is_none()
            };
        if is_requested {
            Ok(Handler::Application)
        } else {
            Err(SendError::Placement {
                method: method.to_owned(),
            })
        }
    }

    /// Checks a request that the local server sends during a request of the client.
    ///
    /// # Errors
    /// The reason for which the input request cannot be sent.
    pub(crate) fn check_sent_input_request(
        &self,
        method: &str,
        params: Option<&JsonObject>,
    ) -> Result<(), SendError> {
        let unknown = || SendError::Method {
            method: method.to_owned(),
            revision: self.spec.revision(),
        };
        if row_of_method(MessageKind::InputRequest, Side::Server, method.id()).is_none() {
            return Err(unknown());
        }
        if !self.is_discover() {
            return self.check_sent_request(method, params);
        }
        let rule = find_row(MessageKind::InputRequest, Side::Server, method, self.spec)
            .ok_or_else(unknown)?;
        let meta = params.and_then(|params| params.view().find("_meta"));
        refuse_own_token(method, meta)?;
        if let Some(missing) =
            self.undeclared_capability(rule.receiver_capability, params, self.peer_capabilities)
        {
            return Err(missing.send_error(method));
        }
        check_sent_params(rule, params, self.spec)
    }

    /// Checks an input request in a result that the local client has received.
    ///
    /// # Errors
    /// The reason for which the result cannot be used.
    pub(crate) fn check_received_input_request(
        &self,
        method: &str,
        params: Option<&JsonObject>,
    ) -> Result<(), Refusal> {
        let rule = find_row(MessageKind::InputRequest, Side::Server, method, self.spec);
        let rule = rule.ok_or_else(|| Refusal::UnknownMethod(method.to_owned()))?;
        if let Some(missing) =
            self.undeclared_capability(rule.receiver_capability, params, self.capabilities)
        {
            return Err(missing.refusal(self.local_role));
        }
        check_received_params(rule, params, self.spec).map_err(Refusal::InvalidParams)
    }

    /// Returns the negotiated extension that adds a client or server request.
    fn extension_of_request(&self, method: &str, sender: Side) -> Option<&'a Extension> {
        let extensions = self.extensions;
        (self.is_discover() && sender == Side::Client)
            .then(|| extensions.adding_request(method))
            .flatten()
    }

    /// Returns the negotiated extension that adds a notification.
    fn extension_of_notification(&self, method: &str, sender: Side) -> Option<&'a Extension> {
        let extensions = self.extensions;
        self.is_discover()
            .then(|| extensions.adding_notification(method, sender))
            .flatten()
    }

    /// Returns true if the configuration lists the notification, or allows all.
    pub(crate) fn is_vendor_notification(&self, method: &str) -> bool {
        self.is_vendor_method(&self.extensions.notifications, method)
    }

    /// Returns true if `listed` contains the method, or the policy allows all methods.
    fn is_vendor_method(&self, listed: &[String], method: &str) -> bool {
        self.extensions.policy == ExtensionPolicy::AllowAll
            || listed.iter().any(|known| known == method)
    }

    /// Returns the required capability that is not declared.
    fn undeclared_capability(
        &self,
        need: Option<RequiredCapability>,
        params: Option<&JsonObject>,
        declared: DeclaredCapabilities<'_>,
    ) -> Option<MissingCapability> {
        need?.missing_capability(params, self.spec, declared)
    }
}

/// Returns the method of the notification that announces a change.
pub(crate) fn change_method(kind: ChangeKind) -> &'static str {
    let announces = |rule: &&Rule| rule.handler == Handler::Changed(kind);
    rows().find(announces).map_or("", |rule| rule.method)
}

/// Returns true if the method is `elicitation/create`.
pub(crate) fn is_elicitation(method: &str) -> bool {
    let rule = row_of_method(MessageKind::InputRequest, Side::Server, method.id());
    rule.is_some_and(|rule| {
        matches!(
            rule.receiver_capability,
            Some(RequiredCapability::Elicitation)
        )
    })
}

/// Refuses params with a progress token: tokens must differ among all active requests (`basic/utilities/progress`), so the
/// endpoint chooses them.
fn refuse_own_token(method: &str, meta: Option<JsonRef<'_>>) -> Result<(), SendError> {
    if has_progress_token(meta) {
        Err(SendError::Params {
            method: method.to_owned(),
            reason: "the endpoint chooses progress tokens; leave `progressToken` out".to_owned(),
        })
    } else {
        Ok(())
    }
}

/// Checks the parameters of a request to a client before it is sent.
fn check_sent_params(
    rule: &Rule,
    params: Option<&JsonObject>,
    spec: &RevisionSpec,
) -> Result<(), SendError> {
    let checked = match rule.receiver_capability {
        Some(RequiredCapability::Elicitation) => {
            input_request::check_elicitation(params, spec, true)
        }
        Some(RequiredCapability::Sampling) => input_request::check_sampling(params, spec, true),
        _ => Ok(()),
    };
    checked.map_err(|reason| SendError::Params {
        method: rule.method.to_owned(),
        reason,
    })
}

/// Checks the parameters of a received request; the application handles unknown roles and modes.
fn check_received_params(
    rule: &Rule,
    params: Option<&JsonObject>,
    spec: &RevisionSpec,
) -> Result<(), String> {
    match rule.receiver_capability {
        Some(RequiredCapability::Elicitation) => {
            input_request::check_elicitation(params, spec, false)
        }
        Some(RequiredCapability::Sampling) => input_request::check_sampling(params, spec, false),
        _ => Ok(()),
    }
}

/// Returns true if the rule allows the notification on the target stream.
fn has_allowed_placement(
    rule: &Rule,
    params: Option<&JsonObject>,
    target: NotificationTarget<'_>,
) -> bool {
    match (rule.placement, target) {
        (Placement::Anywhere, _) => true,
        (Placement::Request, NotificationTarget::Request(filter)) => filter.is_none(),
        (Placement::Subscription, NotificationTarget::Request(Some(filter))) => {
            match rule.handler {
                Handler::Changed(kind) => {
                    Change::from_call(kind, params).is_some_and(|change| filter.includes(&change))
                }
                _ => false,
            }
        }
        (Placement::Request, NotificationTarget::Client | NotificationTarget::Unacknowledged)
        | (Placement::Subscription, _) => false,
    }
}

#[cfg(test)]
mod tests;
