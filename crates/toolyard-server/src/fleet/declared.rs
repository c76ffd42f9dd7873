//! Which handlers there are to be, and which of them run.

use std::collections::HashSet;

use toolyard_manifest as manifest;

use super::Origin;

/// Which handlers there are to be.
#[derive(Debug, Clone, Default)]
pub struct Declared {
    /// Those of the manifest, in its order.
    pub manifest: Vec<manifest::Handler>,
    /// Those that were added at run time.
    pub added: Vec<manifest::Handler>,
}

impl Declared {
    /// Those that run: of two with the same name, the one of the manifest.
    pub(crate) fn running(&self) -> impl Iterator<Item = (&manifest::Handler, Origin)> {
        let taken: HashSet<_> = self.manifest.iter().map(|handler| &handler.name).collect();
        let added = self.added.iter().filter(move |handler| !taken.contains(&handler.name));
        let configured = self.manifest.iter().map(|handler| (handler, Origin::Manifest));
        configured.chain(added.map(|handler| (handler, Origin::RunTime)))
    }

    /// Says which servers do not run because of the manifest.
    pub(super) fn log_hidden(&self) {
        let taken: HashSet<_> = self.manifest.iter().map(|handler| &handler.name).collect();
        for handler in self.added.iter().filter(|handler| taken.contains(&handler.name)) {
            tracing::warn!(
                handler = handler.name.as_str(),
                "a server that was added at run time does not run: the manifest has a handler of its name"
            );
        }
    }
}
