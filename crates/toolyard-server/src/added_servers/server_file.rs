//! A file with servers in the form of MCP clients, such as an `mcp.json` on a data volume: `builtins.mcp.file`.
//!
//! It has the servers of the operator, and those that agents have added, which [`ADDED`] marks. The latter are limited by
//! what the operator allows, and their texts refer to no variable of the gateway.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::path::Path;

use serde_json::{Map, Value, json};
use toolyard_core::file;
use toolyard_manifest::{self as manifest, HandlerConfig, ManifestSource};

use super::record::{ServerRecord, StoredTransport};
use crate::atomic_file;

/// Member of a server that an agent has added.
const ADDED: &str = "addedAtRunTime";

/// Object with the servers.
const SERVERS: &str = "mcpServers";

/// Maximum size of the file in bytes.
const MAX_BYTES: usize = 4 << 20;

/// Mode of a new file: values may be secret.
const NEW_FILE_MODE: u32 = 0o600;

/// The servers of a file at one moment.
#[derive(Clone, Default)]
pub(super) struct FileServers {
    /// The servers of the operator.
    pub(super) handlers: Vec<HandlerConfig>,
    /// The servers that agents have added.
    pub(super) records: Vec<ServerRecord>,
    /// Differs between different contents.
    pub(super) revision: u64,
}

/// A file that cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub(super) enum ServerFileError {
    /// The file system refuses.
    #[error("{path}: {error}")]
    Io {
        /// The file.
        path: String,
        /// The error.
        error: io::Error,
    },
    /// The content is no list of servers.
    #[error("{0}")]
    Content(String),
    /// The file has servers in a form that cannot be written.
    #[error("{path} cannot be changed: {reason}")]
    Form {
        /// The file.
        path: String,
        /// The reason.
        reason: &'static str,
    },
    /// The file has a server of this name already.
    #[error("the name is in use")]
    Taken,
}

/// Reads the servers. A file that does not exist has none.
///
/// # Errors
/// If the file cannot be read, or if a server of it is invalid.
pub(super) fn read(path: &Path) -> Result<FileServers, ServerFileError> {
    let Some(text) = read_text(path)? else { return Ok(FileServers::default()) };
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    let revision = hasher.finish();
    // A file with comments is read as that of a client. Agents have written none into it.
    let (text, records) = match serde_json::from_str::<Map<String, Value>>(&text) {
        Ok(mut document) => {
            let records = take_records(&mut document);
            if document.is_empty() {
                document.insert(SERVERS.to_owned(), json!({}));
            }
            (Value::Object(document).to_string(), records)
        }
        Err(_) => (text, Vec::new()),
    };
    let source = ManifestSource { name: path.display().to_string(), text };
    let (handlers, notes) = manifest::parse_servers(&source)
        .map_err(|problems| ServerFileError::Content(problems.to_string()))?;
    for note in notes {
        tracing::info!(%note, "remark on the file with servers");
    }
    Ok(FileServers { handlers, records, revision })
}

/// Writes a server that an agent has added.
///
/// # Errors
/// If the file has a server of this name, cannot be written, or has a form that would lose something.
pub(super) fn add(path: &Path, record: &ServerRecord) -> Result<(), ServerFileError> {
    change(path, |servers| {
        if servers.keys().any(|name| name.eq_ignore_ascii_case(&record.name)) {
            return Err(ServerFileError::Taken);
        }
        servers.insert(record.name.clone(), entry_of(record));
        Ok(true)
    })
    .map(drop)
}

/// Removes a server that an agent has added. Returns `false` if there is none of this name.
///
/// # Errors
/// If the file cannot be written.
pub(super) fn remove(path: &Path, name: &str) -> Result<bool, ServerFileError> {
    change(path, |servers| {
        let is_added = servers.get(name).is_some_and(is_added);
        Ok(is_added && servers.shift_remove(name).is_some())
    })
}

/// Changes the object with the servers, and writes the file if the change returns `true`.
fn change(
    path: &Path,
    change: impl FnOnce(&mut Map<String, Value>) -> Result<bool, ServerFileError>,
) -> Result<bool, ServerFileError> {
    let refuse = |reason| ServerFileError::Form { path: path.display().to_string(), reason };
    let text = read_text(path)?;
    let mut document: Map<String, Value> = match text.as_deref().map(str::trim) {
        None | Some("") => Map::new(),
        Some(text) => {
            serde_json::from_str(text).map_err(|_| refuse("it is no JSON object without comments"))?
        }
    };
    if !document.is_empty() && !document.contains_key(SERVERS) {
        return Err(refuse("it has no `mcpServers`"));
    }
    let servers = document.entry(SERVERS).or_insert_with(|| json!({}));
    let servers = servers.as_object_mut().ok_or_else(|| refuse("its `mcpServers` is no object"))?;
    let is_changed = change(servers)?;
    if is_changed {
        let changed = format!("{:#}\n", Value::Object(document));
        if read_text(path)? != text {
            return Err(refuse("another program has changed it meanwhile; try again"));
        }
        atomic_file::write(path, &changed, NEW_FILE_MODE).map_err(|error| io_error(path, error))?;
    }
    Ok(is_changed)
}

/// Takes the servers that agents have added out of a document. One that cannot be read is skipped and logged.
fn take_records(document: &mut Map<String, Value>) -> Vec<ServerRecord> {
    let Some(servers) = document.get_mut(SERVERS).and_then(Value::as_object_mut) else { return Vec::new() };
    let names: Vec<_> =
        servers.iter().filter(|(_, entry)| is_added(entry)).map(|(name, _)| name.clone()).collect();
    let records = names.into_iter().filter_map(|name| {
        let record = servers.shift_remove(&name).and_then(|entry| record_of(&name, &entry));
        if record.is_none() {
            tracing::warn!(server = name, "skipped the damaged entry of a server added at run time");
        }
        record
    });
    records.collect()
}

fn is_added(entry: &Value) -> bool {
    entry.get(ADDED) == Some(&Value::Bool(true))
}

fn entry_of(record: &ServerRecord) -> Value {
    let ServerRecord { name: _, reach, display_name, description } = record;
    let mut entry = match reach {
        StoredTransport::Stdio { command, args, env } => {
            json!({"type": "stdio", "command": command, "args": args, "env": env})
        }
        StoredTransport::StreamableHttp { url } => json!({"type": "http", "url": url}),
        StoredTransport::Sse { url } => json!({"type": "sse", "url": url}),
    };
    for (member, text) in [("displayName", display_name), ("description", description)] {
        if let Some(text) = text {
            entry[member] = text.as_str().into();
        }
    }
    entry[ADDED] = true.into();
    entry
}

fn record_of(name: &str, entry: &Value) -> Option<ServerRecord> {
    let text = |member: &str| entry.get(member)?.as_str().map(str::to_owned);
    let texts = |member: &str| serde_json::from_value(entry.get(member).cloned()?).ok();
    let reach = match entry.get("type")?.as_str()? {
        "stdio" => StoredTransport::Stdio {
            command: text("command")?,
            args: texts("args").unwrap_or_default(),
            env: serde_json::from_value(entry.get("env").cloned().unwrap_or_default()).unwrap_or_default(),
        },
        "sse" => StoredTransport::Sse { url: text("url")? },
        _ => StoredTransport::StreamableHttp { url: text("url")? },
    };
    let (display_name, description) = (text("displayName"), text("description"));
    Some(ServerRecord { name: name.to_lowercase(), reach, display_name, description })
}

fn read_text(path: &Path) -> Result<Option<String>, ServerFileError> {
    match file::read_text(path, MAX_BYTES) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(io_error(path, error)),
    }
}

fn io_error(path: &Path, error: io::Error) -> ServerFileError {
    ServerFileError::Io { path: path.display().to_string(), error }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn record(name: &str, text: &str) -> ServerRecord {
        let env = [("KEY".to_owned(), text.to_owned())].into();
        let reach = StoredTransport::Stdio { command: "uvx".to_owned(), args: vec![text.to_owned()], env };
        ServerRecord { name: name.to_owned(), reach, display_name: None, description: Some(text.to_owned()) }
    }

    /// Returns the names of the operator's servers, and of those that were added.
    fn names(path: &Path) -> Result<(Vec<String>, Vec<String>), String> {
        let FileServers { handlers, records, .. } = read(path).map_err(|error| error.to_string())?;
        let handlers = handlers.iter().map(|handler| handler.name.as_str().to_owned()).collect();
        Ok((handlers, records.into_iter().map(|record| record.name).collect()))
    }

    #[test]
    fn added_server_is_written_beside_those_of_the_operator() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("mcp.json");
        assert_eq!(names(&path), Ok((vec![], vec![])), "the file does not exist");
        add(&path, &record("time", "${HOME} and a \"quote\"")).unwrap();
        assert_eq!(names(&path), Ok((vec![], vec!["time".to_owned()])));
        let text = r#"{"note": 1, "mcpServers": {"docs": {"url": "http://127.0.0.1:1/mcp", "other": [1]}}}"#;
        fs::write(&path, text).unwrap();
        let record = record("time", "${HOME} and a \"quote\"");
        add(&path, &record).unwrap();
        assert_eq!(read(&path).unwrap().records, std::slice::from_ref(&record));
        assert!(matches!(add(&path, &record), Err(ServerFileError::Taken)));
        assert_eq!(names(&path), Ok((vec!["docs".to_owned()], vec!["time".to_owned()])));
        let written: Value = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
        assert_eq!((&written["note"], &written["mcpServers"]["docs"]["other"]), (&json!(1), &json!([1])));
        assert_eq!(
            remove(&path, "docs").map_err(|error| error.to_string()),
            Ok(false),
            "it is the operator's"
        );
        assert_eq!(remove(&path, "time").map_err(|error| error.to_string()), Ok(true));
        assert_eq!(names(&path), Ok((vec!["docs".to_owned()], vec![])));
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "no temporary file remains");
    }

    #[test]
    fn file_that_would_lose_something_is_not_changed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("mcp.json");
        let check = |text: &str, expected: &str| {
            fs::write(&path, text).unwrap();
            let refused = add(&path, &record("time", "x")).unwrap_err().to_string();
            assert!(refused.contains(expected), "{text}: {refused}");
            assert_eq!(fs::read_to_string(&path).unwrap(), text);
        };
        check("{/* a comment */ \"mcpServers\": {}}", "no JSON object without comments");
        check("{\"servers\": {}}", "no `mcpServers`");
        check("{\"mcpServers\": []}", "`mcpServers` is no object");
        check("[]", "no JSON object");
        check("{\"mcpServers\": {\"TIME\": {}}}", "in use");
    }

    #[test]
    fn change_by_another_program_is_not_overwritten() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("mcp.json");
        for before in [None, Some(r#"{"mcpServers": {}}"#)] {
            if let Some(text) = before {
                fs::write(&path, text).unwrap();
            }
            let theirs = r#"{"mcpServers": {"docs": {"url": "http://127.0.0.1:1/mcp"}}}"#;
            let refused = change(&path, |servers| {
                fs::write(&path, theirs).unwrap();
                servers.insert("time".to_owned(), json!({"command": "uvx"}));
                Ok(true)
            });
            let refused = refused.unwrap_err().to_string();
            assert!(refused.contains("another program has changed it"), "{before:?}: {refused}");
            assert_eq!(fs::read_to_string(&path).unwrap(), theirs);
        }
    }

    #[test]
    fn invalid_file_is_explained() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("mcp.json");
        let check = |text: &str, expected: &str| {
            fs::write(&path, text).unwrap();
            let refused = names(&path).unwrap_err();
            assert!(refused.contains(expected), "{text}: {refused}");
        };
        check("{", "mcp.json");
        check("{\"other\": 1}", "no MCP servers found");
    }
}
