"""An MCP server on stdio, of the legacy era and without an SDK, whose tools return two mebibytes.

The tool `plain` returns them at once, the tool `progress` after a progress notification.
"""

import json
import sys

TOOLS = [{"name": name, "inputSchema": {"type": "object"}} for name in ["plain", "progress"]]


def send(message):
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)


for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        continue
    id, params = message["id"], message.get("params", {})
    match message["method"]:
        case "initialize":
            info = {"name": "large", "version": "1"}
            version = params["protocolVersion"]
            result = {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": info}
        case "tools/list":
            result = {"tools": TOOLS}
        case "tools/call":
            token = params.get("_meta", {}).get("progressToken")
            if params["name"] == "progress" and token is not None:
                send({"method": "notifications/progress", "params": {"progressToken": token, "progress": 1}})
            result = {"content": [{"type": "text", "text": "x" * (2 << 20)}]}
        case method:
            send({"id": id, "error": {"code": -32601, "message": f"unknown method {method}"}})
            continue
    send({"id": id, "result": result})
