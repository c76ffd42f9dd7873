//! Converts `discriminator`, which selects one of several schemas by a member, to constants of 2020-12.

use serde_json::{Value, json};

use crate::document::SpecNode;
use crate::resolve::{NodeRef, SpecFiles};

/// Adds to each branch the values of the discriminating member that select it.
pub(super) fn constrain_branches<'d>(
    files: &SpecFiles<'d>,
    discriminator: NodeRef<'d>,
    branches: NodeRef<'d>,
    schema: &mut [Value],
) {
    // In OpenAPI 2 the value is only the name.
    let Some(property) = discriminator.node.text("propertyName").or(discriminator.node.as_str()) else {
        return;
    };
    for (branch, schema) in branches.items().zip(schema) {
        let Some(reference) = branch.reference() else { continue };
        let names = names(discriminator, reference);
        let says_itself = files.resolve(branch).is_some_and(|target| {
            let own = super::flatten(files, target);
            let own = own.properties.iter().find(|(name, _)| *name == property);
            own.is_some_and(|(_, own)| own.node.get("enum").is_some() || own.node.get("const").is_some())
        });
        let (Value::Object(schema), false) = (schema, says_itself) else { continue };
        let value = match &*names {
            [] => continue,
            [name] => json!({"const": name}),
            names => json!({"enum": names}),
        };
        schema.insert("properties".to_owned(), json!({property: value}));
        schema.insert("required".to_owned(), json!([property]));
    }
}

/// Returns the values for a schema: those of the mapping, or its own name (OpenAPI 3.1, section 4.8.25).
fn names<'d>(discriminator: NodeRef<'d>, reference: &'d str) -> Vec<&'d str> {
    let own = reference.rsplit('/').next().unwrap_or(reference);
    let mapping = discriminator.node.get("mapping").map_or(&[][..], SpecNode::members);
    let is_own = |target: &str| target == reference || target == own;
    let mapped = mapping.iter().filter(|(_, target)| target.as_str().is_some_and(is_own));
    let mapped: Vec<&str> = mapped.map(|(name, _)| &**name).collect();
    if mapped.is_empty() { vec![own] } else { mapped }
}
