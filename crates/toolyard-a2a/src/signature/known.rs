//! The members of a card that version 1.0 of the protocol defines.
//!
//! Servers add members for clients of earlier versions to a card that is signed without them, such as the Python SDK.

use serde_json::{Map, Value};

/// A kind of object.
#[derive(Clone, Copy)]
enum CardObject {
    Card,
    Interface,
    Provider,
    Capabilities,
    Extension,
    Skill,
    Scheme,
}

/// The content of a member.
#[derive(Clone, Copy)]
enum Content {
    /// Any value.
    Free,
    /// An object, or a list of them.
    Of(CardObject),
    /// An object whose members are named freely.
    MapOf(CardObject),
}

use CardObject::{Capabilities, Card, Extension, Interface, Provider, Scheme, Skill};
use Content::{Free, MapOf, Of};

impl CardObject {
    const fn members(self) -> &'static [(&'static str, Content)] {
        match self {
            Card => &[
                ("name", Free),
                ("description", Free),
                ("supportedInterfaces", Of(Interface)),
                ("provider", Of(Provider)),
                ("version", Free),
                ("documentationUrl", Free),
                ("capabilities", Of(Capabilities)),
                ("securitySchemes", MapOf(Scheme)),
                ("securityRequirements", Free),
                ("defaultInputModes", Free),
                ("defaultOutputModes", Free),
                ("skills", Of(Skill)),
                ("iconUrl", Free),
            ],
            Interface => {
                &[("url", Free), ("protocolBinding", Free), ("tenant", Free), ("protocolVersion", Free)]
            }
            Provider => &[("url", Free), ("organization", Free)],
            Capabilities => &[
                ("streaming", Free),
                ("pushNotifications", Free),
                ("extensions", Of(Extension)),
                ("extendedAgentCard", Free),
            ],
            Extension => &[("uri", Free), ("description", Free), ("required", Free), ("params", Free)],
            Skill => &[
                ("id", Free),
                ("name", Free),
                ("description", Free),
                ("tags", Free),
                ("examples", Free),
                ("inputModes", Free),
                ("outputModes", Free),
                ("securityRequirements", Free),
            ],
            Scheme => &[
                ("apiKeySecurityScheme", Free),
                ("httpAuthSecurityScheme", Free),
                ("oauth2SecurityScheme", Free),
                ("openIdConnectSecurityScheme", Free),
                ("mtlsSecurityScheme", Free),
            ],
        }
    }
}

/// Returns a card without members that the protocol does not define.
#[must_use]
pub fn known(card: &Value) -> Value {
    known_of(card, Card)
}

fn known_of(value: &Value, object: CardObject) -> Value {
    match value {
        Value::Array(items) => items.iter().map(|item| known_of(item, object)).collect(),
        Value::Object(members) => {
            let member = |(name, content): &(&'static str, Content)| {
                let value = members.get(*name)?;
                let value = match (content, value) {
                    (Of(object), value) => known_of(value, *object),
                    (MapOf(object), Value::Object(members)) => {
                        let members = members.iter();
                        let members = members.map(|(name, value)| (name.clone(), known_of(value, *object)));
                        Value::Object(members.collect())
                    }
                    (Free | MapOf(_), value) => value.clone(),
                };
                Some(((*name).to_owned(), value))
            };
            Value::Object(object.members().iter().filter_map(member).collect::<Map<_, _>>())
        }
        value => value.clone(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn members_of_earlier_versions_are_left_out() {
        let card = json!({
            "name": "A", "url": "http://a", "protocolVersion": "0.3.0", "security": [],
            "skills": [{"id": "a", "security": []}],
            "capabilities": {"streaming": true, "stateTransitionHistory": false,
                "extensions": [{"uri": "x", "params": {"url": 1}, "kind": 2}]},
            "securitySchemes": {"k": {"httpAuthSecurityScheme": {"scheme": "Bearer"}, "type": "http"}},
            "supportedInterfaces": [{"url": "http://a", "transport": "JSONRPC"}],
        });
        let expected = json!({
            "name": "A",
            "skills": [{"id": "a"}],
            "capabilities": {"streaming": true, "extensions": [{"uri": "x", "params": {"url": 1}}]},
            "securitySchemes": {"k": {"httpAuthSecurityScheme": {"scheme": "Bearer"}}},
            "supportedInterfaces": [{"url": "http://a"}],
        });
        assert_eq!(known(&card), expected);
    }
}
