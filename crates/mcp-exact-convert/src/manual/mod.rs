//! Manual conversions, which schema differences do not show; `schema/conversions.toml` lists them.
//!
//! Each function modifies a value in place for one step. A moved value keeps its offset, which later losses refer to.

pub mod audio;
pub mod completion;
pub mod elicitation;
pub mod links;
pub mod sampling;
pub mod schemas;
pub mod structured;
pub mod tasks;
pub mod titles;
pub mod urls;
pub mod versions;

use crate::conversion::Conversion;
use crate::layout::{Definition, Type, Union};
use crate::loss::Step;
use crate::node::{Body, Node};

impl<'t> Conversion<'_, 't> {
    /// Marks a value as the variant of the target union with the definition `name`.
    fn set_variant(&self, node: &mut Node<'t>, name: &str) {
        let union = self.target().union();
        if let Some(variant) = union.and_then(|union| variant_of(union, name)) {
            node.push_variant(variant);
        }
    }

    /// Converts an optional member by the rule of two definitions; drops and reports a member that cannot be converted.
    fn convert_member_as(
        &mut self,
        node: &mut Node<'t>,
        name: &'static str,
        source: &str,
        target: &str,
    ) -> Step<()> {
        let Some(member) = node.member(name) else {
            return Ok(());
        };
        let (mark, at) = (self.mark(), member.at);
        self.enter(name, at);
        match self.convert_as(member, source, target) {
            Ok(()) => {
                self.leave();
                Ok(())
            }
            Err(refusal) => {
                self.back_to(&mark);
                member.body = Body::Removed;
                node.changed = true;
                self.drop_or_refuse(name, at, *refusal)
            }
        }
    }
}

/// Returns the index of the union variant whose type is the definition `name`.
fn variant_of(union: &Union, name: &str) -> Option<u8> {
    let mut variants = union.variants.rows().iter();
    let at = variants.position(|value| Type::at(*value).name() == name)?;
    u8::try_from(at).ok()
}

/// Returns the definition of a member of an object; for an array member, the definition of its items.
fn member_definition(definition: &Definition, member: &str) -> Option<&'static Definition> {
    let layout = definition.layout()?;
    let value = Type::at(layout.type_of(layout.find(member)?));
    item_definition(value)
}

/// Returns the definition of a type; for an array, that of its items.
fn item_definition(value: Type) -> Option<&'static Definition> {
    match value {
        Type::Definition(place) => Some(Definition::at(place)),
        Type::Array(items, ..) => item_definition(Type::at(items)),
        _ => None,
    }
}
