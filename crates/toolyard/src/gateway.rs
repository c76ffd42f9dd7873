//! The gateway of `serve` and `stdio`.

use std::process::ExitCode;
use std::sync::Arc;

use toolyard_manifest::Manifest;
use toolyard_server::lifecycle::{GatewayLifecycle, LifecycleEnd};
use toolyard_server::{GatewayOptions, RunningGateway, StartError};

use crate::log::LogHandle;
use crate::manifest_sources::ManifestSources;
use crate::{BadInput, key_marker, store};

/// Facts about the start of a gateway for its user.
pub(crate) struct StartReport {
    /// The origin of the handlers, if the command line does not name it.
    pub(crate) origin: Option<String>,
    /// The reason why the store cannot be used.
    pub(crate) store_problem: Option<String>,
}

/// Runs the gateway of these sources, applies edits of the files, and drains it when `serve` returns or a signal arrives.
/// `change` applies the command line to each manifest that is read.
///
/// # Errors
/// Fails if the gateway does not start, or with the error of `serve`.
pub(crate) async fn run(
    sources: ManifestSources,
    change: impl Fn(&mut Manifest) + Clone + Send + 'static,
    mut options: GatewayOptions,
    log: &LogHandle,
    serve: impl AsyncFnOnce(&RunningGateway, &Manifest, &StartReport) -> anyhow::Result<()>,
) -> anyhow::Result<ExitCode> {
    let sources = sources.or_default();
    // Before the start, so that signals and edits during the start are not lost.
    let lifecycle = GatewayLifecycle::watch(sources.paths()).await?;
    let markers = key_marker::locate(sources.paths()).await;
    let reads_stdin = sources.reads_stdin();
    let origin = sources.default_origin();
    let read = move || {
        let mut manifest = sources.read()?;
        change(&mut manifest);
        anyhow::Ok(manifest)
    };
    let manifest = read()?;
    log.apply_config(&manifest.process.logs)?;
    toolyard_process::raise_file_limit();
    let (store, store_problem) = store::open_for_gateway(&manifest.process).await?;
    let (store, report) = (Arc::new(store), StartReport { origin, store_problem });
    options.store = Some(store.clone());
    options.store_location = Some(store.location().to_string());
    options.unrecorded_count = store::unrecorded_count(store.location());
    options.key_marker = Some(markers);
    let running = match toolyard_server::start(&manifest, &options).await {
        Ok(running) => running,
        Err(error) => {
            store.close().await;
            return Err(match error {
                StartError::KeysLost(_) | StartError::Bus(_) => BadInput(error.to_string()).into(),
                error => error.into(),
            });
        }
    };
    // Standard input cannot be read again.
    let reload = (!reads_stdin).then_some(move || read().map_err(|problems| format!("{problems:#}")));
    let serve = async |running: &RunningGateway, manifest: &Manifest| serve(running, manifest, &report).await;
    match lifecycle.run(running, &manifest, reload, serve, store.close()).await? {
        LifecycleEnd::Drained => Ok(ExitCode::SUCCESS),
        LifecycleEnd::Interrupted => Ok(ExitCode::FAILURE),
    }
}
