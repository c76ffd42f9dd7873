//! The fields of an object that this operator owns by server-side apply, and the comparison of an object with what is
//! to be applied.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use crate::controller::difference::includes;

/// Fields by path, such as `spec/template/spec/containers[agent]/env[MCP_SERVERS]/value`. Items of lists are named by
/// their first key.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct OwnedFields(BTreeSet<String>);

/// Maximum depth of an object's fields that are read. Deeper ones count as a part of their parents.
const MAX_DEPTH: usize = 32;

/// The keys of items of lists in a pod, in the order in which they are looked for: mounts have names as well, and ports.
const ITEM_KEYS: [&str; 4] = ["uid", "mountPath", "containerPort", "name"];

impl OwnedFields {
    /// Reads `metadata.managedFields` of an object: the fields that a manager applied.
    #[must_use]
    pub fn of(object: &Value, manager: &str) -> Self {
        let mut fields = Self::default();
        let entries = object["metadata"]["managedFields"].as_array().into_iter().flatten();
        let is_ours = |entry: &&Value| {
            entry["manager"] == manager
                && entry["operation"] == "Apply"
                && entry["subresource"].as_str().is_none_or(str::is_empty)
        };
        for entry in entries.filter(is_ours) {
            fields.read("", &entry["fieldsV1"], 0);
        }
        fields
    }

    /// Returns the fields of an object that is to be applied.
    #[must_use]
    pub fn applied_by(object: &Value) -> Self {
        let mut fields = Self::default();
        for (name, value) in object.as_object().into_iter().flatten() {
            match name.as_str() {
                "apiVersion" | "kind" => {}
                "metadata" => fields.add_metadata(value),
                _ => fields.add(name, value, 0),
            }
        }
        fields
    }

    /// Returns `true` for a field that is owned.
    #[must_use]
    pub fn contains(&self, path: &str) -> bool {
        self.0.contains(path)
    }

    /// Returns `true` if nothing is owned.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns `true` if each field is one of `other`, or the parent of some. Lists that have keys here may be owned as
    /// a whole.
    #[must_use]
    pub fn is_within(&self, other: &Self) -> bool {
        let is_parent = |path: &String, child: &String| {
            child.strip_prefix(path.as_str()).is_some_and(|rest| rest.starts_with(['/', '[']))
        };
        // Paths are sorted, so that children follow their parent, except for siblings with a longer name.
        self.0.iter().all(|path| {
            let following =
                other.0.range(path.clone()..).take_while(|other| other.starts_with(path.as_str()));
            following.into_iter().any(|child| child == path || is_parent(path, child))
        })
    }

    fn read(&mut self, path: &str, fields: &Value, depth: usize) {
        let members = fields.as_object().into_iter().flatten().filter(|(name, _)| *name != ".");
        let mut is_leaf = true;
        for (name, value) in members {
            let Some(path) = member_path(path, name) else { continue };
            is_leaf = false;
            if depth < MAX_DEPTH {
                self.read(&path, value, depth + 1);
            }
        }
        if is_leaf && !path.is_empty() {
            self.0.insert(path.to_owned());
        }
    }

    /// Adds what a manager can own of the metadata; the name and the namespace are not fields.
    fn add_metadata(&mut self, metadata: &Value) {
        for field in ["annotations", "labels", "ownerReferences", "finalizers"] {
            if let Some(value) = metadata.get(field) {
                self.add(&format!("metadata/{field}"), value, 0);
            }
        }
    }

    fn add(&mut self, path: &str, value: &Value, depth: usize) {
        match value {
            Value::Object(members) if !members.is_empty() && depth < MAX_DEPTH => {
                for (name, value) in members {
                    self.add(&format!("{path}/{name}"), value, depth + 1);
                }
            }
            Value::Array(items) if items.iter().all(|item| item_key(item).is_some()) && !items.is_empty() => {
                for item in items {
                    self.add(&format!("{path}[{}]", item_key(item).unwrap_or_default()), item, depth + 1);
                }
            }
            _ => drop(self.0.insert(path.to_owned())),
        }
    }
}

/// Converts a member of `fieldsV1` (`f:name`, `k:{"name":"agent"}`) to a path. `None` for a value of a set.
fn member_path(path: &str, name: &str) -> Option<String> {
    if let Some(field) = name.strip_prefix("f:") {
        return Some(if path.is_empty() { field.to_owned() } else { format!("{path}/{field}") });
    }
    let keys: Map<String, Value> = serde_json::from_str(name.strip_prefix("k:")?).ok()?;
    let key = item_key(&Value::Object(keys))?;
    Some(format!("{path}[{key}]"))
}

fn item_key(item: &Value) -> Option<String> {
    ITEM_KEYS.iter().find_map(|key| item.get(key)).map(scalar)
}

fn scalar(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// Returns `true` if `object` has all that is to be applied with the same values, and if the manager owns nothing else:
/// then applying would change nothing.
#[must_use]
pub fn is_applied(desired: &Value, object: &Value, manager: &str) -> bool {
    let owned = OwnedFields::of(object, manager);
    includes(object, desired) && owned.is_within(&OwnedFields::applied_by(desired))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn owned(fields: Value) -> Vec<String> {
        let entry = json!({"manager": "toolyard", "operation": "Apply", "fieldsV1": fields});
        let other =
            json!({"manager": "kubectl", "operation": "Apply", "fieldsV1": {"f:spec": {"f:other": {}}}});
        let update =
            json!({"manager": "toolyard", "operation": "Update", "fieldsV1": {"f:spec": {"f:updated": {}}}});
        let object = json!({"metadata": {"managedFields": [other, entry, update]}});
        OwnedFields::of(&object, "toolyard").0.into_iter().collect()
    }

    #[test]
    fn managed_fields_become_paths() {
        let check =
            |fields: Value, expected: &[&str]| assert_eq!(owned(fields.clone()), expected, "{fields}");
        check(json!({}), &[]);
        check(json!({"f:spec": {".": {}, "f:replicas": {}}}), &["spec/replicas"]);
        check(
            json!({"f:spec": {"f:containers": {"k:{\"name\":\"a\"}": {
                ".": {}, "f:name": {},
                "f:env": {"k:{\"name\":\"X\"}": {".": {}, "f:value": {}}},
                "f:ports": {"k:{\"containerPort\":80,\"protocol\":\"TCP\"}": {".": {}, "f:name": {}}},
                "f:volumeMounts": {"k:{\"mountPath\":\"/etc\"}": {"f:name": {}}},
            }}}}),
            &[
                "spec/containers[a]/env[X]/value",
                "spec/containers[a]/name",
                "spec/containers[a]/ports[80]/name",
                "spec/containers[a]/volumeMounts[/etc]/name",
            ],
        );
        check(json!({"f:metadata": {"f:finalizers": {"v:\"a\"": {}}}}), &["metadata/finalizers"]);
        check(json!({"f:spec": {"k:broken": {}}}), &["spec"]);
    }

    #[test]
    fn applied_object_is_compared_with_its_fields() {
        let desired = json!({
            "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "x"},
            "spec": {"containers": [{"name": "a", "env": [{"name": "X", "value": "1"}], "args": ["x", "y"]}]},
        });
        let fields = json!({"f:spec": {"f:containers": {"k:{\"name\":\"a\"}": {
            ".": {}, "f:name": {}, "f:args": {}, "f:env": {"k:{\"name\":\"X\"}": {".": {}, "f:name": {}, "f:value": {}}},
        }}}});
        let object = |value: &str, args: Value, fields: &Value| {
            let entry = json!({"manager": "toolyard", "operation": "Apply", "fieldsV1": fields});
            let variables = json!([{"name": "W", "value": "0"}, {"name": "X", "value": value}]);
            let own = json!({"name": "own", "image": "own"});
            let container = json!({"name": "a", "image": "i", "env": variables, "args": args});
            json!({
                "apiVersion": "apps/v1", "kind": "Deployment",
                "metadata": {"name": "x", "managedFields": [entry]},
                "spec": {"replicas": 1, "containers": [own, container]},
            })
        };
        let check = |name: &str, object: Value, expected: bool| {
            assert_eq!(is_applied(&desired, &object, "toolyard"), expected, "{name}");
        };
        let args = json!(["x", "y"]);
        check("equal", object("1", args.clone(), &fields), true);
        check("another value", object("2", args.clone(), &fields), false);
        check("shorter list", object("1", json!(["x"]), &fields), false);
        check("longer list", object("1", json!(["x", "y", "z"]), &fields), false);
        check("values of another manager", object("1", args.clone(), &json!({})), true);
        let more = json!({"f:spec": {"f:paused": {}}});
        check("further field", object("1", args, &more), false);
    }
}
