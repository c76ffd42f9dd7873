//! Help of the local `toolyard function` commands.

use insta::assert_snapshot;

use super::help;

#[test]
fn of_function() {
    assert_snapshot!(help(&["function", "--help"]), @r#"
    Create, test, publish and invoke functions

    Usage: toolyard function [OPTIONS] <COMMAND>

    Commands:
      new      Create a function with a working handler and test cases
      dev      Serve a function to agents and test it on every save
      test     Run the test cases of a function, locally or in a gateway
      publish  Publish the next version of a function
      list     List the functions of a gateway
      show     Show the versions of a function, or the details of one version
      invoke   Invoke a function with an event
      logs     Show the calls of a function with their outcome and output, newest first
      delete   Delete a function or one of its versions
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
      toolyard function new --lang py weather       create a function in the directory `weather`
      toolyard function dev weather                 serve it to agents and test it on every save
      toolyard function test weather                run its test cases once
      toolyard function publish weather --minor     publish it to a gateway as the next minor version
      toolyard function list
      toolyard function invoke weather '{"city": "Berlin"}'
      toolyard function logs weather --since 1h

    Handlers of `type: function` make functions available as tools. POST /api/v1/functions/ID/VERSION/invoke calls them
    without a handler. If the gateway has keys, publishing requires a key with the scope `admin` or `publish:PATTERN`,
    and invoking one with `functions`.
    "#);
}

#[test]
fn of_function_new() {
    assert_snapshot!(help(&["function", "new", "--help"]), @"
    Create a function with a working handler and test cases

    Usage: toolyard function new [OPTIONS] --lang <LANGUAGE> <NAME>

    Arguments:
      <NAME>
              Name of the function

    Options:
          --lang <LANGUAGE>
              Language of the function

              Possible values:
              - py:  Python 3
              - js:  JavaScript, synchronous
              - lua: Lua 5.4

          --kind <KIND>
              Kind of the function

              Possible values:
              - mcp:      MCP server with its own tools
              - function: Handler that takes an event and returns a status and a body

              [default: mcp]

          --output <OUTPUT>
              Output format of results

              Possible values:
              - text: Readable text
              - json: One JSON text, for programs

              [default: text]

      -h, --help
              Print help (see a summary with '-h')

    Examples:
      toolyard function new --lang py weather
      toolyard function new --lang js weather --kind function     takes an event, returns a status and a body

    Creates a directory with the name of the function in the current directory. Existing files are not replaced.
    ");
}

#[test]
fn of_function_dev() {
    assert_snapshot!(help(&["function", "dev", "--help"]), @"
    Serve a function to agents and test it on every save

    Usage: toolyard function dev [OPTIONS] <DIR>

    Arguments:
      <DIR>
              Directory of the function, or a single file with a handler

    Options:
          --listen <ADDRESS>
              Address or Unix socket to listen on (default: 127.0.0.1:8080, or a free port if it is in use)

          --isolation <ISOLATION>
              Isolation of functions (default: that of the manifest)

              Possible values:
              - required:    Fail if this machine does not support all isolation layers
              - best-effort: Use the isolation layers that this machine supports
              - none:        Run without isolation; use only for your own functions

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
      toolyard function dev weather
      toolyard function dev . --listen 127.0.0.1:0 --isolation best-effort
      toolyard call echo text=hello              in another terminal: call a tool at http://127.0.0.1:8080/mcp

    A function of kind `function` is served as one tool, `call`, whose arguments are the event. Prints each call with the
    output of the function. If a saved version cannot be loaded, prints the problem and keeps serving the previous one.
    Press Ctrl-C to exit.
    ");
}

#[test]
fn of_function_test() {
    assert_snapshot!(help(&["function", "test", "--help"]), @"
    Run the test cases of a function, locally or in a gateway

    Usage: toolyard function test [OPTIONS] <DIR|ID> [VERSION]

    Arguments:
      <DIR|ID>
              Directory of a function, or id of a function in a gateway

      [VERSION]
              Version in the gateway: 1.2.0, 1.2, 1, latest or draft (default: latest)

    Options:
          --isolation <ISOLATION>
              Isolation of functions (default: that of the manifest)

              Possible values:
              - required:    Fail if this machine does not support all isolation layers
              - best-effort: Use the isolation layers that this machine supports
              - none:        Run without isolation; use only for your own functions

      -f, --file <FILE>
              Manifest of the gateway, directory of manifests, or `-` for standard input; repeatable (default: `toolyard.yaml` here or in ~/.config/toolyard)

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
      toolyard function test weather                 test the directory `weather` locally
      toolyard function test . --isolation best-effort
      toolyard function test ./weather -f gateway.yaml    use the sandbox and function settings of a gateway
      toolyard function test weather 1.2.0           test a version in a running gateway
      toolyard function test weather draft --output json

    An existing file or directory is tested locally unless a version is given. The exit status is 1 if a test case fails or
    there is none. Calls of tests are not logged and have no cost.
    ");
}
