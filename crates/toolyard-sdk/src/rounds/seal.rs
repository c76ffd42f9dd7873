//! The state of a call, sealed for that call (MCP 2026-07-28, basic/patterns/mrtr, server requirements 4 and 5).

use std::time::Duration;

use serde_json::{Value, json};
use toolyard_core::{Call, Caller, Json, Reference, Target};
use toolyard_mcp::seal::Unsealed;

use crate::context::Context;
use crate::failure::ToolFailure;

/// Invalid params (JSON-RPC 2.0).
const INVALID_PARAMS: i32 = -32602;

pub(super) fn seal(context: &Context, state: &[u8], valid_for: Duration) -> String {
    context.shared().sealer.seal(&binding(context.call()), state, valid_for)
}

pub(super) fn open(context: &Context, state: &Json) -> Result<Vec<u8>, ToolFailure> {
    let state = state.to_str().ok_or_else(|| refused("it is no text"))?;
    context.shared().sealer.open(&binding(context.call()), &state).map_err(|error| match error {
        Unsealed::Tampered => refused("it was not made for this request, or it was changed"),
        Unsealed::Expired => refused("it has expired"),
    })
}

pub(super) fn refused(why: &str) -> ToolFailure {
    ToolFailure::protocol(INVALID_PARAMS, &format!("The request's state is refused: {why}"))
}

/// Who calls what, and with what: a state opens for the same again only. How the arguments are written makes no
/// difference, so that who relays the call may write them anew.
fn binding(call: &Call) -> Vec<u8> {
    let mut arguments = call.arguments().map_or_else(|| json!({}), Json::to_value);
    arguments.sort_all_objects();
    let Caller { session, principal, .. } = &call.caller;
    let caller = [session.as_deref(), principal.as_deref()];
    let binding: Value = json!(["state", kind(&call.target), &**call.target.name(), caller, arguments]);
    binding.to_string().into_bytes()
}

const fn kind(target: &Target) -> &'static str {
    match target {
        Target::Tool(_) => "tool",
        Target::Prompt(_) => "prompt",
        Target::Resource(_) => "resource",
        Target::Completion(Reference::Prompt(_)) => "prompt argument",
        Target::Completion(Reference::Template(_)) => "template variable",
    }
}
