//! Which of several schemas a value has, by one of its members (`discriminator`): 2020-12 says it with constants.

use serde_json::{Value, json};

use crate::document::Node;
use crate::resolve::{At, Files};

/// Says in each branch, as it was written, which values of the discriminating member lead to it.
pub(super) fn say<'d>(files: &Files<'d>, discriminator: At<'d>, branches: At<'d>, written: &mut [Value]) {
    // OpenAPI 2 has only the name.
    let Some(property) = discriminator.node.text("propertyName").or(discriminator.node.as_str()) else {
        return;
    };
    for (branch, written) in branches.items().zip(written) {
        let Some(reference) = branch.reference() else { continue };
        let names = names(discriminator, reference);
        let says_itself = files.resolve(branch).is_some_and(|target| {
            let own = super::flat(files, target);
            let own = own.properties.iter().find(|(name, _)| *name == property);
            own.is_some_and(|(_, own)| own.node.get("enum").is_some() || own.node.get("const").is_some())
        });
        let (Value::Object(written), false) = (written, says_itself) else { continue };
        let value = match &*names {
            [] => continue,
            [name] => json!({"const": name}),
            names => json!({"enum": names}),
        };
        written.insert("properties".to_owned(), json!({property: value}));
        written.insert("required".to_owned(), json!([property]));
    }
}

/// What a schema is called: as the mapping has it, or as it is called where it stands (OpenAPI 3.1, section 4.8.25).
fn names<'d>(discriminator: At<'d>, reference: &'d str) -> Vec<&'d str> {
    let own = reference.rsplit('/').next().unwrap_or(reference);
    let mapping = discriminator.node.get("mapping").map_or(&[][..], Node::members);
    let is_own = |target: &str| target == reference || target == own;
    let mapped = mapping.iter().filter(|(_, target)| target.as_str().is_some_and(is_own));
    let mapped: Vec<&str> = mapped.map(|(name, _)| &**name).collect();
    if mapped.is_empty() { vec![own] } else { mapped }
}
