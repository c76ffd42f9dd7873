//! The outcome of an edit of the manifest.

use std::fmt;

use crate::fleet::FleetDifference;

/// The outcome of an edit of the manifest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AppliedEdit {
    /// Changes of handlers.
    pub handlers: FleetDifference,
    /// True if the edit also changes process settings, such as addresses, limits and timeouts, which need a restart.
    pub needs_restart: bool,
}

impl fmt::Display for AppliedEdit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let FleetDifference { added, changed, removed, unchanged } = &self.handlers;
        let changes = [("added", added), ("changed", changed), ("removed", removed)];
        for (word, names) in changes.into_iter().filter(|(_, names)| !names.is_empty()) {
            write!(f, "{word} {}; ", names.join(", "))?;
        }
        write!(f, "{unchanged} unchanged")?;
        if self.needs_restart {
            f.write_str("; restart to apply the changed `Toolyard` document")?;
        }
        Ok(())
    }
}
