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
      schema       Print the JSON Schema of a kind of document
      tools        List the tools of a running gateway
      call         Call a tool of a running gateway
      test         Try a tool of a handler in a running gateway, and hold arguments and result to its schemas
      doctor       Say how a running gateway and its handlers are
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
      toolyard tools                        list the tools of a running gateway
      toolyard call add a=1 b=2             call one of them
      toolyard doctor                       say how the gateway and its handlers are
      toolyard test weather                 try the tool of a handler
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
      toolyard doctor --output json               the status as `GET /api/v1/status` has it

    Exit status 1 when a handler is down, or the gateway itself.
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
    `toolyard serve`. It ends with its input, after the calls that run; SIGTERM and SIGINT end it at once. No
    process of a handler stays.
    ");
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
fn of_store() {
    assert_snapshot!(help(&["store", "--help"]), @"
    Look after what the gateway keeps: see how it is, copy it, bring it up to date

    Usage: toolyard store [OPTIONS] <COMMAND>

    Commands:
      status   Say where the store is, its version and its size; nothing is changed
      backup   Copy a store in a file to another file, as it is at one moment
      migrate  Make the store, or bring it to the version that this program needs
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
      toolyard store status                       where the store is, its version and its size
      toolyard store status -f gateway.yaml       of the gateway that serves this manifest
      toolyard store backup /backup/monday.db     a copy, which is made while the gateway serves
      toolyard store migrate -f gateway.yaml      before the gateway of a new version is started

    Without a manifest, or where it says nothing of a store, the store is the file `toolyard.db` in
    $TOOLYARD_STATE_DIR, $STATE_DIRECTORY, $XDG_STATE_HOME/toolyard or ~/.local/state/toolyard,
    the first of these that there is.
    ");
    assert_snapshot!(help(&["store", "status", "--help"]), @"
    Say where the store is, its version and its size; nothing is changed

    Usage: toolyard store status [OPTIONS]

    Options:
      -f, --file <FILE>
              A manifest, a folder of them, or `-` for standard input, as for `toolyard serve`

          --output <OUTPUT>
              How results are printed

              Possible values:
              - text: For people
              - json: For programs: one JSON text

              [default: text]

      -h, --help
              Print help (see a summary with '-h')

    Examples:
      toolyard store status -f gateway.yaml --output json
    ");
}

#[test]
fn of_the_commands_of_store() {
    assert_snapshot!(help(&["store", "backup", "--help"]), @"
    Copy a store in a file to another file, as it is at one moment

    The copy is a store itself. To restore it, while no gateway runs, put it in the place of the store and remove the files beside that whose names end in `-wal` and `-shm`: they belong to what was there before. A store on PostgreSQL is copied by pg_dump.

    Usage: toolyard store backup [OPTIONS] <FILE>

    Arguments:
      <FILE>
              The file of the copy, which is not there yet

    Options:
      -f, --file <FILE>
              A manifest, a folder of them, or `-` for standard input, as for `toolyard serve`

          --output <OUTPUT>
              How results are printed

              Possible values:
              - text: For people
              - json: For programs: one JSON text

              [default: text]

      -h, --help
              Print help (see a summary with '-h')

    Examples:
      toolyard store backup /backup/monday.db -f gateway.yaml
    ");
    assert_snapshot!(help(&["store", "migrate", "--help"]), @"
    Make the store, or bring it to the version that this program needs

    `toolyard serve` does the same when it starts. A store is never brought back to an older version: make a backup before.

    Usage: toolyard store migrate [OPTIONS]

    Options:
      -f, --file <FILE>
              A manifest, a folder of them, or `-` for standard input, as for `toolyard serve`

          --output <OUTPUT>
              How results are printed

              Possible values:
              - text: For people
              - json: For programs: one JSON text

              [default: text]

      -h, --help
              Print help (see a summary with '-h')

    Examples:
      toolyard store migrate -f gateway.yaml
    ");
}

#[test]
fn of_key() {
    assert_snapshot!(help(&["key", "--help"]), @"
    Hand out keys, and take them back: make, list and revoke them in the store of a gateway

    Usage: toolyard key [OPTIONS] <COMMAND>

    Commands:
      create  Make a key, and print it: it is not to be had again
      list    List the keys, those that open nothing any more among them
      revoke  Make a key open nothing any more
      help    Print this message or the help of the given subcommand(s)

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
      toolyard key create ci --scope 'tools:*'                        all tools, over MCP
      toolyard key create bot --scope 'tools:github/get_*' --rate 10/s --calls 1000/day
      toolyard key create ops --scope admin --scope rest --expires 90d
      toolyard key list
      toolyard key revoke 5d41402abc4b

    As soon as there is a key, every door of the gateway but /health asks for one, and goes on to do so when all are
    revoked. A gateway that runs knows of a new key at once, and of a revoked one within `timeouts.keyCheck`.
    ");
    assert_snapshot!(help(&["key", "create", "--help"]), @"
    Make a key, and print it: it is not to be had again

    Usage: toolyard key create [OPTIONS] --scope <SCOPE> <NAME>

    Arguments:
      <NAME>
              What the key is for, in your words

    Options:
          --scope <SCOPE>
              What it opens; may be said more than once

          --expires <TIME>
              For how long: 12h, 90d, 4w; without it until it is revoked

          --rate <AMOUNT>
              How often it may call: 10/s, 600/min, each gateway by itself

          --calls <AMOUNT>
              How many calls it may make: 1000/day, or 1000 in all

          --cost <AMOUNT>
              What its calls may cost, where tools have a `price`: 2.5/week

      -f, --file <FILE>
              A manifest, a folder of them, or `-` for standard input, as for `toolyard serve`

          --output <OUTPUT>
              How results are printed

              Possible values:
              - text: For people
              - json: For programs: one JSON text

              [default: text]

      -h, --help
              Print help (see a summary with '-h')

    Examples:
      toolyard key create ci --scope 'tools:*'
      toolyard key create ops --scope admin --scope rest --expires 90d -f gateway.yaml
      export TOOLYARD_KEY=$(toolyard key create me --scope 'tools:*' --scope rest)

    Scopes:
      tools:PATTERN  tools (and prompts and resources) that the key may see and call: `tools:*`, `tools:search_*`, or
                     with the handler, `tools:github/*`; a star stands for any characters
      rest           to do the same by REST, and to see the status
      admin          keys, the audit trail, tests of handlers, the level of the log
      functions      to invoke hosted functions
      metrics        /metrics
    ");
    assert_snapshot!(help(&["key", "list", "--help"]), @"
    List the keys, those that open nothing any more among them

    Usage: toolyard key list [OPTIONS]

    Options:
      -f, --file <FILE>
              A manifest, a folder of them, or `-` for standard input, as for `toolyard serve`

          --output <OUTPUT>
              How results are printed

              Possible values:
              - text: For people
              - json: For programs: one JSON text

              [default: text]

      -h, --help
              Print help (see a summary with '-h')

    Examples:
      toolyard key list
      toolyard key list -f gateway.yaml --output json
    ");
    assert_snapshot!(help(&["key", "revoke", "--help"]), @"
    Make a key open nothing any more

    Usage: toolyard key revoke [OPTIONS] <ID>

    Arguments:
      <ID>
              Its id: what stands in its text behind `ty_`, and first in a line of `toolyard key list`

    Options:
      -f, --file <FILE>
              A manifest, a folder of them, or `-` for standard input, as for `toolyard serve`

          --output <OUTPUT>
              How results are printed

              Possible values:
              - text: For people
              - json: For programs: one JSON text

              [default: text]

      -h, --help
              Print help (see a summary with '-h')

    Examples:
      toolyard key revoke 5d41402abc4b
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

#[test]
fn of_audit() {
    assert_snapshot!(help(&["audit", "--help"]), @"
    Read the audit trail in the store of a gateway: who called what, newest first

    Usage: toolyard audit [OPTIONS]

    Options:
          --key <ID>
              Only what this key did, by its id

          --name <NAME>
              Only calls of this tool, prompt or resource, or what was done to this key or handler

          --handler <HANDLER>
              Only calls that went to this handler

          --outcome <OUTCOME>
              Only calls that ended like this: ok, tool_error, or the code of an error

          --action <ACTION>
              Only this: call, key_created, key_revoked, handler_refreshed, log_changed, records_lost

          --since <TIME>
              Only what is not older: 10min, 1h, 7d

          --limit <COUNT>
              How many at most

              [default: 100]

          --before <NUMBER>
              Only records with a smaller number: how to go on, as the end of a page says

      -f, --file <FILE>
              A manifest, a folder of them, or `-` for standard input, as for `toolyard serve`

          --output <OUTPUT>
              How results are printed

              Possible values:
              - text: For people
              - json: For programs: one JSON text

              [default: text]

      -h, --help
              Print help (see a summary with '-h')

    Examples:
      toolyard audit                                the last hundred records
      toolyard audit --since 1h --outcome denied
      toolyard audit --key 5d41402abc4b --name search
      toolyard audit --before 4711                  the hundred before that record
      toolyard audit --limit 1000 --output json     the records as they are kept, one JSON text

    A gateway writes what has happened a moment later. What is kept of arguments, and for how long, says `audit` in the
    Toolyard document.
    ");
}
