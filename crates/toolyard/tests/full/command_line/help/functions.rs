//! Help of the `toolyard function` commands that connect to a gateway.

use insta::assert_snapshot;

use super::help;

#[test]
fn of_function_publish() {
    assert_snapshot!(help(&["function", "publish", "--help"]), @"
    Publish the next version of a function

    Usage: toolyard function publish [OPTIONS] <DIR>

    Arguments:
      <DIR>
              Directory of the function, or a single file with a handler

    Options:
          --id <ID>
              Id of the function (default: the `id` in `function.json`, or else the name of the directory)

          --patch
              Publish a patch version without changes for callers: 1.2.3 becomes 1.2.4 (default)

          --minor
              Publish a minor version with additions for callers: 1.2.3 becomes 1.3.0

          --major
              Publish a major version with breaking changes: 1.2.3 becomes 2.0.0

          --note <TEXT>
              Release note, instead of that in `function.json`

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
      toolyard function publish weather                          the next patch version: 1.0.0, then 1.0.1
      toolyard function publish weather --minor --note 'says how much it rains'
      toolyard function publish . --id weather-of-tomorrow --major

    Uploads the files as the draft of the function. The gateway runs the test cases and publishes the draft if there is at
    least one and all pass; otherwise the exit status is 1. Published versions never change, and a function that is the same as
    the latest version gets no further one.
    ");
}

#[test]
fn of_function_list() {
    assert_snapshot!(help(&["function", "list", "--help"]), @"
    List the functions of a gateway

    Usage: toolyard function list [OPTIONS]

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
      toolyard function list
      toolyard function list --output json
    ");
}

#[test]
fn of_function_show() {
    assert_snapshot!(help(&["function", "show", "--help"]), @"
    Show the versions of a function, or the details of one version

    Usage: toolyard function show [OPTIONS] <ID> [VERSION]

    Arguments:
      <ID>
              Id of the function

      [VERSION]
              Version: 1.2.0, 1.2, 1, latest or draft

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
      toolyard function show weather             the versions, latest first
      toolyard function show weather 1.2         files, limits and test cases of the latest 1.2
      toolyard function show weather draft

    Environment variables are shown without their values.
    ");
}

#[test]
fn of_function_invoke() {
    assert_snapshot!(help(&["function", "invoke", "--help"]), @r#"
    Invoke a function with an event

    Usage: toolyard function invoke [OPTIONS] <ID[@VERSION]> [EVENT]

    Arguments:
      <ID[@VERSION]>
              Function and version: 1.2.0, 1.2, 1, latest or draft (default: latest)

      [EVENT]
              Event: JSON, `@FILE`, or `-` for standard input

              [default: {}]

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
      toolyard function invoke weather '{"city": "Berlin"}'
      toolyard function invoke weather@1.2 @event.json
      echo '{"jsonrpc": "2.0", "id": 1, "method": "tools/list"}' | toolyard function invoke weather@draft -

    Prints the response unchanged. The exit status is 1 if the function failed: the response has an `error`, or a
    `statusCode` of 400 or more. The request is POST /api/v1/functions/ID/VERSION/invoke.
    "#);
}

#[test]
fn of_function_logs() {
    assert_snapshot!(help(&["function", "logs", "--help"]), @"
    Show the calls of a function with their outcome and output, newest first

    Usage: toolyard function logs [OPTIONS] <ID>

    Arguments:
      <ID>
              Id of the function, which may be deleted

    Options:
          --version <VERSION>
              Only calls of this version

          --outcome <OUTCOME>
              Only calls with this outcome

              [possible values: ok, error, failed, timeout, overloaded, unavailable, cancelled, quota_exhausted, rate_limited]

          --follow
              Show new calls as they end, oldest first, until interrupted

          --since <TIME>
              Only entries newer than this: 10min, 1h, 7d

          --limit <COUNT>
              Maximum number of entries

              [default: 100]

          --before <NUMBER>
              Only entries before this number, which the note at the end of a page shows

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
      toolyard function logs weather
      toolyard function logs weather --version 1.2.0 --since 1h --outcome failed
      toolyard function logs weather --follow
      toolyard function logs weather --limit 1000 --output json

    The outcome of a call is `ok`, `error` (the function returned an error), `failed` (the function did not return, such as
    after an exception), or the reason why it was not answered: `timeout`, `overloaded`, `unavailable`, `cancelled`,
    `quota_exhausted` or `rate_limited`. Calls appear in the log with a short delay.
    ");
}

#[test]
fn of_function_delete() {
    assert_snapshot!(help(&["function", "delete", "--help"]), @"
    Delete a function or one of its versions

    Usage: toolyard function delete [OPTIONS] <ID> [VERSION]

    Arguments:
      <ID>
              Id of the function

      [VERSION]
              Version to delete, such as 1.2.0 or `draft` (default: all versions)

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
      toolyard function delete weather 1.2.0     delete one version; its number is not reused
      toolyard function delete weather draft
      toolyard function delete weather           delete the function with all its versions

    Running calls finish. If the latest version is deleted, `latest` refers to the previous one.
    ");
}
