mod authors;
mod clients;
mod functions;
mod operators;

use insta::assert_snapshot;

use super::toolyard_with;

/// What is printed, without the blanks at the ends of lines.
#[track_caller]
fn help(args: &[&str]) -> String {
    let ended = toolyard_with(args);
    assert_eq!((ended.code, &*ended.stderr), (0, ""));
    ended.stdout.lines().map(|line| format!("{}\n", line.trim_end())).collect()
}

#[test]
fn of_all() {
    assert_snapshot!(help(&["--help"]), @"
    One yard for every tool an agent uses.

    Toolyard reads ToolRegistry manifests and serves every tool behind them as one MCP endpoint.

    Usage: toolyard [OPTIONS] <COMMAND>

    Commands:
      serve        Serve the handlers of manifests as one MCP endpoint
      stdio        Serve the handlers of manifests on standard input and output, to the one client that starts this
      check        Check manifests, and show everything that is wrong with them
      import       Print a manifest for the servers in the file of an MCP client
      add          Add a handler to a manifest
      schema       Print the JSON Schema of a kind of document
      tools        List the tools of a running gateway
      call         Call a tool of a running gateway
      test         Try a tool of a handler in a running gateway, and hold arguments and result to its schemas
      doctor       Say how a running gateway and its handlers are
      function     Write functions, try them, publish them in versions, and see what becomes of them
      key          Hand out keys, and take them back: make, list and revoke them in the store of a gateway
      audit        Read the audit trail in the store of a gateway: who called what, newest first
      store        Look after what the gateway keeps: see how it is, copy it, bring it up to date
      connect      Write the configuration of an MCP client, so that it uses the gateway
      completions  Print the script with which a shell completes our commands
      help         Print this message or the help of the given subcommand(s)

    Options:
          --output <OUTPUT>
              How results are printed

              Possible values:
              - text: For people
              - json: For programs: one JSON text

              [default: text]

      -h, --help
              Print help (see a summary with '-h')

      -V, --version
              Print version

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
      NO_COLOR            set to anything, no colours on a terminal either
    ");
}

#[test]
fn of_serve() {
    assert_snapshot!(help(&["serve", "--help"]), @"
    Serve the handlers of manifests as one MCP endpoint

    Usage: toolyard serve [OPTIONS]

    Options:
      -f, --file <FILE>
              A manifest, or a folder of them; without any, an embedded demo is served

          --import <FILE>
              The file of an MCP client, whose servers are served as well: see `toolyard import`

          --listen <PLACE>
              Where to listen, instead of where the manifest says: an address such as 127.0.0.1:8080, or a socket such as unix:/run/toolyard.sock

          --log-format <FORMAT>
              How the log looks, instead of what the manifest says

              Possible values:
              - human: For people
              - json:  One JSON object a line

          --output <OUTPUT>
              How results are printed

              Possible values:
              - text: For people
              - json: For programs: one JSON text

              [default: text]

      -h, --help
              Print help (see a summary with '-h')

    Examples:
      toolyard serve                              the embedded demo, on 127.0.0.1:8080
      toolyard serve -f tools.yaml -f more/       files, and all manifests of a folder
      toolyard serve --import .mcp.json           the servers of Claude, Cursor, VS Code and others
      toolyard serve -f tools.yaml --listen 127.0.0.1:0    on a port that the system chooses
      toolyard serve -f tools.yaml --listen unix:/run/toolyard.sock --listen 127.0.0.1:8080

    An edit of the files is applied while the gateway serves: only what it changes is touched, and one with
    problems is refused as a whole. SIGHUP has the files read at once, those of the certificate as well.
    `-f -` is standard input, which is read once.

    SIGTERM and SIGINT drain: no new calls are taken, those that run are let end, exit status 0.
    A second one ends at once.
    ");
}

#[test]
fn of_check() {
    assert_snapshot!(help(&["check", "--help"]), @"
    Check manifests, and show everything that is wrong with them

    Usage: toolyard check [OPTIONS] <FILE|FOLDER>...

    Arguments:
      <FILE|FOLDER>...
              A manifest, a folder of them, or `-` for standard input

    Options:
          --output <OUTPUT>
              How results are printed

              Possible values:
              - text: For people
              - json: For programs: one JSON text

              [default: text]

      -h, --help
              Print help (see a summary with '-h')

    Examples:
      toolyard check tools.yaml more/
      toolyard check --output json tools.yaml
      cat tools.yaml | toolyard check -

    Nothing is started and nothing connected to. The variables and the files that the manifests refer to have to
    be there. The exit status is 2 when there are problems.
    ");
}

#[test]
fn of_import() {
    assert_snapshot!(help(&["import", "--help"]), @"
    Print a manifest for the servers in the file of an MCP client

    Usage: toolyard import [OPTIONS] <FILE>

    Arguments:
      <FILE>
              A file with `mcpServers` (Claude, Cursor and others), `servers` (VS Code) or `Mcp.Servers` (.NET); `-` for standard input

    Options:
          --output <OUTPUT>
              How results are printed

              Possible values:
              - text: For people
              - json: For programs: one JSON text

              [default: text]

      -h, --help
              Print help (see a summary with '-h')

    Examples:
      toolyard import .mcp.json > tools.yaml
      toolyard import ~/.cursor/mcp.json --output json
      toolyard serve --import .mcp.json           serve them without a manifest

    What a client writes as ${env:NAME} or ${input:name} becomes ${NAME}. Secrets that stand in the file stand in
    the manifest, too. What changes on the way is said on standard error.
    ");
}

#[test]
fn of_add() {
    assert_snapshot!(help(&["add", "--help"]), @"
    Add a handler to a manifest

    Usage: toolyard add [OPTIONS] <COMMAND>

    Commands:
      openapi  Add a service with an OpenAPI description: its operations become tools
      help     Print this message or the help of the given subcommand(s)

    Options:
          --output <OUTPUT>
              How results are printed

              Possible values:
              - text: For people
              - json: For programs: one JSON text

              [default: text]

      -h, --help
              Print help (see a summary with '-h')

    Examples:
      toolyard add openapi https://petstore3.swagger.io/api/v3/openapi.json
      toolyard add openapi api/openapi.yaml --name shop --tag orders -f tools.yaml
    ");
    assert_snapshot!(help(&["add", "openapi", "--help"]), @"
    Add a service with an OpenAPI description: its operations become tools

    Usage: toolyard add openapi [OPTIONS] <URL|FILE>

    Arguments:
      <URL|FILE>
              The description: OpenAPI 2 or 3, as JSON or YAML

    Options:
          --name <NAME>
              The name of the handler; that of the service unless set

          --operation <NAME>
              An operation that becomes a tool, by its `operationId` or by the name of the tool; may be said more than once

          --tag <TAG>
              A tag whose operations become tools; may be said more than once

      -f, --file <FILE>
              The manifest; it is made where there is none

              [default: tools.yaml]

          --yes
              Do not ask

          --dry-run
              Show the change, and write nothing

          --output <OUTPUT>
              How results are printed

              Possible values:
              - text: For people
              - json: For programs: one JSON text

              [default: text]

      -h, --help
              Print help (see a summary with '-h')

    Examples:
      toolyard add openapi https://petstore3.swagger.io/api/v3/openapi.json
      toolyard add openapi api/openapi.yaml --name shop --tag orders
      toolyard add openapi swagger.json --operation getPet --operation addPet --dry-run

    The tools are shown first, with what is wrong with the description. What would change of the manifest is shown,
    too, and then asked for; without a terminal it takes `--yes`. Everything else in the manifest stays as it is,
    comments included. Credentials are not written: docs/manifest.md says how a handler has them.
    ");
}

#[test]
fn of_schema() {
    assert_snapshot!(help(&["schema", "--help"]), @"
    Print the JSON Schema of a kind of document

    Usage: toolyard schema [OPTIONS] [KIND]

    Arguments:
      [KIND]
              The kind of document

              Possible values:
              - toolregistry: Handlers: where tools come from
              - toolyard:     The gateway itself

              [default: toolregistry]

    Options:
          --output <OUTPUT>
              How results are printed

              Possible values:
              - text: For people
              - json: For programs: one JSON text

              [default: text]

      -h, --help
              Print help (see a summary with '-h')

    Examples:
      toolyard schema > toolregistry.schema.json
      toolyard schema toolyard > toolyard.schema.json

    An editor with the YAML language server follows a first line such as
      # yaml-language-server: $schema=toolregistry.schema.json
    ");
}

#[test]
fn the_version() {
    assert_eq!(help(&["--version"]), format!("toolyard {}\n", env!("CARGO_PKG_VERSION")));
}

#[test]
fn of_stdio() {
    assert_snapshot!(help(&["stdio", "--help"]), @"
    Serve the handlers of manifests on standard input and output, to the one client that starts this

    Usage: toolyard stdio [OPTIONS]

    Options:
      -f, --file <FILE>
              A manifest, or a folder of them; without any, an embedded demo is served

          --import <FILE>
              The file of an MCP client, whose servers are served as well: see `toolyard import`

          --log-format <FORMAT>
              How the log looks, instead of what the manifest says

              Possible values:
              - human: For people
              - json:  One JSON object a line

          --output <OUTPUT>
              How results are printed

              Possible values:
              - text: For people
              - json: For programs: one JSON text

              [default: text]

      -h, --help
              Print help (see a summary with '-h')

    Examples:
      toolyard stdio -f tools.yaml
      toolyard stdio --import .mcp.json           the servers of Claude, Cursor, VS Code and others
      toolyard connect claude --stdio -f tools.yaml    have a client start it

    Nothing is listened on. What is logged goes to standard error, and edits of the files are applied as by
    `toolyard serve`. It ends with its input, after the calls that run, which it gives the time that
    `timeouts.drain` says; SIGTERM and SIGINT end it at once. No process of a handler stays.
    ");
}
