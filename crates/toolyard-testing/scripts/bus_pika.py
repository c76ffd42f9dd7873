"""Invokes tools over RabbitMQ, as docs/bus.md describes it: bus_pika.py URL TOOL ARGUMENTS ...

Prints a line of JSON for each answer. The tool `SERVER/TOOL` is one of an MCP server of a bridge, and `script` is a script,
whose source are the arguments. The tool `-` sends the arguments as the whole body, and expects no answer.
"""

import json
import sys
import time
import uuid

import pika

URL, AGENT = sys.argv[1], "pika-agent"
TOOL_RESULTS, SCRIPT_RESULTS = f"tool.result.{AGENT}", f"script.result.{AGENT}"

connection = pika.BlockingConnection(pika.URLParameters(URL))
channel = connection.channel()
channel.confirm_delivery()
queue = channel.queue_declare("", exclusive=True).method.queue
for topic_of_answers in [TOOL_RESULTS, SCRIPT_RESULTS]:
    channel.queue_bind(queue, "rockbot", topic_of_answers)


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


def invoke(tool, arguments):
    call_id = uuid.uuid4().hex
    topic, message_type, body, reply_to = request(call_id, tool, arguments)
    properties = pika.BasicProperties(
        message_id=uuid.uuid4().hex,
        type=message_type,
        correlation_id=call_id,
        reply_to=reply_to,
        timestamp=int(time.time()),
        content_type="application/json",
        delivery_mode=2,
        headers={
            "rb-source": AGENT,
            "rb-traceparent": "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "rb-rb-content-trust": "tool-request",
            "rb-rb-timeout-ms": "20000",
            "rb-rb-mcp-server": tool.rpartition("/")[0] or "ignored",
        },
    )
    channel.basic_publish("rockbot", topic, body.encode(), properties, mandatory=True)
    if tool == "-":
        return
    for _, answer, body in channel.consume(queue, auto_ack=True, inactivity_timeout=30):
        assert answer is not None, "no answer"
        assert answer.correlation_id == call_id, answer
        response = json.loads(body)
        assert response.pop("toolCallId") == call_id, response
        trust = answer.headers["rb-rb-content-trust"]
        source = answer.headers["rb-source"]
        print(json.dumps([answer.type, answer.content_type, source, trust, response]), flush=True)
        break


for tool, arguments in zip(sys.argv[2::2], sys.argv[3::2]):
    invoke(tool, arguments)
connection.close()
