"""An HTTPS service on Python's http.server: a calculator, and products with an OpenAPI description."""

import http.server
import json
import ssl
import sys

DESCRIPTION = {
    "openapi": "3.0.3",
    "info": {"title": "Products", "version": "1"},
    "servers": [{"url": "https://api.example.com"}],
    "paths": {
        "/products": {
            "get": {
                "operationId": "searchProducts",
                "parameters": [{"name": "query", "in": "query", "schema": {"type": "string"}}],
                "responses": {"200": {"description": "Products"}},
            },
            "post": {"operationId": "addProduct", "responses": {"200": {"description": "Added"}}},
        },
        "/products/{id}": {
            "get": {
                "operationId": "getProductDetails",
                "parameters": [{"name": "id", "in": "path", "required": True, "schema": {"type": "string"}}],
                "responses": {"200": {"description": "A product"}},
            }
        },
    },
}


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def answer(self, value):
        body = json.dumps(value).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        if self.path == "/openapi.json":
            self.answer(DESCRIPTION)
        else:
            self.answer({"path": self.path})

    def do_POST(self):
        arguments = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        left, right = arguments["expression"].split("+")
        self.answer({"value": int(left) + int(right)})


server = http.server.ThreadingHTTPServer((sys.argv[1], int(sys.argv[2])), Handler)
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain("api.pem", "api-key.pem")
server.socket = context.wrap_socket(server.socket, server_side=True)
print("serving", flush=True)
server.serve_forever()
