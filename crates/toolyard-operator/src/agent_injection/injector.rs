//! Reconciliation of one workload.

use std::collections::{BTreeMap, HashMap};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, Mutex, PoisonError};

use kube::api::{ApiResource, DynamicObject, Patch, PatchParams};
use kube::core::PartialObjectMeta;
use kube::runtime::controller::Action;
use kube::runtime::events::EventType;
use kube::{Api, Resource, ResourceExt};
use serde_json::Value;

use super::desired::{DesiredInjection, InjectedAgent, InjectedTool, InjectionFacts, ToolKey, injection};
use super::owned_fields::{OwnedFields, is_applied};
use super::problem::InjectionProblem;
use super::stores::InjectionStores;
use super::tool_reference::{AgentReferences, TOOLS_ANNOTATION};
use super::workload::{AgentPod, WORKSPACE_PATH, WorkloadKind};
use crate::controller::{Applied, Context, ControllerError, apply_value, delete, to_value};
use crate::labels;
use crate::text::short_digest;

/// Suffix of the field manager of injections. The operator is the manager of whole workloads, which an injection must
/// not be: it would remove their fields.
const MANAGER_SUFFIX: &str = "-injection";

/// State of the controller.
pub(super) struct AgentInjector {
    pub(super) context: Arc<Context>,
    stores: InjectionStores,
    /// The last reconciliations, by kind, namespace and name.
    done: Mutex<HashMap<String, ReconciledState>>,
}

/// The inputs of a successful reconciliation, as a hash, and the problems that it published.
#[derive(Clone, Default)]
struct ReconciledState {
    inputs: u64,
    problems: Vec<InjectionProblem>,
}

/// Number of states that are kept for workloads that may be gone.
const MAX_STATES: usize = 10_000;

/// Returns the field manager of injections.
pub(super) fn manager(context: &Context) -> String {
    format!("{}{MANAGER_SUFFIX}", context.config.manager)
}

/// The references of a workload, and where their sidecars find the workspace.
struct WorkloadAgent {
    references: AgentReferences,
    workspace_path: String,
    tools: BTreeMap<ToolKey, InjectedTool>,
}

impl AgentInjector {
    pub(super) fn new(context: Arc<Context>, stores: InjectionStores) -> Self {
        Self { context, stores, done: Mutex::default() }
    }

    /// Reconciles a workload, of which only the metadata is watched.
    ///
    /// # Errors
    /// If the server fails or refuses a request.
    pub(super) async fn reconcile<K>(
        &self,
        kind: WorkloadKind,
        meta: &PartialObjectMeta<K>,
    ) -> Result<Action, ControllerError>
    where
        K: Resource<DynamicType = ()>,
    {
        let metadata = &meta.metadata;
        let is_own = metadata
            .labels
            .iter()
            .flatten()
            .any(|label| *label.1 == labels::MANAGER && *label.0 == labels::MANAGED_BY);
        let (Some(namespace), false) = (metadata.namespace.as_deref(), is_own) else {
            return Ok(Action::await_change());
        };
        let name = metadata.name.as_deref().unwrap_or_default();
        let key = workload_key(kind, namespace, name);
        let agent = self.agent(meta, namespace, name);
        let is_managed = is_managed(meta, &manager(&self.context));
        if metadata.deletion_timestamp.is_some() || (agent.is_none() && !is_managed) {
            self.forget(&key);
            return Ok(Action::await_change());
        }
        let inputs = self.inputs(meta, agent.as_ref(), namespace, name);
        let last = self.last(&key);
        if last.inputs == inputs {
            return Ok(Action::await_change());
        }
        let agent = agent.unwrap_or_else(WorkloadAgent::without_tools);
        let Some(mut problems) = self.inject(kind, namespace, name, agent).await? else {
            return Ok(Action::await_change());
        };
        if self.context.restored.is_contended(&restored_key(&key)) {
            problems.push(InjectionProblem::Undone);
        }
        self.publish(meta, problems.iter().filter(|problem| !last.problems.contains(problem))).await;
        self.context.metrics.count_reconciliation(kind.name(), true);
        self.context.retries.forget(&key);
        self.remember(key, ReconciledState { inputs, problems });
        Ok(Action::await_change())
    }

    /// Returns the agent of a workload: the annotation, and the LanguageAgent of its name.
    fn agent<K>(&self, meta: &PartialObjectMeta<K>, namespace: &str, name: &str) -> Option<WorkloadAgent> {
        let annotation = meta.metadata.annotations.as_ref().and_then(|all| all.get(TOOLS_ANNOTATION));
        let annotated = annotation.map(|text| AgentReferences::of_annotation(text));
        let resource = self.stores.agent(namespace, name);
        if annotated.is_none() && resource.is_none() {
            return None;
        }
        let (references, workspace_path) =
            resource.unwrap_or_else(|| (AgentReferences::default(), WORKSPACE_PATH.to_owned()));
        let references = references.and(annotated.unwrap_or_default());
        let tools = self.stores.tools(namespace, references.enabled());
        Some(WorkloadAgent { references, workspace_path, tools })
    }

    /// Returns a hash of all that a reconciliation depends on. Equal inputs have equal results, which need no request.
    fn inputs<K>(
        &self,
        meta: &PartialObjectMeta<K>,
        agent: Option<&WorkloadAgent>,
        namespace: &str,
        name: &str,
    ) -> u64 {
        let mut hasher = DefaultHasher::new();
        meta.metadata.uid.hash(&mut hasher);
        meta.metadata.generation.hash(&mut hasher);
        let config_map = self.stores.config_map(namespace, name);
        config_map.and_then(|config_map| config_map.metadata.resource_version.clone()).hash(&mut hasher);
        if let Some(agent) = agent {
            // The texts of these types have all their fields.
            format!("{:?} {} {:?}", agent.references, agent.workspace_path, agent.tools).hash(&mut hasher);
        }
        hasher.finish()
    }

    /// Applies the injection. Returns its problems; `None` if the workload is gone.
    ///
    /// # Errors
    /// [`ControllerError::Contended`] if another manager undoes it; nothing is sent then.
    async fn inject(
        &self,
        kind: WorkloadKind,
        namespace: &str,
        name: &str,
        agent: WorkloadAgent,
    ) -> Result<Option<Vec<InjectionProblem>>, ControllerError> {
        let api = self.workloads(kind, namespace);
        let Some(observed) = api.get_opt(name).await? else { return Ok(None) };
        let uid = observed.uid().unwrap_or_default();
        let observed = to_value(&observed)?;
        let owned = OwnedFields::of(&observed, &manager(&self.context));
        let WorkloadAgent { references, workspace_path, tools } = agent;
        let agent = InjectedAgent {
            kind,
            name: name.to_owned(),
            namespace: namespace.to_owned(),
            uid,
            references,
            pod: AgentPod::observed(&observed, &owned, &workspace_path),
        };
        let desired = self.with_config_map(&agent, &tools).await?;
        self.apply(&api, &agent, &desired, &observed).await?;
        if desired.is_empty()
            && let Some(config_map) = self.stores.config_map(namespace, name)
        {
            delete(&self.context, config_map.as_ref()).await?;
        }
        Ok(Some(desired.problems))
    }

    /// Applies the ConfigMap, before pods need it. One of the same name that belongs to something else stays as it is.
    async fn with_config_map(
        &self,
        agent: &InjectedAgent,
        tools: &BTreeMap<ToolKey, InjectedTool>,
    ) -> Result<DesiredInjection, ControllerError> {
        let has_native_sidecars = self.context.facts.has_native_sidecars();
        let facts = InjectionFacts { has_native_sidecars, is_config_map_taken: false };
        let desired = injection(agent, tools, facts);
        let Some(config_map) = &desired.config_map else { return Ok(desired) };
        let resource = ApiResource::erase::<k8s_openapi::api::core::v1::ConfigMap>(&());
        let observed = self.stores.config_map(&agent.namespace, &agent.name);
        let observed = observed.map(|observed| to_value(observed.as_ref())).transpose()?;
        match apply_value(&self.context, &resource, config_map.clone(), observed).await {
            Ok(_) => Ok(desired),
            Err(ControllerError::Foreign { .. }) => {
                let facts = InjectionFacts { is_config_map_taken: true, ..facts };
                Ok(injection(agent, tools, facts))
            }
            Err(error) => Err(error),
        }
    }

    async fn apply(
        &self,
        api: &Api<DynamicObject>,
        agent: &InjectedAgent,
        desired: &DesiredInjection,
        observed: &Value,
    ) -> Result<Applied, ControllerError> {
        let manager = manager(&self.context);
        if is_applied(&desired.workload, observed, &manager) {
            return Ok(Applied::Unchanged);
        }
        let key = restored_key(&workload_key(agent.kind, &agent.namespace, &agent.name));
        let digest = short_digest(&desired.workload.to_string());
        let delay = self.context.restored.delay(&key, &digest);
        if !delay.is_zero() {
            let (kind, name) = (agent.kind.name().to_owned(), agent.name.clone());
            return Err(ControllerError::Contended { kind, name, delay });
        }
        let mut patch = desired.workload.clone();
        // A workload of the same name that was created meanwhile is another one.
        patch["metadata"]["uid"] = agent.uid.as_str().into();
        api.patch(&agent.name, &PatchParams::apply(&manager).force(), &Patch::Apply(&patch)).await?;
        self.context.restored.written(&key, &digest);
        self.context.metrics.count_write(agent.kind.name(), "apply");
        tracing::info!(
            kind = agent.kind.name(),
            namespace = agent.namespace,
            name = agent.name,
            "injected tools"
        );
        Ok(Applied::Changed)
    }

    async fn publish<K>(&self, meta: &PartialObjectMeta<K>, problems: impl Iterator<Item = &InjectionProblem>)
    where
        K: Resource<DynamicType = ()>,
    {
        let reference = meta.object_ref(&());
        for problem in problems {
            let reason = match problem {
                InjectionProblem::Undone => "InjectionUndone",
                _ => "ToolNotInjected",
            };
            let note = problem.to_string();
            self.context.publish(&reference, EventType::Warning, "InjectTools", reason, &note).await;
        }
    }

    fn workloads(&self, kind: WorkloadKind, namespace: &str) -> Api<DynamicObject> {
        Api::namespaced_with(self.context.client.clone(), namespace, &kind.resource())
    }

    fn last(&self, key: &str) -> ReconciledState {
        self.done.lock().unwrap_or_else(PoisonError::into_inner).get(key).cloned().unwrap_or_default()
    }

    fn remember(&self, key: String, state: ReconciledState) {
        let mut done = self.done.lock().unwrap_or_else(PoisonError::into_inner);
        if done.len() >= MAX_STATES {
            // Those that are not gone are compared with the cluster once more.
            done.clear();
        }
        done.insert(key, state);
    }

    fn forget(&self, key: &str) {
        self.done.lock().unwrap_or_else(PoisonError::into_inner).remove(key);
    }
}

impl WorkloadAgent {
    /// The agent of a workload that is none any more: what was injected is removed.
    fn without_tools() -> Self {
        Self {
            references: AgentReferences::default(),
            workspace_path: WORKSPACE_PATH.to_owned(),
            tools: BTreeMap::new(),
        }
    }
}

fn is_managed<K>(meta: &PartialObjectMeta<K>, manager: &str) -> bool {
    let mut entries = meta.metadata.managed_fields.iter().flatten();
    entries.any(|entry| entry.manager.as_deref() == Some(manager))
}

fn workload_key(kind: WorkloadKind, namespace: &str, name: &str) -> String {
    format!("{}/{namespace}/{name}", kind.name())
}

/// Returns the key of a workload's injection in [`RestoredObjects`](crate::controller::RestoredObjects).
fn restored_key(workload: &str) -> String {
    format!("injection/{workload}")
}
