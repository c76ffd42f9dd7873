//! Edits of the manifest of a running gateway.

use std::sync::{Arc, Mutex, PoisonError};
use std::{fmt, io};

use tokio::sync::oneshot;
use toolyard_manifest::{Manifest, ManifestDocument, ProcessSettings};

use crate::added_servers::AddedServers;
use crate::context::GatewayContext;
use crate::fleet::{EditCommand, FleetCommand, FleetDifference};
use crate::log::FilterError;
use crate::status::LastEdit;

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

/// The manifest that a gateway serves.
#[derive(Debug, Clone)]
pub struct ServedManifest {
    /// Digest of its texts.
    pub digest: String,
    /// Its documents, without secrets.
    pub documents: Arc<[ManifestDocument]>,
    /// True if it has working memory.
    pub has_memory: bool,
}

impl ServedManifest {
    /// Returns the part of a manifest that is shown.
    #[must_use]
    pub fn of(manifest: &Manifest) -> Self {
        let builtins = manifest.process.builtins.as_ref();
        Self {
            digest: manifest.digest.clone(),
            documents: manifest.documents.clone().into(),
            has_memory: builtins.is_some_and(|builtins| builtins.memory.is_some()),
        }
    }
}

/// Applies edits of the manifest.
pub(crate) struct ManifestApplier {
    added: Arc<AddedServers>,
    /// The log filter of the manifest that was applied last.
    log_filter: Mutex<String>,
}

impl ManifestApplier {
    /// Creates the applier of a gateway that has started with these settings.
    pub(crate) fn new(process: &ProcessSettings, added: Arc<AddedServers>) -> Self {
        Self { added, log_filter: Mutex::new(process.logs.filter.clone()) }
    }

    /// Applies the handlers, the log filter and the settings for added servers.
    pub(crate) async fn apply(
        &self,
        context: &GatewayContext,
        manifest: &Manifest,
    ) -> io::Result<AppliedEdit> {
        if manifest.process.secrets_dir != context.process.secrets_dir {
            // Handlers would be built with the folder configured at startup.
            return Err(io::Error::other("`secretsDir` has changed, which needs a restart"));
        }
        self.follow_log(context, &manifest.process.logs.filter).map_err(io::Error::other)?;
        let (done, difference) = oneshot::channel();
        let stopping = || io::Error::other("the gateway is stopping");
        let edit = EditCommand { handlers: manifest.handlers.clone(), done };
        let commands = context.fleet.commands.upgrade().ok_or_else(stopping)?;
        commands.send(FleetCommand::Edit(edit)).await.map_err(|_| stopping())?;
        let handlers = difference.await.map_err(|_| stopping())??;
        self.added.allow(manifest.process.builtins.as_ref().and_then(|builtins| builtins.mcp.clone()));
        let needs_restart = needs_restart(&context.process, &manifest.process);
        let applied = AppliedEdit { handlers, needs_restart };
        context.manifest.send_replace(ServedManifest::of(manifest));
        context.last_edit.send_replace(Some(LastEdit::now(true, applied.to_string())));
        Ok(applied)
    }

    /// Applies the manifest's log filter if it has changed. A filter set since by an operator otherwise stays.
    fn follow_log(&self, context: &GatewayContext, filter: &str) -> Result<(), FilterError> {
        let mut followed = self.log_filter.lock().unwrap_or_else(PoisonError::into_inner);
        if *followed != filter {
            context.log.set_filter(filter)?;
            filter.clone_into(&mut followed);
        }
        Ok(())
    }
}

/// True if an edit changes settings that apply at startup only.
fn needs_restart(current: &ProcessSettings, edited: &ProcessSettings) -> bool {
    let mut edited = edited.clone();
    edited.logs.filter.clone_from(&current.logs.filter);
    // Edits of the built-in tools apply to their handler.
    edited.builtins.clone_from(&current.builtins);
    edited != *current
}
