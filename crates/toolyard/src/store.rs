//! `toolyard store`: manages the store of a gateway.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::bail;
use serde_json::json;
use toolyard_core::store::Store;
use toolyard_manifest::{ProcessSettings, StoreSettings};
use toolyard_store::{DatabaseLocation, PostgresUrl, ReopeningStore, StoreDescription, StoreOptions};

use crate::output::{OutputFormat, print};
use crate::state::{self, GatewayState};
use crate::{BadInput, default_manifest};

/// Manage the store of a gateway
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  toolyard store status                       show location, version and size
  toolyard store status -f gateway.yaml       use the store of the gateway with this manifest
  toolyard store backup /backup/monday.db     back up the store, also while the gateway is running
  toolyard store migrate -f gateway.yaml      migrate before starting a new version of the gateway

Without `store` in a manifest, the store is `toolyard.db` in $TOOLYARD_STATE_DIR or $STATE_DIRECTORY. Otherwise each
gateway has its own below `stores` in $XDG_STATE_HOME/toolyard or ~/.local/state/toolyard, named after its manifest.")]
pub(crate) struct StoreArgs {
    #[command(subcommand)]
    command: StoreCommand,
}

#[derive(clap::Subcommand)]
enum StoreCommand {
    /// Show the location, version and size of the store
    #[command(after_help = "\
Examples:
  toolyard store status -f gateway.yaml --output json")]
    Status(ManifestArgs),
    /// Back up a store file to another file
    ///
    /// The backup is a consistent snapshot and a store itself. To restore it, stop the gateway, replace the store file
    /// with the backup and remove the old files beside it whose names end in `-wal` and `-shm`. Use pg_dump for a store
    /// on PostgreSQL.
    #[command(after_help = "\
Examples:
  toolyard store backup /backup/monday.db -f gateway.yaml")]
    Backup {
        /// File to create
        #[arg(value_name = "FILE")]
        to: PathBuf,

        #[command(flatten)]
        manifests: ManifestArgs,
    },
    /// Create the store, or migrate it to the version of this program
    ///
    /// `toolyard serve` does the same when it starts. There is no downgrade; create a backup first.
    #[command(after_help = "\
Examples:
  toolyard store migrate -f gateway.yaml")]
    Migrate(ManifestArgs),
}

/// The manifests of the gateway whose store is used.
#[derive(clap::Args)]
pub(crate) struct ManifestArgs {
    /// Manifest of the gateway, directory of manifests, or `-` for standard input; repeatable (default: `toolyard.yaml`
    /// here or in ~/.config/toolyard)
    #[arg(short, long = "file", value_name = "FILE")]
    files: Vec<PathBuf>,
}

pub(crate) async fn run(args: StoreArgs, format: OutputFormat) -> anyhow::Result<ExitCode> {
    match args.command {
        StoreCommand::Status(manifests) => {
            let options = manifests.options()?;
            print_description(&toolyard_store::describe(&options.location).await?, format);
        }
        StoreCommand::Backup { to, manifests } => {
            let size = toolyard_store::backup(&manifests.options()?.location, &to).await?;
            print(&match format {
                OutputFormat::Text => format!("backed up {} to {}", format_kib(size), to.display()),
                OutputFormat::Json => json!({"file": to, "size": size}).to_string(),
            });
        }
        StoreCommand::Migrate(manifests) => {
            let options = manifests.options()?;
            toolyard_store::open_closable(&options).await?.close().await;
            print_description(&toolyard_store::describe(&options.location).await?, format);
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Opens the store of a gateway. The gateway starts even if this fails: requests that need the store fail until it can be
/// opened.
/// Returns the reason as well.
pub(crate) async fn open_for_gateway(
    process: &ProcessSettings,
    manifests: &[PathBuf],
) -> anyhow::Result<(ReopeningStore, Option<String>)> {
    let options = store_options(process, manifests)?;
    let location = options.location.to_string();
    if let Some(shared) = state::unused_shared_store(&options.location) {
        tracing::info!(
            "{} is not used: each gateway has its own store; set `store.file` to use it",
            shared.display()
        );
    }
    let store = ReopeningStore::new(options);
    let problem = match store.open().await {
        Ok(_) => {
            tracing::debug!("the store is {location}");
            None
        }
        Err(error) => {
            tracing::error!(
                error = &error as &dyn std::error::Error,
                "store unavailable, retrying; keys and quotas fail until it is back"
            );
            Some(format!("{:#}", anyhow::Error::from(error)))
        }
    };
    Ok((store, problem))
}

impl ManifestArgs {
    /// Opens the existing store of the gateway, runs `work` and closes the store.
    ///
    /// # Errors
    /// Fails if the store does not exist, cannot be opened or is in memory, or with the error of `work`.
    pub(crate) async fn with_existing<T>(
        &self,
        work: impl AsyncFnOnce(Arc<dyn Store>) -> anyhow::Result<T>,
    ) -> anyhow::Result<T> {
        let store = toolyard_store::open_existing(&self.persistent_options()?).await?;
        let done = work(store.clone()).await;
        store.close().await;
        done
    }

    /// Opens or creates the store of the gateway, runs `work` and closes the store.
    ///
    /// # Errors
    /// Fails if the store cannot be opened or created or is in memory, or with the error of `work`.
    pub(crate) async fn with_created<T>(
        &self,
        work: impl AsyncFnOnce(Arc<dyn Store>, &DatabaseLocation) -> anyhow::Result<T>,
    ) -> anyhow::Result<T> {
        let options = self.persistent_options()?;
        let store = toolyard_store::open_closable(&options).await?;
        let done = work(store.clone(), &options.location).await;
        store.close().await;
        done
    }

    /// Returns the paths of the manifests, or else that of the default manifest.
    pub(crate) fn files(&self) -> Vec<PathBuf> {
        if self.files.is_empty() { default_manifest::find_all() } else { self.files.clone() }
    }

    /// Returns the options of the store, which must be persistent.
    fn persistent_options(&self) -> anyhow::Result<StoreOptions> {
        let options = self.options()?;
        if options.location == DatabaseLocation::Memory {
            if self.files().is_empty() {
                bail!(
                    "the demo keeps no state: write a manifest with `toolyard init`, or name one with `-f`"
                );
            }
            bail!("the gateway's store is in its memory: use its REST API (/api/v1)");
        }
        Ok(options)
    }

    /// Describes the store without changing it.
    ///
    /// # Errors
    /// Fails if the manifests are invalid or the store cannot be read.
    pub(crate) async fn describe_store(&self) -> anyhow::Result<StoreDescription> {
        Ok(toolyard_store::describe(&self.options()?.location).await?)
    }

    fn options(&self) -> anyhow::Result<StoreOptions> {
        store_options(&self.process()?, &self.files())
    }

    /// Reads the process settings of the manifests.
    ///
    /// # Errors
    /// Fails if the manifests are invalid.
    pub(crate) fn process(&self) -> anyhow::Result<ProcessSettings> {
        let manifest = toolyard_manifest::load(&self.files());
        let manifest = manifest.map_err(|problems| BadInput(format!("invalid manifest\n\n{problems}")))?;
        Ok(manifest.process)
    }
}

fn store_options(process: &ProcessSettings, manifests: &[PathBuf]) -> anyhow::Result<StoreOptions> {
    let location = match &process.store {
        Some(StoreSettings::File(path)) => DatabaseLocation::File(path.clone()),
        Some(StoreSettings::Memory) => DatabaseLocation::Memory,
        Some(StoreSettings::Url(url)) => {
            let url = PostgresUrl::parse(url.expose());
            DatabaseLocation::Postgres(url.map_err(|error| BadInput(error.to_string()))?)
        }
        None => GatewayState::of(manifests)
            .map_or(DatabaseLocation::Memory, |state| DatabaseLocation::File(state.store())),
    };
    let (queue, connections) = (process.limits.store_queue, process.limits.store_connections);
    Ok(StoreOptions { location, queue, connections })
}

/// Returns the path of the count of audit records that a kill loses: beside the store, or in the state directory. A store
/// in memory loses all of them.
pub(crate) fn unrecorded_count(store: &DatabaseLocation, manifests: &[PathBuf]) -> Option<PathBuf> {
    match store {
        DatabaseLocation::Memory => None,
        DatabaseLocation::File(path) => {
            let mut name = path.file_name()?.to_owned();
            name.push("-unrecorded");
            Some(path.with_file_name(name))
        }
        DatabaseLocation::Postgres(_) => Some(GatewayState::of(manifests)?.unrecorded_count()),
    }
}

fn print_description(description: &StoreDescription, format: OutputFormat) {
    let StoreDescription { kind, location, version, supported_version: newest, size } = description;
    print(&match format {
        OutputFormat::Text => format!(
            "kind      {kind}\nlocation  {location}\nversion   {}\nsize      {}",
            version_text(*version, *newest),
            format_kib(*size)
        ),
        OutputFormat::Json => {
            json!({"kind": kind, "location": location, "version": version, "newest": newest, "size": size})
                .to_string()
        }
    });
}

/// Describes the version of a store relative to the newest one.
pub(crate) fn version_text(version: Option<i64>, newest: i64) -> String {
    match version {
        None => "none (the store does not exist)".to_owned(),
        Some(version) if version < newest => {
            format!("{version} (outdated; `toolyard store migrate` updates it to {newest})")
        }
        Some(version) if version > newest => {
            format!("{version} (newer than this program, which supports up to {newest})")
        }
        Some(version) => format!("{version} (up to date)"),
    }
}

fn format_kib(bytes: u64) -> String {
    format!("{} KiB", bytes.div_ceil(1024))
}
