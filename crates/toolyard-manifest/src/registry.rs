//! The reader of `ToolRegistry` documents.
//!
//! The contract has fields that this release does not support yet. They are rejected by name: ignoring `selector` would
//! be worse than not starting.

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
    cursor::{KeywordChoice, ValueCursor},
    fields::ObjectFields,
    formats::{self, HandlerName},
    handler::{HandlerConfig, HandlerKind, ProbeSettings, SecretString},
    metadata::{ResourceMetadata, metadata},
};

pub use guides::ToolGuide;

/// The default time-out of the contract.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(30);

const HANDLER_TYPE: KeywordChoice<HandlerType> = KeywordChoice {
    noun: "handler type",
    words: &[
        ("mcp", HandlerType::Mcp),
        ("http", HandlerType::Http),
        ("grpc", HandlerType::Grpc),
        ("openapi", HandlerType::OpenApi),
        ("function", HandlerType::Function),
        ("cortexone", HandlerType::CortexOne),
    ],
    unsupported: &["client"],
};

/// Unsupported fields of the contract, followed by those that only the contract's own software has.
const UNSUPPORTED_FIELDS: &[&str] = &["selector", "serviceRef", "clientConfig"];

/// Fields that only some types have, with these types and a hint.
const TYPE_SPECIFIC_FIELDS: &[(&str, &[HandlerType], &str)] = &[
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

/// The noun for duplicate handler names.
pub(crate) const DUPLICATE_HANDLER: &str = "handler name";

/// Fields that all types have.
const COMMON_FIELDS: &[&str] = &["retries", "retryPolicy", "auth"];

#[derive(Clone, Copy, PartialEq, Eq)]
enum HandlerType {
    Mcp,
    Http,
    Grpc,
    OpenApi,
    Function,
    CortexOne,
}

/// The content of a document.
#[derive(Default)]
pub(crate) struct RegistryDocument {
    pub(crate) handlers: Vec<HandlerConfig>,
    pub(crate) guides: Vec<ToolGuide>,
}

/// Reads a document whose `apiVersion` and `kind` have been read.
pub(crate) fn registry_document(mut fields: ObjectFields<'_>) -> Option<RegistryDocument> {
    // Operators write `status`. It describes the actual state, not the desired one.
    fields.ignore(&["status"]);
    let registry = fields.required("metadata", registry_identity).unwrap_or_default();
    let declared = fields.required("spec", |cursor| spec(cursor, &registry));
    fields.finish();
    declared
}

/// The part of a registry's metadata that its handlers need.
#[derive(Default)]
struct RegistryIdentity {
    name: String,
    namespace: Option<String>,
}

/// Reads the identity of a registry. A cluster would keep only the second of two registries with the same name.
fn registry_identity(cursor: ValueCursor<'_>) -> Option<RegistryIdentity> {
    let ResourceMetadata { name, namespace } = metadata(cursor.clone())?;
    cursor.declare("ToolRegistry name", &format!("{}/{name}", namespace.as_deref().unwrap_or_default()));
    Some(RegistryIdentity { name, namespace })
}

fn spec(cursor: ValueCursor<'_>, registry: &RegistryIdentity) -> Option<RegistryDocument> {
    let mut fields = cursor.fields()?;
    let mut handlers = fields.required("handlers", |cursor| cursor.list(|item| handler(item, registry)));
    let probe = fields.with_default("probe", probe::probe, Some(ProbeSettings::default()));
    let guides = fields.with_default("guides", guides::guides, Vec::new());
    fields.finish();
    handlers.iter_mut().flatten().for_each(|handler| handler.probe = probe);
    Some(RegistryDocument { handlers: handlers.unwrap_or_default(), guides })
}

fn handler(cursor: ValueCursor<'_>, registry: &RegistryIdentity) -> Option<HandlerConfig> {
    let mut fields = cursor.clone().fields()?;
    // Discard the references of fields outside this handler.
    cursor.take_reference_values();
    let name = fields.required("name", handler_name);
    let kind = match fields.required("type", |cursor| cursor.choice(&HANDLER_TYPE)) {
        Some(handler_type) => handler_kind(handler_type, &mut fields, registry, &cursor),
        None => {
            fields.optional("mcpConfig", mcp::config);
            for (field, ..) in TYPE_SPECIFIC_FIELDS {
                fields.ignore(&[field]);
            }
            fields.ignore(COMMON_FIELDS);
            None
        }
    };
    let timeout = fields.with_default("timeout", ValueCursor::timeout, DEFAULT_TIMEOUT);
    let (prefix, overrides) = (names::prefix(&mut fields), names::overrides(&mut fields));
    let pin = names::pin(&mut fields);
    let price = fields.optional("price", |cursor| cursor.parse(formats::price));
    let display_name = fields.optional("displayName", |cursor| cursor.parse(formats::display_name));
    let description = fields.optional("description", ValueCursor::text);
    let chunking = names::chunking(&mut fields);
    let rename_arguments = fields.optional("renameArguments", ValueCursor::flag);
    fields.reject_unsupported(UNSUPPORTED_FIELDS);
    fields.reject_misplaced(&["probe"], "it belongs to `spec` and applies to all handlers");
    fields.finish();
    let (registry, kind, from_outside) = (registry.name.clone(), kind?, cursor.take_reference_values());
    Some(HandlerConfig {
        name: name?,
        registry,
        timeout,
        prefix,
        pin,
        overrides,
        price,
        display_name,
        description,
        chunking,
        rename_arguments,
        probe: None,
        kind,
        reference_values: from_outside,
    })
}

fn handler_kind(
    handler_type: HandlerType,
    fields: &mut ObjectFields<'_>,
    registry: &RegistryIdentity,
    handler: &ValueCursor<'_>,
) -> Option<HandlerKind> {
    let namespace = registry.namespace.as_deref().unwrap_or("default");
    for (field, types, reason) in TYPE_SPECIFIC_FIELDS {
        if !types.contains(&handler_type) {
            fields.reject_misplaced(&[field], reason);
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
            function::hosted_function(fields).map(|function| HandlerKind::Function(Box::new(function)))
        }
        HandlerType::CortexOne => {
            function::platform_function(fields).map(|function| HandlerKind::CortexOne(Box::new(function)))
        }
    }
}

fn handler_name(cursor: ValueCursor<'_>) -> Option<HandlerName> {
    let name = cursor.clone().parse(HandlerName::parse)?;
    cursor.declare(DUPLICATE_HANDLER, name.as_str());
    Some(name)
}

/// Reads custom headers; `is_name` checks their names.
pub(crate) fn headers(
    cursor: ValueCursor<'_>,
    is_name: fn(&str) -> Result<(), formats::FormatError>,
) -> Option<Vec<(HeaderName, SecretString)>> {
    let value = |cursor: ValueCursor<'_>| cursor.parse_secret(formats::secret_header_value);
    let entries = cursor.entries(is_name, value)?;
    let named = |(name, value): (String, SecretString)| Some((formats::header_name(&name).ok()?, value));
    Some(entries.into_iter().filter_map(named).collect())
}
