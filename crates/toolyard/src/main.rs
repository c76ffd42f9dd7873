//! The command line: one file a subcommand.

mod add;
mod audit;
mod call;
mod check;
mod completions;
mod connect;
mod demo;
mod diff;
mod doctor;
mod function;
mod import;
mod key;
mod log;
mod output;
mod remote;
mod schema;
mod serve;
mod sources;
mod span;
mod stdio;
mod store;
mod test;
#[cfg(test)]
mod tests;
mod tools;
mod write;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use log::Log;
use output::Format;

/// One yard for every tool an agent uses.
///
/// Toolyard reads ToolRegistry manifests and serves every tool behind them as one MCP endpoint.
#[derive(Parser)]
#[command(version, max_term_width = 100, after_help = AFTER_HELP)]
struct Cli {
    #[command(subcommand)]
    command: Command,

    /// How results are printed
    #[arg(long, global = true, value_enum, default_value_t = Format::Text)]
    output: Format,
}

const AFTER_HELP: &str = "\
Examples:
  toolyard serve                        start with a demo server, to see it work
  toolyard serve -f tools.yaml          serve the handlers of a manifest
  toolyard serve --import .mcp.json     serve the servers of an MCP client
  toolyard check tools.yaml             see whether a manifest is right
  toolyard add openapi URL              put a service with an OpenAPI description into a manifest
  toolyard tools                        list the tools of a running gateway
  toolyard call add a=1 b=2             call one of them
  toolyard doctor                       say how the gateway and its handlers are
  toolyard test weather                 try the tool of a handler
  toolyard function new --lang py NAME  begin a tool of your own, which the gateway runs
  toolyard key create ci --scope rest   hand out a key
  toolyard audit --since 1h             see who called what
  toolyard store backup FILE            copy what the gateway keeps, while it serves
  toolyard connect cursor               write the configuration of a client

Exit status:
  0  done
  1  it failed: the gateway cannot be reached, the tool said no
  2  wrong usage, a manifest with problems, or nobody to ask

Environment:
  TOOLYARD_LOG        what is logged to stderr, such as `debug` or `toolyard_mcp=trace` [default: info]
  TOOLYARD_STATE_DIR  where the gateway keeps what outlives it, unless a manifest says otherwise
                      [default: $STATE_DIRECTORY, $XDG_STATE_HOME/toolyard or ~/.local/state/toolyard]
  TOOLYARD_URL        the gateway that is asked where there is no `--url`
  TOOLYARD_KEY        the key that it is shown, where there is no `--key-file`; no gateway but one on this
                      machine or that of TOOLYARD_URL gets it
  OTEL_…              where metrics and traces are sent, where the manifest does not say it
  NO_COLOR            set to anything, no colours on a terminal either";

#[derive(Subcommand)]
enum Command {
    Serve(serve::Args),
    Stdio(stdio::Args),
    Check(check::Args),
    Import(import::Args),
    Add(add::Args),
    Schema(schema::Args),
    Tools(tools::Args),
    Call(call::Args),
    Test(test::Args),
    Doctor(doctor::Args),
    Function(function::Args),
    Key(key::Args),
    Audit(audit::Args),
    Store(store::Args),
    Connect(connect::Args),
    Completions(completions::Args),
    #[command(hide = true)]
    DemoServer,
}

/// The input is wrong, as opposed to the world around: exit status 2.
#[derive(Debug)]
pub(crate) struct BadInput(pub(crate) String);

impl std::fmt::Display for BadInput {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for BadInput {}

fn main() -> ExitCode {
    toolyard_process::supervise_if_asked();
    toolyard_sandbox::enter_if_asked(&[toolyard_functions::runtime::ENTRY]);
    let cli = Cli::parse();
    let log = start_log(&cli.command);
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return output::failed(&error.into(), cli.output),
    };
    let done = runtime.block_on(async {
        match cli.command {
            Command::Serve(args) => serve::run(args, cli.output, &log).await,
            Command::Stdio(args) => stdio::run(args, &log).await,
            Command::Check(args) => Ok(check::run(&args, cli.output)),
            Command::Import(args) => Ok(import::run(&args, cli.output)?),
            Command::Add(args) => add::run(args, cli.output).await,
            Command::Schema(args) => Ok(schema::run(&args)),
            Command::Tools(args) => tools::run(args, cli.output).await,
            Command::Call(args) => call::run(args, cli.output).await,
            Command::Doctor(args) => doctor::run(args, cli.output).await,
            Command::Test(args) => test::run(args, cli.output).await,
            Command::Function(args) => function::run(args, cli.output).await,
            Command::Key(args) => key::run(args, cli.output).await,
            Command::Audit(args) => audit::run(args, cli.output).await,
            Command::Store(args) => store::run(args, cli.output).await,
            Command::Connect(args) => connect::run(&args, cli.output),
            Command::Completions(args) => Ok(completions::run(&args, cli.output)),
            Command::DemoServer => demo::run().await,
        }
    });
    // A thread that still reads standard input would keep the process from ending.
    runtime.shutdown_background();
    done.unwrap_or_else(|error| output::failed(&error, cli.output))
}

/// Commands that ask a gateway only speak up when something is wrong.
fn start_log(command: &Command) -> Log {
    match command {
        Command::Serve(args) => Log::start("info", args.log_format),
        Command::Stdio(args) => Log::start("info", args.log_format),
        // It says itself what is wrong with the files of a function.
        Command::Function(_) => Log::start("error,toolyard_functions=off", None),
        _ => Log::start("error", None),
    }
}
