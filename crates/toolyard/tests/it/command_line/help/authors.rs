//! Of the commands that authors of functions use.

use insta::assert_snapshot;

use super::help;

#[test]
fn of_function() {
    assert_snapshot!(help(&["function", "--help"]), @r#"
    Write functions, try them, publish them in versions, and see what becomes of them

    Usage: toolyard function [OPTIONS] <COMMAND>

    Commands:
      new      Begin a function: a folder with a handler that works, and its test cases
      dev      Test a function whenever it is saved, and serve it to agents meanwhile
      test     Run the test cases of a function: of a folder on this machine, or of a version in a gateway
      publish  Publish what is in a folder, as the next version of a function
      list     List the functions of a gateway
      show     Show a function with its versions, or all of one version
      invoke   Call a function with an event
      logs     Read the calls of a function, newest first: how they ended, and what it printed
      delete   Delete a function, or one of its versions
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
      toolyard function new --lang py weather       begin a function in the folder `weather`
      toolyard function dev weather                 test it on every save, and serve it to agents
      toolyard function test weather                run its test cases once
      toolyard function publish weather --minor     send it to a gateway, as the next version
      toolyard function list
      toolyard function invoke weather '{"city": "Berlin"}'
      toolyard function logs weather --since 1h

    A manifest has handlers of `type: function` for them; POST /api/v1/functions/ID/VERSION/invoke calls them without.
    To publish takes a key with the scope `admin`, where there are keys, and to invoke one with `functions`.
    "#);
}

#[test]
fn of_function_new() {
    assert_snapshot!(help(&["function", "new", "--help"]), @"
    Begin a function: a folder with a handler that works, and its test cases

    Usage: toolyard function new [OPTIONS] --lang <LANGUAGE> <NAME>

    Arguments:
      <NAME>
              What it is called

    Options:
          --lang <LANGUAGE>
              What it is written in

              Possible values:
              - py:  Python 3
              - js:  JavaScript, synchronous
              - lua: Lua 5.4

          --kind <KIND>
              What it answers

              Possible values:
              - mcp:      JSON-RPC requests, as an MCP server with tools of its own
              - function: Events of any form, with a status and a body

              [default: mcp]

          --output <OUTPUT>
              How results are printed

              Possible values:
              - text: For people
              - json: For programs: one JSON text

              [default: text]

      -h, --help
              Print help (see a summary with '-h')

    Examples:
      toolyard function new --lang py weather
      toolyard function new --lang js weather --kind function     an event in, a status and a body out

    The folder has the name of the function, and is made here. Nothing that is there is replaced.
    ");
}

#[test]
fn of_function_dev() {
    assert_snapshot!(help(&["function", "dev", "--help"]), @"
    Test a function whenever it is saved, and serve it to agents meanwhile

    Usage: toolyard function dev [OPTIONS] <DIR>

    Arguments:
      <DIR>
              The folder of the function, or a single file with a handler

    Options:
          --listen <PLACE>
              Where to serve it

              [default: 127.0.0.1:8080]

          --isolation <ISOLATION>
              What happens where this machine lacks walls, instead of what the manifest says

              Possible values:
              - required:    Nothing runs, and what is missing is said
              - best-effort: Functions run within the walls that there are
              - none:        Functions run without any: only your own

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
      toolyard function dev weather
      toolyard function dev . --listen 127.0.0.1:0 --isolation best-effort
      toolyard call echo text=hello              in another terminal: its tools are at http://127.0.0.1:8080/mcp

    A function that is no MCP server is one tool there, `call`, whose arguments are its event. Each call is shown with what
    it printed. A save that cannot be loaded is shown, and what was there before goes on. SIGINT (Ctrl-C) ends it.
    ");
}

#[test]
fn of_function_test() {
    assert_snapshot!(help(&["function", "test", "--help"]), @"
    Run the test cases of a function: of a folder on this machine, or of a version in a gateway

    Usage: toolyard function test [OPTIONS] <DIR|ID> [VERSION]

    Arguments:
      <DIR|ID>
              The folder of a function, or the id of one in a gateway

      [VERSION]
              A version in the gateway: 1.2.0, 1.2, 1, latest or draft; the latest unless said otherwise

    Options:
          --isolation <ISOLATION>
              What happens where this machine lacks walls, instead of what the manifest says

              Possible values:
              - required:    Nothing runs, and what is missing is said
              - best-effort: Functions run within the walls that there are
              - none:        Functions run without any: only your own

      -f, --file <FILE>
              A manifest, a folder of them, or `-` for standard input, as for `toolyard serve`

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
      toolyard function test weather                 of the folder `weather`, on this machine
      toolyard function test . --isolation best-effort
      toolyard function test ./weather -f gateway.yaml    with what this gateway lends
      toolyard function test weather 1.2.0           of a version in a running gateway
      toolyard function test weather draft --output json

    What is there as a file or a folder is tested here, unless a version is named. The exit status is 1 where a test case
    fails, or there is none. Calls of tests are in no log, and cost nothing.
    ");
}
