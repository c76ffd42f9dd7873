"""An MCP server on stdio, on the low-level Python SDK, whose tools return lists and trees of any size. Their output
schemas refer to themselves in every way.

usage: large_forms_server.py
"""

import asyncio
import json

from mcp import types
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server

LEAF = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
FORMS = {
    "root": {
        "type": "object",
        "properties": {
            "name": {"type": "string"},
            "alias": {"$ref": "#/properties/name"},
            "children": {"type": "array", "items": {"$ref": "#"}},
            "leaf": {"$ref": "#/$defs/leaf"},
        },
        "required": ["name"],
        "additionalProperties": False,
        "$defs": {"leaf": LEAF},
    },
    "draft7": {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "type": "object",
        "properties": {"children": {"type": "array", "items": {"$ref": "#/definitions/node"}}},
        "required": ["children"],
        "definitions": {"node": {"type": "object", "properties": {"leaf": {"$ref": "#/definitions/leaf"}}}, "leaf": LEAF},
    },
    "identified": {
        "$id": "https://example.com/tree",
        "type": "object",
        "properties": {"name": {"type": "string"}, "children": {"type": "array", "items": {"$ref": "#"}}},
        "required": ["name"],
    },
    "list": {"type": "array", "items": {"$ref": "#/$defs/node"}, "$defs": {"node": {"type": ["object", "array"]}}},
    "text": {"type": "string"},
}


def node(n):
    return {"name": f"n-{n}", "alias": "é", "children": [{"name": "c"}], "leaf": {"name": "l"}}


def value(form, size):
    children = [node(n) for n in range(size)]
    match form:
        case "root":
            return {"name": "root", "children": children}
        case "draft7":
            return {"children": children}
        case "identified":
            return {"name": "root", "children": [{"name": child["name"]} for child in children]}
        case "list":
            return children
        case "text":
            return "more words than one " * size


async def list_tools(context, params):
    schema = {"type": "object", "properties": {"size": {"type": "integer"}}}
    tools = [types.Tool(name=name, input_schema=schema, output_schema=output) for name, output in FORMS.items()]
    return types.ListToolsResult(tools=tools)


async def call_tool(context, params):
    result = value(params.name, (params.arguments or {}).get("size", 5000))
    text = result if isinstance(result, str) else json.dumps(result)
    content = [types.TextContent(type="text", text=text)]
    return types.CallToolResult(content=content, structured_content=result)


async def main():
    server = Server("forms", version="1", on_list_tools=list_tools, on_call_tool=call_tool)
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())


asyncio.run(main())
