//! Converts the branches of `oneOf` and `anyOf`.
//!
//! Without their `readOnly` members several branches of a `oneOf` can accept the same values. No value would match
//! exactly one of them.

use serde_json::Value;

use super::discriminator::BranchConstraint;
use super::{FlatSchema, SchemaDirection, SchemaRegistry, SchemaWriter, flatten};
use crate::resolve::NodeRef;

/// Maximum depth at which two branches are compared.
pub(super) const MAX_COMPARED_DEPTH: usize = 8;

/// Maximum number of branches that are compared with one another.
const MAX_COMPARED_BRANCHES: usize = 128;

/// A branch, and the values of a discriminator that select it.
pub(super) struct Branch<'d> {
    pub(super) at: NodeRef<'d>,
    pub(super) constraint: Option<BranchConstraint<'d>>,
}

/// The difference between two schemas that is ignored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ignored {
    Annotations,
    /// Validators treat `format` as an annotation (JSON Schema 2020-12 Validation, section 7.2.1).
    Formats,
}

impl<'d> SchemaWriter<'_, 'd> {
    /// Returns the keyword for these alternatives, and their schemas.
    pub(super) fn alternatives(
        &mut self,
        keyword: &'d str,
        at: NodeRef<'d>,
        flat: &FlatSchema<'d>,
    ) -> (&'d str, Value) {
        if self.schemas.direction == SchemaDirection::Response {
            // Without constraints a value may match several branches.
            return ("anyOf", at.items().map(|branch| self.schema(branch, false)).collect());
        }
        let discriminator = flat.keyword("discriminator");
        let constraint = |branch| BranchConstraint::of(self.schemas, discriminator?, branch);
        let mut branches: Vec<Branch<'d>> =
            at.items().map(|at| Branch { at, constraint: constraint(at) }).collect();
        let is_any = keyword == "oneOf" && self.schemas.merge_alike(&mut branches);
        let schemas = branches.iter().map(|branch| {
            let mut schema = self.schema(branch.at, false);
            branch.constraint.iter().for_each(|constraint| constraint.apply(&mut schema));
            schema
        });
        let schemas = schemas.collect();
        (if is_any { "anyOf" } else { keyword }, schemas)
    }
}

impl<'d> SchemaRegistry<'d> {
    /// Removes each branch that accepts the same values as an earlier one. Returns true if values may still match
    /// several of the others: some have lost members, differ in formats only, or are covered by another one.
    fn merge_alike(&self, branches: &mut Vec<Branch<'d>>) -> bool {
        if branches.len() > MAX_COMPARED_BRANCHES {
            return false;
        }
        let mut is_any = branches.iter().any(|branch| self.has_lost_members(branch.at));
        let mut distinct: Vec<Branch<'d>> = Vec::with_capacity(branches.len());
        for branch in branches.drain(..) {
            let is_alike = |other: &Branch<'d>, ignored| {
                other.constraint == branch.constraint
                    && self.is_alike(other.at, branch.at, ignored, MAX_COMPARED_DEPTH)
            };
            if distinct.iter().any(|other| is_alike(other, Ignored::Annotations)) {
                continue;
            }
            is_any = is_any || distinct.iter().any(|other| is_alike(other, Ignored::Formats));
            distinct.push(branch);
        }
        *branches = distinct;
        is_any || self.has_covered_branch(branches)
    }

    fn has_lost_members(&self, at: NodeRef<'d>) -> bool {
        let Some(at) = self.files.resolve(at) else { return false };
        let flat = flatten(self.files, at);
        self.visible_properties(&flat).len() < flat.properties.len()
    }

    /// True if two schemas accept the same values. False also if the budget of searches is used up.
    fn is_alike(&self, one: NodeRef<'d>, other: NodeRef<'d>, ignored: Ignored, depth: usize) -> bool {
        let (one, other) = match (self.files.resolve(one), self.files.resolve(other)) {
            (Some(one), Some(other)) => (one, other),
            // Unresolved references accept anything.
            (one, other) => return one.is_none() && other.is_none(),
        };
        if one.identity() == other.identity() {
            return true;
        }
        if !self.searches.step() {
            return false;
        }
        if depth == 0 || !one.node.is_object() || !other.node.is_object() {
            return one.file == other.file && one.node == other.node;
        }
        let (one, other) = (flatten(self.files, one), flatten(self.files, other));
        self.has_alike_properties(&one, &other, ignored, depth)
            && self.has_alike_keywords(&one, &other, ignored, depth)
    }

    fn has_alike_properties(
        &self,
        one: &FlatSchema<'d>,
        other: &FlatSchema<'d>,
        ignored: Ignored,
        depth: usize,
    ) -> bool {
        let (mine, others) = (self.visible_properties(one), self.visible_properties(other));
        let is_in = |(name, at): &(&str, NodeRef<'d>)| {
            let same = others.iter().find(|(other, _)| other == name);
            same.is_some_and(|(_, other)| self.is_alike(*at, *other, ignored, depth - 1))
        };
        let (mut required, mut other_required) = (self.required_names(one), self.required_names(other));
        required.sort_unstable();
        other_required.sort_unstable();
        mine.len() == others.len() && required == other_required && mine.iter().all(is_in)
    }

    fn has_alike_keywords(
        &self,
        one: &FlatSchema<'d>,
        other: &FlatSchema<'d>,
        ignored: Ignored,
        depth: usize,
    ) -> bool {
        let constraints = |flat: &FlatSchema<'d>| -> Vec<(&'d str, NodeRef<'d>)> {
            let is_constraint = |(name, _): &&(&str, NodeRef<'d>)| !is_annotation(name, ignored);
            flat.keywords.iter().filter(is_constraint).copied().collect()
        };
        let (mine, others) = (constraints(one), constraints(other));
        let is_in = |(name, at): &(&str, NodeRef<'d>)| {
            let Some((_, other)) = others.iter().find(|(other, _)| other == name) else { return false };
            match *name {
                "items" | "additionalProperties" | "not" => self.is_alike(*at, *other, ignored, depth - 1),
                "allOf" | "anyOf" | "oneOf" => {
                    at.node.items().len() == other.node.items().len()
                        && at
                            .items()
                            .zip(other.items())
                            .all(|(one, other)| self.is_alike(one, other, ignored, depth - 1))
                }
                _ => at.file == other.file && at.node == other.node,
            }
        };
        mine.len() == others.len() && mine.iter().all(is_in)
    }
}

/// True for a keyword that rejects no value.
pub(super) fn is_annotation(name: &str, ignored: Ignored) -> bool {
    match name {
        "title" | "description" | "example" | "examples" | "default" | "externalDocs" | "xml"
        | "deprecated" | "readOnly" | "writeOnly" | "discriminator" | "$comment" => true,
        "format" => ignored == Ignored::Formats,
        name => name.starts_with("x-"),
    }
}
