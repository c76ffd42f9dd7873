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
//! files, and `edit_check` compares a manifest with its predecessor.

mod builder;
mod cursor;
mod edit_check;
mod editor;
mod expand;
mod field_type;
mod fields;
mod fingerprint;
mod formats;
mod full_build;
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
    editor::{AddHandlerError, ManifestEditor},
    fingerprint::ManifestFingerprint,
    formats::{EndpointUrl, FormatError, HandlerName, ListenAddress, UrlTemplate},
    handler::{
        ArgumentOverride, AuthScheme, CredentialSource, DefinitionPin, HandlerConfig, HttpRetry,
        OutboundSettings, PrefixMode, ProbeSettings, ProxyChoice, RequestAuth, RetryPolicy, SecretString,
        ServiceProbeSettings, ToolDefinition, ToolModification, ToolOverride, kinds::*,
    },
    import::{
        ClientFile, ClientServer, ClientServers, ExtractedSecret, ImportNote, ImportedManifest,
        SecretPlacement, import, import_servers,
    },
    limits::{ProcessLimits, ProcessTimeouts},
    listener::{GrpcService, ListenerTls},
    manifest::{Manifest, load, load_and_import, load_with, parse, parse_with},
    problem::{FieldPath, ManifestProblem, ManifestProblems, SourceLocation, SourcePosition},
    process::{
        AllowedServers, ArgumentRecording, AuditTrail, BuiltinSettings, ClusterSettings, EmbeddingSettings,
        FunctionHosting, IsolationPolicy, LlmSettings, ManagementSettings, MemorySettings, PodSettings,
        ProcessSettings, ProgramEnvironment, QuerySettings, ReadSettings, ResultSettings, SandboxPolicy,
        ScriptRunner, ScriptSettings, SearchSettings, ServiceRanker, SharedMemory, SkillSettings,
        StoreSettings, ToolDisclosure, UidSettings, VariableGrant,
    },
    registry::ToolGuide,
    report::EnvironmentLookup,
    source::{ManifestSource, files},
    telemetry::{LogFormat, LogSettings, OtlpProtocol, OtlpSettings, TelemetrySettings},
};
