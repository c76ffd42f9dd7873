//! The declared handlers.

use std::collections::HashSet;

use toolyard_manifest as manifest;

use super::HandlerOrigin;

/// The declared handlers.
#[derive(Debug, Clone, Default)]
pub struct DeclaredHandlers {
    /// Handlers of the manifest, in order.
    pub manifest: Vec<manifest::HandlerConfig>,
    /// Handlers added at run time.
    pub added: Vec<manifest::HandlerConfig>,
}

impl DeclaredHandlers {
    /// Returns the handlers to run. A handler of the manifest hides an added one of the same name.
    pub(crate) fn running(&self) -> impl Iterator<Item = (&manifest::HandlerConfig, HandlerOrigin)> {
        let manifest_names: HashSet<_> = self.manifest.iter().map(|handler| &handler.name).collect();
        let added = self.added.iter().filter(move |handler| !manifest_names.contains(&handler.name));
        let from_manifest = self.manifest.iter().map(|handler| (handler, HandlerOrigin::Manifest));
        from_manifest.chain(added.map(|handler| (handler, HandlerOrigin::RunTime)))
    }

    /// Logs the added servers that the manifest hides.
    pub(super) fn warn_shadowed(&self) {
        let manifest_names: HashSet<_> = self.manifest.iter().map(|handler| &handler.name).collect();
        for handler in self.added.iter().filter(|handler| manifest_names.contains(&handler.name)) {
            tracing::warn!(
                handler = handler.name.as_str(),
                "a server added at run time does not run: the manifest has a handler of the same name"
            );
        }
    }
}

/// True if an edit changes only names, prices and descriptions of tools, and not the server.
pub(super) fn is_renamed(previous: &manifest::HandlerConfig, declared: &manifest::HandlerConfig) -> bool {
    let (prefix, overrides, price) = (previous.prefix, previous.overrides.clone(), previous.price);
    let (display_name, description) = (previous.display_name.clone(), previous.description.clone());
    let same_behavior = manifest::HandlerConfig {
        prefix,
        overrides,
        price,
        display_name,
        description,
        chunking: previous.chunking,
        rename_arguments: previous.rename_arguments,
        pin: previous.pin,
        ..declared.clone()
    };
    *previous == same_behavior
}
