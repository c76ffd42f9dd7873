//! The state and the result of a task, of its events.

use crate::wire::message::{Message, Part};
use crate::wire::task::{Artifact, ArtifactUpdate, StatusUpdate, Task, TaskEvent, TaskState, TaskStatus};

/// Bytes that a part or an artifact counts without its texts, so that their number is limited.
const PART_BYTES: usize = 64;

/// A task as far as its events have told of it.
#[derive(Debug, Clone, Default)]
pub struct TaskProgress {
    task: Task,
    /// Bytes that further artifacts may have.
    room: usize,
    is_cut: bool,
}

impl TaskProgress {
    /// Returns a task without events, whose artifacts may have `limit` bytes together.
    #[must_use]
    pub fn new(limit: usize) -> Self {
        Self { room: limit, ..Self::default() }
    }

    /// Returns the id that the agent has given; `None` before it has.
    #[must_use]
    pub fn id(&self) -> Option<&str> {
        (!self.task.id.is_empty()).then_some(&*self.task.id)
    }

    /// Returns the state.
    #[must_use]
    pub const fn state(&self) -> TaskState {
        self.task.status.state
    }

    /// Returns the result as a model reads it.
    #[must_use]
    pub fn to_text(&self) -> String {
        let text = self.task.to_text();
        if self.is_cut { format!("{text}\n\n[The rest of the result is too large.]") } else { text }
    }

    /// Adds an event.
    pub fn add(&mut self, event: TaskEvent) {
        match event {
            TaskEvent::Task(task) => self.replace(task),
            TaskEvent::Message(message) => self.answer(message),
            TaskEvent::StatusUpdate(StatusUpdate { task_id, status, .. }) => {
                self.name(task_id);
                self.task.status = status;
            }
            TaskEvent::ArtifactUpdate(update) => self.artifact(update),
        }
    }

    fn name(&mut self, id: String) {
        if self.task.id.is_empty() {
            self.task.id = id;
        }
    }

    fn replace(&mut self, task: Task) {
        let Task { id, context_id, status, artifacts, .. } = task;
        self.name(id);
        self.task.context_id = context_id;
        self.task.status = status;
        // The artifacts are whole.
        self.is_cut = false;
        for artifact in artifacts {
            self.artifact(ArtifactUpdate { artifact, ..ArtifactUpdate::default() });
        }
    }

    /// Adds a message without a task: the agent has answered at once.
    fn answer(&mut self, message: Message) {
        let artifact = Artifact { parts: message.parts, ..Artifact::default() };
        self.task.status = TaskStatus { state: TaskState::Completed, ..TaskStatus::default() };
        self.artifact(ArtifactUpdate { artifact, ..ArtifactUpdate::default() });
    }

    fn artifact(&mut self, update: ArtifactUpdate) {
        let ArtifactUpdate { artifact, append, task_id, .. } = update;
        self.name(task_id);
        let artifacts = &mut self.task.artifacts;
        let at = artifacts.iter().position(|known| known.artifact_id == artifact.artifact_id);
        let at = match at {
            Some(at) => at,
            None => {
                let bytes = PART_BYTES + artifact.artifact_id.len() + artifact.name.len();
                if bytes > self.room {
                    self.is_cut = true;
                    return;
                }
                self.room -= bytes;
                artifacts.push(Artifact { parts: Vec::new(), ..artifact.clone() });
                artifacts.len() - 1
            }
        };
        let known = &mut artifacts[at];
        if !append {
            let replaced = known.parts.drain(..).map(|part| part_bytes(&part)).sum::<usize>();
            self.room += replaced;
        }
        for part in artifact.parts {
            let bytes = part_bytes(&part);
            if bytes > self.room {
                self.is_cut = true;
                return;
            }
            self.room -= bytes;
            match (known.parts.last_mut(), part) {
                // A text that is streamed piece by piece.
                (Some(Part { text: Some(text), .. }), Part { text: Some(more), .. }) if append => {
                    text.push_str(&more);
                }
                (_, part) => known.parts.push(part),
            }
        }
    }
}

fn part_bytes(part: &Part) -> usize {
    let texts = [&part.text, &part.raw, &part.url];
    let texts = texts.into_iter().flatten().map(String::len).sum::<usize>();
    PART_BYTES + texts + part.data.as_ref().map_or(0, |data| data.to_string().len())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn told(limit: usize, events: &[Value]) -> String {
        let mut progress = TaskProgress::new(limit);
        for event in events {
            progress.add(TaskEvent::of_value(event.clone()).expect("an event"));
        }
        format!("{:?} {}: {}", progress.id(), progress.state().word(), progress.to_text())
    }

    fn status(state: &str) -> Value {
        json!({"statusUpdate": {"taskId": "t", "status": {"state": state}}})
    }

    fn artifact(id: &str, text: &str, append: bool) -> Value {
        let artifact = json!({"artifactId": id, "parts": [{"text": text}]});
        json!({"artifactUpdate": {"taskId": "t", "artifact": artifact, "append": append}})
    }

    #[test]
    fn events_become_a_result() {
        let check = |events: &[Value], expected: &str| assert_eq!(told(10_000, events), expected);
        check(&[], "None unknown: ");
        check(&[json!({"message": {"parts": [{"text": "hi"}]}})], "None completed: hi");
        check(&[status("TASK_STATE_WORKING")], "Some(\"t\") working: ");
        let completed = status("TASK_STATE_COMPLETED");
        check(
            &[
                artifact("1", "a", false),
                artifact("1", "b", true),
                artifact("2", "c", false),
                completed.clone(),
            ],
            "Some(\"t\") completed: ab\n\nc",
        );
        check(&[artifact("1", "a", false), artifact("1", "b", false), completed], "Some(\"t\") completed: b");
    }

    #[test]
    fn large_results_are_cut() {
        let events = [
            artifact("1", "a", false),
            artifact("1", &"b".repeat(300), true),
            status("TASK_STATE_COMPLETED"),
        ];
        assert_eq!(told(200, &events), "Some(\"t\") completed: a\n\n[The rest of the result is too large.]");
        let whole = json!({"id": "t", "status": {"state": "TASK_STATE_COMPLETED"},
            "artifacts": [{"artifactId": "1", "parts": [{"text": "short"}]}]});
        let replaced = [events[0].clone(), events[1].clone(), json!({"task": whole})];
        assert_eq!(told(200, &replaced), "Some(\"t\") completed: short");
        let many: Vec<_> = (0..100).map(|number| artifact("1", &format!("{number}"), true)).collect();
        assert!(told(640, &many).len() < 100);
    }
}
