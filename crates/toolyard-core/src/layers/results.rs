//! Validates results against what the gateway's configuration declares.

use std::sync::Arc;

use futures_util::future::BoxFuture;

use super::{CallResult, Layer, NextLayer};
use crate::call::{Call, CallTarget};
use crate::error::{ErrorCode, ToolError};
use crate::json::{self, DEFAULT_DEPTH, Json};
use crate::long_work::LongWork;
use crate::outcome::{CallOutput, Outcome};
use crate::output_schema::STRUCTURED;
use crate::schema::{SchemaMismatch, ValidationBudget};
use crate::tool::Tool;

/// The checks of the results of a handler.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ResultChecks {
    /// Results pass unchanged: their server is responsible for them.
    #[default]
    None,
    /// Structured results have a limit of nesting.
    Nesting,
    /// They also have to match the output schema that the manifest declares.
    Schema,
}

/// Turns a result that does not match its output schema into a failure with the fault and the original content.
pub struct ResultValidation {
    long_work: Option<LongWork>,
    max_depth: usize,
}

impl ResultValidation {
    /// Creates the layer with permits for validations of large results. Without them they run at once as well.
    #[must_use]
    pub const fn by(long_work: Option<LongWork>) -> Self {
        Self { long_work, max_depth: DEFAULT_DEPTH }
    }

    /// Sets the maximum nesting of structured results.
    #[must_use]
    pub fn nested_at_most(self, max_depth: usize) -> Self {
        Self { max_depth, ..self }
    }

    /// Checks a result of a handler with checks.
    async fn checked(&self, output: CallOutput, call: &Call, next: NextLayer<'_>) -> CallResult {
        let structured = output.body.get(STRUCTURED);
        if structured.is_some_and(|structured| structured.is_deeper_than(self.max_depth)) {
            let problem = format!("The result is {}", json::too_deep(self.max_depth));
            return Err(ToolError::new(ErrorCode::ExecutionFailed, problem));
        }
        let tool = next.entry.tool.as_ref().filter(|tool| tool.output_schema().is_some());
        let (ResultChecks::Schema, Some(tool), false) =
            (next.entry.handler.result_checks, tool, output.is_error)
        else {
            return Ok(Outcome::Done(output));
        };
        let fault = match structured {
            Some(structured) => self.fault(tool, structured, call).await?,
            None => Some("it has no structured content".to_owned()),
        };
        Ok(Outcome::Done(match fault {
            None => output,
            Some(fault) => failure(&output, &fault),
        }))
    }

    /// Returns the fault of a structured result.
    async fn fault(
        &self,
        tool: &Arc<Tool>,
        structured: &Json,
        call: &Call,
    ) -> Result<Option<String>, ToolError> {
        let checked = match tool.check_output_briefly(structured) {
            Some(checked) => checked,
            None => self.long_check(tool, structured, call).await?,
        };
        Ok(checked.err().map(|mismatch| match mismatch {
            SchemaMismatch::Faults(faults) => faults,
            SchemaMismatch::OutOfSteps => "it is too large or too deeply nested to be checked".to_owned(),
        }))
    }

    async fn long_check(
        &self,
        tool: &Arc<Tool>,
        structured: &Json,
        call: &Call,
    ) -> Result<Result<(), SchemaMismatch>, ToolError> {
        let budget = ValidationBudget::of(structured.as_bytes().len());
        let Some(long_work) = &self.long_work else { return Ok(tool.output_faults(structured, &budget)) };
        let (tool, structured) = (tool.clone(), structured.clone());
        let check =
            long_work.run(call, move |stop| tool.output_faults(&structured, &budget.until(stop.flag())));
        check.await.map_err(|_| ToolError::new(ErrorCode::ExecutionFailed, "The result could not be checked"))
    }
}

impl Layer for ResultValidation {
    fn name(&self) -> &'static str {
        "result_validation"
    }

    fn call<'a>(&'a self, call: Call, next: NextLayer<'a>) -> BoxFuture<'a, CallResult> {
        let is_checked = next.entry.handler.result_checks != ResultChecks::None;
        if !is_checked || !matches!(call.target, CallTarget::Tool(_)) {
            return next.run(call);
        }
        Box::pin(async move {
            // Its owner has the turns of a long check.
            let caller = Call { caller: call.caller.clone(), ..Call::tool("", Json::null()) };
            match next.run(call).await? {
                Outcome::Done(output) => self.checked(output, &caller, next).await,
                other => Ok(other),
            }
        })
    }
}

/// Returns a failure with the fault, followed by the content of the result.
fn failure(output: &CallOutput, fault: &str) -> CallOutput {
    let text = format!("The result does not match the output schema of the tool: {fault}. The result:");
    let mut failure = CallOutput::failure(&text);
    let blocks = |output: &CallOutput| output.body.get("content").and_then(|content| content.to_items().ok());
    let all: Vec<_> = blocks(&failure).into_iter().chain(blocks(output)).flatten().collect();
    failure.body.set("content", Json::array(&all));
    failure
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;
    use tokio::sync::watch;

    use super::*;
    use crate::gateway::Gateway;
    use crate::testing::{FakeBackend, handler, registry_of};

    /// Calls a tool with this output schema whose result is `structured`, and returns its content and structured
    /// content, or the error.
    async fn call(checks: ResultChecks, schema: &str, structured: Option<&str>) -> String {
        let tool = format!(r#"{{"name":"t","outputSchema":{schema}}}"#);
        let mut output = CallOutput::text("original");
        if let Some(structured) = structured {
            output.body.set(STRUCTURED, Json::parse(structured.to_owned()).unwrap());
        }
        let done = move |_| {
            let output = output.clone();
            async { Ok(Outcome::Done(output)) }.boxed()
        };
        let mut handler = handler("h", FakeBackend::new(&[&tool], Box::new(done)));
        handler.result_checks = checks;
        let registry = registry_of(&[handler]);
        let layer = ResultValidation::by(None).nested_at_most(3);
        let gateway = Gateway::new(watch::channel(registry).1, vec![Box::new(layer)]);
        match gateway.invoke(Call::tool("t", Json::null())).await {
            Ok(Outcome::Done(output)) => {
                assert_eq!(output.is_error, output.body.get("isError").is_some());
                let texts = output.body.get("content").unwrap().to_items().unwrap();
                let texts = texts
                    .iter()
                    .map(|block| block.to_object().unwrap().get_str("text").unwrap().into_owned());
                let structured = output.body.get(STRUCTURED).map(|json| json.as_text().to_owned());
                texts.chain(structured).collect::<Vec<_>>().join(" | ")
            }
            Ok(other) => panic!("{other:?}"),
            Err(error) => error.message().to_owned(),
        }
    }

    #[tokio::test]
    async fn mismatches_are_failures_with_the_place_and_the_content() {
        use ResultChecks::{Nesting, None as Unchecked, Schema};
        let object = r#"{"type":"object","properties":{"a":{"type":"integer"}}}"#;
        let text = r#"{"type":"string"}"#;
        let before = "The result does not match the output schema of the tool: ";
        for (checks, schema, structured, expected) in [
            (Schema, object, Some(r#"{"a":1}"#), r#"original | {"a":1}"#.to_owned()),
            (
                Schema,
                object,
                Some(r#"{"a":"x"}"#),
                format!(r#"{before}/a: value is not of type "integer". The result: | original"#),
            ),
            (
                Schema,
                text,
                Some("7"),
                format!(r#"{before}value is not of type "string". The result: | original"#),
            ),
            (Schema, text, Some("\"x\""), r#"original | "x""#.to_owned()),
            (Schema, text, None, format!("{before}it has no structured content. The result: | original")),
            (Nesting, text, Some("7"), "original | 7".to_owned()),
            (Unchecked, text, Some("7"), "original | 7".to_owned()),
            // A schema that cannot be checked.
            (Schema, r#"{"type":"nonsense"}"#, Some("7"), "original | 7".to_owned()),
            (Schema, "true", Some("[[[]]]"), "original | [[[]]]".to_owned()),
            (
                Schema,
                "true",
                Some("[[[[]]]]"),
                "The result is nested more than 3 levels deep, the limit of `limits.jsonDepth`".to_owned(),
            ),
            (
                Nesting,
                "true",
                Some("[[[[]]]]"),
                "The result is nested more than 3 levels deep, the limit of `limits.jsonDepth`".to_owned(),
            ),
            (Unchecked, "true", Some("[[[[]]]]"), "original | [[[[]]]]".to_owned()),
        ] {
            assert_eq!(
                call(checks, schema, structured).await,
                expected,
                "{checks:?} {schema} {structured:?}"
            );
        }
    }
}
