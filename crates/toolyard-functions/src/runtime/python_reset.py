"""Removes the traces of a call from a Python worker. The file precedes python_worker.py.

If there are `Leftovers`, the worker ends. `ProcessState` is restored; if that fails, the worker ends, too."""

import fcntl
import gc
import io
import os
import resource
import select
import sys
import threading
from _signal import SIG_BLOCK, SIG_SETMASK, getsignal, pthread_sigmask, setitimer
from os import WNOHANG, chdir, dup2, kill, listdir, lstat, pread, rmdir, scandir, stat, umask, unlink, waitpid
from stat import S_ISDIR
from time import sleep

# Maximum number of files and folders that are removed after a call. With more, a new worker starts faster.
MAX_ENTRIES = 1000

# Requests of `ioctl` for inode flags, on 64-bit machines.
FS_IOC_GETFLAGS, FS_IOC_SETFLAGS = 0x80086601, 0x40086602


def own_descriptor(descriptor):
    """Duplicates a descriptor to a high number, because handlers may expect low numbers to be free."""
    return fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, 64)


class Leftovers:
    """Processes, threads, timers and signal handlers of a call, which would affect the next one."""

    def __init__(self):
        above = os.getppid()
        try:
            # Orphans become children of the process above.
            listed = os.open(f"/proc/{above}/task/{above}/children", os.O_RDONLY)
            self.beside = own_descriptor(listed)
            os.close(listed)
        except OSError:
            self.beside = None
        # Process 1 of a namespace cannot be inspected from inside.
        self.is_first = above == 1
        self.before = self.seen()
        self.handlers = self.signal_handlers()

    def seen(self):
        try:
            threads = stat("/proc/self/task").st_nlink
        except OSError:
            threads = threading.active_count()
        if self.beside is None and self.is_first:
            return threads, self.has_company()
        return threads, self.beside and pread(self.beside, 4096, 0)

    def has_company(self):
        """Returns True if the namespace has processes other than process 1 and this one."""
        try:
            kill(-1, 0)
            return True
        except ProcessLookupError:
            return False

    def signal_handlers(self):
        return [getsignal(number) for number in range(1, 65)]

    def has_children(self):
        try:
            while waitpid(-1, WNOHANG)[0]:
                pass
            return True
        except ChildProcessError:
            return False

    def exist(self):
        try:
            # Stops all three timers.
            timers = [setitimer(which, 0)[0] for which in (0, 1, 2)]
            if any(timers) or self.signal_handlers() != self.handlers or self.has_children():
                return True
            for pause in (0.001, 0.01):
                # A process that has just ended may still be visible.
                if self.seen() == self.before:
                    return False
                sleep(pause)
            return self.seen() != self.before
        except BaseException:
            return True


def folder_attributes(path):
    """Returns the extended attributes and inode flags of a folder."""
    try:
        names = os.listxattr(path, follow_symlinks=False)
        attributes = tuple((name, os.getxattr(path, name, follow_symlinks=False)) for name in sorted(names))
    except OSError:
        attributes = ()
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return attributes, None
    try:
        return attributes, fcntl.ioctl(descriptor, FS_IOC_GETFLAGS, bytes(8))
    except OSError:
        # The file system does not support flags.
        return attributes, None
    finally:
        os.close(descriptor)


def restore_folder_attributes(path, attributes, flags):
    before = dict(attributes)
    if flags is not None:
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            if fcntl.ioctl(descriptor, FS_IOC_GETFLAGS, bytes(8)) != flags:
                fcntl.ioctl(descriptor, FS_IOC_SETFLAGS, flags)
        finally:
            os.close(descriptor)
    now = folder_attributes(path)[0]
    for name, _ in now:
        if name not in before:
            os.removexattr(path, name, follow_symlinks=False)
    for name, value in attributes:
        if (name, value) not in now:
            os.setxattr(path, name, value, follow_symlinks=False)


class Folder:
    """The folder of the worker, with its files at the time of loading."""

    def __init__(self, path):
        self.path = path
        self.limit = MAX_ENTRIES
        self.before = self.entries()
        self.limit += len(self.before)

    def entries(self):
        """Returns all paths in the folder with the attributes that reveal changes."""
        found = {self.path: self.about(self.path, lstat(self.path))}
        folders = [self.path]
        while folders:
            with scandir(folders.pop()) as entries:
                for entry in entries:
                    status = entry.stat(follow_symlinks=False)
                    found[entry.path] = self.about(entry.path, status)
                    if S_ISDIR(status.st_mode):
                        folders.append(entry.path)
                    if len(found) > self.limit:
                        raise OSError("too many files")
        return found

    def about(self, path, status):
        about = (status.st_ino, status.st_mode, status.st_uid, status.st_gid)
        if S_ISDIR(status.st_mode):
            # The times of a folder change with each file in it.
            return *about, *folder_attributes(path)
        return *about, status.st_size, status.st_nlink, status.st_mtime_ns, status.st_ctime_ns

    def reset(self):
        now = self.entries()
        if now == self.before:
            return
        for path, about in self.before.items():
            if S_ISDIR(about[1]) and path in now and now[path] != about:
                # Restored first, because they may prevent the removal of files.
                restore_folder_attributes(path, *about[-2:])
        for path in sorted(now.keys() - self.before.keys(), reverse=True):
            (rmdir if S_ISDIR(now[path][1]) else unlink)(path)
        if self.entries() != self.before:
            raise OSError("a file of the function has changed")


class ProcessState:
    """State of the process and its folder after loading, as far as calls can change it."""

    def __init__(self, home):
        null = os.open(os.devnull, os.O_RDWR)
        self.null, self.output = own_descriptor(null), own_descriptor(2)
        os.close(null)
        # The same as before later calls.
        dup2(self.null, 0)
        self.working_folder = os.getcwd()
        self.umask = umask(0o77)
        umask(self.umask)
        self.blocked = pthread_sigmask(SIG_BLOCK, ())
        self.environment = os.environ._data.copy()
        self.limits = [(number, resource.getrlimit(number)) for number in range(16)]
        self.priority = self.current_priority()
        self.poll = select.poll()
        for descriptor in range(min(resource.getrlimit(resource.RLIMIT_NOFILE)[0], 4096)):
            self.poll.register(descriptor, 0)
        self.streams = Streams((self.null, self.output))
        self.attributes, self.interpreter = ThreadAttributes(), InterpreterState()
        self.folder = Folder(home)
        self.descriptors = self.open_descriptors()

    def current_priority(self):
        return os.getpriority(os.PRIO_PROCESS, 0), os.sched_getscheduler(0), os.sched_getaffinity(0)

    def open_descriptors(self):
        try:
            return listdir("/proc/self/fd")
        except OSError:
            # Without /proc in the sandbox: the descriptors that are not open.
            return [descriptor for descriptor, events in self.poll.poll(0) if events & select.POLLNVAL]

    def reset(self):
        """Restores the state; returns True if the next call finds the state of the first one."""
        try:
            sys.settrace(None)
            sys.setprofile(None)
            # Output of finalizers that run now is dropped.
            for descriptor in (0, 1, 2):
                dup2(self.null, descriptor)
            pthread_sigmask(SIG_SETMASK, self.blocked)
            umask(self.umask)
            chdir(self.working_folder)
            self.reset_environment()
            self.reset_limits()
            self.folder.reset()
            self.streams.reset()
            is_clean = self.interpreter.reset() and self.attributes.reset()
            is_clean = is_clean and self.has_own_descriptors_only() and self.current_priority() == self.priority
            sys.stdin = io.StringIO()
            dup2(self.output, 1)
            dup2(self.output, 2)
            return is_clean
        except BaseException:
            return False

    def has_own_descriptors_only(self):
        if self.open_descriptors() == self.descriptors:
            return True
        # Some may be kept open by reference cycles.
        gc.collect()
        return self.open_descriptors() == self.descriptors

    def reset_environment(self):
        if os.environ._data == self.environment:
            return
        os.environ.clear()
        os.environb.update(self.environment)

    def reset_limits(self):
        for number, limit in self.limits:
            if resource.getrlimit(number) != limit:
                # Fails if the hard limit was lowered.
                resource.setrlimit(number, limit)
