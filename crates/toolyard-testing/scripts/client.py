"""The Python SDK as a client: lists the tools of a server, calls some, and prints what it saw as JSON.

usage: client.py TARGET MODE CALLS

TARGET is a URL, or a program to start. MODE is `legacy`, or a revision of the modern era. CALLS is a JSON list of [tool, arguments].
"""

import asyncio
import json
import sys

from mcp import Client, StdioServerParameters


async def main(target, mode, calls):
    server = target if "://" in target else StdioServerParameters(command=target)
    async with Client(server, mode=mode) as client:
        tools = [tool.name for tool in (await client.list_tools()).tools]
        texts, progress = [], []

        async def on_progress(done, total, message):
            progress.append([done, total])

        for tool, arguments in calls:
            result = await client.call_tool(tool, arguments, progress_callback=on_progress)
            texts.append(result.content[0].text)
    print(json.dumps({"tools": tools, "texts": texts, "progress": progress}))


asyncio.run(main(sys.argv[1], sys.argv[2], json.loads(sys.argv[3])))
