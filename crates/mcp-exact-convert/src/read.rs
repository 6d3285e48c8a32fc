//! Reads values by the tables of definitions: accepts and refuses exactly what decoding the type does.
//!
//! Takes text, gives a [`Node`]: taken apart where some step may change something, text everywhere else. Text is scanned
//! once; what is not taken apart allocates nothing.

use mcp_exact_wire::spans::{EntryReader, MemberReader};
use mcp_exact_wire::{
    Decode, DecodeError, Failed, Integer, Kind, Number, Read, Reader, UNRECOGNIZED,
};

use crate::layout::{Definition, Layout, NONE, Objects, Shape, Type, Union};
use crate::node::{Body, Member, NOWHERE, Node, UNKNOWN};

/// Which types are taken apart.
#[derive(Clone, Copy)]
pub enum Wanted {
    /// None: the text is only checked.
    Nothing,
    /// Those with a bit.
    Some(&'static [u64]),
    Everything,
}

impl Wanted {
    fn has(self, value: u16) -> bool {
        let place = usize::from(value);
        match self {
            Self::Nothing => false,
            Self::Some(bits) => bits
                .get(place / 64)
                .is_some_and(|bits| bits >> (place % 64) & 1 == 1),
            Self::Everything => true,
        }
    }
}

/// Reads a whole text as a value of a type. `base` is where the text begins in the input, or [`NOWHERE`].
pub fn read(text: &str, base: usize, value: u16, wanted: Wanted) -> Result<Node<'_>, DecodeError> {
    let mut r = Reader::new(text);
    let source = Source { base, wanted };
    let read = source
        .value(&mut r, value, wanted.has(value))
        .and_then(|node| r.end().map(|()| node));
    read.map_err(|Failed| r.into_error())
}

struct Source {
    base: usize,
    wanted: Wanted,
}

impl Source {
    /// A value of a type; it is taken apart when `build` is true.
    fn value<'t>(&self, r: &mut Reader<'t>, value: u16, build: bool) -> Read<Node<'t>> {
        let start = r.value_start();
        match Type::at(value) {
            Type::Definition(place) => return self.definition(r, place, build),
            Type::Array(items, ..) => return self.array(r, items, build),
            Type::Map(values) => return self.map(r, values, build),
            Type::Nullable(inner) => match r.kind()? {
                Kind::Null => r.null()?,
                _ => return self.value(r, inner, build),
            },
            Type::Json => r.skip()?,
            Type::JsonObject => r.open_value_object()?,
            Type::String | Type::Formatted(_) => drop(r.str()?),
            Type::Boolean => drop(r.boolean()?),
            Type::Integer(..) => drop(Integer::decode(r)?),
            Type::Number(..) => drop(Number::decode(r)?),
            Type::RequestId | Type::ProgressToken => match r.kind()? {
                Kind::String => drop(r.str()?),
                Kind::Number => drop(Integer::decode(r)?),
                _ => return Err(r.expected("a string or an integer")),
            },
            Type::Constant(expected) => r.constant(expected)?,
            Type::ConstantInteger(expected, words) => r.constant_integer(expected, words)?,
        }
        Ok(self.text(r, start))
    }

    fn text<'t>(&self, r: &Reader<'t>, start: usize) -> Node<'t> {
        Node::text(r.text_since(start), self.at(start))
    }

    fn at(&self, start: usize) -> usize {
        if self.base == NOWHERE {
            NOWHERE
        } else {
            self.base + start
        }
    }

    fn node<'t>(&self, start: usize, body: Body<'t>) -> Node<'t> {
        Node {
            at: self.at(start),
            variants: 0,
            changed: false,
            body,
        }
    }

    fn definition<'t>(&self, r: &mut Reader<'t>, place: u16, build: bool) -> Read<Node<'t>> {
        let start = r.value_start();
        let definition = Definition::at(place);
        match &definition.shape {
            Shape::Object(layout) => return self.object(r, layout, build),
            Shape::Union(union) => return self.union(r, definition.name, union, build),
            Shape::Document(_) => r.open_value_object()?,
            Shape::Enum(_) => drop(r.str()?),
            Shape::Constant(value) => r.constant(value)?,
        }
        Ok(self.text(r, start))
    }

    fn object<'t>(
        &self,
        r: &mut Reader<'t>,
        layout: &'static Layout,
        build: bool,
    ) -> Read<Node<'t>> {
        let start = r.value_start();
        let mut object = MemberReader::open(r, &layout.members)?;
        let mut members = Vec::new();
        while let Some(member) = object.next(r)? {
            let value = match member.index {
                Some(index) => {
                    let value = layout.types[index];
                    self.value(r, value, build && self.wanted.has(value))?
                }
                None => {
                    let start = r.value_start();
                    r.skip()?;
                    self.text(r, start)
                }
            };
            if build {
                members.push(Member {
                    name: member.name,
                    value,
                });
            }
        }
        Ok(match build {
            true => self.node(start, Body::Object(r.text_since(start), members)),
            false => self.text(r, start),
        })
    }

    fn map<'t>(&self, r: &mut Reader<'t>, values: u16, build: bool) -> Read<Node<'t>> {
        let start = r.value_start();
        let mut entries = EntryReader::open(r)?;
        let mut members = Vec::new();
        let inner = build && self.wanted.has(values);
        while let Some(name) = entries.next(r)? {
            let value = self.value(r, values, inner)?;
            if build {
                members.push(Member { name, value });
            }
        }
        Ok(match build {
            true => self.node(start, Body::Object(r.text_since(start), members)),
            false => self.text(r, start),
        })
    }

    fn array<'t>(&self, r: &mut Reader<'t>, items: u16, build: bool) -> Read<Node<'t>> {
        let start = r.value_start();
        let mut nodes = Vec::new();
        let inner = build && self.wanted.has(items);
        let mut more = r.begin_array()?;
        while more {
            let node = self.value(r, items, inner)?;
            if build {
                nodes.push(node);
            }
            more = r.next_item()?;
        }
        Ok(match build {
            true => self.node(start, Body::Array(r.text_since(start), nodes)),
            false => self.text(r, start),
        })
    }

    fn union<'t>(
        &self,
        r: &mut Reader<'t>,
        name: &'static str,
        union: &'static Union,
        build: bool,
    ) -> Read<Node<'t>> {
        let start = r.value_start();
        let variant = select(r, name, union)?;
        if variant == UNKNOWN {
            r.unknown_tag(union.open)?;
            let mut node = self.text(r, start);
            node.push_variant(UNKNOWN);
            return Ok(node);
        }
        let value = union.variants[usize::from(variant)];
        let mut node = self.value(r, value, build && self.wanted.has(value))?;
        node.push_variant(variant);
        Ok(node)
    }
}

/// Which variant of a union the next value is.
fn select(r: &mut Reader<'_>, name: &'static str, union: &'static Union) -> Read<u8> {
    let has_only_objects = union.scalars == [NONE; 4] && union.arrays.is_empty();
    if !has_only_objects {
        let [string, number, boolean, null] = union.scalars;
        let variant = match r.kind()? {
            Kind::Object => return select_object(r, name, union),
            Kind::Array => return select_array(r, name, union),
            Kind::String => string,
            Kind::Number => number,
            Kind::Boolean => boolean,
            Kind::Null => null,
        };
        return match variant {
            NONE => Err(r.no_variant(name)),
            variant => Ok(variant),
        };
    }
    select_object(r, name, union)
}

fn select_object(r: &mut Reader<'_>, name: &'static str, union: &'static Union) -> Read<u8> {
    match union.objects {
        Objects::Only(variant) => Ok(variant),
        Objects::None => Err(r.no_variant(name)),
        Objects::Told(choice) => match r.pick(choice)? {
            UNRECOGNIZED if union.open.is_empty() => Err(r.no_variant(name)),
            UNRECOGNIZED => Ok(UNKNOWN),
            variant => Ok(variant),
        },
    }
}

fn select_array(r: &mut Reader<'_>, name: &'static str, union: &'static Union) -> Read<u8> {
    let Some(first) = union.arrays.first() else {
        return Err(r.no_variant(name));
    };
    let Some(items) = union.items else {
        return Ok(*first);
    };
    match r.pick_item(items)? {
        None => Ok(*first),
        Some(variant) if union.arrays.contains(&variant) => Ok(variant),
        Some(_) => Err(r.no_variant(name)),
    }
}
