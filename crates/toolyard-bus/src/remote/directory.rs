//! The workers that announce themselves, and the tools that follow from it.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;
use toolyard_core::{Json, LeftOutItem, Tool};

use crate::announcement::{WorkerPhase, WorkerState, WorkerTools};
use crate::record::is_repeatable;

/// Bounds of the interval that a worker may announce.
const INTERVAL: (Duration, Duration) = (Duration::from_millis(10), Duration::from_secs(3600));

/// Maximum number of tools that are not published, with their reasons.
const MAX_LEFT_OUT: usize = 500;

/// The limits of a directory.
#[derive(Debug, Clone)]
pub(super) struct DirectoryLimits {
    /// The groups that are of interest. Empty: all.
    pub(super) groups: Vec<String>,
    pub(super) missed_announcements: u32,
    pub(super) workers: usize,
    pub(super) tools: usize,
    pub(super) definition_bytes: usize,
}

/// The known workers.
#[derive(Debug)]
pub(super) struct WorkerDirectory {
    limits: DirectoryLimits,
    workers: BTreeMap<String, KnownWorker>,
    /// True once a worker was ignored because of the limit, which is logged once.
    has_ignored: bool,
}

#[derive(Debug)]
struct KnownWorker {
    group: Arc<str>,
    interval: Duration,
    last_seen: Instant,
    phase: WorkerPhase,
    revision: i64,
    parts: Vec<Option<Vec<Arc<Tool>>>>,
    definition_bytes: usize,
    /// Tools by their names, once all parts of a revision were there; those of the last revision meanwhile.
    tools: Option<BTreeMap<Arc<str>, Arc<Tool>>>,
}

/// The consequence of an announcement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Consequence {
    /// Nothing has changed.
    Nothing,
    /// The tools may have changed.
    Changed,
    /// The tools of the worker are unknown, and it has to be asked for them.
    Ask,
}

/// A tool that can be called.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RemoteTool {
    pub(super) name: Arc<str>,
    pub(super) group: Arc<str>,
    /// True if its annotations permit that a call runs twice.
    pub(super) is_repeatable: bool,
}

/// A snapshot of the tools of all workers.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct RemoteTools {
    published: HashMap<Arc<str>, RemoteTool>,
    /// Groups with a worker that has the tool, even if it only finishes its calls, by the name of the tool.
    reachable: HashMap<Arc<str>, BTreeSet<Arc<str>>>,
}

/// The content of a directory, for its readers.
pub(super) struct DirectoryView {
    pub(super) tools: RemoteTools,
    pub(super) definitions: Vec<Arc<Tool>>,
    pub(super) left_out: Vec<LeftOutItem>,
}

impl RemoteTools {
    pub(super) fn get(&self, name: &str) -> Option<&RemoteTool> {
        self.published.get(name)
    }

    pub(super) fn is_reachable(&self, tool: &RemoteTool) -> bool {
        self.reachable.get(&tool.name).is_some_and(|groups| groups.contains(&tool.group))
    }
}

impl WorkerDirectory {
    pub(super) const fn new(limits: DirectoryLimits) -> Self {
        Self { limits, workers: BTreeMap::new(), has_ignored: false }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.workers.is_empty()
    }

    /// Returns the ids of the workers whose tools are unknown.
    pub(super) fn incomplete(&self) -> Vec<String> {
        let incomplete = self.workers.iter().filter(|(_, worker)| !worker.parts.is_empty());
        incomplete.map(|(id, _)| id.clone()).collect()
    }

    /// Notes the state of a worker.
    pub(super) fn note_state(&mut self, state: &WorkerState, now: Instant) -> Consequence {
        let phase = WorkerPhase::parse(&state.phase);
        if phase == WorkerPhase::Stopped {
            let is_known = self.workers.remove(&state.worker_id).is_some();
            return if is_known { Consequence::Changed } else { Consequence::Nothing };
        }
        if !self.is_wanted(state) {
            return Consequence::Nothing;
        }
        let interval = Duration::from_millis(u64::try_from(state.interval_ms).unwrap_or_default());
        let worker = self.workers.entry(state.worker_id.clone()).or_insert_with(|| KnownWorker {
            group: state.group.as_str().into(),
            interval,
            last_seen: now,
            phase,
            revision: -1,
            parts: Vec::new(),
            definition_bytes: 0,
            tools: None,
        });
        worker.last_seen = now;
        worker.interval = interval.clamp(INTERVAL.0, INTERVAL.1);
        let has_changed = worker.phase != phase;
        worker.phase = phase;
        if worker.revision != state.revision {
            let parts = usize::try_from(state.parts).unwrap_or_default();
            worker.revision = state.revision;
            // A part has a tool at least, unless there are none at all.
            worker.parts = vec![None; parts.clamp(1, self.limits.tools.max(1))];
            worker.definition_bytes = 0;
        }
        match worker.parts.is_empty() {
            true if has_changed => Consequence::Changed,
            true => Consequence::Nothing,
            false => Consequence::Ask,
        }
    }

    /// Notes a part of the tools of a worker.
    pub(super) fn note_tools(&mut self, tools: &WorkerTools, now: Instant) -> Consequence {
        // Its state follows with its next announcement.
        let Some(worker) = self.workers.get_mut(&tools.worker_id) else { return Consequence::Nothing };
        if worker.revision != tools.revision {
            return Consequence::Nothing;
        }
        worker.last_seen = now;
        let part = usize::try_from(tools.part).unwrap_or(usize::MAX);
        let Some(place) = worker.parts.get_mut(part) else { return Consequence::Nothing };
        if place.is_some() {
            return Consequence::Nothing;
        }
        worker.definition_bytes += tools.tools.iter().map(String::len).sum::<usize>();
        if worker.definition_bytes > self.limits.definition_bytes {
            tracing::warn!(
                worker = %tools.worker_id,
                limit = self.limits.definition_bytes,
                "the definitions of a worker's tools exceed `limits.responseBytes`; it is ignored"
            );
            worker.parts = vec![Some(Vec::new())];
            return self.complete(&tools.worker_id);
        }
        *place = Some(tools.tools.iter().filter_map(|text| tool_of(text)).collect());
        match worker.parts.iter().all(Option::is_some) {
            true => self.complete(&tools.worker_id),
            false => Consequence::Nothing,
        }
    }

    /// Takes the tools of a worker whose parts are all there.
    fn complete(&mut self, worker_id: &str) -> Consequence {
        let Some(worker) = self.workers.get_mut(worker_id) else { return Consequence::Nothing };
        let tools = std::mem::take(&mut worker.parts).into_iter().flatten().flatten();
        let tools = tools.take(self.limits.tools).map(|tool| (tool.name.clone(), tool)).collect();
        worker.tools = Some(tools);
        Consequence::Changed
    }

    /// Returns the time at which the next worker is forgotten unless it announces itself.
    pub(super) fn next_overdue(&self) -> Option<Instant> {
        self.workers.values().map(|worker| self.overdue_at(worker)).min()
    }

    /// Forgets workers that have missed too many announcements, and returns their number.
    pub(super) fn forget_overdue(&mut self, now: Instant) -> usize {
        let before = self.workers.len();
        let mut workers = std::mem::take(&mut self.workers);
        workers.retain(|_, worker| self.overdue_at(worker) > now);
        self.workers = workers;
        before - self.workers.len()
    }

    /// Counts all workers as seen now: the broker could not be reached, and their announcements were lost.
    pub(super) fn mark_all_seen(&mut self, now: Instant) {
        self.workers.values_mut().for_each(|worker| worker.last_seen = now);
    }

    fn overdue_at(&self, worker: &KnownWorker) -> Instant {
        worker.last_seen + worker.interval * self.limits.missed_announcements
    }

    fn is_wanted(&mut self, state: &WorkerState) -> bool {
        let is_name = |name: &str| {
            let inner = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
            (1..=64).contains(&name.len()) && name.bytes().all(inner)
        };
        let groups = &self.limits.groups;
        if !is_name(&state.worker_id)
            || !is_name(&state.group)
            || !(groups.is_empty() || groups.contains(&state.group))
        {
            return false;
        }
        if let Some(known) = self.workers.get(&state.worker_id) {
            return *known.group == *state.group;
        }
        let has_place = self.workers.len() < self.limits.workers;
        if !has_place && !std::mem::replace(&mut self.has_ignored, true) {
            tracing::warn!(
                limit = self.limits.workers,
                "more workers than `busConfig.maxWorkers`; the others are ignored"
            );
        }
        has_place
    }

    /// Returns the tools: those that all serving workers of a group have. If several groups have one of the same name,
    /// the first group by its name serves it.
    pub(super) fn view(&self) -> DirectoryView {
        let mut groups = BTreeMap::<_, Vec<_>>::new();
        let mut reachable = HashMap::<Arc<str>, BTreeSet<Arc<str>>>::new();
        for worker in self.workers.values() {
            let Some(tools) = &worker.tools else { continue };
            for name in tools.keys() {
                reachable.entry(name.clone()).or_default().insert(worker.group.clone());
            }
            if worker.phase == WorkerPhase::Serving {
                groups.entry(worker.group.clone()).or_default().push(tools);
            }
        }
        let (mut published, mut definitions, mut left_out) = (HashMap::new(), Vec::new(), Vec::new());
        let mut leave_out = |name: &Arc<str>, reason: String| {
            if left_out.len() < MAX_LEFT_OUT {
                left_out.push(LeftOutItem { name: name.clone(), reason: reason.into() });
            }
        };
        for (group, workers) in groups {
            let offered: BTreeMap<_, _> = workers.iter().flat_map(|tools| tools.iter()).collect();
            for (name, tool) in offered {
                let missing = workers.iter().filter(|tools| !tools.contains_key(name)).count();
                if missing > 0 {
                    let all = workers.len();
                    leave_out(
                        name,
                        format!("{missing} of {all} workers of the group {group} do not have it"),
                    );
                } else if published.contains_key(name) {
                    leave_out(
                        name,
                        format!("the group {group} has a tool of the same name as another group"),
                    );
                } else if definitions.len() >= self.limits.tools {
                    leave_out(
                        name,
                        format!("more than {} tools (limits.toolsPerHandler)", self.limits.tools),
                    );
                } else {
                    let (name, group) = (name.clone(), group.clone());
                    let is_repeatable = is_repeatable(tool);
                    published.insert(name.clone(), RemoteTool { name, group, is_repeatable });
                    definitions.push(tool.clone());
                }
            }
        }
        DirectoryView { tools: RemoteTools { published, reachable }, definitions, left_out }
    }
}

fn tool_of(text: &str) -> Option<Arc<Tool>> {
    let definition = Json::parse(text.to_owned()).ok()?;
    Tool::from_definition(&definition).ok().map(Arc::new)
}

#[cfg(test)]
mod tests;
