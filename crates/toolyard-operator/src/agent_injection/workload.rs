//! The observed workload of an agent: the parts of a Deployment or a StatefulSet that decide about an injection.

use k8s_openapi::api::apps::v1::{Deployment, StatefulSet};
use kube::api::ApiResource;
use serde_json::Value;

use super::desired::{CONFIG_FOLDER, CONFIG_VOLUME, SERVERS_VARIABLE};
use super::owned_fields::OwnedFields;

/// Mount path of a workspace, unless the agent names another one.
pub const WORKSPACE_PATH: &str = "/workspace";

/// Name of a volume that is a workspace.
const WORKSPACE_VOLUME: &str = "workspace";

/// The kind of a workload.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum WorkloadKind {
    /// `apps/v1` Deployment.
    Deployment,
    /// `apps/v1` StatefulSet.
    StatefulSet,
}

impl WorkloadKind {
    /// The name of the kind.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Deployment => "Deployment",
            Self::StatefulSet => "StatefulSet",
        }
    }

    /// The resource in the API of the cluster.
    #[must_use]
    pub fn resource(self) -> ApiResource {
        match self {
            Self::Deployment => ApiResource::erase::<Deployment>(&()),
            Self::StatefulSet => ApiResource::erase::<StatefulSet>(&()),
        }
    }
}

/// A container of the workload's own.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AgentContainer {
    /// Its name.
    pub name: String,
    /// `true` for an init container.
    pub is_init: bool,
    /// `true` if the workload sets `MCP_SERVERS` itself.
    pub sets_servers: bool,
    /// `true` if it changed the injected value: the item of the list is still that of the injection, which keeps it.
    pub keeps_variable: bool,
    /// `true` if the workload mounts a volume of its own at the folder of the configuration.
    pub mounts_config: bool,
    /// `true` if it changed the injected mount.
    pub keeps_mount: bool,
    /// The declared ports.
    pub ports: Vec<u16>,
}

/// The volume that an agent shares with its sidecars.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkspaceMount {
    /// The volume.
    pub volume: String,
    /// The path in the agent, and in the sidecars.
    pub path: String,
    /// The part of the volume.
    pub sub_path: Option<String>,
}

/// The own parts of a workload, without those that were injected.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AgentPod {
    /// All containers, in order: init containers first.
    pub containers: Vec<AgentContainer>,
    /// Names of the volumes.
    pub volumes: Vec<String>,
    /// The workspace, if there is one.
    pub workspace: Option<WorkspaceMount>,
}

impl AgentPod {
    /// Reads the template of a workload. `owned` are the fields that this operator applied; `workspace_path` is the
    /// mount path of the workspace.
    #[must_use]
    pub fn observed(workload: &Value, owned: &OwnedFields, workspace_path: &str) -> Self {
        let spec = &workload["spec"]["template"]["spec"];
        let init = entries(spec, "initContainers").map(|container| (container, true));
        let all = init.chain(entries(spec, "containers").map(|container| (container, false)));
        let own = all.filter(|(container, is_init)| !is_injected(container, *is_init, owned));
        let own: Vec<_> = own.collect();
        let volumes = entries(spec, "volumes").filter_map(|volume| text(volume, "name"));
        let is_own = |name: &&str| !owned.contains(&volume_path(name));
        Self {
            workspace: own.iter().find_map(|(container, _)| workspace(container, workspace_path)),
            containers: own.iter().map(|(container, is_init)| observed(container, *is_init, owned)).collect(),
            volumes: volumes.filter(is_own).map(str::to_owned).collect(),
        }
    }
}

fn observed(container: &Value, is_init: bool, owned: &OwnedFields) -> AgentContainer {
    let name = text(container, "name").unwrap_or_default().to_owned();
    let base = container_path(&name, is_init);
    let variable = format!("{base}/env[{SERVERS_VARIABLE}]");
    let mount = format!("{base}/volumeMounts[{CONFIG_FOLDER}]");
    let sets_servers = entries(container, "env")
        .any(|variable| text(variable, "name") == Some(SERVERS_VARIABLE))
        && !owned.contains(&format!("{variable}/value"));
    let mounts_config = entries(container, "volumeMounts").any(|mount| {
        text(mount, "mountPath") == Some(CONFIG_FOLDER) && text(mount, "name") != Some(CONFIG_VOLUME)
    });
    let port = |port: &Value| u16::try_from(port["containerPort"].as_u64()?).ok();
    let ports = entries(container, "ports").filter_map(port).collect();
    AgentContainer {
        name,
        is_init,
        sets_servers,
        keeps_variable: sets_servers && owned.contains(&format!("{variable}/name")),
        mounts_config,
        keeps_mount: mounts_config && owned.contains(&format!("{mount}/mountPath")),
        ports,
    }
}

/// Returns `true` for a container that was injected as a whole: only then its image was applied.
fn is_injected(container: &Value, is_init: bool, owned: &OwnedFields) -> bool {
    let name = text(container, "name").unwrap_or_default();
    owned.contains(&format!("{}/image", container_path(name, is_init)))
}

fn workspace(container: &Value, path: &str) -> Option<WorkspaceMount> {
    let is_workspace = |mount: &&Value| {
        text(mount, "name") == Some(WORKSPACE_VOLUME) || text(mount, "mountPath") == Some(path)
    };
    let mount = entries(container, "volumeMounts").find(is_workspace)?;
    Some(WorkspaceMount {
        volume: text(mount, "name")?.to_owned(),
        path: text(mount, "mountPath")?.to_owned(),
        sub_path: text(mount, "subPath").map(str::to_owned),
    })
}

fn container_path(name: &str, is_init: bool) -> String {
    let list = if is_init { "initContainers" } else { "containers" };
    format!("spec/template/spec/{list}[{name}]")
}

fn volume_path(name: &str) -> String {
    format!("spec/template/spec/volumes[{name}]/name")
}

fn entries<'a>(value: &'a Value, field: &str) -> impl Iterator<Item = &'a Value> {
    value[field].as_array().into_iter().flatten()
}

fn text<'a>(value: &'a Value, field: &str) -> Option<&'a str> {
    value[field].as_str()
}
