mod authors;
mod clients;
mod functions;
mod operators;

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
fn of_check() {
    assert_snapshot!(help(&["check", "--help"]), @"
    Check manifests and report all problems

    Usage: toolyard check [OPTIONS] [FILE|DIR]...

    Arguments:
      [FILE|DIR]...
              Manifest, directory of manifests, or `-` for standard input (default: `toolyard.yaml` here or in ~/.config/toolyard)

    Options:
          --output <OUTPUT>
              Output format of results

              Possible values:
              - text: Readable text
              - json: One JSON text, for programs

              [default: text]

      -h, --help
              Print help (see a summary with '-h')

    Examples:
      toolyard check                      check ./toolyard.yaml
      toolyard check tools.yaml more/
      toolyard check --output json tools.yaml
      cat tools.yaml | toolyard check -

    Starts no servers and opens no connections. The variables and secret files that the manifests refer to must exist;
    certificates and descriptions are read by the gateway. The exit status is 2 if there are problems.
    ");
}

#[test]
fn of_import() {
    assert_snapshot!(help(&["import", "--help"]), @"
    Convert the configuration of an MCP client to a manifest and print it

    Usage: toolyard import [OPTIONS] <FILE>

    Arguments:
      <FILE>
              File with `mcpServers` (Claude, Cursor and others), `servers` (VS Code) or `Mcp.Servers` (.NET), or `-` for standard input

    Options:
          --output <OUTPUT>
              Output format of results

              Possible values:
              - text: Readable text
              - json: One JSON text, for programs

              [default: text]

      -h, --help
              Print help (see a summary with '-h')

    Examples:
      toolyard import .mcp.json > tools.yaml
      toolyard import ~/.cursor/mcp.json --output json
      toolyard serve --import .mcp.json           serve the servers without a manifest

    ${env:NAME} and ${input:name} become ${NAME}. Secrets in the file are copied to the manifest. Notes on standard
    error list what the manifest states differently.
    ");
}

#[test]
fn of_add() {
    assert_snapshot!(help(&["add", "--help"]), @"
    Add a handler to a manifest

    Usage: toolyard add [OPTIONS] <COMMAND>

    Commands:
      mcp       Add an MCP server, by its command or its URL
      http      Add a tool that sends an HTTP request
      function  Add a hosted function: a published one, or one in a directory
      grpc      Add a gRPC server, whose methods are tools
      openapi   Add a service with an OpenAPI description, whose operations become tools
      help      Print this message or the help of the given subcommand(s)

    Options:
          --output <OUTPUT>
              Output format of results

              Possible values:
              - text: Readable text
              - json: One JSON text, for programs

              [default: text]

      -h, --help
              Print help (see a summary with '-h')

    Examples:
      toolyard add mcp -- npx -y @modelcontextprotocol/server-everything
      toolyard add mcp https://mcp.example.com/mcp
      toolyard add http 'https://api.example.com/orders/{id}' --description 'Returns an order'
      toolyard add function weather
      toolyard add grpc localhost:50051
      toolyard add openapi https://petstore3.swagger.io/api/v3/openapi.json
      toolyard add openapi api/openapi.yaml --name shop --tag orders -f tools.yaml
    ");
    assert_snapshot!(help(&["add", "openapi", "--help"]), @"
    Add a service with an OpenAPI description, whose operations become tools

    Usage: toolyard add openapi [OPTIONS] <URL|FILE>

    Arguments:
      <URL|FILE>
              OpenAPI 2 or 3 description, as JSON or YAML

    Options:
          --name <NAME>
              Name of the handler (default: derived from the name of the service)

          --operation <NAME>
              Only the operation with this `operationId` or tool name; repeatable

          --tag <TAG>
              Only operations with this tag; repeatable

          --base-url <URL>
              Base URL of requests, if the description has no server URL or another one

      -f, --file <FILE>
              Manifest to change; created if it does not exist (default: `toolyard.yaml` or `tools.yaml` here, or else `toolyard.yaml` in ~/.config/toolyard, or a new one here)

          --yes
              Skip the confirmation (required without a terminal)

          --dry-run
              Show the change without writing it

          --output <OUTPUT>
              Output format of results

              Possible values:
              - text: Readable text
              - json: One JSON text, for programs

              [default: text]

      -h, --help
              Print help (see a summary with '-h')

    Examples:
      toolyard add openapi https://petstore3.swagger.io/api/v3/openapi.json
      toolyard add openapi api/openapi.yaml --name shop --tag orders
      toolyard add openapi swagger.json --operation getPet --operation addPet --dry-run

    Shows the tools, the faults of the description and the change, and asks for confirmation. Everything else in the
    manifest is preserved, including comments. Credentials are not written; docs/manifest.md describes how to add them.
    ");
}

#[test]
fn of_schema() {
    assert_snapshot!(help(&["schema", "--help"]), @"
    Print the JSON Schema of a manifest kind

    Usage: toolyard schema [OPTIONS] [KIND]

    Arguments:
      [KIND]
              The kind of document

              Possible values:
              - toolregistry: Handlers, the sources of tools
              - toolyard:     Settings of the gateway itself

              [default: toolregistry]

    Options:
          --output <OUTPUT>
              Output format of results

              Possible values:
              - text: Readable text
              - json: One JSON text, for programs

              [default: text]

      -h, --help
              Print help (see a summary with '-h')

    Examples:
      toolyard schema > toolregistry.schema.json
      toolyard schema toolyard > toolyard.schema.json

    Editors with the YAML language server apply the schema that the first line of a manifest names:
      # yaml-language-server: $schema=toolregistry.schema.json
    ");
}

#[test]
fn version_output() {
    assert_eq!(help(&["--version"]), format!("toolyard {}\n", env!("CARGO_PKG_VERSION")));
}

#[test]
fn of_stdio() {
    assert_snapshot!(help(&["stdio", "--help"]), @"
    Serve the handlers of manifests on standard input and output

    Usage: toolyard stdio [OPTIONS]

    Options:
      -f, --file <FILE>
              Manifest or directory of manifests; repeatable (default: `toolyard.yaml` here or in ~/.config/toolyard, or else an embedded demo)

          --import <FILE>
              Configuration file of an MCP client whose servers to serve; see `toolyard import`

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
      toolyard stdio -f tools.yaml
      toolyard stdio --import .mcp.json           the servers of Claude, Cursor, VS Code and others
      toolyard connect claude --stdio -f tools.yaml    configure a client to start it

    The gateway serves the client that starts it and opens no port. Logs go to standard error. Edits of the files are
    applied as by `toolyard serve`. At the end of its input, the gateway waits up to `timeouts.drain` for running calls
    and exits; SIGTERM and SIGINT exit immediately. All processes of handlers end with it.
    ");
}
