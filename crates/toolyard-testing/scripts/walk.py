"""The Python SDK as a client of one server: takes steps, and prints what it sees.

usage: walk.py TARGET MODE STEPS

TARGET is a URL, of the SSE transport where it ends in /sse, or a program to start. MODE is `legacy`, a
revision of the modern era, or `tasks`, which is the modern era with the extension of that name. STEPS is a
JSON list of [step, arguments...]; the steps are the methods of `Walk`. The exit status is 0 when all of them
were taken, whatever came of them.
"""

import asyncio
import json
import sys
import warnings
from typing import ClassVar, Literal

import anyio
import httpx2
from mcp import Client, MCPError, StdioServerParameters, types
from mcp.client import ClientExtension, ResultClaim
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamable_http_client

LIMIT = 30
SESSION = "toolyard/session"
MODERN = "2026-07-28"


def show(*words):
    """Prints texts as they are, and everything else as JSON."""
    as_text = lambda word: word if word and isinstance(word, str) else json.dumps(word, ensure_ascii=False)
    print(*map(as_text, words))


class Walk:
    def __init__(self, target, mode):
        self.legacy = mode == "legacy"
        self.seen = {"progress": [], "log": [], "asked": []}
        self.answers = []
        self.handle = None
        self.changes = set()
        self.changed = anyio.Event()
        self.hears = anyio.Event()
        self.tasks = Tasks()
        self.client = Client(
            self.transport(target),
            mode=MODERN if mode == "tasks" else mode,
            log_level="info",
            logging_callback=self.on_log,
            elicitation_callback=self.on_question,
            message_handler=self.on_message,
            extensions=[self.tasks] if mode == "tasks" else None,
        )

    def transport(self, target):
        if target.endswith("/mcp"):
            client = httpx2.AsyncClient(timeout=LIMIT, event_hooks={"response": [self.on_response]})
            return streamable_http_client(target, http_client=client)
        self.hears.set()
        return sse_client(target) if target.endswith("/sse") else StdioServerParameters(command=target)

    async def on_response(self, response):
        # In a session, changes come on a stream of their own, which the SDK opens when it likes.
        if response.request.method == "GET":
            self.hears.set()

    async def take(self, steps):
        async with self.client, anyio.create_task_group() as self.background:
            if self.legacy:
                await self.client.set_logging_level("info")
            for name, *arguments in steps:
                with anyio.fail_after(LIMIT):
                    await self.step(name, arguments)
            self.background.cancel_scope.cancel()

    async def step(self, name, arguments):
        show(name, *arguments)
        try:
            await getattr(self, name)(*arguments)
        except MCPError as error:
            show("  => error", error.error.code, error.error.message)

    # === what the server says meanwhile ===

    async def on_progress(self, done, total, message):
        self.seen["progress"].append(f"{done:g} of {total:g}: {message}")

    async def on_log(self, params):
        self.seen["log"].append(f"{params.level} of {params.logger}: {params.data}")

    async def on_question(self, context, params):
        about = params.url if params.mode == "url" else ", ".join(params.requested_schema["properties"])
        self.seen["asked"].append(f"{params.message} ({about})")
        return types.ElicitResult(**self.answers.pop(0))

    async def on_message(self, message):
        match message:
            case types.ResourceListChangedNotification():
                self.note("list of resources")
            case types.ResourceUpdatedNotification():
                self.note(str(message.params.uri))

    def note(self, change):
        self.changes.add(change)
        self.changed.set()

    async def show_seen(self):
        # What came before the answer may still be on its way to us.
        await anyio.wait_all_tasks_blocked()
        for kind, lines in self.seen.items():
            for line in lines:
                show(f"  {kind}", line)
            lines.clear()

    # === steps ===

    async def tools(self):
        """Lists the tools."""
        for tool in (await self.client.list_tools()).tools:
            show("  -", tool.name)

    async def call(self, tool, arguments, meta=None):
        """Calls a tool, with what else is to be said of the request; the session `handle` is the newest handle."""
        if meta and meta.get(SESSION) == "handle":
            meta = {**meta, SESSION: self.handle}
        try:
            result = await self.client.call_tool(tool, arguments, progress_callback=self.on_progress, meta=meta)
        finally:
            await self.show_seen()
        self.handle = (result.meta or {}).get(SESSION, self.handle)
        text = " ".join(item.text for item in result.content)
        show("  => failed" if result.is_error else "  =>", text or "nothing")

    async def get_handle(self):
        """Calls a tool of working memory for the handle that its result has."""
        self.handle = (await self.client.call_tool("list_working_memory", {})).meta[SESSION]

    async def answer(self, *answers):
        """Says what the user does with the questions that follow."""
        self.answers = list(answers)

    async def cancel(self, tool, arguments):
        """Calls a tool, and cancels the call when it is under way."""

        async def on_progress(done, total, message):
            calling.cancel()

        with anyio.CancelScope() as calling:
            await self.client.call_tool(tool, arguments, progress_callback=on_progress)
        await self.show_seen()
        show("  => cancelled" if calling.cancelled_caught else "  => too late")

    async def cancel_tasks(self):
        """From now on tasks are cancelled as soon as there are any."""
        self.tasks.cancels = True

    async def until(self, tool, text):
        """Calls a tool until it answers with this text."""
        while (result := await self.client.call_tool(tool, {})).content[0].text != text:
            pass
        show("  =>", result.content[0].text)

    async def resources(self):
        """Lists the resources and the templates."""
        for resource in (await self.client.list_resources()).resources:
            show("  -", str(resource.uri))
        for template in (await self.client.list_resource_templates()).resource_templates:
            show("  -", template.uri_template)

    async def read(self, uri):
        """Reads a resource."""
        for content in (await self.client.read_resource(uri)).contents:
            show("  =>", content.mime_type, content.text)

    async def prompts(self):
        """Lists the prompts."""
        for prompt in (await self.client.list_prompts()).prompts:
            arguments = ", ".join(argument.name for argument in prompt.arguments)
            show("  -", f"{prompt.name}({arguments})")

    async def prompt(self, name, arguments):
        """Gets a prompt."""
        for message in (await self.client.get_prompt(name, arguments)).messages:
            content = message.content
            resource = content.type == "resource" and f"{content.resource.uri} {content.resource.text}"
            show(f"  => {message.role}:", resource or content.text)

    async def complete(self, name, argument, value):
        """Completes an argument of a prompt, or a variable of a template."""
        if "{" in name:
            reference = types.ResourceTemplateReference(uri=name)
        else:
            reference = types.PromptReference(name=name)
        completion = (await self.client.complete(reference, {"name": argument, "value": value})).completion
        show("  =>", ", ".join(completion.values) or "nothing")

    async def follow(self, uri):
        """Follows the list of resources, and one of them."""
        if self.legacy:
            await self.hears.wait()
            return await self.client.subscribe_resource(uri)
        await self.background.start(self.listen, uri)

    async def listen(self, uri, task_status):
        async with self.client.listen(resources_list_changed=True, resource_subscriptions=[uri]) as events:
            task_status.started()
            async for event in events:
                self.note(getattr(event, "uri", "list of resources"))

    async def await_changes(self, *changes):
        """Waits until these were announced."""
        while not self.changes.issuperset(changes):
            await self.changed.wait()
            self.changed = anyio.Event()
        show("  =>", ", ".join(sorted(self.changes)))
        self.changes.clear()


# === the tasks extension (SEP-2663), which the SDK does not bring ===


class Task(types.Result):
    result_type: Literal["task"] = "task"
    task_id: str


class TaskParams(types.RequestParams):
    task_id: str


class GetTask(types.Request[TaskParams, Literal["tasks/get"]]):
    name_param: ClassVar = "taskId"
    method: Literal["tasks/get"] = "tasks/get"
    params: TaskParams


class CancelTask(types.Request[TaskParams, Literal["tasks/cancel"]]):
    name_param: ClassVar = "taskId"
    method: Literal["tasks/cancel"] = "tasks/cancel"
    params: TaskParams


class TaskState(types.Result):
    status: str
    poll_interval_ms: int
    result: types.CallToolResult | None = None


class Tasks(ClientExtension):
    """Takes tasks, and asks for their results."""

    identifier = "io.modelcontextprotocol/tasks"
    cancels = False

    def claims(self):
        return [ResultClaim(result_type="task", model=Task, resolve=self.resolve)]

    async def resolve(self, task, context):
        params = TaskParams(task_id=task.task_id)
        show("  task")
        if self.cancels:
            await context.session.send_request(CancelTask(params=params), types.EmptyResult)
        while True:
            state = await context.session.send_request(GetTask(params=params), TaskState)
            if state.status != "working":
                show("  task", state.status)
                return state.result or types.CallToolResult(content=[])
            await anyio.sleep(state.poll_interval_ms / 1000)


warnings.simplefilter("ignore")
asyncio.run(Walk(sys.argv[1], sys.argv[2]).take(json.loads(sys.argv[3])))
