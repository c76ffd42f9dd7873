//! Converts `discriminator`, which selects one of several schemas by a member, to constants of 2020-12.

use serde_json::{Value, json};

use super::SchemaRegistry;
use crate::document::SpecNode;
use crate::resolve::NodeRef;

/// Maximum depth of the search for the values that a schema allows itself.
const MAX_SEARCH_DEPTH: usize = 8;

/// Maximum number of values that a schema allows a discriminating member. With more it counts as any.
const MAX_VALUES: usize = 1000;

/// The values of the discriminating member that select a branch.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct BranchConstraint<'d> {
    pub(super) property: &'d str,
    pub(super) values: Vec<Value>,
}

impl<'d> BranchConstraint<'d> {
    /// Returns the constraint of a branch; `None` if it is inline, or allows none of the values that would select it.
    /// Many documents contain both an enumeration and schema names that are not among its values; services follow the
    /// enumeration.
    pub(super) fn of(
        schemas: &SchemaRegistry<'d>,
        discriminator: NodeRef<'d>,
        branch: NodeRef<'d>,
    ) -> Option<Self> {
        // In OpenAPI 2 the value is only the name.
        let property = discriminator.node.text("propertyName").or(discriminator.node.as_str())?;
        let names = selecting_values(discriminator, branch.reference()?);
        let values = match own_values(schemas, branch, property, MAX_SEARCH_DEPTH) {
            Some(own) => names.into_iter().filter(|name| own.contains(name)).collect(),
            None => names,
        };
        (!values.is_empty()).then_some(Self { property, values })
    }

    /// Adds the constraint to the schema of its branch.
    pub(super) fn apply(&self, schema: &mut Value) {
        let Value::Object(schema) = schema else { return };
        let value = match &*self.values {
            [value] => json!({"const": value}),
            values => json!({"enum": values}),
        };
        schema.insert("properties".to_owned(), json!({self.property: value}));
        schema.insert("required".to_owned(), json!([self.property]));
    }
}

/// Returns the values for a schema: those of the mapping, or its own name (OpenAPI 3.1, section 4.8.25).
fn selecting_values(discriminator: NodeRef<'_>, reference: &str) -> Vec<Value> {
    let own = reference.rsplit('/').next().unwrap_or(reference);
    let mapping = discriminator.node.get("mapping").map_or(&[][..], SpecNode::members);
    let is_own = |target: &str| target == reference || target == own;
    let mapped = mapping.iter().filter(|(_, target)| target.as_str().is_some_and(is_own));
    let mapped: Vec<Value> = mapped.map(|(name, _)| Value::from(&**name)).collect();
    if mapped.is_empty() { vec![own.into()] } else { mapped }
}

impl<'d> SchemaRegistry<'d> {
    /// Resolves the next schema of a search. `None` at its depth, and if the budget of searches is used up.
    fn search(&self, schema: NodeRef<'d>, depth: usize) -> Option<NodeRef<'d>> {
        (depth > 0 && self.searches.step()).then(|| self.files.resolve(schema))?
    }
}

/// Returns the values that a schema allows for a member, from its enumerations and nested discriminators. `None`: any.
pub(super) fn own_values<'d>(
    schemas: &SchemaRegistry<'d>,
    schema: NodeRef<'d>,
    property: &str,
    depth: usize,
) -> Option<Vec<Value>> {
    let schema = schemas.search(schema, depth)?;
    let member = schema.get("properties").and_then(|members| members.get(property));
    let of_member = member.and_then(|member| enumerated_values(schemas, member, depth - 1));
    let of_parts = schema.list("allOf").map(|part| own_values(schemas, part, property, depth - 1));
    let discriminator = schema
        .get("discriminator")
        .filter(|at| at.node.text("propertyName").or(at.node.as_str()) == Some(property));
    let of_branches = ["oneOf", "anyOf"].into_iter().map(|word| {
        let branches = schema.list(word).map(|branch| {
            let own = own_values(schemas, branch, property, depth - 1);
            own.or_else(|| Some(selecting_values(discriminator?, branch.reference()?)))
        });
        union(branches)
    });
    std::iter::once(of_member).chain(of_parts).chain(of_branches).flatten().reduce(intersection)
}

/// Returns the values that a schema enumerates. `None`: any.
fn enumerated_values<'d>(
    schemas: &SchemaRegistry<'d>,
    schema: NodeRef<'d>,
    depth: usize,
) -> Option<Vec<Value>> {
    let schema = schemas.search(schema, depth)?;
    let constant = schema.get("const").map(|value| vec![value.node.to_value()]);
    let values = schema.node.list("enum");
    let values =
        (1..=MAX_VALUES).contains(&values.len()).then(|| values.iter().map(SpecNode::to_value).collect());
    let of_parts = schema.list("allOf").map(|part| enumerated_values(schemas, part, depth - 1));
    let of_branches = ["oneOf", "anyOf"]
        .into_iter()
        .map(|word| union(schema.list(word).map(|branch| enumerated_values(schemas, branch, depth - 1))));
    [constant, values].into_iter().chain(of_parts).chain(of_branches).flatten().reduce(intersection)
}

/// Returns the values of all alternatives; `None` if there are none, or too many, or one of them allows any value.
fn union(alternatives: impl Iterator<Item = Option<Vec<Value>>>) -> Option<Vec<Value>> {
    let all: Option<Vec<Vec<Value>>> = alternatives.collect();
    all.map(|all| all.concat()).filter(|all| (1..=MAX_VALUES).contains(&all.len()))
}

fn intersection(mut one: Vec<Value>, other: Vec<Value>) -> Vec<Value> {
    one.retain(|value| other.contains(value));
    one
}
