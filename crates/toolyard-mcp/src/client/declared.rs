//! What a connection declares to a legacy server that its client can be asked.

use toolyard_core::{AskKind, Client, Json, Object};

/// The capabilities of `initialize`: only what passes the gateway is among them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Declared(Object);

impl Declared {
    /// Nobody can be asked.
    pub(super) fn nothing() -> Self {
        Self::default()
    }

    /// Whatever servers ask of clients: some list a tool only to who can be asked what it asks.
    pub(super) fn everything() -> Self {
        let empty = || Object::new().to_json();
        let elicitation = Object::new().with("form", empty()).with("url", empty());
        let declare = |declared: Object, kind: AskKind| match kind {
            AskKind::Elicit => declared.with(kind.capability(), elicitation.to_json()),
            AskKind::Sample | AskKind::Roots => declared.with(kind.capability(), empty()),
        };
        Self(AskKind::ALL.into_iter().fold(Object::new(), declare))
    }

    /// What this client can be asked. `is_followed`: it is heard of its folders when these change.
    pub(super) fn of(client: &dyn Client, is_followed: bool) -> Self {
        let capabilities = client.capabilities().and_then(|declared| declared.to_object().ok());
        let capabilities = capabilities.unwrap_or_default();
        let declare = |declared: Object, kind: AskKind| {
            let capability = capabilities.get(kind.capability()).filter(|capability| capability.is_object());
            match (kind, capability) {
                (_, None) => declared,
                (AskKind::Roots, Some(_)) if !is_followed => {
                    declared.with(kind.capability(), Object::new().to_json())
                }
                (_, Some(capability)) => declared.with(kind.capability(), capability.detach()),
            }
        };
        Self(AskKind::ALL.into_iter().fold(Object::new(), declare))
    }

    pub(super) fn is_nothing(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether a server may ask this.
    pub(super) fn has(&self, kind: AskKind) -> bool {
        self.0.get(kind.capability()).is_some()
    }

    /// The member of `initialize`.
    pub(super) fn to_json(&self) -> Json {
        self.0.to_json()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug)]
    struct Able(Option<Json>);

    impl Client for Able {
        fn capabilities(&self) -> Option<&Json> {
            self.0.as_ref()
        }

        fn listens(&self) -> bool {
            false
        }

        fn notify(&self, _notice: toolyard_core::Notice) {}
    }

    #[test]
    fn only_what_passes_the_gateway_is_declared() {
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
            let client = Able(Some(Json::parse(capabilities).unwrap()));
            assert_eq!(Declared::of(&client, true).to_json().as_text(), expected, "{capabilities}");
            let unfollowed = expected.replace(r#""listChanged":true"#, "");
            assert_eq!(Declared::of(&client, false).to_json().as_text(), unfollowed, "{capabilities}");
        }
        assert_eq!(Declared::of(&Able(None), true), Declared::nothing());
        let everything = r#"{"elicitation":{"form":{},"url":{}},"sampling":{},"roots":{}}"#;
        assert_eq!(Declared::everything().to_json().as_text(), everything);
    }
}
