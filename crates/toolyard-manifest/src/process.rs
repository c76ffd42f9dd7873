//! The process itself, and the reader of `Toolyard` documents.

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
    cursor::Cursor,
    fields::Fields,
    forms::{self, Listen},
    limits::{Limits, Timeouts, limits, timeouts},
    listener::{self, ListenerTls},
    metadata::metadata,
    telemetry::{Logs, Telemetry, logs, telemetry},
};

pub use self::audit::{AuditTrail, KeptArguments};
pub use self::builtins::{
    AllowedServers, Builtins, Disclosure, ManagementSettings, MemorySettings, PodSettings, QuerySettings,
    ResultSettings, ScriptRunner, Scripts, SearchSettings, SkillSettings,
};
pub use self::cluster::Cluster;
pub use self::functions::FunctionHosting;
pub use self::llm::Llm;
pub use self::sandbox::{Isolation, SandboxPolicy};
pub use self::store::StorePlace;

/// How the gateway runs: `spec` of the `Toolyard` document, or the defaults where there is none.
#[derive(Clone, Debug, PartialEq)]
pub struct Process {
    /// `listen`: the places to serve on, at least one. 127.0.0.1:8080: nobody else's machine reaches it unless
    /// somebody wants that.
    pub listen: Vec<Listen>,
    /// `tls`: how connections on TCP are encrypted. None: they are not.
    pub tls: Option<ListenerTls>,
    /// `proxyProtocol.from`: the networks of those who say by the PROXY protocol whom they speak for. Empty: nobody is
    /// believed that.
    pub proxy_protocol: Vec<IpNet>,
    /// `allowUnauthenticated`: whether callers need no key. False: it has to be somebody's decision.
    pub allow_unauthenticated: bool,
    /// `allowedHosts`: what a request may name as its host, beside the address that is listened on.
    pub allowed_hosts: Vec<String>,
    /// `allowedOrigins`: which web pages may send requests.
    pub allowed_origins: Vec<String>,
    /// `secretsDir`: the folder with the secrets that handlers name, as a cluster mounts them: the key `token`
    /// of the secret `api` is the file `api/token`. None: handlers cannot name any.
    pub secrets_dir: Option<PathBuf>,
    /// `store`: where is kept what outlives the process. None: in the usual file of this user.
    pub store: Option<StorePlace>,
    /// `cluster`: the gateways that this is one of. None: it is the only one.
    pub cluster: Option<Cluster>,
    /// `audit`: who called what.
    pub audit: AuditTrail,
    /// `sandbox`: where functions and scripts run.
    pub sandbox: SandboxPolicy,
    /// `functions`: how hosted functions run.
    pub functions: FunctionHosting,
    /// `builtins`: the tools of the gateway itself. None: there are none.
    pub builtins: Option<Builtins>,
    /// `llm`: a language model that the gateway itself may ask. None: it asks none.
    pub llm: Option<Llm>,
    /// `limits`.
    pub limits: Limits,
    /// `timeouts`.
    pub timeouts: Timeouts,
    /// `telemetry`.
    pub telemetry: Telemetry,
    /// `logs`.
    pub logs: Logs,
}

impl Default for Process {
    fn default() -> Self {
        Self {
            listen: vec![Listen::Tcp(SocketAddr::from((Ipv4Addr::LOCALHOST, 8080)))],
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
            limits: Limits::default(),
            timeouts: Timeouts::default(),
            telemetry: Telemetry::default(),
            logs: Logs::default(),
        }
    }
}

/// The process of a document, whose `apiVersion` and `kind` have been taken.
pub(crate) fn process(mut fields: Fields<'_>) -> Process {
    fields.optional("metadata", metadata);
    let process = fields.with_default("spec", spec, Process::default());
    fields.finish();
    process
}

fn spec(cursor: Cursor<'_>) -> Option<Process> {
    let mut fields = cursor.fields()?;
    let default = Process::default();
    let process = Process {
        listen: fields.with_default("listen", listener::listen, default.listen),
        tls: fields.optional("tls", listener::tls),
        proxy_protocol: fields.with_default(
            "proxyProtocol",
            listener::proxy_protocol,
            default.proxy_protocol,
        ),
        allow_unauthenticated: fields.with_default(
            "allowUnauthenticated",
            Cursor::flag,
            default.allow_unauthenticated,
        ),
        allowed_hosts: fields.with_default("allowedHosts", hosts, default.allowed_hosts),
        allowed_origins: fields.with_default("allowedOrigins", origins, default.allowed_origins),
        secrets_dir: fields.optional("secretsDir", |cursor| cursor.parse(forms::folder)),
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

fn hosts(cursor: Cursor<'_>) -> Option<Vec<String>> {
    cursor.list(|item| item.parse(forms::host))
}

fn origins(cursor: Cursor<'_>) -> Option<Vec<String>> {
    cursor.list(|item| item.parse(forms::origin))
}
