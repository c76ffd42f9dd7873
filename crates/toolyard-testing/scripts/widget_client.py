"""The Python SDK as a host of MCP Apps: opens the widget of each tool, and the links in its results. Prints what it saw as JSON.

usage: widget_client.py URL MODE [KEY]
"""

import asyncio
import json
import sys

import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client


async def main(url, mode, key=None):
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    async with httpx2.AsyncClient(headers=headers) as http:
        async with Client(streamable_http_client(url, http_client=http), mode=mode) as client:
            seen = {}
            for tool in (await client.list_tools()).tools:
                result = await client.call_tool(tool.name, {})
                pages = [tool.meta["ui"]["resourceUri"], tool.meta["ui/resourceUri"], str(result.content[0].uri)]
                texts = [(await client.read_resource(page)).contents[0].text for page in pages]
                seen[tool.name] = {"schemes": [page.split(":")[0] for page in pages], "texts": texts}
    print(json.dumps(seen))


asyncio.run(main(*sys.argv[1:]))
