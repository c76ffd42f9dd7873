"""An MCP server on stdio, on the low-level Python SDK, whose tools declare structured results of every form.

usage: forms_server.py
"""

import asyncio
import json

from mcp import types
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server

TREE = {
    "anyOf": [{"type": "null"}, {"type": "array", "items": {"$ref": "#"}}, {"$ref": "#/$defs/leaf"}],
    "$defs": {"leaf": {"type": "object", "properties": {"next": {"$ref": "#"}}, "required": ["next"]}},
}
TOOLS = {
    "server_text": ({"type": "string"}, "a text"),
    "server_list": ({"type": "array", "items": {"type": "integer"}}, [1, 2]),
    "server_tree": (TREE, [None, {"next": [None]}]),
    "server_map": ({"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}, {"a": 1}),
    "server_bare": (None, [3]),
    "server_wrong": ({"type": "object", "required": ["a"]}, {"b": 1}),
}


async def list_tools(context, params):
    schema = {"type": "object"}
    tools = [types.Tool(name=name, input_schema=schema, output_schema=output) for name, (output, _) in TOOLS.items()]
    return types.ListToolsResult(tools=tools)


async def call_tool(context, params):
    value = TOOLS[params.name][1]
    content = [types.TextContent(type="text", text=json.dumps(value))]
    return types.CallToolResult(content=content, structured_content=value)


async def main():
    server = Server("forms", version="1", on_list_tools=list_tools, on_call_tool=call_tool)
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())


asyncio.run(main())
