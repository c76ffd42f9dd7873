//! The `toolyard` command line, one module per subcommand.

mod accept;
mod add;
mod allocator;
mod atomic_file;
mod audit;
mod bridge;
mod bus;
mod bus_process;
mod call;
mod check;
mod completions;
mod connect;
mod console;
mod crd;
mod default_manifest;
mod demo;
mod diff;
mod doctor;
mod duration;
mod function;
mod gateway;
mod handler_health;
mod import;
mod init;
mod key;
mod key_marker;
mod log;
mod manifest_sources;
mod openrouter_mcp;
mod operator;
mod output;
mod page_args;
mod remote;
mod schema;
mod scripts_manager;
mod serve;
mod service;
mod state;
mod stdio;
mod store;
mod test;
#[cfg(test)]
mod tests;
mod tool_arguments;
mod tools;
mod version;
mod worker;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use log::LogHandle;
use output::OutputFormat;

/// An MCP gateway for every tool an agent uses.
///
/// Toolyard reads ToolRegistry manifests and serves all their tools as one MCP endpoint.
#[derive(Parser)]
#[command(version, max_term_width = 100, after_help = AFTER_HELP)]
struct CommandLine {
    #[command(subcommand)]
    command: CliCommand,

    /// Output format of results
    #[arg(long, global = true, value_enum, default_value_t = OutputFormat::Text)]
    output: OutputFormat,
}

const AFTER_HELP: &str = "\
Examples:
  toolyard init                         write toolyard.yaml, with the servers of your MCP clients
  toolyard serve                        serve toolyard.yaml, or an embedded demo without one
  toolyard serve -f tools.yaml          serve the handlers of a manifest
  toolyard serve --import .mcp.json     serve the servers in an MCP client's configuration
  toolyard check tools.yaml             check a manifest
  toolyard add mcp -- npx -y SERVER     add an MCP server to the manifest
  toolyard add openapi URL              add a service with an OpenAPI description to the manifest
  toolyard tools                        list the tools of a running gateway
  toolyard call add a=1 b=2             call a tool
  toolyard doctor                       check a running gateway and its handlers
  toolyard test weather                 test a tool of a handler
  toolyard function new --lang py NAME  create a function, a tool of your own that the gateway runs
  toolyard key create ci --scope rest   create a key
  toolyard audit --since 1h             show the audit trail of the last hour
  toolyard store backup FILE            back up the store, also while the gateway is running
  toolyard console                      print a link to the console of a running gateway
  toolyard connect cursor               add the gateway to the configuration of an MCP client
  toolyard service install              run the gateway as a service of systemd for this user
  toolyard worker --bus URL             run calls that arrive on a message bus
  toolyard bus dead --bus URL           list the dead letters of a message bus
  toolyard operator                     run the operator of Kubernetes in its cluster
  toolyard openrouter-mcp               serve the account information of OpenRouter

Exit status:
  0  success
  1  failure, such as an unreachable gateway or a failed tool
  2  invalid usage, an invalid manifest, or confirmation needed without a terminal

Environment:
  TOOLYARD_LOG        log filter, such as `debug` or `toolyard_mcp=trace` [default: info]
  TOOLYARD_STATE_DIR  directory for the persistent state of one gateway, unless its manifest sets `store`
                      [default: $STATE_DIRECTORY, or files for each manifest in ~/.local/state/toolyard]
  TOOLYARD_URL        URL of the gateway, unless `--url` is given
  TOOLYARD_BUS        URL of the message bus, unless `--bus` is given
  TOOLYARD_KEY        API key, unless `--key-file` is given; sent only to loopback or $TOOLYARD_URL
  OTEL_…              destination of metrics and traces, unless a manifest sets it
  NO_COLOR            disable colours if not empty";

#[derive(Subcommand)]
enum CliCommand {
    Serve(serve::ServeArgs),
    Stdio(stdio::StdioArgs),
    Init(init::InitArgs),
    Check(check::CheckArgs),
    Import(import::ImportArgs),
    Add(add::AddHandlerArgs),
    Schema(schema::SchemaArgs),
    Crd(crd::CrdArgs),
    Tools(tools::ToolsArgs),
    Call(call::CallArgs),
    Test(test::TestArgs),
    Doctor(doctor::DoctorArgs),
    Accept(accept::AcceptArgs),
    Function(function::FunctionArgs),
    Key(key::KeyArgs),
    Audit(audit::AuditArgs),
    Store(store::StoreArgs),
    Console(console::ConsoleArgs),
    Connect(connect::ConnectArgs),
    Service(service::ServiceArgs),
    Worker(worker::WorkerArgs),
    Bridge(bridge::BridgeArgs),
    ScriptsManager(scripts_manager::ScriptsManagerArgs),
    Bus(bus::BusCommandArgs),
    Operator(operator::OperatorArgs),
    OpenrouterMcp(openrouter_mcp::OpenRouterMcpArgs),
    Version(version::VersionArgs),
    Completions(completions::CompletionsArgs),
    #[command(hide = true)]
    DemoServer,
}

/// An error in the input, as opposed to the environment. The exit status is 2.
#[derive(Debug)]
pub(crate) struct BadInput(pub(crate) String);

impl std::fmt::Display for BadInput {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for BadInput {}

fn main() -> ExitCode {
    toolyard_process::run_supervisor_if_requested();
    toolyard_sandbox::enter_if_asked(&[toolyard_functions::runtime::ENTRY]);
    allocator::return_freed_memory();
    let cli = CommandLine::parse();
    let log = start_log(&cli.command);
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return output::report_error(&error.into(), cli.output),
    };
    let done = runtime.block_on(async {
        match cli.command {
            CliCommand::Serve(args) => serve::run(args, cli.output, &log).await,
            CliCommand::Stdio(args) => stdio::run(args, &log).await,
            CliCommand::Init(args) => init::run(&args, cli.output),
            CliCommand::Check(args) => Ok(check::run(&args, cli.output)?),
            CliCommand::Import(args) => Ok(import::run(&args, cli.output)?),
            CliCommand::Add(args) => add::run(args, cli.output).await,
            CliCommand::Schema(args) => Ok(schema::run(&args)),
            CliCommand::Crd(crd::CrdArgs {}) => crd::run(),
            CliCommand::Tools(args) => tools::run(args, cli.output).await,
            CliCommand::Call(args) => call::run(args, cli.output).await,
            CliCommand::Doctor(args) => doctor::run(args, cli.output).await,
            CliCommand::Accept(args) => accept::run(args, cli.output).await,
            CliCommand::Test(args) => test::run(args, cli.output).await,
            CliCommand::Function(args) => function::run(args, cli.output).await,
            CliCommand::Key(args) => key::run(args, cli.output).await,
            CliCommand::Audit(args) => audit::run(args, cli.output).await,
            CliCommand::Store(args) => store::run(args, cli.output).await,
            CliCommand::Console(args) => console::run(args, cli.output).await,
            CliCommand::Connect(args) => connect::run(&args, cli.output),
            CliCommand::Service(args) => service::run(args, cli.output),
            CliCommand::Worker(args) => worker::run(args, cli.output, &log).await,
            CliCommand::Bridge(args) => bridge::run(args, cli.output, &log).await,
            CliCommand::ScriptsManager(args) => scripts_manager::run(args, cli.output, &log).await,
            CliCommand::Bus(args) => bus::run(args, cli.output).await,
            CliCommand::Operator(args) => operator::run(args).await,
            CliCommand::OpenrouterMcp(args) => openrouter_mcp::run(args).await,
            CliCommand::Version(args) => version::run(args, cli.output).await,
            CliCommand::Completions(args) => Ok(completions::run(&args, cli.output)),
            CliCommand::DemoServer => demo::run().await,
        }
    });
    // A thread that still reads standard input would keep the process from ending.
    runtime.shutdown_background();
    done.unwrap_or_else(|error| output::report_error(&error, cli.output))
}

/// Starts the log. Only commands that run a gateway log more than errors.
fn start_log(command: &CliCommand) -> LogHandle {
    match command {
        CliCommand::Serve(args) => LogHandle::start("info", args.log_format),
        CliCommand::Stdio(args) => LogHandle::start("info", args.log_format),
        CliCommand::Worker(args) => LogHandle::start("info", args.process.log_format),
        CliCommand::Bridge(args) => LogHandle::start("info", args.process.log_format),
        CliCommand::ScriptsManager(args) => LogHandle::start("info", args.process.log_format),
        CliCommand::Operator(args) => LogHandle::start("info", args.log_format),
        CliCommand::OpenrouterMcp(args) => LogHandle::start("info", args.log_format),
        // These commands print the problems in the files of a function themselves.
        CliCommand::Function(_) => LogHandle::start("error,toolyard_functions=off", None),
        _ => LogHandle::start("error", None),
    }
}
