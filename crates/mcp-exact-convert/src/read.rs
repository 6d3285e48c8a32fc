//! Reads values by the tables of definitions; accepts and refuses exactly the same input as decoding the Rust type.
//!
//! The output is a [`Node`]: a tree where a step may change a value, and text, which needs no allocation, elsewhere.

use std::borrow::Cow;

use mcp_exact_wire::spans::{EntryReader, MemberName, MemberReader};
use mcp_exact_wire::{
    Decode, DecodeError, DecodeFailed, Integer, Kind, Number, ReadResult, Reader, RequestId,
    UNRECOGNIZED,
};

use crate::document::may_contain;
use crate::generated::DEFINITIONS;
use crate::layout::{Definition, Layout, NONE, Objects, PackedDispatch, Shape, Type, Union};
use crate::node::{Body, FixedPart, Member, NOWHERE, Node, UNKNOWN};
use crate::packed::{List, Text};
use crate::rules::{PathRow, UnchangedCondition};

/// Selection of the types that become trees.
#[derive(Clone, Copy)]
pub enum TreeSelection {
    /// No type: the text is only validated.
    Nothing,
    /// Types that a step of the path may change.
    Path(&'static PathRow),
    Everything,
}

impl TreeSelection {
    /// Returns true if values of the type at an index become trees.
    fn has(self, value: u16) -> bool {
        let place = usize::from(value);
        match self {
            Self::Nothing => false,
            Self::Path(path) => path
                .active
                .get(place / 64)
                .is_some_and(|bits| bits >> (place % 64) & 1 == 1),
            Self::Everything => true,
        }
    }

    /// Returns the condition under which all steps keep a value of a definition unchanged; `None` if there is none.
    fn condition(self, definition: u16) -> Option<&'static UnchangedCondition> {
        let Self::Path(path) = self else {
            return None;
        };
        path.condition(definition)
            .filter(|condition| !condition.adds_meta)
    }
}

/// Reads a complete text as a value of a type. `base` is the offset of the text in the input, or [`NOWHERE`].
pub fn read(
    mut r: Reader<'_>,
    base: usize,
    value: u16,
    selection: TreeSelection,
) -> Result<Node<'_>, DecodeError> {
    read_parts(&mut r, base, value, (selection, None)).map(|(node, _)| node)
}

/// A member that was dropped because its value does not match the type.
pub struct DroppedMember {
    /// Offset of the member's value in the input, or [`NOWHERE`].
    pub at: usize,
    pub reason: String,
}

/// Reads a complete text as a value of a type; with a list, drops optional members that do not match and lists them.
pub fn read_parts<'t>(
    r: &mut Reader<'t>,
    base: usize,
    value: u16,
    (selection, dropped): (TreeSelection, Option<Vec<DroppedMember>>),
) -> Result<(Node<'t>, Vec<DroppedMember>), DecodeError> {
    let mut source = TreeReader {
        base,
        selection,
        members: Vec::new(),
        items: Vec::new(),
        changing: [0; DEFINITION_WORDS],
        dropped,
    };
    let read = source.value(r, value);
    match read.and_then(|node| r.end().map(|()| node)) {
        Ok(node) => Ok((node, source.dropped.unwrap_or_default())),
        Err(DecodeFailed) => Err(std::mem::replace(r, Reader::new("")).into_error()),
    }
}

/// Number of 64-bit words of a bit set of all definitions.
const DEFINITION_WORDS: usize = DEFINITIONS.len().div_ceil(64);

/// State of a reader of one text. Two stacks contain members and items, so that unchanged values need no allocation.
struct TreeReader<'t> {
    /// Offset of the text in the input, or [`NOWHERE`].
    base: usize,
    selection: TreeSelection,
    members: Vec<Member<'t>>,
    items: Vec<Node<'t>>,
    /// Bit set of the definitions of which a value was found that a step may change.
    changing: [u64; DEFINITION_WORDS],
    /// Optional members that were dropped because they did not match; `None` if a mismatch is an error.
    dropped: Option<Vec<DroppedMember>>,
}

impl<'t> TreeReader<'t> {
    /// Reads a value of a type, as a tree if the type is selected.
    fn value(&mut self, r: &mut Reader<'t>, value: u16) -> ReadResult<Node<'t>> {
        if !self.selection.has(value) {
            let start = r.value_start();
            skip_value(r, value)?;
            return Ok(self.text(r, start));
        }
        match Type::at(value) {
            Type::Definition(place) => self.definition(r, place),
            Type::Array(items, ..) => self.array(r, items),
            Type::Map(values) => self.map(r, values),
            Type::Nullable(inner) if r.kind()? != Kind::Null => self.value(r, inner),
            _ => {
                let start = r.value_start();
                skip_value(r, value)?;
                Ok(self.text(r, start))
            }
        }
    }

    fn text(&self, r: &Reader<'t>, start: usize) -> Node<'t> {
        Node::text(r.text_since(start), self.at(start))
    }

    /// Returns the node of a complete value that no step changes.
    fn whole(&self, r: &Reader<'t>, start: usize) -> Node<'t> {
        Node {
            fixed: FixedPart::Whole,
            ..self.text(r, start)
        }
    }

    /// Returns the offset in the input of an offset in the text.
    fn at(&self, start: usize) -> usize {
        if self.base == NOWHERE {
            NOWHERE
        } else {
            self.base + start
        }
    }

    fn node(&self, start: usize, body: Body<'t>) -> Node<'t> {
        Node::new(body, self.at(start))
    }

    fn definition(&mut self, r: &mut Reader<'t>, place: u16) -> ReadResult<Node<'t>> {
        let start = r.value_start();
        let definition = Definition::at(place);
        let condition = self.selection.condition(place);
        match &definition.shape {
            Shape::Object(layout) => {
                if let Some(condition) = condition
                    && self.skip_or_rewind(r, place, layout, condition)?
                {
                    return Ok(self.whole(r, start));
                }
                self.object(r, layout, condition)
            }
            Shape::Union(place) => self.union(r, definition.name, Union::at(*place), condition),
            shape => {
                skip_shape(r, definition.name, shape)?;
                let mut node = self.text(r, start);
                if condition.is_some_and(|condition| keeps_document(condition, r.text_since(start)))
                {
                    node.fixed = FixedPart::Whole;
                }
                Ok(node)
            }
        }
    }

    /// Skips an object that no step changes; otherwise, or if a step changed one before, returns false without moving.
    fn skip_or_rewind(
        &mut self,
        r: &mut Reader<'t>,
        place: u16,
        layout: &'static Layout,
        condition: &'static UnchangedCondition,
    ) -> ReadResult<bool> {
        let (word, bit) = (usize::from(place / 64), 1 << (place % 64));
        if self.changing[word] & bit != 0 {
            return Ok(false);
        }
        let mark = r.mark();
        let stays = self.skip_unchanged_object(r, layout, condition)?;
        if !stays {
            self.changing[word] |= bit;
            r.back_to(mark);
        }
        Ok(stays)
    }

    /// Skips a value that no step changes; returns false at the first part that a step may change.
    fn skip_unchanged(&self, r: &mut Reader<'t>, value: u16) -> ReadResult<bool> {
        if !self.selection.has(value) {
            skip_value(r, value)?;
            return Ok(true);
        }
        match Type::at(value) {
            Type::Definition(place) => self.skip_unchanged_definition(r, place),
            Type::Array(items, ..) => {
                let object = self.object_type(items);
                let mut more = r.begin_array()?;
                while more {
                    let stays = match object {
                        Some((layout, when)) => self.skip_unchanged_object(r, layout, when)?,
                        None => self.skip_unchanged(r, items)?,
                    };
                    if !stays {
                        return Ok(false);
                    }
                    more = r.next_item()?;
                }
                Ok(true)
            }
            Type::Map(values) => {
                let mut entries = EntryReader::open(r)?;
                while entries.next(r)?.is_some() {
                    if !self.skip_unchanged(r, values)? {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            Type::Nullable(inner) if r.kind()? != Kind::Null => self.skip_unchanged(r, inner),
            Type::Nullable(_) => r.null().map(|()| true),
            _ => Ok(false),
        }
    }

    /// Returns the members of a selected object type, and the condition under which no step changes an object.
    fn object_type(&self, value: u16) -> Option<(&'static Layout, &'static UnchangedCondition)> {
        let (Type::Definition(place), true) = (Type::at(value), self.selection.has(value)) else {
            return None;
        };
        let layout = Definition::at(place).layout()?;
        Some((layout, self.selection.condition(place)?))
    }

    fn skip_unchanged_definition(&self, r: &mut Reader<'t>, place: u16) -> ReadResult<bool> {
        let Some(condition) = self.selection.condition(place) else {
            return Ok(false);
        };
        let definition = Definition::at(place);
        match &definition.shape {
            Shape::Object(layout) => self.skip_unchanged_object(r, layout, condition),
            Shape::Union(place) => {
                let union = Union::at(*place);
                let variant = select(r, definition.name, union)?;
                match union.variant(variant) {
                    Some(value) if condition.known >> variant & 1 == 1 => {
                        self.skip_unchanged(r, value)
                    }
                    _ => Ok(false),
                }
            }
            shape => {
                let start = r.value_start();
                skip_shape(r, definition.name, shape)?;
                Ok(keeps_document(condition, r.text_since(start)))
            }
        }
    }

    fn skip_unchanged_object(
        &self,
        r: &mut Reader<'t>,
        layout: &'static Layout,
        condition: &'static UnchangedCondition,
    ) -> ReadResult<bool> {
        let types = layout.types.rows();
        let mut object = MemberReader::open(r, layout)?;
        while let Some(member) = object.next(r)? {
            let stays = match member {
                MemberName::Known(index) if condition.known >> index & 1 == 1 => false,
                MemberName::Known(index) if self.selection.has(types[index]) => {
                    self.skip_unchanged(r, types[index])?
                }
                MemberName::Known(index) => skip_value(r, types[index]).map(|()| true)?,
                MemberName::Unknown(name) => {
                    r.skip()?;
                    !has(condition.names, &name)
                }
            };
            if !stays {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn object(
        &mut self,
        r: &mut Reader<'t>,
        layout: &'static Layout,
        condition: Option<&'static UnchangedCondition>,
    ) -> ReadResult<Node<'t>> {
        let start = r.value_start();
        let types = layout.types.rows();
        let mut object = MemberReader::open(r, layout)?;
        let first = self.members.len();
        let mut is_whole = condition.is_some();
        let mut is_changed = false;
        let known = condition.map_or(0, |condition| condition.known);
        while let Some(member) = object.next(r)? {
            let (name, value) = match member {
                MemberName::Known(index) => {
                    let is_required = layout.required >> index & 1 == 1;
                    let Some(mut value) = self.member(r, types[index], is_required)? else {
                        is_changed = true;
                        continue;
                    };
                    if known >> index & 1 == 1 {
                        is_whole = false;
                        if value.fixed == FixedPart::Whole {
                            value.fixed = FixedPart::Parts;
                        }
                    } else if value.fixed != FixedPart::Whole && self.selection.has(types[index]) {
                        is_whole = false;
                    }
                    (Cow::Borrowed(layout.name(index)), value)
                }
                MemberName::Unknown(name) => {
                    is_whole =
                        is_whole && condition.is_some_and(|condition| !has(condition.names, &name));
                    let start = r.value_start();
                    r.skip()?;
                    (name, self.text(r, start))
                }
            };
            self.members.push(Member { name, value });
        }
        if is_whole {
            self.members.truncate(first);
            return Ok(self.whole(r, start));
        }
        let members = self.members.drain(first..).collect();
        let mut node = self.node(start, Body::Object(r.text_since(start), members));
        node.changed = is_changed;
        Ok(node)
    }

    /// Reads the value of a known member; returns `None` if the value does not match and was dropped.
    fn member(
        &mut self,
        r: &mut Reader<'t>,
        value: u16,
        is_required: bool,
    ) -> ReadResult<Option<Node<'t>>> {
        if self.dropped.is_none() || is_required {
            return self.value(r, value).map(Some);
        }
        let start = r.value_start();
        let (mark, members, items) = (r.mark(), self.members.len(), self.items.len());
        if let Ok(node) = self.value(r, value) {
            return Ok(Some(node));
        }
        let reason = r.recover(mark)?;
        r.skip()?;
        self.members.truncate(members);
        self.items.truncate(items);
        let at = self.at(start);
        self.dropped
            .get_or_insert_default()
            .push(DroppedMember { at, reason });
        Ok(None)
    }

    fn map(&mut self, r: &mut Reader<'t>, values: u16) -> ReadResult<Node<'t>> {
        let start = r.value_start();
        let mut entries = EntryReader::open(r)?;
        let first = self.members.len();
        let mut is_whole = true;
        while let Some(name) = entries.next(r)? {
            let value = self.value(r, values)?;
            is_whole &= value.fixed == FixedPart::Whole;
            self.members.push(Member { name, value });
        }
        if is_whole {
            self.members.truncate(first);
            return Ok(self.whole(r, start));
        }
        let members = self.members.drain(first..).collect();
        Ok(self.node(start, Body::Object(r.text_since(start), members)))
    }

    fn array(&mut self, r: &mut Reader<'t>, items: u16) -> ReadResult<Node<'t>> {
        let start = r.value_start();
        let first = self.items.len();
        let mut is_whole = true;
        let mut more = r.begin_array()?;
        while more {
            let node = self.value(r, items)?;
            is_whole &= node.fixed == FixedPart::Whole;
            self.items.push(node);
            more = r.next_item()?;
        }
        if is_whole {
            self.items.truncate(first);
            return Ok(self.whole(r, start));
        }
        let nodes = self.items.drain(first..).collect();
        Ok(self.node(start, Body::Array(r.text_since(start), nodes)))
    }

    fn union(
        &mut self,
        r: &mut Reader<'t>,
        name: Text,
        union: &'static Union,
        condition: Option<&'static UnchangedCondition>,
    ) -> ReadResult<Node<'t>> {
        let start = r.value_start();
        let variant = select(r, name, union)?;
        let Some(value) = union.variant(variant) else {
            r.unknown_variant(union.open.get(), union.role)?;
            let mut node = self.text(r, start);
            node.push_variant(UNKNOWN);
            return Ok(node);
        };
        let mut node = self.value(r, value)?;
        node.push_variant(variant);
        let stays = condition.is_some_and(|condition| condition.known >> variant & 1 == 1);
        node.fixed = match node.fixed {
            FixedPart::No if stays && !self.selection.has(value) => FixedPart::Whole,
            FixedPart::Whole if !stays => FixedPart::Parts,
            fixed => fixed,
        };
        Ok(node)
    }
}

/// Returns true if no step changes a JSON Schema document: the text has no member with a name of the condition.
fn keeps_document(condition: &UnchangedCondition, text: &str) -> bool {
    !may_contain(condition.names.rows().iter().map(|name| name.get()), text)
}

/// Returns true if a name is in a list of names.
fn has(names: List<Text>, name: &str) -> bool {
    names.rows().iter().any(|known| known.get() == name)
}

/// Returns the names of members that a step may change, and true if the steps add `_meta`; `None` if the steps may make
/// other changes.
pub fn changed_members(value: u16, path: &'static PathRow) -> Option<(Vec<&'static str>, bool)> {
    let Type::Definition(place) = Type::at(value) else {
        return None;
    };
    let (layout, condition) = (Definition::at(place).layout()?, path.condition(place)?);
    let parts = layout.types.rows().iter().enumerate();
    let changed = parts.filter(|(index, part)| {
        condition.known >> index & 1 == 1 || TreeSelection::Path(path).has(**part)
    });
    let names = changed.map(|(index, _)| layout.name(index));
    let undefined = condition.names.rows().iter().map(|name| name.get());
    Some((names.chain(undefined).collect(), condition.adds_meta))
}

/// Skips a value of a type and validates it like decoding does.
#[inline(always)]
fn skip_value(r: &mut Reader<'_>, value: u16) -> ReadResult<()> {
    match Type::at(value) {
        Type::String => r.skip_string(),
        other => skip_type(r, other),
    }
}

fn skip_type(r: &mut Reader<'_>, value: Type) -> ReadResult<()> {
    match value {
        Type::Definition(place) => {
            let definition = Definition::at(place);
            skip_shape(r, definition.name, &definition.shape)
        }
        Type::Array(items, ..) => {
            let mut more = r.begin_array()?;
            while more {
                skip_value(r, items)?;
                more = r.next_item()?;
            }
            Ok(())
        }
        Type::Map(values) => {
            let mut entries = EntryReader::open(r)?;
            while entries.next(r)?.is_some() {
                skip_value(r, values)?;
            }
            Ok(())
        }
        Type::Nullable(inner) => match r.kind()? {
            Kind::Null => r.null(),
            _ => skip_value(r, inner),
        },
        Type::Json => r.skip(),
        Type::JsonObject => r.open_value_object(),
        Type::String | Type::Formatted(_) => r.skip_string(),
        Type::Boolean => r.boolean().map(drop),
        Type::Integer(..) => Integer::decode(r).map(drop),
        Type::Number(..) => Number::decode(r).map(drop),
        Type::RequestId | Type::ProgressToken => match r.kind()? {
            Kind::String => r.skip_string(),
            _ => RequestId::decode(r).map(drop),
        },
        Type::Constant(expected) => r.constant(expected.get()),
        Type::ConstantInteger(expected, words) => {
            r.constant_integer(i64::from(expected), words.get())
        }
    }
}

fn skip_shape(r: &mut Reader<'_>, name: Text, shape: &'static Shape) -> ReadResult<()> {
    match shape {
        Shape::Object(layout) => {
            let types = layout.types.rows();
            let mut object = MemberReader::open(r, layout)?;
            while let Some(member) = object.next(r)? {
                match member {
                    MemberName::Known(index) => skip_value(r, types[index])?,
                    MemberName::Unknown(_) => r.skip()?,
                }
            }
            Ok(())
        }
        Shape::Union(place) => {
            let union = Union::at(*place);
            match union.variant(select(r, name, union)?) {
                None => r.unknown_variant(union.open.get(), union.role),
                Some(value) => skip_value(r, value),
            }
        }
        Shape::Document(_) => r.open_value_object(),
        Shape::Enum(_) => r.skip_string(),
        Shape::Constant(value) => r.constant(value.get()),
    }
}

/// Returns the union variant of the next value.
pub fn select(r: &mut Reader<'_>, name: Text, union: &'static Union) -> ReadResult<u8> {
    let has_only_objects =
        union.scalars == [NONE; 4] && union.arrays.is_empty() && union.values.is_empty();
    if !has_only_objects {
        let [string, number, boolean, null] = union.scalars;
        let variant = match r.kind()? {
            Kind::Object => return select_object(r, name, union),
            Kind::Array => return select_array(r, name, union),
            Kind::String if !union.values.is_empty() => r.peek_string(|text| {
                let mut sets = union.values.rows().iter();
                let set = sets.find(|set| has(set.values, text));
                set.map_or(string, |set| set.variant)
            })?,
            Kind::String => string,
            Kind::Number => number,
            Kind::Boolean => boolean,
            Kind::Null => null,
        };
        return match variant {
            NONE => Err(r.no_variant(name.get())),
            variant => Ok(variant),
        };
    }
    select_object(r, name, union)
}

/// Returns the index of the variant for the object that is next, without reading it.
fn select_object(r: &mut Reader<'_>, name: Text, union: &'static Union) -> ReadResult<u8> {
    match union.objects {
        Objects::Only(variant) => Ok(variant),
        Objects::None => Err(r.no_variant(name.get())),
        Objects::Dispatched(place) => match r.select_variant(PackedDispatch::at(place))? {
            UNRECOGNIZED if union.open.is_empty() => Err(r.no_variant(name.get())),
            UNRECOGNIZED => Ok(UNKNOWN),
            variant => Ok(variant),
        },
    }
}

fn select_array(r: &mut Reader<'_>, name: Text, union: &'static Union) -> ReadResult<u8> {
    let arrays = union.arrays.rows();
    let Some(first) = arrays.first() else {
        return Err(r.no_variant(name.get()));
    };
    let Some(items) = union.items else {
        return Ok(*first);
    };
    match r.select_item_variant(PackedDispatch::at(items))? {
        None => Ok(*first),
        Some(variant) if arrays.contains(&variant) => Ok(variant),
        Some(_) => Err(r.no_variant(name.get())),
    }
}
