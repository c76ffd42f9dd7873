# A package index of packages that attack who installs them, on a free port of loopback, which is printed first.
# Arguments: a folder to make them in, the port of a server that nothing is to reach, and a file that nothing is to read.
import base64, hashlib, http.server, io, json, os, sys, tarfile, threading, zipfile

folder, foreign, secret = sys.argv[1], sys.argv[2], sys.argv[3]

BACKEND = '''
import base64, hashlib, os, socket, subprocess, sys, zipfile
def get_requires_for_build_wheel(config_settings=None): return []
def prepare_metadata_for_build_wheel(folder, config_settings=None):
    os.makedirs(f"{folder}/{name}-1.0.dist-info")
    open(f"{folder}/{name}-1.0.dist-info/METADATA", "w").write(f"Metadata-Version: 2.1\\nName: {name}\\nVersion: 1.0\\n")
    return f"{name}-1.0.dist-info"
def attempt(what):
    try: what()
    except Exception as error: return type(error).__name__
    return "ESCAPED"
def build_wheel(folder, config_settings=None, metadata_directory=None):
    attack()
    with zipfile.ZipFile(f"{folder}/{name}-1.0-py3-none-any.whl", "w") as wheel:
        record = ""
        for path, text in [(f"{name}.py", f"FOUND = {found!r}\\n"),
                (f"{name}-1.0.dist-info/METADATA", f"Metadata-Version: 2.1\\nName: {name}\\nVersion: 1.0\\n"),
                (f"{name}-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n")]:
            digest = base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).decode().rstrip("=")
            record += f"{path},sha256={digest},{len(text)}\\n"
            wheel.writestr(path, text)
        wheel.writestr(f"{name}-1.0.dist-info/RECORD", record + f"{name}-1.0.dist-info/RECORD,,\\n")
    return f"{name}-1.0-py3-none-any.whl"
found = {}
'''

PROBES = f'''
def attack():
    found["secret"] = attempt(lambda: open({secret!r}).read())
    found["passwd"] = attempt(lambda: open("/etc/passwd").read())
    found["write"] = attempt(lambda: open("/usr/" + name, "w"))
    found["network"] = attempt(lambda: socket.create_connection(("127.0.0.1", {foreign}), 2))
    found["outside"] = attempt(lambda: socket.create_connection(("192.0.2.1", 80), 2))
    found["user"] = "root" if os.getuid() == 0 else "not root"
    subprocess.Popen([sys.executable, "-c", "import time; time.sleep(1000)", {secret!r}],
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
'''

LINK = '''
def attack():
    os.symlink("/etc/passwd", os.environ["HOME"] + "/packages/there")
'''

LOADED = f'''
def attack():
    open({secret!r} + ".ran", "w").close()
attack()
'''


def files_of(name):
    os.makedirs(f"{folder}/simple/{name}", exist_ok=True)
    return f"{folder}/simple/{name}"


def listed(name):
    place = files_of(name)
    links = [f'<a href="{file}">{file}</a>' for file in sorted(os.listdir(place)) if file != "index.html"]
    open(f"{place}/index.html", "w").write("<!DOCTYPE html><html><body>" + "".join(links) + "</body></html>")


def wheel(name, requires=(), more=(), unlisted=(), wrong=()):
    info = f"{name}-1.0.dist-info"
    metadata = f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n" + "".join(f"Requires-Dist: {r}\n" for r in requires)
    texts = {f"{name}.py": "FOUND = 'installed'\n", f"{info}/METADATA": metadata,
             f"{info}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n", **dict(more)}
    record = f"{info}/RECORD,,\n"
    with zipfile.ZipFile(f"{files_of(name)}/{name}-1.0-py3-none-any.whl", "w") as archive:
        for path, text in texts.items():
            entry = zipfile.ZipInfo(path)
            # A symbolic link, whose content is where it leads.
            entry.external_attr = (0o120777 if path.endswith(".link") else 0o100644) << 16
            archive.writestr(entry, text)
            digest = hashlib.sha256((text + ("?" if path in wrong else "")).encode()).digest()
            if path not in unlisted:
                record += f"{path},sha256={base64.urlsafe_b64encode(digest).decode().rstrip('=')},{len(text)}\n"
        archive.writestr(f"{info}/RECORD", record)
    listed(name)


def source(name, attack, legacy=False):
    texts = {"PKG-INFO": f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n"}
    if legacy:
        texts["setup.py"] = attack
    else:
        texts["pyproject.toml"] = '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n'
        texts["backend.py"] = BACKEND + f"name = {name!r}\n" + attack
    with tarfile.open(f"{files_of(name)}/{name}-1.0.tar.gz", "w:gz") as archive:
        for path, text in texts.items():
            entry = tarfile.TarInfo(f"{name}-1.0/{path}")
            entry.size = len(text)
            archive.addfile(entry, io.BytesIO(text.encode()))
    listed(name)


class Index(http.server.SimpleHTTPRequestHandler):
    def __init__(self, *args):
        super().__init__(*args, directory=folder)

    def do_HEAD(self):
        if self.knows_the_reader():
            super().do_HEAD()

    # Whether a request has the credentials of the index's URL; it is refused otherwise.
    def knows_the_reader(self):
        if self.headers.get("Authorization") == "Basic " + base64.b64encode(b"reader:s3cret").decode():
            return True
        self.send_response(401)
        self.send_header("WWW-Authenticate", "Basic realm=index")
        self.send_header("Content-Length", "0")
        self.end_headers()
        return False

    def do_GET(self):
        if not self.knows_the_reader():
            return None
        if not self.path.startswith("/simple/redirected"):
            return super().do_GET()
        self.send_response(302)
        self.send_header("Location", f"http://127.0.0.1:{foreign}/simple/redirected/")
        self.end_headers()

    def log_message(self, *args):
        pass


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Index)
port = server.server_address[1]
own, other = f"http://127.0.0.1:{port}/simple", f"http://127.0.0.1:{foreign}"

wheel("good")
wheel("needsgood", requires=["good>=1"])
source("sourceonly", LOADED)
source("legacy", LOADED, legacy=True)
wheel("needssource", requires=["sourceonly"])
wheel("needsforeign", requires=[f"victim @ {other}/victim-1.0-py3-none-any.whl"])
wheel("needsownsource", requires=[f"sourceonly @ {own}/sourceonly/sourceonly-1.0.tar.gz"])
wheel("needsownlegacy", requires=[f"legacy @ {own}/legacy/legacy-1.0.tar.gz"])
wheel("needsownwheel", requires=[f"good @ {own}/good/good-1.0-py3-none-any.whl"])
wheel("needsfile", requires=[f"victim @ file://{secret}.tar.gz"])
wheel("pathfile", more={"pathfile.pth": "import os\n"})
wheel("otherdigest", wrong=["otherdigest.py"])
wheel("unlisted", unlisted=["unlisted.py"])
wheel("traversal", more={"../../../../escaped.py": "x"})
wheel("linked", more={"there.link": "/etc/passwd"})
source("prober", PROBES)
source("linker", LINK)
with zipfile.ZipFile(f"{folder}/victim.whl", "w"):
    pass

print(port, flush=True)
server.serve_forever()
