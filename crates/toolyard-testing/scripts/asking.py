"""An MCP server on stdio, of the legacy era and without an SDK, that asks its client: for tests of the gateway.

usage: asking.py FOLDER

Where there is a file FOLDER/single, it writes its process id to FOLDER/waiting and does nothing else. Else it writes every message that it gets to FOLDER/received, with its process id.
Where there is a file FOLDER/roots, it asks for its client's folders once it is initialized, and never again. Its tools are

  pid        tells its process id
  declared   tells what its client has declared
  ask        asks `method` with `params`, and answers with the response
  later      asks the same once there is a file FOLDER/gate, and answers with the response
  roots      tells which folders it knows its client to have, or null
  flood      asks the same so often as `count` says, all at once, and answers with all responses
  leave      asks the same, and answers without waiting for a response; after the answer where `late` is true
  log        writes a line to its client's log before it answers
  say        sends a notification of `method` with `params` before it answers
  refuse     answers with `error`
  wait       answers once there is a file FOLDER/gate
  withdraw   asks, and withdraws the question once there is a file FOLDER/gate
  hang       answers, and does not read any more
"""

import itertools
import json
import os
import sys
import threading
import time

FOLDER = sys.argv[1]
if os.path.exists(os.path.join(FOLDER, "single")):
    # One of its kind runs already: this one waits for its end.
    with open(os.path.join(FOLDER, "waiting"), "a") as waiting:
        print(os.getpid(), file=waiting)
    while True:
        time.sleep(3600)
NAMES = ["pid", "declared", "ask", "later", "roots", "flood", "leave", "log", "say", "refuse", "wait", "withdraw", "hang"]
output = threading.Lock()
numbers = itertools.count(1)
asked = {}
declared = {}
folders = None


def send(message):
    with output:
        print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)


def answer(id, value):
    text = value if isinstance(value, str) else json.dumps(value)
    send({"id": id, "result": {"content": [{"type": "text", "text": text}]}})


def ask(arguments, then=lambda response: None):
    number = next(numbers)
    asked[number] = then
    send({"id": number, "method": arguments["method"], "params": arguments.get("params", {})})
    return number


def know(response):
    global folders
    folders = response


def await_gate():
    while not os.path.exists(os.path.join(FOLDER, "gate")):
        time.sleep(0.005)


def call(id, name, arguments):
    match name:
        case "pid":
            answer(id, str(os.getpid()))
        case "declared":
            answer(id, declared)
        case "ask":
            ask(arguments, lambda response: answer(id, response))
        case "later":
            await_gate()
            ask(arguments, lambda response: answer(id, response))
        case "roots":
            answer(id, folders)
        case "flood":
            responses = []

            def gather(response):
                responses.append(response)
                if len(responses) == arguments["count"]:
                    answer(id, responses)

            for _ in range(arguments["count"]):
                ask(arguments, gather)
        case "leave":
            if arguments.get("late"):
                answer(id, "left")
            ask(arguments)
            if not arguments.get("late"):
                answer(id, "left")
        case "log":
            send({"method": "notifications/message", "params": {"level": "error", "data": arguments["data"]}})
            answer(id, "logged")
        case "say":
            send({"method": arguments["method"], "params": arguments["params"]})
            answer(id, "said")
        case "refuse":
            send({"id": id, "error": arguments["error"]})
        case "wait":
            await_gate()
            answer(id, "The gate is open.")
        case "withdraw":
            number = ask(arguments)
            await_gate()
            send({"method": "notifications/cancelled", "params": {"requestId": number}})
            answer(id, "withdrawn")
        case "hang":
            answer(id, "no more")
            time.sleep(1000)


def take(message):
    match message.get("method"):
        case None:
            then = asked.pop(message["id"], None)
            if then:
                then({name: message[name] for name in ["result", "error"] if name in message})
        case "initialize":
            declared.update(message["params"]["capabilities"])
            version = message["params"]["protocolVersion"]
            info = {"name": "asking", "version": "1"}
            capabilities = {"tools": {}, "logging": {}}
            result = {"protocolVersion": version, "capabilities": capabilities, "serverInfo": info}
            send({"id": message["id"], "result": result})
        case "notifications/initialized" if os.path.exists(os.path.join(FOLDER, "roots")):
            ask({"method": "roots/list"}, know)
        case "tools/list":
            tools = [{"name": name, "inputSchema": {"type": "object"}} for name in NAMES]
            send({"id": message["id"], "result": {"tools": tools}})
        case "tools/call":
            name, arguments = message["params"]["name"], message["params"].get("arguments", {})
            if name in ["wait", "withdraw", "later"]:
                threading.Thread(target=call, args=[message["id"], name, arguments], daemon=True).start()
            else:
                call(message["id"], name, arguments)
        case method if "id" in message:
            error = {"code": -32601, "message": f"unknown method {method}"}
            send({"id": message["id"], "error": error})


with open(os.path.join(FOLDER, "received"), "a") as received:
    for line in sys.stdin:
        print(json.dumps({"pid": os.getpid(), **json.loads(line)}), file=received, flush=True)
        take(json.loads(line))
