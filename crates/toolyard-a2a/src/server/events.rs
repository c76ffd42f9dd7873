//! The events of a task, for streams.

use futures_util::stream::{self, Stream};

use super::shown;
use super::tasks::TaskClaim;
use crate::wire::task::{ArtifactUpdate, StatusUpdate, Task, TaskEvent};

/// The state of a stream of events.
struct EventCursor {
    claim: TaskClaim,
    history: Option<usize>,
    /// The task as the last events have shown it; `None` before the first one.
    last: Option<Task>,
    /// Events that are not sent yet, the next one last.
    pending: Vec<TaskEvent>,
}

/// Returns the events of a task: the task itself, then its changes, until it is at rest. Changes in quick succession are
/// one.
pub(super) fn follow(claim: TaskClaim, history: Option<usize>) -> impl Stream<Item = TaskEvent> + Send {
    let cursor = EventCursor { claim, history, last: None, pending: Vec::new() };
    stream::unfold(cursor, async |mut cursor| {
        loop {
            if let Some(event) = cursor.pending.pop() {
                return Some((event, cursor));
            }
            let Some(last) = cursor.last.take() else {
                let task = cursor.claim.now();
                cursor.last = Some(task.clone());
                return Some((TaskEvent::Task(shown(task, cursor.history)), cursor));
            };
            if last.status.state.is_at_rest() {
                return None;
            }
            let task = cursor.claim.changed().await?;
            cursor.pending = changes(&last, &task);
            cursor.pending.reverse();
            cursor.last = Some(task);
        }
    })
}

/// Returns the events by which a task becomes another.
fn changes(before: &Task, after: &Task) -> Vec<TaskEvent> {
    let (task_id, context_id) = (&after.id, &after.context_id);
    let artifacts = after.artifacts.iter().skip(before.artifacts.len()).map(|artifact| {
        TaskEvent::ArtifactUpdate(ArtifactUpdate {
            task_id: task_id.clone(),
            context_id: context_id.clone(),
            artifact: artifact.clone(),
            append: false,
            last_chunk: true,
        })
    });
    let status = (before.status != after.status).then(|| {
        TaskEvent::StatusUpdate(StatusUpdate {
            task_id: task_id.clone(),
            context_id: context_id.clone(),
            status: after.status.clone(),
        })
    });
    artifacts.chain(status).collect()
}
