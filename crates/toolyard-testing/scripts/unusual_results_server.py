"""An MCP server on stdio, on the Python SDK, whose tool returns long results of unusual forms.

usage: unusual_results_server.py
"""

import base64

from mcp import MCPError, types
from mcp.server import MCPServer

server = MCPServer("forms")

LONG = "a line of a journal that goes on\n" * 12_000
DATA = base64.b64encode(LONG.encode()).decode()


def text(words, **more):
    return types.TextContent(type="text", text=words, **more)


def result(*blocks, **more):
    return types.CallToolResult(content=list(blocks), **more)


def resource(mime):
    contents = types.BlobResourceContents(uri="file:///a.bin", blob=DATA, mime_type=mime)
    return types.EmbeddedResource(type="resource", resource=contents)


FORMS = {
    "binary text": lambda: result(resource("text/plain")),
    "binary image": lambda: result(resource("image/png")),
    "image": lambda: result(types.ImageContent(type="image", data=DATA, mime_type="image/png")),
    "image of text": lambda: result(types.ImageContent(type="image", data=DATA, mime_type="text/plain")),
    "audio of text": lambda: result(types.AudioContent(type="audio", data=DATA, mime_type="text/plain")),
    "empty texts": lambda: result(*[text("")] * 60_000),
    "letters": lambda: result(*[text("a")] * 60_000),
    "annotation": lambda: result(text("short", annotations=types.Annotations(**{"lastModified": LONG}))),
    "meta": lambda: result(text("short"), **{"_meta": {"x/long": LONG}}),
    "meta of a block": lambda: result(text("short", **{"_meta": {"x/long": LONG}})),
}


@server.tool()
def form(name: str) -> types.CallToolResult:
    if name == "error":
        raise MCPError(-32000, LONG)
    if name == "data of an error":
        raise MCPError(-32000, "failed", {"long": LONG})
    return FORMS[name]()


server.run("stdio")
