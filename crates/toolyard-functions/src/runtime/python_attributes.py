"""Attributes of a Python worker: of its standard streams, its process and its interpreter. The file precedes
python_reset.py, and each class restores what a call has changed."""

import fcntl
import gc
import os
import sys
import threading
import time
from _locale import LC_ALL, setlocale

try:
    import ctypes
except ImportError:
    ctypes = None

# Requests of `fcntl` without a name in some versions of Python.
F_SETSIG, F_GETSIG, F_SETPIPE_SZ, F_GETPIPE_SZ = 10, 11, 1031, 1032

# Numbers of `ioprio_get`; `ioprio_set` is one less.
IOPRIO_GET = {"x86_64": 252, "aarch64": 31}.get(os.uname().machine)

# Options of `prctl` that read an attribute of the process into a number, and that set it.
PR_PDEATHSIG, PR_SUBREAPER = (2, 1), (37, 36)
PR_DUMPABLE, PR_TIMERSLACK, PR_NAME = (3, 4), (30, 29), (16, 15)


class Streams:
    """Flags and pipe sizes of the standard streams."""

    def __init__(self, descriptors):
        self.before = [(descriptor, *self.about(descriptor)) for descriptor in descriptors]

    def about(self, descriptor):
        try:
            size = fcntl.fcntl(descriptor, F_GETPIPE_SZ)
        except OSError:
            # Not a pipe.
            size = None
        return fcntl.fcntl(descriptor, fcntl.F_GETFL), size

    def reset(self):
        for descriptor, flags, size in self.before:
            # Read first, because a sandbox may not set them, even to the same value.
            if fcntl.fcntl(descriptor, fcntl.F_GETOWN):
                fcntl.fcntl(descriptor, fcntl.F_SETOWN, 0)
            if fcntl.fcntl(descriptor, F_GETSIG):
                fcntl.fcntl(descriptor, F_SETSIG, 0)
            now = self.about(descriptor)
            if now[0] != flags:
                fcntl.fcntl(descriptor, fcntl.F_SETFL, flags)
            if now[1] != size:
                fcntl.fcntl(descriptor, F_SETPIPE_SZ, size)
            if self.about(descriptor) != (flags, size):
                raise OSError("the standard streams have changed")


class ThreadAttributes:
    """Attributes of the process in the kernel, apart from its files."""

    def __init__(self):
        self.libc = ctypes and ctypes.CDLL(None, use_errno=True)
        self.before = self.about()
        self.filters = self.filter_lines()

    def filter_lines(self):
        """Returns the status lines about system call filters, which cannot be removed."""
        try:
            with open("/proc/self/status", "rb") as file:
                return [line for line in file if line.startswith((b"Seccomp", b"NoNewPrivs", b"CapEff", b"Groups"))]
        except OSError:
            return None

    def about(self):
        if self.libc is None:
            return None
        prctl = self.libc.prctl
        numbers = []
        for read, _ in (PR_PDEATHSIG, PR_SUBREAPER):
            number = ctypes.c_int()
            prctl(read, ctypes.byref(number), 0, 0, 0)
            numbers.append(number.value)
        numbers += [prctl(read, 0, 0, 0, 0) for read, _ in (PR_DUMPABLE, PR_TIMERSLACK)]
        name = ctypes.create_string_buffer(16)
        prctl(PR_NAME[0], name, 0, 0, 0)
        priority = IOPRIO_GET and self.libc.syscall(IOPRIO_GET, 1, 0)
        return *numbers, name.value, priority

    def reset(self):
        """Restores attributes; returns True if all are as before."""
        if self.about() != self.before:
            *numbers, name, priority = self.before
            for (_, write), number in zip((PR_PDEATHSIG, PR_SUBREAPER, PR_DUMPABLE, PR_TIMERSLACK), numbers):
                self.libc.prctl(write, number, 0, 0, 0)
            self.libc.prctl(PR_NAME[1], name, 0, 0, 0)
            if IOPRIO_GET:
                self.libc.syscall(IOPRIO_GET - 1, 1, 0, priority)
        return self.about() == self.before and self.filter_lines() == self.filters


class InterpreterState:
    """Settings of the interpreter that functions of Python can change."""

    def __init__(self):
        self.recursion_limit, self.switch_interval = sys.getrecursionlimit(), sys.getswitchinterval()
        self.trace, self.profile = sys.gettrace(), sys.getprofile()
        self.thread_hooks = self.current_thread_hooks()
        self.hooks = self.current_hooks()
        self.collector = self.current_collector()
        self.clock, self.locale = self.current_clock(), setlocale(LC_ALL, None)
        self.digits = sys.get_int_max_str_digits() if hasattr(sys, "get_int_max_str_digits") else None

    def current_thread_hooks(self):
        return getattr(threading, "_trace_hook", None), getattr(threading, "_profile_hook", None)

    def current_hooks(self):
        return sys.excepthook, sys.unraisablehook, sys.displayhook, sys.breakpointhook, threading.excepthook

    def current_collector(self):
        return gc.isenabled(), gc.get_threshold(), gc.get_debug(), list(gc.callbacks)

    def current_clock(self):
        # Winter and summer of 1970.
        return time.tzname, time.timezone, time.altzone, time.daylight, time.localtime(0), time.localtime(15_552_000)

    def reset(self):
        """Restores the settings. Must follow the environment, which has the time zone."""
        sys.settrace(self.trace)
        sys.setprofile(self.profile)
        if self.current_thread_hooks() != self.thread_hooks:
            threading.settrace(self.thread_hooks[0])
            threading.setprofile(self.thread_hooks[1])
        sys.setrecursionlimit(self.recursion_limit)
        sys.setswitchinterval(self.switch_interval)
        if self.digits is not None:
            sys.set_int_max_str_digits(self.digits)
        sys.excepthook, sys.unraisablehook, sys.displayhook, sys.breakpointhook, threading.excepthook = self.hooks
        if self.current_collector() != self.collector:
            enabled, thresholds, debug, gc.callbacks[:] = self.collector
            gc.set_threshold(*thresholds)
            gc.set_debug(debug)
            (gc.enable if enabled else gc.disable)()
        if setlocale(LC_ALL, None) != self.locale:
            setlocale(LC_ALL, self.locale)
        if self.current_clock() != self.clock:
            time.tzset()
        return self.current_clock() == self.clock
