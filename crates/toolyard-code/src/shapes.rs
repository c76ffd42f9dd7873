//! Shapes of results, for tools whose servers declare no output schema.
//!
//! A shape has the names of members, which may be data. So a caller sees only the shapes of its own results.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::Value;

use crate::typescript::{Member, UNKNOWN, list, object, record, union};

/// Maximum nesting of a shape.
const MAX_DEPTH: usize = 6;

/// Maximum number of items of an array that are looked at.
const MAX_ITEMS: usize = 50;

/// Number of members from which an object is a table with names as keys.
const MAX_MEMBERS: usize = 40;

/// Maximum number of values of one result that are looked at.
const MAX_VALUES: usize = 2_000;

/// The shape of one or more values.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Shape {
    is_null: bool,
    is_boolean: bool,
    is_number: bool,
    is_string: bool,
    /// Shape of the items, if there are arrays.
    items: Option<Box<Shape>>,
    members: Option<Members>,
}

/// Members of objects.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Members {
    /// By name; true if some of the objects lack it.
    Named(BTreeMap<String, (Shape, bool)>),
    /// Too many to be listed: the shape of all of them.
    Any(Box<Shape>),
}

impl Shape {
    /// Returns the shape of a value. Of large values a part is looked at.
    #[must_use]
    pub fn of(value: &Value) -> Self {
        Self::within(value, 0, &mut MAX_VALUES.clone())
    }

    fn within(value: &Value, depth: usize, left: &mut usize) -> Self {
        let mut shape = Self::default();
        if depth >= MAX_DEPTH || *left == 0 {
            return shape;
        }
        *left -= 1;
        match value {
            Value::Null => shape.is_null = true,
            Value::Bool(_) => shape.is_boolean = true,
            Value::Number(_) => shape.is_number = true,
            Value::String(_) => shape.is_string = true,
            Value::Array(items) => {
                let items = items.iter().take(MAX_ITEMS).map(|item| Self::within(item, depth + 1, left));
                shape.items = Some(Box::new(items.reduce(Self::merged).unwrap_or_default()));
            }
            Value::Object(members) if members.len() > MAX_MEMBERS => {
                let values =
                    members.values().take(MAX_ITEMS).map(|value| Self::within(value, depth + 1, left));
                shape.members = Some(Members::Any(Box::new(values.reduce(Self::merged).unwrap_or_default())));
            }
            Value::Object(members) => {
                let named = members
                    .iter()
                    .map(|(name, value)| (name.clone(), (Self::within(value, depth + 1, left), false)));
                shape.members = Some(Members::Named(named.collect()));
            }
        }
        shape
    }

    /// Returns the shape of the values of both shapes.
    #[must_use]
    pub fn merged(self, other: Self) -> Self {
        Self {
            is_null: self.is_null || other.is_null,
            is_boolean: self.is_boolean || other.is_boolean,
            is_number: self.is_number || other.is_number,
            is_string: self.is_string || other.is_string,
            items: merged(self.items, other.items, |one, other| Box::new(one.merged(*other))),
            members: merged(self.members, other.members, Members::merged),
        }
    }

    /// Returns the shape as a type.
    #[must_use]
    pub fn to_type(&self) -> String {
        let plain = [(self.is_string, "string"), (self.is_number, "number"), (self.is_boolean, "boolean")];
        let mut types: Vec<_> =
            plain.iter().filter(|(is, _)| *is).map(|(_, name)| (*name).to_owned()).collect();
        types.extend(self.items.as_ref().map(|items| list(&items.to_type())));
        types.extend(self.members.as_ref().map(Members::to_type));
        if self.is_null {
            types.push("null".to_owned());
        }
        if types.is_empty() { UNKNOWN.to_owned() } else { union(types) }
    }
}

fn merged<T>(one: Option<T>, other: Option<T>, merge: impl FnOnce(T, T) -> T) -> Option<T> {
    match (one, other) {
        (Some(one), Some(other)) => Some(merge(one, other)),
        (one, other) => one.or(other),
    }
}

impl Members {
    fn merged(self, other: Self) -> Self {
        let (Self::Named(mut all), Self::Named(others)) = (self.clone(), other.clone()) else {
            return Self::Any(Box::new(self.any().merged(other.any())));
        };
        for (name, member) in &mut all {
            member.1 |= !others.contains_key(name);
        }
        for (name, (shape, is_optional)) in others {
            let merged = match all.remove(&name) {
                Some((own, was_optional)) => (own.merged(shape), was_optional || is_optional),
                None => (shape, true),
            };
            all.insert(name, merged);
        }
        if all.len() > MAX_MEMBERS { Self::Any(Box::new(Self::Named(all).any())) } else { Self::Named(all) }
    }

    fn any(self) -> Shape {
        match self {
            Self::Any(shape) => *shape,
            Self::Named(members) => {
                members.into_values().map(|(shape, _)| shape).reduce(Shape::merged).unwrap_or_default()
            }
        }
    }

    fn to_type(&self) -> String {
        match self {
            Self::Any(shape) => record(&shape.to_type()),
            Self::Named(members) if members.is_empty() => "{}".to_owned(),
            Self::Named(members) => {
                let member = |(name, (shape, is_optional)): (&String, &(Shape, bool))| Member {
                    name: name.clone(),
                    is_optional: *is_optional,
                    type_text: shape.to_type(),
                    comment: None,
                };
                object(&members.iter().map(member).collect::<Vec<_>>())
            }
        }
    }
}

/// Key of a caller, and the published name of a tool.
type ShapeKey = (Option<Arc<str>>, Arc<str>);

/// Shapes of the results that callers have got, by tool. The least recently used ones are forgotten.
pub struct ObservedShapes {
    capacity: usize,
    state: Mutex<ShapeMemory>,
}

#[derive(Default)]
struct ShapeMemory {
    shapes: HashMap<ShapeKey, (Shape, u64)>,
    /// Counter of uses.
    uses: u64,
}

impl ObservedShapes {
    /// Creates an empty memory for so many shapes.
    #[must_use]
    pub fn new(capacity: usize) -> Self {
        Self { capacity: capacity.max(1), state: Mutex::default() }
    }

    /// Adds the shape of a result.
    pub fn observe(&self, principal: Option<&Arc<str>>, tool: &Arc<str>, value: &Value) {
        let (shape, key) = (Shape::of(value), (principal.cloned(), tool.clone()));
        let mut memory = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        memory.uses += 1;
        let now = memory.uses;
        let shape = match memory.shapes.remove(&key) {
            Some((known, _)) => known.merged(shape),
            None => shape,
        };
        if memory.shapes.len() >= self.capacity {
            let oldest = memory.shapes.iter().min_by_key(|(_, (_, used))| *used).map(|(key, _)| key.clone());
            oldest.iter().for_each(|key| drop(memory.shapes.remove(key)));
        }
        memory.shapes.insert(key, (shape, now));
    }

    /// Returns the type of the results that this caller has got.
    #[must_use]
    pub fn type_of(&self, principal: Option<&Arc<str>>, tool: &Arc<str>) -> Option<String> {
        let mut memory = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        memory.uses += 1;
        let now = memory.uses;
        let (shape, used) = memory.shapes.get_mut(&(principal.cloned(), tool.clone()))?;
        *used = now;
        Some(shape.to_type())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(values: &[Value], expected: &str) {
        let shape = values.iter().map(Shape::of).reduce(Shape::merged).expect("a value");
        assert_eq!(shape.to_type(), expected);
    }

    #[test]
    fn values_have_types() {
        check(&[json!("a")], "string");
        check(&[json!("a"), json!(1), json!(null)], "string | number | null");
        check(&[json!([])], "unknown[]");
        check(&[json!([1, "a"])], "(string | number)[]");
        check(&[json!({})], "{}");
        check(
            &[json!([{"id": 1, "name": "a"}, {"id": 2, "tags": []}])],
            "{ id: number; name?: string; tags?: unknown[] }[]",
        );
        check(&[json!({"a": 1}), json!({"a": null, "b": true})], "{ a: number | null; b?: boolean }");
        check(&[json!({"a-b": {"c": [{}]}})], r#"{ "a-b": { c: {}[] } }"#);
    }

    #[test]
    fn shapes_are_bounded() {
        let table: serde_json::Map<_, _> = (0..1000).map(|n| (format!("key{n}"), json!({"id": n}))).collect();
        check(&[Value::Object(table)], "{ [key: string]: { id: number } }");
        let halves: Vec<_> = (0..2)
            .map(|half| (0..30).map(|n| (format!("key{}", 30 * half + n), json!(n))).collect())
            .map(Value::Object)
            .collect();
        check(&halves, "{ [key: string]: number }");
        let deep = (0..100).fold(json!(1), |inner, _| json!([inner]));
        check(&[deep], "unknown[][][][][][]");
        let nested: Vec<_> = (0..50).map(|_| (0..50).map(|n| json!({"n": n})).collect::<Vec<_>>()).collect();
        check(&[json!(nested)], "{ n: number }[][]");
    }

    #[test]
    fn callers_see_their_own_shapes() {
        let shapes = ObservedShapes::new(2);
        let (alice, bob): (Arc<str>, Arc<str>) = ("alice".into(), "bob".into());
        let [one, two]: [Arc<str>; 2] = ["one".into(), "two".into()];
        shapes.observe(Some(&alice), &one, &json!(1));
        shapes.observe(Some(&alice), &one, &json!("a"));
        assert_eq!(shapes.type_of(Some(&alice), &one).as_deref(), Some("string | number"));
        assert_eq!(shapes.type_of(Some(&bob), &one), None);
        assert_eq!(shapes.type_of(None, &one), None);
        // The least recently used one is forgotten.
        shapes.observe(None, &two, &json!(true));
        assert!(shapes.type_of(Some(&alice), &one).is_some());
        shapes.observe(None, &one, &json!(true));
        assert_eq!(shapes.type_of(None, &two), None);
        assert!(shapes.type_of(Some(&alice), &one).is_some());
    }
}
