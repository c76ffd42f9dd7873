//! The form of help pages. The tests of `src/tests.rs` have all commands and options.

use insta::assert_snapshot;

use super::toolyard_with;

/// Returns the help text without trailing blanks.
#[track_caller]
fn help(args: &[&str]) -> String {
    let ended = toolyard_with(args);
    assert_eq!((ended.code, &*ended.stderr), (0, ""));
    ended.stdout.lines().map(|line| format!("{}\n", line.trim_end())).collect()
}

#[test]
#[expect(clippy::too_many_lines, reason = "one text with all commands")]
fn of_all() {
    assert_snapshot!(help(&["--help"]), @"
    An MCP gateway for every tool an agent uses.

    Toolyard reads ToolRegistry manifests and serves all their tools as one MCP endpoint.

    Usage: toolyard [OPTIONS] <COMMAND>

    Commands:
      serve            Serve the handlers of manifests as one MCP endpoint
      stdio            Serve the handlers of manifests on standard input and output
      init             Write a commented manifest, with the servers that MCP clients on this machine have
      check            Check manifests and report all problems
      import           Convert the configuration of an MCP client to a manifest and print it
      add              Add a handler to a manifest
      schema           Print the JSON Schema of a manifest kind
      crd              Print the definitions of the operator's Kubernetes resources
      tools            List the tools of a running gateway
      call             Call a tool of a running gateway
      test             Test a tool of a handler and validate its arguments and result
      doctor           Check a running gateway and its handlers
      accept           Accept the current definitions of changed tools
      function         Create, test, publish and invoke functions
      key              Manage the API keys of a gateway
      audit            Show the audit trail of a gateway, newest first
      store            Manage the store of a gateway
      console          Print a link that opens the console of a running gateway
      connect          Add the gateway to the configuration of an MCP client
      service          Run the gateway as a service of systemd for this user
      worker           Run calls that arrive on a message bus with the handlers of manifests
      bridge           Run MCP servers for the agents on a message bus
      scripts-manager  Run Python scripts that arrive on a message bus
      bus              Inspect a message bus
      operator         Run the operator of Kubernetes: LanguageTools and ToolRegistries of a cluster
      openrouter-mcp   Serve read-only account information of OpenRouter over MCP
      version          Show the version, and whether the store and the manifests fit it
      completions      Print a shell completion script
      help             Print this message or the help of the given subcommand(s)

    Options:
          --output <OUTPUT>
              Output format of results

              Possible values:
              - text: Readable text
              - json: One JSON text, for programs

              [default: text]

      -h, --help
              Print help (see a summary with '-h')

      -V, --version
              Print version

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
      NO_COLOR            disable colours if not empty
    ");
}

#[test]
fn of_serve() {
    assert_snapshot!(help(&["serve", "--help"]), @"
    Serve the handlers of manifests as one MCP endpoint

    Usage: toolyard serve [OPTIONS]

    Options:
      -f, --file <FILE>
              Manifest or directory of manifests; repeatable (default: `toolyard.yaml` here or in ~/.config/toolyard, or else an embedded demo)

          --import <FILE>
              Configuration file of an MCP client whose servers to serve; see `toolyard import`

          --listen <ADDRESS>
              Address (127.0.0.1:8080) or Unix socket (unix:/run/toolyard.sock) to listen on, instead of those in the manifest; repeatable

          --grpc <ADDRESS>
              Address or Unix socket to serve the tools on as a gRPC service (omnia.tools.v1.ToolService), instead of those in the manifest; repeatable

          --log-format <FORMAT>
              Log format (default: that of the manifest)

              Possible values:
              - human: Readable text
              - json:  One JSON object per line

          --output <OUTPUT>
              Output format of results

              Possible values:
              - text: Readable text
              - json: One JSON text, for programs

              [default: text]

      -h, --help
              Print help (see a summary with '-h')

    Examples:
      toolyard serve                              toolyard.yaml, or an embedded demo, on 127.0.0.1:8080
      toolyard serve -f tools.yaml -f more/       a file, and all manifests in a directory
      toolyard serve --import .mcp.json           the servers of Claude, Cursor, VS Code and others
      toolyard serve -f tools.yaml --listen 127.0.0.1:0    on a free port
      toolyard serve -f tools.yaml --listen unix:/run/toolyard.sock --listen 127.0.0.1:8080
      toolyard serve -f tools.yaml --grpc 127.0.0.1:50051    for callers with gRPC, too

    The gateway applies edits of the files while it runs. An edit affects only what it changes; an invalid edit is
    rejected as a whole. SIGHUP reloads the files and the TLS certificate immediately. `-f -` reads standard input once.

    SIGTERM and SIGINT drain: the gateway accepts no new calls, waits for running calls and exits with status 0.
    A second signal exits immediately.
    ");
}

#[test]
fn version_output() {
    assert_eq!(help(&["--version"]), format!("toolyard {}\n", env!("CARGO_PKG_VERSION")));
}
