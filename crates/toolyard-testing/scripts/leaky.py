"""An MCP server on stdio that says everything it was told to everybody.

usage: leaky.py MANNER [ARGUMENT …]

Its log begins with its arguments and its environment. Its tools are `ok`, which answers them, and `fail`, which is refused
with them as the text of a JSON-RPC error. MANNER is one of

  open      does as it should otherwise
  refusing  refuses the handshake with them
  chatty    has them in what is no message, and in the names of tools that are none
"""

import json
import os
import sys

MANNER = sys.argv[1]
EVERYTHING = json.dumps([sys.argv, dict(os.environ)])


def answer(method, params):
    match method, params.get("name"):
        case "initialize", _ if MANNER == "refusing":
            return {"error": {"code": -32000, "message": f"go away: {EVERYTHING}"}}
        case "initialize", _:
            info = {"name": "leaky", "version": EVERYTHING}
            version = params["protocolVersion"]
            return {"result": {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": info}}
        case "tools/list", _:
            names = ["ok", "fail"]
            tools = [{"name": f"{MANNER}_{name}", "inputSchema": {"type": "object"}} for name in names]
            return {"result": {"tools": tools + [{"name": f"no tool: {EVERYTHING}"}] * (MANNER == "chatty")}}
        case "tools/call", name if name.endswith("_ok"):
            return {"result": {"content": [{"type": "text", "text": "ok"}]}}
        case _:
            return {"error": {"code": -32601, "message": f"no: {EVERYTHING}", "data": EVERYTHING}}


print(f"starting with {EVERYTHING}", file=sys.stderr, flush=True)
if MANNER == "chatty":
    print(f"usage: {EVERYTHING}", flush=True)
for line in sys.stdin:
    message = json.loads(line)
    if "id" in message:
        answered = answer(message["method"], message.get("params", {}))
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], **answered}), flush=True)
