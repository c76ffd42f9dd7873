//! Problems of an injection, for events.

use std::fmt;

use super::tool_reference::MAX_REFERENCES;

/// A reference that is not injected, or not everywhere.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum InjectionProblem {
    /// An entry is not a name.
    InvalidName(String),
    /// The agent has more references than are read.
    TooManyReferences,
    /// The tool does not exist.
    MissingTool {
        /// Its name.
        name: String,
        /// Its namespace.
        namespace: String,
    },
    /// No pod may run the sidecar.
    RefusedTool {
        /// The tool.
        name: String,
        /// The message of its status.
        reason: String,
    },
    /// A tool of this name was referred to before, in another namespace.
    SameName(String),
    /// A sidecar of another namespace.
    ForeignSidecar(String),
    /// The name of the sidecar's container would be too long.
    LongName(String),
    /// The workload has a container of the sidecar's name.
    ContainerTaken(String),
    /// Another container of the pod listens on the sidecar's port.
    PortTaken {
        /// The tool.
        tool: String,
        /// Its port.
        port: u16,
        /// The other container.
        container: String,
    },
    /// The pod has a volume of a name that the sidecar brings, too.
    VolumeTaken {
        /// The tool.
        tool: String,
        /// The volume.
        volume: String,
    },
    /// A container mounts something else at the folder of the configuration.
    MountTaken(String),
    /// The ConfigMap belongs to another workload.
    ConfigMapTaken(String),
    /// Another field manager removes what is injected as often as it is injected.
    Undone,
}

impl fmt::Display for InjectionProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::InvalidName(entry) => {
                write!(f, "`{entry}` is not the name of a LanguageTool: expected NAME or NAMESPACE/NAME")
            }
            Self::TooManyReferences => write!(f, "only the first {MAX_REFERENCES} tools are injected"),
            Self::MissingTool { name, namespace } => {
                write!(
                    f,
                    "LanguageTool `{name}` does not exist in namespace `{namespace}`: create it, or remove the reference"
                )
            }
            Self::RefusedTool { name, reason } => write!(f, "sidecar tool `{name}` is refused: {reason}"),
            Self::SameName(name) => write!(
                f,
                "tool `{name}` is named twice, in two namespaces: tools of an agent need names of their own"
            ),
            Self::ForeignSidecar(name) => write!(
                f,
                "sidecar tool `{name}` is in another namespace: create it in the namespace of the agent"
            ),
            Self::LongName(name) => write!(
                f,
                "sidecar tool `{name}` has a name of more than {} characters: rename it",
                super::sidecar::MAX_NAME
            ),
            Self::ContainerTaken(container) => write!(
                f,
                "the pod already has a container `{container}`: rename it, or remove the reference to the tool"
            ),
            Self::PortTaken { tool, port, container } => write!(
                f,
                "sidecar tool `{tool}` listens on port {port}, as container `{container}` does: change `spec.port` of the tool"
            ),
            Self::VolumeTaken { tool, volume } => write!(
                f,
                "sidecar tool `{tool}` brings a volume `{volume}`, which the pod already has: rename it"
            ),
            Self::MountTaken(container) => write!(
                f,
                "container `{container}` mounts a volume of its own at {}: the tools are only in MCP_SERVERS",
                super::desired::CONFIG_FOLDER
            ),
            Self::ConfigMapTaken(name) => write!(
                f,
                "ConfigMap `{name}` belongs to another object: rename the workload or remove that ConfigMap"
            ),
            Self::Undone => f.write_str(
                "another field manager undoes the injection, which is repeated after growing delays: find it by `kubectl get --show-managed-fields -o yaml`, and let it leave the injected fields alone",
            ),
        }
    }
}
