//! Reconciliation of one tool.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Service;
use k8s_openapi::api::networking::v1::NetworkPolicy;
use k8s_openapi::jiff::Timestamp;
use kube::api::DynamicObject;
use kube::core::error_boundary::InvalidObject;
use kube::core::{PartialObjectMeta, PartialObjectMetaExt};
use kube::runtime::controller::Action;
use kube::runtime::events::EventType;
use kube::runtime::finalizer::{self, Event, finalizer};
use kube::{Api, Resource, ResourceExt};

use super::desired::{DesiredTool, autoscaler_api, desired};
use super::discovery::discover;
use super::network::names_to_resolve;
use super::refusal::{INVALID_SPEC, refusal};
use super::replicas::hand_over;
use super::resolve::{NameResolver, resolve};
use super::resource::{DeploymentMode, LanguageTool, LanguageToolSpec, LanguageToolStatus, ToolPhase};
use super::status::{DiscoveryState, PolicyState, ReconcileFailure, ToolObservation, status};
use super::workload::AUTOSCALED;
use crate::controller::{
    Context, ControllerError, apply, apply_status, apply_value, delete, delete_value, resource_key, to_value,
};

/// Finalizer of the resource.
pub const FINALIZER: &str = "langop.io/finalizer";

/// Action of events.
const ACTION: &str = "Reconcile";

/// The objects of a tool, as last seen.
#[derive(Debug, Clone, Default)]
pub struct ObservedTool {
    /// Deployment.
    pub deployment: Option<Arc<Deployment>>,
    /// Service.
    pub service: Option<Arc<Service>>,
    /// Network policy.
    pub network_policy: Option<Arc<NetworkPolicy>>,
}

impl ObservedTool {
    /// Returns `true` if there are neither pods nor a policy for them.
    const fn is_open(&self) -> bool {
        self.deployment.is_none() && self.network_policy.is_none()
    }
}

/// Shared state of the reconciliations of tools.
pub struct ToolReconciler {
    context: Arc<Context>,
    resolver: Arc<dyn NameResolver>,
    /// Statuses written last, by UID, with the version of the resource that they replaced: the watch may be late.
    written: Mutex<HashMap<String, (Option<String>, LanguageToolStatus)>>,
}

impl ToolReconciler {
    /// Creates a reconciler.
    #[must_use]
    pub fn new(context: Arc<Context>, resolver: Arc<dyn NameResolver>) -> Self {
        Self { context, resolver, written: Mutex::default() }
    }

    /// Reconciles a tool. The first reconciliation only adds the finalizer.
    ///
    /// # Errors
    /// If the server refuses a request. The reconciliation is repeated later.
    pub async fn reconcile(
        &self,
        tool: Arc<LanguageTool>,
        observed: ObservedTool,
    ) -> Result<Action, ControllerError> {
        let refusal = refusal(&tool, &self.context.config.image_registries);
        self.reconcile_unless(refusal, tool, observed).await
    }

    /// Reports a resource that cannot be read, which another version of the definition admits, and frees a deleted one.
    ///
    /// # Errors
    /// As [`ToolReconciler::reconcile`].
    pub async fn reconcile_invalid(
        &self,
        invalid: &InvalidObject,
        observed: ObservedTool,
    ) -> Result<Action, ControllerError> {
        let message = format!("the specification cannot be read: {}", invalid.error);
        let refusal = ReconcileFailure { reason: INVALID_SPEC, message, is_final: true };
        let tool = LanguageTool {
            metadata: invalid.metadata.clone(),
            spec: LanguageToolSpec::with_image(String::new()),
            status: None,
        };
        self.reconcile_unless(Some(refusal), Arc::new(tool), observed).await
    }

    /// Reconciles a tool, or only reports that it is refused.
    async fn reconcile_unless(
        &self,
        refusal: Option<ReconcileFailure>,
        tool: Arc<LanguageTool>,
        observed: ObservedTool,
    ) -> Result<Action, ControllerError> {
        let namespace = tool.namespace().unwrap_or_default();
        // The specification in a response may be one that cannot be read.
        let api = Api::<PartialObjectMeta<LanguageTool>>::namespaced(self.context.client.clone(), &namespace);
        let metadata = Arc::new(tool.metadata.clone().into_response_partial());
        let result = finalizer(&api, FINALIZER, metadata, |event| async move {
            match event {
                Event::Apply(_) => self.apply(refusal, &tool, &observed).await,
                Event::Cleanup(_) => Ok(self.clean_up(&tool).await),
            }
        });
        let result = result.await.or_else(|error| match error {
            finalizer::Error::ApplyFailed(error) | finalizer::Error::CleanupFailed(error) => Err(error),
            // Another change came first, or the resource is gone: the watch reports it.
            finalizer::Error::AddFinalizer(kube::Error::Api(status))
            | finalizer::Error::RemoveFinalizer(kube::Error::Api(status))
                if matches!(status.code, 404 | 409 | 422) =>
            {
                Ok(Action::requeue(super::CONFLICT_DELAY))
            }
            finalizer::Error::AddFinalizer(error) | finalizer::Error::RemoveFinalizer(error) => {
                Err(error.into())
            }
            error => Err(ControllerError::Object(error.to_string())),
        });
        self.context.metrics.count_reconciliation("LanguageTool", result.is_ok());
        result
    }

    /// The cluster deletes the objects, since the tool owns them.
    async fn clean_up(&self, tool: &LanguageTool) -> Action {
        self.written.lock().unwrap_or_else(PoisonError::into_inner).remove(&uid(tool));
        self.context.retries.forget(&discovery_key(tool));
        self.context.retries.forget(&resource_key(tool));
        let note = "the cluster deletes its Deployment, Service and network policy";
        self.context.publish(&tool.object_ref(&()), EventType::Normal, "Delete", "Deleted", note).await;
        Action::await_change()
    }

    async fn apply(
        &self,
        refusal: Option<ReconcileFailure>,
        tool: &LanguageTool,
        observed: &ObservedTool,
    ) -> Result<Action, ControllerError> {
        let tool = &self.with_written_status(tool);
        let (config, facts) = (&self.context.config, self.context.facts);
        if refusal.is_some() {
            self.write_status(tool, observed, PolicyState::Unknown, DiscoveryState::Unchanged, refusal)
                .await?;
            return Ok(Action::await_change());
        }
        let names = names_to_resolve(tool);
        let has_names = !names.is_empty();
        let (resolved, mut policy) = resolve(&*self.resolver, names, config.resolve_timeout).await;
        if let Some(message) = disabled_policy(tool, config.network_policies) {
            policy = PolicyState::Disabled(message.to_owned());
        }
        let desired = desired(tool, facts, config, &resolved);
        let mut policy_error = self.apply_policy(&desired, observed).await.err();
        if let Some(error) = &policy_error {
            policy = PolicyState::Error(error.message());
        }
        let is_closed = matches!(policy, PolicyState::Error(_) | PolicyState::Timeout(_));
        if let Some(error) = policy_error.take_if(|_| observed.is_open()) {
            let failure =
                ReconcileFailure { reason: "NetworkPolicyError", message: error.message(), is_final: false };
            self.write_status(tool, observed, policy, DiscoveryState::Unchanged, Some(failure)).await?;
            return Err(error);
        }
        if let Err((reason, error)) = self.apply_objects(tool, &desired, observed).await {
            let failure = ReconcileFailure { reason, message: error.message(), is_final: false };
            self.write_status(tool, observed, policy, DiscoveryState::Unchanged, Some(failure)).await?;
            return Err(error);
        }
        let discovery = discover(&self.context, tool, observed.deployment.as_deref()).await?;
        let next = self.next_action(tool, &discovery, has_names, is_closed);
        // The watch reports a new Deployment later, without pods as well.
        let created = desired.deployment.filter(|_| observed.deployment.is_none()).map(Arc::new);
        let observed =
            &ObservedTool { deployment: created.or(observed.deployment.clone()), ..observed.clone() };
        self.write_status(tool, observed, policy, discovery, None).await?;
        self.context.retries.forget(&resource_key(tool));
        policy_error.map_or(Ok(next), Err)
    }

    /// Returns when the tool is reconciled again without a change: after a failed discovery, or if names may have other
    /// addresses.
    fn next_action(
        &self,
        tool: &LanguageTool,
        discovery: &DiscoveryState,
        has_names: bool,
        is_closed: bool,
    ) -> Action {
        let poll = self.context.config.poll_interval;
        match discovery {
            DiscoveryState::Failed(_) => {
                Action::requeue(self.context.retries.after_failure(&discovery_key(tool)))
            }
            DiscoveryState::NoAgentPod => Action::requeue(poll),
            DiscoveryState::Unchanged | DiscoveryState::Found { .. } => {
                self.context.retries.forget(&discovery_key(tool));
                match (has_names, is_closed) {
                    (true, true) => Action::requeue(poll),
                    (true, false) => Action::requeue(poll * super::RESOLVE_INTERVALS),
                    (false, _) => Action::requeue(super::RESYNC),
                }
            }
        }
    }

    /// Applies the network policy: before the pods, which are not created without it.
    async fn apply_policy(
        &self,
        desired: &DesiredTool,
        observed: &ObservedTool,
    ) -> Result<(), ControllerError> {
        let current = observed.network_policy.as_deref();
        match (&desired.network_policy, current) {
            (Some(policy), current) => apply(&self.context, policy, current).await.map(drop),
            (None, Some(current)) => delete(&self.context, current).await,
            (None, None) => Ok(()),
        }
    }

    async fn apply_objects(
        &self,
        tool: &LanguageTool,
        desired: &DesiredTool,
        observed: &ObservedTool,
    ) -> Result<(), (&'static str, ControllerError)> {
        let context = &self.context;
        let service = match (&desired.service, observed.service.as_deref()) {
            (Some(service), current) => apply(context, service, current).await.map(drop),
            (None, Some(current)) => delete(context, current).await,
            (None, None) => Ok(()),
        };
        service.map_err(|error| ("ServiceError", error))?;
        // Before the Deployment, whose annotation says that there is one.
        if desired.autoscaler.is_none() {
            self.delete_autoscaler(tool, observed).await.map_err(|error| ("DeploymentError", error))?;
        }
        let deployment = match (&desired.deployment, observed.deployment.as_deref()) {
            (Some(deployment), current) => self.apply_deployment(deployment, current).await,
            (None, Some(current)) => delete(context, current).await,
            (None, None) => Ok(()),
        };
        deployment.map_err(|error| ("DeploymentError", error))?;
        if let Some((autoscaler, api)) = desired.autoscaler.clone().zip(autoscaler_api(context.facts)) {
            let applied = apply_value(context, &api, autoscaler, None).await;
            applied.map_err(|error| ("DeploymentError", error))?;
        }
        Ok(())
    }

    async fn apply_deployment(
        &self,
        desired: &Deployment,
        observed: Option<&Deployment>,
    ) -> Result<(), ControllerError> {
        if let Some(observed) = observed {
            hand_over(&self.context, desired, observed).await?;
        }
        apply(&self.context, desired, observed).await.map(drop)
    }

    /// Deletes the autoscaler of a Deployment that had one.
    async fn delete_autoscaler(
        &self,
        tool: &LanguageTool,
        observed: &ObservedTool,
    ) -> Result<(), ControllerError> {
        let deployment = observed.deployment.as_deref();
        if deployment.is_none_or(|deployment| !deployment.annotations().contains_key(AUTOSCALED)) {
            return Ok(());
        }
        let Some(resource) = autoscaler_api(self.context.facts) else { return Ok(()) };
        let namespace = tool.namespace().unwrap_or_default();
        let api = Api::<DynamicObject>::namespaced_with(self.context.client.clone(), &namespace, &resource);
        let found = api.get_opt(&tool.name_any()).await?;
        let is_own = |found: &DynamicObject| {
            found.owner_references().iter().any(|owner| Some(&owner.uid) == tool.metadata.uid.as_ref())
        };
        let Some(found) = found.filter(is_own) else { return Ok(()) };
        delete_value(&self.context, &resource, &to_value(&found)?).await
    }

    /// Writes the status if it differs, and publishes what has changed.
    async fn write_status(
        &self,
        tool: &LanguageTool,
        observed: &ObservedTool,
        policy: PolicyState,
        discovery: DiscoveryState,
        failure: Option<ReconcileFailure>,
    ) -> Result<(), ControllerError> {
        let observation = ToolObservation {
            deployment: observed.deployment.as_deref(),
            policy,
            discovery,
            failure,
            now: Timestamp::now(),
        };
        let status = status(tool, &observation, &self.context.config);
        if tool.status.as_ref() == Some(&status) {
            return Ok(());
        }
        apply_status(&self.context, tool, &status).await?;
        let record = (tool.metadata.resource_version.clone(), status.clone());
        self.written.lock().unwrap_or_else(PoisonError::into_inner).insert(uid(tool), record);
        self.publish_changes(tool, &status).await;
        Ok(())
    }

    /// Returns the tool with the status that was written last, if the watch has not reported it yet.
    fn with_written_status(&self, tool: &LanguageTool) -> LanguageTool {
        let mut tool = tool.clone();
        let written = self.written.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((version, status)) = written.get(&uid(&tool))
            && *version == tool.metadata.resource_version
        {
            tool.status = Some(status.clone());
        }
        tool
    }

    async fn publish_changes(&self, tool: &LanguageTool, status: &LanguageToolStatus) {
        let before = tool.status.clone().unwrap_or_default();
        let object = tool.object_ref(&());
        let message = |kind: &str| {
            let condition = status.conditions.iter().find(|condition| condition.type_ == kind);
            condition.map(|condition| (condition.reason.clone(), condition.message.clone()))
        };
        if before.phase != status.phase
            && let Some((phase, (_, note))) = status.phase.zip(message("Ready"))
        {
            let is_bad = matches!(phase, ToolPhase::Failed | ToolPhase::Degraded);
            let kind = if is_bad { EventType::Warning } else { EventType::Normal };
            self.context.publish(&object, kind, ACTION, &format!("{phase:?}"), &note).await;
        }
        for (condition, bad) in [
            ("SchemasDiscovered", &["SchemaDiscoveryFailed"][..]),
            ("NetworkPolicyReady", &["Timeout", "Error"]),
        ] {
            let old = before.conditions.iter().find(|old| old.type_ == condition);
            let Some((reason, note)) = message(condition) else { continue };
            let is_new = old.is_none_or(|old| old.reason != reason);
            let is_bad = bad.contains(&reason.as_str());
            if is_new && (is_bad || reason == "SchemasDiscovered") {
                let kind = if is_bad { EventType::Warning } else { EventType::Normal };
                self.context.publish(&object, kind, ACTION, &reason, &note).await;
            }
        }
    }
}

fn uid(tool: &LanguageTool) -> String {
    tool.metadata.uid.clone().unwrap_or_default()
}

fn discovery_key(tool: &LanguageTool) -> String {
    format!("discovery/{}", resource_key(tool))
}

const fn disabled_policy(tool: &LanguageTool, is_enabled: bool) -> Option<&'static str> {
    match (tool.spec.deployment_mode, is_enabled) {
        (DeploymentMode::Sidecar, _) => Some("a sidecar has the network of its agent"),
        (DeploymentMode::Service, false) => Some("the operator applies no network policies"),
        (DeploymentMode::Service, true) => None,
    }
}
