"""The Python SDK as a client of a gateway: takes calls, and prints the text, the failure and the handle of each result as
JSON. A refused connection is printed as {"refused": REASON}.

usage: memory_client.py TARGET MODE KEY CALLS

TARGET is a URL, or `unix:` and the path of a socket. MODE is `legacy`, or a revision of the modern era. KEY may be empty.
CALLS is a JSON list of [tool, arguments, session], where the session is the `toolyard/session` of the request, `handle` for
the handle of the last result, or null.
"""

import asyncio
import json
import sys

import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

SESSION = "toolyard/session"


def http_client(target, key):
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    path = target.removeprefix("unix:")
    transport = httpx2.AsyncHTTPTransport(uds=path) if path != target else None
    return httpx2.AsyncClient(timeout=60, headers=headers, transport=transport)


def causes(error):
    if isinstance(error, BaseExceptionGroup):
        return "; ".join(map(causes, error.exceptions))
    return str(error)


async def main(target, mode, key, calls):
    url = "http://localhost/mcp" if target.startswith("unix:") else target
    seen, handle = [], None
    async with Client(streamable_http_client(url, http_client=http_client(target, key)), mode=mode) as client:
        for tool, arguments, session in calls:
            session = handle if session == "handle" else session
            meta = {SESSION: session} if session else None
            result = await client.call_tool(tool, arguments, meta=meta)
            text = "\n".join(block.text for block in result.content)
            handle = (result.meta or {}).get(SESSION)
            seen.append({"text": text, "failed": result.is_error, "handle": handle})
    return seen


try:
    print(json.dumps(asyncio.run(main(*sys.argv[1:4], json.loads(sys.argv[4])))))
except Exception as error:
    print(json.dumps({"refused": causes(error)[:1000]}))
