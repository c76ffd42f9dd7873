//! Closed objects (`additionalProperties: false`) of several parts.
//!
//! Validators apply the keyword to the members of its own part, so that closed parts of an `allOf` refuse the members of
//! one another. Authors mean an object that is closed around all parts, as `unevaluatedProperties` of 2020-12 says.

use serde_json::Value;

use super::{FlatSchema, SchemaDirection, SchemaRegistry, SchemaWriter, flatten};
use crate::document::SpecNode;
use crate::resolve::NodeRef;

/// Maximum nesting of closed parts that are written in open form.
const MAX_OPENED: usize = 8;

/// Keywords with parts that apply to the same object.
const PARTS: [&str; 3] = ["allOf", "anyOf", "oneOf"];

impl<'d> SchemaRegistry<'d> {
    /// True for a closed object that has no members but its own, so that it lacks those that it does not describe.
    pub(super) fn lacks_undescribed(&self, flat: &FlatSchema<'d>) -> bool {
        flat.is_closed()
            && !flat.properties.is_empty()
            && flat.keyword("patternProperties").is_none()
            && !self.has_members_elsewhere(flat)
    }

    /// True if alternatives or unmerged parts of an object describe members.
    pub(super) fn has_members_elsewhere(&self, flat: &FlatSchema<'d>) -> bool {
        let describes = |at: NodeRef<'d>| {
            let words = ["properties", "patternProperties", "additionalProperties"];
            let target = self.files.resolve(at);
            target.is_some_and(|at| words.iter().chain(&PARTS).any(|word| at.get(word).is_some()))
        };
        PARTS.iter().filter_map(|word| flat.keyword(word)).flat_map(NodeRef::items).any(describes)
    }

    /// Returns a closed part of an `allOf`. Parts of parts stay as they are.
    fn closed_part(&self, branch: NodeRef<'d>) -> Option<(usize, FlatSchema<'d>)> {
        let target = self.files.resolve(branch).filter(|target| target.get("allOf").is_none())?;
        let flat = flatten(self.files, target);
        let size = flat.properties.len() + flat.keywords.len();
        let is_affordable = self.opened.len() < MAX_OPENED && self.files.merge_budget() > size;
        let is_new = !self.opened.contains(&target.identity());
        (flat.is_closed() && is_affordable && is_new).then(|| {
            self.files.charge_merge(size);
            (target.identity(), flat)
        })
    }
}

impl<'d> SchemaWriter<'_, 'd> {
    /// Writes the parts of an `allOf`, closed ones in open form.
    pub(super) fn parts(&mut self, at: NodeRef<'d>, required: bool) -> Value {
        at.items().map(|part| self.part(part, required)).collect()
    }

    fn part(&mut self, part: NodeRef<'d>, required: bool) -> Value {
        let closed = match self.schemas.direction {
            SchemaDirection::Request => self.schemas.closed_part(part),
            SchemaDirection::Response => None,
        };
        let Some((identity, mut flat)) = closed else { return self.schema(part, required) };
        flat.keywords.retain(|(name, _)| *name != "additionalProperties");
        self.schemas.opened.push(identity);
        let open = self.keywords(&flat, required);
        self.schemas.opened.pop();
        open
    }

    /// True if a part of an unmerged `allOf` is closed, and thereby the object.
    pub(super) fn has_closed_part(&self, flat: &FlatSchema<'d>) -> bool {
        let is_closed = |part: NodeRef<'d>| {
            let target = self.schemas.files.resolve(part);
            target.is_some_and(|at| {
                at.node.get("additionalProperties") == Some(&SpecNode::Bool(false))
                    && at.get("allOf").is_none()
            })
        };
        flat.keyword("allOf").is_some_and(|all| all.items().any(is_closed))
    }
}
