"""The Python SDK as a client that validates structured results: takes calls, and prints the output schema of each tool
and its result as JSON.

usage: large_results.py URL MODE KEY CALLS

MODE is `legacy`, or a revision of the modern era. CALLS is a JSON list of [tool, arguments]. In arguments, `$KEY` is the
key of the last stored result, and `$BASE` the common beginning of the keys of its chunks.
"""

import asyncio
import json
import re
import sys

import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client


def stored_key(structured, texts):
    """The key of a stored result: that of its reference, or else the one that the text names."""
    if isinstance(structured, dict):
        structured = structured.get("result", structured)
    if isinstance(structured, dict) and "storedResult" in structured:
        return structured["storedResult"]["key"]
    found = re.search(r"stored at key `([^`]+)`", "\n".join(texts))
    return found and found[1]


def known_key(value, known):
    for name, key in known.items():
        value = value.replace(name, key) if isinstance(value, str) else value
    return value


async def main(url, mode, key, calls):
    http_client = httpx2.AsyncClient(timeout=60, headers={"Authorization": f"Bearer {key}"})
    async with Client(streamable_http_client(url, http_client=http_client), mode=mode) as client:
        listed = {tool.name: tool.output_schema for tool in (await client.list_tools()).tools}
        stored, seen = None, []
        for tool, arguments in calls:
            known = {"$KEY": stored or "", "$BASE": (stored or "").removesuffix("-index")}
            arguments = {name: known_key(value, known) for name, value in arguments.items()}
            call = {"tool": tool, "schema": listed.get(tool)}
            try:
                result = await client.call_tool(tool, arguments)
                texts = [block.text for block in result.content]
                stored = stored_key(result.structured_content, texts) or stored
                call |= {"texts": texts, "structured": result.structured_content, "failed": result.is_error}
            except Exception as error:  # What an application sees.
                call |= {"refused": str(error)[:500]}
            seen.append(call)
        print(json.dumps(seen))


asyncio.run(main(*sys.argv[1:4], json.loads(sys.argv[4])))
