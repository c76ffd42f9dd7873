//! The start of a gateway: its subsystems in the order in which they start, and the order in which they stop.
//!
//! A subsystem is a module with a function `start(&GatewayContext, ..)`, which gets the parts of other subsystems that it
//! uses as arguments, and whose result implements [`Subsystem`]. A further one that no other subsystem uses, such as
//! a message bus, is one line in the list of [`start`], at its place in the shutdown. A frontend is a line
//! in [`frontends`].

mod error;
mod options;

use std::sync::Arc;

use toolyard_manifest::Manifest;

use crate::audit::AuditService;
use crate::build::BuiltinDeps;
use crate::context::GatewayContext;
use crate::frontends::{self, FrontendDeps};
use crate::hosting::CodeHosting;
use crate::keys::{CurrentCallers, KeyService};
use crate::listeners::{BoundListeners, ProtocolRoutes};
use crate::manifest_edits::ManifestApplier;
use crate::routes::{self, GatewayStage};
use crate::running_gateway::RunningGateway;
use crate::shutdown::Subsystem;
use crate::telemetry::GatewayTelemetry;
use crate::{added_servers, agents, bus, cluster_members, gateway, schedules, summaries};

pub use error::StartError;
pub use options::{BusRole, GatewayOptions};

/// Starts a gateway. On return, every address of the manifest is bound (there may be none); handlers may still be
/// connecting.
///
/// # Errors
/// If an address cannot be bound or would be open to unauthenticated callers.
pub async fn start(manifest: &Manifest, options: &GatewayOptions) -> Result<RunningGateway, StartError> {
    let process = &manifest.process;
    bus::check(options.bus_role, &process.bus)?;
    let (context, fleet) = GatewayContext::create(manifest, options).await?;
    // Before the sockets: a gateway that would be open to other machines without keys binds none.
    let keys = KeyService::start(&context, options.key_marker.as_ref()).await?;
    let bound = BoundListeners::bind(process).await?;
    let (listening, certificate) = (bound.listening(), bound.certificate.clone());

    // The observers of calls come before the calls.
    let audit = AuditService::start(context.audit.clone(), process, &context.store);
    let telemetry = Arc::new(GatewayTelemetry::start(&context)?);
    let hosting = CodeHosting::start(process, &context.processes, context.store.clone());
    let (gateway, memory_layers) =
        gateway::create(&context, &telemetry, &audit, &hosting, &options.without_layers)?;
    let (store, statuses) = (&context.store, &context.fleet.statuses);
    let callers = Arc::new(CurrentCallers::new(keys.cache.clone(), process.addresses().next().is_none()));
    let builtin_deps =
        BuiltinDeps::new(&gateway, store, memory_layers, statuses, &fleet.commands, process, &listening.http);
    let builtin_deps = BuiltinDeps {
        embeddings: context.embeddings.clone(),
        nested: builtin_deps.nested.refreshed_by(callers.clone()),
        ..builtin_deps
    };

    // The frontends come before the handlers, so that `/health` answers while those start.
    let mcp = frontends::mcp::start(&context, &gateway);
    let a2a = frontends::a2a::start(&context, &gateway);
    let frontend_deps = FrontendDeps {
        gateway: &gateway,
        mcp: &mcp,
        a2a: a2a.as_ref(),
        agents: &builtin_deps.agents,
        keys: &keys.cache,
        hosting: &hosting,
        services: &builtin_deps.services,
        guard: &routes::guard(process, &listening),
        finder: &builtin_deps.finder,
        schedules: &builtin_deps.schedules,
        telemetry: &telemetry,
        listening: &listening,
    };
    let (grpc, grpc_tasks) = frontends::grpc_routes(&context, &frontend_deps);
    let http = routes::all(&context, &frontend_deps)?;
    let routes = ProtocolRoutes { http: http.main, console: http.console, grpc };
    let listeners = bound.serve(&context, routes)?;
    let fleet = fleet.start(&context, &manifest.handlers, &hosting, &builtin_deps).await?;

    // From the sources of calls to their observers, so that late calls are still counted, audited and exported.
    let subsystems: Vec<Box<dyn Subsystem>> = vec![
        Box::new(listeners),
        bus::start(&context, options.bus_role, &frontend_deps, &builtin_deps.summaries)?,
        bus::agents::start(&context, options.bus_role, &frontend_deps)?,
        Box::new(schedules::start(&context, &builtin_deps.schedules, &gateway, &keys.cache, &callers)?),
        Box::new(a2a.clone()),
        Box::new(agents::start(&builtin_deps.agents)),
        Box::new(mcp.clone()),
        Box::new(fleet),
        Box::new(hosting.clone()),
        Box::new(keys),
        Box::new(audit),
        Box::new(telemetry),
        // These have no work to finish.
        Box::new(grpc_tasks),
        Box::new(cluster_members::start(&context)),
        Box::new(added_servers::start(&context, &builtin_deps.added)),
        Box::new(summaries::start(&context, &builtin_deps.summaries)?),
    ];
    context.stage.send_replace(GatewayStage::Serving);
    let applier = ManifestApplier::new(process, builtin_deps.added);
    let functions = hosting.host;
    Ok(RunningGateway { context, subsystems, listening, certificate, gateway, mcp, functions, applier })
}
