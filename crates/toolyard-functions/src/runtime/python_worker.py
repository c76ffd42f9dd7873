"""Worker for functions in Python, appended to python_reset.py. It arrives on the pipe from the host, `reads`, and exchanges
lines of JSON with the host, see wire.rs. It is reused: module state persists between calls of the same worker."""

import base64
import importlib
import traceback
from json import dumps, loads

LONGEST_ERROR = 16 << 10

# Modification time of the function's files: 1 January 2000.
LONG_AGO = 946684800


class Log(io.TextIOBase):
    """Printed output, up to a limit."""

    encoding = "utf-8"

    def __init__(self, limit):
        super().__init__()
        self.limit = limit
        self.parts = []
        self.room = limit

    def writable(self):
        return True

    def write(self, text):
        if not isinstance(text, str):
            raise TypeError("write() needs a str")
        if self.room > 0 and text:
            self.parts.append(text if len(text) <= self.room else text[: self.room] + "\n(cut here)\n")
        self.room -= len(text)
        return len(text)

    def take(self):
        parts, self.parts, self.room = self.parts, [], self.limit
        return "".join(parts)


def take_line():
    """Returns the pipe to the host, and redirects standard output to the log of the process."""
    writes = own_descriptor(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    dup2(nothing, 0)
    dup2(2, 1)
    os.close(nothing)
    return writes


def send(writes, *lines):
    rest = memoryview(b"".join(line + b"\n" for line in lines))
    while rest:
        rest = rest[os.write(writes, rest) :]


def head(**members):
    return dumps(members).encode()


def limit_memory(limit):
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    # Slightly below the limit that kills the process, because an exception is more specific.
    limit -= limit // 8
    resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))


def find_handler(load, folder):
    for name, content in load["files"]:
        path = os.path.join(folder, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            file.write(base64.b64decode(content))
        # Any write makes the file newer, however soon.
        try:
            os.utime(path, (LONG_AGO, LONG_AGO))
        except PermissionError:
            # Not permitted in a sandbox without namespaces. File times have a resolution of a few milliseconds.
            sleep(0.02)
    os.chdir(folder)
    sys.path.insert(0, folder)
    if load["packages"]:
        sys.path.append(load["packages"])
    sys.dont_write_bytecode = True
    os.environ.update(load["environment"])
    module = importlib.import_module(load["entry"].removesuffix(".py"))
    handler = getattr(module, load["handler"], None)
    if not callable(handler):
        raise LookupError("missing function " + load["handler"])
    import inspect

    if inspect.iscoroutinefunction(handler) or inspect.isasyncgenfunction(handler):
        raise LookupError("the handler must be synchronous and return its answer")
    return handler


def not_loaded(error):
    if isinstance(error, LookupError) and error.__traceback__.tb_next.tb_next is None:
        return str(error)
    text = "".join(traceback.format_exception_only(error)).strip()
    if isinstance(error, SyntaxError):
        return text
    places = [place for place in traceback.extract_tb(error.__traceback__) if "importlib" not in place.filename]
    last = places[-1]
    return f"{text} ({os.path.basename(last.filename)}, line {last.lineno})"


def error_bytes(load):
    return min(load["output_bytes"], LONGEST_ERROR)


def beginning(text, limit):
    """Truncates a text to a number of bytes. The text may contain unpaired surrogates."""
    return str(text)[:limit].encode("utf-8", "replace")[:limit].decode("utf-8", "ignore")


def end(text, limit):
    return text[-limit:].encode("utf-8", "replace")[-limit:].decode("utf-8", "ignore") if limit else ""


def thrown(error, limit):
    # The first frame belongs to the worker.
    trace = error.__traceback__.tb_next or error.__traceback__
    kind = beginning(type(error).__name__, min(limit, 128))
    try:
        message = beginning(error, limit - len(kind.encode()))
    except BaseException:
        message = ""
    try:
        details = "".join(traceback.format_exception(type(error), error, trace, limit=-20))
        details = end(details, limit - len(kind.encode()) - len(message.encode()))
    except BaseException:
        details = ""
    return {"why": "thrown", "kind": kind, "message": message, "details": details}


def write_answer(answer):
    try:
        return dumps(answer, allow_nan=False, ensure_ascii=False, separators=(",", ":")).encode()
    except UnicodeEncodeError:
        # Unpaired surrogates can only be written as escapes.
        return dumps(answer, allow_nan=False, separators=(",", ":")).encode()


def call(handler, event, context, load):
    """Returns the answer or the failure."""
    try:
        answer = handler(loads(event), context)
    except MemoryError:
        return None, {"why": "out_of_memory"}
    except BaseException as error:  # Also SystemExit: a handler must not end the process.
        return None, thrown(error, error_bytes(load))
    try:
        text = write_answer(answer)
    except MemoryError:
        return None, {"why": "out_of_memory"}
    except BaseException as error:
        return None, {
            "why": "thrown",
            "kind": "TypeError",
            "message": beginning(f"the returned value is not JSON: {error}", error_bytes(load) - len("TypeError")),
            "details": "",
        }
    if len(text) > load["output_bytes"]:
        return None, {"why": "output_too_large"}
    return text, None


def serve(load, handler, log, leftovers, writes):
    """Takes one call, if there is another one; says which it was, unless the worker ends now."""
    ours = os.getpid()
    line, event = reads.readline(), reads.readline()
    if not event.endswith(b"\n"):
        return None
    this = loads(line)
    text, failure = call(handler, event, this["context"], load)
    if os.getpid() != ours:
        return None  # This is a child process of the handler.
    sys.stdout = sys.stderr = log
    about = {"call": this["call"], "log": log.take()}
    about["last"] = leftovers.exist() or (failure is not None and failure["why"] == "out_of_memory")
    if failure is None:
        send(writes, head(**{"is": "returned"}, **about), text)
    else:
        send(writes, head(**{"is": "failed"}, **about, failure=failure))
    return None if about["last"] else this["call"]


def main():
    writes = take_line()
    ours = os.getpid()
    load = loads(reads.readline())
    log = sys.stdout = sys.stderr = Log(load["log_bytes"])
    sys.stdin = io.StringIO()
    limit_memory(load["memory_bytes"])
    if hasattr(sys, "set_int_max_str_digits"):
        sys.set_int_max_str_digits(0)  # The length of events and the time are limited.
    home = os.environ["HOME"]  # Private, and removed with the worker.
    try:
        handler = find_handler(load, home)
    except BaseException as error:
        if os.getpid() == ours:
            send(writes, head(**{"is": "not_loaded", "message": beginning(not_loaded(error), error_bytes(load))}))
        return
    leftovers, state = Leftovers(), ProcessState(home)
    this = 0
    while True:
        send(writes, head(**{"is": "ready"}, call=this))
        this = serve(load, handler, log, leftovers, writes)
        # The answer is sent before the state is reset.
        if this is None or not state.reset():
            return


main()
# Skips threads and exit handlers.
os._exit(0)
