//! `toolyard test`: calls a tool of a handler and validates it against its schemas.

use std::fmt::Write;
use std::process::ExitCode;

use anyhow::{Context, anyhow};
use http::{Method, StatusCode};
use serde::Deserialize;
use serde_json::{Value, json};
use toolyard_manifest::{FormatError, HandlerName};

use crate::output::{self, OutputFormat, print};
use crate::remote::RemoteGateway;
use crate::tool_arguments::ToolArguments;

/// Test a tool of a handler and validate its arguments and result
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  toolyard test weather                         the only tool of the handler, without arguments
  toolyard test weather forecast city=Berlin
  toolyard test weather forecast --json '{\"city\": \"Berlin\"}' --output json

A value is JSON if it parses as JSON, or else a string.
The running gateway calls the tool unless its arguments do not match the input schema. The exit status is 1 if the
arguments or the result do not match, or the tool fails. Requires a key with the scope `admin` if the gateway has keys;
see `toolyard key create --help`.")]
pub(crate) struct TestArgs {
    /// Name of the handler in the manifest
    #[arg(value_parser = handler_name)]
    handler: String,

    /// Name of the tool; optional if the handler has only one
    tool: Option<String>,

    #[command(flatten)]
    arguments: ToolArguments,

    #[command(flatten)]
    remote: RemoteGateway,
}

/// The response of the gateway.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ToolTestReport {
    success: bool,
    tool_name: String,
    result: Option<Value>,
    error: Option<String>,
    duration_ms: f64,
    warning: Option<String>,
    validation: SchemaValidation,
}

#[derive(Deserialize)]
struct SchemaValidation {
    request: ValidationResult,
    response: Option<ValidationResult>,
}

#[derive(Deserialize)]
struct ValidationResult {
    valid: bool,
    error: Option<String>,
}

/// Returns the name if it is that of a handler or of a tool, whose handler the gateway then names.
fn handler_name(text: &str) -> Result<String, FormatError> {
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte);
    match HandlerName::parse(text) {
        Err(error) if text.is_empty() || !text.bytes().all(is_part) => Err(error),
        _ => Ok(text.to_owned()),
    }
}

pub(crate) async fn run(mut args: TestArgs, format: OutputFormat) -> anyhow::Result<ExitCode> {
    // The only tool need not be named before its arguments.
    if let Some(argument) = args.tool.take_if(|tool| tool.contains('=')) {
        args.arguments.insert_first(argument);
    }
    let arguments = args.arguments.parse(&Value::Null)?.to_value();
    let mut request = json!({"arguments": arguments});
    if let Some(tool) = &args.tool {
        request["toolName"] = Value::from(tool.as_str());
    }
    let path = format!("/api/v1/handlers/{}/test", args.handler);
    // The gateway enforces the time limit of the call.
    let (status, text) = args.remote.request(Method::POST, &path, request.to_string(), None).await?;
    if !matches!(status, StatusCode::OK | StatusCode::UNPROCESSABLE_ENTITY) {
        let error = args.remote.response_error(status, &text);
        return Err(match status {
            StatusCode::NOT_FOUND => {
                anyhow!("{error:#}\n`toolyard doctor` lists the handlers, and `toolyard tools` their tools")
            }
            _ => error,
        });
    }
    let report: ToolTestReport =
        serde_json::from_slice(&text).context("unexpected response: not a test report")?;
    print(&match format {
        OutputFormat::Text => output::escape_lines(&report.text()),
        OutputFormat::Json => String::from_utf8_lossy(&text).into_owned(),
    });
    Ok(if report.success { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

impl ToolTestReport {
    fn text(&self) -> String {
        let word = if self.success { "ok" } else { "FAILED" };
        let mut text =
            format!("{word}: {} after {:.1} ms", output::escape_line(&self.tool_name), self.duration_ms);
        let mut add = |label: &str, value: &str| {
            let _ = write!(text, "\n  {label:<9}  {}", output::escape_line(value));
        };
        add("arguments", &self.validation.request.summary());
        if let Some(response) = &self.validation.response {
            add("result", &response.summary());
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

impl ValidationResult {
    fn summary(&self) -> String {
        match (self.valid, &self.error) {
            (true, _) => "valid".to_owned(),
            (false, Some(error)) => error.clone(),
            (false, None) => "invalid".to_owned(),
        }
    }
}
