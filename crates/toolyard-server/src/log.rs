//! What is logged, as far as it can be changed while the gateway runs. Where the log goes is its embedder's business.

use std::fmt;
use std::sync::Arc;

/// A filter that the log does not take, or a log whose filter cannot be changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the filter of the log cannot be changed: {0}")]
pub struct FilterError(pub String);

/// Changes the filter of the log.
type Change = dyn Fn(&str) -> Result<(), FilterError> + Send + Sync;

/// A handle on the log of the process.
#[derive(Clone)]
pub struct LogControl(Arc<Change>);

impl LogControl {
    /// A log whose filter `change` changes.
    pub fn new(change: impl Fn(&str) -> Result<(), FilterError> + Send + Sync + 'static) -> Self {
        Self(Arc::new(change))
    }

    /// Has only that logged: levels, for all or for a target, as in `info,toolyard_mcp=debug`.
    ///
    /// # Errors
    /// When this is no filter, or the filter cannot be changed. Then nothing changes.
    pub fn set_filter(&self, filter: &str) -> Result<(), FilterError> {
        (self.0)(filter)
    }
}

/// A program that links this crate has a log of its own.
impl Default for LogControl {
    fn default() -> Self {
        Self::new(|_| Err(FilterError("it is not the gateway's".to_owned())))
    }
}

impl fmt::Debug for LogControl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("LogControl")
    }
}
