//! The clients, and their connections to an example.

use serde_json::Value;
use tempfile::TempDir;
use toolyard_testing::peers;
use toolyard_testing::process::{ProgramResult, run};
use toolyard_testing::scripted_server::script;

use super::{HttpExample, example_path};

/// The transport and era with which a client connects to an example.
#[derive(Debug, Clone, Copy)]
pub(super) struct ClientSetup {
    transport: ExampleTransport,
    era: ClientEra,
}

#[derive(Debug, Clone, Copy)]
enum ExampleTransport {
    Stdio,
    Http,
    /// HTTP+SSE of revision 2024-11-05.
    Sse,
}

#[derive(Debug, Clone, Copy)]
enum ClientEra {
    Legacy,
    Modern,
}

impl ClientSetup {
    const fn era_of_the_inspector(self) -> &'static str {
        match self.era {
            ClientEra::Legacy => "legacy",
            ClientEra::Modern => "modern",
        }
    }

    const fn mode_of_python(self) -> &'static str {
        match self.era {
            ClientEra::Legacy => "legacy",
            ClientEra::Modern => "2026-07-28",
        }
    }
}

const fn setup(transport: ExampleTransport, era: ClientEra) -> ClientSetup {
    ClientSetup { transport, era }
}

pub(super) const LEGACY: [ClientSetup; 2] =
    [setup(ExampleTransport::Stdio, ClientEra::Legacy), setup(ExampleTransport::Http, ClientEra::Legacy)];
pub(super) const MODERN: [ClientSetup; 2] =
    [setup(ExampleTransport::Stdio, ClientEra::Modern), setup(ExampleTransport::Http, ClientEra::Modern)];
const SSE: ClientSetup = setup(ExampleTransport::Sse, ClientEra::Legacy);

/// Both eras on streamable HTTP, which has the most work with questions and changes.
pub(super) const HTTP: [ClientSetup; 2] = [LEGACY[1], MODERN[1]];

/// Both eras on the transports that both support.
pub(super) const BOTH: [ClientSetup; 4] = [LEGACY[0], LEGACY[1], MODERN[0], MODERN[1]];

/// All transports and eras.
pub(super) const ALL: [ClientSetup; 5] = [LEGACY[0], LEGACY[1], SSE, MODERN[0], MODERN[1]];

/// An example to connect to, and a home directory for the client.
struct ExampleTarget {
    home: TempDir,
    /// A URL, or the program that the client starts.
    target: String,
    _served: Option<HttpExample>,
}

impl ExampleTarget {
    #[track_caller]
    fn new(example: &str, setup: ClientSetup) -> Self {
        let home = TempDir::new().unwrap();
        let served = match setup.transport {
            ExampleTransport::Stdio => None,
            ExampleTransport::Http | ExampleTransport::Sse => Some(HttpExample::new(example, home.path())),
        };
        let target = match (&served, setup.transport) {
            (None, _) => example_path(example).to_str().unwrap().to_owned(),
            (Some(served), ExampleTransport::Sse) => served.url.replace("/mcp", "/sse"),
            (Some(served), _) => served.url.clone(),
        };
        Self { home, target, _served: served }
    }
}

/// Returns the transcript of the Python SDK, which must be the same for all setups.
#[track_caller]
pub(super) fn python(example: &str, setups: &[ClientSetup], steps: &Value) -> String {
    assert_same(
        setups
            .iter()
            .map(|&setup| (setup, walk(&ExampleTarget::new(example, setup), setup.mode_of_python(), steps))),
    )
}

/// Returns the transcript of the Python SDK with tasks, which it supports only in the stateless era.
#[track_caller]
pub(super) fn python_with_tasks(example: &str, steps: &Value) -> String {
    assert_same(
        MODERN.into_iter().map(|setup| (setup, walk(&ExampleTarget::new(example, setup), "tasks", steps))),
    )
}

#[track_caller]
fn walk(target: &ExampleTarget, mode: &str, steps: &Value) -> String {
    let mut client = peers::command(peers::peer("python/bin/python"), target.home.path());
    let ended = run(client.arg(script("walk.py")).args([&target.target, mode, &steps.to_string()]));
    assert_eq!(ended.code, 0, "{ended}");
    ended.stdout
}

/// Returns the output of the Inspector, one line for each run, which must be the same for all setups.
#[track_caller]
pub(super) fn inspector(example: &str, setups: &[ClientSetup], asks: &[&[&str]]) -> String {
    assert_same(setups.iter().map(|&setup| {
        let target = ExampleTarget::new(example, setup);
        (setup, asks.iter().map(|ask| inspect(&target, setup, ask)).collect())
    }))
}

#[track_caller]
fn inspect(target: &ExampleTarget, setup: ClientSetup, ask: &[&str]) -> String {
    let mut inspector = peers::command("mcp-inspector", target.home.path());
    inspector.args(["--cli", "-q", "--format", "json", "--protocol-era", setup.era_of_the_inspector()]);
    match setup.transport {
        ExampleTransport::Stdio => inspector.args([&target.target, "--transport", "stdio"]),
        ExampleTransport::Http => inspector.args(["--server-url", &target.target, "--transport", "http"]),
        ExampleTransport::Sse => inspector.args(["--server-url", &target.target, "--transport", "sse"]),
    };
    let ended = run(inspector.args(ask));
    // The Inspector prints errors elsewhere.
    let printed = if ended.code == 0 { &ended.stdout } else { &ended.stderr };
    let mut printed = sorted(printed);
    // The Inspector shows `resultType` only for requests with special parameters.
    if let Some(result) = printed.get_mut("result").and_then(Value::as_object_mut) {
        result.remove("resultType");
    }
    format!("{printed}\n")
}

/// Parses the output of the Inspector. The order of members differs between eras.
#[track_caller]
fn sorted(printed: &str) -> Value {
    let mut value: Value = serde_json::from_str(printed).unwrap_or_else(|_| panic!("no JSON: {printed}"));
    value.sort_all_objects();
    value
}

/// A session of `mcpdo`: the Inspector with a persistent connection and answers to questions. It ends on drop.
pub(super) struct McpdoSession(ExampleTarget);

/// Returns the transcript of `mcpdo`, which must be the same for all setups.
#[track_caller]
pub(super) fn connected(
    example: &str,
    setups: &[ClientSetup],
    see: impl Fn(&McpdoSession) -> String,
) -> String {
    assert_same(setups.iter().map(|&setup| (setup, see(&McpdoSession::new(example, setup)))))
}

impl McpdoSession {
    #[track_caller]
    fn new(example: &str, setup: ClientSetup) -> Self {
        let connection = Self(ExampleTarget::new(example, setup));
        connection.run(&["connect", &connection.0.target, "--era", setup.era_of_the_inspector()]);
        connection
    }

    /// Runs a command and returns its output.
    #[track_caller]
    pub(super) fn run_json(&self, command: &[&str]) -> Value {
        sorted(&self.run(&[&["--connection", &self.0.target], command].concat()).stdout)
    }

    #[track_caller]
    fn run(&self, command: &[&str]) -> ProgramResult {
        let mut mcpdo = peers::command("mcpdo", self.0.home.path());
        let ended = run(mcpdo.args(["--format", "json"]).args(command));
        assert_eq!(ended.code, 0, "{ended}");
        ended
    }
}

impl Drop for McpdoSession {
    fn drop(&mut self) {
        self.run(&["daemon", "stop"]);
    }
}

/// Asserts that all transcripts are equal and returns one.
#[track_caller]
fn assert_same(mut seen: impl Iterator<Item = (ClientSetup, String)>) -> String {
    let (_, first) = seen.next().unwrap();
    for (setup, other) in seen {
        assert_eq!(other, first, "{setup:?}");
    }
    first
}
