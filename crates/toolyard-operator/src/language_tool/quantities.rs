//! Quantities given as numbers, as in `cpu: 1`, which Kubernetes accepts besides texts.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};
use serde_json::Value;

/// Names of objects whose members are quantities, and of members that are quantities.
const MAPS: [&str; 3] = ["limits", "requests", "capacity"];
const MEMBERS: [&str; 4] = ["sizeLimit", "divisor", "averageValue", "value"];

/// Deserializes a part of a pod whose quantities may be numbers.
pub(super) fn with_text_quantities<'de, D: Deserializer<'de>, T: DeserializeOwned>(
    deserializer: D,
) -> Result<T, D::Error> {
    let mut value = Value::deserialize(deserializer)?;
    to_text(&mut value);
    T::deserialize(value).map_err(serde::de::Error::custom)
}

/// Replaces quantities that are numbers by texts. The depth of the value is bounded by the parser.
fn to_text(value: &mut Value) {
    match value {
        Value::Object(members) => {
            for (name, value) in members {
                match value {
                    Value::Object(map) if MAPS.contains(&name.as_str()) => {
                        map.values_mut().for_each(number_to_text)
                    }
                    value if MEMBERS.contains(&name.as_str()) => number_to_text(value),
                    value => to_text(value),
                }
            }
        }
        Value::Array(elements) => elements.iter_mut().for_each(to_text),
        _ => {}
    }
}

fn number_to_text(value: &mut Value) {
    if let Value::Number(number) = value {
        *value = number.to_string().into();
    }
}
