//! Of the commands that look after what a gateway keeps.

use insta::assert_snapshot;

use super::help;

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

          --model <ID>
              The language model that its calls are made for, where they do not say: `builtins.results.models` has its bound

          --chunk-threshold <CHARACTERS>
              From how many characters on results are large for it

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
      memory:PATTERN namespaces of working memory beside its own: `memory:session/*`, `memory:*`
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
              Only this: call, key_created, key_revoked, handler_refreshed, log_changed, function_saved, function_published, function_deleted, records_lost

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
