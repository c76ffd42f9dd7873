//! Lists of tasks, in pages.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::{Value, json};

use super::shown;
use crate::wire::or_default;
use crate::wire::rpc::{RpcError, code};
use crate::wire::task::{Task, TaskState};

/// Number of tasks of a page unless the request has one, and the maximum number.
const PAGE: usize = 50;
const MAX_PAGE: usize = 100;

/// The parameters of a list.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct ListParams {
    #[serde(deserialize_with = "or_default")]
    context_id: String,
    #[serde(deserialize_with = "or_default")]
    status: TaskState,
    page_size: Option<usize>,
    #[serde(deserialize_with = "or_default")]
    page_token: String,
    history_length: Option<usize>,
    status_timestamp_after: Option<String>,
    include_artifacts: Option<bool>,
}

/// A request for a page.
pub(super) struct TaskQuery {
    params: ListParams,
    size: usize,
    /// The last task of the page before.
    after: Option<TaskPosition>,
    since: Option<Timestamp>,
}

/// The place of a task in the list: those whose state is newer come first.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct TaskPosition {
    time: Timestamp,
    id: String,
}

/// A page of tasks.
pub(super) struct TaskPage {
    tasks: Vec<Task>,
    /// The last task of the page, if another page follows.
    last: Option<TaskPosition>,
    size: usize,
    total: usize,
}

impl TaskQuery {
    /// Checks the parameters of a request.
    ///
    /// # Errors
    /// If one is invalid.
    pub(super) fn new(params: ListParams) -> Result<Self, RpcError> {
        let size = params.page_size.unwrap_or(PAGE);
        if !(1..=MAX_PAGE).contains(&size) {
            return Err(invalid(&format!("`pageSize` is {size}: expected 1 to {MAX_PAGE}")));
        }
        let after = match &*params.page_token {
            "" => None,
            token => Some(
                TaskPosition::of_token(token).ok_or_else(|| invalid("`pageToken` is none of this agent"))?,
            ),
        };
        let since = params.status_timestamp_after.as_deref().map(str::parse).transpose();
        let since =
            since.map_err(|_| invalid("`statusTimestampAfter` is no time such as 2026-01-31T10:00:00Z"))?;
        Ok(Self { params, size, after, since })
    }

    /// Returns the place of a task; `None` if it is not wanted.
    pub(super) fn position(&self, task: &Task) -> Option<TaskPosition> {
        let position = TaskPosition::of(task);
        let ListParams { context_id, status, .. } = &self.params;
        let is_wanted = (context_id.is_empty() || *context_id == task.context_id)
            && (*status == TaskState::Unspecified || *status == task.status.state)
            && self.since.is_none_or(|since| position.time >= since);
        is_wanted.then_some(position)
    }

    /// Returns the page of these places, whose tasks `read` returns as [shown](Self::shown). The tasks have `max_bytes`
    /// together at most, but there is always one.
    pub(super) fn page(
        &self,
        mut positions: Vec<TaskPosition>,
        read: impl Fn(&str) -> Option<Task>,
        max_bytes: usize,
    ) -> TaskPage {
        let total = positions.len();
        positions.sort_unstable_by(|one, other| other.cmp(one));
        let start = self.after.as_ref().map_or(0, |after| positions.partition_point(|it| it >= after));
        let mut page = TaskPage { tasks: Vec::new(), last: None, size: self.size, total };
        let (mut bytes, mut end) = (0, start);
        for position in positions[start..].iter().take(self.size) {
            if let Some(task) = read(&position.id) {
                bytes += json!(task).to_string().len();
                if bytes > max_bytes && !page.tasks.is_empty() {
                    break;
                }
                page.tasks.push(task);
            }
            end += 1;
        }
        page.last = (end < total).then(|| positions[..end].last().cloned()).flatten();
        page
    }

    /// Returns a task with what the request wants.
    pub(super) fn shown(&self, task: &Task) -> Task {
        let Task { id, context_id, status, artifacts, history } = task;
        let artifacts = match self.params.include_artifacts {
            Some(true) => artifacts.clone(),
            _ => Vec::new(),
        };
        let task = Task {
            id: id.clone(),
            context_id: context_id.clone(),
            status: status.clone(),
            artifacts,
            history: history.clone(),
        };
        shown(task, self.params.history_length)
    }
}

impl TaskPosition {
    fn of(task: &Task) -> Self {
        let time = task.status.timestamp.as_deref().and_then(|time| time.parse().ok());
        Self { time: time.unwrap_or(Timestamp::UNIX_EPOCH), id: task.id.clone() }
    }

    fn of_token(token: &str) -> Option<Self> {
        let text = String::from_utf8(URL_SAFE_NO_PAD.decode(token).ok()?).ok()?;
        let (time, id) = text.split_once(' ')?;
        Some(Self { time: time.parse().ok()?, id: id.to_owned() })
    }

    fn token(&self) -> String {
        URL_SAFE_NO_PAD.encode(format!("{} {}", self.time, self.id))
    }
}

impl TaskPage {
    /// Returns the result of the request.
    pub(super) fn to_json(&self) -> Value {
        json!({
            "tasks": self.tasks,
            "nextPageToken": self.last.as_ref().map(TaskPosition::token).unwrap_or_default(),
            "pageSize": self.size,
            "totalSize": self.total,
        })
    }
}

fn invalid(message: &str) -> RpcError {
    RpcError::new(code::INVALID_PARAMS, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn task(id: &str, time: &str, state: &str) -> Task {
        let task = json!({
            "id": id, "contextId": format!("of-{id}"), "status": {"state": state, "timestamp": time},
            "artifacts": [{"artifactId": "a", "parts": [{"text": "x".repeat(100)}]}],
        });
        serde_json::from_value(task).expect("a task")
    }

    fn tasks() -> Vec<Task> {
        let (working, completed) = ("TASK_STATE_WORKING", "TASK_STATE_COMPLETED");
        vec![
            task("a", "2026-01-01T00:00:00Z", completed),
            task("b", "2026-01-01T00:00:00.5Z", completed),
            task("c", "2026-01-01T00:00:02Z", working),
            task("d", "2026-01-01T00:00:02Z", completed),
        ]
    }

    fn query(params: Value) -> Result<TaskQuery, RpcError> {
        TaskQuery::new(serde_json::from_value(params).expect("parameters"))
    }

    fn page(params: Value, max_bytes: usize) -> Value {
        let query = query(params).unwrap_or_else(|error| panic!("{error}"));
        let tasks = tasks();
        let positions = tasks.iter().filter_map(|task| query.position(task)).collect();
        let read = |id: &str| tasks.iter().find(|task| task.id == id).map(|task| query.shown(task));
        query.page(positions, read, max_bytes).to_json()
    }

    /// Returns the ids of a page, its token, and the number of all tasks.
    fn ids(page: &Value) -> (String, String, u64) {
        let ids = page["tasks"].as_array().into_iter().flatten();
        let ids: String = ids.filter_map(|task| task["id"].as_str()).collect();
        let token = page["nextPageToken"].as_str().expect("a token").to_owned();
        (ids, token, page["totalSize"].as_u64().unwrap_or_default())
    }

    #[test]
    fn pages_have_all_tasks_newest_first() {
        let all = page(json!({}), 10_000);
        assert_eq!(ids(&all), ("dcba".to_owned(), String::new(), 4));
        assert_eq!((all["pageSize"].as_u64(), all["tasks"][0].get("artifacts")), (Some(50), None));
        let (mut found, mut token) = (Vec::new(), String::new());
        loop {
            let (ids, next, total) = ids(&page(json!({"pageSize": 3, "pageToken": token}), 10_000));
            found.push(ids);
            assert_eq!(total, 4);
            if next.is_empty() {
                break;
            }
            token = next;
        }
        assert_eq!(found, ["dcb", "a"]);
        let large = page(json!({"includeArtifacts": true}), 400);
        assert_eq!(ids(&large).0, "d", "the bytes of a page are limited");
        assert!(large["tasks"][0]["artifacts"].is_array());
    }

    #[test]
    fn filters_select_tasks() {
        let check = |params: Value, expected: &str| assert_eq!(ids(&page(params, 10_000)).0, expected);
        check(json!({"status": "TASK_STATE_WORKING"}), "c");
        check(json!({"status": "TASK_STATE_UNSPECIFIED"}), "dcba");
        check(json!({"contextId": "of-b"}), "b");
        check(json!({"statusTimestampAfter": "2026-01-01T00:00:00.5Z"}), "dcb");
        check(json!({"statusTimestampAfter": "2026-01-01T01:00:00.5+01:00"}), "dcb");
        check(json!({"contextId": null, "pageToken": null, "historyLength": 0}), "dcba");
    }

    #[test]
    fn invalid_parameters_are_refused() {
        let check = |params: Value, expected: &str| {
            let problem = query(params).err().map(|error| error.message);
            assert_eq!(problem.as_deref(), Some(expected));
        };
        check(json!({"pageSize": 0}), "`pageSize` is 0: expected 1 to 100");
        check(json!({"pageSize": 101}), "`pageSize` is 101: expected 1 to 100");
        check(json!({"pageToken": "x y"}), "`pageToken` is none of this agent");
        check(json!({"pageToken": "eA"}), "`pageToken` is none of this agent");
        let time = "`statusTimestampAfter` is no time such as 2026-01-31T10:00:00Z";
        check(json!({"statusTimestampAfter": "yesterday"}), time);
    }
}
