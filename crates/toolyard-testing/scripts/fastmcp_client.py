"""FastMCP as a client: lists the tools of a server, calls some, and prints what it saw as JSON.

usage: fastmcp_client.py URL CALLS

CALLS is a JSON list of [tool, arguments].
"""

import asyncio
import json
import sys

from fastmcp import Client


async def main(url, calls):
    async with Client(url) as client:
        tools = [tool.name for tool in await client.list_tools()]
        texts = []
        for tool, arguments in calls:
            result = await client.call_tool(tool, arguments)
            texts.append(result.content[0].text)
    print(json.dumps({"tools": tools, "texts": texts}))


asyncio.run(main(sys.argv[1], json.loads(sys.argv[2])))
