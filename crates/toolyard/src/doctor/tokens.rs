//! `toolyard doctor --tokens`: the tokens that lists of tools take in the context of a model.

use std::fmt::Write;
use std::process::ExitCode;

use anyhow::Context;
use serde::Deserialize;

use crate::output::{self, OutputFormat, count, print};
use crate::remote::RemoteGateway;

/// The response of `GET /api/v1/tokens`.
#[derive(Deserialize)]
struct TokenReport {
    estimator: String,
    disclosure: String,
    budget: Option<usize>,
    lists: Vec<ListTokens>,
    handlers: Vec<HandlerTokens>,
}

#[derive(Deserialize)]
struct ListTokens {
    disclosure: String,
    tools: usize,
    tokens: usize,
}

#[derive(Deserialize)]
struct HandlerTokens {
    name: String,
    tools: usize,
    tokens: usize,
    /// Groups of built-in tools.
    #[serde(default)]
    groups: Vec<HandlerTokens>,
}

pub(super) async fn run(remote: &RemoteGateway, format: OutputFormat) -> anyhow::Result<ExitCode> {
    let text = remote.get("/api/v1/tokens").await?;
    let tokens: TokenReport = serde_json::from_slice(&text)
        .with_context(|| format!("unexpected response from {remote}: not a token report"))?;
    print(&match format {
        OutputFormat::Text => output::escape_lines(&tokens.text()),
        OutputFormat::Json => String::from_utf8_lossy(&text).into_owned(),
    });
    Ok(ExitCode::SUCCESS)
}

impl TokenReport {
    fn text(&self) -> String {
        let mut text = format!(
            "Size of the list of tools for MCP clients, in tokens (estimator: {}):\n",
            self.estimator
        );
        for list in &self.lists {
            let mark = if list.disclosure == self.disclosure { "*" } else { " " };
            let _ = write!(text, "\n{mark} {}", row(&list.disclosure, 6, list.tools, list.tokens));
        }
        let _ = match self.budget {
            Some(budget) => write!(
                text,
                "\n\n* in use; `auto` means `all` up to {} (`builtins.search`)",
                count(budget, "token")
            ),
            None => {
                write!(text, "\n\nClients get all tools: tool search is not enabled (`builtins.search`).")
            }
        };
        text.push_str("\n\nAll tools, by handler:\n");
        let rows: Vec<_> = self.handlers.iter().flat_map(HandlerTokens::rows).collect();
        let width = rows.iter().map(|(name, ..)| name.len()).max().unwrap_or_default();
        for (name, tools, tokens) in rows {
            let _ = write!(text, "\n  {}", row(&name, width, tools, tokens));
        }
        text
    }
}

impl HandlerTokens {
    /// Returns the name and the numbers of the handler, and those of its groups below.
    fn rows(&self) -> Vec<(String, usize, usize)> {
        let groups = self.groups.iter().map(|group| (format!("  {}", group.name), group.tools, group.tokens));
        [(self.name.clone(), self.tools, self.tokens)].into_iter().chain(groups).collect()
    }
}

fn row(name: &str, width: usize, tools: usize, tokens: usize) -> String {
    let (tools, tokens) = (count(tools, "tool"), count(tokens, "token"));
    format!("{name:<width$}  {tools:>12}  {tokens:>15}")
}
