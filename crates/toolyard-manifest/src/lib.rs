//! The documents that configure Toolyard.
//!
//! [`load`] reads `ToolRegistry` documents, which declare handlers, and the one `Toolyard` document, which configures
//! the process. A manifest is valid as a whole or not at all: each problem has a file, a position, the expected value
//! and often a suggestion, and one run reports all problems.
//!
//! This crate connects to nothing and starts nothing: a [`HandlerConfig`] is a description.
//!
//! The modules, in the order in which a text passes through them: `source` finds files, `builder` parses them into
//! trees (`tree`, `scalar`), `cursor` and `fields` read the trees, `formats` the strings in them and `value` arbitrary
//! JSON. `registry`, `handler`, `process` and `listener` read the documents, and `report` collects problems. `section`
//! declares the sections of the process document, with `field_type` and `object_schema`; `schema` has the schemas.
//! `import` converts the configuration files of MCP clients, `yaml` writes documents, `editor` adds handlers to existing
//! files, `document` has documents for display, and `edit_check` compares a manifest with its predecessor.

mod builder;
mod cursor;
mod digest;
mod document;
mod edit_check;
mod editor;
mod expand;
mod field_type;
mod fields;
mod fingerprint;
mod formats;
mod handler;
mod import;
mod limits;
mod listener;
mod manifest;
mod metadata;
mod object_schema;
mod problem;
mod process;
mod registry;
mod report;
mod scalar;
pub mod schema;
mod section;
mod source;
mod suggest;
mod telemetry;
#[cfg(test)]
mod tests;
mod tree;
mod value;
mod yaml;

pub use self::{
    digest::digest,
    document::{ManifestDifference, ManifestDocument},
    editor::{AddHandlerError, ManifestEditor},
    fingerprint::ManifestFingerprint,
    formats::{BrokerKind, BrokerUrl, EndpointUrl, FormatError, HandlerName, ListenAddress, UrlTemplate},
    handler::{
        ArgumentOverride, AuthScheme, CredentialSource, DefinitionPin, HandlerConfig, HttpRetry,
        OutboundSettings, PrefixMode, ProbeSettings, ProxyChoice, RequestAuth, RetryPolicy, SecretString,
        ServiceProbeSettings, ToolDefinition, ToolModification, ToolOverride, kinds::*,
    },
    import::{
        ClientFile, ClientServer, ClientServers, ExtractedSecret, ImportNote, ImportedManifest,
        SecretPlacement, import, import_servers, import_text,
    },
    limits::{ProcessLimits, ProcessTimeouts},
    listener::{ConsoleService, GrpcService, ListenerTls},
    manifest::{
        Manifest, load, load_and_import, load_with, parse, parse_copy, parse_elsewhere, parse_servers,
        parse_with,
    },
    problem::{FieldPath, ManifestProblem, ManifestProblems, SourceLocation, SourcePosition},
    process::{
        A2aSettings, A2aSkill, Acknowledgement, AgentCardSource, AgentSettings, AllowedServers,
        ArgumentRecording, AuditTrail, BuiltinSettings, BusBridgeSettings, BusScriptSettings, BusSettings,
        BusWorkerSettings, CardKeys, ChromiumSettings, ClusterSettings, CodeSettings, EmbeddingSettings,
        FunctionHosting, IsolationPolicy, LlmSettings, ManagementSettings, MemorySettings, MissedRuns,
        OpenRouterSettings, PageRendering, PodSettings, ProcessSettings, ProgramEnvironment, PushSettings,
        QuerySettings, ReadSettings, ResultSettings, SandboxPolicy, ScheduleAction, ScheduleSettings,
        ScheduleWebhook, ScheduledCall, ScheduledMessage, ScriptRunner, ScriptSettings, SearchService,
        SearchSettings, SecretVariable, ServiceRanker, SharedMemory, SkillSettings, StoreSettings,
        StoredResultSettings, SubagentLimits, ToolDisclosure, UidSettings, VariableGrant, WebSettings,
        WispSettings,
    },
    registry::ToolGuide,
    report::EnvironmentLookup,
    source::{ManifestSource, files, refuse_named_pipe},
    telemetry::{LogFormat, LogSettings, OtlpProtocol, OtlpSettings, TelemetrySettings},
    yaml::to_yaml,
};
