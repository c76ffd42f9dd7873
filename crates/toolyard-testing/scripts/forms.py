"""The Python SDK as a client that validates structured results: lists all tools, calls the named ones, and prints the
structured content of each, or its error, as JSON.

usage: forms.py URL MODE TOOL...

MODE is `legacy`, or a revision of the modern era.
"""

import asyncio
import json
import sys

from mcp import Client


async def structured(client, tool):
    try:
        result = await client.call_tool(tool, {})
    except Exception as error:  # What an application sees.
        return f"refused: {error}"
    texts = [block.text for block in result.content]
    return {"isError": texts} if result.is_error else result.structured_content


async def main(url, mode, tools):
    async with Client(url, mode=mode) as client:
        listed = {tool.name: tool.output_schema for tool in (await client.list_tools()).tools}
        results = {tool: await structured(client, tool) for tool in tools}
        print(json.dumps({"schemas": {tool: listed[tool] for tool in tools}, "results": results}))


asyncio.run(main(sys.argv[1], sys.argv[2], sys.argv[3:]))
