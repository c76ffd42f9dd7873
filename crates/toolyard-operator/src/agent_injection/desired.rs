//! Desired injection into a workload: a pure function of the agent, the tools and the cluster.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::problem::InjectionProblem;
use super::sidecar::{MAX_NAME, SidecarTool};
use super::tool_reference::{AgentReferences, ToolReference};
use super::workload::{AgentContainer, AgentPod, WorkloadKind};
use crate::labels;
use crate::text::short_digest;

/// The folder of the configuration in containers.
pub const CONFIG_FOLDER: &str = "/etc/agent";

/// The file in [`CONFIG_FOLDER`], and the key in the ConfigMap.
pub const CONFIG_FILE: &str = "config.yaml";

/// The variable with the endpoints of all tools.
pub const SERVERS_VARIABLE: &str = "MCP_SERVERS";

/// The volume with the configuration.
pub const CONFIG_VOLUME: &str = "langop-agent-config";

/// Annotation of pods with the hash of the configuration: a change of it rolls the workload out.
pub const HASH_ANNOTATION: &str = "langop.io/tools-hash";

/// Name and namespace of a LanguageTool.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ToolKey {
    /// The namespace.
    pub namespace: String,
    /// The name.
    pub name: String,
}

/// A LanguageTool, as agents see it.
#[derive(Debug, Clone, PartialEq)]
pub struct InjectedTool {
    /// URL of a tool with a Service. A sidecar has its own in each pod.
    pub endpoint: String,
    /// The container, for a tool of the mode `sidecar`.
    pub sidecar: Option<SidecarTool>,
    /// The reason why no pod may run the tool.
    pub refusal: Option<String>,
}

/// A workload that is an agent.
#[derive(Debug, Clone, PartialEq)]
pub struct InjectedAgent {
    /// Kind of the workload.
    pub kind: WorkloadKind,
    /// Its name, and that of the agent.
    pub name: String,
    /// Its namespace.
    pub namespace: String,
    /// Its unique identifier.
    pub uid: String,
    /// The tools that it refers to.
    pub references: AgentReferences,
    /// The workload's own part of the pod template.
    pub pod: AgentPod,
}

/// Abilities of the cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct InjectionFacts {
    /// `true` if init containers can have a restart policy: from Kubernetes 1.29.
    pub has_native_sidecars: bool,
    /// `true` if the name of the ConfigMap belongs to another object.
    pub is_config_map_taken: bool,
}

/// The objects to apply, by server-side apply. Applying them removes what an earlier injection had in addition.
#[derive(Debug, Clone, PartialEq)]
pub struct DesiredInjection {
    /// The ConfigMap; `None` if there is to be none.
    pub config_map: Option<Value>,
    /// The fields of the workload. Without references there are none.
    pub workload: Value,
    /// References that are not injected, or not everywhere.
    pub problems: Vec<InjectionProblem>,
}

impl DesiredInjection {
    /// Returns `true` if nothing is to be injected.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.config_map.is_none()
    }
}

/// Returns the name of the ConfigMap of an agent.
#[must_use]
pub fn config_map_name(agent: &str) -> String {
    format!("{agent}-agent")
}

/// Returns what is to be injected.
#[must_use]
pub fn injection(
    agent: &InjectedAgent,
    tools: &BTreeMap<ToolKey, InjectedTool>,
    facts: InjectionFacts,
) -> DesiredInjection {
    let mut problems = agent.references.problems.clone();
    let mut workload = json!({
        "apiVersion": "apps/v1",
        "kind": agent.kind.name(),
        "metadata": {"name": agent.name, "namespace": agent.namespace},
    });
    if agent.references.enabled().next().is_none() {
        return DesiredInjection { config_map: None, workload, problems };
    }
    let resolved = resolve(agent, tools, &mut problems);
    let config = config_yaml(&resolved);
    let template = TemplateFields { agent, facts, resolved: &resolved, hash: hash(&config, &resolved) };
    workload["spec"] = json!({"template": template.fields(&mut problems)});
    let config_map = config_map(agent, &config);
    problems.sort();
    problems.dedup();
    DesiredInjection { config_map: (!facts.is_config_map_taken).then_some(config_map), workload, problems }
}

/// A tool with its endpoint in the pods of the agent.
struct ResolvedTool<'a> {
    name: &'a str,
    endpoint: String,
    sidecar: Option<&'a SidecarTool>,
}

/// Finds the tools of enabled references, in order. A tool that is named twice counts once.
fn resolve<'a>(
    agent: &'a InjectedAgent,
    tools: &'a BTreeMap<ToolKey, InjectedTool>,
    problems: &mut Vec<InjectionProblem>,
) -> Vec<ResolvedTool<'a>> {
    let mut resolved: Vec<(ToolKey, ResolvedTool<'a>)> = Vec::new();
    for reference in agent.references.enabled() {
        let namespace = reference.namespace.as_ref().unwrap_or(&agent.namespace);
        let key = ToolKey { namespace: namespace.clone(), name: reference.name.clone() };
        if let Some((other, _)) = resolved.iter().find(|(other, _)| other.name == key.name) {
            if *other != key {
                problems.push(InjectionProblem::SameName(key.name));
            }
            continue;
        }
        let Some(tool) = tools.get(&key) else {
            problems.push(InjectionProblem::MissingTool { name: key.name, namespace: key.namespace });
            continue;
        };
        match resolved_tool(agent, reference, tool, &resolved) {
            Ok(tool) => resolved.push((key, tool)),
            Err(problem) => problems.push(problem),
        }
    }
    resolved.into_iter().map(|(_, tool)| tool).collect()
}

fn resolved_tool<'a>(
    agent: &InjectedAgent,
    reference: &'a ToolReference,
    tool: &'a InjectedTool,
    earlier: &[(ToolKey, ResolvedTool<'a>)],
) -> Result<ResolvedTool<'a>, InjectionProblem> {
    let name = reference.name.as_str();
    let Some(sidecar) = &tool.sidecar else {
        return Ok(ResolvedTool { name, endpoint: tool.endpoint.clone(), sidecar: None });
    };
    if reference.namespace.as_ref().is_some_and(|namespace| *namespace != agent.namespace) {
        return Err(InjectionProblem::ForeignSidecar(name.to_owned()));
    }
    if let Some(reason) = &tool.refusal {
        return Err(InjectionProblem::RefusedTool { name: name.to_owned(), reason: reason.clone() });
    }
    if name.len() > MAX_NAME {
        return Err(InjectionProblem::LongName(name.to_owned()));
    }
    let container = SidecarTool::container_name(name);
    if agent.pod.containers.iter().any(|other| other.name == container) {
        return Err(InjectionProblem::ContainerTaken(container));
    }
    let port = sidecar.port;
    if let Some(container) = listener_of_port(agent, earlier, port) {
        return Err(InjectionProblem::PortTaken { tool: name.to_owned(), port, container });
    }
    let others = earlier.iter().filter_map(|(_, other)| other.sidecar);
    let taken: Vec<_> = others.flat_map(SidecarTool::volume_names).collect();
    let is_taken =
        |volume: &&str| taken.contains(volume) || agent.pod.volumes.iter().any(|own| own == volume);
    if let Some(volume) = sidecar.volume_names().find(is_taken) {
        let volume = volume.to_owned();
        return Err(InjectionProblem::VolumeTaken { tool: name.to_owned(), volume });
    }
    Ok(ResolvedTool { name, endpoint: format!("http://localhost:{port}"), sidecar: Some(sidecar) })
}

/// Returns the container that listens on a port of the pod.
fn listener_of_port(
    agent: &InjectedAgent,
    earlier: &[(ToolKey, ResolvedTool<'_>)],
    port: u16,
) -> Option<String> {
    let own = agent.pod.containers.iter().find(|container| container.ports.contains(&port));
    let sidecar =
        || earlier.iter().find(|(_, tool)| tool.sidecar.is_some_and(|sidecar| sidecar.port == port));
    let sidecar = || sidecar().map(|(_, tool)| SidecarTool::container_name(tool.name));
    own.map(|container| container.name.clone()).or_else(sidecar)
}

/// The injected fields of a pod template.
struct TemplateFields<'a> {
    agent: &'a InjectedAgent,
    facts: InjectionFacts,
    resolved: &'a [ResolvedTool<'a>],
    hash: String,
}

impl TemplateFields<'_> {
    fn fields(&self, problems: &mut Vec<InjectionProblem>) -> Value {
        let mut lists: BTreeMap<&str, Vec<Value>> = BTreeMap::new();
        for container in &self.agent.pod.containers {
            if self.mounts_config() && container.mounts_config {
                problems.push(InjectionProblem::MountTaken(container.name.clone()));
            }
            if let Some(fields) = self.container(container) {
                let list = if container.is_init { "initContainers" } else { "containers" };
                lists.entry(list).or_default().push(fields);
            }
        }
        if self.mounts_config() {
            let source = json!({"name": config_map_name(&self.agent.name)});
            lists.entry("volumes").or_default().push(json!({"name": CONFIG_VOLUME, "configMap": source}));
        } else {
            problems.push(InjectionProblem::ConfigMapTaken(config_map_name(&self.agent.name)));
        }
        let is_native = self.facts.has_native_sidecars;
        for (name, sidecar) in self.resolved.iter().filter_map(|tool| Some((tool.name, tool.sidecar?))) {
            let list = if is_native { "initContainers" } else { "containers" };
            let workspace = self.agent.pod.workspace.as_ref();
            lists.entry(list).or_default().push(sidecar.container(name, workspace, is_native));
            lists.entry("volumes").or_default().extend(sidecar.volumes().iter().cloned());
        }
        lists.retain(|_, items| !items.is_empty());
        let metadata =
            json!({"annotations": {HASH_ANNOTATION: self.hash}, "labels": {labels::USES_TOOLS: "true"}});
        json!({"metadata": metadata, "spec": lists})
    }

    fn mounts_config(&self) -> bool {
        !self.facts.is_config_map_taken
    }

    /// Returns the fields of a container of the workload's own; `None` if there are none.
    fn container(&self, container: &AgentContainer) -> Option<Value> {
        let mut fields = Map::from_iter([("name".to_owned(), container.name.clone().into())]);
        if !container.sets_servers && !self.resolved.is_empty() {
            let endpoints: Vec<_> = self.resolved.iter().map(|tool| tool.endpoint.as_str()).collect();
            let variable = json!({"name": SERVERS_VARIABLE, "value": endpoints.join(",")});
            fields.insert("env".to_owned(), json!([variable]));
        }
        if container.keeps_variable {
            fields.insert("env".to_owned(), json!([{"name": SERVERS_VARIABLE}]));
        }
        if container.keeps_mount {
            fields.insert("volumeMounts".to_owned(), json!([{"mountPath": CONFIG_FOLDER}]));
        }
        if self.mounts_config() && !container.mounts_config {
            let mount = json!({"name": CONFIG_VOLUME, "mountPath": CONFIG_FOLDER, "readOnly": true});
            fields.insert("volumeMounts".to_owned(), json!([mount]));
        }
        (fields.len() > 1).then_some(Value::Object(fields))
    }
}

fn config_map(agent: &InjectedAgent, config: &str) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": config_map_name(&agent.name),
            "namespace": agent.namespace,
            "labels": {
                labels::MANAGED_BY: labels::MANAGER,
                labels::LANGOP_KIND: labels::LANGUAGE_AGENT,
                labels::NAME: agent.name,
            },
            "ownerReferences": [{
                "apiVersion": "apps/v1", "kind": agent.kind.name(), "name": agent.name, "uid": agent.uid,
                "controller": true,
            }],
        },
        "data": {CONFIG_FILE: config},
    })
}

/// Returns the text of [`CONFIG_FILE`]: `tools` by name, in the order of the references.
fn config_yaml(tools: &[ResolvedTool<'_>]) -> String {
    if tools.is_empty() {
        return "tools: {}\n".to_owned();
    }
    let tool = |tool: &ResolvedTool<'_>| {
        let (name, endpoint) = (yaml_key(tool.name), &tool.endpoint);
        format!("  {name}:\n    endpoint: {endpoint}\n    protocol: mcp\n")
    };
    let tools: String = tools.iter().map(tool).collect();
    format!("tools:\n{tools}")
}

/// Quotes the name of a tool that YAML would read as a number, a truth value or null.
fn yaml_key(name: &str) -> String {
    const WORDS: [&str; 8] = ["n", "no", "null", "off", "on", "true", "y", "yes"];
    let is_plain = name.starts_with(|first: char| first.is_ascii_lowercase());
    if is_plain && !WORDS.contains(&name) && name != "false" {
        name.to_owned()
    } else {
        format!("\"{name}\"")
    }
}

/// Returns the digest of the configuration and of the endpoints.
fn hash(config: &str, tools: &[ResolvedTool<'_>]) -> String {
    let endpoints: String = tools.iter().map(|tool| format!("{}\n", tool.endpoint)).collect();
    short_digest(&format!("{config}{endpoints}"))
}

#[cfg(test)]
mod tests;
