//! The gateway of `serve` and `stdio`.

use std::convert::Infallible;
use std::future::pending;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use toolyard_manifest::Manifest;
use toolyard_server::keys::record;
use toolyard_server::lifecycle::{GatewayLifecycle, LifecycleEnd};
use toolyard_server::{GatewayOptions, RunningGateway, StartError};
use toolyard_store::ReopeningStore;

use crate::log::LogHandle;
use crate::manifest_sources::ManifestSources;
use crate::output::{count, note};
use crate::{BadInput, default_manifest, key_marker, store};

/// Facts about the start of a gateway for its user.
pub(crate) struct StartReport {
    /// The origin of the handlers, if the command line does not name it.
    pub(crate) origin: Option<String>,
    /// The reason why the store cannot be used.
    pub(crate) store_problem: Option<String>,
    /// The keys that requests need, and where they are. `None` if requests need none.
    pub(crate) keys: Option<String>,
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
    let paths = sources.paths();
    let lifecycle = GatewayLifecycle::watch(paths.clone()).await?;
    let markers = key_marker::locate(paths.clone()).await;
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
    let (store, store_problem) = store::open_for_gateway(&manifest.process, &paths).await?;
    let store = Arc::new(store);
    options.store = Some(store.clone());
    options.store_location = Some(store.location().to_string());
    options.unrecorded_count = store::unrecorded_count(store.location(), &paths);
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
    let keys = match manifest.process.allow_unauthenticated || store_problem.is_some() {
        true => None,
        false => describe_keys(&store).await,
    };
    let report = StartReport { origin, store_problem, keys };
    let is_demo = paths.is_empty();
    // Standard input cannot be read again.
    let reload = (!reads_stdin).then_some(move || read().map_err(|problems| format!("{problems:#}")));
    let serve = async |running: &RunningGateway, manifest: &Manifest| {
        tokio::select! {
            served = serve(running, manifest, &report) => served,
            never = report_late_manifest(), if is_demo => match never {},
        }
    };
    match lifecycle.run(running, &manifest, reload, serve, store.close()).await? {
        LifecycleEnd::Drained => Ok(ExitCode::SUCCESS),
        LifecycleEnd::Interrupted => Ok(ExitCode::FAILURE),
    }
}

/// Maximum number of keys that are named at the start.
const MAX_KEYS_NAMED: usize = 3;

/// Describes the keys that requests need: their number, store and first names.
async fn describe_keys(store: &ReopeningStore) -> Option<String> {
    let keys = record::list(store).await.ok().filter(|keys| !keys.is_empty())?;
    let mut names: Vec<_> = keys.iter().take(MAX_KEYS_NAMED).map(|key| &*key.name).collect();
    if keys.len() > MAX_KEYS_NAMED {
        names.push("...");
    }
    Some(format!("{} in {} ({})", count(keys.len(), "key"), store.location(), names.join(", ")))
}

/// Time between two looks for a manifest.
const MANIFEST_CHECK: Duration = Duration::from_secs(2);

/// Says so when a manifest appears that a gateway without one would have served.
async fn report_late_manifest() -> Infallible {
    let file = loop {
        tokio::time::sleep(MANIFEST_CHECK).await;
        if let Some(file) = default_manifest::find() {
            break file;
        }
    };
    note(&format!(
        "{} has been written, but this gateway serves the embedded demo: restart it to serve that file",
        default_manifest::displayed(&file)
    ));
    pending().await
}
