//! `toolyard test`: one tool of a handler, tried.

use std::fmt::Write;
use std::process::ExitCode;

use anyhow::Context;
use http::{Method, StatusCode};
use serde::Deserialize;
use serde_json::{Value, json};
use toolyard_core::Json;
use toolyard_manifest::HandlerName;

use crate::call;
use crate::output::{self, Format, print};
use crate::remote::Remote;

/// Try a tool of a handler in a running gateway, and hold arguments and result to its schemas
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  toolyard test weather                         its one tool, without arguments
  toolyard test weather forecast city=Berlin
  toolyard test weather forecast --json '{\"city\": \"Berlin\"}' --output json

The tool is really called, but for arguments that do not fit its input schema. The exit status is 1 when something does not fit,
or the tool failed. It takes a key with the scope `admin`, where there are keys: see `toolyard key create --help`.")]
pub(crate) struct Args {
    /// The handler, by its name in the manifest
    #[arg(value_parser = HandlerName::parse)]
    handler: HandlerName,

    /// The tool; may be left out where the handler has one only
    tool: Option<String>,

    /// Arguments, one by one: each is taken as JSON where it is JSON, else as text
    #[arg(value_name = "KEY=VALUE", conflicts_with = "json")]
    arguments: Vec<String>,

    /// All arguments as one JSON object
    #[arg(long, value_name = "OBJECT")]
    json: Option<String>,

    #[command(flatten)]
    remote: Remote,
}

/// What the gateway says of it.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Report {
    success: bool,
    tool_name: String,
    result: Option<Value>,
    error: Option<String>,
    duration_ms: f64,
    warning: Option<String>,
    validation: Validation,
}

#[derive(Deserialize)]
struct Validation {
    request: Valid,
    response: Option<Valid>,
}

#[derive(Deserialize)]
struct Valid {
    valid: bool,
    error: Option<String>,
}

pub(crate) async fn run(args: Args, format: Format) -> anyhow::Result<ExitCode> {
    let arguments = match &args.json {
        Some(json) => call::object(json)?,
        None => call::arguments(&args.arguments, &Value::Null)?,
    };
    let arguments = Json::to_value(&arguments);
    let mut wanted = json!({"arguments": arguments});
    if let Some(tool) = &args.tool {
        wanted["toolName"] = Value::from(tool.as_str());
    }
    let path = format!("/api/v1/handlers/{}/test", args.handler);
    // The gateway knows how long a call may take.
    let (status, text) = args.remote.ask(Method::POST, &path, wanted.to_string(), None).await?;
    if !matches!(status, StatusCode::OK | StatusCode::UNPROCESSABLE_ENTITY) {
        return Err(args.remote.refused(status, &text));
    }
    let report: Report =
        serde_json::from_slice(&text).context("it answers with something else than a report")?;
    print(&match format {
        Format::Text => output::lines(&report.text()),
        Format::Json => String::from_utf8_lossy(&text).into_owned(),
    });
    Ok(if report.success { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

impl Report {
    fn text(&self) -> String {
        let word = if self.success { "ok" } else { "FAILED" };
        let mut text = format!("{word}: {} after {:.1} ms", output::line(&self.tool_name), self.duration_ms);
        let mut add = |what: &str, said: &str| {
            let _ = write!(text, "\n  {what:<9}  {}", output::line(said));
        };
        add("arguments", &self.validation.request.said());
        if let Some(response) = &self.validation.response {
            add("result", &response.said());
        }
        if let Some(error) = &self.error {
            add("error", error);
        }
        if let Some(warning) = &self.warning {
            add("note", warning);
        }
        if let Some(result) = &self.result {
            let _ = write!(text, "\n{result}");
        }
        text
    }
}

impl Valid {
    fn said(&self) -> String {
        match (self.valid, &self.error) {
            (true, _) => "fit the schema".to_owned(),
            (false, Some(error)) => error.clone(),
            (false, None) => "do not fit the schema".to_owned(),
        }
    }
}
