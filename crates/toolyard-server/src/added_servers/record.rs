//! A server as stored, and its handler.

use std::collections::BTreeMap;
use std::fmt;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use toolyard_agent::management::{HttpTransportKind, NewServer, ServerAddress};
use toolyard_core::store::{KeySpace, Store, StoreError};
use toolyard_manifest::{self as manifest, ManifestProblem, ManifestSource};

/// Space of the servers, by name.
pub(super) const SERVERS: KeySpace = KeySpace("mcp-servers");

/// Registry of the servers in the status.
const REGISTRY: &str = "run-time";

/// Number of records read at a time.
const PAGE_SIZE: usize = 64;

/// Maximum number of records read, which exceeds every configurable limit.
const MAX_RECORDS: usize = 10_000;

/// A server as stored. Its variables, which may be secret, are stored in clear text.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ServerRecord {
    pub(super) name: String,
    #[serde(flatten)]
    pub(super) reach: StoredTransport,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) display_name: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) description: Option<String>,
}

#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "transport", rename_all = "kebab-case")]
pub(super) enum StoredTransport {
    Stdio { command: String, args: Vec<String>, env: BTreeMap<String, String> },
    StreamableHttp { url: String },
    Sse { url: String },
}

impl From<NewServer> for ServerRecord {
    fn from(server: NewServer) -> Self {
        let NewServer { name, address: reach, display_name, description } = server;
        let reach = match reach {
            ServerAddress::Program { command, args, env } => {
                StoredTransport::Stdio { command, args, env: env.into_iter().collect() }
            }
            ServerAddress::Url { url, transport: HttpTransportKind::StreamableHttp } => {
                StoredTransport::StreamableHttp { url }
            }
            ServerAddress::Url { url, transport: HttpTransportKind::Sse } => StoredTransport::Sse { url },
        };
        Self { name, reach, display_name, description }
    }
}

impl ServerRecord {
    pub(super) fn encode(&self) -> Bytes {
        // Serializing a record cannot fail.
        Bytes::from(serde_json::to_vec(self).unwrap_or_default())
    }

    /// Converts the server into a handler by parsing it as a manifest, so that the same rules apply.
    ///
    /// # Errors
    /// The problems of the server, in terms of the tool's arguments.
    pub(super) fn handler(&self) -> Result<manifest::HandlerConfig, String> {
        let text = self.document().to_string();
        let source = ManifestSource { name: "the server".to_owned(), text };
        // References to variables and files are not resolved.
        let parsed = manifest::parse_with(&[source], &|_| None);
        let manifest =
            parsed.map_err(|problems| problems.iter().map(problem_text).collect::<Vec<_>>().join("; "))?;
        let mut handlers = manifest.handlers.into_iter();
        handlers.next().ok_or_else(|| "not a server".to_owned())
    }

    fn document(&self) -> Value {
        let config = match &self.reach {
            StoredTransport::Stdio { command, args, env } => {
                let args: Vec<_> = args.iter().map(|arg| literal(arg)).collect();
                let env: BTreeMap<_, _> = env.iter().map(|(name, value)| (name, literal(value))).collect();
                json!({"transport": "stdio", "command": literal(command), "args": args, "env": env})
            }
            StoredTransport::StreamableHttp { url } => {
                json!({"transport": "streamable-http", "endpoint": literal(url)})
            }
            StoredTransport::Sse { url } => json!({"transport": "sse", "endpoint": literal(url)}),
        };
        // The tools are always prefixed, so that unprefixed names stay free for the manifest, scopes and pins.
        let mut handler =
            json!({"name": literal(&self.name), "type": "mcp", "prefix": "always", "mcpConfig": config});
        for (field, text) in [("displayName", &self.display_name), ("description", &self.description)] {
            if let Some(text) = text {
                handler[field] = literal(text).into();
            }
        }
        json!({
            "apiVersion": "omnia.altairalabs.ai/v1alpha1",
            "kind": "ToolRegistry",
            "metadata": {"name": REGISTRY},
            "spec": {"handlers": [handler]},
        })
    }
}

/// Escapes a text for a manifest, where `${NAME}` would be a variable of the gateway and `${file:PATH}` a file that the
/// client must not read.
fn literal(text: &str) -> String {
    text.replace("${", "$${")
}

/// Describes a problem in terms of the tool's arguments, without its location in the generated document.
fn problem_text(problem: &ManifestProblem) -> String {
    let path = problem.location.path.to_string();
    let field = match path.rsplit('.').next().unwrap_or_default() {
        "name" => "server_name: ",
        "endpoint" => "url: ",
        "command" => "command: ",
        "description" => "description: ",
        "displayName" => "display_name: ",
        _ if path.contains(".args") => "arguments: ",
        _ if path.contains(".env") => "env: ",
        _ => "",
    };
    let expected = problem.expected.as_ref().map(|expected| format!("; expected {expected}"));
    let message = problem.message.replace("$${", "${").replace("a handler name", "the name of a server");
    format!("{field}{message}{}", expected.unwrap_or_default())
}

/// Returns all records in the order of their names. Unreadable ones are skipped and logged.
///
/// # Errors
/// If the store fails.
pub(super) async fn list(store: &dyn Store) -> Result<Vec<ServerRecord>, StoreError> {
    let (mut records, mut after) = (Vec::new(), None::<String>);
    while records.len() < MAX_RECORDS {
        let page = store.list(SERVERS, "", after.as_deref(), PAGE_SIZE).await?;
        let is_last = page.len() < PAGE_SIZE;
        after = page.last().map(|(key, _)| key.clone());
        for (key, value) in page {
            match serde_json::from_slice::<ServerRecord>(&value.bytes) {
                Ok(record) if record.name == key => records.push(record),
                _ => tracing::warn!(server = key, "skipped the damaged record of a server added at run time"),
            }
        }
        if is_last {
            break;
        }
    }
    Ok(records)
}

/// Shows the name and no values, which may be secret.
impl fmt::Debug for ServerRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerRecord").field("name", &self.name).finish_non_exhaustive()
    }
}
