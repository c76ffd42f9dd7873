//! The health of a gateway's handlers, as `doctor`, `tools` and `call` show it.

use serde::Deserialize;
use toolyard_core::{CauseCode, FailureCause};

use crate::output::{escape_line, note};
use crate::remote::RemoteGateway;

/// The last failure of a handler.
#[derive(Deserialize)]
pub(crate) struct HandlerFailure {
    pub(crate) time: String,
    #[serde(default)]
    code: String,
    message: String,
    #[serde(default)]
    output: Vec<String>,
}

impl HandlerFailure {
    fn cause(&self) -> FailureCause {
        let (message, output) = (self.message.clone(), self.output.clone());
        FailureCause { code: CauseCode::parse(&self.code), message, output }
    }

    /// Returns the lines to show, escaped.
    pub(crate) fn lines(&self) -> impl Iterator<Item = String> {
        self.cause().lines().map(|line| escape_line(&line)).collect::<Vec<_>>().into_iter()
    }

    /// Returns the remedy for a handler of this type, if one is known.
    pub(crate) fn remedy(&self, handler_type: &str) -> Option<&'static str> {
        Some(self.cause().code.remedy(handler_type)).filter(|remedy| !remedy.is_empty())
    }
}

/// The installation of a server's program.
#[derive(Deserialize)]
pub(crate) struct InstallationState {
    launcher: String,
    waiting: bool,
    line: Option<String>,
}

impl InstallationState {
    /// Describes the installation in one line, escaped.
    pub(crate) fn text(&self) -> String {
        let Self { launcher, waiting, line } = self;
        escape_line(&match (waiting, line) {
            (true, _) => format!("waits for other installations by {launcher}"),
            (false, None) => format!("{launcher} installs it, without output so far"),
            (false, Some(line)) => format!("{launcher} installs it | {line}"),
        })
    }
}

/// The members of a status that tell why tools are missing.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct HealthReport {
    discovered_tools: Vec<DiscoveredTool>,
    handlers: Vec<HandlerHealth>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct DiscoveredTool {
    name: String,
    handler_name: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct HandlerHealth {
    name: String,
    phase: String,
    installation: Option<InstallationState>,
    last_error: Option<HandlerFailure>,
}

impl HandlerHealth {
    fn is_starting(&self) -> bool {
        matches!(&*self.phase, "Pending" | "Installing")
    }

    /// Describes a handler that is not ready.
    fn problem(&self) -> Option<String> {
        let Self { name, phase, installation, last_error } = self;
        match (&**phase, installation, last_error) {
            ("Ready", _, _) => None,
            (_, Some(installation), _) => Some(format!("{name} is not ready: {}", installation.text())),
            ("Pending", _, _) => Some(format!("{name} is not ready: still connecting")),
            (_, _, Some(failure)) => Some(format!("{name} is unavailable: {}", failure.cause())),
            (_, _, None) => Some(format!("{name} is unavailable")),
        }
    }

    /// Describes the last failure of a handler after a call of one of its tools has failed.
    fn failure(&self) -> Option<String> {
        let last =
            || Some(format!("the last failure of {}: {}", self.name, self.last_error.as_ref()?.cause()));
        self.problem().or_else(last)
    }
}

/// Prints notes about the handlers that are not ready: their tools may be missing.
pub(crate) async fn note_unready(remote: &RemoteGateway) {
    let Some(report) = report(remote).await else { return };
    unready(&report.handlers).iter().for_each(|problem| note(problem));
}

/// Describes the handlers that are not ready: each that has failed, and those that are starting together.
fn unready(handlers: &[HandlerHealth]) -> Vec<String> {
    let (starting, others): (Vec<_>, Vec<_>) = handlers.iter().partition(|handler| handler.is_starting());
    let mut problems: Vec<_> = others.into_iter().filter_map(HandlerHealth::problem).collect();
    match &starting[..] {
        [] => {}
        [one] => problems.extend(one.problem()),
        several => {
            let names: Vec<_> = several.iter().map(|handler| handler.name.as_str()).collect();
            problems.push(format!("{} handlers are not ready: {}", names.len(), names.join(", ")));
        }
    }
    if !starting.is_empty() {
        problems.push("`toolyard doctor --wait` waits until they are ready".to_owned());
    }
    problems
}

/// Prints a note about the handler of a tool whose call has failed.
pub(crate) async fn note_failure(remote: &RemoteGateway, tool: &str) {
    let Some(report) = report(remote).await else { return };
    let owner = report.discovered_tools.iter().find(|discovered| discovered.name == tool);
    let handlers = report.handlers.iter();
    let handler = owner.and_then(|owner| handlers.clone().find(|handler| handler.name == owner.handler_name));
    handler.and_then(HandlerHealth::failure).iter().for_each(|problem| note(problem));
}

/// Returns the health of the handlers; `None` if the server is no gateway, or does not tell.
async fn report(remote: &RemoteGateway) -> Option<HealthReport> {
    let text = remote.get("/api/v1/status").await.ok()?;
    serde_json::from_slice(&text).ok()
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;
    use serde_json::json;

    use super::*;

    #[test]
    fn problems_of_handlers() {
        let failure = json!({"time": "t", "code": "process_exited", "message": "process exited with status 1",
            "output": ["Error: Cannot find module 'x'", "\u{1b}"]});
        let handlers = json!([
            {"name": "ok", "phase": "Ready", "lastError": null},
            {"name": "ok-again", "phase": "Ready", "lastError": failure},
            {"name": "new", "phase": "Pending"},
            {"name": "npx", "phase": "Installing", "installation": {"launcher": "npx", "waiting": false}},
            {"name": "uvx", "phase": "Installing", "installation": {"launcher": "uvx", "waiting": false, "line": "Installed 3 packages"}},
            {"name": "late", "phase": "Installing", "installation": {"launcher": "uvx", "waiting": true}},
            {"name": "down", "phase": "Unavailable", "lastError": failure},
            {"name": "older", "phase": "Unavailable", "lastError": {"time": "t", "message": "gone"}},
        ]);
        let handlers: Vec<HandlerHealth> = serde_json::from_value(handlers).unwrap();
        let lines = |of: fn(&HandlerHealth) -> Option<String>| {
            handlers.iter().filter_map(of).map(|line| escape_line(&line)).collect::<Vec<_>>().join("\n")
        };
        assert_snapshot!(lines(HandlerHealth::problem), @r"
        new is not ready: still connecting
        npx is not ready: npx installs it, without output so far
        uvx is not ready: uvx installs it | Installed 3 packages
        late is not ready: waits for other installations by uvx
        down is unavailable: process exited with status 1 | Error: Cannot find module 'x' | \u{1b}
        older is unavailable: gone
        ");
        assert_snapshot!(unready(&handlers[..5]).join("\n"), @"
        3 handlers are not ready: new, npx, uvx
        `toolyard doctor --wait` waits until they are ready
        ");
        assert_snapshot!(unready(&handlers[2..3]).join("\n"), @"
        new is not ready: still connecting
        `toolyard doctor --wait` waits until they are ready
        ");
        assert_eq!(unready(&handlers[6..]).len(), 2);
        assert_snapshot!(lines(HandlerHealth::failure).lines().next().unwrap(), @r"the last failure of ok-again: process exited with status 1 | Error: Cannot find module 'x' | \u{1b}");
    }
}
