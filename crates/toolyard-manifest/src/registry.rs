//! The reader of `ToolRegistry` documents.
//!
//! The contract knows more than this release serves. A field of it that cannot be honoured yet is refused by
//! its name: ignoring `retries` or `auth` would be worse than not starting.

mod auth;
mod endpoint;
mod grpc;
mod http;
mod names;
mod openapi;
mod retry;
mod tool;

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
    words: &[
        ("mcp", HandlerType::Mcp),
        ("http", HandlerType::Http),
        ("grpc", HandlerType::Grpc),
        ("openapi", HandlerType::OpenApi),
    ],
    not_yet: &["client"],
};

const TRANSPORT: Choice<Transport> = Choice {
    noun: "transport",
    words: &[("stdio", Transport::Stdio), ("streamable-http", Transport::StreamableHttp)],
    not_yet: &["sse"],
};

/// Handler fields of the contract, then those that only the contract's own software has.
const HANDLER_NOT_YET: &[&str] = &["selector", "serviceRef", "clientConfig", "probe", "toolFilter"];

/// The fields that only some types have, and where they belong.
const ONLY: &[(&str, &[HandlerType], &str)] = &[
    ("mcpConfig", &[HandlerType::Mcp], "it belongs to the type `mcp`"),
    ("httpConfig", &[HandlerType::Http], "it belongs to the type `http`"),
    ("grpcConfig", &[HandlerType::Grpc], "it belongs to the type `grpc`"),
    ("openAPIConfig", &[HandlerType::OpenApi], "it belongs to the type `openapi`"),
    ("endpoint", &[HandlerType::Http, HandlerType::Grpc], "it belongs to the types `http` and `grpc`"),
    ("tool", &[HandlerType::Http, HandlerType::Grpc], "it belongs to the types `http` and `grpc`"),
];

/// Those that only some types have so far.
const RESILIENCE: &[&str] = &["retries", "retryPolicy", "auth"];

const STDIO_FIELDS: &[&str] = &["command", "args", "workDir", "env"];

#[derive(Clone, Copy, PartialEq, Eq)]
enum HandlerType {
    Mcp,
    Http,
    Grpc,
    OpenApi,
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
        Some(handler_type) => kind(handler_type, &mut fields, registry, &cursor),
        None => {
            fields.optional("mcpConfig", transport);
            for (field, ..) in ONLY {
                fields.ignore(&[field]);
            }
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

fn kind(
    handler_type: HandlerType,
    fields: &mut Fields<'_>,
    registry: &Registry,
    handler: &Cursor<'_>,
) -> Option<HandlerKind> {
    let namespace = registry.namespace.as_deref().unwrap_or("default");
    for (field, types, reason) in ONLY {
        if !types.contains(&handler_type) {
            fields.misplaced(&[field], reason);
        }
    }
    match handler_type {
        HandlerType::Mcp => {
            fields.not_yet(RESILIENCE);
            fields.required("mcpConfig", transport).map(HandlerKind::Mcp)
        }
        HandlerType::Http => {
            http::handler(fields, namespace, handler).map(|http| HandlerKind::Http(Box::new(http)))
        }
        HandlerType::Grpc => {
            grpc::handler(fields, namespace, handler).map(|grpc| HandlerKind::Grpc(Box::new(grpc)))
        }
        HandlerType::OpenApi => {
            openapi::handler(fields).map(|openapi| HandlerKind::OpenApi(Box::new(openapi)))
        }
    }
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
