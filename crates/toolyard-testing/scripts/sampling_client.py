"""The Python SDK as a client that lends its model to a gateway: starts a subagent, answers for its model, and prints what the
model was asked, and the result of the subagent.

usage: sampling_client.py URL KEY MODE

MODE is `legacy`, where the gateway asks in the session, or a revision of the modern era, where the subagent is a task that
requests input.
"""

import asyncio
import sys
from typing import Any, Literal

import httpx2
from mcp import Client, types
from mcp.client.extension import ClientExtension, ResultClaim
from mcp.client.streamable_http import streamable_http_client

WITH_TOOLS = types.SamplingCapability(tools=types.SamplingToolsCapability())

# The messages of the model: the calls that it requests, and its last text.
SCRIPT = [
    [("add", {"a": 1}), ("search", {"q": "x"})],
    [("report_progress", {"message": "half"}), ("whiteboard_write", {"key": "sum", "value": 2})],
    [("delete", {}), ("spawn_subagent", {"description": "More."})],
    "The sum is 2.",
]


def shown(block) -> str:
    match block.type:
        case "text":
            return block.text
        case "tool_use":
            return f"{block.name}({block.input})"
        case "tool_result":
            return f"{block.tool_use_id}: {' '.join(part.text for part in block.content)}"


def answer(params: types.CreateMessageRequestParams) -> types.CreateMessageResultWithTools:
    turn = sum(message.role == "assistant" for message in params.messages)
    if turn == 0:
        tools = [tool.name for tool in params.tools if tool.name in ("add", "report_progress", "spawn_subagent")]
        print("asked with", tools, params.tool_choice.mode, params.max_tokens, params.system_prompt[:18])
    said = SCRIPT[turn]
    if isinstance(said, str):
        for message in params.messages:
            blocks = message.content if isinstance(message.content, list) else [message.content]
            print(f"  {message.role}:", " | ".join(map(shown, blocks)))
        content, reason = [types.TextContent(type="text", text=said)], "endTurn"
    else:
        calls = enumerate(said)
        content = [
            types.ToolUseContent(type="tool_use", id=f"c{turn}{n}", name=name, input=args) for n, (name, args) in calls
        ]
        reason = "toolUse"
    return types.CreateMessageResultWithTools(role="assistant", model="scripted", content=content, stop_reason=reason)


async def sample(context, params):
    return answer(params)


class Task(types.Result):
    result_type: Literal["task"] = "task"
    task_id: str
    status: str
    poll_interval_ms: int


class TaskState(types.Result):
    status: str
    input_requests: dict[str, types.CreateMessageRequest] = {}
    result: types.CallToolResult | None = None


class TaskParams(types.RequestParams):
    task_id: str


class UpdateParams(TaskParams):
    input_responses: dict[str, Any]


class GetTask(types.Request[TaskParams, Literal["tasks/get"]]):
    method: Literal["tasks/get"] = "tasks/get"
    name_param = "taskId"


class UpdateTask(types.Request[UpdateParams, Literal["tasks/update"]]):
    method: Literal["tasks/update"] = "tasks/update"
    name_param = "taskId"


class Tasks(ClientExtension):
    """Tasks, whose requests for the model are answered."""

    identifier = "io.modelcontextprotocol/tasks"

    def claims(self):
        return [ResultClaim(result_type="task", model=Task, resolve=self.follow)]

    async def follow(self, task, context):
        print("task", task.status)
        states, one = [], TaskParams(task_id=task.task_id)
        while True:
            state = await context.session.send_request(GetTask(params=one), TaskState)
            states.append(state.status)
            if state.result:
                print("states", sorted(set(states) - {"working"}))
                return state.result
            answers = {key: answer(asked.params) for key, asked in state.input_requests.items()}
            answers = {key: result.model_dump(by_alias=True, exclude_none=True) for key, result in answers.items()}
            if answers:
                update = UpdateParams(task_id=task.task_id, input_responses=answers)
                await context.session.send_request(UpdateTask(params=update), types.EmptyResult)
            else:
                await asyncio.sleep(0.02)


async def text_of(client, tool, arguments) -> str:
    result = await client.call_tool(tool, arguments)
    return " ".join(block.text for block in result.content)


async def main(url, key, mode):
    def client(**options):
        http = httpx2.AsyncClient(timeout=60, headers={"Authorization": f"Bearer {key}"})
        return Client(streamable_http_client(url, http_client=http), mode=mode, **options)

    async def lists(**options) -> bool:
        async with client(**options) as one:
            return any(tool.name == "spawn_subagent" for tool in (await one.list_tools()).tools)

    tasks = [] if mode == "legacy" else [Tasks()]
    print("listed without a model", await lists(extensions=tasks))
    print("listed for a model without tools", await lists(sampling_callback=sample, extensions=tasks))
    if tasks:
        print("listed without tasks", await lists(sampling_callback=sample, sampling_capabilities=WITH_TOOLS))
    async with client(sampling_callback=sample, sampling_capabilities=WITH_TOOLS, extensions=tasks) as lending:
        print("listed", any(tool.name == "spawn_subagent" for tool in (await lending.list_tools()).tools))
        print((await text_of(lending, "spawn_subagent", {"description": "Add and search."}))[:16])
        listed = "is running"
        while "is running" in listed:
            listed = await text_of(lending, "list_subagents", {})
            await asyncio.sleep(0.02)
        uri = listed.split("Result: ")[1].split()[0]
        print("board", await text_of(lending, "whiteboard_read", {"board_id": uri.split("/")[-1], "key": "sum"}))
        resource = await lending.read_resource(uri)
        print("output", '"output": "The sum is 2."' in resource.contents[0].text)


asyncio.run(main(*sys.argv[1:]))
