//! The gateway that runs all calls, with its layers.

use std::sync::Arc;

use tokio::sync::watch;
use toolyard_agent::large::{LargeResults, LargeSettings};
use toolyard_agent::memory::{SessionHandleSettings, SessionHandles};
use toolyard_core::Gateway;
use toolyard_core::gate::GateSize;
use toolyard_core::gateway::GatewayLimits;
use toolyard_core::layers::Layer;

use crate::audit::AuditService;
use crate::context::GatewayContext;
use crate::hosting::{CodeHosting, HostedFunctions};
use crate::start::StartError;
use crate::telemetry::GatewayTelemetry;

/// Settings of the layers of working memory, which come from the built-in tools. `None`: the layer does nothing.
#[derive(Clone, Default)]
pub struct MemoryLayerSettings {
    /// Settings of the large-results layer.
    results: watch::Sender<Option<Arc<LargeSettings>>>,
    /// Settings of the layer that hands out handles.
    handles: watch::Sender<Option<Arc<SessionHandleSettings>>>,
}

/// Settings of layers, which apply until this is dropped or others are set.
pub(crate) struct AppliedLayerSettings {
    layers: MemoryLayerSettings,
    results: Option<Arc<LargeSettings>>,
    handles: Option<Arc<SessionHandleSettings>>,
}

impl MemoryLayerSettings {
    /// Sets the settings of the layers.
    pub(crate) fn apply(
        &self,
        results: Option<LargeSettings>,
        handles: Option<SessionHandleSettings>,
    ) -> AppliedLayerSettings {
        let (results, handles) = (results.map(Arc::new), handles.map(Arc::new));
        self.results.send_replace(results.clone());
        self.handles.send_replace(handles.clone());
        AppliedLayerSettings { layers: self.clone(), results, handles }
    }
}

impl Drop for AppliedLayerSettings {
    fn drop(&mut self) {
        withdraw(&self.layers.results, self.results.as_ref());
        withdraw(&self.layers.handles, self.handles.as_ref());
    }
}

/// Removes these settings, unless others have been set since.
fn withdraw<T>(current: &watch::Sender<Option<Arc<T>>>, applied: Option<&Arc<T>>) {
    let Some(applied) = applied else { return };
    current.send_if_modified(|current| {
        let is_current = current.as_ref().is_some_and(|current| Arc::ptr_eq(current, applied));
        if is_current {
            *current = None;
        }
        is_current
    });
}

/// Creates the gateway without the layers named in `without_layers`.
///
/// # Errors
/// If there is no layer of such a name.
pub(crate) fn create(
    context: &GatewayContext,
    telemetry: &GatewayTelemetry,
    audit: &AuditService,
    hosting: &CodeHosting,
    without_layers: &[String],
) -> Result<(Arc<Gateway>, MemoryLayerSettings), StartError> {
    let limits = &context.process.limits;
    let mut observers = telemetry.observers(context.counters.clone());
    observers.of_calls.extend(audit.observer());
    let size = GateSize { running: limits.concurrent_calls, waiting: limits.queued_calls };
    let settings = MemoryLayerSettings::default();
    let results = LargeResults::new(settings.results.subscribe(), context.fleet.registry.clone());
    let of_memory: [Box<dyn Layer>; 2] = [
        Box::new(results.with_long_work(Some(context.long_work.clone()))),
        Box::new(SessionHandles::new(settings.handles.subscribe())),
    ];
    let of_calls = GatewayLimits { size, max_depth: limits.json_depth };
    let mut layers = Gateway::layers(observers, of_calls, Some(context.long_work.clone()), of_memory);
    for name in without_layers {
        let at = layers.iter().position(|layer| layer.name() == name);
        layers.remove(at.ok_or_else(|| StartError::NoSuchLayer(name.clone()))?);
    }
    let size = GateSize { running: limits.concurrent_calls_per_handler, ..size };
    let functions = Arc::new(HostedFunctions::new(hosting.host.clone(), size));
    let gateway = Gateway::new(context.fleet.registry.clone(), layers).with_functions(functions);
    Ok((Arc::new(gateway), settings))
}
