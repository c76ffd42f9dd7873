"""The Python SDK as a client of everything that is no tool: prints what it saw of npm's `server-everything` as JSON.

usage: passing.py URL MODE

MODE is `legacy`, or a revision of the modern era.
"""

import asyncio
import json
import sys

from mcp import Client
from mcp.types import PromptReference, ResourceTemplateReference

FOLLOWED = "demo://resource/dynamic/text/1"
TOGGLE = "toggle-subscriber-updates"


async def update(client, mode, updates):
    """The URI of the first resource that is said to have changed, once updates are on."""
    if mode == "legacy":
        await client.subscribe_resource(FOLLOWED)
        await client.call_tool(TOGGLE, {})
        uri = await updates.get()
        await client.unsubscribe_resource(FOLLOWED)
        return uri
    async with client.listen(resource_subscriptions=[FOLLOWED]) as changes:
        await client.call_tool(TOGGLE, {})
        async for change in changes:
            return str(change.uri)


async def main(url, mode):
    updates = asyncio.Queue()

    async def on_message(message):
        message = getattr(message, "root", message)
        if getattr(message, "method", None) == "notifications/resources/updated":
            updates.put_nowait(str(message.params.uri))

    async with Client(url, mode=mode, message_handler=on_message) as client:
        prompt = await client.get_prompt("args-prompt", {"city": "Berlin"})
        read = await client.read_resource("demo://resource/static/document/features.md")
        dynamic = await client.read_resource(FOLLOWED)
        department = await client.complete(
            PromptReference(type="ref/prompt", name="completable-prompt"), {"name": "department", "value": "E"}
        )
        number = await client.complete(
            ResourceTemplateReference(type="ref/resource", uri="demo://resource/dynamic/text/{resourceId}"),
            {"name": "resourceId", "value": "7"},
        )
        seen = {
            "prompts": [prompt.name for prompt in (await client.list_prompts()).prompts],
            "resources": len((await client.list_resources()).resources),
            "templates": [
                template.uri_template for template in (await client.list_resource_templates()).resource_templates
            ],
            "prompt": prompt.messages[0].content.text,
            "read": read.contents[0].text.splitlines()[0],
            "dynamic": dynamic.contents[0].text.split(":")[0],
            "completed": [department.completion.values, number.completion.values],
            "updated": await asyncio.wait_for(update(client, mode, updates), 30),
        }
    print(json.dumps(seen))


asyncio.run(main(sys.argv[1], sys.argv[2]))
