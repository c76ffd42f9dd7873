"""The Python SDK as a client that measures results: calls tools, and prints the number of characters of each result as
JSON, or of the error and its data.

usage: result_sizes.py URL MODE KEY CALLS

MODE is `legacy`, or a revision of the modern era. CALLS is a JSON list of [tool, arguments].
"""

import asyncio
import json
import sys

import httpx2
from mcp import Client, MCPError
from mcp.client.streamable_http import streamable_http_client


async def main(url, mode, key, calls):
    http_client = httpx2.AsyncClient(timeout=60, headers={"Authorization": f"Bearer {key}"})
    sizes = []
    async with Client(streamable_http_client(url, http_client=http_client), mode=mode) as client:
        for tool, arguments in calls:
            try:
                result = await client.call_tool(tool, arguments)
                sizes.append(len(json.dumps(result.model_dump(mode="json", exclude_none=True), ensure_ascii=False)))
            except MCPError as error:
                sizes.append(len(error.error.model_dump_json()))
    print(json.dumps(sizes))


asyncio.run(main(*sys.argv[1:4], json.loads(sys.argv[4])))
