//! Cells without a feature, each with the section of the specification that excludes it, and cells that need another
//! setting than the default one, each with its reason.

use std::fmt;

use super::client::{ClientKind, MatrixTransport, McpRevision};
use super::feature::McpFeature;
use super::server::{ServerFamily, ServerSpec};

/// A reason why a feature does not apply.
struct ScopeRule {
    feature: McpFeature,
    /// Selects the clients and servers of the rule.
    applies: fn(ClientKind, &ServerSpec) -> bool,
    /// The section.
    reason: &'static str,
}

const RULES: [ScopeRule; 8] = [
    ScopeRule {
        feature: McpFeature::Elicit,
        applies: |client, _| client.revision < McpRevision::V2025_06_18,
        reason: "2025-06-18 § changelog: elicitation is new; this client has none",
    },
    ScopeRule {
        feature: McpFeature::Elicit,
        applies: |_, server| server.revision < McpRevision::V2025_06_18,
        reason: "2025-06-18 § changelog: elicitation is new; this server has none",
    },
    ScopeRule {
        feature: McpFeature::Task,
        applies: |client, _| client.revision < McpRevision::V2025_11_25,
        reason: "2025-11-25 § changelog: tasks are new; this client has none",
    },
    ScopeRule {
        feature: McpFeature::Task,
        applies: |client, _| client.revision == McpRevision::V2025_11_25,
        reason: "2025-11-25 § basic/utilities/tasks: experimental, and only if the receiver declares them",
    },
    ScopeRule {
        feature: McpFeature::Task,
        applies: |_, server| matches!(server.family, ServerFamily::Sdk) && !server.revision.is_modern(),
        reason: "2026-07-28 § extensions/tasks: an extension of this revision; the SDK has no older form",
    },
    ScopeRule {
        feature: McpFeature::Task,
        applies: |_, server| matches!(server.family, ServerFamily::Python | ServerFamily::TypescriptV2),
        reason: "2026-07-28 § extensions/tasks: optional, and the package does not declare it",
    },
    ScopeRule {
        feature: McpFeature::Subscribe,
        applies: |_, server| server.family.is_fastmcp(),
        reason: "2025-11-25 § server/resources: subscriptions are optional, and the package does not declare them",
    },
    ScopeRule {
        feature: McpFeature::Complete,
        applies: |_, server| matches!(server.family, ServerFamily::Fastmcp2 | ServerFamily::Fastmcp3),
        reason: "2025-11-25 § server/utilities/completion: optional, and the package does not declare it",
    },
];

/// Reason why this feature does not apply to this client and server, if it does not.
pub(super) fn not_applicable_reason(
    feature: McpFeature,
    client: ClientKind,
    server: &ServerSpec,
) -> Option<&'static str> {
    let rule = RULES.iter().find(|rule| rule.feature == feature && (rule.applies)(client, server))?;
    Some(rule.reason)
}

/// A setting of a handler. The default one is a handler that has only a location.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum HandlerSetting {
    Default,
    SharedLane,
    ClientLane,
}

impl HandlerSetting {
    pub(super) const ALL: [Self; 3] = [Self::Default, Self::SharedLane, Self::ClientLane];

    /// Its field of `mcpConfig`, and the value.
    pub(super) const fn field(self) -> Option<(&'static str, &'static str)> {
        match self {
            Self::Default => None,
            Self::SharedLane => Some(("lane", "shared")),
            Self::ClientLane => Some(("lane", "client")),
        }
    }
}

impl fmt::Display for HandlerSetting {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.field() {
            None => out.write_str("default"),
            Some((name, value)) => write!(out, "{name}: {value}"),
        }
    }
}

/// A reason why a feature needs another setting.
struct SettingRule {
    feature: McpFeature,
    /// Selects the clients and servers of the rule.
    applies: fn(ClientKind, &ServerSpec) -> bool,
    setting: HandlerSetting,
    reason: &'static str,
}

/// Reason for a setting: a client without a key and a session, at a server with state for each connection.
const KEYLESS_TOOLS: &str = "2026-07-28 § server/tools: lists must not vary by connection, so that a client without a key sees those of the shared connection; this server lists the tool only to connections with the capability";
const KEYLESS_CHANGES: &str = "2026-07-28 § server/tools: lists must not vary by connection, so that a client without a key sees those of the shared connection; this server announces the change only to the connection that caused it";

const SETTINGS: [SettingRule; 4] = [
    SettingRule {
        feature: McpFeature::Elicit,
        applies: |client, server| is_keyless(client) && server.family == ServerFamily::Everything,
        setting: HandlerSetting::ClientLane,
        reason: KEYLESS_TOOLS,
    },
    SettingRule {
        feature: McpFeature::Sample,
        applies: |client, server| is_keyless(client) && server.family == ServerFamily::Everything,
        setting: HandlerSetting::ClientLane,
        reason: KEYLESS_TOOLS,
    },
    SettingRule {
        feature: McpFeature::Roots,
        applies: |client, server| is_keyless(client) && server.family == ServerFamily::Everything,
        setting: HandlerSetting::ClientLane,
        reason: KEYLESS_TOOLS,
    },
    SettingRule {
        feature: McpFeature::ListChanged,
        applies: |client, server| is_keyless(client) && server.family.announces_to_one(),
        setting: HandlerSetting::SharedLane,
        reason: KEYLESS_CHANGES,
    },
];

/// True for clients that the gateway cannot tell apart: they have neither a session nor, in the default configuration,
/// a key.
fn is_keyless(client: ClientKind) -> bool {
    client.revision.is_modern() && client.carrier == MatrixTransport::Http
}

/// The setting that a feature needs with this client and server, and the reason if it is not the default one.
pub(super) fn needed_setting(
    feature: McpFeature,
    client: ClientKind,
    server: &ServerSpec,
) -> (HandlerSetting, Option<&'static str>) {
    let rule = SETTINGS.iter().find(|rule| rule.feature == feature && (rule.applies)(client, server));
    rule.map_or((HandlerSetting::Default, None), |rule| (rule.setting, Some(rule.reason)))
}
