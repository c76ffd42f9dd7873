"""Runs a command as a person does, on a terminal of its own: types what it is told to, and prints what it sees.

usage: terminal.py TYPED COMMAND...

The exit status is that of the command.
"""

import os
import pty
import sys

typed, *command = sys.argv[1:]
pid, terminal = pty.fork()
if pid == 0:
    os.execvp(command[0], command)
os.write(terminal, typed.encode())
while True:
    try:
        piece = os.read(terminal, 4096)
    except OSError:  # The other end is closed.
        break
    if not piece:
        break
    sys.stdout.buffer.write(piece.replace(b"\r\n", b"\n"))
    sys.stdout.flush()
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
