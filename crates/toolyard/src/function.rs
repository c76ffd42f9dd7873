//! `toolyard function`: creates, tests, publishes and invokes functions.
//!
//! - `new`, `dev`, `test`: on the machine of the author;
//! - `publish`, `versions`, `invoke`, `logs`: in a gateway, by its REST API;
//! - `report`: the results of test cases; `isolation`: the local sandbox.

mod dev;
mod invoke;
mod isolation;
mod logs;
mod new;
mod publish;
mod report;
mod test;
mod versions;

use std::process::ExitCode;

use toolyard_functions::project::is_id;
use toolyard_functions::version::VersionSelector;

use crate::output::OutputFormat;

/// Create, test, publish and invoke functions
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  toolyard function new --lang py weather       create a function in the directory `weather`
  toolyard function dev weather                 serve it to agents and test it on every save
  toolyard function test weather                run its test cases once
  toolyard function publish weather --minor     publish it to a gateway as the next minor version
  toolyard function list
  toolyard function invoke weather '{\"city\": \"Berlin\"}'
  toolyard function logs weather --since 1h

Handlers of `type: function` make functions available as tools. POST /api/v1/functions/ID/VERSION/invoke calls them
without a handler. If the gateway has keys, publishing requires a key with the scope `admin` or `publish:PATTERN`,
and invoking one with `functions`.")]
pub(crate) struct FunctionArgs {
    #[command(subcommand)]
    command: FunctionCommand,
}

#[derive(clap::Subcommand)]
enum FunctionCommand {
    New(new::NewFunctionArgs),
    Dev(dev::DevArgs),
    Test(test::FunctionTestArgs),
    Publish(publish::PublishArgs),
    List(versions::FunctionListArgs),
    Show(versions::FunctionShowArgs),
    Invoke(invoke::InvokeArgs),
    Logs(logs::LogsArgs),
    Delete(versions::FunctionDeleteArgs),
}

pub(crate) async fn run(args: FunctionArgs, format: OutputFormat) -> anyhow::Result<ExitCode> {
    match args.command {
        FunctionCommand::New(args) => new::run(&args, format),
        FunctionCommand::Dev(args) => dev::run(args, format).await,
        FunctionCommand::Test(args) => test::run(args, format).await,
        FunctionCommand::Publish(args) => publish::run(args, format).await,
        FunctionCommand::List(args) => versions::list(&args, format).await,
        FunctionCommand::Show(args) => versions::show(&args, format).await,
        FunctionCommand::Invoke(args) => invoke::run(args, format).await,
        FunctionCommand::Logs(args) => logs::run(args, format).await,
        FunctionCommand::Delete(args) => versions::delete(&args, format).await,
    }
}

/// Parses the id of a function, which needs no escaping in a URL path.
pub(crate) fn parse_id(text: &str) -> Result<String, String> {
    let advice = "expected 1 to 100 letters, digits, `.`, `_` and `-`, starting with a letter or digit";
    is_id(text).then(|| text.to_owned()).ok_or_else(|| advice.to_owned())
}

/// Parses an exact version or `draft`.
fn parse_exact_version(text: &str) -> Result<String, String> {
    match text.parse() {
        Ok(wanted @ (VersionSelector::Exact(_) | VersionSelector::Draft)) => Ok(wanted.to_string()),
        _ => Err("expected an exact version, such as 1.2.0, or `draft`".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn version_ranges_are_not_exact() {
        let check = |text: &str, expected: Option<&str>| {
            assert_eq!(parse_exact_version(text).ok().as_deref(), expected, "{text:?}");
        };
        check("1.2.0", Some("1.2.0"));
        check("v1.2.0", Some("1.2.0"));
        check("draft", Some("draft"));
        for invalid in ["latest", "1.2", "1", "", "one", "1.2.0/../x"] {
            check(invalid, None);
        }
    }

    #[test]
    fn function_ids() {
        for valid in ["weather", "a.b-c_d", "0"] {
            assert_eq!(parse_id(valid).as_deref(), Ok(valid));
        }
        for invalid in ["", "a/b", "..", "-a", "a b", "\u{e4}", "a?b", "a%2fb"] {
            assert!(parse_id(invalid).is_err(), "{invalid:?}");
        }
    }
}
