//! A handler of the type `function`: a function that this gateway hosts.

use std::path::PathBuf;

use super::{HandlerScope, HandlerSettings, ReadHandler};
use crate::{
    cursor::ValueCursor,
    fields::ObjectFields,
    formats,
    handler::{RetryPolicy, ToolDefinition, retry, secrets::SecretCollector, tool},
};

/// A function that this gateway hosts.
#[derive(Clone, Debug, PartialEq)]
pub struct FunctionHandler {
    /// `functionConfig`: the source of its code.
    pub source: FunctionSource,
    /// `tool`: the one tool that it implements. `None`: it is an MCP server, which lists its tools itself.
    pub tool: Option<ToolDefinition>,
    /// `retryPolicy` or `retries`: the policy for calls that did not reach it or broke off.
    pub retry: RetryPolicy,
}

/// The source of a function's code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FunctionSource {
    /// A function that was published to this gateway.
    Published {
        /// `id`.
        id: String,
        /// `version`: a full version, a prefix that selects the newest one, or `draft`. Default: `latest`.
        version: String,
    },
    /// `path`: a folder with code under development.
    Folder(PathBuf),
}

impl HandlerSettings for FunctionHandler {
    fn endpoint(&self) -> String {
        match &self.source {
            FunctionSource::Published { id, version } => format!("function://{id}/{version}"),
            FunctionSource::Folder(path) => format!("file:{}", path.display()),
        }
    }

    fn add_secrets(&self, _: &mut SecretCollector) {}

    fn retry(&self) -> &RetryPolicy {
        &self.retry
    }

    fn uses_tls(&self) -> bool {
        false
    }

    fn has_server_definitions(&self) -> bool {
        true
    }
}

impl ReadHandler for FunctionHandler {
    const FIELDS: &'static [&'static str] = &["functionConfig", "tool"];

    fn read(fields: &mut ObjectFields<'_>, _: &HandlerScope<'_>) -> Option<Self> {
        let source = fields.required("functionConfig", source);
        let tool = tool::read_optional(fields);
        let retry = retry::handler_retry(fields, None, "functionConfig");
        fields.reject_misplaced(&["auth"], "hosted functions need no authentication");
        Some(Self { source: source?, tool: tool?, retry })
    }
}

// === the configuration ===

/// Reads `functionConfig`.
fn source(cursor: ValueCursor<'_>) -> Option<FunctionSource> {
    let mut fields = cursor.fields()?;
    let path = |cursor: ValueCursor<'_>| {
        let path = cursor.clone().parse(formats::folder)?;
        Some(cursor.resolve_path(path.to_str()?))
    };
    let source = match fields.optional("path", |cursor| Some(path(cursor))) {
        Some(path) => {
            fields.reject_misplaced(&["id", "version"], "`path` already selects the code");
            path.map(FunctionSource::Folder)
        }
        None => published_source(&mut fields),
    };
    fields.finish();
    source
}

fn published_source(fields: &mut ObjectFields<'_>) -> Option<FunctionSource> {
    let id = fields.required("id", |cursor| cursor.parse(formats::function_id));
    let version = |cursor: ValueCursor<'_>| cursor.parse(formats::function_version);
    let version = fields.with_default("version", version, "latest".to_owned());
    Some(FunctionSource::Published { id: id?, version })
}
