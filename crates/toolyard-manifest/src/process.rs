//! The `Toolyard` document, which configures the process.
//!
//! Every section is declared by `section!`. Crates above this one use the structs as their settings, so that a setting
//! and its default stand in one place.

mod a2a;
mod audit;
mod builtins;
mod bus;
mod cluster;
mod functions;
mod llm;
mod programs;
mod sandbox;
mod store;

use std::{
    net::{Ipv4Addr, SocketAddr},
    path::PathBuf,
};

use ipnet::IpNet;
use serde_json::{Value, json};

use crate::{
    field_type::{CustomField, FieldType, FlagField, ListField, TextField},
    fields::ObjectFields,
    formats::{self, ListenAddress},
    limits::{ProcessLimits, ProcessTimeouts},
    listener::{self, ConsoleService, GrpcService, ListenerTls},
    metadata::metadata,
    object_schema::SchemaDefinitions,
    section::{nested, section},
    telemetry::{LogSettings, TelemetrySettings},
};

pub use self::a2a::{A2aSettings, A2aSkill, PushSettings};
pub use self::audit::{ArgumentRecording, AuditTrail};
pub(crate) use self::builtins::web_settings;
pub use self::builtins::{
    AgentCardSource, AgentSettings, AllowedServers, BuiltinSettings, CardKeys, ChromiumSettings,
    CodeSettings, EmbeddingSettings, ManagementSettings, MemorySettings, MissedRuns, OpenRouterSettings,
    PageRendering, PodSettings, QuerySettings, ReadSettings, ResultSettings, ScheduleAction,
    ScheduleSettings, ScheduleWebhook, ScheduledCall, ScheduledMessage, ScriptRunner, ScriptSettings,
    SearchService, SearchSettings, SecretVariable, ServiceRanker, SharedMemory, SkillSettings,
    SubagentLimits, ToolDisclosure, WebSettings, WispSettings,
};
pub use self::bus::{
    Acknowledgement, BusBridgeSettings, BusScriptSettings, BusSettings, BusWorkerSettings,
    StoredResultSettings,
};
pub use self::cluster::ClusterSettings;
pub use self::functions::{FunctionHosting, VariableGrant};
pub use self::llm::LlmSettings;
pub use self::programs::ProgramEnvironment;
pub use self::sandbox::{IsolationPolicy, SandboxPolicy, UidSettings};
pub use self::store::StoreSettings;

section! {
    /// Settings of the gateway process: `spec` of the `Toolyard` document, or the defaults without one.
    #[derive(Clone, Debug, PartialEq)]
    pub struct ProcessSettings: Default = "spec" {
        /// Address to listen on: an IP address and a port, or `unix:` and the path of a socket; or a list of these.
        /// `--listen` on the command line takes precedence.
        ///
        /// Other machines cannot reach the default.
        pub listen: Vec<ListenAddress> = "listen", listener::LISTEN,
            described vec![ListenAddress::Tcp(SocketAddr::from((Ipv4Addr::LOCALHOST, 8080)))];
        /// The tools as a gRPC service. Default: none.
        pub grpc: GrpcService = "grpc", nested::<GrpcService>(), described GrpcService::default();
        /// The console, a web page for people. Default: served at `/` of every address of `listen`.
        pub console: ConsoleService = "console", nested::<ConsoleService>(), described ConsoleService::default();
        /// Encryption of TCP connections. Default: plain text. Renewed files are reloaded.
        pub tls: Option<ListenerTls> = "tls", nested::<ListenerTls>(), optional;
        /// Load balancers that send the client address with the PROXY protocol (version 1 or 2). `X-Forwarded-For` is
        /// never trusted.
        pub proxy_protocol: Vec<IpNet> = "proxyProtocol", listener::PROXY_PROTOCOL, described Vec::new();
        /// Serve requests without a key, even on addresses that other machines can reach.
        ///
        /// Open access is a decision.
        pub allow_unauthenticated: bool = "allowUnauthenticated", FlagField, default false;
        /// Let requests without a key administer the gateway: keys, hosted functions, the audit trail. Without it they
        /// have the tools, the status and the metrics.
        pub unauthenticated_admin: bool = "unauthenticatedAdmin", FlagField, default true;
        /// Accepted values of the `Host` header, in addition to the listening address.
        pub allowed_hosts: Vec<String> = "allowedHosts",
            ListField(TextField::new(formats::host).pattern(r"^[A-Za-z0-9._:\[\]-]+$")),
            default Vec::new();
        /// Origins of web pages that may send requests.
        pub allowed_origins: Vec<String> = "allowedOrigins",
            ListField(
                TextField::new(formats::origin).pattern(r"^[A-Za-z][A-Za-z0-9+.-]*://[A-Za-z0-9._:\[\]-]+$")
            ),
            default Vec::new();
        /// Folder with the secrets of `secretRef`, as a cluster mounts them: the key `token` of the secret `api` is the
        /// file `api/token`.
        ///
        /// Without it, handlers cannot use `secretRef`.
        pub secrets_dir: Option<PathBuf> = "secretsDir", TextField::new(formats::folder), optional;
        /// Location of persistent data. Default: `toolyard.db` in `$TOOLYARD_STATE_DIR` or `$STATE_DIRECTORY`; else a
        /// file for this manifest in `$XDG_STATE_HOME/toolyard/stores` or `~/.local/state/toolyard/stores`.
        pub store: Option<StoreSettings> = "store",
            CustomField { read: store::store, schema: store::schema },
            optional;
        /// Group of gateways behind a load balancer that sends each request to any of them. All have the same manifest.
        /// Default: a single gateway.
        pub cluster: Option<ClusterSettings> = "cluster", nested::<ClusterSettings>(), optional;
        /// Message broker that carries calls to other machines. Default: none.
        pub bus: BusSettings = "bus", nested::<BusSettings>(), described BusSettings::default();
        /// The gateway as an agent for others, by the A2A protocol. Default: it is none.
        pub a2a: Option<A2aSettings> = "a2a", nested::<A2aSettings>(), optional;
        /// Audit trail of calls.
        pub audit: AuditTrail = "audit", nested::<AuditTrail>(), described AuditTrail::default();
        /// Sandbox of functions and scripts, which are untrusted programs.
        pub sandbox: SandboxPolicy = "sandbox", nested::<SandboxPolicy>(), described SandboxPolicy::default();
        /// Environment of the programs of stdio servers.
        pub programs: ProgramEnvironment = "programs", nested::<ProgramEnvironment>(),
            described ProgramEnvironment::default();
        /// Hosting of functions.
        pub functions: FunctionHosting = "functions", nested::<FunctionHosting>(),
            described FunctionHosting::default();
        /// Built-in tools of the gateway. If the section is present, even empty, all groups are enabled except
        /// `openRouter`, `web`, `schedules`, `agents`, `subagents`, `wisps` and `code`, and those that are switched off; without it
        /// there are no built-in tools.
        pub builtins: Option<BuiltinSettings> = "builtins",
            CustomField {
                read: builtins::builtins,
                schema: |definitions| nested::<BuiltinSettings>().schema(definitions),
            },
            optional;
        /// Language model for the gateway's own use: it writes summaries of servers. Default: none.
        pub llm: Option<LlmSettings> = "llm", nested::<LlmSettings>(), optional;
        /// Upper limits, so that no client and no handler can exhaust the gateway.
        pub limits: ProcessLimits = "limits", nested::<ProcessLimits>(), described ProcessLimits::default();
        /// Time limits.
        pub timeouts: ProcessTimeouts = "timeouts", nested::<ProcessTimeouts>(),
            described ProcessTimeouts::default();
        /// Metrics and traces. Absent settings come from the standard environment variables of OpenTelemetry
        /// (`OTEL_…`).
        pub telemetry: TelemetrySettings = "telemetry", nested::<TelemetrySettings>(),
            described TelemetrySettings::default();
        /// Log on standard error.
        pub logs: LogSettings = "logs", nested::<LogSettings>(), described LogSettings::default();
    }
}

impl ProcessSettings {
    /// All addresses to listen on, of every protocol.
    pub fn addresses(&self) -> impl Iterator<Item = &ListenAddress> {
        self.listen.iter().chain(&self.console.listen).chain(&self.grpc.listen)
    }
}

/// Reads a document whose `apiVersion` and `kind` have been read.
pub(crate) fn process(mut fields: ObjectFields<'_>) -> ProcessSettings {
    fields.optional("metadata", metadata);
    let process = fields.with_default("spec", |spec| nested().read(spec), ProcessSettings::default());
    fields.finish();
    process
}

/// Returns the JSON Schema of a document.
pub(crate) fn schema() -> Value {
    let mut definitions = SchemaDefinitions::default();
    let one_of = |word: &str, reference: Value| json!([{"enum": [word]}, reference]);
    let reference = definitions.expandable();
    let metadata = crate::metadata::schema(&mut definitions);
    let spec = nested::<ProcessSettings>().schema(&mut definitions);
    let description = "Configures the gateway process: listening addresses, limits and time-outs. At most one document of \
        this kind is permitted.";
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Toolyard",
        "description": description,
        "type": "object",
        "required": ["apiVersion", "kind"],
        "additionalProperties": false,
        "properties": {
            "apiVersion": {"description": "Version of the contract.", "anyOf": one_of("toolyard.dev/v1alpha1", reference.clone())},
            "kind": {"description": "Kind of the document.", "anyOf": one_of("Toolyard", reference)},
            "metadata": {"$ref": metadata["$ref"], "description": "Identity of the document."},
            "spec": {"$ref": spec["$ref"], "description": "Settings of the process; all have defaults."},
        },
        "$defs": definitions.into_schema(),
    })
}
