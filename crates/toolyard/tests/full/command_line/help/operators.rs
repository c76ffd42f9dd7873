//! Help of the commands that manage the store of a gateway.

use insta::assert_snapshot;

use super::help;

#[test]
fn of_store() {
    assert_snapshot!(help(&["store", "--help"]), @"
    Manage the store of a gateway

    Usage: toolyard store [OPTIONS] <COMMAND>

    Commands:
      status   Show the location, version and size of the store
      backup   Back up a store file to another file
      migrate  Create the store, or migrate it to the version of this program
      help     Print this message or the help of the given subcommand(s)

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
      toolyard store status                       show location, version and size
      toolyard store status -f gateway.yaml       use the store of the gateway with this manifest
      toolyard store backup /backup/monday.db     back up the store, also while the gateway is running
      toolyard store migrate -f gateway.yaml      migrate before starting a new version of the gateway

    Without `store` in a manifest, the store is `toolyard.db` in $TOOLYARD_STATE_DIR or $STATE_DIRECTORY. Otherwise each
    gateway has its own below `stores` in $XDG_STATE_HOME/toolyard or ~/.local/state/toolyard, named after its manifest.
    ");
    assert_snapshot!(help(&["store", "status", "--help"]), @"
    Show the location, version and size of the store

    Usage: toolyard store status [OPTIONS]

    Options:
      -f, --file <FILE>
              Manifest of the gateway, directory of manifests, or `-` for standard input; repeatable (default: `toolyard.yaml` here or in ~/.config/toolyard)

          --output <OUTPUT>
              Output format of results

              Possible values:
              - text: Readable text
              - json: One JSON text, for programs

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
    Back up a store file to another file

    The backup is a consistent snapshot and a store itself. To restore it, stop the gateway, replace the store file with the backup and remove the old files beside it whose names end in `-wal` and `-shm`. Use pg_dump for a store on PostgreSQL.

    Usage: toolyard store backup [OPTIONS] <FILE>

    Arguments:
      <FILE>
              File to create

    Options:
      -f, --file <FILE>
              Manifest of the gateway, directory of manifests, or `-` for standard input; repeatable (default: `toolyard.yaml` here or in ~/.config/toolyard)

          --output <OUTPUT>
              Output format of results

              Possible values:
              - text: Readable text
              - json: One JSON text, for programs

              [default: text]

      -h, --help
              Print help (see a summary with '-h')

    Examples:
      toolyard store backup /backup/monday.db -f gateway.yaml
    ");
    assert_snapshot!(help(&["store", "migrate", "--help"]), @"
    Create the store, or migrate it to the version of this program

    `toolyard serve` does the same when it starts. There is no downgrade; create a backup first.

    Usage: toolyard store migrate [OPTIONS]

    Options:
      -f, --file <FILE>
              Manifest of the gateway, directory of manifests, or `-` for standard input; repeatable (default: `toolyard.yaml` here or in ~/.config/toolyard)

          --output <OUTPUT>
              Output format of results

              Possible values:
              - text: Readable text
              - json: One JSON text, for programs

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
    Manage the API keys of a gateway

    Usage: toolyard key [OPTIONS] <COMMAND>

    Commands:
      create  Create a key and print it (shown only once)
      list    List the keys, including revoked and expired keys
      revoke  Revoke a key
      forget  Allow a gateway that has lost its keys to start without keys
      help    Print this message or the help of the given subcommand(s)

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
      toolyard key create ci --scope 'tools:*'                        all tools by MCP
      toolyard key create bot --scope 'tools:github/get_*' --rate 10/s --calls 1000/day
      toolyard key create ops --scope admin --scope rest --expires 90d
      toolyard key list
      toolyard key revoke 5d41402abc4b
      toolyard key forget -f gateway.yaml     after the loss of the store, if keys are no longer needed

    Once a key exists, every endpoint except /health and /api/v1/openapi.json requires one, even after all keys are
    revoked. A running gateway accepts a new key immediately and rejects a revoked one within `timeouts.keyCheck`.
    ");
    assert_snapshot!(help(&["key", "create", "--help"]), @"
    Create a key and print it (shown only once)

    Usage: toolyard key create [OPTIONS] --scope <SCOPE> <NAME>

    Arguments:
      <NAME>
              Name of the key, for your reference

    Options:
          --scope <SCOPE>
              Scope to grant; repeatable

          --expires <TIME>
              Lifetime: 12h, 90d, 4w (default: until revoked)

          --rate <AMOUNT>
              Rate limit per gateway: 10/s, 600/min

          --calls <AMOUNT>
              Quota of calls: 1000/day, or 1000 in total

          --cost <AMOUNT>
              Quota of cost, for tools with a `price`: 2.5/week

          --model <ID>
              Default language model of its calls, whose limit is in `builtins.results.models`

          --chunk-threshold <CHARACTERS>
              Size in characters above which its results are large

      -f, --file <FILE>
              Manifest of the gateway, directory of manifests, or `-` for standard input; repeatable (default: `toolyard.yaml` here or in ~/.config/toolyard)

          --output <OUTPUT>
              Output format of results

              Possible values:
              - text: Readable text
              - json: One JSON text, for programs

              [default: text]

      -h, --help
              Print help (see a summary with '-h')

    Examples:
      toolyard key create ci --scope 'tools:*'
      toolyard key create ops --scope admin --scope rest --expires 90d -f gateway.yaml
      export TOOLYARD_KEY=$(toolyard key create me --scope 'tools:*' --scope rest)

    Scopes:
      tools:PATTERN  list and call these tools, prompts and resources: `tools:*`, `tools:search_*`, or with the
                     handler, `tools:github/*`; `*` matches any characters
      rest           use the same tools by REST, and read the status
      admin          manage keys, read the audit trail, test handlers, change the log level
      functions      invoke hosted functions
      metrics        read /metrics
      memory:PATTERN use further namespaces of working memory: `memory:session/*`, `memory:*`
      publish:PATTERN
                     publish hosted functions with these ids and read their logs: `publish:geo-*`
    ");
    assert_snapshot!(help(&["key", "list", "--help"]), @"
    List the keys, including revoked and expired keys

    Usage: toolyard key list [OPTIONS]

    Options:
      -f, --file <FILE>
              Manifest of the gateway, directory of manifests, or `-` for standard input; repeatable (default: `toolyard.yaml` here or in ~/.config/toolyard)

          --output <OUTPUT>
              Output format of results

              Possible values:
              - text: Readable text
              - json: One JSON text, for programs

              [default: text]

      -h, --help
              Print help (see a summary with '-h')

    Examples:
      toolyard key list
      toolyard key list -f gateway.yaml --output json
    ");
    assert_snapshot!(help(&["key", "revoke", "--help"]), @"
    Revoke a key

    Usage: toolyard key revoke [OPTIONS] <ID>

    Arguments:
      <ID>
              Id of the key: the part after `ty_`, and the first column of `toolyard key list`

    Options:
      -f, --file <FILE>
              Manifest of the gateway, directory of manifests, or `-` for standard input; repeatable (default: `toolyard.yaml` here or in ~/.config/toolyard)

          --output <OUTPUT>
              Output format of results

              Possible values:
              - text: Readable text
              - json: One JSON text, for programs

              [default: text]

      -h, --help
              Print help (see a summary with '-h')

    Examples:
      toolyard key revoke 5d41402abc4b
    ");
    assert_snapshot!(help(&["key", "forget", "--help"]), @"
    Allow a gateway that has lost its keys to start without keys

    A gateway that has had keys records this in a marker beside its configuration. If its store has no keys, it does not start, because it would accept unauthenticated requests. This command removes the marker. Keys in the store remain required.

    Usage: toolyard key forget [OPTIONS]

    Options:
      -f, --file <FILE>
              Manifest of the gateway, directory of manifests, or `-` for standard input; repeatable (default: `toolyard.yaml` here or in ~/.config/toolyard)

          --output <OUTPUT>
              Output format of results

              Possible values:
              - text: Readable text
              - json: One JSON text, for programs

              [default: text]

      -h, --help
              Print help (see a summary with '-h')

    Examples:
      toolyard key forget -f gateway.yaml
    ");
}

#[test]
fn of_audit() {
    assert_snapshot!(help(&["audit", "--help"]), @"
    Show the audit trail of a gateway, newest first

    Usage: toolyard audit [OPTIONS]

    Options:
          --key <ID>
              Only actions of the key with this id

          --name <NAME>
              Only records about this tool, prompt, resource, scheduled task, key or handler

          --handler <HANDLER>
              Only calls of this handler

          --outcome <OUTCOME>
              Only calls with this outcome: ok, tool_error or an error code; of scheduled tasks ok, failed or interrupted

          --action <ACTION>
              Only this action: call, task_fired, key_created, key_revoked, handler_refreshed, tool_changed, tool_added, tool_accepted, task_cancelled, log_changed, function_saved, function_published, function_deleted or records_lost

          --since <TIME>
              Only entries newer than this: 10min, 1h, 7d

          --limit <COUNT>
              Maximum number of entries

              [default: 100]

          --before <NUMBER>
              Only entries before this number, which the note at the end of a page shows

      -f, --file <FILE>
              Manifest of the gateway, directory of manifests, or `-` for standard input; repeatable (default: `toolyard.yaml` here or in ~/.config/toolyard)

          --output <OUTPUT>
              Output format of results

              Possible values:
              - text: Readable text
              - json: One JSON text, for programs

              [default: text]

      -h, --help
              Print help (see a summary with '-h')

    Examples:
      toolyard audit                                the last 100 records
      toolyard audit --since 1h --outcome denied
      toolyard audit --key 5d41402abc4b --name search
      toolyard audit --before 4711                  the 100 records before record 4711
      toolyard audit --limit 1000 --output json     the full records as JSON

    Reads the store of the gateway. Records appear there with a short delay. `audit` in the Toolyard document sets what is
    recorded of arguments, and the retention.
    ");
}

#[test]
fn of_crd() {
    assert_snapshot!(help(&["crd", "--help"]), @"
    Print the definitions of the operator's Kubernetes resources

    Usage: toolyard crd [OPTIONS]

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
      toolyard crd | kubectl apply -f -
      toolyard crd > crds.yaml
    ");
}

#[test]
fn of_openrouter_mcp() {
    assert_snapshot!(help(&["openrouter-mcp", "--help"]), @"
    Serve read-only account information of OpenRouter over MCP

    Usage: toolyard openrouter-mcp [OPTIONS]

    Options:
          --listen <ADDRESS>
              Address to serve MCP on over HTTP, at /mcp, with /health [default: standard input and output]

          --allow-unauthenticated
              Listen on an address that other machines can reach: all of them can then read the account

          --allowed-host <HOST>
              Accepted value of the `Host` header, besides the address; repeatable

          --key-file <FILE>
              File with the API key, read at each call [default: $OPENROUTER_API_KEY]

          --base-url <URL>
              Base URL of the API [default: $OPENROUTER_BASE_URL, or that of OpenRouter]

          --timeout <TIME>
              Time limit of a request to OpenRouter

              [default: 30s]

          --log-format <FORMAT>
              Log format

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
      toolyard openrouter-mcp                                         over stdio, with $OPENROUTER_API_KEY
      toolyard openrouter-mcp --key-file key --listen 127.0.0.1:8090  as a service

    The tools are get_credits, get_api_key_info, list_models, list_api_keys, get_api_key and get_generation. Credits
    and keys of the account need a management key. A gateway has the same tools with `builtins.openRouter`.
    The variables OpenRouter__ApiKey and OpenRouter__BaseUrl replace unset OPENROUTER_API_KEY and OPENROUTER_BASE_URL.
    ");
}
