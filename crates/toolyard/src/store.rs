//! `toolyard store`: what the gateway keeps, and where.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::bail;
use serde_json::json;
use toolyard_core::store::Store;
use toolyard_manifest::{Process, StorePlace};
use toolyard_store::{Description, Location, PostgresUrl, Reopening, StoreOptions};

use crate::BadInput;
use crate::output::{Format, print};

/// Look after what the gateway keeps: see how it is, copy it, bring it up to date
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  toolyard store status                       where the store is, its version and its size
  toolyard store status -f gateway.yaml       of the gateway that serves this manifest
  toolyard store backup /backup/monday.db     a copy, which is made while the gateway serves
  toolyard store migrate -f gateway.yaml      before the gateway of a new version is started

Without a manifest, or where it says nothing of a store, the store is the file `toolyard.db` in
$TOOLYARD_STATE_DIR, $STATE_DIRECTORY, $XDG_STATE_HOME/toolyard or ~/.local/state/toolyard,
the first of these that there is.")]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    /// Say where the store is, its version and its size; nothing is changed
    #[command(after_help = "\
Examples:
  toolyard store status -f gateway.yaml --output json")]
    Status(Manifests),
    /// Copy a store in a file to another file, as it is at one moment
    ///
    /// The copy is a store itself. To restore it, while no gateway runs, put it in the place of the store and remove
    /// the files beside that whose names end in `-wal` and `-shm`: they belong to what was there before. A store on
    /// PostgreSQL is copied by pg_dump.
    #[command(after_help = "\
Examples:
  toolyard store backup /backup/monday.db -f gateway.yaml")]
    Backup {
        /// The file of the copy, which is not there yet
        #[arg(value_name = "FILE")]
        to: PathBuf,

        #[command(flatten)]
        manifests: Manifests,
    },
    /// Make the store, or bring it to the version that this program needs
    ///
    /// `toolyard serve` does the same when it starts. A store is never brought back to an older version: make a
    /// backup before.
    #[command(after_help = "\
Examples:
  toolyard store migrate -f gateway.yaml")]
    Migrate(Manifests),
}

/// The manifests that say where the store is.
#[derive(clap::Args)]
pub(crate) struct Manifests {
    /// A manifest, a folder of them, or `-` for standard input, as for `toolyard serve`
    #[arg(short, long = "file", value_name = "FILE")]
    files: Vec<PathBuf>,
}

pub(crate) async fn run(args: Args, format: Format) -> anyhow::Result<ExitCode> {
    match args.command {
        Command::Status(manifests) => {
            let options = manifests.options()?;
            show(&toolyard_store::describe(&options.location).await?, format);
        }
        Command::Backup { to, manifests } => {
            let size = toolyard_store::backup(&manifests.options()?.location, &to).await?;
            print(&match format {
                Format::Text => format!("{} has {}", to.display(), kib(size)),
                Format::Json => json!({"file": to, "size": size}).to_string(),
            });
        }
        Command::Migrate(manifests) => {
            let options = manifests.options()?;
            drop(toolyard_store::open(&options).await?);
            show(&toolyard_store::describe(&options.location).await?, format);
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// The store of a gateway. One that cannot be opened does not keep it from starting: what needs no store goes on, and
/// what does is refused until the store can be opened.
pub(crate) async fn of_gateway(process: &Process) -> anyhow::Result<Arc<dyn Store>> {
    let options = options(process)?;
    let location = options.location.to_string();
    let store = Reopening::new(options);
    match store.open().await {
        Ok(_) => tracing::debug!("the store is {location}"),
        Err(error) => tracing::error!(
            error = &error as &dyn std::error::Error,
            "THERE IS NO STORE: what needs one, keys too, fails until it can be opened, which is tried again"
        ),
    }
    Ok(Arc::new(store))
}

impl Manifests {
    /// The store of the gateway of these manifests, which is there already.
    ///
    /// # Errors
    /// When there is none, when it cannot be opened, or is in the memory of the gateway.
    pub(crate) async fn existing_store(&self) -> anyhow::Result<Arc<dyn Store>> {
        Ok(toolyard_store::open_existing(&self.lasting()?).await?)
    }

    /// The store of the gateway of these manifests, which is made where there is none; and where it is.
    ///
    /// # Errors
    /// When it cannot be opened or made, or is in the memory of the gateway.
    pub(crate) async fn made_store(&self) -> anyhow::Result<(Arc<dyn Store>, Location)> {
        let options = self.lasting()?;
        Ok((toolyard_store::open(&options).await?, options.location))
    }

    /// A store that outlives its gateway, and this command.
    fn lasting(&self) -> anyhow::Result<StoreOptions> {
        let options = self.options()?;
        if options.location == Location::Memory {
            bail!("the store is in the memory of the gateway: ask the gateway itself, by REST (/api/v1)");
        }
        Ok(options)
    }

    fn options(&self) -> anyhow::Result<StoreOptions> {
        options(&self.process()?)
    }

    /// What these manifests say of the process.
    ///
    /// # Errors
    /// When they have problems.
    pub(crate) fn process(&self) -> anyhow::Result<Process> {
        let manifest = toolyard_manifest::load(&self.files);
        let manifest =
            manifest.map_err(|problems| BadInput(format!("the manifest has problems\n\n{problems}")))?;
        Ok(manifest.process)
    }
}

fn options(process: &Process) -> anyhow::Result<StoreOptions> {
    let location = match &process.store {
        Some(StorePlace::File(path)) => Location::File(path.clone()),
        Some(StorePlace::Memory) => Location::Memory,
        Some(StorePlace::Url(url)) => {
            let url = PostgresUrl::parse(url.expose());
            Location::Postgres(url.map_err(|error| BadInput(error.to_string()))?)
        }
        None => usual(&|name| std::env::var_os(name).map(PathBuf::from)),
    };
    let (queue, connections) = (process.limits.store_queue, process.limits.store_connections);
    Ok(StoreOptions { location, queue, connections })
}

/// Where the store of this user is when nobody says otherwise.
fn usual(variable: &dyn Fn(&str) -> Option<PathBuf>) -> Location {
    let folder = |name: &str, inside: &str| {
        let folder = variable(name).filter(|folder| !folder.as_os_str().is_empty())?;
        Some(folder.join(inside))
    };
    // systemd gives a service its own, or several with colons between them, of which the first counts.
    let of_service = || folder("STATE_DIRECTORY", "").map(|folders| first(&folders));
    let folder = folder("TOOLYARD_STATE_DIR", "")
        .or_else(of_service)
        .or_else(|| folder("XDG_STATE_HOME", "toolyard"))
        .or_else(|| folder("HOME", ".local/state/toolyard"));
    folder.map_or(Location::Memory, |folder| Location::File(folder.join("toolyard.db")))
}

fn first(folders: &Path) -> PathBuf {
    std::env::split_paths(folders).next().unwrap_or_default()
}

fn show(description: &Description, format: Format) {
    let Description { kind, location, version, newest, size } = description;
    print(&match format {
        Format::Text => format!(
            "kind      {kind}\nlocation  {location}\nversion   {}\nsize      {}",
            state(*version, *newest),
            kib(*size)
        ),
        Format::Json => {
            json!({"kind": kind, "location": location, "version": version, "newest": newest, "size": size})
                .to_string()
        }
    });
}

/// What the version of a store means.
fn state(version: Option<i64>, newest: i64) -> String {
    match version {
        None => "none: there is nothing yet".to_owned(),
        Some(version) if version < newest => {
            format!("{version}: `toolyard store migrate` makes it {newest}")
        }
        Some(version) if version > newest => {
            format!("{version}: of a later Toolyard, this one knows {newest}")
        }
        Some(version) => format!("{version}: up to date"),
    }
}

fn kib(bytes: u64) -> String {
    format!("{} KiB", bytes.div_ceil(1024))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_usual_place() {
        let check = |variables: &[(&str, &str)], expected: Option<&str>| {
            let variable = |name: &str| {
                variables.iter().find(|(known, _)| *known == name).map(|(_, value)| PathBuf::from(value))
            };
            let expected = expected.map_or(Location::Memory, |path| Location::File(path.into()));
            assert_eq!(usual(&variable), expected, "{variables:?}");
        };
        let home = ("HOME", "/home/me");
        let xdg = ("XDG_STATE_HOME", "/xdg");
        check(&[], None);
        check(&[("HOME", "")], None);
        check(&[home], Some("/home/me/.local/state/toolyard/toolyard.db"));
        check(&[home, xdg], Some("/xdg/toolyard/toolyard.db"));
        check(&[home, xdg, ("STATE_DIRECTORY", "/var/lib/yard:/other")], Some("/var/lib/yard/toolyard.db"));
        check(
            &[home, ("STATE_DIRECTORY", "/var/lib/yard"), ("TOOLYARD_STATE_DIR", "/mine")],
            Some("/mine/toolyard.db"),
        );
        check(&[("TOOLYARD_STATE_DIR", ""), home], Some("/home/me/.local/state/toolyard/toolyard.db"));
    }
}
