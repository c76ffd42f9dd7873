//! What an edit of the manifest has done.

use std::fmt;

use crate::fleet::Difference;

/// What an edit of the manifest has done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Applied {
    /// To the handlers.
    pub handlers: Difference,
    /// Whether it also changes the process, which takes a restart: where it listens, its bounds and time-outs.
    pub needs_restart: bool,
}

impl fmt::Display for Applied {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Difference { added, changed, removed, kept } = &self.handlers;
        let named = [("added", added), ("changed", changed), ("removed", removed)];
        for (word, names) in named.into_iter().filter(|(_, names)| !names.is_empty()) {
            write!(f, "{word} {}; ", names.join(", "))?;
        }
        write!(f, "{kept} not touched")?;
        if self.needs_restart {
            f.write_str("; what the `Toolyard` document says now takes a restart")?;
        }
        Ok(())
    }
}
