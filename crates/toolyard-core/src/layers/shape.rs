//! Puts into a call what its caller does not see of it.

use futures_util::future::BoxFuture;

use super::{Answer, Layer, Next};
use crate::call::{Call, Target};

/// The layer that adds pinned and default arguments. A tool without them costs one look.
pub struct Shape;

impl Layer for Shape {
    fn name(&self) -> &'static str {
        "shape"
    }

    fn call<'a>(&'a self, mut call: Call, next: Next<'a>) -> BoxFuture<'a, Answer> {
        let (Some(additions), Target::Tool(_)) = (&next.entry.additions, &call.target) else {
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
