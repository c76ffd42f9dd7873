"""A worker for functions in Python. It is started by the host as `python3 -I -S -c`, and speaks lines of JSON with it:
see wire.rs. It stays warm: what a module holds is there in the next call of the same worker."""

import base64
import importlib
import io
import os
import sys
import threading
import traceback
from _signal import getsignal, setitimer
from json import dumps, loads
from os import WNOHANG, pread, stat, waitpid
from time import sleep

LONGEST_ERROR = 16 << 10


class Log(io.TextIOBase):
    """What is printed, as much of it as is kept."""

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
    """The pipes to the host, moved away from where what is printed goes: to the log of the process."""
    import fcntl

    reads = os.fdopen(fcntl.fcntl(0, fcntl.F_DUPFD_CLOEXEC, 64), "rb")
    writes = fcntl.fcntl(1, fcntl.F_DUPFD_CLOEXEC, 64)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.dup2(2, 1)
    os.close(nothing)
    return reads, writes


def send(writes, *lines):
    rest = memoryview(b"".join(line + b"\n" for line in lines))
    while rest:
        rest = rest[os.write(writes, rest) :]


class Leavings:
    """What a call may leave that would act in the next one: processes, threads, timers, handlers of signals."""

    def __init__(self):
        above = os.getppid()
        try:
            import fcntl

            # Orphans become children of the process above.
            listed = os.open(f"/proc/{above}/task/{above}/children", os.O_RDONLY)
            self.beside = fcntl.fcntl(listed, fcntl.F_DUPFD_CLOEXEC, 64)
            os.close(listed)
        except OSError:
            self.beside = None
        self.before = self.seen()
        self.handlers = self.signal_handlers()

    def seen(self):
        try:
            threads = stat("/proc/self/task").st_nlink
        except OSError:
            threads = threading.active_count()
        return threads, self.beside and pread(self.beside, 4096, 0)

    def signal_handlers(self):
        return [getsignal(number) for number in range(1, 65)]

    def has_children(self):
        try:
            while waitpid(-1, WNOHANG)[0]:
                pass
            return True
        except ChildProcessError:
            return False

    def are_there(self):
        try:
            # All three are stopped.
            timers = [setitimer(which, 0)[0] for which in (0, 1, 2)]
            if any(timers) or self.signal_handlers() != self.handlers or self.has_children():
                return True
            for pause in (0.001, 0.01):
                # What has just ended may be seen for a moment.
                if self.seen() == self.before:
                    return False
                sleep(pause)
            return self.seen() != self.before
        except BaseException:
            return True


def head(**members):
    return dumps(members).encode()


def limit_memory(limit):
    import resource

    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    # A little less than what the process is killed for: an exception says more.
    limit -= limit // 8
    resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))


def find_handler(load):
    folder = os.environ["HOME"]  # Ours alone, and gone with us.
    for name, content in load["files"]:
        path = os.path.join(folder, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            file.write(base64.b64decode(content))
    os.chdir(folder)
    sys.path.insert(0, folder)
    if load["packages"]:
        sys.path.append(load["packages"])
    sys.dont_write_bytecode = True
    os.environ.update(load["environment"])
    module = importlib.import_module(load["entry"].removesuffix(".py"))
    handler = getattr(module, load["handler"], None)
    if not callable(handler):
        raise LookupError("there is no function " + load["handler"])
    import inspect

    if inspect.iscoroutinefunction(handler) or inspect.isasyncgenfunction(handler):
        raise LookupError("the handler is asynchronous: it has to be synchronous, and to return its answer")
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
    """As much of a text as fits into so many bytes. It need not be one that can be written."""
    return str(text)[:limit].encode("utf-8", "replace")[:limit].decode("utf-8", "ignore")


def end(text, limit):
    return text[-limit:].encode("utf-8", "replace")[-limit:].decode("utf-8", "ignore") if limit else ""


def thrown(error, limit):
    # The first frame is ours.
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
        # Half a character can be written with an escape alone.
        return dumps(answer, allow_nan=False, separators=(",", ":")).encode()


def call(handler, event, context, load):
    """The answer, or how it failed."""
    try:
        answer = handler(loads(event), context)
    except MemoryError:
        return None, {"why": "out_of_memory"}
    except BaseException as error:  # Also what wants to end the process: that is not a handler's to do.
        return None, thrown(error, error_bytes(load))
    try:
        text = write_answer(answer)
    except MemoryError:
        return None, {"why": "out_of_memory"}
    except BaseException as error:
        return None, {
            "why": "thrown",
            "kind": "TypeError",
            "message": beginning(f"the handler's answer is no JSON: {error}", error_bytes(load) - len("TypeError")),
            "details": "",
        }
    if len(text) > load["output_bytes"]:
        return None, {"why": "output_too_large"}
    return text, None


def main():
    reads, writes = take_line()
    ours = os.getpid()
    load = loads(reads.readline())
    log = sys.stdout = sys.stderr = Log(load["log_bytes"])
    sys.stdin = io.StringIO()
    limit_memory(load["memory_bytes"])
    if hasattr(sys, "set_int_max_str_digits"):
        sys.set_int_max_str_digits(0)  # How long an event may be, and how long this may take, is bounded.
    try:
        handler = find_handler(load)
    except BaseException as error:
        if os.getpid() == ours:
            send(writes, head(**{"is": "not_loaded", "message": beginning(not_loaded(error), error_bytes(load))}))
        return
    leavings = Leavings()
    send(writes, head(**{"is": "ready"}, call=0))
    while True:
        line, event = reads.readline(), reads.readline()
        if not event.endswith(b"\n"):
            return
        this = loads(line)
        text, failure = call(handler, event, this["context"], load)
        if os.getpid() != ours:
            return  # A child of the handler's has come back in its place.
        sys.stdout = sys.stderr = log
        about = {"call": this["call"], "log": log.take()}
        about["last"] = leavings.are_there() or (failure is not None and failure["why"] == "out_of_memory")
        if failure is None:
            said = [head(**{"is": "returned"}, **about), text]
        else:
            said = [head(**{"is": "failed"}, **about, failure=failure)]
        if about["last"]:
            return send(writes, *said)
        send(writes, *said, head(**{"is": "ready"}, call=this["call"]))


main()
# Neither threads nor what runs at the end of a program has a say.
os._exit(0)
