# Runs pip in a sandbox. Arguments: `build` or `wheels`, the folder of pip itself, and the arguments of pip.
import runpy
import sys

STARTS = ("subprocess.Popen", "os.fork", "os.forkpty", "os.exec", "os.posix_spawn", "os.spawn", "os.system", "pty.spawn")


def refuse(event, _):
    # pip runs the code of packages in other processes only, and needs none for wheels.
    if event in STARTS:
        raise PermissionError("packages are not built from source here: only wheels are installed")


build, folder = sys.argv[1:3]
if build != "build":
    sys.addaudithook(refuse)
if folder not in sys.path:
    sys.path.append(folder)
sys.argv[1:3] = []
runpy.run_module("pip", run_name="__main__", alter_sys=True)
