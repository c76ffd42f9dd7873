//! The reader of `ToolRegistry` documents.
//!
//! The contract knows more than this release serves. A field of it that cannot be honoured yet is refused by
//! its name: ignoring `selector` would be worse than not starting.

mod auth;
mod endpoint;
mod function;
mod grpc;
mod guides;
mod http;
mod mcp;
mod names;
mod openapi;
mod probe;
mod retry;
mod scheme;
mod tool;

use std::time::Duration;

use ::http::HeaderName;

use crate::{
    cursor::{Choice, Cursor},
    fields::Fields,
    forms::{self, HandlerName},
    handler::{Handler, HandlerKind, Probe, Secret},
    metadata::{Metadata, metadata},
};

pub use guides::Guide;

/// What the contract gives a handler that does not say how long its calls may take.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(30);

const HANDLER_TYPE: Choice<HandlerType> = Choice {
    noun: "handler type",
    words: &[
        ("mcp", HandlerType::Mcp),
        ("http", HandlerType::Http),
        ("grpc", HandlerType::Grpc),
        ("openapi", HandlerType::OpenApi),
        ("function", HandlerType::Function),
        ("cortexone", HandlerType::CortexOne),
    ],
    not_yet: &["client"],
};

/// Handler fields of the contract, then those that only the contract's own software has.
const HANDLER_NOT_YET: &[&str] = &["selector", "serviceRef", "clientConfig"];

/// The fields that only some types have, and where they belong.
const ONLY: &[(&str, &[HandlerType], &str)] = &[
    ("mcpConfig", &[HandlerType::Mcp], "it belongs to the type `mcp`"),
    ("httpConfig", &[HandlerType::Http], "it belongs to the type `http`"),
    ("grpcConfig", &[HandlerType::Grpc], "it belongs to the type `grpc`"),
    ("openAPIConfig", &[HandlerType::OpenApi], "it belongs to the type `openapi`"),
    ("endpoint", &[HandlerType::Http, HandlerType::Grpc], "it belongs to the types `http` and `grpc`"),
    ("functionConfig", &[HandlerType::Function], "it belongs to the type `function`"),
    ("cortexoneConfig", &[HandlerType::CortexOne], "it belongs to the type `cortexone`"),
    (
        "tool",
        &[HandlerType::Http, HandlerType::Grpc, HandlerType::Function, HandlerType::CortexOne],
        "it belongs to the types `http`, `grpc`, `function` and `cortexone`",
    ),
];

/// What no two have.
pub(crate) const HANDLER_NAME: &str = "handler of this name";

/// What all types have.
const RESILIENCE: &[&str] = &["retries", "retryPolicy", "auth"];

#[derive(Clone, Copy, PartialEq, Eq)]
enum HandlerType {
    Mcp,
    Http,
    Grpc,
    OpenApi,
    Function,
    CortexOne,
}

/// What a document says.
#[derive(Default)]
pub(crate) struct Declared {
    pub(crate) handlers: Vec<Handler>,
    pub(crate) guides: Vec<Guide>,
}

/// What a document says whose `apiVersion` and `kind` have been taken.
pub(crate) fn declared(mut fields: Fields<'_>) -> Option<Declared> {
    // Operators write it. It says how things were, not how they should be.
    fields.ignore(&["status"]);
    let registry = fields.required("metadata", registry).unwrap_or_default();
    let declared = fields.required("spec", |cursor| spec(cursor, &registry));
    fields.finish();
    declared
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

fn spec(cursor: Cursor<'_>, registry: &Registry) -> Option<Declared> {
    let mut fields = cursor.fields()?;
    let mut handlers =
        fields.required("handlers", |cursor| cursor.non_empty_list(|item| handler(item, registry)));
    let probe = fields.with_default("probe", probe::probe, Some(Probe::default()));
    let guides = fields.with_default("guides", guides::guides, Vec::new());
    fields.finish();
    handlers.iter_mut().flatten().for_each(|handler| handler.probe = probe);
    Some(Declared { handlers: handlers.unwrap_or_default(), guides })
}

fn handler(cursor: Cursor<'_>, registry: &Registry) -> Option<Handler> {
    let mut fields = cursor.clone().fields()?;
    // That of others is not its own.
    cursor.take_from_outside();
    let name = fields.required("name", handler_name);
    let kind = match fields.required("type", |cursor| cursor.choice(&HANDLER_TYPE)) {
        Some(handler_type) => kind(handler_type, &mut fields, registry, &cursor),
        None => {
            fields.optional("mcpConfig", mcp::config);
            for (field, ..) in ONLY {
                fields.ignore(&[field]);
            }
            fields.ignore(RESILIENCE);
            None
        }
    };
    let timeout = fields.with_default("timeout", Cursor::timeout, DEFAULT_TIMEOUT);
    let (prefix, overrides) = (names::prefix(&mut fields), names::overrides(&mut fields));
    let price = fields.optional("price", |cursor| cursor.parse(forms::price));
    let display_name = fields.optional("displayName", |cursor| cursor.parse(forms::display_name));
    let description = fields.optional("description", Cursor::text);
    let chunking = names::chunking(&mut fields);
    fields.not_yet(HANDLER_NOT_YET);
    fields.misplaced(&["probe"], "it belongs to `spec`, and is for all handlers");
    fields.finish();
    let (registry, kind, from_outside) = (registry.name.clone(), kind?, cursor.take_from_outside());
    Some(Handler {
        name: name?,
        registry,
        timeout,
        prefix,
        overrides,
        price,
        display_name,
        description,
        chunking,
        probe: None,
        kind,
        from_outside,
    })
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
        HandlerType::Mcp => mcp::handler(fields).map(|mcp| HandlerKind::Mcp(Box::new(mcp))),
        HandlerType::Http => {
            http::handler(fields, namespace, handler).map(|http| HandlerKind::Http(Box::new(http)))
        }
        HandlerType::Grpc => {
            grpc::handler(fields, namespace, handler).map(|grpc| HandlerKind::Grpc(Box::new(grpc)))
        }
        HandlerType::OpenApi => {
            openapi::handler(fields).map(|openapi| HandlerKind::OpenApi(Box::new(openapi)))
        }
        HandlerType::Function => {
            function::hosted(fields).map(|function| HandlerKind::Function(Box::new(function)))
        }
        HandlerType::CortexOne => {
            function::on_platform(fields).map(|function| HandlerKind::CortexOne(Box::new(function)))
        }
    }
}

fn handler_name(cursor: Cursor<'_>) -> Option<HandlerName> {
    let name = cursor.clone().parse(HandlerName::parse)?;
    cursor.declare(HANDLER_NAME, name.as_str());
    Some(name)
}

/// Headers that an author sets; `is_name` says which there may be.
pub(crate) fn headers(
    cursor: Cursor<'_>,
    is_name: fn(&str) -> Result<(), forms::Invalid>,
) -> Option<Vec<(HeaderName, Secret)>> {
    let value = |cursor: Cursor<'_>| cursor.parse_secret(forms::secret_header_value);
    let entries = cursor.entries(is_name, value)?;
    let named = |(name, value): (String, Secret)| Some((forms::header_name(&name).ok()?, value));
    Some(entries.into_iter().filter_map(named).collect())
}
