//! Of the commands that ask a gateway, or have others ask it.

use insta::assert_snapshot;

use super::help;

#[test]
fn of_doctor() {
    assert_snapshot!(help(&["doctor", "--help"]), @"
    Say how a running gateway and its handlers are

    Usage: toolyard doctor [OPTIONS]

    Options:
          --url <URL>
              The MCP endpoint to ask; any MCP server on streamable HTTP will do

              [env: TOOLYARD_URL=]
              [default: http://127.0.0.1:8080/mcp]

          --key-file <FILE>
              A file with the key that the gateway is shown; without it, what `TOOLYARD_KEY` holds, if the gateway is on this machine or `TOOLYARD_URL` names it

          --sandbox
              Say which walls the machine of the gateway has, behind which functions and scripts run

          --tokens
              Say how many tokens of a model's context the list of tools takes, as clients may be given it

          --output <OUTPUT>
              How results are printed

              Possible values:
              - text: For people
              - json: For programs: one JSON text

              [default: text]

      -h, --help
              Print help (see a summary with '-h')

    Examples:
      toolyard doctor
      toolyard doctor --sandbox                   which walls functions and scripts run behind
      toolyard doctor --tokens                    how much of a model's context the lists of tools take
      toolyard doctor --output json               the status as `GET /api/v1/status` has it

    Exit status 1 when a handler is down, or the gateway itself, or nothing can run in its sandbox.
    ");
}

#[test]
fn of_tools() {
    assert_snapshot!(help(&["tools", "--help"]), @"
    List the tools of a running gateway

    Usage: toolyard tools [OPTIONS]

    Options:
          --url <URL>
              The MCP endpoint to ask; any MCP server on streamable HTTP will do

              [env: TOOLYARD_URL=]
              [default: http://127.0.0.1:8080/mcp]

          --key-file <FILE>
              A file with the key that the gateway is shown; without it, what `TOOLYARD_KEY` holds, if the gateway is on this machine or `TOOLYARD_URL` names it

          --output <OUTPUT>
              How results are printed

              Possible values:
              - text: For people
              - json: For programs: one JSON text

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
              The tool's name

      [KEY=VALUE]...
              Arguments, one by one

    Options:
          --json <OBJECT>
              All arguments as one JSON object

          --url <URL>
              The MCP endpoint to ask; any MCP server on streamable HTTP will do

              [env: TOOLYARD_URL=]
              [default: http://127.0.0.1:8080/mcp]

          --key-file <FILE>
              A file with the key that the gateway is shown; without it, what `TOOLYARD_KEY` holds, if the gateway is on this machine or `TOOLYARD_URL` names it

          --output <OUTPUT>
              How results are printed

              Possible values:
              - text: For people
              - json: For programs: one JSON text

              [default: text]

      -h, --help
              Print help (see a summary with '-h')

    Examples:
      toolyard call add a=1 b=2
      toolyard call search query='two words' limit=5
      toolyard call add --json '{"a": 1, "b": 2}' --output json

    A value is taken as text where the tool's schema says so, else as JSON where it is JSON.
    The exit status is 1 when the tool says that it failed.
    A result is printed as it came; only on a terminal, what could steer that is shown as an escape.
    "#);
}

#[test]
fn of_connect() {
    assert_snapshot!(help(&["connect", "--help"]), @"
    Write the configuration of an MCP client, so that it uses the gateway

    Usage: toolyard connect [OPTIONS] <CLIENT>

    Arguments:
      <CLIENT>
              The client

              Possible values:
              - claude:      Claude Desktop, for all that its user does
              - claude-code: Claude Code, for the project in this folder: `.mcp.json`
              - cursor:      Cursor, for all that its user does
              - vscode:      VS Code, for the project in this folder: `.vscode/mcp.json`

    Options:
          --url <URL>
              The MCP endpoint of a gateway that runs [default: http://127.0.0.1:8080/mcp]

          --stdio
              Have the client start a gateway of its own: `toolyard stdio`

      -f, --file <FILE>
              A manifest of that gateway, or a folder of them

          --key-env <NAME>
              The environment variable of the client that holds the key for the gateway; the key itself is not written

          --name <NAME>
              What the client calls the gateway

              [default: toolyard]

          --config <FILE>
              The client's file, where it is not where the client has it by default

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
      toolyard connect cursor                               the gateway on 127.0.0.1:8080
      toolyard connect vscode --url https://tools.example.com/mcp --key-env TOOLYARD_KEY
      toolyard connect claude --stdio -f tools.yaml         started by Claude Desktop
      toolyard connect claude-code --dry-run                only show what would change

    What would change is shown first, and then asked for; without a terminal it takes `--yes`. Everything else in
    the file stays as it is: its order, its comments, its other servers. Where another entry of the same name is
    replaced, the file as it was is kept beside, as FILE.bak.

    Claude Desktop starts its servers and connects to none, so it takes `--stdio`.
    ");
}

#[test]
fn of_completions() {
    assert_snapshot!(help(&["completions", "--help"]), @"
    Print the script with which a shell completes our commands

    Usage: toolyard completions [OPTIONS] <SHELL>

    Arguments:
      <SHELL>
              The shell

              [possible values: bash, elvish, fish, powershell, zsh]

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
      toolyard completions bash > ~/.local/share/bash-completion/completions/toolyard
      toolyard completions zsh > ~/.zfunc/_toolyard
      toolyard completions fish > ~/.config/fish/completions/toolyard.fish
    ");
}

#[test]
fn of_test() {
    assert_snapshot!(help(&["test", "--help"]), @r#"
    Try a tool of a handler in a running gateway, and hold arguments and result to its schemas

    Usage: toolyard test [OPTIONS] <HANDLER> [TOOL] [KEY=VALUE]...

    Arguments:
      <HANDLER>
              The handler, by its name in the manifest

      [TOOL]
              The tool; may be left out where the handler has one only

      [KEY=VALUE]...
              Arguments, one by one: each is taken as JSON where it is JSON, else as text

    Options:
          --json <OBJECT>
              All arguments as one JSON object

          --url <URL>
              The MCP endpoint to ask; any MCP server on streamable HTTP will do

              [env: TOOLYARD_URL=]
              [default: http://127.0.0.1:8080/mcp]

          --key-file <FILE>
              A file with the key that the gateway is shown; without it, what `TOOLYARD_KEY` holds, if the gateway is on this machine or `TOOLYARD_URL` names it

          --output <OUTPUT>
              How results are printed

              Possible values:
              - text: For people
              - json: For programs: one JSON text

              [default: text]

      -h, --help
              Print help (see a summary with '-h')

    Examples:
      toolyard test weather                         its one tool, without arguments
      toolyard test weather forecast city=Berlin
      toolyard test weather forecast --json '{"city": "Berlin"}' --output json

    The tool is really called, but for arguments that do not fit its input schema. The exit status is 1 when something does not fit,
    or the tool failed. It takes a key with the scope `admin`, where there are keys: see `toolyard key create --help`.
    "#);
}
