//! A subagent while it runs.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use futures_util::FutureExt;
use tokio::time::{MissedTickBehavior, interval, timeout};
use toolyard_agent::memory::{FullKey, NewEntry};
use toolyard_core::timestamp::iso_8601;
use toolyard_core::{ErrorCode, NestedCalls};

use super::{NewSubagent, SubagentParts};
use crate::model::ChatModel;
use crate::own_tools::SubagentTools;
use crate::record::{HEARTBEAT, SubagentOwner, SubagentRecord, SubagentResult, SubagentState, milliseconds};
use crate::run::AgentRun;
use crate::texts;
use crate::toolset::ToolChoice;

/// Time for which working memory keeps a result.
const RESULT_TTL: Duration = Duration::from_secs(3600);

/// A subagent that was admitted.
pub(super) struct RunningSubagent {
    pub(super) owner: SubagentOwner,
    pub(super) id: String,
    pub(super) calls: NestedCalls,
    pub(super) model: Arc<dyn ChatModel>,
    pub(super) result_key: Option<FullKey>,
    pub(super) timeout: Duration,
}

impl RunningSubagent {
    /// Runs the subagent, and stores its result. Dropping the future ends its requests and calls.
    pub(super) async fn run(self, parts: &Arc<SubagentParts>, new: NewSubagent) {
        let ended = tokio::select! {
            ended = timeout(self.timeout, self.work(parts, &new)) => match ended {
                Ok(Ok(output)) => (SubagentState::Succeeded, Ok(output)),
                Ok(Err(reason)) => (SubagentState::Failed, Err(reason)),
                Err(_) => (SubagentState::TimedOut, Err(texts::timed_out(self.timeout))),
            },
            ended = self.show_life(parts) => (ended.0, Err(ended.1)),
        };
        self.end(parts, ended).await;
    }

    async fn work(&self, parts: &Arc<SubagentParts>, new: &NewSubagent) -> Result<String, String> {
        let progress = |text: String| self.report(parts, text).boxed();
        let own_tools = SubagentTools::new(&parts.boards, &self.owner, &self.id, &progress);
        let run = AgentRun {
            model: &*self.model,
            instructions: texts::instructions(&self.id),
            task: texts::task(&new.description, new.context.as_deref()),
            calls: &self.calls,
            tools: ToolChoice::OfCaller { most: parts.settings.listed_tools, finders: parts.deps.finders },
            own_tools: &own_tools,
            limits: parts.settings.run,
        };
        let answer = run.run().await.map_err(|error| {
            let shown = error.to_string();
            tracing::info!(error = &error as &dyn std::error::Error, subagent = self.id, "a subagent failed");
            shown
        })?;
        tracing::debug!(
            subagent = self.id,
            tokens = answer.tokens,
            calls = answer.calls,
            "a subagent succeeded"
        );
        Ok(answer.text)
    }

    /// Stores a report of progress.
    async fn report(&self, parts: &SubagentParts, text: String) {
        let stored = parts.store.change_running(&self.owner, &self.id, |record| {
            record.progress = Some(text.clone());
            record.changed = milliseconds(SystemTime::now());
        });
        if let Err(error) = stored.await {
            let error = &error as &dyn std::error::Error;
            tracing::debug!(error, subagent = self.id, "cannot store the progress of a subagent");
        }
        parts.changed(&self.owner, &self.id);
    }

    /// Stores a sign of life again and again, until another gateway requests the cancellation, or the key of the caller
    /// has no rights any more. Returns the state and its reason.
    async fn show_life(&self, parts: &SubagentParts) -> (SubagentState, String) {
        let mut ticks = interval(HEARTBEAT);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            match self.calls.check_caller().await {
                Err(error) if error.code() == ErrorCode::Denied => {
                    return (SubagentState::Failed, error.to_string());
                }
                // Its calls report that the keys cannot be read.
                Ok(()) | Err(_) => {}
            }
            let alive = parts.store.change_running(&self.owner, &self.id, |record| {
                record.changed = milliseconds(SystemTime::now());
            });
            match alive.await {
                Ok(Some(record)) if !record.is_cancelled => {}
                Ok(_) => return (SubagentState::Cancelled, texts::CANCELLED.to_owned()),
                Err(error) => {
                    let error = &error as &dyn std::error::Error;
                    tracing::debug!(error, subagent = self.id, "cannot store that a subagent runs");
                }
            }
        }
    }

    /// Stores the result: in the record, and in the working memory of the caller.
    async fn end(&self, parts: &SubagentParts, (state, outcome): (SubagentState, Result<String, String>)) {
        let (output, error) =
            outcome.map_or_else(|reason| (String::new(), Some(reason)), |text| (text, None));
        let result = SubagentResult {
            task_id: self.id.clone(),
            subagent_session_id: format!("subagent/{}", self.id),
            primary_session_id: self.result_key.as_ref().map(|key| key.namespace.to_string()),
            output,
            is_success: error.is_none(),
            error,
            timestamp: iso_8601(SystemTime::now()),
        };
        if let (Some(memory), Some(key)) = (&parts.deps.memory, &self.result_key) {
            let text = serde_json::to_string(&result).unwrap_or_default();
            let entry = NewEntry { ttl: Some(RESULT_TTL), ..NewEntry::new(&key.path, &text) };
            if let Err(error) = memory.save(&key.namespace, &[entry]).await {
                let error = &error as &dyn std::error::Error;
                tracing::info!(
                    error,
                    subagent = self.id,
                    "cannot save the result of a subagent in working memory"
                );
            }
        }
        let stored = parts.store.change_running(&self.owner, &self.id, |record| {
            record.state = state;
            record.changed = milliseconds(SystemTime::now());
            record.result = Some(result.clone());
        });
        if let Err(error) = stored.await {
            tracing::warn!(
                error = &error as &dyn std::error::Error,
                subagent = self.id,
                "cannot store the result of a subagent"
            );
        }
        parts.changed(&self.owner, &self.id);
    }
}

/// Marks a subagent whose task was aborted.
pub(super) fn end_as_cancelled(record: &mut SubagentRecord) {
    let now = SystemTime::now();
    record.state = SubagentState::Cancelled;
    record.changed = milliseconds(now);
    record.result = Some(SubagentResult::without_output(&record.id, texts::CANCELLED, now));
}
