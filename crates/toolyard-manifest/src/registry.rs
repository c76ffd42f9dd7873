//! The reader of `ToolRegistry` documents.
//!
//! The contract knows more than this release serves. A field of it that cannot be honoured yet is refused by
//! its name: ignoring `retries` or `auth` would be worse than not starting.

mod auth;
mod http;
mod names;
mod retry;

use std::time::Duration;

use crate::{
    cursor::{Choice, Cursor},
    fields::Fields,
    forms::{self, Endpoint, HandlerName},
    handler::{Handler, HandlerKind, McpTransport},
    metadata::{Metadata, metadata},
};

/// What the contract gives a handler that does not say how long its calls may take.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(30);

const HANDLER_TYPE: Choice<HandlerType> = Choice {
    noun: "handler type",
    words: &[("mcp", HandlerType::Mcp), ("http", HandlerType::Http)],
    not_yet: &["grpc", "openapi", "client"],
};

const TRANSPORT: Choice<Transport> = Choice {
    noun: "transport",
    words: &[("stdio", Transport::Stdio), ("streamable-http", Transport::StreamableHttp)],
    not_yet: &["sse"],
};

/// Handler fields of the contract, then those that only the contract's own software has.
const HANDLER_NOT_YET: &[&str] =
    &["grpcConfig", "openAPIConfig", "selector", "serviceRef", "clientConfig", "probe", "toolFilter"];

/// Those that only some types have so far.
const RESILIENCE: &[&str] = &["retries", "retryPolicy", "auth"];

const STDIO_FIELDS: &[&str] = &["command", "args", "workDir", "env"];

#[derive(Clone, Copy)]
enum HandlerType {
    Mcp,
    Http,
}

#[derive(Clone, Copy)]
enum Transport {
    Stdio,
    StreamableHttp,
}

/// The handlers of a document, whose `apiVersion` and `kind` have been taken.
pub(crate) fn handlers(mut fields: Fields<'_>) -> Option<Vec<Handler>> {
    // Operators write it. It says how things were, not how they should be.
    fields.ignore(&["status"]);
    let registry = fields.required("metadata", registry).unwrap_or_default();
    let handlers = fields.required("spec", |cursor| spec(cursor, &registry));
    fields.finish();
    handlers
}

/// What a handler needs to know of its registry.
#[derive(Default)]
struct Registry {
    name: String,
    namespace: Option<String>,
}

/// What identifies the registry. A cluster would keep only the second of two registries of one name.
fn registry(cursor: Cursor<'_>) -> Option<Registry> {
    let Metadata { name, namespace } = metadata(cursor.clone())?;
    cursor.declare(
        "ToolRegistry of this name",
        &format!("{}/{name}", namespace.as_deref().unwrap_or_default()),
    );
    Some(Registry { name, namespace })
}

fn spec(cursor: Cursor<'_>, registry: &Registry) -> Option<Vec<Handler>> {
    let mut fields = cursor.fields()?;
    let handlers =
        fields.required("handlers", |cursor| cursor.non_empty_list(|item| handler(item, registry)));
    fields.not_yet(&["probe"]);
    fields.finish();
    handlers
}

fn handler(cursor: Cursor<'_>, registry: &Registry) -> Option<Handler> {
    let mut fields = cursor.clone().fields()?;
    let name = fields.required("name", handler_name);
    let kind = match fields.required("type", |cursor| cursor.choice(&HANDLER_TYPE)) {
        Some(HandlerType::Mcp) => {
            let transport = fields.required("mcpConfig", transport);
            fields.misplaced(http::FIELDS, "it belongs to the type `http`");
            fields.not_yet(RESILIENCE);
            transport.map(HandlerKind::Mcp)
        }
        Some(HandlerType::Http) => {
            let namespace = registry.namespace.as_deref().unwrap_or("default");
            let handler = http::handler(&mut fields, namespace, &cursor);
            fields.misplaced(&["mcpConfig"], "it belongs to the type `mcp`");
            handler.map(|handler| HandlerKind::Http(Box::new(handler)))
        }
        None => {
            fields.optional("mcpConfig", transport);
            fields.ignore(http::FIELDS);
            fields.ignore(RESILIENCE);
            None
        }
    };
    let timeout = fields.with_default("timeout", Cursor::timeout, DEFAULT_TIMEOUT);
    let (prefix, overrides) = (names::prefix(&mut fields), names::overrides(&mut fields));
    fields.not_yet(HANDLER_NOT_YET);
    fields.finish();
    Some(Handler { name: name?, registry: registry.name.clone(), timeout, prefix, overrides, kind: kind? })
}

fn handler_name(cursor: Cursor<'_>) -> Option<HandlerName> {
    let name = cursor.clone().parse(HandlerName::parse)?;
    cursor.declare("handler of this name", name.as_str());
    Some(name)
}

fn transport(cursor: Cursor<'_>) -> Option<McpTransport> {
    let mut fields = cursor.fields()?;
    let transport = match fields.required("transport", |cursor| cursor.choice(&TRANSPORT)) {
        Some(Transport::Stdio) => stdio(&mut fields),
        Some(Transport::StreamableHttp) => streamable_http(&mut fields),
        None => {
            fields.accept(&["endpoint"]);
            fields.accept(STDIO_FIELDS);
            None
        }
    };
    fields.not_yet(&["toolFilter", "retryPolicy"]);
    fields.finish();
    transport
}

fn stdio(fields: &mut Fields<'_>) -> Option<McpTransport> {
    let command = fields.required("command", |cursor| cursor.parse(forms::command));
    let args = fields.with_default("args", |cursor| cursor.list(Cursor::text), Vec::new());
    let work_dir = fields.optional("workDir", |cursor| cursor.parse(forms::folder));
    let env =
        fields.with_default("env", |cursor| cursor.entries(forms::variable_name, Cursor::text), Vec::new());
    fields.misplaced(&["endpoint"], "it belongs to the transport `streamable-http`");
    let (args, env) = (args.into_iter().collect(), env.into_iter().collect());
    Some(McpTransport::Stdio { command: command?, args, work_dir, env })
}

fn streamable_http(fields: &mut Fields<'_>) -> Option<McpTransport> {
    let endpoint = fields.required("endpoint", |cursor| cursor.parse_secret(Endpoint::parse));
    fields.misplaced(STDIO_FIELDS, "it belongs to the transport `stdio`");
    Some(McpTransport::StreamableHttp { endpoint: endpoint? })
}
