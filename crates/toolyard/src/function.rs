//! `toolyard function`: tools that people write, from the first file to the log of their calls.
//!
//! - `new`, `dev`, `test`: for authors, on their own machine;
//! - `publish`, `versions`, `invoke`, `logs`: what a gateway keeps, which is asked by REST;
//! - `report`: what came of test cases; `walls`: how functions run here.

mod dev;
mod invoke;
mod logs;
mod new;
mod publish;
mod report;
mod test;
mod versions;
mod walls;

use std::process::ExitCode;

use toolyard_functions::project::is_id;
use toolyard_functions::version::Wanted;

use crate::output::Format;

/// Write functions, try them, publish them in versions, and see what becomes of them
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  toolyard function new --lang py weather       begin a function in the folder `weather`
  toolyard function dev weather                 test it on every save, and serve it to agents
  toolyard function test weather                run its test cases once
  toolyard function publish weather --minor     send it to a gateway, as the next version
  toolyard function list
  toolyard function invoke weather '{\"city\": \"Berlin\"}'
  toolyard function logs weather --since 1h

A manifest has handlers of `type: function` for them; POST /api/v1/functions/ID/VERSION/invoke calls them without.
To publish takes a key with the scope `admin`, where there are keys, and to invoke one with `functions`.")]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    New(new::Args),
    Dev(dev::Args),
    Test(test::Args),
    Publish(publish::Args),
    List(versions::List),
    Show(versions::Show),
    Invoke(invoke::Args),
    Logs(logs::Args),
    Delete(versions::Delete),
}

pub(crate) async fn run(args: Args, format: Format) -> anyhow::Result<ExitCode> {
    match args.command {
        Command::New(args) => new::run(&args, format),
        Command::Dev(args) => dev::run(args, format).await,
        Command::Test(args) => test::run(args, format).await,
        Command::Publish(args) => publish::run(args, format).await,
        Command::List(args) => versions::list(&args, format).await,
        Command::Show(args) => versions::show(&args, format).await,
        Command::Invoke(args) => invoke::run(args, format).await,
        Command::Logs(args) => logs::run(args, format).await,
        Command::Delete(args) => versions::delete(&args, format).await,
    }
}

/// The id of a function, which can stand in a path as it is.
fn id(text: &str) -> Result<String, String> {
    let advice = "letters, digits, `.`, `_` and `-`, at most 100, the first a letter or digit";
    is_id(text).then(|| text.to_owned()).ok_or_else(|| advice.to_owned())
}

/// One version, said whole, or the draft.
fn one_version(text: &str) -> Result<String, String> {
    match text.parse() {
        Ok(wanted @ (Wanted::Exact(_) | Wanted::Draft)) => Ok(wanted.to_string()),
        _ => Err("one version is meant, such as 1.2.0, or `draft`".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_means_one_version() {
        let check = |text: &str, expected: Option<&str>| {
            assert_eq!(one_version(text).ok().as_deref(), expected, "{text:?}");
        };
        check("1.2.0", Some("1.2.0"));
        check("v1.2.0", Some("1.2.0"));
        check("draft", Some("draft"));
        for several in ["latest", "1.2", "1", "", "one", "1.2.0/../x"] {
            check(several, None);
        }
    }

    #[test]
    fn what_an_id_can_be() {
        for right in ["weather", "a.b-c_d", "0"] {
            assert_eq!(id(right).as_deref(), Ok(right));
        }
        for wrong in ["", "a/b", "..", "-a", "a b", "\u{e4}", "a?b", "a%2fb"] {
            assert!(id(wrong).is_err(), "{wrong:?}");
        }
    }
}
