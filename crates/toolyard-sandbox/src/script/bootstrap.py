# Start-up code of the interpreter. The script and its input arrive on standard input: other users can read arguments and
# variables, and the system limits their length.
def start():
    import builtins, errno, os, sys
    from _sitebuiltins import Quitter

    def lengths():
        line = b""
        while not line.endswith(b"\n"):
            line += os.read(0, 1) or sys.exit("no script on standard input")
        return [int(number) for number in line.split()]

    def text(length):
        parts = []
        while length:
            parts.append(os.read(0, min(length, 1 << 20)) or sys.exit("incomplete script on standard input"))
            length -= len(parts[-1])
        return b"".join(parts)

    source, script_input, packages, memory, disk = map(text, lengths())
    null = os.open("/dev/null", os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)

    # The system does not start programs with variables of 128 KiB. A longer one exists only in the script's view of the
    # environment; child processes do not inherit it.
    for name in (b"TOOLYARD_INPUT", b"ROCKBOT_INPUT"):
        if len(script_input) <= 120 << 10:
            os.environb[name] = script_input
        else:
            os.environ._data[name] = script_input
    # Set-up of `site`, without the packages of the system.
    for name in ("exit", "quit"):
        setattr(builtins, name, Quitter(name, "Ctrl-D (i.e. EOF)"))
    home = os.getcwd()
    sys.path.insert(0, home)
    if packages:
        from site import addsitedir

        addsitedir(os.fsdecode(packages))
    sys.argv[:] = ["script.py"]

    # Tracebacks and child processes of `multiprocessing` read this file.
    try:
        with open("script.py", "xb") as file:
            file.write(source)
    except OSError:
        # The disk limit is too small for the file; the script runs without it.
        if os.path.exists("script.py"):
            os.unlink("script.py")

    def report(kind, error, trace):
        while trace and trace.tb_frame.f_code.co_filename == "<string>":
            trace = trace.tb_next
        sys.__excepthook__(kind, error.with_traceback(trace), trace)
        if issubclass(kind, MemoryError):
            print(f"The script exceeded its memory limit ({memory.decode()}).", file=sys.stderr)
        elif isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EFBIG, errno.EDQUOT):
            print(f"The script exceeded its disk limit ({disk.decode()}).", file=sys.stderr)

    sys.excepthook = report
    main = globals()
    del main["start"]
    main["__file__"] = os.path.join(home, "script.py")
    code = compile(source, "script.py", "exec", dont_inherit=True)
    source = script_input = None
    exec(code, main)


start()
