//! A server as it is kept, and as a handler.

use std::collections::BTreeMap;
use std::fmt;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use toolyard_agent::management::{NewServer, Reach, Transport};
use toolyard_core::store::{Space, Store, StoreError};
use toolyard_manifest::{self as manifest, Problem, Source};

/// Where servers are kept, by their names.
pub(super) const SERVERS: Space = Space("mcp-servers");

/// The registry that they are of, as the status names it.
const REGISTRY: &str = "run-time";

/// How many records are asked for at a time.
const TOGETHER: usize = 64;

/// So many are read at most: more than anybody may add.
const MOST: usize = 10_000;

/// A server as it is kept. What may be secret in it, such as variables, is in the store as it was given.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Record {
    pub(super) name: String,
    #[serde(flatten)]
    pub(super) reach: Kept,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) display_name: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) description: Option<String>,
}

#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "transport", rename_all = "kebab-case")]
pub(super) enum Kept {
    Stdio { command: String, args: Vec<String>, env: BTreeMap<String, String> },
    StreamableHttp { url: String },
    Sse { url: String },
}

impl From<NewServer> for Record {
    fn from(server: NewServer) -> Self {
        let NewServer { name, reach, display_name, description } = server;
        let reach = match reach {
            Reach::Program { command, args, env } => {
                Kept::Stdio { command, args, env: env.into_iter().collect() }
            }
            Reach::Url { url, transport: Transport::StreamableHttp } => Kept::StreamableHttp { url },
            Reach::Url { url, transport: Transport::Sse } => Kept::Sse { url },
        };
        Self { name, reach, display_name, description }
    }
}

impl Record {
    pub(super) fn written(&self) -> Bytes {
        // Nothing in it can fail to be written.
        Bytes::from(serde_json::to_vec(self).unwrap_or_default())
    }

    /// The handler that it is, read as one of a manifest, so that what holds for these holds for it.
    ///
    /// # Errors
    /// Why it cannot be one, in words for those who want it.
    pub(super) fn handler(&self) -> Result<manifest::Handler, String> {
        let text = self.document().to_string();
        let source = Source { name: "the server".to_owned(), text };
        // Nothing outside of the record is meant by what stands in it.
        let read = manifest::parse_with(&[source], &|_| None);
        let manifest = read.map_err(|problems| problems.iter().map(said).collect::<Vec<_>>().join("; "))?;
        let mut handlers = manifest.handlers.into_iter();
        handlers.next().ok_or_else(|| "it is no server".to_owned())
    }

    fn document(&self) -> Value {
        let config = match &self.reach {
            Kept::Stdio { command, args, env } => {
                let args: Vec<_> = args.iter().map(|arg| literal(arg)).collect();
                let env: BTreeMap<_, _> = env.iter().map(|(name, value)| (name, literal(value))).collect();
                json!({"transport": "stdio", "command": literal(command), "args": args, "env": env})
            }
            Kept::StreamableHttp { url } => json!({"transport": "streamable-http", "endpoint": literal(url)}),
            Kept::Sse { url } => json!({"transport": "sse", "endpoint": literal(url)}),
        };
        // The names that its tools have of themselves stay free for those of the manifest, and for what scopes and pins mean.
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

/// A text that stands for itself in a manifest, where `${NAME}` would be a variable of the gateway and `${file:PATH}` a file:
/// who adds a server must not read them.
fn literal(text: &str) -> String {
    text.replace("${", "$${")
}

/// A problem in the words of who wants the server, without the place in a document that was never written.
fn said(problem: &Problem) -> String {
    let path = problem.place.path.to_string();
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

/// Everything that is kept, in the order of the names. What cannot be read is left out, and said to be so.
///
/// # Errors
/// When the store is in trouble.
pub(super) async fn list(store: &dyn Store) -> Result<Vec<Record>, StoreError> {
    let (mut records, mut after) = (Vec::new(), None::<String>);
    while records.len() < MOST {
        let page = store.list(SERVERS, "", after.as_deref(), TOGETHER).await?;
        let is_last = page.len() < TOGETHER;
        after = page.last().map(|(key, _)| key.clone());
        for (key, value) in page {
            match serde_json::from_slice::<Record>(&value.bytes) {
                Ok(record) if record.name == key => records.push(record),
                _ => tracing::warn!(
                    server = key,
                    "the record of a server that was added at run time is damaged"
                ),
            }
        }
        if is_last {
            break;
        }
    }
    Ok(records)
}

/// Shows which one it is, and no values.
impl fmt::Debug for Record {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Record").field("name", &self.name).finish_non_exhaustive()
    }
}
