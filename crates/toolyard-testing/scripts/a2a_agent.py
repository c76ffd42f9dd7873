"""An agent of the Python SDK of A2A. Prints its URL.

The first argument is `streaming`, `polled`, `pushing` (it sends push notifications), `signed` (its card is, and `/jwks.json`
has the key) or `legacy` (version 0.3), and decides what its card says. The agent does what the first word of a message says.
"""

import asyncio
import socket
import sys

import httpx
import uvicorn
from a2a.helpers import get_message_text, new_task_from_user_message, new_text_message, new_text_part
from a2a.server.agent_execution import AgentExecutor, RequestContext
from a2a.server.events import EventQueue
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.routes import create_agent_card_routes, create_jsonrpc_routes
from a2a.server.tasks import (
    BasePushNotificationSender,
    InMemoryPushNotificationConfigStore,
    InMemoryTaskStore,
    TaskUpdater,
)
from a2a.types import AgentCapabilities, AgentCard, AgentInterface, AgentSkill, TaskState
from a2a.utils.signing import create_agent_card_signer
from cryptography.hazmat.primitives.asymmetric import ec
from jwt.algorithms import ECAlgorithm
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.responses import JSONResponse, PlainTextResponse
from starlette.routing import Route


class Worker(AgentExecutor):
    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        text = get_message_text(context.message)
        if text.startswith("answer"):
            await event_queue.enqueue_event(new_text_message(f"You said: {text}"))
            return
        task = new_task_from_user_message(context.message)
        await event_queue.enqueue_event(task)
        updater = TaskUpdater(event_queue=event_queue, task_id=task.id, context_id=task.context_id)
        await updater.update_status(state=TaskState.TASK_STATE_WORKING, message=new_text_message("I begin."))
        if text.startswith("wait"):
            await asyncio.sleep(3600)
        skill = context.message.metadata["skill"]
        if text.startswith("ask"):
            await updater.update_status(
                state=TaskState.TASK_STATE_INPUT_REQUIRED, message=new_text_message("Which one?")
            )
            return
        if text.startswith("fail"):
            await updater.update_status(state=TaskState.TASK_STATE_FAILED, message=new_text_message("I cannot."))
            return
        await updater.add_artifact(parts=[new_text_part(text=f"{skill}: {text}", media_type="text/plain")])
        await updater.update_status(state=TaskState.TASK_STATE_COMPLETED, message=new_text_message("Done."))

    async def cancel(self, context: RequestContext, event_queue: EventQueue) -> None:
        updater = TaskUpdater(event_queue=event_queue, task_id=context.task_id, context_id=context.context_id)
        await updater.update_status(state=TaskState.TASK_STATE_CANCELED)
        print("cancelled", flush=True)


class Keyed:
    """Refuses calls without the key."""

    def __init__(self, app):
        self.app = app

    async def __call__(self, scope, receive, send):
        headers = dict(scope.get("headers", []))
        is_open = scope["type"] != "http" or scope["path"] == "/jwks.json"
        if not is_open and headers.get(b"authorization") != b"Bearer agent-key":
            await PlainTextResponse("no", status_code=401)(scope, receive, send)
            return
        await self.app(scope, receive, send)


def signed(card: AgentCard) -> Route:
    """Signs the card, and returns the route of the key."""
    key = ec.generate_private_key(ec.SECP256R1())
    create_agent_card_signer(key, {"kid": "k1", "alg": "ES256", "jku": None, "typ": "JOSE"})(card)
    public = ECAlgorithm.to_jwk(key.public_key(), as_dict=True) | {"kid": "k1"}

    async def keys(request):
        return JSONResponse({"keys": [public]})

    return Route("/jwks.json", keys)


def main() -> None:
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    is_legacy = sys.argv[1] == "legacy"
    version = "0.3" if is_legacy else "1.0"
    skill = AgentSkill(id="work", name="Work", description="Works.", tags=["work"], examples=["work hard"])
    card = AgentCard(
        name="Worker",
        description="Works for others.",
        version="1.0.0",
        default_input_modes=["text/plain"],
        default_output_modes=["text/plain"],
        capabilities=AgentCapabilities(
            streaming=sys.argv[1] in ("streaming", "legacy"), push_notifications=sys.argv[1] == "pushing"
        ),
        supported_interfaces=[AgentInterface(protocol_binding="JSONRPC", url=f"{url}/rpc", protocol_version=version)],
        skills=[skill],
    )
    more = [signed(card)] if sys.argv[1] == "signed" else []
    configs = InMemoryPushNotificationConfigStore()
    handler = DefaultRequestHandler(
        agent_executor=Worker(),
        task_store=InMemoryTaskStore(),
        agent_card=card,
        push_config_store=configs,
        push_sender=BasePushNotificationSender(httpx.AsyncClient(), configs),
    )
    routes = create_agent_card_routes(card) + create_jsonrpc_routes(handler, "/rpc", enable_v0_3_compat=is_legacy)
    app = Starlette(routes=routes + more, middleware=[Middleware(Keyed)])
    print(url, flush=True)
    listener.listen()
    server = uvicorn.Server(uvicorn.Config(app, log_level="error"))
    asyncio.run(server.serve(sockets=[listener]))


main()
