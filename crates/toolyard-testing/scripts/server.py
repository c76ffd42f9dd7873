"""An MCP server on stdio, of the legacy era and without an SDK, for tests of the gateway.

usage: server.py FOLDER MANNER

It writes every message that it gets to FOLDER/received. Its tools are `pid`, which tells its process id, and
`wait`, which answers once there is a file FOLDER/gate. MANNER is one of

  good      does as it should
  fragile   exits when it is asked something that it does not know
  noisy     prints what is no message to its output, and a megabyte to its log
  mute      answers nothing at all
  brief     exits when it has listed its tools
  dying     logs something when `wait` is called, and exits
  wordy     answers `wait` at once, with 100 000 characters
  vendor    sends a notification of its own, with an unknown member beside the parameters, before it answers `wait`
  late      is of the stateless era, and answers the first question only when the second one has come
  modern    the same, and does not know `initialize` at all
  dual      speaks both eras; its first process answers the first question only when the second one has come
"""

import json
import os
import sys
import threading
import time

FOLDER, MANNER = sys.argv[1:]
TOOLS = [
    {"name": name, "description": description, "inputSchema": {"type": "object"}}
    for name, description in [("pid", "Tells its process id."), ("wait", "Waits for the gate.")]
]
output = threading.Lock()


def send(message):
    with output:
        if MANNER == "noisy":
            print("about to answer {", '{"neither": "a request", "nor": "an answer"}', "", "[1", sep="\n")
        print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)


def text(text):
    return {"content": [{"type": "text", "text": text}]}


def wait(id):
    while not os.path.exists(os.path.join(FOLDER, "gate")):
        time.sleep(0.005)
    send({"id": id, "result": text("The gate is open.")})


LATE = ["late", "modern", "dual"]
late = []
is_first = not os.path.exists(os.path.join(FOLDER, "received"))


def answer(id, method, params):
    if MANNER in LATE:
        versions = ["2026-07-28", "2025-11-25"] if MANNER == "dual" else ["2026-07-28"]
        discovered = {"resultType": "complete", "supportedVersions": versions, "capabilities": {"tools": {}}}
        if method == "server/discover":
            return late.append(id) if is_first else send({"id": id, "result": discovered})
        if method == "initialize" and late:
            send({"id": late.pop(), "result": discovered})
        if method == "initialize" and MANNER == "late":
            error = {"code": -32022, "message": "this is 2026-07-28", "data": {"supported": versions}}
            return send({"id": id, "error": error})
        if method == "initialize" and MANNER == "modern":
            return send({"id": id, "error": {"code": -32601, "message": f"unknown method {method}"}})
    match method, params.get("name"):
        case "initialize", _:
            info = {"name": "scripted", "version": "1"}
            capabilities = {"tools": {}}
            version = params["protocolVersion"]
            result = {"protocolVersion": version, "capabilities": capabilities, "serverInfo": info}
        case "tools/list", _:
            result = {"tools": TOOLS}
        case "tools/call", "pid":
            result = text(str(os.getpid()))
        case "tools/call", "wait" if MANNER == "dying":
            send({"method": "notifications/message", "params": {"level": "info", "data": "at work"}})
            os._exit(1)
        case "tools/call", "wait" if MANNER == "vendor":
            send({"method": "notifications/vendor/news", "params": {"a": 1.0}, "x-trace": [1]})
            result = text("There was news.")
        case "tools/call", "wait" if MANNER == "wordy":
            result = text("x" * 100_000)
        case "tools/call", "wait":
            threading.Thread(target=wait, args=[id], daemon=True).start()
            return
        case _ if MANNER == "fragile":
            # At once, as a crash does, and not at the end of a clean-up.
            os._exit(1)
        case _:
            return send({"id": id, "error": {"code": -32601, "message": f"unknown method {method}"}})
    send({"id": id, "result": result})
    if MANNER == "brief" and method == "tools/list":
        os._exit(1)


if MANNER == "noisy":
    for number in range(10_000):
        print(f"line {number} of a long log, which nobody has asked for and nobody is going to read.", file=sys.stderr)
with open(os.path.join(FOLDER, "received"), "a") as received:
    for line in sys.stdin:
        print(line.strip(), file=received, flush=True)
        message = json.loads(line)
        if "id" in message and MANNER != "mute":
            answer(message["id"], message["method"], message.get("params", {}))
