//! Schemas without patterns that cost too much: the values of such a pattern are unchecked, instead of all arguments.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde_json::Value;

use super::pattern::{MAX_STATES, PatternSize};
use super::survey::MAX_ALL_STATES;

/// Keywords that refuse more if a schema below them accepts more. In schemas with one of them patterns stay.
const NEGATIVE: [&str; 4] = ["not", "if", "oneOf", "maxContains"];

/// Keywords with arbitrary values.
const VALUES: [&str; 4] = ["enum", "const", "default", "examples"];

/// Maximum nesting. A deeper schema is refused anyway.
const MAX_DEPTH: usize = 200;

/// Returns a schema without the largest ones of its patterns, such that the others are within the limits.
pub(super) fn without_costly_patterns(schema: &Value) -> Cow<'_, Value> {
    let mut found = FoundPatterns::default();
    found.collect(schema, MAX_DEPTH);
    let mut sum = found.sizes.values().fold(0_u64, |sum, states| sum.saturating_add(*states));
    let mut by_size: Vec<(&str, u64)> = found.sizes.into_iter().collect();
    by_size.sort_by_key(|(_, states)| std::cmp::Reverse(*states));
    let mut costly: Vec<String> = Vec::new();
    for (pattern, states) in by_size {
        if sum <= MAX_ALL_STATES && states <= MAX_STATES {
            break;
        }
        sum = sum.saturating_sub(states);
        costly.push(pattern.to_owned());
    }
    if costly.is_empty() || found.is_negative || found.is_deep {
        return Cow::Borrowed(schema);
    }
    let mut schema = schema.clone();
    remove(&mut schema, &costly);
    Cow::Owned(schema)
}

/// The patterns of a schema, with their sizes.
#[derive(Default)]
struct FoundPatterns<'s> {
    sizes: BTreeMap<&'s str, u64>,
    is_negative: bool,
    is_deep: bool,
}

impl<'s> FoundPatterns<'s> {
    fn collect(&mut self, schema: &'s Value, depth: usize) {
        let Some(depth) = depth.checked_sub(1) else {
            self.is_deep = true;
            return;
        };
        for (name, value) in schema.as_object().into_iter().flatten() {
            self.is_negative |= NEGATIVE.contains(&&**name);
            match value {
                Value::String(pattern) if name == "pattern" => {
                    self.sizes.entry(pattern).or_insert_with(|| PatternSize::of(pattern).states);
                }
                _ if VALUES.contains(&&**name) => {}
                value => self.collect(value, depth),
            }
        }
        schema.as_array().into_iter().flatten().for_each(|item| self.collect(item, depth));
    }
}

fn remove(schema: &mut Value, costly: &[String]) {
    if let Value::Object(members) = schema {
        let is_costly = |value: &Value| value.as_str().is_some_and(|text| costly.iter().any(|it| it == text));
        if members.get("pattern").is_some_and(is_costly) {
            members.remove("pattern");
        }
        let inner = members.iter_mut().filter(|(name, _)| !VALUES.contains(&&***name));
        inner.for_each(|(_, value)| remove(value, costly));
    } else if let Value::Array(items) = schema {
        items.iter_mut().for_each(|item| remove(item, costly));
    }
}
