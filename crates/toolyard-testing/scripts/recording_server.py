"""An MCP server on stdio that writes the id of each call to a file before it answers: recording_server.py FILE SECONDS

Its tools are `repeat`, which is idempotent, and `once`, which has effects. Both take SECONDS.
"""

import json
import os
import sys
import threading
import time

FILE, SECONDS = sys.argv[1], float(sys.argv[2])
SCHEMA = {"type": "object", "properties": {"id": {"type": "string"}}, "required": ["id"]}
TOOLS = [
    {"name": "repeat", "inputSchema": SCHEMA, "annotations": {"readOnlyHint": False, "idempotentHint": True}},
    {"name": "once", "inputSchema": SCHEMA, "annotations": {"readOnlyHint": False}},
]
output = threading.Lock()
record = os.open(FILE, os.O_WRONLY | os.O_CREAT | os.O_APPEND)


def send(message):
    with output:
        print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)


def call(id, tool, arguments):
    # One write, which a signal cannot divide.
    os.write(record, f"{tool} {arguments['id']}\n".encode())
    time.sleep(SECONDS)
    send({"id": id, "result": {"content": [{"type": "text", "text": arguments["id"]}]}})


def answer(id, method, params):
    match method:
        case "initialize":
            info = {"name": "recording", "version": "1"}
            version = params["protocolVersion"]
            result = {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": info}
        case "tools/list":
            result = {"tools": TOOLS}
        case "tools/call":
            arguments = params["name"], params["arguments"]
            threading.Thread(target=call, args=[id, *arguments], daemon=True).start()
            return
        case _:
            return send({"id": id, "error": {"code": -32601, "message": f"unknown method {method}"}})
    send({"id": id, "result": result})


for line in sys.stdin:
    message = json.loads(line)
    if "id" in message and "method" in message:
        answer(message["id"], message["method"], message.get("params", {}))
