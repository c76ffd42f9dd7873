use super::*;

const INTERVAL_MS: i64 = 1000;

/// A directory, and its time.
struct Case {
    directory: WorkerDirectory,
    now: Instant,
}

impl Case {
    fn new(groups: &[&str]) -> Self {
        let limits = DirectoryLimits {
            groups: groups.iter().map(|&group| group.to_owned()).collect(),
            missed_announcements: 3,
            workers: 3,
            tools: 4,
            definition_bytes: 1000,
        };
        Self { directory: WorkerDirectory::new(limits), now: Instant::now() }
    }

    fn state(&mut self, worker: &str, group: &str, revision: i64, phase: WorkerPhase) -> Consequence {
        let state = WorkerState {
            worker_id: worker.to_owned(),
            group: group.to_owned(),
            revision,
            parts: 1,
            interval_ms: INTERVAL_MS,
            phase: phase.as_str().to_owned(),
        };
        self.directory.note_state(&state, self.now)
    }

    fn tools(&mut self, worker: &str, revision: i64, names: &str) -> Consequence {
        self.part(worker, revision, 0, names)
    }

    fn part(&mut self, worker: &str, revision: i64, part: i64, names: &str) -> Consequence {
        let tools = names.split_whitespace().map(|name| format!(r#"{{"name": "{name}"}}"#)).collect();
        let tools = WorkerTools { worker_id: worker.to_owned(), revision, part, tools };
        self.directory.note_tools(&tools, self.now)
    }

    fn serve(&mut self, worker: &str, group: &str, names: &str) {
        self.state(worker, group, 1, WorkerPhase::Serving);
        self.tools(worker, 1, names);
    }

    fn wait(&mut self, millis: u64) -> usize {
        self.now += Duration::from_millis(millis);
        self.directory.forget_overdue(self.now)
    }

    /// Asserts what is published: `tool@group`, and the names that are left out.
    #[track_caller]
    fn check(&self, published: &str, left_out: &str) {
        let view = self.directory.view();
        let group = |tool: &Arc<Tool>| view.tools.get(&tool.name).expect("a route").group.clone();
        let shown: Vec<_> =
            view.definitions.iter().map(|tool| format!("{}@{}", tool.name, group(tool))).collect();
        let others: Vec<_> = view.left_out.iter().map(|item| &*item.name).collect();
        assert_eq!((&*shown.join(" "), &*others.join(" ")), (published, left_out));
    }
}

#[test]
fn tools_of_all_workers_of_a_group_are_published() {
    let mut case = Case::new(&[]);
    case.check("", "");
    case.serve("a", "east", "add subtract");
    case.check("add@east subtract@east", "");
    // A worker whose tools are unknown does not count yet.
    assert_eq!(case.state("b", "east", 1, WorkerPhase::Serving), Consequence::Ask);
    case.check("add@east subtract@east", "");
    assert_eq!(case.directory.incomplete(), ["b"]);
    assert_eq!(case.tools("b", 1, "add multiply"), Consequence::Changed);
    case.check("add@east", "multiply subtract");
    // The first group by its name has a tool of several groups.
    case.serve("c", "west", "add divide");
    case.check("add@east divide@west", "multiply subtract add");
}

#[test]
fn worker_that_stops_takes_its_tools_along() {
    let mut case = Case::new(&[]);
    case.serve("a", "east", "add");
    let tool = case.directory.view().tools.get("add").cloned().expect("a tool");
    assert_eq!(case.state("a", "east", 1, WorkerPhase::Stopping), Consequence::Changed);
    case.check("", "");
    // Its running calls may still be answered.
    assert!(case.directory.view().tools.is_reachable(&tool));
    assert_eq!(case.state("a", "east", 1, WorkerPhase::Stopped), Consequence::Changed);
    assert!(!case.directory.view().tools.is_reachable(&tool));
    assert_eq!(case.state("a", "east", 1, WorkerPhase::Stopped), Consequence::Nothing);
}

#[test]
fn silent_worker_is_forgotten_after_missed_announcements() {
    let mut case = Case::new(&[]);
    case.serve("a", "east", "add");
    assert_eq!(case.wait(2900), 0);
    assert_eq!(case.state("a", "east", 1, WorkerPhase::Serving), Consequence::Nothing);
    assert_eq!(case.wait(2900), 0);
    assert_eq!(case.wait(200), 1);
    case.check("", "");
    // The time in which the broker was down does not count.
    case.serve("a", "east", "add");
    case.now += Duration::from_secs(60);
    case.directory.mark_all_seen(case.now);
    assert_eq!(case.wait(2900), 0);
    case.check("add@east", "");
}

#[test]
fn changed_tools_are_published_once_they_are_complete() {
    let mut case = Case::new(&[]);
    case.serve("a", "east", "add");
    assert_eq!(case.state("a", "east", 2, WorkerPhase::Serving), Consequence::Ask);
    assert_eq!(case.tools("a", 1, "late"), Consequence::Nothing);
    case.check("add@east", "");
    assert_eq!(case.tools("a", 2, "subtract"), Consequence::Changed);
    assert_eq!(case.tools("a", 2, "again"), Consequence::Nothing);
    case.check("subtract@east", "");
    let state = WorkerState {
        worker_id: "a".into(),
        group: "east".into(),
        revision: 3,
        parts: 2,
        interval_ms: INTERVAL_MS,
        phase: "serving".into(),
    };
    case.directory.note_state(&state, case.now);
    assert_eq!(case.part("a", 3, 1, "two"), Consequence::Nothing);
    assert_eq!(case.part("a", 3, 7, "seven"), Consequence::Nothing);
    assert_eq!(case.part("a", 3, 0, "one"), Consequence::Changed);
    case.check("one@east two@east", "");
}

#[test]
fn forged_announcements_are_bounded() {
    let mut case = Case::new(&["east", "x"]);
    for (worker, group) in [("a", "other"), ("a", "tool.invoke"), ("a", ""), ("", "east"), ("a b", "east")] {
        assert_eq!(
            case.state(worker, group, 1, WorkerPhase::Serving),
            Consequence::Nothing,
            "{worker} {group}"
        );
    }
    assert!(case.directory.is_empty());
    case.serve("a", "east", "t1 t2 t3 t4 t5 t6");
    case.check("t1@east t2@east t3@east t4@east", "");
    // A worker does not change its group.
    assert_eq!(case.state("a", "x", 1, WorkerPhase::Serving), Consequence::Nothing);
    for worker in ["b", "c", "d", "e"] {
        case.state(worker, "x", 1, WorkerPhase::Serving);
    }
    assert_eq!(case.directory.incomplete(), ["b", "c"]);
    let long = "n".repeat(1000);
    assert_eq!(case.tools("b", 1, &long), Consequence::Changed);
    let mut state = WorkerState { worker_id: "c".into(), group: "x".into(), ..WorkerState::default() };
    for (parts, interval_ms) in [(i64::MAX, i64::MAX), (-1, -1), (0, 0)] {
        state = WorkerState { revision: state.revision + 7, parts, interval_ms, ..state };
        case.directory.note_state(&state, case.now);
        case.part("c", state.revision, -1, "t");
    }
    for text in ["{", "[]", "{}", r#"{"name": ""}"#, r#"{"name": 1}"#, &"[".repeat(900)] {
        assert!(tool_of(text).is_none(), "{text}");
    }
}
