//! The features: columns of the matrix, and the check of each.

mod calls;
mod changes;
mod lists;
mod tasks;

use std::fmt;

use super::client::MatrixClient;
use super::script::FeatureScript;
use super::tap::TrafficTap;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum McpFeature {
    Call,
    Progress,
    Cancel,
    Elicit,
    Sample,
    Roots,
    Log,
    Subscribe,
    Complete,
    Task,
    ListChanged,
    Page,
}

impl McpFeature {
    pub(super) const ALL: [Self; 12] = [
        Self::Call,
        Self::Progress,
        Self::Cancel,
        Self::Elicit,
        Self::Sample,
        Self::Roots,
        Self::Log,
        Self::Subscribe,
        Self::Complete,
        Self::Task,
        Self::ListChanged,
        Self::Page,
    ];

    /// Checks that the feature works.
    pub(super) async fn verify(
        self,
        client: &mut MatrixClient,
        script: &FeatureScript,
        tap: Option<&TrafficTap>,
    ) -> anyhow::Result<()> {
        client.clear_received();
        match self {
            Self::Call => calls::call(client, &script.call).await,
            Self::Progress => calls::progress(client, &script.progress).await,
            Self::Cancel => calls::cancel(client, script, tap).await,
            Self::Elicit => calls::question(client, script, &script.elicit, "elicitation/create").await,
            Self::Sample => calls::question(client, script, &script.sample, "sampling/createMessage").await,
            Self::Roots => calls::question(client, script, &script.roots, "roots/list").await,
            Self::Log => calls::log(client, &script.log, script.log_text).await,
            Self::Subscribe => changes::subscribe(client, script.resource, &script.touch).await,
            Self::Complete => lists::complete(client, &script.complete).await,
            Self::Task => tasks::task(client, &script.task).await,
            Self::ListChanged => changes::list_changed(client, script).await,
            Self::Page => lists::pages(client, script).await,
        }
    }
}

impl fmt::Display for McpFeature {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::Call => "call",
            Self::Progress => "progress",
            Self::Cancel => "cancel",
            Self::Elicit => "elicit",
            Self::Sample => "sample",
            Self::Roots => "roots",
            Self::Log => "log",
            Self::Subscribe => "subscribe",
            Self::Complete => "complete",
            Self::Task => "task",
            Self::ListChanged => "list_changed",
            Self::Page => "page",
        })
    }
}
