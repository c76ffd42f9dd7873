//! Checks arguments against the schema that the tool publishes.

use futures_util::future::BoxFuture;

use super::{Answer, Layer, Next};
use crate::call::{Call, Target};

/// The layer that refuses arguments which do not fit. The text that was sent goes on as it came: a
/// typed value is made for the check only.
pub struct Arguments;

impl Layer for Arguments {
    fn name(&self) -> &'static str {
        "arguments"
    }

    fn call<'a>(&'a self, call: Call, next: Next<'a>) -> BoxFuture<'a, Answer> {
        // What is no tool publishes no schema, and a task was given its arguments when it began.
        let checked = match (&call.target, &next.entry.tool) {
            (Target::Tool(_), Some(tool)) => tool.check_arguments(call.arguments()),
            _ => Ok(()),
        };
        match checked {
            Ok(()) => next.run(call),
            Err(error) => Box::pin(std::future::ready(Err(error))),
        }
    }
}
