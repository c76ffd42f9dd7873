//! A handler: one entry of a `ToolRegistry`, from which the gateway builds a backend.
//!
//! The file of a part has its type and its reader. Some fields of the contract are not supported yet; they are rejected
//! by name, because ignoring them would be worse than not starting.

pub(crate) mod auth;
mod endpoint;
pub(crate) mod headers;
pub(crate) mod kinds;
mod names;
mod outbound;
mod retry;
mod secrets;
mod service_probe;
mod tool;

use std::time::Duration;

use toolyard_core::{access::CallPrice, overrides::ChunkingPolicy};

use self::kinds::{HandlerKind, HandlerScope};
pub use self::{
    auth::{AuthScheme, CredentialSource, RequestAuth, SecretString},
    names::{ArgumentOverride, DefinitionPin, PrefixMode, ToolModification, ToolOverride},
    outbound::{OutboundSettings, ProxyChoice},
    retry::{HttpRetry, RetryPolicy},
    service_probe::ServiceProbeSettings,
    tool::ToolDefinition,
};
use crate::{
    cursor::ValueCursor,
    formats::{self, HandlerName},
};

/// The default time-out of the contract.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(30);

/// Unsupported fields of the contract, followed by those that only the contract's own software has.
const UNSUPPORTED_FIELDS: &[&str] = &["serviceRef", "clientConfig"];

/// The noun for duplicate handler names.
pub(crate) const DUPLICATE_HANDLER: &str = "handler name";

/// A handler of a manifest: a source of tools.
#[derive(Clone, Debug, PartialEq)]
pub struct HandlerConfig {
    /// Name, unique among the handlers of all registries.
    pub name: HandlerName,
    /// Name of the registry that declares it.
    pub registry: String,
    /// Time limit of one attempt of a call. Default: 30 s.
    pub timeout: Duration,
    /// `prefix`: when tool names get the name of the handler as a prefix.
    pub prefix: PrefixMode,
    /// `pin`: the treatment of tools whose definitions change.
    pub pin: DefinitionPin,
    /// `overrides`: changes of its tools, by their upstream names.
    pub overrides: Vec<(String, ToolOverride)>,
    /// `price`: the price of a call of tools without a price of their own. Default: the price of the hosted function,
    /// else free.
    pub price: Option<CallPrice>,
    /// `displayName`: the display name of its server. Default: the name.
    pub display_name: Option<String>,
    /// `description`: a summary of its server, for searches. Default: one is generated from its tools.
    pub description: Option<String>,
    /// `chunk` and `chunkThreshold`: the treatment of large results, unless an override sets it.
    pub chunking: ChunkingPolicy,
    /// `renameArguments`: publish arguments whose names the interfaces of models refuse under others. Default: `true`,
    /// except for the type `mcp`.
    pub rename_arguments: Option<bool>,
    /// `probe` of its registry: liveness checks of its server. `None` disables them.
    pub probe: Option<ProbeSettings>,
    /// The type of its server and how to reach it.
    pub kind: HandlerKind,
    /// Values of its references: see [`HandlerConfig::secrets`].
    pub reference_values: Vec<SecretString>,
}

impl HandlerConfig {
    /// The reserved name of the handler of the built-in tools.
    pub const BUILTINS: &str = "builtins";

    /// The name of the kind of handlers with `selector`, which have no `type`.
    pub const SELECTOR: &str = "selector";

    /// Reads a handler of a registry with this name and namespace.
    pub(crate) fn read(cursor: ValueCursor<'_>, registry: &str, namespace: &str) -> Option<Self> {
        let mut fields = cursor.clone().fields()?;
        // Discard the references of fields outside this handler.
        cursor.take_reference_values();
        let name = fields.required("name", handler_name);
        let kind = HandlerKind::read(&mut fields, &HandlerScope { location: &cursor, namespace });
        let timeout = fields.with_default("timeout", ValueCursor::timeout, DEFAULT_TIMEOUT);
        let (prefix, overrides) = (names::prefix(&mut fields), names::overrides(&mut fields));
        let pin = names::pin(&mut fields);
        let price = fields.optional("price", |cursor| cursor.parse(formats::price));
        let display_name = fields.optional("displayName", |cursor| cursor.parse(formats::display_name));
        let description = fields.optional("description", ValueCursor::text);
        let chunking = names::chunking(&mut fields);
        let rename_arguments = fields.optional("renameArguments", ValueCursor::flag);
        fields.reject_unsupported(UNSUPPORTED_FIELDS);
        fields.reject_misplaced(
            &["probe"],
            "it belongs to `spec` and applies to all MCP servers; services have one in `httpConfig` and `openAPIConfig`",
        );
        fields.finish();
        let (kind, reference_values) = (kind?, cursor.take_reference_values());
        Some(Self {
            name: name?,
            registry: registry.to_owned(),
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
            reference_values,
        })
    }
}

fn handler_name(cursor: ValueCursor<'_>) -> Option<HandlerName> {
    let name = cursor.clone().parse(HandlerName::parse)?;
    cursor.declare(DUPLICATE_HANDLER, name.as_str());
    Some(name)
}

/// Liveness checks of servers that are connected and silent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProbeSettings {
    /// `interval`: silence before the first check, and the time between two checks. Default: 60 s.
    pub interval: Duration,
    /// `timeout`: time limit of the answer. Default: 5 s.
    pub timeout: Duration,
}

impl Default for ProbeSettings {
    fn default() -> Self {
        Self { interval: Duration::from_secs(60), timeout: Duration::from_secs(5) }
    }
}
