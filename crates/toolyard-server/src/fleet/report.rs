//! Reports changed tools.

use toolyard_manifest as manifest;

use super::{DefinitionChange, ServedDefinition};
use crate::audit::{AuditAction, AuditActor, AuditQueue, AuditedToolChange};

/// Maximum number of changes of one list that are reported individually. A server may change thousands of tools at
/// once, which must not push other records out of the trail.
const MAX_REPORTED_CHANGES: usize = 100;

/// Logs and audits changed tools.
pub(super) fn report_changes(
    handler: &manifest::HandlerConfig,
    changes: Vec<DefinitionChange>,
    audit: &AuditQueue,
) {
    let handler = handler.name.as_str();
    if let Some(more) = changes.len().checked_sub(MAX_REPORTED_CHANGES + 1) {
        tracing::warn!(handler, tools = more + 1, "more tools have changed; the status lists all of them");
    }
    for change in changes.into_iter().take(MAX_REPORTED_CHANGES) {
        log_change(handler, &change);
        let action = if change.old.is_some() { AuditAction::ToolChanged } else { AuditAction::ToolAdded };
        audit.record_change(AuditedToolChange::new(AuditActor::default(), action, handler, &change));
    }
}

fn log_change(handler: &str, change: &DefinitionChange) {
    let DefinitionChange { tool, old, new, served, .. } = change;
    let message = match (old, served) {
        (_, ServedDefinition::New) => "a tool has changed and is served with its new definition",
        (Some(_), ServedDefinition::Old) => {
            "a tool has changed and is served with its old definition until accepted"
        }
        (Some(_), ServedDefinition::Nothing) => "a tool has changed and is not served until accepted",
        (None, _) => "a new tool is not served until accepted",
    };
    let old = old.as_ref().map(tracing::field::display);
    tracing::warn!(handler, %tool, old, %new, "{message}: `toolyard accept {handler}`");
}
