"""An MCP server on the Python SDK that serves over HTTP, to who knows the token.

usage: guarded.py sse|streamable-http

It prints its URL, without the path. Its tool `greet` greets.
"""

import socket
import sys

import uvicorn
from mcp.server.mcpserver import MCPServer

server = MCPServer("guarded")


@server.tool()
def greet(name: str) -> str:
    return f"Hello {name}"


app = server.sse_app() if sys.argv[1] == "sse" else server.streamable_http_app()


async def guarded(scope, receive, send):
    headers = dict(scope.get("headers", []))
    known = headers.get(b"authorization") == b"Bearer hunter2" and headers.get(b"x-tenant") == b"acme"
    if scope["type"] == "http" and not known:
        await send({"type": "http.response.start", "status": 401, "headers": []})
        return await send({"type": "http.response.body", "body": b""})
    await app(scope, receive, send)


listener = socket.create_server(("127.0.0.1", 0))
print(f"http://127.0.0.1:{listener.getsockname()[1]}", flush=True)
uvicorn.Server(uvicorn.Config(guarded, log_level="warning")).run(sockets=[listener])
