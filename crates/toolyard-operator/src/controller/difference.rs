//! Comparison of desired and observed objects.

use serde_json::Value;

/// Lists whose elements have keys, so that other field managers may add elements.
const KEYED_LISTS: [&str; 10] = [
    "containers",
    "env",
    "finalizers",
    "imagePullSecrets",
    "initContainers",
    "ownerReferences",
    "ports",
    "volumeMounts",
    "volumes",
    "topologySpreadConstraints",
];

/// Returns `true` if an observed object has everything that the desired one has. Defaults of the server and fields of
/// other field managers are no differences. Quantities are compared by value.
///
/// Members that the desired object no longer has are not noticed: [`super::apply`] compares digests for this.
#[must_use]
pub fn includes(observed: &Value, desired: &Value) -> bool {
    includes_member("", observed, desired)
}

fn includes_member(name: &str, observed: &Value, desired: &Value) -> bool {
    match (observed, desired) {
        (Value::Object(observed), Value::Object(desired)) => desired.iter().all(|(name, value)| {
            let is_absent = value.is_null() || is_empty(value);
            observed.get(name).map_or(is_absent, |observed| includes_member(name, observed, value))
        }),
        (Value::Array(observed), Value::Array(desired)) if KEYED_LISTS.contains(&name) => desired
            .iter()
            .all(|element| observed.iter().any(|observed| includes_member("", observed, element))),
        (Value::Array(observed), Value::Array(desired)) => {
            let elements = || observed.iter().zip(desired);
            observed.len() == desired.len()
                && elements().all(|(observed, desired)| includes_member("", observed, desired))
        }
        (observed, desired) => observed == desired || is_same_quantity(observed, desired),
    }
}

/// Returns `true` for empty lists and objects, which the server does not store.
fn is_empty(value: &Value) -> bool {
    match value {
        Value::Object(members) => members.values().all(is_empty),
        Value::Array(elements) => elements.is_empty(),
        _ => false,
    }
}

fn is_same_quantity(observed: &Value, desired: &Value) -> bool {
    match (quantity(observed), quantity(desired)) {
        // The server writes canonical forms: `0.5` becomes `500m`.
        (Some(observed), Some(desired)) => {
            (observed - desired).abs() <= f64::EPSILON * observed.abs().max(desired.abs())
        }
        _ => false,
    }
}

/// Parses a quantity of Kubernetes, such as `500m` or `1Gi`.
#[must_use]
pub fn quantity(value: &Value) -> Option<f64> {
    let text = match value {
        Value::String(text) => text.as_str(),
        Value::Number(number) => return number.as_f64(),
        _ => return None,
    };
    let end = text.find(|c: char| !matches!(c, '0'..='9' | '.' | '+' | '-')).unwrap_or(text.len());
    let (number, suffix) = text.split_at(end);
    let factor = match suffix {
        "" => 1.0,
        "n" => 1e-9,
        "u" => 1e-6,
        "m" => 1e-3,
        "k" => 1e3,
        "M" => 1e6,
        "G" => 1e9,
        "T" => 1e12,
        "P" => 1e15,
        "E" => 1e18,
        "Ki" => 1024.0,
        "Mi" => 1_048_576.0,
        "Gi" => 1_073_741_824.0,
        "Ti" => 1_099_511_627_776.0,
        "Pi" => 1_125_899_906_842_624.0,
        "Ei" => 1_152_921_504_606_846_976.0,
        _ => return text.parse().ok(),
    };
    Some(number.parse::<f64>().ok()? * factor)
}

/// Removes members that are `null`, which server-side apply would take for values. Free JSON below `inputSchema` is left
/// as it is.
pub fn without_nulls(value: &mut Value) {
    match value {
        Value::Object(members) => {
            members.retain(|_, value| !value.is_null());
            let members = members.iter_mut().filter(|(name, _)| *name != "inputSchema");
            members.for_each(|(_, value)| without_nulls(value));
        }
        Value::Array(elements) => elements.iter_mut().for_each(without_nulls),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn defaults_and_foreign_fields_are_no_differences() {
        let check = |observed: Value, desired: Value, expected| {
            assert_eq!(includes(&observed, &desired), expected, "{observed} {desired}");
        };
        check(json!({"a": 1, "b": 2}), json!({"a": 1}), true);
        check(json!({"b": 2}), json!({"a": 1}), false);
        check(json!({"a": 2}), json!({"a": 1}), false);
        check(json!({}), json!({"a": {}, "b": [], "c": null, "d": {"e": []}}), true);
        check(json!({"args": ["a", "b"]}), json!({"args": ["a"]}), false);
        check(json!({"args": ["b", "a"]}), json!({"args": ["a", "b"]}), false);
        check(json!({"ingress": [{}, {"from": []}]}), json!({"ingress": [{}]}), false);
        let two = json!({"env": [{"name": "a", "value": "1"}, {"name": "b"}]});
        check(two.clone(), json!({"env": [{"name": "b"}]}), true);
        check(two, json!({"env": [{"name": "a", "value": "2"}]}), false);
    }

    #[test]
    fn quantities_are_compared_by_value() {
        let check = |observed: &str, desired: Value, expected| {
            assert_eq!(includes(&observed.into(), &desired), expected, "{observed} {desired}");
        };
        check("500m", json!("0.5"), true);
        check("1", json!(1), true);
        check("1", json!("1000m"), true);
        check("1Gi", json!("1024Mi"), true);
        check("1Gi", json!("1G"), false);
        check("2", json!("1"), false);
        check("1e3", json!("1k"), true);
        check("a", json!("b"), false);
        check("m", json!("n"), false);
    }

    #[test]
    fn nulls_are_removed_but_from_schemas() {
        let mut value = json!({"a": null, "b": [{"c": null}], "inputSchema": {"default": null}});
        without_nulls(&mut value);
        assert_eq!(value, json!({"b": [{}], "inputSchema": {"default": null}}));
    }
}
