//! `toolyard function test`: the test cases of a function, here or in a gateway.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use http::{Method, StatusCode};
use serde_json::{Value, json};
use toolyard_functions::Host;
use toolyard_functions::project::folder;
use toolyard_functions::version::Wanted;

use super::id;
use super::publish::understood;
use super::report::Reports;
use super::walls::{self, Walls};
use crate::BadInput;
use crate::output::{Format, print};
use crate::remote::Remote;

/// Run the test cases of a function: of a folder on this machine, or of a version in a gateway
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  toolyard function test weather                 of the folder `weather`, on this machine
  toolyard function test . --isolation best-effort
  toolyard function test ./weather -f gateway.yaml    with what this gateway lends
  toolyard function test weather 1.2.0           of a version in a running gateway
  toolyard function test weather draft --output json

What is there as a file or a folder is tested here, unless a version is named. The exit status is 1 where a test case
fails, or there is none. Calls of tests are in no log, and cost nothing.")]
pub(super) struct Args {
    /// The folder of a function, or the id of one in a gateway
    #[arg(value_name = "DIR|ID")]
    what: String,

    /// A version in the gateway: 1.2.0, 1.2, 1, latest or draft; the latest unless said otherwise
    version: Option<Wanted>,

    #[command(flatten)]
    walls: Walls,

    #[command(flatten)]
    remote: Remote,
}

pub(super) async fn run(args: Args, format: Format) -> anyhow::Result<ExitCode> {
    let path = PathBuf::from(&args.what);
    let said = if args.version.is_none() && (args.what.contains('/') || path.exists()) {
        let host = walls::host(&args.walls.process()?).await?;
        here(&host, &path).await?.to_string().into()
    } else {
        let id = id(&args.what)
            .map_err(|advice| BadInput(format!("{:?} is neither a folder nor an id: {advice}", args.what)))?;
        let path = format!("/api/v1/functions/{id}/{}/test", args.version.unwrap_or_default());
        let (status, text) = args.remote.ask(Method::POST, &path, String::new(), None).await?;
        let is_told = status.is_success() || status == StatusCode::UNPROCESSABLE_ENTITY;
        understood::<Value>(&args.remote, is_told, status, &text)?;
        text
    };
    let reports: Reports = serde_json::from_slice(&said)?;
    print(&match format {
        Format::Json => String::from_utf8_lossy(&said).into_owned(),
        Format::Text => reports.text(),
    });
    Ok(if reports.are_good() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Runs the test cases of a folder; gives what a gateway would say of them.
async fn here(host: &Host, path: &Path) -> anyhow::Result<Value> {
    let found = folder::read(path).map_err(|error| BadInput(error.to_string()))?;
    let id = found.id.unwrap_or_else(|| folder::name_of(path));
    let edition = host.edition_of(&id, &found.project).await?;
    let tests = host.test(&edition).await;
    let failed = tests.iter().filter(|test| !test.passed).count();
    Ok(json!({"id": id, "failed": failed, "tests": tests}))
}
