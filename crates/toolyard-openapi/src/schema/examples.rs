//! Examples, with the references in them followed: some documents share their examples by `$ref`, which has no meaning
//! within a value.

use serde_json::{Map, Value};

use crate::document::SpecNode;
use crate::resolve::{NodeRef, SpecFiles};

/// Maximum nesting of an example, its references included.
const MAX_DEPTH: usize = 24;

/// Maximum number of values in an example.
const MAX_VALUES: usize = 5_000;

/// Members of an Example Object that have its value (OpenAPI 3.2, section 4.19).
const VALUE_MEMBERS: [&str; 2] = ["value", "dataValue"];

/// Returns an example as a value; `None` if a reference in it leads nowhere, or if it is too large.
pub(crate) fn example_value<'d>(files: &SpecFiles<'d>, at: NodeRef<'d>) -> Option<Value> {
    let mut budget = MAX_VALUES;
    value(files, at, MAX_DEPTH, &mut budget)
}

/// Returns the values of `examples`: a list of values in a schema, a map of Example Objects elsewhere.
pub(crate) fn example_list<'d>(files: &SpecFiles<'d>, at: NodeRef<'d>) -> Vec<Value> {
    let of_object = |(_, example)| {
        let example = files.resolve(example)?;
        example_value(files, VALUE_MEMBERS.iter().find_map(|member| example.get(member))?)
    };
    let listed = at.items().filter_map(|item| example_value(files, item));
    listed.chain(at.members().filter_map(of_object)).collect()
}

fn value<'d>(files: &SpecFiles<'d>, at: NodeRef<'d>, depth: usize, budget: &mut usize) -> Option<Value> {
    *budget = budget.checked_sub(1)?;
    let depth = depth.checked_sub(1)?;
    Some(match at.node {
        SpecNode::List(_) => {
            Value::Array(at.items().map(|item| value(files, item, depth, budget)).collect::<Option<_>>()?)
        }
        SpecNode::Object(members) => match at.reference().filter(|_| members.len() == 1) {
            Some(reference) => {
                let target = files.find(at.file, reference)?;
                let is_example = reference.contains("/examples/") && target.node.members().len() <= 4;
                let inside = VALUE_MEMBERS.iter().find_map(|member| target.get(member));
                value(files, inside.filter(|_| is_example).unwrap_or(target), depth, budget)?
            }
            None => {
                let member =
                    |(name, at): (&str, _)| Some((name.to_owned(), value(files, at, depth, budget)?));
                Value::Object(at.members().map(member).collect::<Option<Map<_, _>>>()?)
            }
        },
        scalar => scalar.to_value(),
    })
}
