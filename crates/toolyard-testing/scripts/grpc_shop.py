"""A gRPC server on PyPI's grpcio: the services of shop.proto, the Omnia tool protocol, reflection and health checks.

Options: port=N, tls=FOLDER (with cert.pem and key.pem; ca.pem for clients' certificates), mutual, without=reflection,
without=health, without=orders, pings (any number is accepted), omnia=PROTO (the tool protocol of this file).
"""

import concurrent.futures
import json
import pathlib
import sys
import threading

import grpc
from grpc_health.v1 import health, health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection

OPTIONS = dict(option.split("=", 1) if "=" in option else (option, "") for option in sys.argv[1:] if "without" not in option)
WITHOUT = {option.split("=", 1)[1] for option in sys.argv[1:] if "without" in option}

FOLDER = pathlib.Path(__file__).parent
sys.path.insert(0, str(FOLDER))
protos, services = grpc.protos_and_services("shop.proto")


class Orders(services.OrdersServicer):
    def __init__(self):
        self.failures = {}

    def order(self, request, state):
        former = [protos.STATE_OPEN] * request.former_states
        return protos.Order(id=request.id, note="x" * request.note_bytes, state=state, former_states=former)

    def wait(self, request, context):
        if request.HasField("delay"):
            cancelled = threading.Event()
            context.add_callback(cancelled.set)
            print("waiting", file=sys.stderr, flush=True)
            if cancelled.wait(request.delay.seconds + request.delay.nanos / 1e9):
                print("cancelled", file=sys.stderr, flush=True)

    def GetOrder(self, request, context):
        self.wait(request, context)
        if request.id < 0:
            context.abort(grpc.StatusCode.NOT_FOUND, f"no order {request.id}")
        return self.order(request, protos.STATE_OPEN)

    def WatchOrder(self, request, context):
        for number in range(request.states):
            yield self.order(request, 1 + number % 2)
        self.wait(request, context)
        if request.id < 0:
            context.abort(grpc.StatusCode.DATA_LOSS, "the stream broke")

    def Inspect(self, request, context):
        metadata = {key: value if isinstance(value, str) else value.hex() for key, value in context.invocation_metadata()}
        remaining = context.time_remaining()
        return protos.InspectResponse(metadata=metadata, has_deadline=remaining is not None and remaining < 3600)

    def Fail(self, request, context):
        count = self.failures.get(request.message, 0)
        self.failures[request.message] = count + 1
        if request.times and count >= request.times:
            return protos.Order(id=count)
        if request.details:
            context.set_trailing_metadata([("grpc-status-details-bin", request.details)])
        code = next(code for code in grpc.StatusCode if code.value[0] == request.code)
        context.abort(code, request.message)

    def AddOrders(self, requests, context):
        return protos.Order()


settings = [("grpc.so_reuseport", 0)]
if "pings" in OPTIONS:
    settings.append(("grpc.http2.max_ping_strikes", 0))
server = grpc.server(concurrent.futures.ThreadPoolExecutor(16), options=settings)
names = []
if "orders" not in WITHOUT:
    services.add_OrdersServicer_to_server(Orders(), server)
    names.append("shop.v1.Orders")

if "omnia" in OPTIONS:
    proto = pathlib.Path(OPTIONS["omnia"])
    sys.path.insert(0, str(proto.parents[3]))
    tool_protos, tool_services = grpc.protos_and_services("omnia/tools/v1/tools.proto")

    class Tools(tool_services.ToolServiceServicer):
        def ListTools(self, request, context):
            schema = {"type": "object", "properties": {"user_id": {"type": "string"}}, "required": ["user_id"]}
            info = tool_protos.ToolInfo(name="get_user", description="Returns a user", input_schema=json.dumps(schema))
            empty = tool_protos.ToolInfo(name="nothing", description="Returns nothing")
            return tool_protos.ListToolsResponse(tools=[info, empty])

        def Execute(self, request, context):
            arguments = json.loads(request.arguments_json)
            if request.tool_name == "nothing":
                return tool_protos.ToolResponse()
            if arguments.get("user_id") == "0":
                return tool_protos.ToolResponse(is_error=True, error_message="no such user")
            metadata = dict(context.invocation_metadata())
            result = {"id": arguments.get("user_id"), "tool": request.tool_name, "auth": metadata.get("authorization")}
            return tool_protos.ToolResponse(result_json=json.dumps(result))

    tool_services.add_ToolServiceServicer_to_server(Tools(), server)
    names.append("omnia.tools.v1.ToolService")

if "health" not in WITHOUT:
    servicer = health.HealthServicer()
    health_pb2_grpc.add_HealthServicer_to_server(servicer, server)
    servicer.set("", health_pb2.HealthCheckResponse.SERVING)
    servicer.set("shop.v1.Orders", health_pb2.HealthCheckResponse.NOT_SERVING)
    names.append(health.SERVICE_NAME)

if "reflection" not in WITHOUT:
    reflection.enable_server_reflection([*names, reflection.SERVICE_NAME], server)

address = f"{OPTIONS.get('host', '127.0.0.1')}:{OPTIONS.get('port', '0')}"
if "tls" in OPTIONS:
    folder = pathlib.Path(OPTIONS["tls"])
    read = lambda name: (folder / name).read_bytes()
    mutual = "mutual" in OPTIONS
    credentials = grpc.ssl_server_credentials(
        [(read("key.pem"), read("cert.pem"))], read("ca.pem") if mutual else None, mutual
    )
    port = server.add_secure_port(address, credentials)
else:
    port = server.add_insecure_port(address)
server.start()
print(f"127.0.0.1:{port}", flush=True)
server.wait_for_termination()
