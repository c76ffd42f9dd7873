//! Values that no schema or map of a document can have.

use crate::document::SpecNode;
use crate::schema;

/// Maximum length of a value in a fault, in characters.
const MAX_SHOWN_CHARS: usize = 80;

/// Maps whose values are objects, besides those of schemas.
const OBJECT_MAPS: [&str; 9] = [
    "dependentSchemas",
    "responses",
    "headers",
    "securitySchemes",
    "securityDefinitions",
    "links",
    "requestBodies",
    "content",
    "encoding",
];

/// Returns the problem of a member of a map, such as a response that is a text.
pub(super) fn problem_of_member(map: &str, name: &str, value: &SpecNode<'_>) -> Option<String> {
    let is_extension = map == "responses" && name.starts_with("x-");
    let is_valid = value.is_object() || matches!(value, SpecNode::Bool(_)) || is_extension;
    let problem = match map {
        "patternProperties" if schema::to_ecmascript(name).is_none() => {
            "no regular expression of ECMAScript: it is ignored"
        }
        "properties" | "definitions" | "$defs" | "schemas" if !is_valid => {
            "not an object: any value is accepted"
        }
        map if OBJECT_MAPS.contains(&map) && !is_valid => "not an object: it is ignored",
        _ => return None,
    };
    Some(problem.to_owned())
}

/// Returns the problem of a keyword of a schema.
pub(super) fn problem_of_keyword(name: &str, value: &SpecNode<'_>) -> Option<String> {
    let problem = match name {
        "type" if schema::types(value).is_none() => {
            format!("unknown type {}: any value is accepted", excerpt(value))
        }
        "pattern" => match value {
            SpecNode::Text(text) if schema::to_ecmascript(text).is_some() => return None,
            _ => format!("{} is no regular expression of ECMAScript: it is ignored", excerpt(value)),
        },
        "enum" if value.items().is_empty() => "no list of values: it is ignored".to_owned(),
        "minLength" | "maxLength" | "minItems" | "maxItems" | "minProperties" | "maxProperties"
            if schema::count(value).is_none() =>
        {
            format!("{} is no number of items or characters: it is ignored", excerpt(value))
        }
        _ => return None,
    };
    Some(problem)
}

/// Returns the problem of a closed object that requires members which it cannot have.
pub(super) fn problem_of_object(node: &SpecNode<'_>) -> Option<String> {
    let is_closed = node.get("additionalProperties") == Some(&SpecNode::Bool(false));
    let has_others = ["patternProperties", "allOf", "anyOf", "oneOf", "$ref"];
    let properties = node.get("properties").filter(|properties| !properties.members().is_empty())?;
    if !is_closed || has_others.iter().any(|word| node.get(word).is_some()) {
        return None;
    }
    let required = node.list("required").iter().filter_map(SpecNode::as_str);
    let lacking: Vec<&str> = required.filter(|name| properties.get(name).is_none()).collect();
    let lacks = |names: &str, verb: &str| format!("the closed object has no {names}: {verb} not required");
    match &*lacking {
        [] => None,
        [name] => Some(lacks(&format!("member `{name}`"), "it is")),
        names => {
            Some(lacks(&format!("members {}", excerpt(&SpecNode::Text(names.join(", ").into()))), "they are"))
        }
    }
}

fn excerpt(value: &SpecNode<'_>) -> String {
    let text = value.as_str().map_or_else(|| value.to_value().to_string(), str::to_owned);
    match text.char_indices().nth(MAX_SHOWN_CHARS) {
        Some((end, _)) => format!("`{}...`", &text[..end]),
        None => format!("`{text}`"),
    }
}
