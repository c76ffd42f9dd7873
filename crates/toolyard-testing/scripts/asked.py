"""Clients on the Python SDK that can be asked everything: they call tools at the same time, again and again, and print
what each was asked and answered as a JSON list.

usage: asked.py URL MODE ROUNDS CLIENTS

MODE is `legacy`, or a revision of the modern era. CLIENTS is a JSON list of [name, calls]: the name is what a client
answers, whatever it is asked, and the calls, a list of [tool, arguments], are made at once in each round.
"""

import asyncio
import json
import sys

from mcp import Client, types


async def run(url, mode, rounds, name, calls):
    asked, texts = [], []

    async def elicit(context, params):
        asked.append(params.message)
        return types.ElicitResult(action="accept", content={"name": name})

    async def sample(context, params):
        asked.append(params.messages[0].content.text)
        answer = types.TextContent(type="text", text=name)
        return types.CreateMessageResult(role="assistant", model=name, content=answer)

    async def roots(context):
        asked.append("roots")
        return types.ListRootsResult(roots=[types.Root(uri=f"file:///{name}", name=name)])

    client = Client(url, mode=mode, elicitation_callback=elicit, sampling_callback=sample, list_roots_callback=roots)
    async with client:
        for _ in range(rounds):
            results = await asyncio.gather(*(client.call_tool(tool, arguments) for tool, arguments in calls))
            texts.append([" ".join(content.text for content in result.content) for result in results])
    return {"asked": asked, "texts": texts}


async def main(url, mode, rounds, clients):
    print(json.dumps(await asyncio.gather(*(run(url, mode, rounds, name, calls) for name, calls in clients))))


asyncio.run(main(sys.argv[1], sys.argv[2], int(sys.argv[3]), json.loads(sys.argv[4])))
