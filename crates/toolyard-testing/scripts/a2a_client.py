"""A client of the Python SDK of A2A: `a2a_client.py URL KEY HOOK`. Prints what it receives from an agent.

The last message has the URL of a hook, which gets the notifications of its task.
"""

import asyncio
import sys

import httpx
from a2a.client import A2ACardResolver, ClientConfig, create_client
from a2a.client.errors import A2AClientError
from a2a.helpers import new_data_part, new_text_message
from a2a.types import (
    CancelTaskRequest,
    DeleteTaskPushNotificationConfigRequest,
    GetTaskPushNotificationConfigRequest,
    GetTaskRequest,
    ListTaskPushNotificationConfigsRequest,
    ListTasksRequest,
    Message,
    Role,
    SendMessageConfiguration,
    SendMessageRequest,
    TaskPushNotificationConfig,
    TaskState,
)
from a2a.utils.errors import A2AError


def state(status) -> str:
    return TaskState.Name(status.state).removeprefix("TASK_STATE_").lower()


def shown(response) -> str:
    kind = response.WhichOneof("payload")
    if kind == "task":
        texts = [part.text for artifact in response.task.artifacts for part in artifact.parts]
        return f"task {state(response.task.status)} {texts}"
    if kind == "status_update":
        return f"status {state(response.status_update.status)}"
    if kind == "artifact_update":
        return f"artifact {[part.text for part in response.artifact_update.artifact.parts]}"
    return kind


def message(skill: str, text: str) -> Message:
    message = new_text_message(text, role=Role.ROLE_USER)
    message.metadata["skill"] = skill
    return message


async def client_of(url: str, key: str, streaming: bool):
    http = httpx.AsyncClient(headers={"Authorization": f"Bearer {key}"}, timeout=60)
    card = await A2ACardResolver(http, base_url=url).get_agent_card()
    return card, await create_client(agent=card, client_config=ClientConfig(httpx_client=http, streaming=streaming))


async def notify(client, task: str, hook: str) -> None:
    config = TaskPushNotificationConfig(task_id=task, id="c1", url=hook, token="token")
    print("create", (await client.create_task_push_notification_config(config)).id)
    about = {"task_id": task, "id": "c1"}
    print("config", (await client.get_task_push_notification_config(GetTaskPushNotificationConfigRequest(**about))).url == hook)
    request = ListTaskPushNotificationConfigsRequest(task_id=task)
    print("configs", len((await client.list_task_push_notification_configs(request)).configs))
    await client.delete_task_push_notification_config(DeleteTaskPushNotificationConfigRequest(**about))
    print("configs", len((await client.list_task_push_notification_configs(request)).configs))
    configuration = SendMessageConfiguration(
        return_immediately=True, task_push_notification_config=TaskPushNotificationConfig(url=hook, token="token")
    )
    notified = SendMessageRequest(message=message("find", "hi"), configuration=configuration)
    print("notified", len([response async for response in client.send_message(notified)]))


async def main(url: str, key: str, hook: str) -> None:
    card, client = await client_of(url, key, streaming=False)
    print("card", card.name, [skill.id for skill in card.skills], list(card.security_schemes))
    async for response in client.send_message(SendMessageRequest(message=message("find", "hello"))):
        print("send", shown(response))
    data = message("delete", "")
    data.parts.clear()
    data.parts.append(new_data_part({"id": 1}))
    async for response in client.send_message(SendMessageRequest(message=data)):
        print("failure", shown(response))
    try:
        async for response in client.send_message(SendMessageRequest(message=message("cook", "hello"))):
            print("unexpected", shown(response))
    except (A2AError, A2AClientError) as error:
        print("refused", type(error).__name__)

    _, streaming = await client_of(url, key, streaming=True)
    events = [shown(response) async for response in streaming.send_message(SendMessageRequest(message=message("find", "hi")))]
    # A task that has ended before the stream begins is one event.
    ends = [["artifact ['found']", "status completed"], ["task completed ['found']"]]
    print("stream", events[0].split(" ")[0], events[-2:] in ends or events)

    now = SendMessageConfiguration(return_immediately=True)
    held = SendMessageRequest(message=message("hold", "hi"), configuration=now)
    task = [response.task async for response in client.send_message(held)][0]
    print("get", state((await client.get_task(GetTaskRequest(id=task.id))).status) in ("submitted", "working"))
    print("cancel", state((await client.cancel_task(CancelTaskRequest(id=task.id))).status))
    try:
        await client.cancel_task(CancelTaskRequest(id=task.id))
    except A2AError as error:
        print("cancel again", type(error).__name__)

    page = await client.list_tasks(ListTasksRequest(page_size=3))
    rest = await client.list_tasks(ListTasksRequest(page_size=3, page_token=page.next_page_token))
    print("list", [state(task.status) for task in page.tasks], len(rest.tasks), rest.total_size, repr(rest.next_page_token))
    await notify(client, task.id, hook)


asyncio.run(main(*sys.argv[1:]))
