//! The reader of `Toolyard` documents, which configure the process.

mod audit;
mod builtins;
mod cluster;
mod functions;
mod llm;
mod sandbox;
mod store;

use std::{
    net::{Ipv4Addr, SocketAddr},
    path::PathBuf,
};

use ipnet::IpNet;

use crate::{
    cursor::ValueCursor,
    fields::ObjectFields,
    formats::{self, ListenAddress},
    limits::{ProcessLimits, ProcessTimeouts, limits, timeouts},
    listener::{self, ListenerTls},
    metadata::metadata,
    telemetry::{LogSettings, TelemetrySettings, logs, telemetry},
};

pub use self::audit::{ArgumentRecording, AuditTrail};
pub use self::builtins::{
    AllowedServers, BuiltinSettings, ManagementSettings, MemorySettings, PodSettings, QuerySettings,
    ResultSettings, ScriptRunner, ScriptSettings, SearchSettings, SkillSettings, ToolDisclosure,
};
pub use self::cluster::ClusterSettings;
pub use self::functions::{FunctionHosting, VariableGrant};
pub use self::llm::LlmSettings;
pub use self::sandbox::{IsolationPolicy, SandboxPolicy, UidSettings};
pub use self::store::StoreSettings;

/// Settings of the gateway process: `spec` of the `Toolyard` document, or the defaults without one.
#[derive(Clone, Debug, PartialEq)]
pub struct ProcessSettings {
    /// `listen`: the addresses to listen on, at least one. Default: 127.0.0.1:8080, which other machines cannot reach.
    pub listen: Vec<ListenAddress>,
    /// `tls`: encryption of TCP connections. `None`: plain text.
    pub tls: Option<ListenerTls>,
    /// `proxyProtocol.from`: networks of load balancers that send the client address with the PROXY protocol. Empty:
    /// the protocol is disabled.
    pub proxy_protocol: Vec<IpNet>,
    /// `allowUnauthenticated`: serve requests without a key. Default: false, so that open access is a decision.
    pub allow_unauthenticated: bool,
    /// `allowedHosts`: accepted values of the `Host` header, in addition to the listening address.
    pub allowed_hosts: Vec<String>,
    /// `allowedOrigins`: origins of web pages that may send requests.
    pub allowed_origins: Vec<String>,
    /// `secretsDir`: the folder with the secrets of `secretRef`, as a cluster mounts them: the key `token` of the
    /// secret `api` is the file `api/token`. `None`: handlers cannot use `secretRef`.
    pub secrets_dir: Option<PathBuf>,
    /// `store`: the location of persistent data. `None`: the default file of this user.
    pub store: Option<StoreSettings>,
    /// `cluster`: the group of gateways that this one belongs to. `None`: it is the only one.
    pub cluster: Option<ClusterSettings>,
    /// `audit`: the audit trail of calls.
    pub audit: AuditTrail,
    /// `sandbox`: the sandbox of functions and scripts.
    pub sandbox: SandboxPolicy,
    /// `functions`: the hosting of functions.
    pub functions: FunctionHosting,
    /// `builtins`: the built-in tools. `None`: there are none.
    pub builtins: Option<BuiltinSettings>,
    /// `llm`: a language model for the gateway's own use. `None`: it uses none.
    pub llm: Option<LlmSettings>,
    /// `limits`: upper limits of resources.
    pub limits: ProcessLimits,
    /// `timeouts`: time limits.
    pub timeouts: ProcessTimeouts,
    /// `telemetry`: metrics and traces.
    pub telemetry: TelemetrySettings,
    /// `logs`: the log of the process.
    pub logs: LogSettings,
}

impl Default for ProcessSettings {
    fn default() -> Self {
        Self {
            listen: vec![ListenAddress::Tcp(SocketAddr::from((Ipv4Addr::LOCALHOST, 8080)))],
            tls: None,
            proxy_protocol: Vec::new(),
            allow_unauthenticated: false,
            allowed_hosts: Vec::new(),
            allowed_origins: Vec::new(),
            secrets_dir: None,
            store: None,
            cluster: None,
            audit: AuditTrail::default(),
            sandbox: SandboxPolicy::default(),
            functions: FunctionHosting::default(),
            builtins: None,
            llm: None,
            limits: ProcessLimits::default(),
            timeouts: ProcessTimeouts::default(),
            telemetry: TelemetrySettings::default(),
            logs: LogSettings::default(),
        }
    }
}

/// Reads a document whose `apiVersion` and `kind` have been read.
pub(crate) fn process(mut fields: ObjectFields<'_>) -> ProcessSettings {
    fields.optional("metadata", metadata);
    let process = fields.with_default("spec", spec, ProcessSettings::default());
    fields.finish();
    process
}

fn spec(cursor: ValueCursor<'_>) -> Option<ProcessSettings> {
    let mut fields = cursor.fields()?;
    let default = ProcessSettings::default();
    let process = ProcessSettings {
        listen: fields.with_default("listen", listener::listen, default.listen),
        tls: fields.optional("tls", listener::tls),
        proxy_protocol: fields.with_default(
            "proxyProtocol",
            listener::proxy_protocol,
            default.proxy_protocol,
        ),
        allow_unauthenticated: fields.with_default(
            "allowUnauthenticated",
            ValueCursor::flag,
            default.allow_unauthenticated,
        ),
        allowed_hosts: fields.with_default("allowedHosts", hosts, default.allowed_hosts),
        allowed_origins: fields.with_default("allowedOrigins", origins, default.allowed_origins),
        secrets_dir: fields.optional("secretsDir", |cursor| cursor.parse(formats::folder)),
        store: fields.optional("store", store::store),
        cluster: fields.optional("cluster", cluster::cluster),
        audit: fields.with_default("audit", audit::audit, default.audit),
        sandbox: fields.with_default("sandbox", sandbox::sandbox, default.sandbox),
        functions: fields.with_default("functions", functions::functions, default.functions),
        builtins: fields.optional("builtins", builtins::builtins),
        llm: fields.optional("llm", llm::llm),
        limits: fields.with_default("limits", limits, default.limits),
        timeouts: fields.with_default("timeouts", timeouts, default.timeouts),
        telemetry: fields.with_default("telemetry", telemetry, default.telemetry),
        logs: fields.with_default("logs", logs, default.logs),
    };
    fields.finish();
    Some(process)
}

fn hosts(cursor: ValueCursor<'_>) -> Option<Vec<String>> {
    cursor.list(|item| item.parse(formats::host))
}

fn origins(cursor: ValueCursor<'_>) -> Option<Vec<String>> {
    cursor.list(|item| item.parse(formats::origin))
}
