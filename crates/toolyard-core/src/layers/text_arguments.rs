//! Reads numbers and booleans that a model gives as text to the gateway's own tools.

use futures_util::future::BoxFuture;

use super::{CallResult, Layer, NextLayer};
use crate::call::{Call, CallTarget};
use crate::json::{Json, Object};

/// Replaces texts by numbers and booleans (`"5"`, `"true"`) in arguments of the gateway's own tools, where their schema
/// has these types. Arguments for a server are never changed.
pub struct TextArguments;

impl Layer for TextArguments {
    fn name(&self) -> &'static str {
        "text_arguments"
    }

    fn call<'a>(&'a self, mut call: Call, next: NextLayer<'a>) -> BoxFuture<'a, CallResult> {
        let schema = next.entry.tool.as_ref().filter(|_| next.entry.handler.is_builtin);
        if let (Some(schema), CallTarget::Tool(_)) =
            (schema.and_then(|tool| tool.input_schema()), &call.target)
            && let Some(arguments) = call.arguments().and_then(|arguments| typed(arguments, schema))
        {
            call.params.set("arguments", arguments);
        }
        next.run(call)
    }
}

/// Returns arguments with the types of their schema; `None` if no text has to be replaced.
fn typed(arguments: &Json, schema: &Json) -> Option<Json> {
    let mut arguments = arguments.to_object().ok()?;
    let properties = schema.to_object().ok()?.get("properties")?.to_object().ok()?;
    let changes: Vec<_> = arguments
        .iter()
        .filter_map(|(name, value)| {
            Some((name.clone().into_owned(), typed_value(value, &name, &properties)?))
        })
        .collect();
    if changes.is_empty() {
        return None;
    }
    for (name, value) in changes {
        arguments.set(&name, value);
    }
    Some(arguments.to_json())
}

fn typed_value(value: &Json, name: &str, properties: &Object) -> Option<Json> {
    let text = value.to_str()?;
    let property = properties.get(name)?.to_object().ok()?;
    let kind = property.get_str("type")?;
    match &*kind {
        "boolean" => {
            Json::parse(text.trim().to_ascii_lowercase()).ok().filter(|value| value.to_bool().is_some())
        }
        "number" | "integer" => Json::parse(text.trim().to_owned()).ok().filter(Json::is_number),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use futures_util::FutureExt;
    use tokio::sync::watch;

    use super::*;
    use crate::gateway::Gateway;
    use crate::outcome::{CallOutput, Outcome};
    use crate::registry::HandlerEntry;
    use crate::testing::{FakeBackend, handler, registry_of};

    const TOOL: &str = r#"{"name":"t","inputSchema":{"type":"object","properties":{
        "n":{"type":"number"},"i":{"type":"integer"},"b":{"type":"boolean"},"s":{"type":"string"},"any":{}}}}"#;

    /// Returns the arguments that a tool gets.
    fn received(is_builtin: bool, arguments: &str) -> String {
        let received = Arc::new(Mutex::new(String::new()));
        let seen = received.clone();
        let run = move |call: Call| {
            *seen.lock().expect("no panic") =
                call.arguments().map(|json| json.as_text().to_owned()).unwrap_or_default();
            async { Ok(Outcome::Done(CallOutput::text("done"))) }.boxed()
        };
        let entry = handler("h", FakeBackend::new(&[TOOL], Box::new(run)));
        let registry = registry_of(&[HandlerEntry { is_builtin, ..entry }]);
        let gateway = Gateway::new(watch::channel(registry).1, vec![Box::new(TextArguments)]);
        let call = Call::tool("t", Json::parse(arguments.to_owned()).expect("JSON"));
        gateway.invoke(call).now_or_never().expect("an answer").expect("a result");
        received.lock().expect("no panic").clone()
    }

    #[test]
    fn texts_of_numbers_and_booleans_are_read() {
        #[track_caller]
        fn check(arguments: &str, expected: &str) {
            assert_eq!(received(true, arguments), expected);
        }
        check(r#"{"n":"5"}"#, r#"{"n":5}"#);
        check(r#"{"n":" -1.50 ","i":"7","b":"true"}"#, r#"{"n":-1.50,"i":7,"b":true}"#);
        check(r#"{"b":"False"}"#, r#"{"b":false}"#);
        check(r#"{"n":"12345678901234567890123"}"#, r#"{"n":12345678901234567890123}"#);
        // Other types, other texts and other arguments stay as they are.
        for arguments in [
            r#"{"s":"5","any":"5","other":"5"}"#,
            r#"{"n":"five"}"#,
            r#"{"n":""}"#,
            r#"{"n":"true"}"#,
            r#"{"b":"1"}"#,
            r#"{"b":"yes"}"#,
            r#"{"n":5}"#,
            r#"{"n":null}"#,
            r#"{"n":"[5]"}"#,
            r#"{}"#,
            r#"[1]"#,
        ] {
            check(arguments, arguments);
        }
    }

    #[test]
    fn arguments_for_a_server_are_unchanged() {
        let arguments = r#"{"n":"5","b":"true"}"#;
        assert_eq!(received(false, arguments), arguments);
    }
}
