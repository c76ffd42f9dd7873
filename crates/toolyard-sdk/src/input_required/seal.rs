//! The state of a call, sealed for that call (MCP 2026-07-28, basic/patterns/mrtr, server requirements 4 and 5).

use std::time::Duration;

use toolyard_core::seal::{self, UnsealError};
use toolyard_core::{Call, Json};

use crate::context::Context;
use crate::failure::ToolFailure;

/// Invalid params (JSON-RPC 2.0).
const INVALID_PARAMS: i32 = -32602;

pub(super) fn seal(context: &Context, state: &[u8], valid_for: Duration) -> String {
    context.shared().sealer.seal(&binding(context.call()), state, valid_for)
}

pub(super) fn open(context: &Context, state: &Json) -> Result<Vec<u8>, ToolFailure> {
    let state = state.to_str().ok_or_else(|| invalid_state("it is not a string"))?;
    context.shared().sealer.open(&binding(context.call()), &state).map_err(|error| match error {
        UnsealError::Tampered => invalid_state("it was not made for this request, or it was changed"),
        UnsealError::Expired => invalid_state("it has expired"),
    })
}

pub(super) fn invalid_state(reason: &str) -> ToolFailure {
    ToolFailure::protocol(INVALID_PARAMS, &format!("Invalid request state: {reason}"))
}

fn binding(call: &Call) -> Vec<u8> {
    seal::binding(&call.target, call.arguments(), &call.caller)
}
