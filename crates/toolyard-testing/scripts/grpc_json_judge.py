"""Compares a JSON mapping of messages with that of PyPI's protobuf.

Arguments: a file with a FileDescriptorSet, a seed and a number of cases. Each case is a line with a random message of a
type of a method: `result` has its bytes and wants its JSON, `arguments` has its JSON and wants its bytes. The answer to
each is a line with `json`, `bytes` (base64) or `error`. The last line has the number of cases and the differences.
"""

import base64
import json
import math
import random
import struct
import sys

from google.protobuf import descriptor_pb2, descriptor_pool, json_format, message_factory

# Maximum depth of a random message.
DEPTH = 4
# Maximum number of differences that are reported.
REPORTED = 20

files = descriptor_pb2.FileDescriptorSet.FromString(open(sys.argv[1], "rb").read())
pool = descriptor_pool.DescriptorPool()
for file in files.file:
    pool.Add(file)
rng = random.Random(int(sys.argv[2]))

methods = []
for file in files.file:
    for service in file.service:
        prefix = f"{file.package}." if file.package else ""
        for method in pool.FindServiceByName(prefix + service.name).methods:
            if not method.client_streaming:
                methods.append((f"/{prefix}{service.name}/{method.name}", method))

# None with a map: protobuf writes its entries in any order into the bytes of an `Any`.
ANY_TYPES = ["google.protobuf.Duration", "google.protobuf.StringValue", "google.protobuf.BytesValue", "google.rpc.Status"]


def known(name):
    try:
        return message_factory.GetMessageClass(pool.FindMessageTypeByName(name))
    except KeyError:
        return None


ANY_CLASSES = [found for found in map(known, ANY_TYPES) if found]


def text():
    letters = ["a", "Z", "9", " ", "\"", "\\", "/", "\n", "\t", "\x01", "\x7f", "é", "\u2028", "漢", "😀", "<", "\ufeff"]
    return "".join(rng.choice(letters) for _ in range(rng.randrange(6)))


def real(width):
    special = [0.0, 1.0, -1.5, 0.1, 1e21, 1e-7, 123456789.0, math.nan, math.inf, -math.inf, 5e-324, 1.7976931348623157e308]
    if width == "<f":
        # protobuf does not read its own text of the largest float.
        special[-2:] = [1e-45, 3.4028232635611926e38]
    value = rng.choice([*special, None, None])
    if value is None:
        value = struct.unpack(width, rng.randbytes(struct.calcsize(width)))[0]
    return math.nan if math.isnan(value) else value


def integer(bits, signed):
    low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)
    return rng.choice([low, high, 0, 1, rng.randint(low, high), rng.randint(0, 1000)])


def scalar(field):
    kind = field.type
    if kind == field.TYPE_STRING:
        return text()
    if kind == field.TYPE_BYTES:
        return rng.randbytes(rng.randrange(5))
    if kind == field.TYPE_BOOL:
        return rng.random() < 0.5
    if kind == field.TYPE_DOUBLE:
        return real("<d")
    if kind == field.TYPE_FLOAT:
        return real("<f")
    if kind == field.TYPE_ENUM:
        values = [value.number for value in field.enum_type.values]
        if not field.enum_type.is_closed and field.enum_type.full_name != "google.protobuf.NullValue":
            values.append(123456)
        return rng.choice(values)
    wide = kind in (field.TYPE_INT64, field.TYPE_UINT64, field.TYPE_SINT64, field.TYPE_FIXED64, field.TYPE_SFIXED64)
    unsigned = kind in (field.TYPE_UINT32, field.TYPE_UINT64, field.TYPE_FIXED32, field.TYPE_FIXED64)
    return integer(64 if wide else 32, not unsigned)


def fill_value(message, depth):
    kind = rng.randrange(4 if depth <= 0 else 6)
    if kind == 0:
        message.null_value = 0
    elif kind == 1:
        message.number_value = rng.choice([0.0, -1.5, 1e300, rng.random()])
    elif kind == 2:
        message.string_value = text()
    elif kind == 3:
        message.bool_value = rng.random() < 0.5
    elif kind == 4:
        fill(message.struct_value, depth - 1)
        message.struct_value.SetInParent()
    else:
        fill(message.list_value, depth - 1)
        message.list_value.SetInParent()


def fill(message, depth):
    """Sets random fields of a message."""
    name = message.DESCRIPTOR.full_name
    if name == "google.protobuf.Timestamp":
        message.seconds = rng.choice([-62135596800, 253402300799, 0, -1, rng.randint(-62135596800, 253402300799)])
        message.nanos = rng.choice([0, 1, 999_999_999, 120_000_000, 5_000, rng.randrange(10**9)])
    elif name == "google.protobuf.Duration":
        sign = rng.choice([-1, 1])
        message.seconds = sign * rng.choice([0, 1, 315_576_000_000, rng.randrange(315_576_000_000)])
        message.nanos = sign * rng.choice([0, 1, 999_999_999, 10_000_000, rng.randrange(10**9)])
    elif name == "google.protobuf.FieldMask":
        message.paths.extend(rng.choice(["a", "foo_bar", "foo.bar_baz", "x.y.z"]) for _ in range(rng.randrange(3)))
    elif name == "google.protobuf.Value":
        fill_value(message, depth)
    elif name == "google.protobuf.Any":
        if ANY_CLASSES:
            inner = rng.choice(ANY_CLASSES)()
            fill(inner, depth - 2)
            message.Pack(inner)
    else:
        fill_fields(message, depth)


def fill_fields(message, depth):
    share = 0.5 if depth == DEPTH else 0.3
    for field in message.DESCRIPTOR.fields:
        if not field.is_required and rng.random() > share:
            continue
        if field.message_type and not field.is_required and depth <= 0:
            continue
        if field.message_type and field.message_type.GetOptions().map_entry:
            fill_map(getattr(message, field.name), field.message_type, depth)
        elif field.is_repeated:
            for _ in range(rng.randrange(4)):
                if field.message_type:
                    fill(getattr(message, field.name).add(), depth - 1)
                else:
                    getattr(message, field.name).append(scalar(field))
        elif field.message_type:
            child = getattr(message, field.name)
            child.SetInParent()
            fill(child, depth - 1)
        else:
            setattr(message, field.name, scalar(field))


def fill_map(entries, entry, depth):
    key, value = entry.fields_by_name["key"], entry.fields_by_name["value"]
    for _ in range(rng.randrange(3)):
        if value.message_type:
            fill(entries[scalar(key)], depth - 1)
        else:
            entries[scalar(key)] = scalar(value)


def same(left, right):
    """Compares values of JSON. Numbers are equal if they are the same float of 32 bits."""
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(same(left[key], right[key]) for key in left)
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(same, left, right))
    numbers = all(isinstance(value, (int, float)) and not isinstance(value, bool) for value in (left, right))
    if numbers and left != right:
        try:
            return struct.pack("<f", left) == struct.pack("<f", right)
        except OverflowError:
            return False
    return type(left) is type(right) and left == right or numbers


def ask(case):
    print(json.dumps(case), flush=True)
    return json.loads(sys.stdin.readline())


def result_fault(message, answer):
    if "json" not in answer:
        return f"no result: {answer}"
    expected = json_format.MessageToDict(message, descriptor_pool=pool)
    if not same(json.loads(answer["json"]), expected):
        return f"result {answer['json']}, expected {json.dumps(expected)}"
    back = json_format.Parse(answer["json"], type(message)(), descriptor_pool=pool)
    if back.SerializeToString(deterministic=True) != message.SerializeToString(deterministic=True):
        return f"result {answer['json']} is another message than {expected}"
    return None


def arguments_fault(message, sent, answer):
    if "bytes" not in answer:
        return f"arguments {sent}: {answer}"
    back = type(message).FromString(base64.b64decode(answer["bytes"]))
    if back.SerializeToString(deterministic=True) != message.SerializeToString(deterministic=True):
        shown = json_format.MessageToJson(back, descriptor_pool=pool, indent=None)
        return f"arguments {sent} became {shown}"
    return None


faults = []
count = int(sys.argv[3])
for number in range(count):
    path, method = rng.choice(methods)
    is_result = number % 2 == 0
    message = message_factory.GetMessageClass(method.output_type if is_result else method.input_type)()
    fill(message, DEPTH)
    if is_result:
        answer = ask({"method": path, "bytes": base64.b64encode(message.SerializeToString()).decode()})
        fault = result_fault(message, answer)
    else:
        options = {"preserving_proto_field_name": rng.random() < 0.3, "use_integers_for_enums": rng.random() < 0.3}
        options["always_print_fields_with_no_presence"] = rng.random() < 0.3
        sent = json_format.MessageToJson(message, descriptor_pool=pool, indent=None, **options)
        fault = arguments_fault(message, sent, ask({"method": path, "json": sent}))
    if fault:
        faults.append(f"case {number}, {path}, {message.DESCRIPTOR.full_name}: {fault}"[:4000])
print(json.dumps({"cases": count, "different": len(faults), "faults": faults[:REPORTED]}), flush=True)
