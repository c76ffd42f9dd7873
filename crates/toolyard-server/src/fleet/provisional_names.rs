//! Names that a handler has got before one in front of it could list anything.

use std::collections::HashSet;
use std::sync::Arc;

use toolyard_core::names::NameRegistry;
use toolyard_core::{BackendPhase, Catalog};

/// The handlers whose names may still change, because a handler before them in the manifest connects for the first time.
/// Its tools come first in the order of names, whatever answers first.
#[derive(Debug, Default)]
pub(super) struct ProvisionalNames(HashSet<Arc<str>>);

impl ProvisionalNames {
    /// Releases the provisional names behind handlers that list something for the first time. `offers` are all handlers
    /// in the order of the manifest. Called before names are assigned.
    pub(super) fn settle<'a>(
        &mut self,
        offers: impl Iterator<Item = (&'a Arc<str>, &'a Arc<Catalog>)>,
        names: &mut NameRegistry,
    ) {
        let (mut is_first_pending, mut has_new) = (false, false);
        let mut still_provisional = HashSet::new();
        for (handler, catalog) in offers {
            let is_named = names.has_names(handler);
            let was_provisional = self.0.contains(handler);
            if has_new && was_provisional {
                names.forget(handler);
            }
            let offers_names = !catalog.tools.is_empty() || !catalog.prompts.is_empty();
            if is_first_pending && offers_names && (was_provisional || !is_named) {
                still_provisional.insert(handler.clone());
            }
            has_new |= offers_names && !is_named;
            is_first_pending |= catalog.phase == BackendPhase::Connecting && !offers_names && !is_named;
        }
        self.0 = still_provisional;
    }
}
