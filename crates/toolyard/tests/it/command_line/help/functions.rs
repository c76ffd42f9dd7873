//! Of the commands that ask a gateway about functions.

use insta::assert_snapshot;

use super::help;

#[test]
fn of_function_publish() {
    assert_snapshot!(help(&["function", "publish", "--help"]), @"
    Publish what is in a folder, as the next version of a function

    Usage: toolyard function publish [OPTIONS] <DIR>

    Arguments:
      <DIR>
              The folder of the function, or a single file with a handler

    Options:
          --id <ID>
              What it is called there, instead of what `function.json` says

          --patch
              Callers see no difference: 1.2.3 becomes 1.2.4 (unless said otherwise)

          --minor
              There is more for callers: 1.2.3 becomes 1.3.0

          --major
              Callers have to change: 1.2.3 becomes 2.0.0

          --note <TEXT>
              What is new, instead of what `function.json` says

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
      toolyard function publish weather                          the next patch: 1.0.0 first, then 1.0.1
      toolyard function publish weather --minor --note 'says how much it rains'
      toolyard function publish . --id weather-of-tomorrow --major

    It becomes the draft of the function, whose test cases the gateway runs. Unless all pass, and there is one, nothing is
    published, and the exit status is 1. A version that is published stays as it is.
    ");
}

#[test]
fn of_function_list() {
    assert_snapshot!(help(&["function", "list", "--help"]), @"
    List the functions of a gateway

    Usage: toolyard function list [OPTIONS]

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
      toolyard function list
      toolyard function list --output json
    ");
}

#[test]
fn of_function_show() {
    assert_snapshot!(help(&["function", "show", "--help"]), @"
    Show a function with its versions, or all of one version

    Usage: toolyard function show [OPTIONS] <ID> [VERSION]

    Arguments:
      <ID>
              The function

      [VERSION]
              A version: 1.2.0, 1.2, 1, latest or draft

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
      toolyard function show weather             its versions, latest first
      toolyard function show weather 1.2         its files, limits and test cases, of the latest 1.2
      toolyard function show weather draft

    Of the variables of its environment only the names are shown.
    ");
}

#[test]
fn of_function_invoke() {
    assert_snapshot!(help(&["function", "invoke", "--help"]), @r#"
    Call a function with an event

    Usage: toolyard function invoke [OPTIONS] <ID[@VERSION]> [EVENT]

    Arguments:
      <ID[@VERSION]>
              The function, and its version: 1.2.0, 1.2, 1, latest or draft; the latest unless said otherwise

      [EVENT]
              What it is given: JSON, the name of a file behind an `@`, or `-` for standard input

              [default: {}]

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
      toolyard function invoke weather '{"city": "Berlin"}'
      toolyard function invoke weather@1.2 @event.json
      echo '{"jsonrpc": "2.0", "id": 1, "method": "tools/list"}' | toolyard function invoke weather@draft -

    The answer is printed as it came. The exit status is 1 where it says that the function failed: it has an `error`, or a
    `statusCode` of 400 or more. It is POST /api/v1/functions/ID/VERSION/invoke, which needs no more than a key.
    "#);
}

#[test]
fn of_function_logs() {
    assert_snapshot!(help(&["function", "logs", "--help"]), @"
    Read the calls of a function, newest first: how they ended, and what it printed

    Usage: toolyard function logs [OPTIONS] <ID>

    Arguments:
      <ID>
              The function, which may be deleted

    Options:
          --version <VERSION>
              Only calls of this version

          --outcome <OUTCOME>
              Only calls that ended like this

              [possible values: ok, error, failed, timeout, overloaded, unavailable, cancelled]

          --since <TIME>
              Only calls that are not older: 10min, 1h, 7d

          --limit <COUNT>
              How many at most

              [default: 100]

          --before <NUMBER>
              Only calls before that place: how to go on, as the end of a page says

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
      toolyard function logs weather
      toolyard function logs weather --version 1.2.0 --since 1h --outcome failed
      toolyard function logs weather --limit 1000 --output json

    A call is `ok`; an `error`, where the function says so; `failed`, where it could say nothing, as with an exception; or
    was not answered: `timeout`, `overloaded`, `unavailable`, `cancelled`. A gateway writes what has happened a moment later.
    ");
}

#[test]
fn of_function_delete() {
    assert_snapshot!(help(&["function", "delete", "--help"]), @"
    Delete a function, or one of its versions

    Usage: toolyard function delete [OPTIONS] <ID> [VERSION]

    Arguments:
      <ID>
              The function

      [VERSION]
              One version, such as 1.2.0, or `draft`; without it all of them

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
      toolyard function delete weather 1.2.0     this version only; its number is not given again
      toolyard function delete weather draft
      toolyard function delete weather           the function, with all its versions

    Calls that run go on to their end. Who wants the latest version gets the one before.
    ");
}
