//! `toolyard doctor --sandbox`: the isolation of functions and scripts.

use std::fmt::Write;
use std::process::ExitCode;

use anyhow::Context;
use serde::Deserialize;

use crate::output::{self, OutputFormat, print};
use crate::remote::RemoteGateway;

/// The response of `GET /api/v1/sandbox`.
#[derive(Deserialize)]
struct SandboxReport {
    isolation: String,
    level: String,
    ready: bool,
    layers: Vec<SandboxLayer>,
}

#[derive(Deserialize)]
struct SandboxLayer {
    name: String,
    missing: Option<String>,
    hint: Option<String>,
}

pub(super) async fn run(remote: &RemoteGateway, format: OutputFormat) -> anyhow::Result<ExitCode> {
    let text = remote.get("/api/v1/sandbox").await?;
    let sandbox: SandboxReport = serde_json::from_slice(&text)
        .with_context(|| format!("unexpected response from {remote}: not a sandbox report"))?;
    print(&match format {
        OutputFormat::Text => output::escape_lines(&sandbox.text()),
        OutputFormat::Json => String::from_utf8_lossy(&text).into_owned(),
    });
    Ok(if sandbox.ready { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

impl SandboxReport {
    fn text(&self) -> String {
        let can = if self.ready { "can" } else { "cannot" };
        let Self { isolation, level, .. } = self;
        let mut text = format!("isolation `{isolation}`, level `{level}`: functions and scripts {can} run\n");
        for SandboxLayer { name, missing, hint } in &self.layers {
            let _ = match missing {
                None => write!(text, "\n{name:<15} enforced"),
                Some(why) => write!(text, "\n{name:<15} not enforced: {why}"),
            };
            let _ = hint.iter().try_for_each(|hint| write!(text, "\n{:<15} {hint}", ""));
        }
        text
    }
}
