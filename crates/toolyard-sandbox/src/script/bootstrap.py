# What the interpreter runs first. The script and its input come by standard input: arguments and variables can be read by
# others of the machine, and the system bounds them.
def start():
    import builtins, errno, os, sys
    from _sitebuiltins import Quitter

    def lengths():
        line = b""
        while not line.endswith(b"\n"):
            line += os.read(0, 1) or sys.exit("the script did not come")
        return [int(number) for number in line.split()]

    def text(length):
        parts = []
        while length:
            parts.append(os.read(0, min(length, 1 << 20)) or sys.exit("the script did not come whole"))
            length -= len(parts[-1])
        return b"".join(parts)

    source, given, packages, memory, disk = map(text, lengths())
    nothing = os.open("/dev/null", os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)

    # The system starts no program with a variable of 128 KiB. A longer one is the script's own: it stands in its view of the
    # environment, and what it starts does not inherit it.
    for name in (b"TOOLYARD_INPUT", b"ROCKBOT_INPUT"):
        if len(given) <= 120 << 10:
            os.environb[name] = given
        else:
            os.environ._data[name] = given
    # What `site` would have done, without the packages of the system.
    for name in ("exit", "quit"):
        setattr(builtins, name, Quitter(name, "Ctrl-D (i.e. EOF)"))
    home = os.getcwd()
    sys.path.insert(0, home)
    if packages:
        from site import addsitedir

        addsitedir(os.fsdecode(packages))
    sys.argv[:] = ["script.py"]

    # Tracebacks and processes that the script starts by `multiprocessing` look there.
    try:
        with open("script.py", "xb") as file:
            file.write(source)
    except OSError:
        # It has no more room than this, and runs without.
        if os.path.exists("script.py"):
            os.unlink("script.py")

    def tell(kind, error, trace):
        while trace and trace.tb_frame.f_code.co_filename == "<string>":
            trace = trace.tb_next
        sys.__excepthook__(kind, error.with_traceback(trace), trace)
        if issubclass(kind, MemoryError):
            print(f"The script needed more memory than it may have ({memory.decode()}).", file=sys.stderr)
        elif isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EFBIG, errno.EDQUOT):
            print(f"The script may write at most {disk.decode()} to files.", file=sys.stderr)

    sys.excepthook = tell
    main = globals()
    del main["start"]
    main["__file__"] = os.path.join(home, "script.py")
    code = compile(source, "script.py", "exec", dont_inherit=True)
    source = given = None
    exec(code, main)


start()
