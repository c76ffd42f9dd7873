import ctypes, errno, os, platform, signal, socket, sys, time
port, udp_port, abstract, secret, host_pid, token, stream, datagram = sys.argv[1:9]
libc = ctypes.CDLL(None, use_errno=True)
x86 = platform.machine() == "x86_64"

def call(result):
    if result == -1:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result

def syscall(number, *args):
    return call(libc.syscall(ctypes.c_long(number), *[ctypes.c_long(a) if isinstance(a, int) else a for a in args]))

def attempt(what):
    try:
        what()
    except OSError as error:
        print(errno.errorcode.get(error.errno, error.errno))
    except MemoryError:
        print("MemoryError")
    else:
        print("ESCAPED")
    sys.stdout.flush()

