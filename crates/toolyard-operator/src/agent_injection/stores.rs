//! Watched objects: tools, agents, and the ConfigMaps of earlier injections.

use std::collections::BTreeMap;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::{Stream, StreamExt};
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{ApiResource, DynamicObject};
use kube::core::GroupVersionKind;
use kube::runtime::WatchStreamExt;
use kube::runtime::reflector::store::Writer;
use kube::runtime::reflector::{ObjectRef, Store};
use kube::runtime::watcher::{self, Event};
use kube::{Api, ResourceExt};
use serde_json::Value;
use tokio::sync::watch::Sender;

use super::desired::{InjectedTool, ToolKey, config_map_name};
use super::sidecar::SidecarTool;
use super::tool_reference::{AgentReferences, ToolReference};
use super::workload::WORKSPACE_PATH;
use crate::controller::{
    Context, wait_for_definition, watch, watched_api, watched_dynamic_api, with_labels,
    without_managed_fields,
};
use crate::labels;
use crate::language_tool::{self, LanguageTool, refusal, service_endpoint};

/// Definition of LanguageAgents.
const AGENT_DEFINITION: &str = "languageagents.langop.io";

/// The port of a LanguageTool that names none.
const DEFAULT_PORT: u16 = 8080;

/// Delay between two attempts to find out if agents are defined.
const RETRY_DELAY: Duration = Duration::from_secs(2);

/// Readers of the watched objects.
pub(super) struct InjectionStores {
    tools: Store<DynamicObject>,
    agents: Store<DynamicObject>,
    config_maps: Store<ConfigMap>,
    tool_resource: ApiResource,
    agent_resource: ApiResource,
    service_domain: String,
    image_registries: Vec<String>,
}

/// Writers of the stores, for [`StoreWriters::watch`].
pub(super) struct StoreWriters {
    tools: Writer<DynamicObject>,
    agents: Writer<DynamicObject>,
    config_maps: Writer<ConfigMap>,
    /// Changed with each change of an object.
    revision: Sender<u64>,
}

impl InjectionStores {
    /// Creates empty stores.
    pub(super) fn new(context: &Context) -> (Self, StoreWriters) {
        let (tool_resource, agent_resource) = (resource("LanguageTool"), resource("LanguageAgent"));
        let writers = StoreWriters {
            tools: Writer::new(tool_resource.clone()),
            agents: Writer::new(agent_resource.clone()),
            config_maps: Writer::default(),
            revision: Sender::new(0),
        };
        let stores = Self {
            tools: writers.tools.as_reader(),
            agents: writers.agents.as_reader(),
            config_maps: writers.config_maps.as_reader(),
            tool_resource,
            agent_resource,
            service_domain: context.config.service_domain.clone(),
            image_registries: context.config.image_registries.clone(),
        };
        (stores, writers)
    }

    /// Waits until all stores have been read once: an agent whose tools are not known yet would lose them.
    pub(super) async fn wait_until_ready(&self) {
        let ready = tokio::try_join!(
            self.tools.wait_until_ready(),
            self.agents.wait_until_ready(),
            self.config_maps.wait_until_ready(),
        );
        if ready.is_err() {
            // The writers are gone: the controller is about to end.
            std::future::pending::<()>().await;
        }
    }

    /// Returns the references of the LanguageAgent of a name, and the mount path of its workspace.
    pub(super) fn agent(&self, namespace: &str, name: &str) -> Option<(AgentReferences, String)> {
        let key = ObjectRef::new_with(name, self.agent_resource.clone()).within(namespace);
        let agent = self.agents.get(&key)?;
        let spec = &agent.data["spec"];
        let workspace = spec["workspace"]["mountPath"].as_str().unwrap_or(WORKSPACE_PATH);
        Some((AgentReferences::of_agent(spec), workspace.to_owned()))
    }

    /// Returns the tools of references that exist.
    pub(super) fn tools<'a>(
        &self,
        namespace: &str,
        references: impl Iterator<Item = &'a ToolReference>,
    ) -> BTreeMap<ToolKey, InjectedTool> {
        let key = |reference: &ToolReference| ToolKey {
            namespace: reference.namespace.clone().unwrap_or_else(|| namespace.to_owned()),
            name: reference.name.clone(),
        };
        references.filter_map(|reference| self.tool(key(reference))).collect()
    }

    fn tool(&self, key: ToolKey) -> Option<(ToolKey, InjectedTool)> {
        let reference = ObjectRef::new_with(&key.name, self.tool_resource.clone()).within(&key.namespace);
        let tool = self.tools.get(&reference)?;
        // It ends with its Service.
        let is_deleted = tool.metadata.deletion_timestamp.is_some();
        let injected = InjectedTool {
            refusal: self.refusal(&tool),
            ..injected_tool(&key, &tool.data["spec"], &self.service_domain)
        };
        (!is_deleted).then_some((key, injected))
    }

    /// Returns why no pod may run a tool.
    fn refusal(&self, tool: &DynamicObject) -> Option<String> {
        match tool.clone().try_parse::<LanguageTool>() {
            Ok(tool) => refusal(&tool, &self.image_registries).map(|refusal| refusal.message),
            Err(error) => Some(format!("the specification cannot be read: {error}")),
        }
    }

    /// Returns the ConfigMap of an agent, if this operator wrote it.
    pub(super) fn config_map(&self, namespace: &str, agent: &str) -> Option<Arc<ConfigMap>> {
        self.config_maps.get(&ObjectRef::new(&config_map_name(agent)).within(namespace))
    }
}

/// Reads the `spec` of a LanguageTool. Invalid fields have their defaults here; the tool's own status reports them.
fn injected_tool(key: &ToolKey, spec: &Value, service_domain: &str) -> InjectedTool {
    let port = spec["port"].as_u64().and_then(|port| u16::try_from(port).ok()).unwrap_or(DEFAULT_PORT);
    let sidecar = (spec["deploymentMode"] == "sidecar").then(|| SidecarTool {
        image: spec["image"].as_str().unwrap_or_default().to_owned(),
        port,
        deployment: spec["deployment"].clone(),
    });
    let ToolKey { namespace, name } = key;
    let endpoint = service_endpoint(name, namespace, service_domain, port);
    InjectedTool { endpoint, sidecar, refusal: None }
}

impl StoreWriters {
    /// Returns a stream with an item for all changes of objects since the last one.
    pub(super) fn changes(&self) -> impl Stream<Item = ()> + Send + use<> {
        let receiver = self.revision.subscribe();
        futures_util::stream::unfold(receiver, |mut receiver| async move {
            receiver.changed().await.ok()?;
            Some(((), receiver))
        })
    }

    /// Watches the objects until the future is dropped.
    pub(super) async fn watch(self, context: &Context) {
        let Self { tools, agents, config_maps, revision } = self;
        tokio::join!(
            watch_tools(context, tools, &revision),
            watch_agents(context, agents, &revision),
            watch_config_maps(context, config_maps, &revision),
        );
    }
}

async fn watch_tools(context: &Context, writer: Writer<DynamicObject>, revision: &Sender<u64>) {
    wait_for_definition(context, language_tool::DEFINITION).await;
    let api = watched_dynamic_api(context, &resource("LanguageTool"));
    let mut events = pin!(watch(api, watcher::Config::default(), without_status).reflect(writer));
    // Changes of the status, which the operator writes itself, are not changes of the tool.
    let mut generations = BTreeMap::new();
    while let Some(event) = events.next().await {
        match event {
            Ok(Event::Apply(tool) | Event::InitApply(tool)) => {
                let state =
                    (tool.uid(), tool.metadata.generation, tool.metadata.deletion_timestamp.is_some());
                let key = (tool.namespace(), tool.name_any());
                if generations.insert(key, state.clone()) != Some(state) {
                    bump(revision);
                }
            }
            Ok(Event::Delete(tool)) => {
                generations.remove(&(tool.namespace(), tool.name_any()));
                bump(revision);
            }
            Ok(Event::Init) => generations.clear(),
            Ok(Event::InitDone) => bump(revision),
            Err(error) => tracing::debug!(%error, "LanguageTools cannot be watched"),
        }
    }
}

/// Watches agents while they are defined. Without the definition there are none.
async fn watch_agents(context: &Context, mut writer: Writer<DynamicObject>, revision: &Sender<u64>) {
    let resource = resource("LanguageAgent");
    loop {
        if !is_defined(context, AGENT_DEFINITION).await {
            clear(&mut writer);
            bump(revision);
            wait_for_definition(context, AGENT_DEFINITION).await;
        }
        let api = watched_dynamic_api(context, &resource);
        let mut events = pin!(watch(api, watcher::Config::default(), without_status));
        while let Some(event) = events.next().await {
            match event {
                Ok(event) => {
                    writer.apply_watcher_event(&event);
                    bump(revision);
                }
                Err(error) if is_not_found(&error) => break,
                Err(error) => tracing::debug!(%error, "LanguageAgents cannot be watched"),
            }
        }
    }
}

async fn watch_config_maps(context: &Context, writer: Writer<ConfigMap>, revision: &Sender<u64>) {
    let agents = [(labels::MANAGED_BY, labels::MANAGER), (labels::LANGOP_KIND, labels::LANGUAGE_AGENT)];
    let api = watched_api::<ConfigMap>(context);
    let mut events = pin!(watch(api, with_labels(&agents), without_managed_fields).reflect(writer));
    while let Some(event) = events.next().await {
        match event {
            Ok(_) => bump(revision),
            Err(error) => tracing::debug!(%error, "ConfigMaps of agents cannot be watched"),
        }
    }
}

/// Returns `true` if a definition exists, and repeats the request until the server responds.
async fn is_defined(context: &Context, name: &str) -> bool {
    let definitions = Api::<CustomResourceDefinition>::all(context.client.clone());
    loop {
        match definitions.get_metadata_opt(name).await {
            Ok(definition) => return definition.is_some(),
            Err(error) => tracing::warn!(definition = name, %error, "a definition cannot be read"),
        }
        tokio::time::sleep(RETRY_DELAY).await;
    }
}

/// Empties a store, which is then ready.
fn clear(writer: &mut Writer<DynamicObject>) {
    writer.apply_watcher_event(&Event::Init);
    writer.apply_watcher_event(&Event::InitDone);
}

fn bump(revision: &Sender<u64>) {
    revision.send_modify(|revision| *revision = revision.wrapping_add(1));
}

fn is_not_found(error: &watcher::Error) -> bool {
    match error {
        watcher::Error::InitialListFailed(kube::Error::Api(status))
        | watcher::Error::WatchStartFailed(kube::Error::Api(status))
        | watcher::Error::WatchFailed(kube::Error::Api(status)) => status.code == 404,
        _ => false,
    }
}

fn resource(kind: &str) -> ApiResource {
    ApiResource::from_gvk(&GroupVersionKind::gvk("langop.io", "v1alpha1", kind))
}

/// Removes what an injection does not depend on, which is most of a resource.
fn without_status(object: &mut DynamicObject) {
    object.metadata.managed_fields = None;
    object.metadata.annotations = None;
    if let Some(members) = object.data.as_object_mut() {
        members.remove("status");
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn endpoint_has_the_service_and_the_port_of_a_tool() {
        let key = ToolKey { namespace: "language-operator-myapp".to_owned(), name: "mem0-memory".to_owned() };
        let check = |spec: Value, expected: &str| {
            assert_eq!(injected_tool(&key, &spec, "svc.cluster.local").endpoint, expected, "{spec}");
        };
        check(json!({"image": "a"}), "http://mem0-memory.language-operator-myapp.svc.cluster.local:8080");
        check(
            json!({"image": "a", "port": 9000}),
            "http://mem0-memory.language-operator-myapp.svc.cluster.local:9000",
        );
        check(json!({"port": 70000}), "http://mem0-memory.language-operator-myapp.svc.cluster.local:8080");
    }
}
