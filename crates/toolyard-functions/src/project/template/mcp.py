"""A tool for agents. It receives a JSON-RPC request and returns the response."""

import json

# Agents read this to decide whether and how to call a tool: describe its purpose and its arguments.
TOOLS = [
    {
        "name": "NAME",
        "description": "Returns its text.",
        "inputSchema": {
            "type": "object",
            "properties": {"text": {"type": "string", "description": "The text to return."}},
            "required": ["text"],
        },
    }
]


def result(request, value):
    return {"jsonrpc": "2.0", "id": request.get("id"), "result": value}


def error(request, code, message):
    return {"jsonrpc": "2.0", "id": request.get("id"), "error": {"code": code, "message": message}}


def initialize(request):
    return result(
        request,
        {
            "protocolVersion": "2024-11-05",
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "NAME", "version": "1.0.0"},
        },
    )


def tools_list(request):
    return result(request, {"tools": TOOLS})


def tools_call(request):
    params = request.get("params") or {}
    arguments = params.get("arguments") or {}
    if params.get("name") == "NAME":
        text = arguments.get("text", "")
        return result(request, {"content": [{"type": "text", "text": text}]})
    return error(request, -32602, f"Unknown tool: {params.get('name')}")


METHODS = {"initialize": initialize, "tools/list": tools_list, "tools/call": tools_call}


# Called once per request. Printed output goes to the log of the call. An exception becomes an internal error.
def cortexone_handler(event, context=None):
    request = json.loads(event) if isinstance(event, str) else event
    method = METHODS.get(request.get("method"))
    if method is None:
        return error(request, -32601, f"Method not found: {request.get('method')}")
    return method(request)
