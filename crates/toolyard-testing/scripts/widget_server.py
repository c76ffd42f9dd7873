"""An MCP server on stdio, on the Python SDK: a tool with a widget (MCP Apps), whose page is at the same URI on each such server.

usage: widget_server.py NAME
"""

import sys

from mcp.server import MCPServer
from mcp.types import ResourceLink

NAME, PAGE = sys.argv[1], "ui://widget/main.html"
server = MCPServer(NAME)


@server.resource(PAGE, name="main", mime_type="text/html;profile=mcp-app")
def page() -> str:
    return f"<p>{NAME}</p>"


@server.tool(
    name=f"show_{NAME}",
    meta={"ui": {"resourceUri": PAGE}, "ui/resourceUri": PAGE},
    structured_output=False,
)
def show() -> list[ResourceLink]:
    """Shows the widget."""
    return [ResourceLink(type="resource_link", uri=PAGE, name="main")]


server.run()
