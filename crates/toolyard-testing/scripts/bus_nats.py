"""Invokes tools over NATS, as docs/bus.md describes it: bus_nats.py URL TOOL ARGUMENTS ...

Prints a line of JSON for each answer. The tool `SERVER/TOOL` is one of an MCP server of a bridge, and `script` is a script,
whose source are the arguments. The tool `-` sends the arguments as the whole body, and expects no answer.
"""

import asyncio
import json
import sys
import time
import uuid

import nats

URL, AGENT = sys.argv[1], "nats-agent"
TOOL_RESULTS, SCRIPT_RESULTS = f"tool.result.{AGENT}", f"script.result.{AGENT}"


def request(call_id, tool, arguments):
    """Returns the topic of a request, its type, its body, and the topic of its answer."""
    if tool == "script":
        body = {"toolCallId": call_id, "script": arguments, "inputData": "in", "timeoutSeconds": 20, "pipPackages": []}
        return "script.invoke", "RockBot.Scripts.ScriptInvokeRequest", json.dumps(body), SCRIPT_RESULTS
    server, _, name = tool.rpartition("/")
    body = {"toolCallId": call_id, "toolName": name, "arguments": arguments, "sessionId": None}
    text = arguments if tool == "-" else json.dumps(body)
    topic = "tool.invoke.mcp" if server else "tool.invoke"
    return topic, "RockBot.Tools.ToolInvokeRequest", text, TOOL_RESULTS


async def main():
    client = await nats.connect(URL)
    jetstream = client.jetstream()
    answers = {topic: await client.subscribe(topic) for topic in [TOOL_RESULTS, SCRIPT_RESULTS]}

    async def invoke(tool, arguments):
        call_id = uuid.uuid4().hex
        topic, message_type, body, reply_to = request(call_id, tool, arguments)
        headers = {
            "rb-message-id": uuid.uuid4().hex,
            "rb-type": message_type,
            "rb-correlation-id": call_id,
            "rb-reply-to": reply_to,
            "rb-timestamp": str(int(time.time() * 1000)),
            "rb-source": AGENT,
            "rb-traceparent": "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "rb-rb-content-trust": "tool-request",
            "rb-rb-timeout-ms": "20000",
            "rb-rb-mcp-server": tool.rpartition("/")[0] or "ignored",
        }
        await jetstream.publish(topic, body.encode(), headers=headers)
        if tool == "-":
            return
        answer = await answers[reply_to].next_msg(timeout=30)
        assert answer.headers["rb-correlation-id"] == call_id, answer.headers
        response = json.loads(answer.data)
        assert response.pop("toolCallId") == call_id, response
        about = [answer.headers[name] for name in ("rb-type", "rb-source", "rb-rb-content-trust")]
        print(json.dumps([*about, response]), flush=True)

    for tool, arguments in zip(sys.argv[2::2], sys.argv[3::2]):
        await invoke(tool, arguments)
    await client.close()


asyncio.run(main())
