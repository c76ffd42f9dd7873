"""Calls a service of the Omnia tool protocol with the Python implementation of gRPC.

    grpc_caller.py STUBS TARGET [OPTION=VALUE...]

STUBS is a folder with the modules that grpcio-tools generates. Each line of standard input is a request as JSON, and the
answer is a line of standard output. Options: `key`, `authority`, and the files `ca`, `cert` and `certkey`.
"""

import json
import sys

sys.path.insert(0, sys.argv[1])

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2
from google.protobuf import descriptor_pb2
from omnia.tools.v1 import tools_pb2, tools_pb2_grpc

target = sys.argv[2]
options = dict(option.split("=", 1) for option in sys.argv[3:])
limits = [("grpc.max_receive_message_length", 64 << 20), ("grpc.max_send_message_length", 64 << 20)]


if "authority" in options:
    limits.append(("grpc.default_authority", options["authority"]))


def file(name):
    with open(options[name], "rb") as opened:
        return opened.read()


def open_channel(extra=()):
    arguments = limits + list(extra)
    if "ca" not in options:
        return grpc.insecure_channel(target, options=arguments)
    identity = (file("certkey"), file("cert")) if "cert" in options else (None, None)
    credentials = grpc.ssl_channel_credentials(file("ca"), *identity)
    return grpc.secure_channel(target, credentials, options=arguments)


channel = open_channel()
tools = tools_pb2_grpc.ToolServiceStub(channel)
health = health_pb2_grpc.HealthStub(channel)


def metadata(request):
    key = request.get("key", options.get("key"))
    extra = [tuple(pair) for pair in request.get("headers", [])]
    return ([("authorization", f"Bearer {key}")] if key else []) + extra


def message(request):
    arguments = request.get("arguments", "")
    if not isinstance(arguments, str):
        arguments = json.dumps(arguments)
    return tools_pb2.ToolRequest(
        tool_name=request["tool"], arguments_json=arguments, metadata=request.get("metadata", {})
    )


def shown(response):
    answer = {"result": response.result_json}
    if response.is_error:
        answer |= {"isError": True, "message": response.error_message}
    return answer


def failure(error):
    details = dict(error.trailing_metadata() or ()).get("grpc-status-details-bin", b"")
    reasons = ["TOOL_NOT_FOUND", "INVALID_ARGUMENTS", "OVERLOADED", "RATE_LIMITED", "TIMEOUT", "UNAUTHENTICATED", "DENIED"]
    known = [reason for reason in reasons if reason.encode() in details]
    return {"code": error.code().name, "details": error.details()} | ({"reason": known[0]} if known else {})


def execute(request):
    return shown(tools.Execute(message(request), timeout=request.get("timeout"), metadata=metadata(request)))


def list_tools(request):
    listed = tools.ListTools(tools_pb2.ListToolsRequest(), metadata=metadata(request))
    return {"tools": [[tool.name, tool.description, tool.input_schema] for tool in listed.tools]}


def check_health(request):
    asked = health_pb2.HealthCheckRequest(service=request.get("service", ""))
    return {"status": health_pb2.HealthCheckResponse.ServingStatus.Name(health.Check(asked).status)}


def watch_health(request):
    """Reads the statuses of the server until it closes the stream."""
    statuses = []
    try:
        for answer in health.Watch(health_pb2.HealthCheckRequest()):
            statuses.append(health_pb2.HealthCheckResponse.ServingStatus.Name(answer.status))
            print(json.dumps({"watched": statuses[-1]}), flush=True)
    except grpc.RpcError as error:
        statuses.append(error.code().name)
    return {"statuses": statuses}


def reflect(request):
    """Asks for the services and the file of one of them. Both versions of the protocol have the same messages."""
    ask = channel.stream_stream(
        f"/grpc.reflection.{request['version']}.ServerReflection/ServerReflectionInfo",
        request_serializer=reflection_pb2.ServerReflectionRequest.SerializeToString,
        response_deserializer=reflection_pb2.ServerReflectionResponse.FromString,
    )
    asked = [
        reflection_pb2.ServerReflectionRequest(list_services=""),
        reflection_pb2.ServerReflectionRequest(file_containing_symbol="omnia.tools.v1.ToolService"),
    ]
    listed, found = list(ask(iter(asked)))
    services = [service.name for service in listed.list_services_response.service]
    file = descriptor_pb2.FileDescriptorProto.FromString(found.file_descriptor_response.file_descriptor_proto[0])
    return {"services": services, "methods": [method.name for method in file.service[0].method]}


def many(request):
    """Runs calls side by side. Returns the number of each outcome."""
    channels = [open_channel([("grpc.use_local_subchannel_pool", 1)]) for _ in range(request["channels"])]
    stubs = [tools_pb2_grpc.ToolServiceStub(channel) for channel in channels]
    calls = [
        stubs[number % len(stubs)].Execute.future(message(request), timeout=60, metadata=metadata(request))
        for number in range(request["calls"])
    ]
    outcomes = {}
    for call in calls:
        try:
            outcome = call.result().result_json
        except grpc.RpcError as error:
            outcome = error.code().name
        outcomes[outcome] = outcomes.get(outcome, 0) + 1
    for channel in channels:
        channel.close()
    return outcomes


def cancel(request):
    """Cancels a call once a line says so."""
    call = tools.Execute.future(message(request), metadata=metadata(request))
    print(json.dumps({"started": True}), flush=True)
    sys.stdin.readline()
    call.cancel()
    try:
        return shown(call.result())
    except grpc.FutureCancelledError:
        return {"code": "CANCELLED"}


operations = {
    "execute": execute,
    "list": list_tools,
    "health": check_health,
    "watch": watch_health,
    "reflect": reflect,
    "many": many,
    "cancel": cancel,
}
print("ready", flush=True)
for line in iter(sys.stdin.readline, ""):
    request = json.loads(line)
    try:
        answer = operations[request.pop("do")](request)
    except grpc.RpcError as error:
        answer = failure(error)
    print(json.dumps(answer), flush=True)
