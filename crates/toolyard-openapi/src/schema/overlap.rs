//! Finds branches of a `oneOf` whose values match other branches as well.
//!
//! Most objects are open and most members optional. A `oneOf` of such branches refuses values that the service accepts.

use std::collections::{HashMap, HashSet};

use serde_json::Value;

use super::alternatives::{Branch, Ignored, MAX_COMPARED_DEPTH, is_annotation};
use super::discriminator::own_values;
use super::{SchemaDialect, SchemaRegistry, flatten, keywords};
use crate::document::SpecNode;
use crate::resolve::NodeRef;

/// Maximum number of parts of a schema that are compared.
const MAX_PARTS: usize = 64;

/// The constraints of a schema and of all parts of its `allOf`.
#[derive(Default)]
struct SchemaConstraints<'d> {
    /// The schemas of each member.
    properties: HashMap<&'d str, Vec<NodeRef<'d>>>,
    required: HashSet<&'d str>,
    /// Other keywords, without annotations.
    keywords: Vec<(&'d str, NodeRef<'d>)>,
}

/// A branch with all that distinguishes it from others.
struct ComparedBranch<'b, 'd> {
    branch: &'b Branch<'d>,
    /// The values of the discriminating member that it allows. `None`: any.
    selecting: Option<Vec<Value>>,
    all: SchemaConstraints<'d>,
}

impl<'d> SchemaRegistry<'d> {
    /// True if all values of one branch that have only the members it describes match another branch as well. False
    /// also if the budget of comparisons is used up.
    pub(super) fn has_covered_branch(&self, branches: &[Branch<'d>]) -> bool {
        let property = branches.iter().find_map(|it| it.constraint.as_ref()).map(|it| it.property);
        let compared = |branch| {
            Some(ComparedBranch {
                branch,
                selecting: property.and_then(|property| self.selecting(branch, property)),
                all: self.constraints(branch.at)?,
            })
        };
        let compared: Vec<ComparedBranch<'_, 'd>> = branches.iter().filter_map(compared).collect();
        let covers = |one: &ComparedBranch<'_, 'd>, other: &ComparedBranch<'_, 'd>| {
            one.requires_all(other)
                && one.is_selected_by(other)
                && self.comparisons.step()
                && self.implies(one.branch.at, &one.all, &other.all, MAX_COMPARED_DEPTH)
        };
        compared.iter().enumerate().any(|(index, one)| {
            let mut others = compared.iter().enumerate().filter(|(other, _)| *other != index);
            others.any(|(_, other)| covers(one, other))
        })
    }

    /// Returns the values of the discriminating member that a branch allows. `None`: any.
    fn selecting(&self, branch: &Branch<'d>, property: &str) -> Option<Vec<Value>> {
        match &branch.constraint {
            Some(constraint) => Some(constraint.values.clone()),
            None => own_values(self, branch.at, property, MAX_COMPARED_DEPTH),
        }
    }

    /// Collects the constraints of a schema; `None` if they are too many, or nothing matches it.
    fn constraints(&self, at: NodeRef<'d>) -> Option<SchemaConstraints<'d>> {
        let mut all = SchemaConstraints::default();
        let mut pending = vec![at];
        for _ in 0..MAX_PARTS {
            let Some(at) = pending.pop() else { return Some(all) };
            if self.has_siblings(at) {
                self.add_part(at, &mut all, &mut pending);
            }
            match self.files.resolve(at) {
                Some(NodeRef { node: SpecNode::Bool(false), .. }) => return None,
                Some(at) => self.add_part(at, &mut all, &mut pending),
                // Unresolved references accept anything.
                None => {}
            }
        }
        None
    }

    fn add_part(&self, at: NodeRef<'d>, all: &mut SchemaConstraints<'d>, parts: &mut Vec<NodeRef<'d>>) {
        let flat = flatten(self.files, at);
        for (name, at) in self.visible_properties(&flat) {
            all.properties.entry(name).or_default().push(at);
        }
        all.required.extend(self.required_names(&flat));
        for (name, at) in flat.keywords {
            match name {
                "allOf" => parts.extend(at.items()),
                "$ref" => {}
                _ if is_annotation(name, Ignored::Formats) => {}
                _ => all.keywords.push((name, at)),
            }
        }
    }

    /// True for a reference whose siblings apply.
    fn has_siblings(&self, at: NodeRef<'d>) -> bool {
        self.dialect == SchemaDialect::New && at.reference().is_some() && at.node.members().len() > 1
    }

    /// True if all values of a schema match another one.
    fn is_covered(&self, at: NodeRef<'d>, other: NodeRef<'d>, depth: usize) -> bool {
        let is_same = self.files.resolve(at).zip(self.files.resolve(other)).is_some_and(|(at, other)| {
            at.identity() == other.identity() || (at.file == other.file && at.node == other.node)
        });
        if is_same && !self.has_siblings(other) {
            return true;
        }
        if depth == 0 || !self.comparisons.step() {
            return false;
        }
        let (Some(one), Some(all)) = (self.constraints(at), self.constraints(other)) else { return false };
        all.required.is_subset(&one.required) && self.implies(at, &one, &all, depth)
    }

    /// True if values with the constraints `one`, which are those of `at`, satisfy all others but `required`.
    fn implies(
        &self,
        at: NodeRef<'d>,
        one: &SchemaConstraints<'d>,
        others: &SchemaConstraints<'d>,
        depth: usize,
    ) -> bool {
        let is_implied = |(name, constraint): &(&'d str, NodeRef<'d>)| {
            self.comparisons.step() && self.implies_keyword(at, one, others, (name, *constraint), depth)
        };
        let is_satisfied = |(name, constraints): (&&'d str, &Vec<NodeRef<'d>>)| {
            // Members that are not described are not in these values.
            let Some(own) = one.properties.get(name) else { return true };
            let is_covered = |constraint: &NodeRef<'d>| {
                own.iter().any(|own| self.is_covered(*own, *constraint, depth - 1))
            };
            self.comparisons.step() && constraints.iter().all(is_covered)
        };
        others.keywords.iter().all(is_implied) && others.properties.iter().all(is_satisfied)
    }

    fn implies_keyword(
        &self,
        at: NodeRef<'d>,
        one: &SchemaConstraints<'d>,
        others: &SchemaConstraints<'d>,
        (name, constraint): (&'d str, NodeRef<'d>),
        depth: usize,
    ) -> bool {
        let is_same = |own: NodeRef<'d>| own.file == constraint.file && own.node == constraint.node;
        match (name, constraint.node) {
            ("type", node) => keywords::types(node).is_none_or(|allowed| one.is_of_type(&allowed)),
            ("nullable", _) | ("additionalProperties", SpecNode::Bool(true)) => true,
            ("additionalProperties", SpecNode::Bool(false)) => {
                one.properties.keys().all(|name| others.properties.contains_key(name))
            }
            ("enum" | "const", node) => {
                let own = one.keywords.iter().filter(|(name, _)| matches!(*name, "enum" | "const"));
                let allowed = alternatives(name, node);
                own.into_iter().any(|(name, own)| {
                    let own = alternatives(name, own.node);
                    self.comparisons.take(own.len().saturating_mul(allowed.len()))
                        && own.iter().all(|value| allowed.contains(value))
                })
            }
            ("items", SpecNode::Object(_)) => {
                one.all(name).any(|own| self.is_covered(own, constraint, depth - 1))
            }
            ("anyOf" | "oneOf", SpecNode::List(_)) => {
                one.all(name).any(is_same)
                    || constraint.items().any(|branch| self.is_covered(at, branch, depth - 1))
            }
            _ => one.all(name).any(is_same),
        }
    }
}

impl<'d> ComparedBranch<'_, 'd> {
    /// The discriminating member, which a branch with an implicit value requires.
    fn selected_member(&self) -> Option<&'d str> {
        self.branch.constraint.as_ref().map(|constraint| constraint.property)
    }

    /// True if this branch requires all members that another one requires.
    fn requires_all(&self, other: &Self) -> bool {
        let mut needed = other.all.required.iter().copied().chain(other.selected_member());
        needed.all(|name| self.all.required.contains(name) || self.selected_member() == Some(name))
    }

    /// True if the other branch allows each value that selects this one.
    fn is_selected_by(&self, other: &Self) -> bool {
        if self.branch.constraint.is_none() && other.branch.constraint.is_none() {
            return true;
        }
        let Some(allowed) = &other.selecting else { return true };
        let own = self.selecting.as_ref();
        own.is_some_and(|own| own.iter().all(|value| allowed.contains(value)))
    }
}

impl<'d> SchemaConstraints<'d> {
    /// Returns all values of a keyword.
    fn all(&self, name: &str) -> impl Iterator<Item = NodeRef<'d>> {
        self.keywords.iter().filter(move |(known, _)| *known == name).map(|(_, at)| *at)
    }

    /// True if only these types match; without a type, the properties show that objects are meant.
    fn is_of_type(&self, allowed: &Value) -> bool {
        let allows = |kind: &Value| {
            let is = |name: &Value| name == kind || (name == "number" && kind == "integer");
            allowed.as_array().map_or_else(|| is(allowed), |all| all.iter().any(is))
        };
        let mut types = self.all("type").filter_map(|at| keywords::types(at.node)).peekable();
        if types.peek().is_none() {
            return !self.properties.is_empty() && allows(&"object".into());
        }
        // `null` in addition to another type makes no difference.
        let are_allowed =
            |own: &Vec<Value>| own.iter().all(|kind| allows(kind) || (kind == "null" && own.len() > 1));
        types.any(|own| own.as_array().map_or_else(|| allows(&own), are_allowed))
    }
}

/// Returns the values of `enum` or `const`.
fn alternatives<'n, 'd>(keyword: &str, node: &'n SpecNode<'d>) -> &'n [SpecNode<'d>] {
    if keyword == "const" { std::slice::from_ref(node) } else { node.items() }
}
