//! What generated steps are made of: members, items and values that the other revision knows, does not know, or knows in
//! another way.
//!
//! Every function either gives the value in its new form, or reports what it does not give. None is silent.

use std::any::Any;
use std::borrow::Cow;

use mcp_exact_wire::{
    Decode, Document, DocumentView, Encode, Extra, Integer, Json, JsonObject, Map, Members,
    Nullable, Number, Path, RequestId, Validate, Violations, from_str,
};

use crate::context::Context;
use crate::loss::{LossKind, Refused, Severity};

/// Members that the source type did not know and the target type does.
pub type Known = Vec<(Box<str>, Json)>;

/// What a step gives.
pub type Step<T> = Result<T, Refused>;

// Which of these the steps need depends on the revisions: the next one may need what none needs today.
#[allow(dead_code)]
impl Context {
    /// A member that both revisions have.
    #[inline]
    pub(crate) fn at<T>(
        &mut self,
        member: &'static str,
        f: impl FnOnce(&mut Self) -> Step<T>,
    ) -> Step<T> {
        self.enter(member);
        let value = f(self)?;
        self.leave();
        Ok(value)
    }

    /// An optional member that both revisions have; when its value has no new form, it is left out and reported.
    #[inline]
    pub(crate) fn optional<A, B>(
        &mut self,
        member: &'static str,
        value: Option<A>,
        f: impl FnOnce(A, &mut Self) -> Step<B>,
    ) -> Step<Option<B>> {
        let Some(value) = value else {
            return Ok(None);
        };
        let mark = self.mark();
        self.enter(member);
        match f(value, self) {
            Ok(value) => {
                self.leave();
                Ok(Some(value))
            }
            Err(refused) => {
                self.back_to(&mark);
                self.leave_out(member, refused).map(|()| None)
            }
        }
    }

    fn leave_out(&mut self, member: &str, refused: Refused) -> Step<()> {
        if refused.severity() == Severity::Message {
            return Err(refused);
        }
        let pointer = self.pointer_of(member);
        let reason = if refused.pointer() == pointer {
            refused.into_reason()
        } else {
            format!("{} at {}", refused.reason(), refused.pointer()).into()
        };
        self.report(pointer, LossKind::Dropped, reason);
        Ok(())
    }

    /// The items of an array, each in its new form.
    pub(crate) fn items<A, B>(
        &mut self,
        items: Vec<A>,
        mut f: impl FnMut(A, &mut Self) -> Step<B>,
    ) -> Step<Vec<B>> {
        // Collecting results would let the array grow from a few items on, and move them each time.
        let mut converted = Vec::with_capacity(items.len());
        for (index, item) in items.into_iter().enumerate() {
            self.enter_index(index);
            converted.push(f(item, self)?);
            self.leave();
        }
        Ok(converted)
    }

    /// The entries of a map, each in its new form.
    pub(crate) fn entries<A, B>(
        &mut self,
        entries: Map<A>,
        mut f: impl FnMut(A, &mut Self) -> Step<B>,
    ) -> Step<Map<B>> {
        let convert = |(name, value)| {
            self.enter_name(name);
            let value = f(value, self)?;
            Ok((self.leave_name(), value))
        };
        entries.into_iter().map(convert).collect()
    }

    /// A value that may be null.
    pub(crate) fn nullable<A, B>(
        &mut self,
        value: Nullable<A>,
        f: impl FnOnce(A, &mut Self) -> Step<B>,
    ) -> Step<Nullable<B>> {
        match value {
            Nullable::Null => Ok(Nullable::Null),
            Nullable::Value(value) => f(value, self).map(Nullable::Value),
        }
    }

    /// A value where null is not allowed any more.
    pub(crate) fn not_null<A>(&mut self, value: Nullable<A>) -> Step<A> {
        match value {
            Nullable::Null => Err(self.misfit("null is not allowed here")),
            Nullable::Value(value) => Ok(value),
        }
    }

    /// A member that only the source type knows. On the way up it stays as an unknown member; on the way down it does
    /// when the caller asks for it, and is reported otherwise.
    pub(crate) fn gone<T: Encode, E: Members>(
        &mut self,
        member: &'static str,
        value: &T,
        extra: &mut Extra<E>,
        rule: Gone,
    ) {
        let stays = match rule {
            Gone::Older => true,
            Gone::Newer { .. } => self.keeps_newer(),
        };
        if stays
            && extra
                .insert_arrived(member, Json::from_encode(value))
                .is_ok()
        {
            return;
        }
        let since = match rule {
            Gone::Older => "the newer revision gives the name another place".into(),
            Gone::Newer { since } => format!("a member of {since} and later"),
        };
        self.lost(member, LossKind::Dropped, since);
    }

    /// [`gone`](Self::gone) for a member that decides what the message means.
    pub(crate) fn gone_or_refused<T: Encode, E: Members>(
        &mut self,
        member: &'static str,
        value: &T,
        extra: &mut Extra<E>,
        rule: Gone,
    ) -> Step<()> {
        let json = Json::from_encode(value);
        if self.keeps_newer() && extra.insert_arrived(member, json.clone()).is_ok() {
            return Ok(());
        }
        let Gone::Newer { since } = rule else {
            return Ok(());
        };
        let reason = format!("{json} has no form before {since}");
        let pointer = self.pointer_of(member);
        Err(Refused::new(pointer, reason, Severity::Message))
    }

    /// Whether a member of the newer revision says what its absence says in the older one, so that it can be left out.
    ///
    /// `silent` is whether all such members of the object do: when newer members are kept, one that says more keeps the
    /// others too, because somebody said them.
    pub(crate) fn stripped<T: Encode>(
        &mut self,
        member: &'static str,
        value: &T,
        default: &str,
        silent: bool,
        reason: &'static str,
    ) -> bool {
        let stripped = says(value, default) && (silent || !self.keeps_newer());
        if stripped {
            self.lost(member, LossKind::Rewritten, reason);
        }
        stripped
    }

    /// A member that the source type let be anything, as what the target type makes of it.
    #[inline]
    pub(crate) fn known<T: Decode + Validate>(
        &mut self,
        member: &'static str,
        known: &mut Known,
    ) -> Option<T> {
        // Nearly always: the source type knew all members that were there.
        if known.is_empty() {
            return None;
        }
        self.known_here(member, known)
    }

    #[cold]
    fn known_here<T: Decode + Validate>(
        &mut self,
        member: &'static str,
        known: &mut Known,
    ) -> Option<T> {
        let at = known.iter().position(|(name, _)| **name == *member)?;
        let (_, json) = known.swap_remove(at);
        match decode_valid(json.text()) {
            Ok(value) => Some(value),
            Err(misfit) => {
                let reason = format!("free before, of a type now: {}", misfit.reason);
                self.lost(member, LossKind::Dropped, reason);
                None
            }
        }
    }

    /// A constant that the target type has and the source type has not.
    pub(crate) fn constant(
        &mut self,
        member: &'static str,
        text: &str,
        known: &mut Known,
        reason: &'static str,
    ) {
        let Some(at) = known.iter().position(|(name, _)| **name == *member) else {
            return self.lost(member, LossKind::Rewritten, reason);
        };
        let (_, json) = known.swap_remove(at);
        if !same_string(json.text(), text) {
            let reason = format!("free before, always {text} now");
            self.lost(member, LossKind::Replaced, reason);
        }
    }

    /// A constant that only the source type has.
    pub(crate) fn constant_gone<E: Members>(
        &mut self,
        member: &'static str,
        text: &str,
        extra: &mut Extra<E>,
        stays: bool,
        reason: &'static str,
    ) {
        let kept = stays
            && from_str(text).is_ok_and(|json: Json| extra.insert_arrived(member, json).is_ok());
        if !kept {
            self.lost(member, LossKind::Rewritten, reason);
        }
    }

    /// A member that is always the same in the target type.
    pub(crate) fn same_constant<T: Encode>(
        &mut self,
        value: &T,
        text: &str,
        reason: &'static str,
    ) -> Step<()> {
        let said = mcp_exact_wire::to_string(value);
        if same_string(&said, text) {
            Ok(())
        } else {
            Err(self.refused(reason))
        }
    }

    /// A member of a union that has no counterpart: as the other revision reads its JSON, or not at all.
    pub(crate) fn foreign<A: Encode, B: Decode + Validate>(
        &mut self,
        value: &A,
        reason: &'static str,
    ) -> Step<B> {
        let text = mcp_exact_wire::to_string(value);
        decode_valid(&text).map_err(|_| self.refused(reason))
    }

    /// A request of a method that the source revision does not know, whose type leaves the envelope out: the type of the
    /// target revision holds it.
    pub(crate) fn unrecognized_request<B: Decode + Validate>(
        &mut self,
        value: &Json,
        is_unknown: fn(&B) -> bool,
    ) -> Step<B> {
        let id = Json::from_encode(&self.id_of_request("id")?);
        self.unrecognized(&enveloped(value, Some(&id)), is_unknown)
    }

    /// The same for a notification.
    pub(crate) fn unrecognized_notification<B: Decode + Validate>(
        &mut self,
        value: &Json,
        is_unknown: fn(&B) -> bool,
    ) -> Step<B> {
        self.unrecognized(&enveloped(value, None), is_unknown)
    }

    /// A variant of a union that the source revision does not know: the target revision may.
    pub(crate) fn unrecognized<B: Decode + Validate>(
        &mut self,
        value: &Json,
        is_unknown: fn(&B) -> bool,
    ) -> Step<B> {
        let text = value.text();
        match decode_valid(text) {
            Ok(value) => Ok(value),
            Err(misfit) => match from_str(text) {
                Ok(value) if is_unknown(&value) => Ok(value),
                _ => Err(Refused::new(
                    self.pointer() + &misfit.pointer,
                    misfit.reason,
                    Severity::Member,
                )),
            },
        }
    }

    /// What the output says where the input says nothing.
    pub(crate) fn filled<T: Decode>(
        &mut self,
        member: &'static str,
        text: &str,
        kind: LossKind,
        reason: &'static str,
    ) -> Step<T> {
        self.lost(member, kind, reason);
        from_str(text).map_err(|error| self.misfit(error.to_string()))
    }

    /// A member that the target revision wants and nobody knows.
    pub(crate) fn missing<T>(&mut self, member: &'static str, reason: &'static str) -> Step<T> {
        let pointer = self.pointer_of(member);
        Err(Refused::new(pointer, reason, Severity::Member))
    }

    /// The id of the request, which the caller knows.
    pub(crate) fn id_of_request(&mut self, member: &'static str) -> Step<RequestId> {
        let Some(id) = self.known_id().cloned() else {
            let reason = "the type holds the id of the request; give it in the context";
            return self.missing(member, reason);
        };
        self.lost(member, LossKind::Rewritten, ENVELOPE);
        Ok(id)
    }

    /// The id of the request, which belongs to the envelope. It stays when newer members do, unless the caller knows it
    /// anyway; the answer says whether it did.
    pub(crate) fn id_to_envelope<E: Members>(
        &mut self,
        member: &'static str,
        id: &RequestId,
        extra: &mut Extra<E>,
    ) -> bool {
        let stays = self.keeps_newer() && self.known_id() != Some(id);
        let kept = stays && extra.insert_arrived(member, Json::from_encode(id)).is_ok();
        if !kept {
            self.lost(member, LossKind::Rewritten, ENVELOPE);
        }
        kept
    }

    /// A member of a request's `_meta` that the session knows; else what nobody can hold against the sender.
    pub(crate) fn of_session<T: Decode + Validate>(
        &mut self,
        member: &'static str,
        default: &str,
        reason: &'static str,
    ) -> Step<T> {
        match self.known_meta(member) {
            Some(json) => {
                let value = decode_valid(json.text());
                let value = value.map_err(|misfit| {
                    let reason = format!("the context's request metadata: {}", misfit.reason);
                    Refused::new(self.pointer_of(member), reason, Severity::Message)
                })?;
                self.lost(member, LossKind::Rewritten, "said by the session");
                Ok(value)
            }
            None => self.filled(member, default, LossKind::Defaulted, reason),
        }
    }

    /// A member of a request's `_meta` that the session may know.
    pub(crate) fn perhaps_of_session<T: Decode + Validate>(
        &mut self,
        member: &'static str,
    ) -> Option<T> {
        let json = self.known_meta(member)?;
        let value = decode_valid(json.text()).ok()?;
        self.lost(member, LossKind::Rewritten, "said by the session");
        Some(value)
    }

    /// A value as the other revision reads its JSON: for types that differ in shape and agree on values.
    pub(crate) fn refit<A: Encode, B: Decode + Validate>(&mut self, value: &A) -> Step<B> {
        let text = mcp_exact_wire::to_string(value);
        decode_valid(&text).map_err(|misfit| {
            let pointer = self.pointer() + &misfit.pointer;
            Refused::new(pointer, misfit.reason, Severity::Member)
        })
    }

    /// An object that may hold anything, as a type with known members; members that do not fit are left out and reported.
    pub(crate) fn fit<B: Decode + Validate>(&mut self, object: &JsonObject) -> Step<B> {
        let mut members: Vec<(Cow<'_, str>, &str)> = object.iter().collect();
        loop {
            let text = object_text(&members);
            let misfit = match decode_valid(&text) {
                Ok(value) => return Ok(value),
                Err(misfit) => misfit,
            };
            let culprit = members.iter().position(|(name, _)| {
                let mut place = String::new();
                crate::context::push(&mut place, name);
                misfit.pointer == place || misfit.pointer.starts_with(&(place + "/"))
            });
            let Some(culprit) = culprit else {
                return Err(self.misfit(misfit.reason));
            };
            let (name, _) = members.remove(culprit);
            let reason = format!("free before, of a type now: {}", misfit.reason);
            self.lost(&name, LossKind::Dropped, reason);
        }
    }

    /// A JSON Schema document of which the target revision says more than the source revision.
    pub(crate) fn document<V: DocumentView, W: DocumentView>(
        &mut self,
        document: Document<V>,
    ) -> Step<Document<W>> {
        if !is_concerned::<V, W>(document.text()) {
            return Ok(document.into_object().into());
        }
        let mut document = Document::<W>::from(document.into_object());
        while let Some((pointer, message)) = first_violation(&document) {
            let name = pointer.split('/').nth(1).unwrap_or_default();
            let required = W::RULES
                .iter()
                .any(|rule| rule.required && rule.name == name);
            let kept: Vec<_> = document.as_object().iter().collect();
            let at = kept.iter().position(|(known, _)| segment(known) == name);
            let (Some(at), false) = (at, required) else {
                return Err(self.misfit(message));
            };
            let mut kept = kept;
            let (gone, _) = kept.remove(at);
            let text = object_text(&kept);
            self.lost(&gone, LossKind::Dropped, message);
            document = from_str(&text).map_err(|error| self.misfit(error.to_string()))?;
        }
        Ok(document)
    }

    /// A number that the target revision bounds.
    pub(crate) fn bounded<N: AsNumber>(
        &mut self,
        value: N,
        minimum: Option<i64>,
        maximum: Option<i64>,
    ) -> Step<N> {
        let number = value.number();
        let low = minimum.is_some_and(|minimum| number.compare(minimum).is_lt());
        let high = maximum.is_some_and(|maximum| number.compare(maximum).is_gt());
        if low || high {
            return Err(self.misfit("outside the bounds of the other revision"));
        }
        Ok(value)
    }

    /// An array whose length the target revision bounds.
    pub(crate) fn sized<T>(
        &mut self,
        items: Vec<T>,
        minimum: Option<usize>,
        maximum: Option<usize>,
    ) -> Step<Vec<T>> {
        let few = minimum.is_some_and(|minimum| items.len() < minimum);
        let many = maximum.is_some_and(|maximum| items.len() > maximum);
        if few || many {
            return Err(self.misfit("the other revision bounds the number of items"));
        }
        Ok(items)
    }
}

/// The words for what belongs to the envelope.
pub const ENVELOPE: &str = "part of the envelope of the message";

/// Which revision does not know a member.
#[derive(Debug, Clone, Copy)]
pub enum Gone {
    /// The newer one.
    Older,
    /// The older one.
    Newer {
        /// The revision that defines it.
        since: &'static str,
    },
}

/// A number in one of its types.
#[allow(dead_code)]
pub trait AsNumber {
    /// The number.
    fn number(&self) -> &Number;
}

impl AsNumber for Integer {
    fn number(&self) -> &Number {
        self.as_number()
    }
}

impl AsNumber for Number {
    fn number(&self) -> &Number {
        self
    }
}

/// Whether a document of the source type may break a rule that only the target type has. Most do not even have the member,
/// and are not walked through.
fn is_concerned<V: DocumentView, W: DocumentView>(text: &str) -> bool {
    let mut rules = W::RULES.iter().filter(|rule| !V::RULES.contains(rule));
    // A name spelt with escape sequences has a backslash.
    rules.any(|rule| {
        rule.required || has(text, rule.name) || memchr::memchr(b'\\', text.as_bytes()).is_some()
    })
}

/// Whether a name stands in a text. Names are short, and preparing a real search costs more than looking at each place where
/// the first byte stands.
fn has(text: &str, name: &str) -> bool {
    let (text, name) = (text.as_bytes(), name.as_bytes());
    let Some(&first) = name.first() else {
        return true;
    };
    memchr::memchr_iter(first, text).any(|at| text[at..].starts_with(name))
}

/// Why text is not of a type, and where in it.
struct Misfit {
    pointer: String,
    reason: String,
}

/// Decodes a value that breaks no rule of its schema.
fn decode_valid<T: Decode + Validate>(text: &str) -> Result<T, Misfit> {
    let value: T = from_str(text).map_err(|error| Misfit {
        pointer: error.pointer().to_owned(),
        reason: error.detail().to_owned(),
    })?;
    match first_violation(&value) {
        Some((pointer, reason)) => Err(Misfit { pointer, reason }),
        None => Ok(value),
    }
}

fn first_violation<T: Validate>(value: &T) -> Option<(String, String)> {
    let mut violations = Violations::default();
    value.check(&Path::ROOT, &mut violations);
    let first = violations.listed().first()?;
    Some((first.pointer.clone(), first.message.clone()))
}

fn segment(name: &str) -> String {
    let mut pointer = String::new();
    crate::context::push(&mut pointer, name);
    pointer[1..].to_owned()
}

fn object_text(members: &[(Cow<'_, str>, &str)]) -> String {
    let member = |(name, value): &(Cow<'_, str>, &str)| format!("{}:{value}", Json::string(name));
    let members: Vec<String> = members.iter().map(member).collect();
    format!("{{{}}}", members.join(","))
}

/// Whether two JSON texts are the same string, or the same text.
fn same_string(a: &str, b: &str) -> bool {
    let string = |text| from_str::<String>(text).ok();
    a == b || string(a).is_some_and(|a| Some(a) == string(b))
}

/// Whether a value is written like that.
pub fn says<T: Encode>(value: &T, text: &str) -> bool {
    mcp_exact_wire::to_string(value) == text
}

/// Whether a value is written as an object without members.
pub fn is_empty_object<T: Encode>(value: &T) -> bool {
    mcp_exact_wire::to_string(value) == "{}"
}

/// A value whose type only its step knows.
pub type Erased = Box<dyn Any>;

/// Takes a value out of its box.
///
/// # Errors
/// When it is of another type, which no table of this crate causes.
pub fn unboxed<T: 'static>(value: Erased, cx: &Context) -> Step<T> {
    let value = value.downcast::<T>();
    value.map(|value| *value).map_err(|_| {
        let reason = "a value of another type was given to a step";
        Refused::new(cx.pointer(), reason, Severity::Message)
    })
}

/// A message with the members of its envelope. What it holds of them already is replaced.
fn enveloped(message: &Json, id: Option<&Json>) -> Json {
    let version = Json::string("2.0");
    let object = message.view().object().unwrap_or_default();
    let set = [
        ("jsonrpc", Some(version.view())),
        ("id", id.map(Json::view)),
    ];
    mcp_exact_wire::JsonObject::from(object.with(set)).into()
}
