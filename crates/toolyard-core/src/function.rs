//! The port of hosted functions: which of them there are, for those who invoke them by themselves and not as tools.

use std::future::ready;
use std::sync::Arc;

use futures_util::future::BoxFuture;

use crate::error::{Code, ToolError};
use crate::registry::Entry;

/// Every hosted function that can be invoked, in each of its versions. Their ids are no names of tools: they are found
/// here and nowhere else.
pub trait Functions: Send + Sync {
    /// Finds a version of a function in the current snapshot, by its id and what says which version, with an `@` between
    /// the two: `weather@1.2`. The entry has the very version. The first call of a version waits until it is loaded.
    ///
    /// # Errors
    /// [`Code::FunctionNotFound`], or why it cannot be loaded.
    fn find<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<Arc<Entry>, ToolError>>;
}

/// No function is hosted.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoFunctions;

impl Functions for NoFunctions {
    fn find<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<Arc<Entry>, ToolError>> {
        Box::pin(ready(Err(unknown(name))))
    }
}

/// There is no such function, or not this version of it.
#[must_use]
pub fn unknown(name: &str) -> ToolError {
    ToolError::new(Code::FunctionNotFound, format!("Unknown function: {name}"))
}
