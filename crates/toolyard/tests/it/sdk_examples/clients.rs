//! The clients, and the ways on which they meet an example.

use serde_json::Value;
use tempfile::TempDir;

use super::{Served, built};
use crate::support::peers;
use crate::support::process::{Ended, run};
use crate::support::scripted::script;

/// How a client meets an example.
#[derive(Debug, Clone, Copy)]
pub(super) struct Way {
    transport: Transport,
    era: Era,
}

#[derive(Debug, Clone, Copy)]
enum Transport {
    Stdio,
    Http,
    /// The one of 2024-11-05.
    Sse,
}

#[derive(Debug, Clone, Copy)]
enum Era {
    Legacy,
    Modern,
}

impl Way {
    const fn era_of_the_inspector(self) -> &'static str {
        match self.era {
            Era::Legacy => "legacy",
            Era::Modern => "modern",
        }
    }

    const fn mode_of_python(self) -> &'static str {
        match self.era {
            Era::Legacy => "legacy",
            Era::Modern => "2026-07-28",
        }
    }
}

const fn way(transport: Transport, era: Era) -> Way {
    Way { transport, era }
}

pub(super) const LEGACY: [Way; 2] = [way(Transport::Stdio, Era::Legacy), way(Transport::Http, Era::Legacy)];
pub(super) const MODERN: [Way; 2] = [way(Transport::Stdio, Era::Modern), way(Transport::Http, Era::Modern)];
const SSE: Way = way(Transport::Sse, Era::Legacy);

/// Both eras, on the transport that has the most to do for questions and changes.
pub(super) const HTTP: [Way; 2] = [LEGACY[1], MODERN[1]];

/// Both eras on the transports that both have.
pub(super) const BOTH: [Way; 4] = [LEGACY[0], LEGACY[1], MODERN[0], MODERN[1]];

/// All ways that there are.
pub(super) const ALL: [Way; 5] = [LEGACY[0], LEGACY[1], SSE, MODERN[0], MODERN[1]];

/// An example that can be met, and a home for who meets it.
struct Site {
    home: TempDir,
    /// A URL, or the program that the client starts.
    target: String,
    _served: Option<Served>,
}

impl Site {
    #[track_caller]
    fn new(example: &str, way: Way) -> Self {
        let home = TempDir::new().unwrap();
        let served = match way.transport {
            Transport::Stdio => None,
            Transport::Http | Transport::Sse => Some(Served::new(example, home.path())),
        };
        let target = match (&served, way.transport) {
            (None, _) => built(example).to_str().unwrap().to_owned(),
            (Some(served), Transport::Sse) => served.url.replace("/mcp", "/sse"),
            (Some(served), _) => served.url.clone(),
        };
        Self { home, target, _served: served }
    }
}

/// What the Python SDK sees of an example, on these ways the same.
#[track_caller]
pub(super) fn python(example: &str, ways: &[Way], steps: &Value) -> String {
    same(ways.iter().map(|&way| (way, walk(&Site::new(example, way), way.mode_of_python(), steps))))
}

/// What the Python SDK sees where it takes tasks, which only those of the modern era are.
#[track_caller]
pub(super) fn python_with_tasks(example: &str, steps: &Value) -> String {
    same(MODERN.into_iter().map(|way| (way, walk(&Site::new(example, way), "tasks", steps))))
}

#[track_caller]
fn walk(site: &Site, mode: &str, steps: &Value) -> String {
    let mut client = peers::command(peers::peer("python/bin/python"), site.home.path());
    let ended = run(client.arg(script("walk.py")).args([&site.target, mode, &steps.to_string()]));
    assert_eq!(ended.code, 0, "{ended}");
    ended.stdout
}

/// What the Inspector prints, one line for each time that it is started, on these ways the same.
#[track_caller]
pub(super) fn inspector(example: &str, ways: &[Way], asks: &[&[&str]]) -> String {
    same(ways.iter().map(|&way| {
        let site = Site::new(example, way);
        (way, asks.iter().map(|ask| inspect(&site, way, ask)).collect())
    }))
}

#[track_caller]
fn inspect(site: &Site, way: Way, ask: &[&str]) -> String {
    let mut inspector = peers::command("mcp-inspector", site.home.path());
    inspector.args(["--cli", "-q", "--format", "json", "--protocol-era", way.era_of_the_inspector()]);
    match way.transport {
        Transport::Stdio => inspector.args([&site.target, "--transport", "stdio"]),
        Transport::Http => inspector.args(["--server-url", &site.target, "--transport", "http"]),
        Transport::Sse => inspector.args(["--server-url", &site.target, "--transport", "sse"]),
    };
    let ended = run(inspector.args(ask));
    // It prints results, and puts errors elsewhere.
    let said = if ended.code == 0 { &ended.stdout } else { &ended.stderr };
    let mut said = sorted(said);
    // Only where it asks for more than usual does it show that a result is complete.
    if let Some(result) = said.get_mut("result").and_then(Value::as_object_mut) {
        result.remove("resultType");
    }
    format!("{said}\n")
}

/// What the Inspector prints. The order of members is its own, and is another one in each era.
#[track_caller]
fn sorted(printed: &str) -> Value {
    let mut value: Value = serde_json::from_str(printed).unwrap_or_else(|_| panic!("no JSON: {printed}"));
    value.sort_all_objects();
    value
}

/// `mcpdo`: the Inspector with a connection that stays, which lets its user answer questions. It ends when this is
/// dropped.
pub(super) struct Connection(Site);

/// What is seen by `mcpdo`, on these ways the same.
#[track_caller]
pub(super) fn connected(example: &str, ways: &[Way], see: impl Fn(&Connection) -> String) -> String {
    same(ways.iter().map(|&way| (way, see(&Connection::new(example, way)))))
}

impl Connection {
    #[track_caller]
    fn new(example: &str, way: Way) -> Self {
        let connection = Self(Site::new(example, way));
        connection.run(&["connect", &connection.0.target, "--era", way.era_of_the_inspector()]);
        connection
    }

    /// What a command prints.
    #[track_caller]
    pub(super) fn ask(&self, command: &[&str]) -> Value {
        sorted(&self.run(&[&["--connection", &self.0.target], command].concat()).stdout)
    }

    #[track_caller]
    fn run(&self, command: &[&str]) -> Ended {
        let mut mcpdo = peers::command("mcpdo", self.0.home.path());
        let ended = run(mcpdo.args(["--format", "json"]).args(command));
        assert_eq!(ended.code, 0, "{ended}");
        ended
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.run(&["daemon", "stop"]);
    }
}

/// What was seen on each of these ways, which must not depend on the way.
#[track_caller]
fn same(mut seen: impl Iterator<Item = (Way, String)>) -> String {
    let (_, first) = seen.next().unwrap();
    for (way, other) in seen {
        assert_eq!(other, first, "{way:?}");
    }
    first
}
