//! The port of hosted functions that are invoked directly, not as tools.

use std::future::ready;
use std::sync::Arc;

use futures_util::future::BoxFuture;

use crate::error::{ErrorCode, ToolError};
use crate::registry::RegistryEntry;

/// Looks up hosted functions in each of their versions. Their ids are not names of tools, and are found here only.
pub trait FunctionLookup: Send + Sync {
    /// Finds a version of a function in the current snapshot, by id and version: `weather@1.2`. The entry has the exact
    /// version. The first call of a version waits until it is loaded.
    ///
    /// # Errors
    /// [`ErrorCode::FunctionNotFound`], or the reason why it cannot be loaded.
    fn find<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<Arc<RegistryEntry>, ToolError>>;
}

/// The lookup of a gateway without hosted functions.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoFunctionLookup;

impl FunctionLookup for NoFunctionLookup {
    fn find<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<Arc<RegistryEntry>, ToolError>> {
        Box::pin(ready(Err(unknown(name))))
    }
}

/// Returns the error for an unknown function or version.
#[must_use]
pub fn unknown(name: &str) -> ToolError {
    ToolError::new(ErrorCode::FunctionNotFound, format!("Unknown function: {name}"))
}
