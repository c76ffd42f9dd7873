//! Cells without a feature, each with the section of the specification that excludes it.

use super::client::{ClientKind, McpRevision};
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

const RULES: [ScopeRule; 6] = [
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
        applies: |_, server| matches!(server.family, ServerFamily::Python),
        reason: "2026-07-28 § extensions/tasks: optional, and the package does not declare it",
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
