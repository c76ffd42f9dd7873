//! From what a call came to, to what MCP says of it.

use bytes::Bytes;
use toolyard_core::{Code, Json, Object, Outcome, Output, ToolError};

use super::Answer;
use crate::wire::{Era, RpcError};

/// The result or the error of `tools/call`.
pub(super) fn answer(answer: Result<Outcome, ToolError>, era: Era) -> Answer {
    match answer {
        Ok(Outcome::Done(output)) => Ok(done(output.body, era)),
        // Only modern clients declare what such an outcome needs; they are passed on as they came.
        Ok(Outcome::NeedsInput(body) | Outcome::Task(body)) if era == Era::Modern => Ok(body.to_pieces()),
        Ok(Outcome::NeedsInput(_) | Outcome::Task(_)) => Err(RpcError::from(&ToolError::new(
            Code::ExecutionFailed,
            "The tool asks for something that this client cannot do",
        ))),
        Err(error) => failure(&error, era),
    }
}

/// A result of a legacy server does not say that it is complete, and means it.
fn done(mut body: Object, era: Era) -> Vec<Bytes> {
    if era == Era::Modern && body.get("resultType").is_none() {
        body.set("resultType", Json::string("complete"));
    }
    body.to_pieces()
}

/// Arguments that do not fit are told to the model, which can mend them; everything else is an error
/// of the protocol.
fn failure(error: &ToolError, era: Era) -> Answer {
    match error.code() {
        Code::InvalidArguments => Ok(done(Output::failure(error.message()).body, era)),
        code => {
            tracing::debug!(code = code.row().wire, error = error as &dyn std::error::Error, "a call failed");
            Err(RpcError::from(error))
        }
    }
}

#[cfg(test)]
mod tests;
