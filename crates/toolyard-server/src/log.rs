//! The log filter, which can be changed at run time. The embedding program decides where the log goes.

use std::fmt;
use std::sync::Arc;

/// An invalid filter, or a log whose filter cannot be changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("cannot change the log filter: {0}")]
pub struct FilterError(pub String);

/// Changes the log filter.
type FilterSetter = dyn Fn(&str) -> Result<(), FilterError> + Send + Sync;

/// A handle on the log filter of the process.
#[derive(Clone)]
pub struct LogControl(Arc<FilterSetter>);

impl LogControl {
    /// Creates a handle that changes the filter by `change`.
    pub fn new(change: impl Fn(&str) -> Result<(), FilterError> + Send + Sync + 'static) -> Self {
        Self(Arc::new(change))
    }

    /// Replaces the filter: levels, global or per target, as in `info,toolyard_mcp=debug`.
    ///
    /// # Errors
    /// If the filter is invalid or cannot be changed. Then nothing changes.
    pub fn set_filter(&self, filter: &str) -> Result<(), FilterError> {
        (self.0)(filter)
    }
}

/// A program that embeds this crate controls its own log.
impl Default for LogControl {
    fn default() -> Self {
        Self::new(|_| Err(FilterError("the log does not belong to the gateway".to_owned())))
    }
}

impl fmt::Debug for LogControl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("LogControl")
    }
}
