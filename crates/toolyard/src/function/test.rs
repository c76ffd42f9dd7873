//! `toolyard function test`: runs the test cases of a function, locally or in a gateway.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use http::{Method, StatusCode};
use serde_json::{Value, json};
use toolyard_functions::FunctionHost;
use toolyard_functions::project::folder;
use toolyard_functions::version::VersionSelector;

use super::isolation::{self, IsolationArgs};
use super::parse_id;
use super::publish::parse_response;
use super::report::TestReports;
use crate::BadInput;
use crate::output::{OutputFormat, print};
use crate::remote::RemoteGateway;

/// Run the test cases of a function, locally or in a gateway
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  toolyard function test weather                 test the directory `weather` locally
  toolyard function test . --isolation best-effort
  toolyard function test ./weather -f gateway.yaml    use the sandbox and function settings of a gateway
  toolyard function test weather 1.2.0           test a version in a running gateway
  toolyard function test weather draft --output json

An existing file or directory is tested locally unless a version is given. The exit status is 1 if a test case fails or
there is none. Calls of tests are not logged and have no cost.")]
pub(super) struct FunctionTestArgs {
    /// Directory of a function, or id of a function in a gateway
    #[arg(value_name = "DIR|ID")]
    what: String,

    /// Version in the gateway: 1.2.0, 1.2, 1, latest or draft (default: latest)
    version: Option<VersionSelector>,

    #[command(flatten)]
    isolation: IsolationArgs,

    #[command(flatten)]
    remote: RemoteGateway,
}

pub(super) async fn run(args: FunctionTestArgs, format: OutputFormat) -> anyhow::Result<ExitCode> {
    let path = PathBuf::from(&args.what);
    let response = if args.version.is_none() && (args.what.contains('/') || path.exists()) {
        let host = isolation::start_host(&args.isolation.process()?).await?;
        test_folder(&host, &path).await?.to_string().into()
    } else {
        let id = parse_id(&args.what).map_err(|advice| {
            BadInput(format!("{:?} is neither a directory nor a valid id: {advice}", args.what))
        })?;
        let path = format!("/api/v1/functions/{id}/{}/test", args.version.unwrap_or_default());
        let (status, text) = args.remote.request(Method::POST, &path, String::new(), None).await?;
        let is_expected = status.is_success() || status == StatusCode::UNPROCESSABLE_ENTITY;
        parse_response::<Value>(&args.remote, is_expected, status, &text)?;
        text
    };
    let reports: TestReports = serde_json::from_slice(&response)?;
    print(&match format {
        OutputFormat::Json => String::from_utf8_lossy(&response).into_owned(),
        OutputFormat::Text => reports.text(),
    });
    Ok(if reports.all_passed() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Runs the test cases of a directory and returns the report in the form of the REST API.
async fn test_folder(host: &FunctionHost, path: &Path) -> anyhow::Result<Value> {
    let source_folder = folder::read(path).map_err(|error| BadInput(error.to_string()))?;
    let id = source_folder.id.unwrap_or_else(|| folder::default_id(path));
    let edition = host.load_project(&id, &source_folder.project).await?;
    let tests = host.test_reports(&edition).await;
    let failed = tests.iter().filter(|test| !test.passed).count();
    Ok(json!({"id": id, "failed": failed, "tests": tests}))
}
