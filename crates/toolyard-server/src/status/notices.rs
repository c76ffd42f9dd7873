//! Items that are not published, or not as their server defines them.

use std::sync::Arc;

use serde::Serialize;
use toolyard_core::Registry;
use toolyard_core::registry::{EntryKind, NoticeReason, PublishNotice};

/// Maximum number of items of a handler in one list of notices.
const MAX_REPORTED: usize = 100;

/// An item of a server's list that is not published, or not as the server defines it.
#[derive(Debug, Serialize)]
pub(super) struct NoticeReport {
    kind: &'static str,
    name: Arc<str>,
    reason: Arc<str>,
}

impl NoticeReport {
    /// Returns the items of a handler whose notices are for a selected reason.
    pub(super) fn all(
        registry: &Registry,
        handler: &str,
        select: fn(&NoticeReason) -> Option<&Arc<str>>,
    ) -> Vec<Self> {
        let notices = registry.notices().iter().filter(|notice| *notice.handler == *handler);
        notices.filter_map(|notice| Self::of(notice, select)).take(MAX_REPORTED).collect()
    }

    fn of(notice: &PublishNotice, select: fn(&NoticeReason) -> Option<&Arc<str>>) -> Option<Self> {
        let reason = select(&notice.what)?;
        let kind = match notice.kind {
            EntryKind::Tools => "tool",
            EntryKind::Prompts => "prompt",
            EntryKind::Resources => "resource",
            EntryKind::Templates => "template",
        };
        Some(Self { kind, name: notice.own.clone(), reason: reason.clone() })
    }
}
