//! `toolyard doctor`: checks a running gateway.

mod sandbox;
mod tokens;

use std::fmt::Write;
use std::io::{self, ErrorKind};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::Context;
use bytes::Bytes;
use serde::Deserialize;

use crate::handler_health::{HandlerFailure, InstallationState};
use crate::output::{self, OutputFormat, count, print};
use crate::remote::RemoteGateway;

/// Check a running gateway and its handlers
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  toolyard doctor
  toolyard doctor --wait                      wait for servers that are being installed or started
  toolyard doctor --sandbox                   show the isolation of functions and scripts
  toolyard doctor --tokens                    show the tokens that lists of tools take in a model's context
  toolyard doctor --output json               print the response of `GET /api/v1/status`

The exit status is 1 if the gateway or a handler is down, or nothing can run in the sandbox.")]
pub(crate) struct DoctorArgs {
    #[command(flatten)]
    remote: RemoteGateway,

    /// Wait until each handler is ready or has failed
    #[arg(long, conflicts_with_all = ["sandbox", "tokens"])]
    wait: bool,

    /// Show which isolation layers the gateway enforces for functions and scripts
    #[arg(long)]
    sandbox: bool,

    /// Show how many tokens of a model's context the list of tools takes
    #[arg(long, conflicts_with = "sandbox")]
    tokens: bool,
}

/// The members of the response of `GET /api/v1/status` that are shown as text.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct GatewayReport {
    phase: String,
    discovered_tools_count: usize,
    available_tools_count: usize,
    discovered_tools: Vec<DiscoveredTool>,
    handlers: Vec<HandlerReport>,
    list: ToolListSize,
    last_edit: Option<ManifestEdit>,
    version: String,
}

#[derive(Deserialize)]
struct DiscoveredTool {
    name: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct HandlerReport {
    name: String,
    r#type: String,
    endpoint: String,
    phase: String,
    since: String,
    tools: usize,
    protocol: Option<String>,
    installation: Option<InstallationState>,
    last_error: Option<HandlerFailure>,
    #[serde(default)]
    processes: Vec<ProcessReport>,
    #[serde(default)]
    changes: Vec<ChangedTool>,
    #[serde(default)]
    unchecked: Vec<UncheckedTool>,
    #[serde(default)]
    left_out: Vec<LeftOutItem>,
    #[serde(default)]
    tools_with_renamed_arguments: usize,
    #[serde(default)]
    tools_with_illegal_arguments: usize,
}

/// A tool whose arguments are not validated, because its schema cannot be.
#[derive(Deserialize)]
struct UncheckedTool {
    tool: String,
    reason: String,
}

/// An item of a server's list that is not published.
#[derive(Deserialize)]
struct LeftOutItem {
    kind: String,
    name: String,
    reason: String,
}

/// A tool whose definition differs from the accepted one.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ChangedTool {
    tool: String,
    old_digest: Option<String>,
    new_digest: String,
    time: String,
    served: String,
}

impl ChangedTool {
    /// Formats the change as one line.
    pub(crate) fn line(&self) -> String {
        let Self { tool, new_digest, time, .. } = self;
        let (what, old) = match &self.old_digest {
            Some(old) => ("changed", format!("{} -> ", short_digest(old))),
            None => ("added", String::new()),
        };
        let served = match &*self.served {
            "old" => "serving the accepted definition",
            "new" => "serving the current definition",
            _ => "not served",
        };
        output::escape_line(&format!("{tool} {what} at {time}, {old}{}, {served}", short_digest(new_digest)))
    }
}

/// Returns the first twelve hexadecimal digits of a digest with its algorithm.
fn short_digest(digest: &str) -> &str {
    digest.get(..digest.len().min("sha256:".len() + 12)).unwrap_or(digest)
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ProcessReport {
    restarts: u64,
    processes: usize,
    memory_bytes: Option<u64>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ToolListSize {
    tools: usize,
    characters: usize,
    estimated_tokens: usize,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ManifestEdit {
    time: String,
    applied: bool,
    message: String,
}

pub(crate) async fn run(args: DoctorArgs, format: OutputFormat) -> anyhow::Result<ExitCode> {
    if args.sandbox {
        return sandbox::run(&args.remote, format).await;
    }
    if args.tokens {
        return tokens::run(&args.remote, format).await;
    }
    let (text, status) = match args.wait {
        true => output::with_wait_notice("handlers that are not ready", settled_report(&args.remote)).await?,
        false => report(&args.remote).await?,
    };
    print(&match format {
        OutputFormat::Text => output::escape_lines(&status_text(&status)),
        OutputFormat::Json => String::from_utf8_lossy(&text).into_owned(),
    });
    let down = status.handlers.iter().filter(|handler| handler.is_down()).count();
    Ok(if down == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Returns the status of the gateway, and its text.
async fn report(remote: &RemoteGateway) -> anyhow::Result<(Bytes, GatewayReport)> {
    let text = remote.get("/api/v1/status").await?;
    let status = serde_json::from_slice(&text)
        .with_context(|| format!("unexpected response from {remote}: not a status"))?;
    Ok((text, status))
}

/// Time between two requests for the status, while handlers start.
const STATUS_INTERVAL: Duration = Duration::from_millis(300);

/// Maximum time to wait for a gateway that has been started just now.
const GATEWAY_START: Duration = Duration::from_secs(10);

/// Returns the first status in which no handler is starting. The time limits of the gateway end every start.
async fn settled_report(remote: &RemoteGateway) -> anyhow::Result<(Bytes, GatewayReport)> {
    let begun = Instant::now();
    loop {
        let (text, status) = match report(remote).await {
            Err(error) if is_refused(&error) && begun.elapsed() < GATEWAY_START => {
                tokio::time::sleep(STATUS_INTERVAL).await;
                continue;
            }
            report => report?,
        };
        if !status.handlers.iter().any(HandlerReport::is_starting) {
            return Ok((text, status));
        }
        tokio::time::sleep(STATUS_INTERVAL).await;
    }
}

/// True if no program listens at the address.
fn is_refused(error: &anyhow::Error) -> bool {
    let mut causes = error.chain().filter_map(|cause| cause.downcast_ref::<io::Error>());
    causes.any(|error| error.kind() == ErrorKind::ConnectionRefused)
}

/// Prefix that some clients add to the names of tools.
const CLIENT_PREFIX: &str = "mcp__toolyard__";
/// Tokens of a list from which it is named as large: a tenth of a large model's context.
const MANY_TOKENS: usize = 20_000;
/// Maximum length of a tool name in the APIs of models.
const MAX_NAME_LENGTH: usize = 64;

/// Maximum number of changed tools, and of unchecked ones, that are named per handler; the rest are counted.
const MAX_CHANGES_NAMED: usize = 10;

fn status_text(status: &GatewayReport) -> String {
    let ready = status.handlers.iter().filter(|handler| handler.phase == "Ready").count();
    let mut text = format!(
        "Toolyard {}: {}. {ready} of {} handlers ready, {} of {} tools available.\n",
        status.version,
        status.phase,
        status.handlers.len(),
        status.available_tools_count,
        status.discovered_tools_count,
    );
    let width = status.handlers.iter().map(|handler| handler.name.len()).max().unwrap_or_default();
    for handler in &status.handlers {
        text.push('\n');
        text.push_str(&handler.line(width));
    }
    let ToolListSize { tools, characters, estimated_tokens } = &status.list;
    let _ = write!(
        text,
        "\n\nThe list of {} takes {characters} characters, about {estimated_tokens} tokens of a model's context.",
        count(*tools, "tool")
    );
    if *estimated_tokens > MANY_TOKENS {
        text.push_str(
            "\nThat leaves a model little room: publish fewer tools (`operationFilter` or `filter` of an OpenAPI handler, \
             `allow` of others), or list `search_tools` instead of them (`builtins.search`, docs/search.md).",
        );
    }
    let long: Vec<_> = status.discovered_tools.iter().map(|tool| &*tool.name).filter(is_long).collect();
    if !long.is_empty() {
        let _ = write!(
            text,
            "\nWith the prefix `{CLIENT_PREFIX}` of some clients, these names exceed the {MAX_NAME_LENGTH} characters that \
             models accept: {}.\nUse `overrides` to shorten them.",
            long.join(", ")
        );
    }
    text.push_str(&processes(status));
    if let Some(edit) = &status.last_edit {
        let word = if edit.applied { "applied" } else { "rejected, nothing changed" };
        let _ = write!(text, "\nLast manifest edit ({}) {word}: {}", edit.time, edit.message);
    }
    text
}

fn is_long(name: &&str) -> bool {
    CLIENT_PREFIX.len() + name.len() > MAX_NAME_LENGTH
}

fn processes(status: &GatewayReport) -> String {
    let all = || status.handlers.iter().flat_map(|handler| &handler.processes);
    let alive: usize = all().map(|process| process.processes).sum();
    let memory: u64 = all().filter_map(|process| process.memory_bytes).sum();
    let restarts: u64 = all().map(|process| process.restarts).sum();
    match alive {
        0 => String::new(),
        _ => format!(
            "\nRunning processes: {alive}, private memory: {} MiB, restarts: {restarts}.",
            memory >> 20
        ),
    }
}

impl HandlerReport {
    fn is_down(&self) -> bool {
        self.phase == "Unavailable"
    }

    fn is_starting(&self) -> bool {
        matches!(&*self.phase, "Pending" | "Installing")
    }

    /// Formats the changed tools, one per line.
    fn changed_tools(&self) -> String {
        let Some(first) = self.changes.first() else { return String::new() };
        let lines =
            self.changes.iter().take(MAX_CHANGES_NAMED).map(|change| format!("\n        {}", change.line()));
        let more = self.changes.len().saturating_sub(MAX_CHANGES_NAMED);
        let more = if more > 0 { format!("\n        and {more} more") } else { String::new() };
        let tool = if self.changes.len() == 1 {
            format!(" {}", output::escape_line(&first.tool))
        } else {
            String::new()
        };
        format!(
            "{}{more}\n        run `toolyard accept {}{tool}` to accept",
            lines.collect::<String>(),
            self.name
        )
    }

    /// Formats the tools that are served without validation of arguments, one per line.
    fn unchecked_tools(&self) -> String {
        let line = |unchecked: &UncheckedTool| {
            let UncheckedTool { tool, reason } = unchecked;
            format!(
                "\n        {}",
                output::escape_line(&format!("{tool}: arguments are not validated: {reason}"))
            )
        };
        self.unchecked.iter().take(MAX_CHANGES_NAMED).map(line).collect::<String>()
            + &rest(self.unchecked.len())
    }

    /// Formats the items that are not published, one per line.
    fn left_out_items(&self) -> String {
        let line = |item: &LeftOutItem| {
            let LeftOutItem { kind, name, reason } = item;
            format!("\n        {}", output::escape_line(&format!("left out the {kind} {name}: {reason}")))
        };
        self.left_out.iter().take(MAX_CHANGES_NAMED).map(line).collect::<String>()
            + &rest(self.left_out.len())
    }

    /// Formats the numbers of tools with arguments whose names the interfaces of models refuse.
    fn argument_names(&self) -> String {
        let mut lines = String::new();
        if self.tools_with_renamed_arguments > 0 {
            let tools = count(self.tools_with_renamed_arguments, "tool");
            let _ = write!(lines, "\n        {tools} with renamed arguments: models refuse their own names");
        }
        if self.tools_with_illegal_arguments > 0 {
            let tools = count(self.tools_with_illegal_arguments, "tool");
            let remedy =
                if self.r#type == "mcp" { "; set `renameArguments: true` in the handler" } else { "" };
            let _ = write!(lines, "\n        {tools} with argument names that models refuse{remedy}");
        }
        lines
    }

    /// Formats the handler as one line, with further lines for changed or unchecked tools and the last error.
    fn line(&self, width: usize) -> String {
        let word = match &*self.phase {
            "Ready" => "ok",
            _ if self.is_starting() => "wait",
            _ => "DOWN",
        };
        let Self { name, r#type, endpoint, tools, since, .. } = self;
        let protocol = self.protocol.as_deref().unwrap_or(r#type);
        let line = output::escape_line(&format!(
            "  {word:<4}  {name:<width$}  {}, {protocol}, {endpoint}, since {since}",
            count(*tools, "tool")
        ));
        let line = line + &self.changed_tools() + &self.unchecked_tools();
        let line = line + &self.left_out_items() + &self.argument_names();
        line + &self.health()
    }

    /// Formats the installation and the last failure, with its remedy while the handler is down.
    fn health(&self) -> String {
        let installation = self.installation.iter().map(InstallationState::text);
        let mut lines: Vec<_> = installation.collect();
        match &self.last_error {
            Some(error) if self.is_down() => {
                lines.extend(error.lines());
                lines.extend(error.remedy(&self.r#type).map(|remedy| format!("remedy: {remedy}")));
            }
            Some(error) => {
                let mut failure = error.lines();
                lines.extend(failure.next().map(|first| format!("failed at {}: {first}", error.time)));
                lines.extend(failure);
            }
            None => {}
        }
        lines.iter().map(|line| format!("\n        {line}")).collect()
    }
}

/// Returns a line about the items beyond the limit.
fn rest(items: usize) -> String {
    match items.saturating_sub(MAX_CHANGES_NAMED) {
        0 => String::new(),
        more => format!("\n        and {more} more"),
    }
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;
    use serde_json::json;

    use super::*;

    #[test]
    fn tools_with_illegal_arguments_are_counted() {
        let handler = json!({
            "name": "files", "type": "mcp", "endpoint": "stdio://files", "phase": "Ready", "since": "today", "tools": 12,
            "protocol": null, "lastError": null, "toolsWithRenamedArguments": 1, "toolsWithIllegalArguments": 2,
        });
        let report: HandlerReport = serde_json::from_value(handler).unwrap();
        assert_snapshot!(report.line(5), @r"
          ok    files  12 tools, mcp, stdio://files, since today
                1 tool with renamed arguments: models refuse their own names
                2 tools with argument names that models refuse; set `renameArguments: true` in the handler
        ");
    }

    #[test]
    fn failures_are_shown_with_output_and_remedy() {
        let failure = json!({"time": "today", "code": "process_exited", "message": "process exited with status 1",
            "output": ["node:internal/modules", "Error: Cannot find module '/x'"]});
        let handler = |phase: &str, installation: serde_json::Value, failure: &serde_json::Value| {
            let handler = json!({
                "name": "files", "type": "mcp", "endpoint": "stdio://npx", "phase": phase, "since": "today", "tools": 0,
                "protocol": null, "lastError": failure, "installation": installation,
            });
            serde_json::from_value::<HandlerReport>(handler).unwrap().line(5)
        };
        let installation = json!({"launcher": "npx", "waiting": false, "line": "added 3 packages"});
        let lines = [
            handler("Unavailable", json!(null), &failure),
            handler("Ready", json!(null), &failure),
            handler("Installing", installation, &json!(null)),
        ];
        assert_snapshot!(lines.join("\n"), @r"
          DOWN  files  0 tools, mcp, stdio://npx, since today
                process exited with status 1
                | node:internal/modules
                | Error: Cannot find module '/x'
                remedy: run its command in a terminal and read its output
          ok    files  0 tools, mcp, stdio://npx, since today
                failed at today: process exited with status 1
                | node:internal/modules
                | Error: Cannot find module '/x'
          wait  files  0 tools, mcp, stdio://npx, since today
                npx installs it | added 3 packages
        ");
    }

    #[test]
    fn remedies_depend_on_the_type() {
        let lines = ["openapi", "grpc"].map(|kind| {
            let failure = json!({"time": "today", "code": "description", "message": "no description", "output": []});
            let handler = json!({
                "name": "shop", "type": kind, "endpoint": "shop:1", "phase": "Unavailable", "since": "today", "tools": 0,
                "protocol": null, "lastError": failure,
            });
            serde_json::from_value::<HandlerReport>(handler).unwrap().line(4)
        });
        assert_snapshot!(lines.join("\n"), @r"
          DOWN  shop  0 tools, openapi, shop:1, since today
                no description
                remedy: check `specURL`, and the description itself
          DOWN  shop  0 tools, grpc, shop:1, since today
                no description
                remedy: check `descriptorSet` and `filter` of `grpcConfig`
        ");
    }

    #[test]
    fn left_out_items_are_listed() {
        let reason = "nested more than 512 levels deep, the limit of `limits.jsonDepth`";
        let handler = json!({
            "name": "files", "type": "mcp", "endpoint": "stdio://files", "phase": "Ready", "since": "today", "tools": 12,
            "protocol": null, "lastError": null, "leftOut": [{"kind": "tool", "name": "deep", "reason": reason}],
        });
        let report: HandlerReport = serde_json::from_value(handler).unwrap();
        assert_snapshot!(report.line(5), @r"
          ok    files  12 tools, mcp, stdio://files, since today
                left out the tool deep: nested more than 512 levels deep, the limit of `limits.jsonDepth`
        ");
    }

    #[test]
    fn tools_without_validation_are_listed_up_to_a_limit() {
        let unchecked: Vec<_> = (0..12)
            .map(|number| json!({"tool": format!("t{number}\u{1b}"), "reason": "too many branches"}))
            .collect();
        let handler = json!({
            "name": "files", "type": "mcp", "endpoint": "stdio://files", "phase": "Ready", "since": "today", "tools": 12,
            "protocol": null, "lastError": null, "unchecked": unchecked,
        });
        let report: HandlerReport = serde_json::from_value(handler).unwrap();
        let text = report.line(5);
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(lines.len(), 12);
        assert_snapshot!([lines[0], lines[1], lines[11]].join("\n"), @r"
          ok    files  12 tools, mcp, stdio://files, since today
                t0\u{1b}: arguments are not validated: too many branches
                and 2 more
        ");
    }
}
