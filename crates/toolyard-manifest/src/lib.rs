//! The documents that configure Toolyard.
//!
//! [`load`] reads `ToolRegistry` documents, which declare handlers, and the one `Toolyard` document, which
//! configures the process. A manifest is valid as a whole or not at all: a mistake is reported with its file,
//! its position, what was expected and often what was meant, and all mistakes are reported at once.
//!
//! This crate does not connect to anything and starts nothing: a [`Handler`] is a description.
//!
//! The modules, in the order in which a text goes through them: `source` finds it, `builder` makes trees of
//! it (`tree`, `scalar`), `cursor` and `fields` read the trees, `forms` the strings in them and `value` any JSON,
//! `registry`, `process` and `listener` say what belongs where, and `report` collects what is wrong. `import` makes documents
//! of other software's files, `yaml` writes them, and `draft`
//! adds to what people wrote.

mod builder;
mod cursor;
mod draft;
mod expand;
mod fields;
mod forms;
mod handler;
mod import;
mod limits;
mod listener;
mod manifest;
mod metadata;
mod problem;
mod process;
mod registry;
mod report;
mod scalar;
pub mod schema;
mod source;
mod stamp;
mod suggest;
mod telemetry;
#[cfg(test)]
mod tests;
mod tree;
mod value;
mod yaml;

pub use self::{
    draft::{Draft, NotAdded},
    forms::{Endpoint, HandlerName, Invalid, Listen, UrlTemplate},
    handler::{
        Args, Argument, Auth, AuthScheme, Change, CortexOneHandler, Credential, Env, FunctionHandler,
        FunctionSource, GrpcHandler, GrpcRetry, Handler, HandlerKind, HttpHandler, HttpRetry, Lane, Mapping,
        McpHandler, McpHttp, McpHttpStyle, McpTransport, OAuthClient, OpenApiHandler, OpenApiSpec,
        OperationFilter, Override, Prefix, Probe, RetryPolicy, SchemeCredential, Secret, StaticBody, Tls,
        ToolDefinition, ToolFilter, Url,
    },
    import::{Import, Note, import},
    limits::{Limits, Timeouts},
    listener::ListenerTls,
    manifest::{Manifest, load, load_and_import, load_with, parse, parse_with},
    problem::{FieldPath, Place, Position, Problem, Problems},
    process::{
        AllowedServers, AuditTrail, Builtins, Cluster, Disclosure, FunctionHosting, Isolation, KeptArguments,
        Llm, ManagementSettings, MemorySettings, PodSettings, Process, QuerySettings, ResultSettings,
        SandboxPolicy, ScriptRunner, Scripts, SearchSettings, SkillSettings, StorePlace,
    },
    registry::Guide,
    report::Environment,
    source::{Source, files},
    stamp::Stamp,
    telemetry::{LogFormat, Logs, Otlp, OtlpProtocol, Telemetry},
};
