//! The scripts manager of this process, and the runner that sends scripts to another one.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{BoxFuture, FutureExt};
use toolyard_bus::scripts::{BusScriptRunner, ScriptsManager, ScriptsManagerOptions};
use toolyard_core::store::Store;
use toolyard_core::{ErrorCode, ScriptExecutor};
use toolyard_manifest::{BusSettings, ScriptRunner, ScriptSettings};

use super::connect;
use crate::bus::BusFailure;
use crate::context::GatewayContext;
use crate::frontends::FrontendDeps;
use crate::shutdown::Subsystem;

/// Maximum number of deliveries that a broker has outstanding.
const MAX_CONCURRENT: usize = 10_000;

const DISABLED: &str = "scripts are disabled: remove `enabled: false` from `builtins.scripts`";
const SENT_ON: &str =
    "a scripts manager cannot send its scripts on: set `builtins.scripts.runner` to `local` or `kubernetes`";

/// Returns the runner that sends scripts to a manager on this bus.
///
/// # Errors
/// If the settings have no URL that a broker's client accepts.
pub(in crate::bus) fn runner(
    settings: &BusSettings,
    store: &Arc<dyn Store>,
) -> Result<Arc<dyn ScriptExecutor>, BusFailure> {
    let bus = connect(settings, store)?;
    Ok(Arc::new(BusScriptRunner::new(bus, settings)))
}

/// Starts the scripts manager with the runner of the manifest.
///
/// # Errors
/// If the settings have no URL that a broker's client accepts, or if scripts are disabled or to be sent on.
pub(in crate::bus) fn start_manager(
    context: &GatewayContext,
    deps: &FrontendDeps<'_>,
) -> Result<Box<dyn Subsystem>, BusFailure> {
    let process = &context.process;
    let scripts = match &process.builtins {
        Some(builtins) => builtins.scripts.clone().ok_or_else(|| invalid(DISABLED))?,
        None => ScriptSettings::default(),
    };
    if scripts.runner == ScriptRunner::Bus {
        return Err(invalid(SENT_ON));
    }
    let bus = connect(&process.bus, &context.store)?;
    let options = ScriptsManagerOptions { concurrent: scripts.concurrent.clamp(1, MAX_CONCURRENT) };
    let runner = deps.telemetry.observed_scripts(deps.hosting.runner(&scripts));
    Ok(Box::new(ScriptsManager::start(bus, runner, options, &process.bus)))
}

fn invalid(message: &str) -> BusFailure {
    BusFailure { code: ErrorCode::InvalidArguments, message: message.to_owned() }
}

impl Subsystem for ScriptsManager {
    fn stop(self: Box<Self>, drain: Duration) -> BoxFuture<'static, ()> {
        ScriptsManager::stop(*self, drain).boxed()
    }
}
