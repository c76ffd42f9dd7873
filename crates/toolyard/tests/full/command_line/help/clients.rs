//! Help of the commands for clients of a gateway.

use insta::assert_snapshot;

use super::help;

#[test]
fn of_doctor() {
    assert_snapshot!(help(&["doctor", "--help"]), @"
    Check a running gateway and its handlers

    Usage: toolyard doctor [OPTIONS]

    Options:
          --url <URL>
              MCP endpoint of the gateway, or of any MCP server on streamable HTTP (default: that of the gateway of `toolyard.yaml` here or in ~/.config/toolyard, or else http://127.0.0.1:8080/mcp)

              [env: TOOLYARD_URL=]

          --key-file <FILE>
              Read the API key from FILE (default: $TOOLYARD_KEY, sent only to loopback or $TOOLYARD_URL)

          --wait
              Wait until each handler is ready or has failed

          --sandbox
              Show which isolation layers the gateway enforces for functions and scripts

          --tokens
              Show how many tokens of a model's context the list of tools takes

          --output <OUTPUT>
              Output format of results

              Possible values:
              - text: Readable text
              - json: One JSON text, for programs

              [default: text]

      -h, --help
              Print help (see a summary with '-h')

    Examples:
      toolyard doctor
      toolyard doctor --wait                      wait for servers that are being installed or started
      toolyard doctor --sandbox                   show the isolation of functions and scripts
      toolyard doctor --tokens                    show the tokens that lists of tools take in a model's context
      toolyard doctor --output json               print the response of `GET /api/v1/status`

    The exit status is 1 if the gateway or a handler is down, or nothing can run in the sandbox.
    ");
}

#[test]
fn of_tools() {
    assert_snapshot!(help(&["tools", "--help"]), @"
    List the tools of a running gateway

    Usage: toolyard tools [OPTIONS]

    Options:
          --url <URL>
              MCP endpoint of the gateway, or of any MCP server on streamable HTTP (default: that of the gateway of `toolyard.yaml` here or in ~/.config/toolyard, or else http://127.0.0.1:8080/mcp)

              [env: TOOLYARD_URL=]

          --key-file <FILE>
              Read the API key from FILE (default: $TOOLYARD_KEY, sent only to loopback or $TOOLYARD_URL)

          --output <OUTPUT>
              Output format of results

              Possible values:
              - text: Readable text
              - json: One JSON text, for programs

              [default: text]

      -h, --help
              Print help (see a summary with '-h')

    Examples:
      toolyard tools
      toolyard tools --url http://127.0.0.1:9000/mcp --output json
    ");
}

#[test]
fn of_call() {
    assert_snapshot!(help(&["call", "--help"]), @r#"
    Call a tool of a running gateway

    Usage: toolyard call [OPTIONS] <NAME> [KEY=VALUE]...

    Arguments:
      <NAME>
              Name of the tool

      [KEY=VALUE]...
              Arguments of the tool

    Options:
          --json <OBJECT>
              All arguments as one JSON object: the object itself, `@FILE`, or `-` for standard input

          --url <URL>
              MCP endpoint of the gateway, or of any MCP server on streamable HTTP (default: that of the gateway of `toolyard.yaml` here or in ~/.config/toolyard, or else http://127.0.0.1:8080/mcp)

              [env: TOOLYARD_URL=]

          --key-file <FILE>
              Read the API key from FILE (default: $TOOLYARD_KEY, sent only to loopback or $TOOLYARD_URL)

          --output <OUTPUT>
              Output format of results

              Possible values:
              - text: Readable text
              - json: One JSON text, for programs

              [default: text]

      -h, --help
              Print help (see a summary with '-h')

    Examples:
      toolyard call add a=1 b=2
      toolyard call search query='two words' limit=5
      toolyard call add --json '{"a": 1, "b": 2}' --output json
      toolyard call add --json @arguments.json

    A value is a string if the schema of the tool says so, or else JSON if it parses as JSON.
    The exit status is 1 if the tool reports an error.
    Results are printed unchanged; on a terminal, control characters are escaped.
    "#);
}

#[test]
fn of_connect() {
    assert_snapshot!(help(&["connect", "--help"]), @"
    Add the gateway to the configuration of an MCP client

    Usage: toolyard connect [OPTIONS] <CLIENT>

    Arguments:
      <CLIENT>
              MCP client to configure

              Possible values:
              - claude:      Claude Desktop, for all projects of the user
              - claude-code: Claude Code, for the project in this directory (`.mcp.json`)
              - cursor:      Cursor, for all projects of the user
              - vscode:      VS Code, for the project in this directory (`.vscode/mcp.json`)

    Options:
          --url <URL>
              MCP endpoint of a running gateway (default: $TOOLYARD_URL, or that of `toolyard.yaml` here or in ~/.config/toolyard, or http://127.0.0.1:8080/mcp)

          --stdio
              Let the client start its own gateway with `toolyard stdio`

      -f, --file <FILE>
              Manifest or directory of manifests for that gateway; repeatable

          --key-env <NAME>
              Environment variable of the client that holds the API key; the key itself is not written

          --name <NAME>
              Name of the gateway in the configuration

              [default: toolyard]

          --config <FILE>
              Configuration file of the client, if not in the default location

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
      toolyard connect cursor                               use the gateway on 127.0.0.1:8080
      toolyard connect vscode --url https://tools.example.com/mcp --key-env TOOLYARD_KEY
      toolyard connect claude --stdio -f tools.yaml         let Claude Desktop start a gateway
      toolyard connect claude-code --dry-run                only show the change

    Shows the change and asks for confirmation. Everything else in the file is preserved: order, comments and other
    servers. If an entry with the same name is replaced, the previous file is saved as FILE.bak.

    Claude Desktop only starts local servers, so it requires `--stdio`.
    ");
}

#[test]
fn of_completions() {
    assert_snapshot!(help(&["completions", "--help"]), @"
    Print a shell completion script

    Usage: toolyard completions [OPTIONS] <SHELL>

    Arguments:
      <SHELL>
              The shell

              [possible values: bash, elvish, fish, powershell, zsh]

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
      toolyard completions bash > ~/.local/share/bash-completion/completions/toolyard
      toolyard completions zsh > ~/.zfunc/_toolyard
      toolyard completions fish > ~/.config/fish/completions/toolyard.fish
    ");
}

#[test]
fn of_test() {
    assert_snapshot!(help(&["test", "--help"]), @r#"
    Test a tool of a handler and validate its arguments and result

    Usage: toolyard test [OPTIONS] <HANDLER> [TOOL] [KEY=VALUE]...

    Arguments:
      <HANDLER>
              Name of the handler in the manifest

      [TOOL]
              Name of the tool; optional if the handler has only one

      [KEY=VALUE]...
              Arguments of the tool

    Options:
          --json <OBJECT>
              All arguments as one JSON object: the object itself, `@FILE`, or `-` for standard input

          --url <URL>
              MCP endpoint of the gateway, or of any MCP server on streamable HTTP (default: that of the gateway of `toolyard.yaml` here or in ~/.config/toolyard, or else http://127.0.0.1:8080/mcp)

              [env: TOOLYARD_URL=]

          --key-file <FILE>
              Read the API key from FILE (default: $TOOLYARD_KEY, sent only to loopback or $TOOLYARD_URL)

          --output <OUTPUT>
              Output format of results

              Possible values:
              - text: Readable text
              - json: One JSON text, for programs

              [default: text]

      -h, --help
              Print help (see a summary with '-h')

    Examples:
      toolyard test weather                         the only tool of the handler, without arguments
      toolyard test weather forecast city=Berlin
      toolyard test weather forecast --json '{"city": "Berlin"}' --output json

    A value is JSON if it parses as JSON, or else a string.
    The running gateway calls the tool unless its arguments do not match the input schema. The exit status is 1 if the
    arguments or the result do not match, or the tool fails. Requires a key with the scope `admin` if the gateway has keys;
    see `toolyard key create --help`.
    "#);
}
