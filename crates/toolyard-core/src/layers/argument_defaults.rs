//! Adds arguments that callers do not see.

use futures_util::future::BoxFuture;

use super::{CallResult, Layer, NextLayer};
use crate::call::{Call, CallTarget};

/// Adds pinned and default arguments to a call. Tools without overrides cost one check.
pub struct ArgumentDefaults;

impl Layer for ArgumentDefaults {
    fn name(&self) -> &'static str {
        "argument_defaults"
    }

    fn call<'a>(&'a self, mut call: Call, next: NextLayer<'a>) -> BoxFuture<'a, CallResult> {
        let (Some(additions), CallTarget::Tool(_)) = (&next.entry.additions, &call.target) else {
            return next.run(call);
        };
        match additions.add_to(call.arguments()) {
            Ok(arguments) => {
                call.params.set("arguments", arguments);
                next.run(call)
            }
            Err(error) => Box::pin(std::future::ready(Err(error))),
        }
    }
}
