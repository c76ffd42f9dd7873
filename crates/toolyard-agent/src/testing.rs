//! Helpers for the tests of several tools.

use std::sync::Arc;

use serde_json::Value;
use toolyard_core::{Backend, Call, Caller, Json, Outcome};

/// Calls a tool and returns its text, as the model of a caller reads it.
pub(crate) async fn read(
    backend: &Arc<dyn Backend>,
    principal: Option<&str>,
    tool: &str,
    arguments: Value,
) -> String {
    let caller = Caller { principal: principal.map(Into::into), ..Caller::default() };
    let call = Call { caller, ..Call::tool(tool, Json::from_value(&arguments)) };
    match backend.call(call).await {
        Ok(Outcome::Done(output)) => {
            let body = output.body.to_json().to_value();
            let text = body["content"][0]["text"].as_str().unwrap_or_default();
            if output.is_error { format!("error: {text}") } else { text.to_owned() }
        }
        Ok(other) => panic!("{other:?}"),
        Err(error) => format!("refused: {error}"),
    }
}

/// Calls several tools in order and returns their texts.
pub(crate) async fn read_all(
    backend: &Arc<dyn Backend>,
    principal: Option<&str>,
    calls: &[(&str, Value)],
) -> String {
    let mut all = Vec::new();
    for (tool, arguments) in calls {
        let answer = read(backend, principal, tool, arguments.clone()).await;
        all.push(format!("> {tool} {arguments}\n{answer}"));
    }
    all.join("\n\n")
}

/// Returns the definitions of the tools as JSON.
pub(crate) fn definitions(backend: &Arc<dyn Backend>) -> String {
    let catalog = backend.catalog().borrow().clone();
    let definitions: Vec<_> = catalog.tools.iter().map(|tool| tool.definition.to_json().to_value()).collect();
    serde_json::to_string_pretty(&definitions).expect("JSON")
}
