# Runs pip with the given arguments, without builds from source: pip runs the code of packages in other processes only.
import runpy
import sys

STARTS = ("subprocess.Popen", "os.fork", "os.forkpty", "os.exec", "os.posix_spawn", "os.spawn", "os.system", "pty.spawn")


def refuse(event, _):
    if event in STARTS:
        raise PermissionError("packages are not built from source here: only wheels are installed")


sys.addaudithook(refuse)
runpy.run_module("pip", run_name="__main__", alter_sys=True)
