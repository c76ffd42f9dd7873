//! The kinds of handlers, one per file, and the table of those that registries declare.
//!
//! [`HandlerKind`] is an enum, so that the compiler finds each match that a new kind must join, as in the builder of
//! backends; a question that every kind answers by itself is a method of the trait.

mod builtins;
mod bus;
mod cortexone;
mod function;
mod grpc;
mod http;
mod mcp;
mod openapi;
mod selector;

use std::collections::BTreeSet;

pub use self::{bus::*, cortexone::*, function::*, grpc::*, http::*, mcp::*, openapi::*, selector::*};
use super::{HandlerConfig, RetryPolicy, secrets::SecretCollector};
use crate::{
    cursor::{KeywordChoice, ValueCursor},
    fields::ObjectFields,
    problem::quoted,
    process::BuiltinSettings,
};

/// The settings of one kind of handler.
trait HandlerSettings {
    /// The target of its calls, for display: a URL without its query, or `stdio://` and a command without its
    /// arguments.
    fn endpoint(&self) -> String;

    /// Adds the values of its fields that may be secret.
    fn add_secrets(&self, secrets: &mut SecretCollector);

    /// The retry policy of its calls.
    fn retry(&self) -> &RetryPolicy;

    /// True if any of its requests may need the system's root certificates.
    fn uses_tls(&self) -> bool;

    /// Texts that tell its server from others, in addition to the endpoint and the secrets. They are stored as a digest, so
    /// that their form must not change with names in the code.
    fn identity(&self) -> Vec<String> {
        Vec::new()
    }

    /// True if its server defines its tools. Other tools are defined by the manifest or by the gateway.
    fn has_server_definitions(&self) -> bool;
}

/// The reader of a kind of handler that registries declare.
trait ReadHandler: HandlerSettings + Sized {
    /// The fields that not all kinds have. A handler with a field of another kind is rejected.
    const FIELDS: &'static [&'static str];

    /// Reads the fields of a handler that depend on its kind: [`Self::FIELDS`], and `retries`, `retryPolicy` and
    /// `auth`.
    fn read(fields: &mut ObjectFields<'_>, scope: &HandlerScope<'_>) -> Option<Self>;
}

/// The surroundings of a handler's fields.
pub(super) struct HandlerScope<'a> {
    /// The handler as a whole.
    pub(super) location: &'a ValueCursor<'a>,
    /// The namespace of its registry.
    pub(super) namespace: &'a str,
}

/// An entry of the table, as data.
#[derive(Clone, Copy)]
struct KindReader {
    fields: &'static [&'static str],
    read: fn(&mut ObjectFields<'_>, &HandlerScope<'_>) -> Option<HandlerKind>,
}

/// Declares [`HandlerKind`] and the values of `type`.
macro_rules! handler_kinds {
    ($($(#[$docs:meta])* $word:literal => $kind:ident($settings:ty),)*) => {
        /// The kind of a handler, with its settings.
        #[derive(Clone, Debug, PartialEq)]
        pub enum HandlerKind {
            $($(#[$docs])* $kind(Box<$settings>),)*
            /// The Services of a cluster that labels select, each of which is one tool. It has `selector` in place of a
            /// `type`.
            Selector(Box<SelectorHandler>),
            /// The built-in tools of the gateway. `builtins` of the process declares them, not a registry.
            Builtins(Box<BuiltinSettings>),
        }

        const HANDLER_TYPE: KeywordChoice<KindReader> = KeywordChoice {
            noun: "handler type",
            words: &[$(($word, KindReader {
                fields: <$settings as ReadHandler>::FIELDS,
                read: |fields, scope| {
                    <$settings as ReadHandler>::read(fields, scope).map(Box::new).map(HandlerKind::$kind)
                },
            }),)*],
            unsupported: &["client"],
        };

        impl HandlerKind {
            /// The `type` in the manifest.
            #[must_use]
            pub const fn name(&self) -> &'static str {
                match self {
                    $(Self::$kind(_) => $word,)*
                    Self::Selector(_) => HandlerConfig::SELECTOR,
                    Self::Builtins(_) => HandlerConfig::BUILTINS,
                }
            }

            fn settings(&self) -> &dyn HandlerSettings {
                match self {
                    $(Self::$kind(settings) => &**settings,)*
                    Self::Selector(settings) => &**settings,
                    Self::Builtins(settings) => &**settings,
                }
            }
        }
    };
}

// The order is that of messages.
handler_kinds! {
    /// An MCP server, which lists its tools itself.
    "mcp" => Mcp(McpHandler),
    /// An HTTP endpoint that is one tool.
    "http" => Http(HttpHandler),
    /// A gRPC service that is one tool.
    "grpc" => Grpc(GrpcHandler),
    /// A service with an OpenAPI description, whose operations are tools.
    "openapi" => OpenApi(OpenApiHandler),
    /// A function that this gateway hosts: an MCP server or one tool.
    "function" => Function(FunctionHandler),
    /// A function on the `CortexOne` platform: an MCP server or one tool.
    "cortexone" => CortexOne(CortexOneHandler),
    /// The tools that workers announce on the message bus.
    "bus" => Bus(BusHandler),
}

impl HandlerKind {
    /// The retry policy of its calls.
    #[must_use]
    pub fn retry(&self) -> &RetryPolicy {
        self.settings().retry()
    }

    /// True if any of its requests may need the system's root certificates.
    #[must_use]
    pub fn uses_tls(&self) -> bool {
        self.settings().uses_tls()
    }

    /// True if the handler's server defines its tools. Other tools are defined by the manifest or by the gateway.
    #[must_use]
    pub fn has_server_definitions(&self) -> bool {
        self.settings().has_server_definitions()
    }

    pub(super) fn identity(&self) -> Vec<String> {
        self.settings().identity()
    }

    pub(super) fn endpoint(&self) -> String {
        self.settings().endpoint()
    }

    pub(super) fn add_secrets(&self, secrets: &mut SecretCollector) {
        self.settings().add_secrets(secrets);
    }

    /// Reads `type` of a handler and the fields that depend on it.
    pub(super) fn read(fields: &mut ObjectFields<'_>, scope: &HandlerScope<'_>) -> Option<Self> {
        let kinds = HANDLER_TYPE.words.iter();
        let fields_of_kinds: BTreeSet<_> = kinds.flat_map(|(_, kind)| kind.fields).copied().collect();
        let others = fields_of_kinds.iter().copied();
        if let Some(selector) = SelectorHandler::read_optional(fields, scope, others) {
            return selector.map(Box::new).map(Self::Selector);
        }
        let Some(kind) = fields.required("type", |cursor| cursor.choice(&HANDLER_TYPE)) else {
            // Most handlers are MCP servers.
            fields.optional("mcpConfig", mcp::config);
            fields_of_kinds.iter().for_each(|field| fields.ignore(&[field]));
            fields.ignore(&["retries", "retryPolicy", "auth"]);
            return None;
        };
        for field in fields_of_kinds.into_iter().filter(|field| !kind.fields.contains(field)) {
            fields.reject_misplaced(&[field], &kinds_with(field));
        }
        (kind.read)(fields, scope)
    }
}

/// Returns the hint that lists the kinds with a field.
fn kinds_with(field: &str) -> String {
    let kinds = HANDLER_TYPE.words.iter().filter(|(_, kind)| kind.fields.contains(&field));
    let words: Vec<_> = kinds.map(|(word, _)| quoted(word)).collect();
    match words.split_last() {
        Some((last, others)) if !others.is_empty() => {
            format!("it belongs to the types {} and {last}", others.join(", "))
        }
        _ => format!("it belongs to the type {}", words.concat()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    fn parse(document: &str) -> Value {
        serde_json::from_str(document).unwrap()
    }

    fn words(list: &Value) -> Vec<&str> {
        list.as_array().unwrap().iter().map(|word| word.as_str().unwrap()).collect()
    }

    #[test]
    fn schema_of_registries_refuses_the_fields_of_other_kinds() {
        let schema = parse(crate::schema::TOOL_REGISTRY);
        let handler = &schema["$defs"]["handler"];
        let kinds: Vec<_> = HANDLER_TYPE.words.iter().map(|(word, _)| *word).collect();
        assert_eq!(words(&handler["properties"]["type"]["anyOf"][0]["enum"]), kinds);
        let fields: BTreeSet<_> =
            HANDLER_TYPE.words.iter().flat_map(|(_, kind)| kind.fields).copied().collect();
        let branches = handler["allOf"].as_array().unwrap().iter().filter(|branch| branch["if"].is_object());
        let branches: Vec<_> = branches
            .map(|branch| {
                let properties = branch["then"]["properties"].as_object().unwrap();
                let refused =
                    properties.iter().filter(|(_, schema)| **schema == false).map(|(name, _)| &**name);
                let kind = branch["if"]["properties"]["type"]["const"].as_str().unwrap();
                (kind, refused.filter(|field| fields.contains(field)).collect::<BTreeSet<_>>())
            })
            .collect();
        let refused_by_reader = HANDLER_TYPE.words.iter().map(|(word, kind)| {
            (*word, fields.iter().copied().filter(|field| !kind.fields.contains(field)).collect())
        });
        assert_eq!(branches, refused_by_reader.collect::<Vec<_>>());
    }

    #[test]
    fn api_description_lists_all_kinds() {
        let api = parse(include_str!("../../../../schema/openapi.json"));
        let mut kinds: Vec<_> = HANDLER_TYPE.words.iter().map(|(word, _)| *word).collect();
        kinds.extend([HandlerConfig::SELECTOR, HandlerConfig::BUILTINS]);
        assert_eq!(words(&api["components"]["schemas"]["Handler"]["properties"]["type"]["enum"]), kinds);
    }
}
