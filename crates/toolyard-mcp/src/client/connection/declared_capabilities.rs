//! The capabilities that a connection declares to a legacy server.

use toolyard_core::{Client, InputRequestKind, Json, Object};

/// The capabilities of `initialize`, reduced to those that the gateway forwards.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::client) struct DeclaredCapabilities(Object);

impl DeclaredCapabilities {
    /// Declares no capability.
    pub(in crate::client) fn none() -> Self {
        Self::default()
    }

    /// Declares all capabilities: some servers list a tool only for clients with the capability it needs.
    pub(in crate::client) fn all() -> Self {
        let empty = || Object::new().to_json();
        let elicitation = Object::new().with("form", empty()).with("url", empty());
        let declare = |declared: Object, kind: InputRequestKind| match kind {
            InputRequestKind::Elicit => declared.with(kind.capability(), elicitation.to_json()),
            InputRequestKind::Sample | InputRequestKind::Roots => declared.with(kind.capability(), empty()),
        };
        Self(InputRequestKind::ALL.into_iter().fold(Object::new(), declare))
    }

    /// Declares the capabilities of this client. `announces_roots`: the server will be told of changed roots.
    pub(in crate::client) fn of(client: &dyn Client, announces_roots: bool) -> Self {
        let capabilities = client.capabilities().and_then(|declared| declared.to_object().ok());
        let capabilities = capabilities.unwrap_or_default();
        let declare = |declared: Object, kind: InputRequestKind| {
            let capability = capabilities.get(kind.capability()).filter(|capability| capability.is_object());
            match (kind, capability) {
                (_, None) => declared,
                (InputRequestKind::Roots, Some(_)) if !announces_roots => {
                    declared.with(kind.capability(), Object::new().to_json())
                }
                (_, Some(capability)) => declared.with(kind.capability(), capability.detach()),
            }
        };
        Self(InputRequestKind::ALL.into_iter().fold(Object::new(), declare))
    }

    pub(in crate::client) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// True if a server may send this request.
    pub(in crate::client) fn contains(&self, kind: InputRequestKind) -> bool {
        self.0.get(kind.capability()).is_some()
    }

    /// Returns the member of `initialize`.
    pub(super) fn to_json(&self) -> Json {
        self.0.to_json()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug)]
    struct CapableClient(Option<Json>);

    impl Client for CapableClient {
        fn capabilities(&self) -> Option<&Json> {
            self.0.as_ref()
        }

        fn listens(&self) -> bool {
            false
        }

        fn notify(&self, _notice: toolyard_core::ClientNotification) {}
    }

    #[test]
    fn only_forwarded_capabilities_are_declared() {
        let cases = [
            ("{}", "{}"),
            (r#"{"tasks":{"list":{}},"experimental":{"x":{}},"extensions":{"y":{}}}"#, "{}"),
            (r#"{"roots":{"listChanged":true}}"#, r#"{"roots":{"listChanged":true}}"#),
            (
                r#"{"sampling":{ "tools":{}},"elicitation":{}}"#,
                r#"{"elicitation":{},"sampling":{ "tools":{}}}"#,
            ),
            (r#"{"elicitation":null}"#, "{}"),
        ];
        for (capabilities, expected) in cases {
            let client = CapableClient(Some(Json::parse(capabilities).unwrap()));
            assert_eq!(
                DeclaredCapabilities::of(&client, true).to_json().as_text(),
                expected,
                "{capabilities}"
            );
            let unfollowed = expected.replace(r#""listChanged":true"#, "");
            assert_eq!(
                DeclaredCapabilities::of(&client, false).to_json().as_text(),
                unfollowed,
                "{capabilities}"
            );
        }
        assert_eq!(DeclaredCapabilities::of(&CapableClient(None), true), DeclaredCapabilities::none());
        let everything = r#"{"elicitation":{"form":{},"url":{}},"sampling":{},"roots":{}}"#;
        assert_eq!(DeclaredCapabilities::all().to_json().as_text(), everything);
    }
}
