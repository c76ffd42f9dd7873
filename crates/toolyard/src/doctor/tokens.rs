//! `toolyard doctor --tokens`: how much of a model's context the lists of tools take.

use std::fmt::Write;
use std::process::ExitCode;

use anyhow::Context;
use serde::Deserialize;

use crate::output::{self, Format, count, print};
use crate::remote::Remote;

/// What is read of the tokens.
#[derive(Deserialize)]
struct Tokens {
    estimator: String,
    disclosure: String,
    budget: Option<usize>,
    lists: Vec<List>,
    handlers: Vec<Handler>,
}

#[derive(Deserialize)]
struct List {
    disclosure: String,
    tools: usize,
    tokens: usize,
}

#[derive(Deserialize)]
struct Handler {
    name: String,
    tools: usize,
    tokens: usize,
}

pub(super) async fn run(remote: &Remote, format: Format) -> anyhow::Result<ExitCode> {
    let text = remote.get("/api/v1/tokens").await?;
    let tokens: Tokens =
        serde_json::from_slice(&text).with_context(|| format!("{remote} says nothing of tokens"))?;
    print(&match format {
        Format::Text => output::lines(&tokens.text()),
        Format::Json => String::from_utf8_lossy(&text).into_owned(),
    });
    Ok(ExitCode::SUCCESS)
}

impl Tokens {
    fn text(&self) -> String {
        let mut text = format!(
            "The list of tools, as MCP clients are given it, in tokens of a model (estimator: {}):\n",
            self.estimator
        );
        for list in &self.lists {
            let mark = if list.disclosure == self.disclosure { "*" } else { " " };
            let _ = write!(text, "\n{mark} {}", row(&list.disclosure, 6, list.tools, list.tokens));
        }
        let _ = match self.budget {
            Some(budget) => write!(
                text,
                "\n\n* is what is given. `auto` is `all` up to {} (`builtins.search`).",
                count(budget, "token")
            ),
            None => {
                write!(text, "\n\nAll are given: there is no tool that finds others (`builtins.search`).")
            }
        };
        text.push_str("\n\nWith all tools, by handler:\n");
        let width = self.handlers.iter().map(|handler| handler.name.len()).max().unwrap_or_default();
        for handler in &self.handlers {
            let _ = write!(text, "\n  {}", row(&handler.name, width, handler.tools, handler.tokens));
        }
        text
    }
}

fn row(name: &str, width: usize, tools: usize, tokens: usize) -> String {
    let (tools, tokens) = (count(tools, "tool"), count(tokens, "token"));
    format!("{name:<width$}  {tools:>12}  {tokens:>15}")
}
